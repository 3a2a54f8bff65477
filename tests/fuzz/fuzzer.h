// What the fuzzers share. Each is a program of libFuzzer (https://llvm.org/docs/LibFuzzer.html),
// whose first run, with STRIDE_FUZZ_SEEDS=FOLDER, writes inputs to begin with and ends.
// tests/fuzz/run does both. An assertion that fails aborts, and libFuzzer keeps the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

extern "C" {
int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Of libFuzzer: changes `size` bytes, which become at most `max_size`; returns how many they are.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);
}

namespace stride::test {

// Ends the program where it was asked to write seeds.
inline void write_seeds(const std::vector<std::string>& seeds) {
  const char* folder = std::getenv("STRIDE_FUZZ_SEEDS");
  if (folder == nullptr) return;
  for (size_t i = 0; i < seeds.size(); ++i)
    std::ofstream(std::string(folder) + "/seed-" + std::to_string(i), std::ios::binary) << seeds[i];
  std::exit(0);
}

// The bytes of an input, from the front.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  // 0 where there are no more.
  template <class Number>
  Number take() {
    Number number = 0;
    std::memcpy(&number, at_, std::min(sizeof number, left()));
    at_ += std::min(sizeof number, left());
    return number;
  }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  std::string rest() const { return {reinterpret_cast<const char*>(at_), left()}; }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

}  // namespace stride::test

// What the fuzzers share. Each has inputs to begin with (fuzz_seeds) and a function that tries one
// (LLVMFuzzerTestOneInput). Linked with libfuzzer.cc it is a program of libFuzzer
// (https://llvm.org/docs/LibFuzzer.html), with blind_driver.cc one that needs no clang. An
// assertion that fails aborts, and the input is kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// libFuzzer has it, or blind_driver.cc. Changes `size` bytes, which become at most `max_size`;
// returns how many they are.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);
}

namespace stride::test {

// The inputs that a fuzzer begins with.
std::vector<std::string> fuzz_seeds();

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

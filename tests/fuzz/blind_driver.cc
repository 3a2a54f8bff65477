// Runs a fuzzer without libFuzzer, which is clang's: the inputs to begin with are changed at
// random, and nothing is learnt of which code they reach.
//
//   PROGRAM            for STRIDE_FUZZ_SECONDS (60); STRIDE_TEST_SEED=N tries the same inputs again
//   PROGRAM FILE...    these inputs
//
// An input is written to a file before it is tried, which is left behind where the program ends
// with it, however that is: a sanitizer, an assertion, a signal, or more than `input_seconds`.
// Commands of an input may write files, so the program works in an empty folder.
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "tests/fuzz/fuzzer.h"
#include "tests/support/printed_seed.h"

// What an input may take, as libFuzzer allows it.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "hard_rss_limit_mb=4096"; }

extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t*, size_t, size_t,
                                                                unsigned int);

namespace stride::test {
namespace {

namespace fs = std::filesystem;

constexpr unsigned input_seconds = 300;  // a machine may be busy
constexpr size_t most_bytes = 1 << 16;

std::minstd_rand changes_random;
std::vector<std::string> inputs_to_begin_with;

size_t below(size_t end) { return changes_random() % end; }

// A piece of `bytes`, which aren't empty: mostly a few.
std::string piece_of(const std::string& bytes) {
  const size_t at = below(bytes.size());
  return bytes.substr(at, 1 + below(below(4) == 0 ? bytes.size() : 16));
}

// Puts `piece` over, before or in place of some bytes.
void place(std::string& bytes, const std::string& piece) {
  const size_t at = below(bytes.size() + 1), left = bytes.size() - at;
  const size_t replaced = below(3) == 0 ? below(left + 1) : below(2) * std::min(piece.size(), left);
  bytes.replace(at, replaced, piece);
}

// A number in which comparisons and sizes turn over, or one near what is there, in 1 to 8 bytes.
void change_number(std::string& bytes) {
  constexpr uint64_t turns[] = {0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF};
  const size_t at = below(bytes.size());
  const size_t width = std::min<size_t>(size_t{1} << below(4), bytes.size() - at);
  uint64_t number = 0;
  std::memcpy(&number, &bytes[at], width);
  const uint64_t step = below(33) - 16;
  switch (below(4)) {
    case 0:
      number = turns[below(std::size(turns))] + step % 3;
      break;
    case 1:
      number = ~turns[below(std::size(turns))];
      break;
    case 2:
      number += step;
      break;
    default:
      number <<= below(9);
      break;
  }
  std::memcpy(&bytes[at], &number, width);
  if (below(4) == 0) std::reverse(&bytes[at], &bytes[at] + width);
}

void change(std::string& bytes) {
  if (bytes.empty()) bytes.push_back(static_cast<char>(below(256)));
  char& some = bytes[below(bytes.size())];
  switch (below(8)) {
    case 0:
      some = static_cast<char>(some ^ 1 << below(8));
      break;
    case 1:
      some = static_cast<char>(below(256));
      break;
    case 2:
      some = "\"'\\,;:\t\n\r \0{}[]()-+.eE019/*"[below(27)];
      break;
    case 3:
      change_number(bytes);
      break;
    case 4:
      bytes.erase(below(bytes.size()), 1 + below(below(8) == 0 ? bytes.size() : 8));
      break;
    case 5:
      place(bytes, piece_of(bytes));
      break;
    case 6:
      place(bytes, piece_of(inputs_to_begin_with[below(inputs_to_begin_with.size())]));
      break;
    default:
      place(bytes, std::string(1 + below(below(8) == 0 ? 300 : 4), some));
      break;
  }
}

// The inputs to begin with, and then changed ones, each from its number alone.
std::string make_input(uint64_t number) {
  if (number < inputs_to_begin_with.size()) return inputs_to_begin_with[number];
  std::seed_seq both{seed(), seed() >> 32, number};
  changes_random.seed(both);
  std::string input = inputs_to_begin_with[below(inputs_to_begin_with.size())];
  const auto mutate = [&](size_t size) {
    auto* bytes = reinterpret_cast<uint8_t*>(input.data());
    return LLVMFuzzerCustomMutator == nullptr
               ? LLVMFuzzerMutate(bytes, size, most_bytes)
               : LLVMFuzzerCustomMutator(bytes, size, most_bytes,
                                         static_cast<unsigned>(changes_random()));
  };
  for (size_t left = 1 + below(below(2) == 0 ? 3 : 20); left > 0; --left) {
    const size_t size = std::min(input.size(), most_bytes);
    input.resize(most_bytes);
    input.resize(mutate(size));
  }
  return input;
}

void end_late_input(int) {
  constexpr char text[] = "\nThe input takes too long. It is here now:\n";
  [[maybe_unused]] const auto n = write(2, text, sizeof text - 1);
  __sanitizer_print_stack_trace();
  _exit(1);
}

// True from the beginning of an input to its end.
bool trying = false;

bool try_input(const std::string& input) {
  trying = true;
  alarm(input_seconds);
  // A copy with no byte to spare: AddressSanitizer sees what reads past it.
  const auto bytes = std::make_unique<uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), bytes.get());
  const bool taken = LLVMFuzzerTestOneInput(bytes.get(), input.size()) == 0;
  alarm(0);
  trying = false;
  return taken;
}

void end_ended_input() {
  if (!trying) return;
  std::fputs("The input ended the program.\n", stderr);
  _exit(1);
}

void try_changed_inputs(const std::string& name, const fs::path& file) {
  const char* given = std::getenv("STRIDE_FUZZ_SECONDS");
  const double seconds = given != nullptr && *given != '\0' ? std::strtod(given, nullptr) : 60;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto begin = now();
  uint64_t number = 0, taken = 0;
  for (; std::chrono::duration<double>(now() - begin).count() < seconds; ++number) {
    const std::string input = make_input(number);
    std::ofstream(file, std::ios::binary) << input;
    taken += try_input(input);
  }
  fs::remove(file);
  std::printf("%s: %llu inputs in %.0f s, and %llu that it passed over\n", name.c_str(),
              static_cast<unsigned long long>(taken), seconds,
              static_cast<unsigned long long>(number - taken));
}

int run(int argc, char** argv) {
  const fs::path home = fs::current_path();
  std::string folder = (fs::temp_directory_path() / "stride_fuzz_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr || chdir(folder.c_str()) != 0) return 1;
  const std::string name = fs::path(argv[0]).filename().string();
  const std::string program = (home / argv[0]).lexically_normal().string();
  inputs_to_begin_with = fuzz_seeds();
  signal(SIGALRM, end_late_input);
  std::atexit(end_ended_input);
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(home / argv[i], std::ios::binary);
    if (!file) return std::fprintf(stderr, "%s: no such file\n", argv[i]), 2;
    try_input({std::istreambuf_iterator<char>(file), {}});
  }
  if (argc == 1) {
    const fs::path file = home / (name + "-" + std::to_string(seed()));
    std::fprintf(stderr, "If an input fails, again with it: %s %s\n", program.c_str(),
                 file.c_str());
    try_changed_inputs(name, file);
  }
  fs::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace stride::test

size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  stride::test::change(bytes);
  bytes.resize(std::min(bytes.size(), max_size));
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

int main(int argc, char** argv) { return stride::test::run(argc, argv); }

// Fresh randomness for every run of a test, that can be had again.
//
//   TEST_CASE("SortTest.SortsAnything", "[SortTest]") {
//     std::mt19937_64 random(stride::test::seed());
//     ...
//   }
//
// A failing test prints its seed; STRIDE_TEST_SEED=N in the environment runs it with that seed.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace stride::test {

namespace internal {

inline void print_seed(std::uint64_t seed) {
  // To stderr: ctest reads the list of tests from the standard output.
  std::fprintf(stderr, "STRIDE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
}

inline std::atomic<bool> seed_is_chosen{false};

inline std::uint64_t choose_seed() {
  const char* given = std::getenv("STRIDE_TEST_SEED");
  std::uint64_t seed = 0;
  if (given != nullptr && *given != '\0') {
    seed = std::strtoull(given, nullptr, 0);
  } else {
    std::random_device device;
    seed = (static_cast<std::uint64_t>(device()) << 32) | device();
  }
  print_seed(seed);
  seed_is_chosen = true;
  return seed;
}

}  // namespace internal

// The seed of this process: the same at every call, printed at the first and after each test case
// that fails. Safe to call from any thread.
inline std::uint64_t seed() {
  static const std::uint64_t chosen = internal::choose_seed();
  return chosen;
}

inline void print_seed_if_chosen() {
  if (internal::seed_is_chosen) internal::print_seed(seed());
}

// How long a test with the label `soak` goes on: STRIDE_SOAK_SECONDS, or else `by_default`.
inline double soak_seconds(double by_default = 1) {
  const char* given = std::getenv("STRIDE_SOAK_SECONDS");
  return given != nullptr && *given != '\0' ? std::strtod(given, nullptr) : by_default;
}

}  // namespace stride::test

// System.Random of the .NET Framework: the same numbers from the same seed.
//
//   DotnetRandom random(42);
//   random.next();        // 1434747710
//   random.next(34);      // 4
//   random.next(2, 30);   // 5
//
// Source: Knuth's subtractive generator (The Art of Computer Programming, volume 2, section 3.2.2,
// algorithm A; ran3 of Numerical Recipes), with the lags 55 and 34 that .NET Framework is known to
// use in place of Knuth's 55 and 24. .NET keeps this generator to this day for `new Random(seed)`.
// The numbers were compared with those of mono 6.8.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace stride {

// Seeds s and -s give the same numbers, and so do INT32_MIN and INT32_MAX. Not thread-safe: a
// thread has its own. A copy goes on by itself from where the original stood.
class DotnetRandom {
 public:
  explicit DotnetRandom(int32_t seed);

  // In [0, INT32_MAX).
  int32_t next() {
    if (position_ == kLag) refill();
    return state_[position_++];
  }

  // In [0, max), and 0 for max = 0. Precondition: max >= 0.
  int32_t next(int32_t max) {
    assert(max >= 0);
    return static_cast<int32_t>(next_double() * max);
  }

  // In [min, max), and min for min = max. Precondition: min <= max.
  int32_t next(int32_t min, int32_t max) {
    assert(min <= max);
    const int64_t range = int64_t{max} - min;
    const double sample = range <= kModulus ? next_double() : next_double_of_large_range();
    return static_cast<int32_t>(static_cast<int64_t>(sample * static_cast<double>(range)) + min);
  }

  // In [0, 1), a multiple of 1 / INT32_MAX.
  double next_double() { return next() * (1.0 / kModulus); }

 private:
  static constexpr int32_t kModulus = std::numeric_limits<int32_t>::max();
  static constexpr size_t kLag = 55;
  static constexpr size_t kAhead = 21;

  // The next kLag numbers at once, which the compiler turns into vector code.
  void refill();
  // Two numbers make one sample, where a range is wider than one can cover.
  double next_double_of_large_range();

  std::array<int32_t, kLag> state_;
  size_t position_ = kLag;
};

}  // namespace stride

#include "adapters/sts/dotnet_random.h"

namespace stride {
namespace {

// The unchecked subtraction of C#, which wraps.
int32_t wrapping_subtract(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

}  // namespace

DotnetRandom::DotnetRandom(int32_t seed) {
  constexpr int32_t kKnuthSeed = 161803398;  // the digits of the golden ratio
  // state_[i] is number i + 1 of the textbook's table, which counts from 1.
  const auto at = [this](size_t textbook_index) -> int32_t& { return state_[textbook_index - 1]; };
  const auto difference = [](int32_t a, int32_t b) {
    const int32_t d = wrapping_subtract(a, b);
    return d < 0 ? d + kModulus : d;
  };

  // INT32_MIN has no absolute value: .NET takes INT32_MAX for it.
  const int32_t magnitude = seed == std::numeric_limits<int32_t>::min() ? kModulus
                            : seed < 0                                  ? -seed
                                                                        : seed;
  int32_t previous = kKnuthSeed - magnitude;
  int32_t current = 1;
  at(kLag) = previous;
  for (size_t i = 1; i < kLag; ++i) {
    int32_t& slot = at(21 * i % kLag);
    slot = current;
    current = difference(previous, current);
    previous = slot;
  }
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 1; i <= kLag; ++i) at(i) = difference(at(i), at(1 + (i + 30) % kLag));
  }
}

void DotnetRandom::refill() {
  const auto step = [](int32_t a, int32_t b) {
    int32_t d = wrapping_subtract(a, b);
    d -= d == kModulus ? 1 : 0;
    return d < 0 ? d + kModulus : d;
  };
  constexpr size_t kBehind = kLag - kAhead;
  for (size_t i = 0; i < kBehind; ++i) state_[i] = step(state_[i], state_[i + kAhead]);
  for (size_t i = kBehind; i < kLag; ++i) state_[i] = step(state_[i], state_[i - kBehind]);
  position_ = 0;
}

double DotnetRandom::next_double_of_large_range() {
  const int32_t magnitude = next();
  const bool negative = next() % 2 == 0;
  const double shifted = static_cast<double>(negative ? -magnitude : magnitude) + (kModulus - 1);
  return shifted / (2.0 * kModulus - 1);
}

}  // namespace stride

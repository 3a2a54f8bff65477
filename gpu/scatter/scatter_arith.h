// The arithmetic of scatter_add, for host and device code alike: what a number becomes on its way
// into a sum, so that both come to the same bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "gpu/keys/key_bits.h"

namespace stride {

STRIDE_HD inline float float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
STRIDE_HD inline uint32_t bits_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
STRIDE_HD inline double double_of_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
STRIDE_HD inline uint64_t bits_of_double(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

struct Half {
  uint16_t bits;
};
struct BrainHalf {
  uint16_t bits;
};

// Exact. A NaN stays one.
STRIDE_HD inline float to_float(Half h) {
  uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16;
  uint32_t magnitude = static_cast<uint32_t>(h.bits & 0x7FFF) << 13;
  if (magnitude >= 0x7C00u << 13) return float_of_bits(sign | 0x7F800000u | magnitude);
  // As if its exponent were a float's, which also takes in the subnormal ones.
  return float_of_bits(sign | magnitude) * 0x1p112f;
}
STRIDE_HD inline float to_float(BrainHalf h) {
  return float_of_bits(static_cast<uint32_t>(h.bits) << 16);
}

// Integers wrap.
template <class T>
STRIDE_HD inline T wrapping_sum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                          static_cast<std::make_unsigned_t<T>>(b));
}

STRIDE_HD inline bool is_finite(double x) { return (bits_of_double(x) >> 52 & 0x7FF) != 0x7FF; }
STRIDE_HD inline bool is_finite(float x) { return (bits_of_float(x) & 0x7F800000) != 0x7F800000; }

// 2^e, for -1022 <= e <= 1023.
STRIDE_HD inline double power_of_two(int e) {
  return double_of_bits(static_cast<uint64_t>(e + 1023) << 52);
}

// How reproducible sums cut numbers: into `high`, a multiple of 2^(exponent - bits), and `low`, of
// what remains, of 2^(exponent - 2 * bits). So many of both can be added as there are sources, in
// 64 bits.
struct SumScale {
  double high_up = 1, high_down = 1;  // powers of two
  double low_up = 1, low_down = 1;
  int high_exponent = 0;  // exponent - bits

  // sources: how many there are at most. largest: of their finite absolute values.
  STRIDE_HD static SumScale of(uint64_t sources, double largest) {  // sources: not 0
    // With so many bits, sums of less than 2^(62 - bits) numbers have 62 bits.
    int bits = static_cast<int>(leading_zeros(sources)) - 2;
    // largest < 2^exponent
    int exponent = static_cast<int>(bits_of_double(largest) >> 52) - 1022;
    if (exponent < -899) exponent = -899;
    return {power_of_two(bits - exponent), power_of_two(exponent - bits), power_of_two(bits),
            power_of_two(exponent - 2 * bits), exponent - bits};
  }
};

struct QuantizedNumber {
  int64_t high, low;
};

STRIDE_HD inline int64_t nearest_integer(double x) {  // halves to even
#if defined(__CUDA_ARCH__)
  return __double2ll_rn(x);
#elif defined(__SSE2__)
  return _mm_cvtsd_si64(_mm_set_sd(x));
#else
  return static_cast<int64_t>(std::rint(x));
#endif
}

// x: finite, and not larger than the scale's largest.
STRIDE_HD inline QuantizedNumber cut_number(const SumScale& scale, double x) {
  double scaled = x * scale.high_up;
  QuantizedNumber cut;
  cut.high = nearest_integer(scaled);
  cut.low = nearest_integer((scaled - static_cast<double>(cut.high)) * scale.low_up);
  return cut;
}

// The same, without going through doubles where there is no low part.
STRIDE_HD inline QuantizedNumber cut_number(const SumScale& scale, float x) {
  const uint32_t bits = bits_of_float(x);
  if (bits << 1 == 0) return {0, 0};
  const int exponent = static_cast<int>(bits >> 23 & 0xFF);
  // x is a whole number of 2^(exponent - 150).
  const int shift = exponent - 150 - scale.high_exponent;
  if (shift < 0 || exponent == 0) return cut_number(scale, static_cast<double>(x));
  const auto high = static_cast<int64_t>(uint64_t{(bits & 0x7FFFFF) | 0x800000} << shift);
  return {static_cast<int32_t>(bits) < 0 ? -high : high, 0};
}

// What the sums of the parts of cut numbers come to.
STRIDE_HD inline double joined(const SumScale& scale, QuantizedNumber sum) {
  return static_cast<double>(sum.high) * scale.high_down +
         static_cast<double>(sum.low) * scale.low_down;
}

// T and the sum of its cut numbers. A NaN that came of sources that were not finite has no payload.
template <class T>
STRIDE_HD inline T folded(const SumScale& scale, T into, QuantizedNumber sum) {
  if (sum.high != 0 || sum.low != 0)
    into = static_cast<T>(static_cast<double>(into) + joined(scale, sum));
  if (into == into) return into;
  return static_cast<T>(double_of_bits(0x7FF8000000000000));
}

// Numbers as integers that compare as IEEE 754's totalOrder does.
STRIDE_HD inline int32_t total_order(float x) {
  const auto bits = static_cast<int32_t>(bits_of_float(x));
  return bits ^ static_cast<int32_t>(static_cast<uint32_t>(bits >> 31) >> 1);
}
STRIDE_HD inline int64_t total_order(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits ^ static_cast<int64_t>(static_cast<uint64_t>(bits >> 63) >> 1);
}
STRIDE_HD inline int32_t total_order(int32_t x) { return x; }
STRIDE_HD inline int64_t total_order(int64_t x) { return x; }

}  // namespace stride

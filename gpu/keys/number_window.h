// Compares a number with neighbouring big-endian numbers, a line of cache, at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE4_2__)
#include <immintrin.h>
#endif

#include "gpu/keys/key_bits.h"

namespace stride {

// Numbers of 4 or 8 bytes. A number as it is stored (bytes in the low end of 64 bits) is compared
// for equality; as a number (its bits are the top ones, as in NumberKeys) for order.
template <uint32_t width>
struct NumberWindow {
  static constexpr uint32_t keys = 64 / width;

  static uint64_t stored(const std::byte* p) {
    uint64_t x = 0;
    memcpy(&x, p, width);
    return x;
  }
  static uint64_t number(const std::byte* p) { return byte_swap(stored(p)); }

  // Bit i: the i-th number at p, as stored, is `stored`.
  static uint32_t equal(const std::byte* p, uint64_t stored_number) {
#if defined(__SSE4_2__)
    const auto* lanes = reinterpret_cast<const __m128i*>(p);
    auto same = [&](int lane) {
      __m128i x = _mm_loadu_si128(lanes + lane);
      return width == 8 ? _mm_cmpeq_epi64(x, _mm_set1_epi64x(static_cast<long long>(stored_number)))
                        : _mm_cmpeq_epi32(x, _mm_set1_epi32(static_cast<int>(stored_number)));
    };
    __m128i a = _mm_packs_epi32(same(0), same(1)), b = _mm_packs_epi32(same(2), same(3));
    __m128i bytes = _mm_packs_epi16(a, b);
    if (width == 8) bytes = _mm_packs_epi16(bytes, bytes);
    return static_cast<uint32_t>(_mm_movemask_epi8(bytes)) & ((uint32_t{1} << keys) - 1);
#else
    uint32_t bits = 0;
    for (uint32_t i = 0; i < keys; ++i)
      bits |= uint32_t{stored(p + i * width) == stored_number} << i;
    return bits;
#endif
  }

  // How many of the ascending numbers at p are smaller than `x`.
  static uint32_t smaller(const std::byte* p, uint64_t x) {
#if defined(__SSE4_2__)
    // Signed comparisons, of numbers whose sign bit is flipped. Each smaller one counts -1.
    const auto* lanes = reinterpret_cast<const __m128i*>(p);
    if constexpr (width == 8) {
      const __m128i swap = _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
      const __m128i sign = _mm_set1_epi64x(static_cast<long long>(uint64_t{1} << 63));
      __m128i q = _mm_xor_si128(_mm_set1_epi64x(static_cast<long long>(x)), sign);
      auto count = [&](int lane) {
        __m128i y = _mm_shuffle_epi8(_mm_loadu_si128(lanes + lane), swap);
        return _mm_cmpgt_epi64(q, _mm_xor_si128(y, sign));
      };
      __m128i sum =
          _mm_add_epi64(_mm_add_epi64(count(0), count(1)), _mm_add_epi64(count(2), count(3)));
      return static_cast<uint32_t>(-(_mm_extract_epi64(sum, 0) + _mm_extract_epi64(sum, 1)));
    } else {
      const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
      const __m128i sign = _mm_set1_epi32(static_cast<int>(uint32_t{1} << 31));
      __m128i q = _mm_xor_si128(_mm_set1_epi32(static_cast<int>(x >> 32)), sign);
      auto count = [&](int lane) {
        __m128i y = _mm_shuffle_epi8(_mm_loadu_si128(lanes + lane), swap);
        return _mm_cmpgt_epi32(q, _mm_xor_si128(y, sign));
      };
      __m128i sum =
          _mm_add_epi32(_mm_add_epi32(count(0), count(1)), _mm_add_epi32(count(2), count(3)));
      sum = _mm_hadd_epi32(sum, sum);
      return static_cast<uint32_t>(-(_mm_extract_epi32(sum, 0) + _mm_extract_epi32(sum, 1)));
    }
#else
    uint32_t count = 0;
    for (uint32_t i = 0; i < keys; ++i) count += number(p + i * width) < x;
    return count;
#endif
  }
};

}  // namespace stride

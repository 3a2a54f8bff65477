// Compares a number with 8 neighbouring big-endian numbers, a line of cache, at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE4_2__)
#include <immintrin.h>
#endif

#include "gpu/key_bits.h"

namespace stride {

inline constexpr uint32_t window_keys = 8;

#if defined(__SSE4_2__)

// Bit i: the i-th number at p, as stored, is `stored`.
inline uint32_t equal_in_window(const std::byte* p, uint64_t stored) {
  const auto* lanes = reinterpret_cast<const __m128i*>(p);
  __m128i q = _mm_set1_epi64x(static_cast<long long>(stored));
  __m128i a = _mm_cmpeq_epi64(_mm_loadu_si128(lanes), q);
  __m128i b = _mm_cmpeq_epi64(_mm_loadu_si128(lanes + 1), q);
  __m128i c = _mm_cmpeq_epi64(_mm_loadu_si128(lanes + 2), q);
  __m128i d = _mm_cmpeq_epi64(_mm_loadu_si128(lanes + 3), q);
  __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(bytes, bytes))) & 0xFF;
}

#else

inline uint32_t equal_in_window(const std::byte* p, uint64_t stored) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < window_keys; ++i) {
    uint64_t x;
    memcpy(&x, p + i * 8, 8);
    bits |= uint32_t{x == stored} << i;
  }
  return bits;
}

#endif

// How many of the 8 ascending numbers at p are smaller than `number`.
inline uint32_t smaller_in_window(const std::byte* p, uint64_t number) {
#if defined(__SSE4_2__)
  const __m128i swap = _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  const __m128i sign = _mm_set1_epi64x(static_cast<long long>(uint64_t{1} << 63));
  const auto* lanes = reinterpret_cast<const __m128i*>(p);
  __m128i q = _mm_xor_si128(_mm_set1_epi64x(static_cast<long long>(number)), sign);
  auto smaller = [&](int lane) {
    __m128i x = _mm_shuffle_epi8(_mm_loadu_si128(lanes + lane), swap);
    return _mm_cmpgt_epi64(q, _mm_xor_si128(x, sign));
  };
  // Each smaller number counts -1.
  __m128i sum =
      _mm_add_epi64(_mm_add_epi64(smaller(0), smaller(1)), _mm_add_epi64(smaller(2), smaller(3)));
  return static_cast<uint32_t>(-(_mm_extract_epi64(sum, 0) + _mm_extract_epi64(sum, 1)));
#else
  uint32_t count = 0;
  for (uint32_t i = 0; i < window_keys; ++i) count += load_big_endian(p + i * 8) < number;
  return count;
#endif
}

}  // namespace stride

// The sum of all bytes of a piece of memory: a checksum that touches every byte, runs at the speed
// of memory, and does not depend on how the bytes are split into records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace stride::benchmark {

inline uint64_t byte_sum_scalar(const std::byte* p, uint64_t n) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; ++i) sum += static_cast<uint8_t>(p[i]);
  return sum;
}

#if defined(__SSE2__)

namespace internal {

// Sums of the 16 bytes at p in the two halves of the result.
inline __m128i sad(const std::byte* p) {
  return _mm_sad_epu8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), _mm_setzero_si128());
}

// Loaded at tail_mask + r it keeps the last r bytes of a register (r up to 16).
alignas(16) inline constexpr uint8_t tail_mask[32] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

}  // namespace internal

inline uint64_t byte_sum(const std::byte* p, uint64_t n) {
  if (n < 16) return byte_sum_scalar(p, n);
  __m128i a = _mm_setzero_si128(), b = a;
  uint64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    a = _mm_add_epi64(a, _mm_add_epi64(internal::sad(p + i), internal::sad(p + i + 16)));
    b = _mm_add_epi64(b, _mm_add_epi64(internal::sad(p + i + 32), internal::sad(p + i + 48)));
  }
  for (; i + 16 <= n; i += 16) a = _mm_add_epi64(a, internal::sad(p + i));
  // The last register overlaps what is summed already: only its new bytes are kept.
  __m128i last = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + n - 16));
  __m128i mask = _mm_loadu_si128(reinterpret_cast<const __m128i*>(internal::tail_mask + (n - i)));
  b = _mm_add_epi64(b, _mm_sad_epu8(_mm_and_si128(last, mask), _mm_setzero_si128()));
  a = _mm_add_epi64(a, b);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(a)) +
         static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(a, a)));
}

#else

inline uint64_t byte_sum(const std::byte* p, uint64_t n) { return byte_sum_scalar(p, n); }

#endif

}  // namespace stride::benchmark

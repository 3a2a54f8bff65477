// Stores that go to memory past the caches (non-temporal): what is written is not read from memory
// first, which saves a third of the traffic of a copy, and pushes nothing out of the caches. For
// results that are larger than those and are not read again soon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace stride {

// A result of more does not stay in a cache.
inline constexpr uint64_t cached_bytes = 4 << 20;

#if defined(__SSE2__)

// `to` is aligned to 16 bytes, and `bytes` a multiple of 16.
inline void stream_lines(std::byte* to, const std::byte* from, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += 16) {
    __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), part);
  }
}
// Makes what was stored visible to other threads. Call it before they are told.
inline void stream_fence() { _mm_sfence(); }

#else

inline void stream_lines(std::byte* to, const std::byte* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}
inline void stream_fence() {}

#endif

// As memcpy, any alignment; visible to other threads when it returns.
inline void stream_copy(void* to, const void* from, uint64_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  auto* in = static_cast<const std::byte*>(from);
  if (bytes < 256) {
    if (bytes > 0) std::memcpy(out, in, bytes);
    return;
  }
  uint64_t head = -reinterpret_cast<uintptr_t>(out) % 64;
  uint64_t body = (bytes - head) / 64 * 64, tail = bytes - head - body;
  std::memcpy(out, in, head);
  stream_lines(out + head, in + head, body);
  std::memcpy(out + head + body, in + head + body, tail);
  stream_fence();
}

// Copies a part of a result of `total` bytes to where the caller finds it.
inline void copy_result(void* to, const void* from, uint64_t bytes, uint64_t total) {
  if (total > cached_bytes) {
    stream_copy(to, from, bytes);
  } else if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace stride

// Copies rows, one after the other, to where a large result is made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "storage/column.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace stride {

// Rows are collected in the first-level cache and leave it in whole lines. Where the result is
// larger than the caches, they go to memory without being read from there first (non-temporal
// stores), which saves a third of the traffic. Not thread-safe; complete once destroyed.
class RowWriter {
 public:
  // past_caches: the result is not read again soon.
  RowWriter(std::byte* out, bool past_caches) : out_(out), past_caches_(past_caches) {
    // The first line is filled up, so that all others begin with the window.
    auto misaligned = reinterpret_cast<uintptr_t>(out) % line_bytes;
    start_ = filled_ = misaligned;
    out_ -= misaligned;
  }
  ~RowWriter() {
    if (filled_ != start_) std::memcpy(out_ + start_, window_ + start_, filled_ - start_);
#if defined(__SSE2__)
    if (past_caches_) _mm_sfence();
#endif
  }
  RowWriter(const RowWriter&) = delete;

  void add(const std::byte* row, uint64_t bytes) {
    if (bytes > longest_collected) return add_long(row, bytes);
    copy(window_ + filled_, row, bytes);
    filled_ += bytes;
    if (filled_ >= window_bytes) flush();
  }

 private:
  static constexpr uint64_t line_bytes = 64;
  static constexpr uint64_t window_bytes = 4096;
  static constexpr uint64_t longest_collected = 1024;

  // A call to memcpy takes longer than short rows do.
  static void copy(std::byte* to, const std::byte* from, uint64_t bytes) {
    if (bytes >= 16) {
      for (uint64_t at = 0; at + 16 <= bytes; at += 16) std::memcpy(to + at, from + at, 16);
      std::memcpy(to + bytes - 16, from + bytes - 16, 16);
    } else if (bytes >= 8) {
      std::memcpy(to, from, 8);
      std::memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else if (bytes >= 4) {
      std::memcpy(to, from, 4);
      std::memcpy(to + bytes - 4, from + bytes - 4, 4);
    } else {
      for (uint64_t i = 0; i < bytes; ++i) to[i] = from[i];
    }
  }

  void flush() {
    if (start_ > 0 || !past_caches_) {
      std::memcpy(out_ + start_, window_ + start_, window_bytes - start_);
    } else {
      stream();
    }
    start_ = 0;
    out_ += window_bytes;
    filled_ -= window_bytes;
    std::memcpy(window_, window_ + window_bytes, filled_);
  }

  void stream() {
#if defined(__SSE2__)
    for (uint64_t at = 0; at < window_bytes; at += 16) {
      __m128i part = _mm_load_si128(reinterpret_cast<const __m128i*>(window_ + at));
      _mm_stream_si128(reinterpret_cast<__m128i*>(out_ + at), part);
    }
#else
    std::memcpy(out_, window_, window_bytes);
#endif
  }

  void add_long(const std::byte* row, uint64_t bytes) {
    std::memcpy(out_ + start_, window_ + start_, filled_ - start_);
    std::memcpy(out_ + filled_, row, bytes);
    uint64_t end = filled_ + bytes;
    out_ += end / line_bytes * line_bytes;
    start_ = filled_ = end % line_bytes;
  }

  alignas(line_bytes) std::byte window_[window_bytes + longest_collected];
  std::byte* out_;           // where the window goes
  uint64_t start_, filled_;  // of the window: what is collected in it
  bool past_caches_;
};

}  // namespace stride

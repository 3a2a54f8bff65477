// Copies rows, one after the other, to where a large result is made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "storage/prefetch.h"
#include "storage/stream_store.h"

namespace stride {

// Rows are asked for so many rows before they are copied: each is one or two misses, of which more
// are under way than of what tells where rows lie.
inline constexpr uint64_t copies_ahead = 64;

inline void prefetch_row(const std::byte* row, uint64_t bytes) {
  prefetch(row);
  if (bytes > 1) prefetch(row + std::min<uint64_t>(bytes - 1, 64));
}

// Rows are collected in the first-level cache and leave it in whole lines, past the other caches
// where the result is larger than those. Not thread-safe; complete once destroyed.
class ResultWriter {
 public:
  // past_caches: the result is not read again soon.
  ResultWriter(std::byte* out, bool past_caches) : out_(out), past_caches_(past_caches) {
    // The first line is filled up, so that all others begin with the window.
    auto misaligned = reinterpret_cast<uintptr_t>(out) % line_bytes;
    start_ = filled_ = misaligned;
    out_ -= misaligned;
  }
  ~ResultWriter() {
    if (filled_ != start_) std::memcpy(out_ + start_, window_ + start_, filled_ - start_);
    if (past_caches_) stream_fence();
  }
  ResultWriter(const ResultWriter&) = delete;

  void add(const std::byte* row, uint64_t bytes) {
    if (bytes > longest_collected)
      return add_long(bytes, [&](std::byte* to) { std::memcpy(to, row, bytes); });
    copy(window_ + filled_, row, bytes);
    grow(bytes);
  }
  void add_zeros(uint64_t bytes) {
    if (bytes > longest_collected)
      return add_long(bytes, [&](std::byte* to) { std::memset(to, 0, bytes); });
    std::memset(window_ + filled_, 0, bytes);
    grow(bytes);
  }

 private:
  static constexpr uint64_t line_bytes = 64;
  static constexpr uint64_t window_bytes = 4096;
  static constexpr uint64_t longest_collected = 1024;

  // A call to memcpy takes longer than short rows do.
  static void copy(std::byte* to, const std::byte* from, uint64_t bytes) {
    if (bytes > 32) {
      for (uint64_t at = 0; at < bytes - 32; at += 32) {
        std::memcpy(to + at, from + at, 32);
        keep_loop(&at);
      }
      std::memcpy(to + bytes - 32, from + bytes - 32, 32);
    } else if (bytes >= 16) {
      copy_ends<16>(to, from, bytes);
    } else if (bytes >= 8) {
      copy_ends<8>(to, from, bytes);
    } else if (bytes >= 4) {
      copy_ends<4>(to, from, bytes);
    } else {
      for (uint64_t i = 0; i < bytes; ++i, keep_loop(&i)) to[i] = from[i];
    }
  }
  template <uint64_t n>
  static void copy_ends(std::byte* to, const std::byte* from, uint64_t bytes) {
    std::memcpy(to, from, n);
    std::memcpy(to + bytes - n, from + bytes - n, n);
  }
  // Compilers know a loop that copies when they see one, and call memcpy in its place.
  static void keep_loop(uint64_t* counter) {
#ifdef __GNUC__
    asm volatile("" : "+r"(*counter));
#else
    (void)counter;
#endif
  }

  void grow(uint64_t bytes) {
    filled_ += bytes;
    if (filled_ >= window_bytes) flush();
  }

  void flush() {
    if (start_ > 0 || !past_caches_) {
      std::memcpy(out_ + start_, window_ + start_, window_bytes - start_);
    } else {
      stream_lines(out_, window_, window_bytes);
    }
    start_ = 0;
    out_ += window_bytes;
    filled_ -= window_bytes;
    std::memcpy(window_, window_ + window_bytes, filled_);
  }

  template <class Write>
  void add_long(uint64_t bytes, const Write& write) {
    std::memcpy(out_ + start_, window_ + start_, filled_ - start_);
    write(out_ + filled_);
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

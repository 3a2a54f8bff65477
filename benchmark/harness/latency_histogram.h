// How long calls took: counts in buckets whose width grows with the time, so that recording a call
// is one addition, and percentiles are off by less than 1 %.
//
//   LatencyHistogram of_thread;
//   of_thread.record(nanoseconds);
//   all.add(of_thread);
//   double p99 = all.percentile(0.99);
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace stride::benchmark {

// For one thread at a time. A time below 128 has a bucket of its own; above, each power of two is
// cut into 64 buckets of equal width.
class LatencyHistogram {
 public:
  LatencyHistogram() : counts_(buckets) {}

  void record(uint64_t nanoseconds) {
    ++counts_[bucket_of(nanoseconds)];
    ++count_;
    max_ = std::max(max_, nanoseconds);
  }
  void add(const LatencyHistogram& other);
  void clear();

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  // The time that this share of the calls did not exceed: the middle of its bucket, and never more
  // than max(). 0 where nothing was recorded. share: 0 to 1.
  double percentile(double share) const;

  static constexpr uint32_t bucket_of(uint64_t value) {
    if (value < 2 * steps) return static_cast<uint32_t>(value);
    const auto shift = static_cast<uint32_t>(std::bit_width(value)) - step_bits - 1;
    return shift * steps + static_cast<uint32_t>(value >> shift);
  }
  static constexpr uint64_t first_of(uint32_t bucket) {
    if (bucket < 2 * steps) return bucket;
    const uint32_t shift = bucket / steps - 1;
    return uint64_t{bucket - shift * steps} << shift;
  }

 private:
  friend class SparseHistogram;
  static constexpr uint32_t step_bits = 6, steps = 1 << step_bits;
  static constexpr uint32_t buckets = (64 - step_bits + 1) * steps;

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0, max_ = 0;
};

// The buckets of a histogram that are not empty: small enough to be kept for each interval of a
// run.
class SparseHistogram {
 public:
  SparseHistogram() = default;
  explicit SparseHistogram(const LatencyHistogram& histogram);
  void add_to(LatencyHistogram* histogram) const;

 private:
  std::vector<std::pair<uint32_t, uint64_t>> counts_;  // of buckets
  uint64_t max_ = 0;
};

}  // namespace stride::benchmark

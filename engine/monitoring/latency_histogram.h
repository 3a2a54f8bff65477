// How long calls took: a histogram with buckets whose width grows with their values, as
// HdrHistogram's (Gil Tene, hdrhistogram.org).
//
//   value      0  1 ... 31   32,33  34,35 ... 62,63   64..67 ...
//   bucket     0  1 ... 31   32     33    ... 47      48     ...
//
// Up to 31 ns each value has a bucket; from there on 16 buckets share each power of two, so that a
// bucket is at most a sixteenth of its smallest value wide.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/metrics.h"

namespace stride {

struct LatencyBuckets {
  static constexpr unsigned share_bits = 4;
  static constexpr unsigned value_bits = 36;  // up to 68 s
  static constexpr uint64_t max_ns = (uint64_t{1} << value_bits) - 1;
  static constexpr size_t count = (value_bits - share_bits + 1) << share_bits;

  static constexpr size_t of(uint64_t ns) {
    ns = std::min(ns, max_ns);
    if (ns < (1u << share_bits)) return ns;
    const unsigned shift = static_cast<unsigned>(std::bit_width(ns)) - share_bits - 1;
    return (size_t{shift} << share_bits) + (ns >> shift);
  }
  // The largest value of a bucket.
  static constexpr uint64_t end_of(size_t bucket) {
    if (bucket < (2u << share_bits)) return bucket;
    const size_t shift = (bucket >> share_bits) - 1;
    const uint64_t first = (bucket & ((1u << share_bits) - 1)) + (1u << share_bits);
    return ((first + 1) << shift) - 1;
  }
};
static_assert(LatencyBuckets::of(LatencyBuckets::max_ns) == LatencyBuckets::count - 1);
static_assert(LatencyBuckets::end_of(LatencyBuckets::count - 1) == LatencyBuckets::max_ns);

// What histograms have counted together.
class LatencyTotals {
 public:
  void add(size_t bucket, uint64_t calls) {
    calls_[bucket] += calls;
    count_ += calls;
  }
  void add_time(uint64_t ns) { sum_ns_ += ns; }

  // The smallest bucket's end that at least this share of the calls do not exceed, in ns; 0: there
  // are none.
  uint64_t percentile(double share) const {
    const auto rank = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
    uint64_t seen = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      seen += calls_[i];
      if (seen > 0 && seen >= rank) return LatencyBuckets::end_of(i);
    }
    return 0;
  }
  LatencyMetrics metrics() const {
    auto seconds = [](uint64_t ns) { return static_cast<double>(ns) * 1e-9; };
    auto at = [&](double share) { return seconds(percentile(share)); };
    return {count_, seconds(sum_ns_), at(0.5), at(0.9), at(0.99), at(0.999), at(1)};
  }

 private:
  std::array<uint64_t, LatencyBuckets::count> calls_{};
  uint64_t count_ = 0, sum_ns_ = 0;
};

}  // namespace stride

#include "benchmark/harness/latency_histogram.h"

#include <cmath>

namespace stride::benchmark {

void LatencyHistogram::add(const LatencyHistogram& other) {
  for (uint32_t b = 0; b < buckets; ++b) counts_[b] += other.counts_[b];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

void LatencyHistogram::clear() {
  std::ranges::fill(counts_, 0);
  count_ = max_ = 0;
}

double LatencyHistogram::percentile(double share) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(share * static_cast<double>(count_));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, count_);
  if (rank == count_) return static_cast<double>(max_);
  uint64_t before = 0;
  uint32_t bucket = 0;
  while (before + counts_[bucket] < rank) before += counts_[bucket++];
  const uint64_t first = first_of(bucket);
  const uint64_t past = bucket + 1 < buckets ? first_of(bucket + 1) : first + 1;
  const double middle = static_cast<double>(first) + static_cast<double>(past - 1 - first) / 2;
  return std::min(middle, static_cast<double>(max_));
}

SparseHistogram::SparseHistogram(const LatencyHistogram& histogram) : max_(histogram.max_) {
  for (uint32_t b = 0; b < LatencyHistogram::buckets; ++b)
    if (histogram.counts_[b] > 0) counts_.emplace_back(b, histogram.counts_[b]);
}

void SparseHistogram::add_to(LatencyHistogram* histogram) const {
  for (const auto& [bucket, count] : counts_) {
    histogram->counts_[bucket] += count;
    histogram->count_ += count;
  }
  histogram->max_ = std::max(histogram->max_, max_);
}

}  // namespace stride::benchmark

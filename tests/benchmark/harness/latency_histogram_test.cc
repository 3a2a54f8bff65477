// The histogram of latencies beside a sorted list of them.
#include "benchmark/harness/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::benchmark {
namespace {

// What LatencyHistogram::percentile() promises to be near to.
double exact_percentile(std::vector<uint64_t> sorted, double share) {
  const auto rank =
      static_cast<size_t>(std::max(1.0, std::ceil(share * static_cast<double>(sorted.size()))));
  return static_cast<double>(sorted[rank - 1]);
}

TEST_CASE("LatencyHistogramTest.BucketsFollowEachOther", "[LatencyHistogramTest]") {
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t value = random() >> (random() % 64);
    const uint32_t bucket = LatencyHistogram::bucket_of(value);
    REQUIRE(LatencyHistogram::first_of(bucket) <= value);
    REQUIRE(LatencyHistogram::bucket_of(LatencyHistogram::first_of(bucket)) == bucket);
    if (value < UINT64_MAX) {
      const uint32_t next = LatencyHistogram::bucket_of(value + 1);
      REQUIRE((next == bucket || next == bucket + 1));
    }
  }
  CHECK(LatencyHistogram::bucket_of(0) == 0);
}

TEST_CASE("LatencyHistogramTest.PercentilesAreThoseOfASortedList", "[LatencyHistogramTest]") {
  std::mt19937_64 random(test::seed());
  for (size_t size : {1, 2, 10, 1000, 30'000}) {
    LatencyHistogram whole, parts[3];
    std::vector<uint64_t> sorted;
    const uint32_t max_bits = 1 + static_cast<uint32_t>(random() % 50);
    for (size_t i = 0; i < size; ++i) {
      const uint64_t value = random() >> (64 - max_bits) >> (random() % max_bits);
      whole.record(value);
      parts[i % 3].record(value);
      sorted.push_back(value);
    }
    std::ranges::sort(sorted);
    LatencyHistogram merged;
    for (const LatencyHistogram& part : parts) merged.add(part);
    LatencyHistogram from_sparse;
    for (const LatencyHistogram& part : parts) SparseHistogram(part).add_to(&from_sparse);
    for (double share : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const double exact = exact_percentile(sorted, share);
      CHECK(std::abs(whole.percentile(share) - exact) <= exact * 0.01);
      CHECK(merged.percentile(share) == whole.percentile(share));
      CHECK(from_sparse.percentile(share) == whole.percentile(share));
    }
    CHECK(whole.count() == size);
    CHECK(merged.count() == size);
    CHECK(from_sparse.count() == size);
    CHECK(whole.max() == sorted.back());
    CHECK(whole.percentile(1) == static_cast<double>(sorted.back()));
  }
}

TEST_CASE("LatencyHistogramTest.ClearForgetsAll", "[LatencyHistogramTest]") {
  LatencyHistogram histogram;
  CHECK(histogram.percentile(0.5) == 0);
  histogram.record(UINT64_MAX);
  histogram.record(3);
  CHECK(histogram.percentile(0.5) == 3);
  histogram.clear();
  CHECK(histogram.count() == 0);
  CHECK(histogram.max() == 0);
  CHECK(histogram.percentile(1) == 0);
}

}  // namespace
}  // namespace stride::benchmark

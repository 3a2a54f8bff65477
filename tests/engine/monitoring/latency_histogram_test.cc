// Percentiles of a histogram beside those of the sorted values.
#include "engine/monitoring/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

TEST_CASE("LatencyHistogramTest.BucketsFollowOneAnother", "[LatencyHistogramTest]") {
  uint64_t next = 0;  // the first value of the bucket
  for (size_t bucket = 0; bucket < LatencyBuckets::count; ++bucket) {
    const uint64_t end = LatencyBuckets::end_of(bucket);
    REQUIRE(end >= next);
    REQUIRE(LatencyBuckets::of(next) == bucket);
    REQUIRE(LatencyBuckets::of(end) == bucket);
    REQUIRE(16 * (end - next) <= next);
    next = end + 1;
  }
  CHECK(next == LatencyBuckets::max_ns + 1);
  CHECK(LatencyBuckets::of(UINT64_MAX) == LatencyBuckets::count - 1);
}

TEST_CASE("LatencyHistogramTest.PercentilesAreThoseOfTheSortedValues", "[LatencyHistogramTest]") {
  std::mt19937_64 random(seed());
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<uint64_t> values(1 + random() % 2000);
    LatencyTotals totals;
    uint64_t sum = 0;
    for (uint64_t& value : values) {
      value = random() >> (28 + random() % 36);
      totals.add(LatencyBuckets::of(value), 1);
      totals.add_time(value);
      sum += value;
    }
    std::sort(values.begin(), values.end());
    for (double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank =
          static_cast<size_t>(std::max(1.0, std::ceil(share * static_cast<double>(values.size()))));
      const uint64_t exact = values[rank - 1], found = totals.percentile(share);
      CHECK_MESSAGE((found >= exact && found <= exact + exact / 16),
                    share << ": " << found << " for " << exact);
    }
    const LatencyMetrics metrics = totals.metrics();
    CHECK(metrics.count == values.size());
    CHECK(metrics.sum_s == Approx(static_cast<double>(sum) * 1e-9));
    CHECK(metrics.max_s >= static_cast<double>(values.back()) * 1e-9);
  }
}

TEST_CASE("LatencyHistogramTest.NothingIsZero", "[LatencyHistogramTest]") {
  const LatencyMetrics metrics = LatencyTotals().metrics();
  CHECK(metrics.count == 0u);
  CHECK(metrics.p50_s == 0.0);
  CHECK(metrics.max_s == 0.0);
}

}  // namespace
}  // namespace stride::test

// Intervals of rows beside a bit for each row.
#include "storage/row_intervals.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride {
namespace {

constexpr uint64_t interval_rows = 200;

void expect_same(const RowIntervals& intervals, const std::vector<bool>& bits) {
  uint64_t count = 0, last_end = 0;
  for (const RowInterval& i : intervals.list()) {
    REQUIRE(i.first < i.end);
    // Two that meet are one.
    REQUIRE((i.first > last_end || count == 0));
    last_end = i.end;
    count += i.end - i.first;
  }
  REQUIRE(intervals.rows() == count);
  for (uint64_t row = 0; row < interval_rows; ++row) {
    REQUIRE(intervals.contains(row) == bits[row]);
    uint64_t skipped = row, next = row;
    while (skipped < interval_rows && bits[skipped]) ++skipped;
    while (next < interval_rows && !bits[next]) ++next;
    REQUIRE(intervals.skip(row) == skipped);
    REQUIRE(intervals.next(row, interval_rows) == next);
    if (next < interval_rows) REQUIRE(intervals.next(row, row + 3) == std::min(next, row + 3));
  }
  for (uint64_t end = 0; end <= interval_rows; ++end) {
    uint64_t skipped = end;
    while (skipped > 0 && bits[skipped - 1]) --skipped;
    REQUIRE(intervals.skip_back(end) == skipped);
    if (skipped == 0) continue;
    uint64_t previous = skipped;
    while (previous > 0 && !bits[previous - 1]) --previous;
    REQUIRE(intervals.previous(skipped, 0) == previous);
    REQUIRE(intervals.previous(skipped, skipped / 2) == std::max(previous, skipped / 2));
  }
}

TEST_CASE("RowIntervalsTest.AgreeWithABitForEachRow", "[RowIntervalsTest]") {
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < 60; ++round) {
    RowIntervals intervals;
    std::vector<bool> bits(interval_rows);
    for (int change = 0; change < 20; ++change) {
      const uint64_t first = random() % interval_rows;
      const uint64_t length = random() % 4 ? random() % 10 : random() % 100;
      const RowInterval added{first, std::min(interval_rows, first + length)};
      uint64_t there = 0;
      for (uint64_t row = added.first; row < added.end; ++row) there += bits[row];
      REQUIRE(intervals.rows_in(added) == there);
      intervals.add(added);
      for (uint64_t row = added.first; row < added.end; ++row) bits[row] = true;
      expect_same(intervals, bits);
    }
  }
}

TEST_CASE("RowIntervalsTest.AreOneWhereTheyMeet", "[RowIntervalsTest]") {
  RowIntervals intervals;
  intervals.add({10, 20});
  intervals.add({30, 40});
  intervals.add({50, 50});
  CHECK(intervals.list() == std::vector<RowInterval>{{10, 20}, {30, 40}});
  intervals.add({20, 30});
  CHECK(intervals.list() == std::vector<RowInterval>{{10, 40}});
  intervals.add({0, ~uint64_t{0}});
  CHECK(intervals.list() == std::vector<RowInterval>{{0, ~uint64_t{0}}});
  CHECK(intervals.contains(12));
}

}  // namespace
}  // namespace stride

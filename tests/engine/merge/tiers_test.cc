// Which runs are chosen to be merged, and what that costs over many flushes.
#include "engine/merge/tiers.h"

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test::tier_tests {
namespace {

constexpr uint64_t mega = 1 << 20;
using Runs = std::vector<uint64_t>;  // bytes, newest first

TEST_CASE("TiersTest.NothingIsDueWhereThereAreFew", "[TiersTest]") {
  CHECK_FALSE(choose_tier({}, 0));
  CHECK_FALSE(choose_tier({}, 100));
  CHECK_FALSE(choose_tier(Runs{mega}, 100 * mega));
  CHECK_FALSE(choose_tier(Runs(7, mega), 0));
  CHECK_FALSE(choose_tier(Runs{mega, 5 * mega}, mega));
}

TEST_CASE("TiersTest.AFullTierIsMerged", "[TiersTest]") {
  CHECK(choose_tier(Runs(8, mega), 0) == RunRange{0, 8});
  CHECK(choose_tier(Runs(11, 3 * mega), 0) == RunRange{0, 11});
  // Runs below a mebibyte are of the smallest tier.
  CHECK(choose_tier(Runs(8, 10), 0) == RunRange{0, 8});
  Runs runs(8, mega);
  runs.push_back(500 * mega);
  CHECK(choose_tier(runs, 0) == RunRange{0, 8});
  runs.insert(runs.begin(), 3, 600 * mega);
  CHECK(choose_tier(runs, 0) == RunRange{3, 8});
}

TEST_CASE("TiersTest.SmallerRunsGoWithTheTierAroundThem", "[TiersTest]") {
  Runs runs = {mega,     9 * mega, mega,     9 * mega, 9 * mega,
               9 * mega, 9 * mega, 9 * mega, 9 * mega, 9 * mega};
  CHECK(choose_tier(runs, 0) == RunRange{0, 10});
  runs.push_back(100 * mega);
  CHECK(choose_tier(runs, 0) == RunRange{0, 10});
}

TEST_CASE("TiersTest.AllIsMergedWhereTheWrittenIsAShareOfTheBottom", "[TiersTest]") {
  CHECK_FALSE(choose_tier(Runs{mega, mega, 16 * mega}, 2 * mega));
  CHECK(choose_tier(Runs{2 * mega, 2 * mega, 16 * mega}, 4 * mega) == RunRange{0, 3});
  // Bulk loads are not in a hurry.
  CHECK_FALSE(choose_tier(Runs{16 * mega, 16 * mega}, 0));
}

// Flushes that overwrite rows of a table at random. The formulas are those of tiers.h.
TEST_CASE("TiersTest.WritesRunsAndSpaceStayWithinTheirBounds", "[TiersTest]") {
  std::mt19937_64 random(seed());
  for (uint64_t bottom_flushes : {8, 64, 700}) {
    const TierOptions options;
    const uint64_t flush = 4 * mega + random() % (3 * mega);
    const uint64_t live = bottom_flushes * flush;
    Runs runs = {live};
    uint64_t written = 0, rewritten = 0, flushed = 0;
    size_t most_runs = 0;
    uint64_t most_bytes = 0;
    for (int i = 0; i < 5000; ++i) {
      runs.insert(runs.begin(), flush);
      written += flush;
      flushed += flush;
      most_runs = std::max(most_runs, runs.size());
      most_bytes = std::max(most_bytes, std::reduce(runs.begin(), runs.end()));
      while (auto range = choose_tier(runs, written, options)) {
        const auto begin = runs.begin() + static_cast<ptrdiff_t>(range->first);
        const auto end = begin + static_cast<ptrdiff_t>(range->count);
        const bool to_bottom = end == runs.end();
        const uint64_t merged = to_bottom ? live : std::reduce(begin, end);
        rewritten += merged;
        if (to_bottom) written = 0;
        *begin = merged;
        runs.erase(begin + 1, end);
      }
    }
    const double f = options.bottom_share, fanout = static_cast<double>(options.fanout);
    const double tiers = std::max(
        1.0, std::ceil(std::log(f * static_cast<double>(bottom_flushes)) / std::log(fanout)));
    INFO("live data of " << bottom_flushes << " flushes");
    CHECK(static_cast<double>(most_runs) <= fanout * tiers + 1);
    CHECK(static_cast<double>(most_bytes) <=
          static_cast<double>(live) * (1 + f) + static_cast<double>(flush));
    CHECK(static_cast<double>(rewritten) <= static_cast<double>(flushed) * (tiers - 1 + 1 + 1 / f));
  }
}

TEST_CASE("TiersTest.AnyRunsAreMergedToAnEnd", "[TiersTest]") {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 300; ++round) {
    Runs runs(random() % 200);
    for (uint64_t& run : runs) run = uint64_t{1} << random() % 36;
    int merges = 0;
    while (auto range = choose_tier(runs, 0)) {
      REQUIRE(range->count >= 2);
      REQUIRE(range->first + range->count <= runs.size());
      const auto begin = runs.begin() + static_cast<ptrdiff_t>(range->first);
      const auto end = begin + static_cast<ptrdiff_t>(range->count);
      *begin = std::reduce(begin, end);
      runs.erase(begin + 1, end);
      REQUIRE(++merges < 200);
    }
    CHECK(runs.size() < 200);
  }
}

}  // namespace
}  // namespace stride::test::tier_tests

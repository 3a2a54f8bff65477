// Which trees the planner chooses, by the size of the keys and of what searches need.

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/plan/tree_planner.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

// What an H200 measured.
AccessCosts h200() { return AccessCosts::typical_device(); }

// The statistics of so many random 64-bit numbers, which need not be there: gaps between sorted
// ones follow the exponential law, and the distance to one so many ranks on the Gamma law.
KeyStatistics random_numbers_of(uint64_t keys, Random& random) {
  constexpr uint32_t samples = 256;
  KeyStatistics s;
  s.keys = keys;
  s.key_bytes = 8 * keys;
  s.width = 8;
  s.first.push_back(0);
  for (uint32_t i = 0; i < samples; ++i) {
    const uint64_t key = (uint64_t{i} << 56) + (random() >> 8);
    const double place = std::ldexp(static_cast<double>(key), -64) * static_cast<double>(keys);
    const uint64_t rank = std::min(keys - 1, static_cast<uint64_t>(place));
    s.ranks.push_back(static_cast<uint32_t>(rank));
    s.lengths.push_back(8);
    s.heads.insert(s.heads.end(), {key, 0, 0, 0});
    for (bool after : {false, true}) {
      double away = 0;
      uint64_t last = 0;
      for (uint64_t step = 0;; ++step) {
        uint64_t distance = step < 8 ? step + 1 : (step % 2 ? 16ull : 12ull) << (step - 8) / 2;
        if (distance > (after ? keys - 1 - rank : rank)) break;
        away += std::gamma_distribution<double>(static_cast<double>(distance - last))(random);
        last = distance;
        double gap = std::ldexp(away / static_cast<double>(keys), 64);
        if (gap >= static_cast<double>(after ? ~key : key)) break;
        uint64_t other =
            after ? key + static_cast<uint64_t>(gap) : key - static_cast<uint64_t>(gap);
        s.distances.push_back(static_cast<uint32_t>(distance));
        s.shared.push_back(other == key ? 63
                                        : static_cast<uint32_t>(std::countl_zero(other ^ key)));
        if (s.shared.back() == 0) break;
      }
      s.first.push_back(static_cast<uint32_t>(s.distances.size()));
    }
  }
  return s;
}

// Lists as anybody would write them down.
std::vector<TreeOptions> simple_lists() {
  std::vector<TreeOptions> lists;
  for (uint32_t root = 6; root <= 24; ++root) {
    for (uint32_t inner : {0, 4, 6, 8, 10, 12, 14}) {
      for (uint32_t capacity : {4, 16, 64}) {
        TreeOptions options{.strides = {root}, .leaf_capacity = capacity};
        if (inner) options.strides.resize(10, inner);
        lists.push_back(options);
      }
    }
  }
  return lists;
}

std::string text_of(const TreeOptions& options) {
  std::string text;
  for (size_t i = 0; i < options.strides.size(); ++i)
    text += (i ? "," : "") + std::to_string(options.strides[i]);
  return text + " leaf " + std::to_string(options.leaf_capacity);
}

// No simple list is expected to be better by more than that, nor as good with half of the memory.
void expect_best(const KeyStatistics& statistics, const PlanTarget& target, double most) {
  PlannedTree plan = plan_tree(statistics, target);
  INFO("planned " + text_of(plan.options));
  const auto limit = static_cast<double>(default_image_bytes(statistics));
  CHECK(plan.estimate.image_bytes <= limit);
  double least = 1e300, memory = 1e300;
  std::string best, smallest;
  for (const TreeOptions& options : simple_lists()) {
    TreeEstimate other = estimate_tree(statistics, target, options);
    if (other.image_bytes > limit) continue;
    double rank = plan_rank(other, other.nanoseconds, statistics, target);
    if (rank < least) least = rank, best = text_of(options);
    if (other.nanoseconds > 1.03 * plan.nanoseconds || other.memory_bytes >= memory) continue;
    memory = other.memory_bytes;
    smallest = text_of(options);
  }
  double rank = plan_rank(plan.estimate, plan.nanoseconds, statistics, target);
  CHECK_MESSAGE(rank <= (1 + most) * least, "better: " << best);
  CHECK_MESSAGE(plan.estimate.memory_bytes <= 2.2 * (memory + (1 << 16)), "smaller: " << smallest);
}

TEST_CASE("PlannerChoiceTest.RandomNumbersOnADeviceGetOneLevel", "[PlannerChoiceTest]") {
  Random random(seed());
  for (double keys : {1e6, 3e6, 1e7, 2e7, 3e7, 1e8, 3e8, 1e9}) {
    for (int round = 0; round < smaller_under_sanitizers(4, 1); ++round) {
      KeyStatistics statistics = random_numbers_of(static_cast<uint64_t>(keys), random);
      PlannedTree plan = plan_tree(statistics, {.costs = h200(), .batch = 1 << 24});
      CHECK_MESSAGE(plan.options.strides.size() == 1u,
                    keys << " keys, root " << plan.options.strides[0]);
      CHECK(plan.estimate.memory_bytes <= 12 * keys);
    }
  }
}

TEST_CASE("PlannerChoiceTest.NoSimpleListIsBetterForRandomNumbers", "[PlannerChoiceTest]") {
  Random random(seed());
  for (double keys : {1e5, 1e6, 1e7, 1e8, 1e9}) {
    if (under_sanitizer && random() % 2) continue;
    INFO(keys);
    KeyStatistics statistics = random_numbers_of(static_cast<uint64_t>(keys), random);
    expect_best(statistics, {.costs = h200()}, 0.03);
    expect_best(statistics, {.costs = AccessCosts::typical_host(16)}, 0.03);
  }
}

TEST_CASE("PlannerChoiceTest.NoSimpleListIsBetterForOtherKeys", "[PlannerChoiceTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (const KeySet& set : key_sets()) {
    if (under_sanitizer && random() % 2) continue;
    INFO(set.name);
    OwnedIndex index(sorted_unique(set.make(random, 30'000)), true);
    KeyStatistics statistics;
    REQUIRE_OK(backend->tree_index().measure_keys(index.column(), {}, &statistics));
    expect_best(statistics, {.costs = h200()}, 0.15);
    expect_best(statistics, {.costs = AccessCosts::typical_host(2)}, 0.15);
  }
}

}  // namespace
}  // namespace stride::test

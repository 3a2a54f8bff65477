// Statistics of keys, what is expected of trees over them, and the choice of a tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "gpu/backend.h"
#include "gpu/plan/planner_weights.h"
#include "gpu/plan/tree_planner.h"
#include "gpu/tree/tree_layout.h"
#include "gpu/tree/tree_search.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/tree_option_sets.h"

namespace stride::test {
namespace {

KeyStatistics measure(Backend& backend, const OwnedIndex& index, bool exact) {
  KeyStatistics statistics;
  Status status = backend.tree_index().measure_keys(index.column(), {.exact = exact}, &statistics);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return statistics;
}

PlanTarget host_target() { return {.costs = AccessCosts::typical_host(2)}; }

TEST(KeyStatisticsTest, ExactOnesGiveTheNodesOfEveryTree) {
  Random random(seed());
  auto backend = Backend::host(2);
  for (const KeySet& set : key_sets()) {
    for (size_t n : {2, 37, 700}) {
      OwnedIndex index(sorted_unique(set.make(random, n)), random() % 2);
      KeyStatistics statistics = measure(*backend, index, true);
      for (int round = 0; round < 6; ++round) {
        TreeOptions options = random_options(random);
        if (options.strides.empty()) options.strides = {4, 4, 4};
        if (options.leaf_capacity == 0) options.leaf_capacity = 5;
        SCOPED_TRACE(describe(set, n, options));
        std::vector<std::byte> image;
        ASSERT_TRUE(backend->tree_index().build_tree(index.column(), options, &image).ok());
        TreeStatistics built = tree_statistics({image.data(), image.size()});
        TreeEstimate estimate = estimate_tree(statistics, host_target(), options);
        ASSERT_EQ(estimate.levels.size(), built.strides.size());
        for (size_t level = 0; level < built.strides.size(); ++level) {
          EXPECT_NEAR(estimate.levels[level].nodes, static_cast<double>(built.nodes[level]), 1e-2)
              << "level " << level;
          if (level > 0) EXPECT_EQ(estimate.levels[level].kind, built.kinds[level]);
        }
        // Arrays begin at multiples of 64 bytes.
        double slack = 64 + 256.0 * static_cast<double>(built.strides.size());
        EXPECT_NEAR(estimate.image_bytes, static_cast<double>(image.size()), slack);
      }
    }
  }
}

TEST(KeyStatisticsTest, ASampleComesNear) {
  Random random(seed());
  auto backend = Backend::host(2);
  for (auto make : {random_numbers, clusters, words, urls}) {
    OwnedIndex index(sorted_unique(make(random, 3000)), false);
    TreeOptions options{.strides = {8, 4, 4, 4}, .leaf_capacity = 8};
    KeyStatistics sample;
    ASSERT_TRUE(backend->tree_index().measure_keys(index.column(), {.samples = 700}, &sample).ok());
    TreeEstimate expected = estimate_tree(measure(*backend, index, true), host_target(), options);
    TreeEstimate estimate = estimate_tree(sample, host_target(), options);
    EXPECT_NEAR(estimate.nanoseconds, expected.nanoseconds, 0.1 * expected.nanoseconds);
    EXPECT_NEAR(estimate.image_bytes, expected.image_bytes, 0.35 * expected.image_bytes);
  }
}

// The nodes that a search visits, the root included.
struct CountVisits {
  double visits = 0;
  void visit(const LevelRef&, uint32_t, uint32_t) { visits += 1; }
};

TEST(TreeEstimateTest, TheDeepestOfAGroupIsExpected) {
  Random random(seed());
  auto backend = Backend::host(2);
  for (auto make : {random_numbers, clusters, words, urls}) {
    OwnedIndex index(sorted_unique(make(random, 800)), false);
    TreeOptions options{.strides = {4, 3, 3, 3, 3, 3, 3}, .leaf_capacity = 3};
    ASSERT_TRUE(backend->tree_index().build_tree(index.column(), options, &index.image()).ok());
    TreeEstimate estimate = estimate_tree(measure(*backend, index, true), host_target(), options);
    TreeRef tree(index.image().data());
    std::vector<double> visits;
    for (const std::string& key : index.keys()) {
      CountVisits count;
      descend(tree, bits_of_query(as_bytes(key)), count);
      visits.push_back(count.visits);
    }
    double sum = 0, deepest = 0;
    constexpr int groups = 20'000;
    for (double x : visits) sum += x;
    for (int group = 0; group < groups; ++group) {
      double most = 0;
      for (uint32_t i = 0; i < searches_together; ++i)
        most = std::max(most, visits[random() % visits.size()]);
      deepest += most - 1;
    }
    EXPECT_NEAR(estimate.visits(), sum / static_cast<double>(visits.size()), 1e-6);
    EXPECT_NEAR(estimate[SearchWork::levels_together], deepest / groups, 0.03);
    EXPECT_GE(estimate[SearchWork::words_together], estimate[SearchWork::compare_words]);
  }
}

// The lines of a device where the entries are that a search meets in dense levels.
struct MeetLines {
  ByteQuery query;
  std::set<std::pair<const uint32_t*, uint32_t>>* lines;
  void visit(const LevelRef& level, uint32_t node, uint32_t depth) {
    constexpr uint32_t entries_of_line = 128 / 16;
    uint32_t entry = node * ((1u << level.stride) + 1) + query.bits(depth, level.stride);
    lines->insert({level.starts, entry / entries_of_line});
  }
};

TEST(TreeEstimateTest, SearchesThatGoTogetherShareLines) {
  Random random(seed());
  auto backend = Backend::host(2);
  for (auto make : {random_numbers, clusters, words, urls}) {
    OwnedIndex index(sorted_unique(make(random, 800)), false);
    for (uint32_t root : {4, 8, 12}) {
      TreeOptions options{.strides = {root, 4, 4, 4}, .leaf_capacity = 8};
      options.node_kind = NodeKind::dense;
      ASSERT_TRUE(backend->tree_index().build_tree(index.column(), options, &index.image()).ok());
      PlanTarget device{.costs = AccessCosts::typical_device()};
      TreeEstimate estimate = estimate_tree(measure(*backend, index, true), device, options);
      TreeRef tree(index.image().data());
      if (tree.levels == 1) continue;  // a device has a directory in its place
      constexpr int groups = 2000;
      double met = 0;
      for (int group = 0; group < groups; ++group) {
        std::set<std::pair<const uint32_t*, uint32_t>> lines;
        for (uint32_t i = 0; i < searches_together; ++i) {
          Bytes key = as_bytes(index.keys()[random() % index.keys().size()]);
          MeetLines meet{ByteQuery(key.data(), key.size()), &lines};
          descend(tree, meet.query, meet);
        }
        met += static_cast<double>(lines.size()) / searches_together;
      }
      // Nodes lie side by side, and so a line may belong to two.
      EXPECT_NEAR(estimate[SearchWork::lines_apart] / (met / groups), 1, 0.1);
    }
  }
}

TEST(TreeEstimateTest, BusyEntriesAreThoseThatSearchesMeet) {
  auto backend = Backend::host(1);
  TreeOptions options{.strides = {8, 8}, .leaf_capacity = 1};
  Keys even, uneven;
  for (int i = 0; i < 1024; ++i)
    even.push_back({static_cast<char>(i / 4), static_cast<char>(i % 4)});
  for (int i = 0; i < 256; ++i) uneven.push_back({0, static_cast<char>(i)});
  for (int i = 1; i < 256; ++i) uneven.push_back({static_cast<char>(i), 0});
  auto busy = [&](const Keys& keys) {
    OwnedIndex index(sorted_unique(keys), true);
    return estimate_tree(measure(*backend, index, true), host_target(), options).levels;
  };
  EXPECT_NEAR(busy(even)[0].busy_entries, 256, 0.1);
  EXPECT_NEAR(busy(even)[1].busy_nodes, 256, 0.1);
  EXPECT_NEAR(busy(even)[1].busy_entries, 1024, 0.1);
  // Half of the searches meet one entry: 2^(1/2 log2(511/256) + 255/511 log2(511)).
  EXPECT_NEAR(busy(uneven)[0].busy_entries,
              std::pow(511.0 / 256, 256.0 / 511) * std::pow(511, 255.0 / 511), 0.1);
  EXPECT_NEAR(busy(uneven)[1].busy_nodes, 1, 0.01);
}

TEST(KeyStatisticsTest, GoToBytesAndBack) {
  Random random(seed());
  auto backend = Backend::host(1);
  OwnedIndex index(sorted_unique(urls(random, 3000)), false);
  KeyStatistics statistics = measure(*backend, index, false);
  std::string bytes = statistics.serialize();
  auto parse = [](const std::string& text) { return KeyStatistics::parse(as_bytes(text)); };
  Result<KeyStatistics> parsed = parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
  EXPECT_EQ(parsed->serialize(), bytes);
  EXPECT_EQ(parsed->keys, index.keys().size());
  EXPECT_EQ(parsed->ranks, statistics.ranks);
  EXPECT_EQ(parsed->shared, statistics.shared);
  // Whatever the bytes are, a plan can be made of what is accepted.
  EXPECT_EQ(parse("").status().code(), StatusCode::corruption);
  EXPECT_EQ(parse(bytes.substr(1)).status().code(), StatusCode::corruption);
  EXPECT_EQ(parse(bytes + "x").status().code(), StatusCode::corruption);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = bytes;
    size_t most = round % 2 ? damaged.size() : 64;
    damaged[random() % most] = static_cast<char>(random());
    Result<KeyStatistics> result = parse(damaged);
    if (!result.ok()) continue;
    if (round % 10 == 0) {
      EXPECT_GE(plan_tree(*result, host_target()).options.strides.size(), 1u);
    }
  }
}

// Every list of strides for keys of one byte, with every choice of kinds.
void each_list(std::vector<uint32_t>* strides, std::vector<NodeKind>* kinds, uint32_t bits,
               const std::function<void()>& use) {
  if (!strides->empty()) use();
  for (uint32_t stride = 1; stride <= 8 - bits; ++stride) {
    for (NodeKind kind : {NodeKind::dense, NodeKind::bitmap}) {
      if (strides->empty() && kind == NodeKind::bitmap) continue;
      strides->push_back(stride);
      kinds->push_back(kind);
      each_list(strides, kinds, bits + stride, use);
      strides->pop_back();
      kinds->pop_back();
    }
  }
}

TEST(PlannerTest, FindsWhatTryingAllListsFinds) {
  Random random(seed());
  auto backend = Backend::host(1);
  for (int round = 0; round < 12; ++round) {
    Keys keys;
    for (size_t i = 0; i < 3 + random() % 120; ++i)
      keys.push_back(std::string(1, static_cast<char>(random() % (round % 3 ? 256 : 40))));
    OwnedIndex index(sorted_unique(keys), true);
    KeyStatistics statistics = measure(*backend, index, true);
    PlanTarget target = host_target();
    // Small caches, so that small trees differ.
    for (size_t i = 0; i < AccessCosts::sizes; ++i)
      target.costs.nanoseconds_at[i] = 1 + 30.0 * static_cast<double>(i);
    target.max_image_bytes = round % 2 ? 100'000 : 500 + random() % 1500;
    TreeOptions wanted;
    wanted.path_compression = false;
    wanted.leaf_capacity = 1 + static_cast<uint32_t>(random() % 4);
    PlannedTree plan =
        plan_tree(statistics, target, wanted,
                  {.kind = PlannerKind::optimal, .followed_up = 1'000'000, .every_stride = true});
    const auto limit = static_cast<double>(target.max_image_bytes);
    double least = 1e300;
    std::vector<uint32_t> best;
    std::vector<uint32_t> strides;
    std::vector<NodeKind> kinds;
    each_list(&strides, &kinds, 0, [&] {
      TreeOptions options = wanted;
      options.strides = strides;
      options.kinds = kinds;
      TreeEstimate estimate = estimate_tree(statistics, target, options);
      if (estimate.image_bytes > limit) return;
      double rank = plan_rank(estimate, estimate.nanoseconds, statistics, target);
      if (rank < least) {
        least = rank;
        best = strides;
      }
    });
    EXPECT_NEAR(plan_rank(plan.estimate, plan.nanoseconds, statistics, target), least, 1e-9 * least)
        << "round " << round << ", " << index.keys().size() << " keys, best of " << best.size()
        << " levels, root " << best[0] << ", planned " << plan.options.strides.size()
        << " levels, root " << plan.options.strides[0];
  }
}

TEST(PlannerTest, KeepsTheLimitOfMemory) {
  Random random(seed());
  auto backend = Backend::host(2);
  for (const KeySet& set : key_sets()) {
    for (size_t n : {1, 2, 300, 20'000}) {
      OwnedIndex index(sorted_unique(set.make(random, n)), true);
      for (uint64_t limit : {0ull, 2'000ull, 30'000ull}) {
        TreeOptions options;
        options.max_image_bytes = limit;
        std::vector<std::byte> image;
        ASSERT_TRUE(backend->tree_index().build_tree(index.column(), options, &image).ok());
        uint64_t most = limit ? limit : default_image_bytes(measure(*backend, index, false));
        EXPECT_LE(image.size(), most) << set.name << " " << n;
        EXPECT_TRUE(check_tree(image, index.keys().size()).ok());
      }
    }
  }
}

TEST(PlannerTest, ALevelThatDoesNotFitGetsFewerBits) {
  Random random(seed());
  auto backend = Backend::host(2);
  OwnedIndex index(sorted_unique(random_numbers(random, 5000)), true);
  TreeOptions options{.strides = {6, 12, 4}, .leaf_capacity = 4, .node_kind = NodeKind::dense};
  auto built = [&](uint64_t limit) {
    options.max_image_bytes = limit;
    std::vector<std::byte> image;
    EXPECT_TRUE(backend->tree_index().build_tree(index.column(), options, &image).ok());
    EXPECT_TRUE(limit == 0 || image.size() <= limit);
    return tree_statistics({image.data(), image.size()}).strides;
  };
  EXPECT_EQ(built(0)[1], 12u);
  EXPECT_EQ(built(4 << 20)[1], 12u);
  // 64 nodes of 4 << stride bytes.
  EXPECT_EQ(built(400 << 10)[1], 10u);
  EXPECT_EQ(built(100 << 10)[1], 8u);
  EXPECT_EQ(built(1000).size(), 1u);
}

TEST(PlannerTest, TakesWhatIsAskedFor) {
  Random random(seed());
  auto backend = Backend::host(1);
  OwnedIndex index(sorted_unique(words(random, 20'000)), false);
  TreeOptions wanted;
  wanted.leaf_capacity = 7;
  wanted.node_kind = NodeKind::bitmap;
  wanted.path_compression = false;
  std::vector<std::byte> image;
  ASSERT_TRUE(backend->tree_index().build_tree(index.column(), wanted, &image).ok());
  TreeStatistics built = tree_statistics({image.data(), image.size()});
  EXPECT_EQ(built.leaf_capacity, 7u);
  EXPECT_EQ(built.prefix_bits, 0u);
  ASSERT_GT(built.kinds.size(), 1u);
  for (size_t level = 1; level < built.kinds.size(); ++level)
    EXPECT_EQ(built.kinds[level], NodeKind::bitmap);
}

TEST(PlannerTest, ThreadsChangeNothing) {
  Random random(seed());
  auto backend = Backend::host(4);
  auto run_each = [&](uint64_t n, const auto& body) { backend->parallel_for(n, 1, body); };
  for (auto make : {random_numbers, clusters, words, urls}) {
    OwnedIndex index(sorted_unique(make(random, 5'000)), false);
    KeyStatistics statistics = measure(*backend, index, false);
    for (const AccessCosts& costs : {AccessCosts::typical_host(4), AccessCosts::typical_device()}) {
      PlannedTree one = plan_tree(statistics, {.costs = costs});
      PlannedTree many = plan_tree(statistics, {.costs = costs}, {}, {.run_each = run_each});
      EXPECT_EQ(one.options.strides, many.options.strides);
      EXPECT_EQ(one.options.kinds, many.options.kinds);
      EXPECT_EQ(one.options.leaf_capacity, many.options.leaf_capacity);
      EXPECT_EQ(one.nanoseconds, many.nanoseconds);
      EXPECT_EQ(one.considered, many.considered);
    }
  }
}

TEST(PlannerTest, FewKeysAndNone) {
  auto backend = Backend::host(1);
  for (const Keys& keys :
       {Keys{}, Keys{""}, Keys{"a"}, Keys{"a", "b"}, Keys{"", std::string(1, '\0')},
        Keys{std::string(60'000, 'x') + "a", std::string(60'000, 'x') + "b"}}) {
    OwnedIndex index(keys, false);
    KeyStatistics statistics = measure(*backend, index, false);
    PlannedTree plan = plan_tree(statistics, host_target());
    EXPECT_TRUE(plan.options.check().ok());
    EXPECT_TRUE(std::isfinite(plan.nanoseconds));
    std::vector<std::byte> image;
    ASSERT_TRUE(backend->tree_index().build_tree(index.column(), TreeOptions(), &image).ok());
    index.image() = image;
    for (uint32_t rank = 0; rank < keys.size(); ++rank) {
      uint32_t found = 0;
      ASSERT_TRUE(find_one(index.view(), as_bytes(keys[rank]), &found).ok());
      EXPECT_EQ(found, rank);
    }
  }
}

TEST(PlannerTest, CorrectionsAreSmallAndFinite) {
  Random random(seed());
  auto backend = Backend::host(1);
  for (const KeySet& set : key_sets()) {
    OwnedIndex index(sorted_unique(set.make(random, 500)), true);
    KeyStatistics statistics = measure(*backend, index, false);
    for (bool device : {false, true}) {
      PlanTarget target{.costs =
                            device ? AccessCosts::typical_device() : AccessCosts::typical_host(4)};
      PlannedTree plan = plan_tree(statistics, target, {}, {.kind = PlannerKind::learned});
      EXPECT_GT(plan.nanoseconds, 0.3 * plan.estimate.nanoseconds);
      EXPECT_LT(plan.nanoseconds, 3 * plan.estimate.nanoseconds);
      for (float x : learned_inputs(plan.estimate, statistics, target))
        EXPECT_TRUE(std::isfinite(x));
    }
  }
}

TEST(AccessCostsTest, GoToTextAndBack) {
  AccessCosts costs = AccessCosts::typical_host(3);
  Result<AccessCosts> parsed = AccessCosts::parse(costs.to_text());
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->to_text(), costs.to_text());
  EXPECT_EQ(parsed->threads, 3u);
  EXPECT_FALSE(parsed->device);
  EXPECT_TRUE(AccessCosts::parse(AccessCosts::typical_device().to_text())->device);
  EXPECT_DOUBLE_EQ(costs.nanoseconds(0), costs.nanoseconds_at[0]);
  EXPECT_DOUBLE_EQ(costs.nanoseconds(1e12), costs.nanoseconds_at[AccessCosts::sizes - 1]);
  double between = costs.nanoseconds(1.5 * static_cast<double>(AccessCosts::bytes_of(5)));
  EXPECT_GT(between, costs.nanoseconds_at[5]);
  EXPECT_LT(between, costs.nanoseconds_at[6]);
  for (std::string bad : {"", "host", "host 0 1 1", "gpu 1", "host 2 a b"})
    EXPECT_EQ(AccessCosts::parse(bad).status().code(), StatusCode::invalid_argument) << bad;
  EXPECT_FALSE(AccessCosts::parse(costs.to_text() + " 1").ok());
}

TEST(AccessCostsTest, AreMeasured) {
  auto backend = Backend::host(1);
  AccessCosts costs;
  ASSERT_TRUE(backend->tree_index().measure_costs(&costs).ok());
  EXPECT_EQ(costs.threads, 1u);
  for (size_t i = 0; i < AccessCosts::sizes; ++i) {
    EXPECT_GT(costs.nanoseconds_at[i], 0);
    EXPECT_GE(costs.latency_at[i], costs.nanoseconds_at[i]);
    if (i > 0) {
      EXPECT_GE(costs.nanoseconds_at[i], costs.nanoseconds_at[i - 1]);
      EXPECT_GE(costs.latency_at[i], costs.latency_at[i - 1]);
    }
  }
  backend->tree_index().set_access_costs(costs);
  EXPECT_EQ(backend->tree_index().access_costs().to_text(), costs.to_text());
}

// Both backends see the same keys, and build the same tree of one plan.
TEST(CudaPlannerTest, SeesWhatTheHostSees) {
  auto device = Backend::cuda();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  Random random(seed());
  auto host = Backend::host(2);
  for (const KeySet& set : key_sets()) {
    for (size_t n : {1, 50, 20'000}) {
      OwnedIndex index(sorted_unique(set.make(random, n)), true);
      ASSERT_TRUE(
          host->tree_index().build_tree(index.column(), TreeOptions(), &index.image()).ok());
      auto resident = (*device)->tree_index().make_resident(index.view());
      ASSERT_TRUE(resident.ok()) << resident.status().to_string();
      KeyStatistics there;
      ASSERT_TRUE((*device)->tree_index().measure_keys((*resident)->view().keys, {}, &there).ok());
      EXPECT_EQ(there.serialize(), measure(*host, index, false).serialize()) << set.name;
      std::vector<std::byte> here, image;
      TreeOptions plan =
          plan_tree(there, {.costs = (*device)->tree_index().access_costs()}).options;
      ASSERT_TRUE(host->tree_index().build_tree(index.column(), plan, &here).ok());
      ASSERT_TRUE((*device)->tree_index().build_tree(index.column(), plan, &image).ok());
      EXPECT_EQ(image, here) << set.name;
    }
  }
  AccessCosts costs;
  ASSERT_TRUE((*device)->tree_index().measure_costs(&costs).ok());
  EXPECT_TRUE(costs.device);
  EXPECT_GT(costs.nanoseconds_at[7], costs.nanoseconds_at[1]);
}

}  // namespace
}  // namespace stride::test

// Statistics of keys, what is expected of trees over them, and the choice of a tree.

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "gpu/backend.h"
#include "gpu/plan/planner_weights.h"
#include "gpu/plan/tree_planner.h"
#include "gpu/tree/tree_layout.h"
#include "gpu/tree/tree_search.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tree_option_sets.h"

namespace stride::test {
namespace {

KeyStatistics measure(Backend& backend, const OwnedIndex& index, bool exact) {
  KeyStatistics statistics;
  Status status = backend.tree_index().measure_keys(index.column(), {.exact = exact}, &statistics);
  CHECK_OK(status);
  return statistics;
}

PlanTarget host_target() { return {.costs = AccessCosts::typical_host(2)}; }

TEST_CASE("KeyStatisticsTest.ExactOnesGiveTheNodesOfEveryTree", "[KeyStatisticsTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (const KeySet& set : key_sets()) {
    for (size_t n : {2, 37, 700}) {
      OwnedIndex index(sorted_unique(set.make(random, n)), random() % 2);
      KeyStatistics statistics = measure(*backend, index, true);
      for (int round = 0; round < smaller_under_sanitizers(6, 2); ++round) {
        TreeOptions options = random_options(random);
        if (options.strides.empty()) options.strides = {4, 4, 4};
        if (options.leaf_capacity == 0) options.leaf_capacity = 5;
        INFO(describe(set, n, options));
        std::vector<std::byte> image;
        REQUIRE_OK(backend->tree_index().build_tree(index.column(), options, &image));
        TreeStatistics built = tree_statistics({image.data(), image.size()});
        TreeEstimate estimate = estimate_tree(statistics, host_target(), options);
        REQUIRE(estimate.levels.size() == built.strides.size());
        for (size_t level = 0; level < built.strides.size(); ++level) {
          CHECK_MESSAGE(std::abs(estimate.levels[level].nodes -
                                 static_cast<double>(built.nodes[level])) <= 1e-2,
                        "level " << level);
          if (level > 0) CHECK(estimate.levels[level].kind == built.kinds[level]);
        }
        // Arrays begin at multiples of 64 bytes.
        double slack = 64 + 256.0 * static_cast<double>(built.strides.size());
        CHECK_THAT(estimate.image_bytes,
                   Catch::Matchers::WithinAbs(static_cast<double>(image.size()), slack));
      }
    }
  }
}

TEST_CASE("KeyStatisticsTest.ASampleComesNear", "[KeyStatisticsTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (auto make : {random_numbers, clusters, words, urls}) {
    OwnedIndex index(sorted_unique(make(random, 3000)), false);
    TreeOptions options{.strides = {8, 4, 4, 4}, .leaf_capacity = 8};
    KeyStatistics sample;
    REQUIRE_OK(backend->tree_index().measure_keys(index.column(), {.samples = 700}, &sample));
    TreeEstimate expected = estimate_tree(measure(*backend, index, true), host_target(), options);
    TreeEstimate estimate = estimate_tree(sample, host_target(), options);
    CHECK_THAT(estimate.nanoseconds,
               Catch::Matchers::WithinAbs(expected.nanoseconds, 0.1 * expected.nanoseconds));
    CHECK_THAT(estimate.image_bytes,
               Catch::Matchers::WithinAbs(expected.image_bytes, 0.35 * expected.image_bytes));
  }
}

// The nodes that a search visits, the root included.
struct CountVisits {
  double visits = 0;
  void visit(const LevelRef&, uint32_t, uint32_t) { visits += 1; }
};

TEST_CASE("TreeEstimateTest.TheDeepestOfAGroupIsExpected", "[TreeEstimateTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (auto make : {random_numbers, clusters, words, urls}) {
    OwnedIndex index(sorted_unique(make(random, 800)), false);
    TreeOptions options{.strides = {4, 3, 3, 3, 3, 3, 3}, .leaf_capacity = 3};
    REQUIRE_OK(backend->tree_index().build_tree(index.column(), options, &index.image()));
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
    CHECK_THAT(estimate.visits(),
               Catch::Matchers::WithinAbs(sum / static_cast<double>(visits.size()), 1e-6));
    CHECK_THAT(estimate[SearchWork::levels_together],
               Catch::Matchers::WithinAbs(deepest / groups, 0.03));
    CHECK(estimate[SearchWork::words_together] >= estimate[SearchWork::compare_words]);
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

// How many lines searches that go together meet, as estimated, to how many they do meet: of one set
// of keys. Nothing where a device has a directory in place of the tree.
std::optional<double> estimated_to_met_lines(const TreeOptions& options, Backend& backend,
                                             OwnedIndex& index, Random& random) {
  REQUIRE_OK(backend.tree_index().build_tree(index.column(), options, &index.image()));
  PlanTarget device{.costs = AccessCosts::typical_device()};
  TreeEstimate estimate = estimate_tree(measure(backend, index, true), device, options);
  TreeRef tree(index.image().data());
  if (tree.levels == 1) return std::nullopt;
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
  return estimate[SearchWork::lines_apart] / (met / groups);
}

// One set of 800 keys differs from the estimate by 3 % (one standard deviation), so that the mean
// of some is looked at.
TEST_CASE("TreeEstimateTest.SearchesThatGoTogetherShareLines", "[TreeEstimateTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (auto make : {random_numbers, clusters, words, urls}) {
    for (uint32_t root : {4, 8, 12}) {
      TreeOptions options{.strides = {root, 4, 4, 4}, .leaf_capacity = 8};
      options.node_kind = NodeKind::dense;
      constexpr int sets = smaller_under_sanitizers(6, 3);
      double sum = 0;
      int estimated = 0;
      for (int set = 0; set < sets; ++set) {
        OwnedIndex index(sorted_unique(make(random, 800)), false);
        auto ratio = estimated_to_met_lines(options, *backend, index, random);
        sum += ratio.value_or(0);
        estimated += ratio.has_value();
      }
      if (estimated == 0) continue;
      // Nodes lie side by side, and so a line may belong to two.
      CHECK_THAT(sum / estimated, Catch::Matchers::WithinAbs(1, 0.08));
    }
  }
}

TEST_CASE("TreeEstimateTest.BusyEntriesAreThoseThatSearchesMeet", "[TreeEstimateTest]") {
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
  CHECK_THAT(busy(even)[0].busy_entries, Catch::Matchers::WithinAbs(256, 0.1));
  CHECK_THAT(busy(even)[1].busy_nodes, Catch::Matchers::WithinAbs(256, 0.1));
  CHECK_THAT(busy(even)[1].busy_entries, Catch::Matchers::WithinAbs(1024, 0.1));
  // Half of the searches meet one entry: 2^(1/2 log2(511/256) + 255/511 log2(511)).
  CHECK_THAT(busy(uneven)[0].busy_entries,
             Catch::Matchers::WithinAbs(
                 std::pow(511.0 / 256, 256.0 / 511) * std::pow(511, 255.0 / 511), 0.1));
  CHECK_THAT(busy(uneven)[1].busy_nodes, Catch::Matchers::WithinAbs(1, 0.01));
}

TEST_CASE("KeyStatisticsTest.GoToBytesAndBack", "[KeyStatisticsTest]") {
  Random random(seed());
  auto backend = Backend::host(1);
  OwnedIndex index(sorted_unique(urls(random, 3000)), false);
  KeyStatistics statistics = measure(*backend, index, false);
  std::string bytes = statistics.serialize();
  auto parse = [](const std::string& text) { return KeyStatistics::parse(as_bytes(text)); };
  Result<KeyStatistics> parsed = parse(bytes);
  REQUIRE_OK(parsed);
  CHECK(parsed->serialize() == bytes);
  CHECK(parsed->keys == index.keys().size());
  CHECK(parsed->ranks == statistics.ranks);
  CHECK(parsed->shared == statistics.shared);
  // Whatever the bytes are, a plan can be made of what is accepted.
  CHECK(parse("").status().code() == StatusCode::corruption);
  CHECK(parse(bytes.substr(1)).status().code() == StatusCode::corruption);
  CHECK(parse(bytes + "x").status().code() == StatusCode::corruption);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = bytes;
    size_t most = round % 2 ? damaged.size() : 64;
    damaged[random() % most] = static_cast<char>(random());
    Result<KeyStatistics> result = parse(damaged);
    if (!result.ok()) continue;
    if (round % 10 == 0) {
      CHECK(plan_tree(*result, host_target()).options.strides.size() >= 1u);
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

TEST_CASE("PlannerTest.FindsWhatTryingAllListsFinds", "[PlannerTest]") {
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
    CHECK_MESSAGE(
        std::abs(plan_rank(plan.estimate, plan.nanoseconds, statistics, target) - least) <=
            1e-9 * least,
        "round " << round << ", " << index.keys().size() << " keys, best of " << best.size()
                 << " levels, root " << best[0] << ", planned " << plan.options.strides.size()
                 << " levels, root " << plan.options.strides[0]);
  }
}

TEST_CASE("PlannerTest.KeepsTheLimitOfMemory", "[PlannerTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (const KeySet& set : key_sets()) {
    for (size_t n : {1, 2, 300, 20'000}) {
      OwnedIndex index(sorted_unique(set.make(random, n)), true);
      for (uint64_t limit : {0ull, 2'000ull, 30'000ull}) {
        TreeOptions options;
        options.max_image_bytes = limit;
        std::vector<std::byte> image;
        REQUIRE_OK(backend->tree_index().build_tree(index.column(), options, &image));
        uint64_t most = limit ? limit : default_image_bytes(measure(*backend, index, false));
        CHECK_MESSAGE(image.size() <= most, set.name << " " << n);
        CHECK_OK(check_tree(image, index.keys().size()));
      }
    }
  }
}

TEST_CASE("PlannerTest.ALevelThatDoesNotFitGetsFewerBits", "[PlannerTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  OwnedIndex index(sorted_unique(random_numbers(random, 5000)), true);
  TreeOptions options{.strides = {6, 12, 4}, .leaf_capacity = 4, .node_kind = NodeKind::dense};
  auto built = [&](uint64_t limit) {
    options.max_image_bytes = limit;
    std::vector<std::byte> image;
    CHECK_OK(backend->tree_index().build_tree(index.column(), options, &image));
    CHECK((limit == 0 || image.size() <= limit));
    return tree_statistics({image.data(), image.size()}).strides;
  };
  CHECK(built(0)[1] == 12u);
  CHECK(built(4 << 20)[1] == 12u);
  // 64 nodes of 4 << stride bytes.
  CHECK(built(400 << 10)[1] == 10u);
  CHECK(built(100 << 10)[1] == 8u);
  CHECK(built(1000).size() == 1u);
}

TEST_CASE("PlannerTest.TakesWhatIsAskedFor", "[PlannerTest]") {
  Random random(seed());
  auto backend = Backend::host(1);
  OwnedIndex index(sorted_unique(words(random, 20'000)), false);
  TreeOptions wanted;
  wanted.leaf_capacity = 7;
  wanted.node_kind = NodeKind::bitmap;
  wanted.path_compression = false;
  std::vector<std::byte> image;
  REQUIRE_OK(backend->tree_index().build_tree(index.column(), wanted, &image));
  TreeStatistics built = tree_statistics({image.data(), image.size()});
  CHECK(built.leaf_capacity == 7u);
  CHECK(built.prefix_bits == 0u);
  REQUIRE(built.kinds.size() > 1u);
  for (size_t level = 1; level < built.kinds.size(); ++level)
    CHECK(built.kinds[level] == NodeKind::bitmap);
}

TEST_CASE("PlannerTest.ThreadsChangeNothing", "[PlannerTest]") {
  Random random(seed());
  auto backend = Backend::host(4);
  auto run_each = [&](uint64_t n, const auto& body) { backend->parallel_for(n, 1, body); };
  for (auto make : {random_numbers, clusters, words, urls}) {
    OwnedIndex index(sorted_unique(make(random, 5'000)), false);
    KeyStatistics statistics = measure(*backend, index, false);
    for (const AccessCosts& costs : {AccessCosts::typical_host(4), AccessCosts::typical_device()}) {
      PlannedTree one = plan_tree(statistics, {.costs = costs});
      PlannedTree many = plan_tree(statistics, {.costs = costs}, {}, {.run_each = run_each});
      CHECK(one.options.strides == many.options.strides);
      CHECK(one.options.kinds == many.options.kinds);
      CHECK(one.options.leaf_capacity == many.options.leaf_capacity);
      CHECK(one.nanoseconds == many.nanoseconds);
      CHECK(one.considered == many.considered);
    }
  }
}

TEST_CASE("PlannerTest.FewKeysAndNone", "[PlannerTest]") {
  auto backend = Backend::host(1);
  for (const Keys& keys :
       {Keys{}, Keys{""}, Keys{"a"}, Keys{"a", "b"}, Keys{"", std::string(1, '\0')},
        Keys{std::string(60'000, 'x') + "a", std::string(60'000, 'x') + "b"}}) {
    OwnedIndex index(keys, false);
    KeyStatistics statistics = measure(*backend, index, false);
    PlannedTree plan = plan_tree(statistics, host_target());
    CHECK_OK(plan.options.check());
    CHECK(std::isfinite(plan.nanoseconds));
    std::vector<std::byte> image;
    REQUIRE_OK(backend->tree_index().build_tree(index.column(), TreeOptions(), &image));
    index.image() = image;
    for (uint32_t rank = 0; rank < keys.size(); ++rank) {
      uint32_t found = 0;
      REQUIRE_OK(find_one(index.view(), as_bytes(keys[rank]), &found));
      CHECK(found == rank);
    }
  }
}

TEST_CASE("PlannerTest.CorrectionsAreSmallAndFinite", "[PlannerTest]") {
  Random random(seed());
  auto backend = Backend::host(1);
  for (const KeySet& set : key_sets()) {
    OwnedIndex index(sorted_unique(set.make(random, 500)), true);
    KeyStatistics statistics = measure(*backend, index, false);
    for (bool device : {false, true}) {
      PlanTarget target{.costs =
                            device ? AccessCosts::typical_device() : AccessCosts::typical_host(4)};
      PlannedTree plan = plan_tree(statistics, target, {}, {.kind = PlannerKind::learned});
      CHECK(plan.nanoseconds > 0.3 * plan.estimate.nanoseconds);
      CHECK(plan.nanoseconds < 3 * plan.estimate.nanoseconds);
      for (float x : learned_inputs(plan.estimate, statistics, target)) CHECK(std::isfinite(x));
    }
  }
}

TEST_CASE("AccessCostsTest.GoToTextAndBack", "[AccessCostsTest]") {
  AccessCosts costs = AccessCosts::typical_host(3);
  Result<AccessCosts> parsed = AccessCosts::parse(costs.to_text());
  REQUIRE_OK(parsed);
  CHECK(parsed->to_text() == costs.to_text());
  CHECK(parsed->threads == 3u);
  CHECK_FALSE(parsed->device);
  CHECK(AccessCosts::parse(AccessCosts::typical_device().to_text())->device);
  CHECK_THAT(costs.nanoseconds(0), Catch::Matchers::WithinULP(costs.nanoseconds_at[0], 4));
  CHECK_THAT(costs.nanoseconds(1e12),
             Catch::Matchers::WithinULP(costs.nanoseconds_at[AccessCosts::sizes - 1], 4));
  double between = costs.nanoseconds(1.5 * static_cast<double>(AccessCosts::bytes_of(5)));
  CHECK(between > costs.nanoseconds_at[5]);
  CHECK(between < costs.nanoseconds_at[6]);
  for (std::string bad : {"", "host", "host 0 1 1", "gpu 1", "host 2 a b"})
    CHECK_MESSAGE(AccessCosts::parse(bad).status().code() == StatusCode::invalid_argument, bad);
  CHECK_FALSE(AccessCosts::parse(costs.to_text() + " 1").ok());
}

TEST_CASE("AccessCostsTest.AreMeasured", "[AccessCostsTest]") {
  auto backend = Backend::host(1);
  AccessCosts costs;
  REQUIRE_OK(backend->tree_index().measure_costs(&costs));
  CHECK(costs.threads == 1u);
  for (size_t i = 0; i < AccessCosts::sizes; ++i) {
    CHECK(costs.nanoseconds_at[i] > 0);
    CHECK(costs.latency_at[i] >= costs.nanoseconds_at[i]);
    if (i > 0) {
      CHECK(costs.nanoseconds_at[i] >= costs.nanoseconds_at[i - 1]);
      CHECK(costs.latency_at[i] >= costs.latency_at[i - 1]);
    }
  }
  backend->tree_index().set_access_costs(costs);
  CHECK(backend->tree_index().access_costs().to_text() == costs.to_text());
}

// Both backends see the same keys, and build the same tree of one plan.
TEST_CASE("CudaPlannerTest.SeesWhatTheHostSees", "[CudaPlannerTest]") {
  auto device = Backend::cuda();
  if (!device.ok()) SKIP(device.status().message());
  Random random(seed());
  auto host = Backend::host(2);
  for (const KeySet& set : key_sets()) {
    for (size_t n : {1, 50, 20'000}) {
      OwnedIndex index(sorted_unique(set.make(random, n)), true);
      REQUIRE_OK(host->tree_index().build_tree(index.column(), TreeOptions(), &index.image()));
      auto resident = (*device)->tree_index().make_resident(index.view());
      REQUIRE_OK(resident);
      KeyStatistics there;
      REQUIRE_OK((*device)->tree_index().measure_keys((*resident)->view().keys, {}, &there));
      CHECK_MESSAGE(there.serialize() == measure(*host, index, false).serialize(), set.name);
      std::vector<std::byte> here, image;
      TreeOptions plan =
          plan_tree(there, {.costs = (*device)->tree_index().access_costs()}).options;
      REQUIRE_OK(host->tree_index().build_tree(index.column(), plan, &here));
      REQUIRE_OK((*device)->tree_index().build_tree(index.column(), plan, &image));
      CHECK_MESSAGE(image == here, set.name);
    }
  }
  AccessCosts costs;
  REQUIRE_OK((*device)->tree_index().measure_costs(&costs));
  CHECK(costs.device);
  CHECK(costs.nanoseconds_at[7] > costs.nanoseconds_at[1]);
}

}  // namespace
}  // namespace stride::test

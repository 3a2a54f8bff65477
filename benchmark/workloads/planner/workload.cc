#include "benchmark/workloads/planner/workload.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "benchmark/datasets/planner_keys.h"
#include "benchmark/harness/arguments.h"
#include "benchmark/harness/machine.h"
#include "benchmark/harness/placed_memory.h"
#include "benchmark/workloads/tree/answers.h"

namespace stride::benchmark {
namespace {

constexpr uint32_t leaf_capacities[] = {4, 8, 16, 32, 64};
constexpr uint32_t inner_strides[] = {3, 4, 6, 8, 10, 12};
// Flavors' trees may take more than others, but not all of memory.
constexpr uint64_t max_flavors_bytes = 512 << 20;
// The last comparison has so many trees of the list, each built so many times: equal trees in other
// places of memory differ by some percent.
constexpr size_t finalists = 10, max_builds = 3;
constexpr uint32_t calls_of_list = 6;
// Memory that they may take beside the keys: of many keys there are fewer.
constexpr uint64_t max_compared_bytes = uint64_t{64} << 30;
constexpr uint64_t many_keys = 5'000'000;

// A tree that was built: strides, kinds (d: dense, b: bitmap) and leaf capacity.
std::string text_of(const TreeStatistics& tree) {
  std::string text;
  for (size_t i = 0; i < tree.strides.size(); ++i) {
    text += (i ? "," : "") + std::to_string(tree.strides[i]);
    if (i > 0) text += to_string(tree.kinds[i])[0];
  }
  return text + " leaf " + std::to_string(tree.leaf_capacity);
}

// Who chose a tree, and what it expected.
struct PlannersChoice {
  std::string name;
  double predicted = 0;     // ns
  double plan_seconds = 0;  // 0: it was there to choose
};

// A tree that was built, what was expected of it, and how long a search took.
struct Measured {
  std::string text;
  TreeOptions options;
  TreeEstimate estimate;
  double predicted = 0;                                 // ns
  std::vector<PlannersChoice> choices;                  // of planners; none: of the list alone
  std::vector<std::shared_ptr<ResidentIndex>> indexes;  // of the same tree
  double build_seconds = 0;
  uint64_t image_bytes = 0;
  uint64_t memory_bytes = 0, key_bytes = 0;  // that searches need, and of that the keys
  std::vector<double> seconds;               // of all indexes in turn

  double median() const { return median_of(seconds); }
  // That searches need beside the keys.
  uint64_t tree_bytes() const { return std::max(image_bytes, memory_bytes - key_bytes); }
  // Says by which share the slowest index is slower than the fastest one.
  double spread() const {
    double least = 1e9, most = 0;
    for (size_t i = 0; i < indexes.size(); ++i) {
      std::vector<double> of_one;
      for (size_t k = i; k < seconds.size(); k += indexes.size()) of_one.push_back(seconds[k]);
      least = std::min(least, median_of(of_one));
      most = std::max(most, median_of(of_one));
    }
    return most / least - 1;
  }

 private:
  static double median_of(std::vector<double> sorted) {
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

// The list is shorter where there are many keys, for trees over them take long to build.
std::vector<TreeOptions> broad_list(uint64_t keys, uint64_t limit) {
  std::vector<TreeOptions> list;
  const bool many = keys >= many_keys;
  for (uint32_t root = many ? 8 : 4; root <= 24 && (uint64_t{4} << root) <= limit; root += 2) {
    list.push_back({.strides = {root}, .leaf_capacity = 16});
    for (uint32_t inner : inner_strides) {
      for (uint32_t capacity : leaf_capacities) {
        if (many && (inner % 4 || (capacity != 4 && capacity != 16))) continue;
        TreeOptions options{.strides = {root}, .leaf_capacity = capacity};
        options.strides.resize(16, inner);
        list.push_back(options);
      }
    }
  }
  return list;
}

// Any strides, kinds and leaf capacities: what the planner is trained on.
std::vector<TreeOptions> random_list(uint64_t limit, uint32_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto widest = static_cast<uint32_t>(std::bit_width(limit / 4 | 1)) - 1;
  std::vector<TreeOptions> list;
  for (uint32_t i = 0; i < count; ++i) {
    TreeOptions options;
    options.leaf_capacity = 2 + static_cast<uint32_t>(random() % (1 << random() % 7));
    size_t levels = 1 + random() % 6;
    auto usual = static_cast<uint32_t>(2 + random() % 11);
    for (size_t level = 0; level < levels + 10; ++level) {
      uint32_t stride = level < levels ? static_cast<uint32_t>(2 + random() % 11) : usual;
      if (level == 0) stride = 3 + static_cast<uint32_t>(random() % std::max(widest, 4u)) % 22;
      options.strides.push_back(stride);
      options.kinds.push_back(static_cast<NodeKind>(random() % node_kinds));
    }
    if (random() % 8 == 0) options.strides.resize(levels);
    list.push_back(options);
  }
  return list;
}

// The lists that Flavors' programs choose from, for keys of up to 64 bits and more.
std::vector<TreeOptions> flavors_list() {
  std::vector<TreeOptions> list;
  for (std::vector<uint32_t> strides : {std::vector<uint32_t>{8, 8, 8, 8},
                                        {8, 8, 8, 8, 8, 8, 8, 8},
                                        {16, 8, 8},
                                        {16, 8, 8, 8, 8},
                                        {12, 10, 10},
                                        {20, 6, 6},
                                        {24, 4, 4},
                                        {10, 6, 6, 6, 6},
                                        {16, 4, 4, 4, 4},
                                        {22}}) {
    list.push_back(TreeOptions::flavors(strides));
  }
  return list;
}

class PlannerCase {
 public:
  PlannerCase(const PlannerWorkloadOptions& options, Backend* backend, const AccessCosts& costs,
              const Progress& progress, Parallel* parallel)
      : options_(options),
        backend_(backend),
        placement_{backend, Where::backend},
        progress_(progress),
        parallel_(parallel) {
    target_.costs = costs;
    target_.batch = options.queries;
    target_.locality = options.locality;
  }

  Status run(const std::string& data, uint64_t keys, std::vector<ResultRow>* rows) {
    name_ = options_.keys.size() == 1 ? data : data + " " + batch_name(keys);
    STRIDE_TRY(prepare(data, keys));
    target_.max_image_bytes = default_image_bytes(statistics_);
    for (auto [kind, title] : {std::pair{PlannerKind::automatic, "automatic"},
                               {PlannerKind::optimal, "optimal"},
                               {PlannerKind::learned, "learned"}}) {
      STRIDE_TRY(measure_plan(kind, title));
    }
    std::vector<TreeOptions> list =
        options_.trees ? random_list(target_.max_image_bytes, 6 * options_.trees, options_.seed)
                       : broad_list(statistics_.keys, target_.max_image_bytes);
    size_t most = options_.trees ? trees_.size() + options_.trees : list.size() + trees_.size();
    for (size_t i = 0; i < list.size() && trees_.size() < most; ++i)
      STRIDE_TRY(measure(list[i], target_.max_image_bytes, nullptr, &trees_));
    std::vector<Measured> flavors;
    if (options_.flavors) {
      for (const TreeOptions& options : flavors_list())
        STRIDE_TRY(measure(options, max_flavors_bytes, nullptr, &flavors));
    }
    STRIDE_TRY(write_training(trees_));
    STRIDE_TRY(write_training(flavors));
    STRIDE_TRY(compare(&trees_));
    report(rows);
    if (flavors.empty()) return {};
    STRIDE_TRY(compare(&flavors));
    report_flavors(flavors, rows);
    return {};
  }

 private:
  Status prepare(const std::string& data, uint64_t count) {
    progress_.show("making keys and queries: " + name_);
    Result<TreeKeys> keys = make_planner_keys(data, count, options_.seed, parallel_);
    if (!keys.ok()) return keys.status();
    keys_.emplace(std::move(*keys));
    QueryOptions drawn{.queries = options_.queries,
                       .sorted = options_.locality == QueryLocality::sorted,
                       .seed = options_.seed};
    Result<OwnedColumn> queries = keys_->draw_queries(drawn, parallel_);
    if (!queries.ok()) return queries.status();
    queries_ = std::move(*queries);
    STRIDE_TRY(placed_queries_.place(placement_, queries_.view()));
    STRIDE_TRY(placed_keys_.place(placement_, keys_->sorted().view()));
    STRIDE_TRY(ranks_.reserve(placement_, options_.queries));
    // The layout that the planner is going to see.
    TreeOptions any{.strides = {8}};
    Result<std::shared_ptr<ResidentIndex>> index =
        backend_->tree_index().build_index(placed_keys_.view(), KeyOrder::ascending, any);
    if (!index.ok()) return index.status();
    // Loads what the device runs.
    STRIDE_TRY(
        backend_->tree_index().measure_keys((*index)->view().keys, {.samples = 1}, &statistics_));
    Stopwatch watch;
    STRIDE_TRY(backend_->tree_index().measure_keys((*index)->view().keys, {}, &statistics_));
    sample_seconds_ = watch.seconds();
    // This keeps the first tree from paying for a machine that sleeps.
    Measured first{.indexes = {*index}};
    for (Stopwatch warm; warm.seconds() < 0.3;) STRIDE_TRY(search(&first));
    return measure_plain();
  }

  // std::lower_bound on the host, for the same queries.
  Status measure_plain() {
    BulkVector<uint32_t> ranks(options_.queries);
    plain_seconds_ = 1e9;
    for (int repeat = 0; repeat < 3; ++repeat) {
      Stopwatch watch;
      keys_->sorted().find_ranks(queries_.view(), parallel_, ranks);
      plain_seconds_ = std::min(plain_seconds_, watch.seconds());
    }
    return {};
  }

  Status measure_plan(PlannerKind kind, const std::string& name) {
    PlannersChoice choice{.name = name, .plan_seconds = 1e9};
    PlannedTree plan;
    auto run_each = [&](uint64_t n, const auto& body) { backend_->parallel_for(n, 1, body); };
    for (int repeat = 0; repeat < 3; ++repeat) {
      Stopwatch watch;
      plan = plan_tree(statistics_, target_, {}, {.kind = kind, .run_each = run_each});
      choice.plan_seconds = std::min(choice.plan_seconds, watch.seconds());
    }
    choice.plan_seconds += sample_seconds_;
    choice.predicted = plan.nanoseconds;
    plan.options.max_image_bytes = target_.max_image_bytes;
    return measure(plan.options, target_.max_image_bytes, &choice, &trees_);
  }

  // Builds a tree and searches it, unless it is larger than the limit, or there already.
  Status measure(const TreeOptions& options, uint64_t limit, const PlannersChoice* choice,
                 std::vector<Measured>* to) {
    progress_.show(name_ + ": tree " + std::to_string(to->size() + 1));
    Measured tree{.options = options};
    tree.estimate = estimate_tree(statistics_, target_, options);
    if (!choice && tree.estimate.image_bytes > 1.3 * static_cast<double>(limit)) return {};
    tree.predicted = expected_nanoseconds(tree.estimate, statistics_, target_);
    Stopwatch watch;
    Result<std::shared_ptr<ResidentIndex>> index =
        backend_->tree_index().build_index(placed_keys_.view(), KeyOrder::ascending, options);
    tree.build_seconds = watch.seconds();
    if (!index.ok()) {
      bool too_large = index.status().code() == StatusCode::invalid_argument ||
                       index.status().code() == StatusCode::resource_exhausted;
      return too_large ? Status() : index.status();
    }
    tree.indexes = {*index};
    tree.image_bytes = (*index)->view().tree.image_bytes;
    tree.memory_bytes = (*index)->memory_bytes();
    tree.key_bytes = std::min(statistics_.key_bytes, tree.memory_bytes);
    if (tree.image_bytes > limit) return {};
    STRIDE_TRY(describe((*index)->view().tree, &tree.text));
    auto same = std::find_if(to->begin(), to->end(),
                             [&](const Measured& other) { return other.text == tree.text; });
    if (same == to->end()) {
      for (uint32_t call = 0; call <= calls_of_list; ++call) STRIDE_TRY(search(&tree));
      // The first one warms up. The fastest of the others counts, for what disturbs only slows
      // down.
      tree.seconds = {*std::min_element(tree.seconds.begin() + 1, tree.seconds.end())};
      tree.indexes.clear();
      same = to->insert(to->end(), std::move(tree));
    }
    if (choice) same->choices.push_back(*choice);
    return {};
  }

  // Strides, kinds and leaf capacity as built.
  Status describe(const TreeView& tree, std::string* text) {
    alignas(8) std::byte head[tree_head_bytes];
    STRIDE_TRY(backend_->copy(head, tree.image, std::min(tree_head_bytes, tree.image_bytes)));
    *text = text_of(tree_statistics({head, tree.image_bytes}));
    return {};
  }

  Status search(Measured* tree) {
    for (const std::shared_ptr<ResidentIndex>& index : tree->indexes) {
      Stopwatch watch;
      STRIDE_TRY(
          backend_->tree_index().find_ranks(index->view(), placed_queries_.view(), ranks_.all()));
      tree->seconds.push_back(watch.seconds());
    }
    return {};
  }

  // The fastest and those with names in turns, and their answers checked. Leaves these alone.
  Status compare(std::vector<Measured>* trees) {
    std::stable_sort(trees->begin(), trees->end(), [](const Measured& a, const Measured& b) {
      return std::pair(a.choices.empty(), a.median()) < std::pair(b.choices.empty(), b.median());
    });
    measured_ = trees->size();
    within_ = static_cast<double>(std::count_if(trees->begin(), trees->end(), [&](auto& tree) {
      double ns = tree.median() / static_cast<double>(options_.queries) * 1e9;
      return std::abs(tree.predicted / ns - 1) <= 0.2 || std::abs(ns / tree.predicted - 1) <= 0.2;
    }));
    auto named = static_cast<size_t>(std::count_if(
        trees->begin(), trees->end(), [](const Measured& tree) { return !tree.choices.empty(); }));
    if (trees->size() > named + finalists) trees->resize(named + finalists);
    auto bytes = [&] {
      return std::accumulate(trees->begin(), trees->end(), uint64_t{0},
                             [](uint64_t sum, auto& t) { return sum + t.tree_bytes(); });
    };
    while (trees->size() > named + 1 && bytes() > max_compared_bytes) trees->pop_back();
    const uint64_t builds = std::clamp<uint64_t>(max_compared_bytes / bytes(), 1, max_builds);
    for (Measured& tree : *trees) {
      progress_.show(name_ + ": building " + tree.text + " again");
      tree.seconds.clear();
      while (tree.indexes.size() < builds) {
        Result<std::shared_ptr<ResidentIndex>> index = backend_->tree_index().build_index(
            placed_keys_.view(), KeyOrder::ascending, tree.options);
        if (!index.ok()) return index.status();
        tree.indexes.push_back(*index);
      }
    }
    for (unsigned round = 0; round < options_.rounds; ++round) {
      progress_.show(name_ + ": round " + std::to_string(round + 1));
      for (Measured& tree : *trees) STRIDE_TRY(search(&tree));
    }
    for (Measured& tree : *trees) {
      STRIDE_TRY(search(&tree));
      tree.seconds.resize(tree.seconds.size() - tree.indexes.size());
      std::span<const uint32_t> ranks;
      STRIDE_TRY(ranks_.fetch(options_.queries, &ranks));
      STRIDE_TRY(explain(name_ + ", " + tree.text,
                         check_find_ranks(keys_->sorted(), queries_.view(), ranks, parallel_)));
    }
    return {};
  }

  ResultRow row_of(const Measured& tree, const PlannersChoice& choice) const {
    ResultRow row;
    row.workload = "planner";
    row.engine = "stride";
    row.configuration = choice.name;
    row.backend = backend_->name();
    row.phase = name_;
    row.machine = this_machine().to_string();
    row.records = options_.queries;
    row.seconds = tree.median();
    row.raw_bytes = statistics_.key_bytes;
    row.is_database = false;
    row.numbers = {{"keys", static_cast<double>(statistics_.keys)},
                   {"predicted_per_second", 1e9 / choice.predicted},
                   {"image_bytes", static_cast<double>(tree.image_bytes)},
                   {"memory_bytes", static_cast<double>(tree.memory_bytes)},
                   {"predicted_image_bytes", tree.estimate.image_bytes},
                   {"build_seconds", tree.build_seconds},
                   {"limit_bytes", static_cast<double>(target_.max_image_bytes)},
                   {"to_lower_bound", plain_seconds_ / tree.median()},
                   {"seed", static_cast<double>(options_.seed)}};
    if (choice.plan_seconds > 0) {
      row.numbers["plan_seconds"] = choice.plan_seconds;
      row.numbers["sample_seconds"] = sample_seconds_;
    }
    if (tree.indexes.size() > 1) row.numbers["spread_of_builds"] = tree.spread();
    row.texts = {{"tree", tree.text}};
    return row;
  }

  void report(std::vector<ResultRow>* rows) {
    const Measured* best = &trees_[0];
    for (const Measured& tree : trees_) best = tree.median() < best->median() ? &tree : best;
    rows->push_back(row_of(*best, {"best", best->predicted}));
    rows->back().numbers["regret"] = 0;
    for (const Measured& tree : trees_) {
      for (const PlannersChoice& choice : tree.choices) {
        rows->push_back(row_of(tree, choice));
        rows->back().numbers["regret"] = tree.median() / best->median() - 1;
      }
    }
    rows->push_back(row_of(*best, {"list", best->predicted}));
    rows->back().numbers["trees"] = static_cast<double>(measured_);
    rows->back().numbers["within_20_percent"] = within_ / static_cast<double>(measured_);
  }

  void report_flavors(const std::vector<Measured>& trees, std::vector<ResultRow>* rows) {
    auto fastest = [](const Measured& a, const Measured& b) { return a.median() < b.median(); };
    auto expected = [](const Measured& a, const Measured& b) { return a.predicted < b.predicted; };
    const Measured& best = *std::min_element(trees.begin(), trees.end(), fastest);
    const Measured& chosen = *std::min_element(trees.begin(), trees.end(), expected);
    rows->push_back(row_of(chosen, {"flavors", chosen.predicted}));
    rows->back().numbers["regret"] = chosen.median() / best.median() - 1;
    rows->back().texts["best"] = best.text;
  }

  Status write_training(const std::vector<Measured>& trees) {
    if (options_.training.empty()) return {};
    std::ofstream file(options_.training, std::ios::app);
    for (const Measured& tree : trees) {
      nlohmann::json line;
      line["data"] = name_;
      line["seed"] = options_.seed;
      line["device"] = target_.costs.device;
      line["numbers"] = statistics_.are_numbers();
      line["keys"] = statistics_.keys;
      line["key_bytes"] = statistics_.key_bytes;
      line["threads"] = target_.costs.threads;
      line["reference"] = target_.costs.nanoseconds(0);
      line["costs"] = target_.costs.to_text();
      line["work"] = tree.estimate.work;
      line["leaf_keys"] = tree.estimate.leaf_keys;
      line["image_bytes"] = tree.estimate.image_bytes;
      line["built_bytes"] = tree.image_bytes;
      line["memory_bytes"] = tree.memory_bytes;
      line["visits"] = tree.estimate.visits();
      line["root"] = tree.options.strides[0];
      line["tree"] = tree.text;
      line["name"] = tree.choices.empty() ? "" : tree.choices[0].name;
      line["nanoseconds"] = tree.median() / static_cast<double>(options_.queries) * 1e9;
      file << line.dump() << "\n";
    }
    if (file.flush()) return {};
    return Status(StatusCode::io_error, "cannot write").with_file(options_.training);
  }

  const PlannerWorkloadOptions& options_;
  Backend* backend_;
  Placement placement_;
  const Progress& progress_;
  Parallel* parallel_;
  PlanTarget target_;
  std::string name_;
  std::optional<TreeKeys> keys_;
  OwnedColumn queries_;
  PlacedColumn placed_queries_, placed_keys_;
  PlacedResults<uint32_t> ranks_;
  KeyStatistics statistics_;
  double sample_seconds_ = 0, plain_seconds_ = 0;
  std::vector<Measured> trees_;  // after placed_keys_, which they may use
  size_t measured_ = 0;
  double within_ = 0;
};

}  // namespace

Status run_planner(const PlannerWorkloadOptions& options, Backend* backend,
                   const Progress& progress, std::vector<ResultRow>* rows) {
  Parallel parallel(options.threads);
  AccessCosts costs;
  if (!options.access_costs.empty()) {
    Result<AccessCosts> parsed = AccessCosts::parse(options.access_costs);
    if (!parsed.ok()) return parsed.status();
    costs = *parsed;
  }
  for (uint64_t keys : options.keys) {
    for (const std::string& name : options.data) {
      // For each, since the clock of a machine that others use too comes and goes.
      if (options.access_costs.empty()) {
        progress.show("measuring what reads of memory cost");
        STRIDE_TRY(backend->tree_index().measure_costs(&costs));
      }
      PlannerCase one(options, backend, costs, progress, &parallel);
      STRIDE_TRY(one.run(name, keys, rows));
    }
  }
  return {};
}

}  // namespace stride::benchmark

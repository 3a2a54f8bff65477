#include "gpu/plan/tree_planner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "gpu/plan/planner_weights.h"
#include "gpu/tree/nodes/node_kinds.h"
#include "gpu/tree/tree_layout.h"

namespace stride {

namespace {

// The search for trees tries these, with a part of the sampled keys; the best trees found are
// compared by all of them.
constexpr uint32_t leaf_capacities[] = {4, 16, 64};
constexpr uint32_t min_capacity = 4, max_capacity = 64;
constexpr uint32_t searched_samples = 64;
constexpr uint32_t selected_strides[] = {2, 3, 4, 6, 8, 10, 12};
constexpr uint32_t even_strides[] = {4, 6, 8, 12, 14};
constexpr uint32_t widest_root = 26, widest_level = 16;
// Deeper levels have the stride of the last of these. With a choice at each level the program finds
// lists that suit the sample more than the keys: of 65,000 URLs and 64 of them sampled, such lists
// took 1.5 times as long as was expected of them.
constexpr size_t free_levels = 3;
// What is compared by all sampled keys; then so often with trees that are like the best of them.
constexpr size_t kept_trees = 12, kept_even = 2;
constexpr int max_steps = 4;
constexpr double min_gain = 0.005;
// The smaller one of trees that are equally fast is better: twice the memory, counting all that
// searches need, has to gain this much. Nobody minds less than so many bytes.
constexpr double worth_of_memory = 0.03;
constexpr double little_memory = 1 << 16;

// What is asked, for all leaf capacities.
struct Problem {
  const KeyStatistics& statistics;
  const PlanTarget& target;
  const TreeOptions& wanted;
  const PlanSearch& search;
  SampleGroups groups{statistics};
  double max_bytes = 0;  // of a tree, by what the sample says: a level beyond gets fewer bits
  uint32_t followed_up = 0;
  uint32_t one_of = 1;  // the search looks at every one_of-th sample

  Problem(const KeyStatistics& s, const PlanTarget& t, const TreeOptions& w, const PlanSearch& how)
      : statistics(s), target(t), wanted(w), search(how) {
    max_bytes = static_cast<double>(t.max_image_bytes ? t.max_image_bytes : default_image_bytes(s));
    bool few = s.keys < (1 << 16);
    followed_up = how.followed_up ? how.followed_up : few ? 4 : 5;
    if (!how.every_stride) one_of = std::max(1u, s.samples() / searched_samples);
  }

  double rank_of(const TreeEstimate& estimate, double nanoseconds) const {
    return plan_rank(estimate, nanoseconds, statistics, target);
  }
};

// Trees that were found, by rank, the best first.
using FoundTrees = std::vector<std::pair<double, TreeEstimate>>;

// Looks for the best trees of one leaf capacity.
class CapacitySearch {
 public:
  CapacitySearch(const Problem& problem, uint32_t leaf_capacity)
      : problem_(problem),
        none_(problem.groups, problem.target, leaf_capacity, problem.wanted.path_compression,
              problem.one_of) {}

  // Lone roots, and lists that have one stride below the root: few of these are the best, but they
  // are near to it.
  void try_even() {
    for (uint32_t root = root_strides().front(); root > 0 && !problem_.target.costs.device;
         --root) {
      SampledTree tree = none_;
      tree.add_level(root, NodeKind::dense);
      ++considered_;
      if (tree.image_bytes() <= problem_.max_bytes) offer(tree.finish());
    }
    for (uint32_t root : root_strides()) {
      SampledTree start = none_;
      start.add_level(root, NodeKind::dense);
      for (uint32_t stride : even_strides) {
        SampledTree tree = start;
        while (!tree.is_complete() && tree.levels().size() < max_tree_levels &&
               tree.image_bytes() <= problem_.max_bytes && !is_hopeless(tree))
          tree.add_level(stride, problem_.wanted.node_kind);
        ++considered_;
        if (tree.is_complete() && tree.levels().size() > 1 &&
            tree.image_bytes() <= problem_.max_bytes)
          offer(tree.finish());
      }
    }
    even_.assign(found_.begin(), found_.begin() + std::min(found_.size(), kept_even));
  }

  // The dynamic program. best: the rank of a tree that was found, of any capacity.
  void plan(double best) {
    best_ = std::min(best_, best);
    std::vector<Partial> trees, next;
    for (uint32_t stride : root_strides()) extend(none_, stride, &trees);
    while (!trees.empty()) {
      prune(&trees);
      next.clear();
      for (const Partial& partial : trees) {
        const std::vector<LevelEstimate>& levels = partial.tree.levels();
        if (levels.size() == max_tree_levels || is_hopeless(partial.tree)) continue;
        if (problem_.search.every_stride) {
          for (uint32_t s = 1; s <= widest_level; ++s) extend(partial.tree, s, &next);
        } else if (levels.size() < free_levels) {
          for (uint32_t s : selected_strides) extend(partial.tree, s, &next);
        } else {
          // The list goes on like this, or the limit of memory ends it.
          const uint32_t last = levels.back().stride;
          if (!extend(partial.tree, last, &next)) offer(partial.tree.finish());
          if (levels.size() == free_levels && last > 4) extend(partial.tree, last / 2, &next);
        }
      }
      std::swap(trees, next);
    }
  }

  const FoundTrees& found() const { return found_; }
  // The best of try_even().
  const FoundTrees& even() const { return even_; }
  uint32_t considered() const { return considered_; }
  double best() const { return best_; }

 private:
  struct Partial {
    SampledTree tree;
    double promise;  // ns, if it ended here
  };

  // Widest first, so that what is already found is good.
  std::vector<uint32_t> root_strides() const {
    double entries = problem_.max_bytes / sizeof(uint32_t);
    // Many times as many entries as keys help no one.
    if (!problem_.search.every_stride)
      entries = std::min(entries, 16.0 * static_cast<double>(problem_.statistics.keys) + 1024);
    uint32_t widest = std::min(
        static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(entries))) - 1, widest_root);
    std::vector<uint32_t> strides;
    uint32_t step = problem_.search.every_stride || widest <= 8 ? 1 : 2;
    for (uint32_t s = std::max(widest, 1u); s >= 1; s -= std::min(s, step)) strides.push_back(s);
    return strides;
  }

  // False: the limit of memory allows no such level.
  bool extend(const SampledTree& from, uint32_t stride, std::vector<Partial>* to) {
    SampledTree tree = from;
    tree.look_at(stride);
    if (from.levels().empty()) return keep(std::move(tree), NodeKind::dense, to);
    if (problem_.wanted.node_kind != NodeKind::automatic)
      return keep(std::move(tree), problem_.wanted.node_kind, to);
    const size_t before = to->size();
    bool fits = false;
    for (NodeKind kind : worthwhile_kinds(tree.levels().back())) fits |= keep(tree, kind, to);
    // They go on alike, so that the fastest will do, where it is not all that counts.
    if (!problem_.search.every_stride && to->size() > before + 1) {
      auto first = to->begin() + static_cast<ptrdiff_t>(before);
      auto fastest = std::min_element(
          first, to->end(), [](const auto& a, const auto& b) { return a.promise < b.promise; });
      std::swap(*first, *fastest);
      to->erase(first + 1, to->end());
    }
    return fits;
  }

  // All kinds but those that are much larger than another, or larger than one whose visits cost
  // less; those whose visits cost least come last.
  std::vector<NodeKind> worthwhile_kinds(const LevelEstimate& level) const {
    const bool all = problem_.search.every_stride;
    const double much = all ? 1e300 : 6;
    std::vector<std::pair<NodeKind, double>> sizes;
    double least = 1e300;
    each_kind([&](auto nodes) {
      const bool fixed = nodes.starts_of_node(level.stride) > 0;
      double size = fixed ? level.nodes * std::exp2(level.stride) : level.entries;
      size += 2 * level.nodes * static_cast<double>(nodes.words_of_node(level.stride));
      if (all || size <= least) sizes.emplace_back(nodes.kind, size);
      least = std::min(least, size);
    });
    std::vector<NodeKind> kinds;
    for (auto at = sizes.rbegin(); at != sizes.rend(); ++at)
      if (at->second <= much * least) kinds.push_back(at->first);
    return kinds;
  }

  bool keep(SampledTree tree, NodeKind kind, std::vector<Partial>* to) {
    ++considered_;
    tree.take_kind(kind);
    if (tree.image_bytes() > problem_.max_bytes) return false;
    const bool root = tree.levels().size() == 1;
    // A device has a directory in place of a lone root: the one that suits the host will do. What a
    // tree takes at least says nothing of it.
    const bool directory = root && problem_.target.costs.device;
    if (directory && tree.levels()[0].stride == lone_root()) offer(tree.finish());
    if (is_hopeless(tree)) return true;
    TreeEstimate estimate = tree.finish();
    double promise = estimate.nanoseconds;
    const bool complete = tree.is_complete();
    if (!directory && (complete || root || problem_.search.every_stride))
      offer(std::move(estimate));
    if (!complete) to->push_back({std::move(tree), promise});
    return true;
  }

  // Takes the one of root_strides() that has about 8 keys an entry.
  uint32_t lone_root() const {
    std::vector<uint32_t> strides = root_strides();
    auto wanted = static_cast<uint32_t>(std::bit_width(problem_.statistics.keys / 8));
    auto at = std::find_if(strides.begin(), strides.end(), [&](uint32_t s) { return s <= wanted; });
    return at == strides.end() ? strides.back() : *at;
  }

  bool is_hopeless(const SampledTree& tree) const { return tree.min_nanoseconds() > best_; }

  void offer(TreeEstimate estimate) {
    double rank = problem_.rank_of(estimate, estimate.nanoseconds);
    best_ = std::min(best_, rank);
    if (found_.size() == kept_trees && rank >= found_.back().first) return;
    auto at = std::upper_bound(found_.begin(), found_.end(), rank,
                               [](double r, const auto& entry) { return r < entry.first; });
    found_.insert(at, {rank, std::move(estimate)});
    if (found_.size() > kept_trees) found_.pop_back();
  }

  // Drops what another tree in the same state beats, and then all but the most promising.
  void prune(std::vector<Partial>* trees) const {
    std::stable_sort(trees->begin(), trees->end(),
                     [](const Partial& a, const Partial& b) { return a.promise < b.promise; });
    std::vector<uint64_t> states;
    for (const Partial& partial : *trees) states.push_back(partial.tree.state());
    std::vector<Partial> left;
    for (size_t i = 0; i < trees->size() && left.size() < problem_.followed_up; ++i) {
      bool beaten = false;
      for (size_t k = 0; k < i && !beaten; ++k) {
        beaten = states[k] == states[i] && (*trees)[k].tree.beats((*trees)[i].tree);
      }
      if (!beaten) left.push_back(std::move((*trees)[i]));
    }
    *trees = std::move(left);
  }

  const Problem& problem_;
  const SampledTree none_;  // of no levels
  double best_ = 1e300;     // rank: what takes longer at the least is not followed up
  FoundTrees found_, even_;
  uint32_t considered_ = 0;
};

class Planner {
 public:
  explicit Planner(const Problem& problem) : problem_(problem) {}

  PlannedTree plan() {
    std::vector<uint32_t> capacities(std::begin(leaf_capacities), std::end(leaf_capacities));
    if (problem_.wanted.leaf_capacity) capacities = {problem_.wanted.leaf_capacity};
    std::vector<CapacitySearch> searches;
    for (uint32_t capacity : capacities) searches.emplace_back(problem_, capacity);
    if (!problem_.search.every_stride)
      each(searches.size(), [&](uint64_t i) { searches[i].try_even(); });
    double best = 1e300;
    for (const CapacitySearch& search : searches) best = std::min(best, search.best());
    each(searches.size(), [&](uint64_t i) { searches[i].plan(best); });
    FoundTrees found;
    for (const CapacitySearch& search : searches) {
      found.insert(found.end(), search.found().begin(), search.found().end());
      plan_.considered += search.considered();
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    found.resize(std::min(found.size(), kept_trees));
    // What a part of the sample puts first may all be alike, and all of it know better.
    for (const CapacitySearch& search : searches)
      found.insert(found.end(), search.even().begin(), search.even().end());
    choose(found);
    return std::move(plan_);
  }

 private:
  template <class Body>
  void each(size_t n, const Body& body) const {
    auto range = [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) body(i);
    };
    problem_.search.run_each ? problem_.search.run_each(n, range) : range(0, n);
  }

  // The best of the trees that were found, and of those like it, by all that is known of the keys.
  void choose(const FoundTrees& found) {
    plan_.kind =
        problem_.search.kind == PlannerKind::automatic ? better_planner : problem_.search.kind;
    std::vector<TreeOptions> trees;
    for (const auto& [rank, estimate] : found) trees.push_back(options_of(estimate));
    // Where nothing is found, a root of two entries.
    if (found.empty()) {
      TreeOptions small{.strides = {1}, .leaf_capacity = problem_.wanted.leaf_capacity};
      if (small.leaf_capacity == 0) small.leaf_capacity = min_capacity;
      small.path_compression = problem_.wanted.path_compression;
      small.kinds = {NodeKind::dense};
      trees.push_back(std::move(small));
    }
    consider(trees, 0);
    for (int step = 0; !problem_.search.every_stride && step < max_steps; ++step)
      if (!consider(like(plan_.options, plan_.estimate.levels.size()), min_gain)) break;
  }

  // False: none of them is better than the one that is chosen, by this gain.
  bool consider(const std::vector<TreeOptions>& trees, double gain) {
    struct Judged {
      TreeEstimate estimate;
      double nanoseconds = 0, rank = 0;
    };
    std::vector<Judged> judged(trees.size());
    each(trees.size(), [&](uint64_t i) {
      TreeEstimate estimate = estimate_tree(problem_.groups, problem_.target, trees[i]);
      double ns = estimate.nanoseconds;
      if (plan_.kind == PlannerKind::learned)
        ns *= learned_correction(estimate, problem_.statistics, problem_.target);
      double rank = problem_.rank_of(estimate, ns);
      if (estimate.image_bytes > problem_.max_bytes) rank += 1e9 * estimate.image_bytes;
      judged[i] = {std::move(estimate), ns, rank};
    });
    plan_.considered += static_cast<uint32_t>(trees.size());
    bool better = false;
    for (size_t i = 0; i < trees.size(); ++i) {
      if (judged[i].rank >= least_ * (1 - gain)) continue;
      better = true;
      least_ = judged[i].rank;
      plan_.nanoseconds = judged[i].nanoseconds;
      plan_.estimate = std::move(judged[i].estimate);
      plan_.options = trees[i];
    }
    return better;
  }

  // Trees that differ in one thing from one of so many levels.
  std::vector<TreeOptions> like(const TreeOptions& options, size_t levels) const {
    std::vector<TreeOptions> trees;
    auto with_capacity = [&](uint32_t capacity) {
      if (problem_.wanted.leaf_capacity || capacity < min_capacity || capacity > max_capacity)
        return;
      trees.push_back(options);
      trees.back().leaf_capacity = capacity;
    };
    with_capacity(options.leaf_capacity / 2);
    with_capacity(options.leaf_capacity * 2);
    // Where memory ended the list, one level more.
    if (levels > 1 && options.strides.size() == levels && levels < max_tree_levels) {
      trees.push_back(options);
      trees.back().strides.push_back(options.strides.back());
      trees.back().kinds.push_back(options.kinds.back());
    }
    // The deeper levels are alike.
    auto each_from = [&](size_t level, auto change) {
      TreeOptions other = options;
      const size_t end = level < free_levels ? level + 1 : other.strides.size();
      for (size_t i = level; i < end; ++i)
        if (!change(&other.strides[i], &other.kinds[i])) return;
      trees.push_back(std::move(other));
    };
    const size_t groups = std::min(levels, free_levels + 1);
    for (size_t level = 0; level < groups; ++level) {
      const uint32_t widest = level == 0 ? widest_root : widest_level;
      each_from(level, [&](uint32_t* stride, NodeKind*) { return ++*stride <= widest; });
      each_from(level, [&](uint32_t* stride, NodeKind*) { return --*stride > 0; });
      if (level == 0 || problem_.wanted.node_kind != NodeKind::automatic) continue;
      const NodeKind now = options.kinds[level];
      each_kind([&](auto nodes) {
        if (nodes.kind == now) return;
        each_from(level, [&](uint32_t*, NodeKind* kind) {
          *kind = nodes.kind;
          return true;
        });
      });
    }
    return trees;
  }

  // Where the levels split all that was sampled, more like the last do so for what was not.
  TreeOptions options_of(const TreeEstimate& estimate) const {
    TreeOptions options = estimate.options(problem_.wanted.path_compression);
    const bool goes_on =
        estimate.complete && options.strides.size() > 1 && !problem_.search.every_stride;
    while (goes_on && options.strides.size() < max_tree_levels) {
      options.strides.push_back(options.strides.back());
      options.kinds.push_back(options.kinds.back());
    }
    return options;
  }

  const Problem& problem_;
  double least_ = 1e300;  // rank of plan_
  PlannedTree plan_;
};

}  // namespace

double plan_rank(const TreeEstimate& estimate, double nanoseconds, const KeyStatistics& statistics,
                 const PlanTarget& target) {
  double keys = little_memory + searched_key_bytes(statistics, target.costs.device);
  return nanoseconds *
         (1 + worth_of_memory * std::log2((little_memory + estimate.memory_bytes) / keys));
}

PlannedTree plan_tree(const KeyStatistics& statistics, const PlanTarget& target,
                      const TreeOptions& wanted, const PlanSearch& search) {
  const Problem problem(statistics, target, wanted, search);
  return Planner(problem).plan();
}

TreeOptions with_strides(const KeyStatistics& statistics, const AccessCosts& costs,
                         const TreeOptions& options, const RunEach& run_each) {
  PlanTarget target{.costs = costs, .max_image_bytes = options.max_image_bytes};
  if (target.max_image_bytes == 0) target.max_image_bytes = default_image_bytes(statistics);
  TreeOptions planned = plan_tree(statistics, target, options, {.run_each = run_each}).options;
  planned.max_image_bytes = target.max_image_bytes;
  return planned;
}

double expected_nanoseconds(const TreeEstimate& estimate, const KeyStatistics& statistics,
                            const PlanTarget& target) {
  double ns = estimate.nanoseconds;
  if (better_planner == PlannerKind::learned)
    ns *= learned_correction(estimate, statistics, target);
  return ns;
}

}  // namespace stride

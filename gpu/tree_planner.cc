#include "gpu/tree_planner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "gpu/planner_weights.h"
#include "gpu/tree_layout.h"

namespace stride {

namespace {

constexpr uint32_t leaf_capacities[] = {4, 8, 16, 32, 64};
constexpr uint32_t selected_strides[] = {2, 3, 4, 6, 8, 10, 12};
constexpr uint32_t widest_root = 26, widest_level = 16;
// Deeper levels have the stride of the last of these. With a choice at each level the program finds
// lists that suit the sample more than the keys: of 65,000 URLs and 64 of them sampled, such lists
// took 1.5 times as long as was expected of them.
constexpr size_t free_levels = 3;
// What the perceptron may choose from.
constexpr size_t kept_trees = 24;
// Of trees that are equally fast the smaller one: a tree as large as may be has to gain this much.
constexpr double worth_of_memory = 0.02;

// Of the limit of memory: for what a sample says of the size of a tree is not exact, and a level
// beyond the limit is not built.
constexpr double room_for_error = 0.9;

class Planner {
 public:
  Planner(const KeyStatistics& statistics, const PlanTarget& target, const TreeOptions& wanted,
          const PlanSearch& search)
      : statistics_(statistics),
        groups_(statistics),
        target_(target),
        wanted_(wanted),
        search_(search) {
    most_bytes_ = static_cast<double>(target.max_image_bytes ? target.max_image_bytes
                                                             : default_image_bytes(statistics));
    most_bytes_ *= room_for_error;
    bool few = statistics.keys < (1 << 16);
    followed_up_ = search.followed_up ? search.followed_up : few ? 3 : 4;
  }

  PlannedTree plan() {
    if (wanted_.leaf_capacity) {
      plan_with(wanted_.leaf_capacity);
    } else {
      for (uint32_t capacity : leaf_capacities) plan_with(capacity);
    }
    return choose();
  }

 private:
  struct Partial {
    SampledTree tree;
    double promise;  // ns, if it ended here
  };

  void plan_with(uint32_t leaf_capacity) {
    std::vector<Partial> trees, next;
    SampledTree none(groups_, target_, leaf_capacity, wanted_.path_compression);
    for (uint32_t stride : root_strides()) extend(none, stride, &trees);
    while (!trees.empty()) {
      prune(&trees);
      next.clear();
      for (const Partial& partial : trees) {
        const std::vector<LevelEstimate>& levels = partial.tree.levels();
        if (levels.size() == max_tree_levels || is_hopeless(partial.tree)) continue;
        if (search_.every_stride) {
          for (uint32_t s = 1; s <= widest_level; ++s) extend(partial.tree, s, &next);
        } else if (levels.size() >= free_levels) {
          extend(partial.tree, levels.back().stride, &next);
        } else {
          for (uint32_t s : selected_strides) extend(partial.tree, s, &next);
        }
      }
      std::swap(trees, next);
    }
  }

  // Widest first, so that what is already found is good.
  std::vector<uint32_t> root_strides() const {
    double entries = most_bytes_ / sizeof(uint32_t);
    // Many times as many entries as keys help no one.
    if (!search_.every_stride)
      entries = std::min(entries, 16.0 * static_cast<double>(statistics_.keys) + 1024);
    uint32_t widest = std::min(
        static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(entries))) - 1, widest_root);
    std::vector<uint32_t> strides;
    uint32_t step = search_.every_stride || widest <= 8 ? 1 : 2;
    for (uint32_t s = std::max(widest, 1u); s >= 1; s -= std::min(s, step)) strides.push_back(s);
    return strides;
  }

  void extend(const SampledTree& from, uint32_t stride, std::vector<Partial>* to) {
    SampledTree tree = from;
    tree.look_at(stride);
    if (from.levels().empty()) return keep(std::move(tree), NodeKind::dense, to);
    if (wanted_.node_kind != NodeKind::automatic)
      return keep(std::move(tree), wanted_.node_kind, to);
    const LevelEstimate& level = tree.levels().back();
    // Both kinds, unless one is much larger than the other.
    double dense = level.nodes * std::exp2(stride);
    double bitmap = level.entries + 2 * level.nodes * static_cast<double>(words_of_node(stride));
    constexpr double much = 6;
    const size_t before = to->size();
    if (bitmap <= dense && dense <= much * bitmap) keep(tree, NodeKind::bitmap, to);
    keep(std::move(tree), dense <= much * bitmap ? NodeKind::dense : NodeKind::bitmap, to);
    // The two go on alike, so that the faster one will do, where it is not all that counts.
    if (!search_.every_stride && to->size() == before + 2) {
      if (to->back().promise < (*to)[before].promise) std::swap(to->back(), (*to)[before]);
      to->pop_back();
    }
  }

  void keep(SampledTree tree, NodeKind kind, std::vector<Partial>* to) {
    ++considered_;
    tree.take_kind(kind);
    if (tree.image_bytes() > most_bytes_ || is_hopeless(tree)) return;
    TreeEstimate estimate = tree.finish();
    double promise = estimate.nanoseconds;
    // A device has a directory in place of a lone root: the one that suits the host will do.
    bool any_root = target_.costs.device && tree.levels().size() == 1;
    if (!any_root || tree.levels()[0].stride == lone_root()) offer(std::move(estimate));
    if (!tree.is_complete()) to->push_back({std::move(tree), promise});
  }

  // Of root_strides() the one of about 8 keys an entry.
  uint32_t lone_root() const {
    std::vector<uint32_t> strides = root_strides();
    auto wanted = static_cast<uint32_t>(std::bit_width(statistics_.keys / 8));
    auto at = std::find_if(strides.begin(), strides.end(), [&](uint32_t s) { return s <= wanted; });
    return at == strides.end() ? strides.back() : *at;
  }

  bool is_hopeless(const SampledTree& tree) const { return tree.least_nanoseconds() > best_; }

  double rank_of(const TreeEstimate& estimate, double nanoseconds) const {
    return nanoseconds * (1 + worth_of_memory * estimate.image_bytes / most_bytes_);
  }

  void offer(TreeEstimate estimate) {
    double rank = rank_of(estimate, estimate.nanoseconds);
    best_ = std::min(best_, estimate.nanoseconds);
    if (kept_.size() == kept_trees && rank >= kept_.back().first) return;
    auto at = std::upper_bound(kept_.begin(), kept_.end(), rank,
                               [](double r, const auto& entry) { return r < entry.first; });
    kept_.insert(at, {rank, std::move(estimate)});
    if (kept_.size() > kept_trees) kept_.pop_back();
  }

  // Drops what another tree in the same state beats, and then all but the most promising.
  void prune(std::vector<Partial>* trees) const {
    std::stable_sort(trees->begin(), trees->end(),
                     [](const Partial& a, const Partial& b) { return a.promise < b.promise; });
    std::vector<uint64_t> states;
    for (const Partial& partial : *trees) states.push_back(partial.tree.state());
    std::vector<Partial> left;
    for (size_t i = 0; i < trees->size() && left.size() < followed_up_; ++i) {
      bool beaten = false;
      for (size_t k = 0; k < i && !beaten; ++k) {
        const SampledTree& a = (*trees)[k].tree;
        const SampledTree& b = (*trees)[i].tree;
        beaten = states[k] == states[i] && a.nanoseconds() <= b.nanoseconds() &&
                 a.image_bytes() <= b.image_bytes();
      }
      if (!beaten) left.push_back(std::move((*trees)[i]));
    }
    *trees = std::move(left);
  }

  PlannedTree choose() {
    PlannedTree plan;
    plan.considered = considered_;
    plan.kind = search_.kind == PlannerKind::automatic ? better_planner(target_.costs.device)
                                                       : search_.kind;
    double least = 1e300;
    for (auto& [rank, estimate] : kept_) {
      double ns = estimate.nanoseconds;
      if (plan.kind == PlannerKind::learned)
        ns *= learned_correction(estimate, statistics_, target_);
      double corrected = rank_of(estimate, ns);
      if (corrected >= least) continue;
      least = corrected;
      plan.nanoseconds = ns;
      plan.estimate = estimate;
    }
    if (kept_.empty()) {
      // Nothing fits into the limit: a root of two entries.
      SampledTree tree(groups_, target_,
                       wanted_.leaf_capacity ? wanted_.leaf_capacity : leaf_capacities[0],
                       wanted_.path_compression);
      tree.add_level(1, NodeKind::dense);
      plan.estimate = tree.finish();
      plan.nanoseconds = plan.estimate.nanoseconds;
    }
    plan.options = plan.estimate.options(wanted_.path_compression);
    // Where the levels split all that was sampled, further ones do so for what was not.
    const bool split_all = plan.estimate.complete && plan.estimate.levels.size() > 1;
    while (split_all && plan.options.strides.size() < max_tree_levels) {
      plan.options.strides.push_back(plan.options.strides.back());
      plan.options.kinds.push_back(wanted_.node_kind);
    }
    return plan;
  }

  const KeyStatistics& statistics_;
  SampleGroups groups_;
  const PlanTarget& target_;
  const TreeOptions& wanted_;
  const PlanSearch& search_;
  double most_bytes_;
  uint32_t followed_up_;
  double best_ = 1e300;
  std::vector<std::pair<double, TreeEstimate>> kept_;  // the best first
  uint32_t considered_ = 0;
};

}  // namespace

PlannedTree plan_tree(const KeyStatistics& statistics, const PlanTarget& target,
                      const TreeOptions& wanted, const PlanSearch& search) {
  return Planner(statistics, target, wanted, search).plan();
}

TreeOptions with_strides(const KeyStatistics& statistics, const AccessCosts& costs,
                         const TreeOptions& options) {
  PlanTarget target{.costs = costs, .max_image_bytes = options.max_image_bytes};
  if (target.max_image_bytes == 0) target.max_image_bytes = default_image_bytes(statistics);
  TreeOptions planned = plan_tree(statistics, target, options).options;
  planned.max_image_bytes = target.max_image_bytes;
  return planned;
}

double expected_nanoseconds(const TreeEstimate& estimate, const KeyStatistics& statistics,
                            const PlanTarget& target) {
  double ns = estimate.nanoseconds;
  if (better_planner(target.costs.device) == PlannerKind::learned)
    ns *= learned_correction(estimate, statistics, target);
  return ns;
}

// docs/planner.md has the figures: on a device the perceptron learned nothing of use, and on a host
// that it was not trained on it chose worse.
PlannerKind better_planner(bool) { return PlannerKind::optimal; }

}  // namespace stride

// Chooses strides, node kinds and leaf capacity of a tree: those with which a search takes the
// least time, within a limit of memory.
//
//   PlannedTree plan = plan_tree(statistics, {.costs = costs});
//   backend->tree_index().build_tree(column, plan.options, &image);
//
// A dynamic program over the levels. Its states are the bits that each sampled key has used; where
// no bits are skipped that is one number, the bit position of the level, and the program is exact.
// A way to a state is dropped where another one beats it in both time and memory, with the same in
// its leaves: what follows costs either the same, or, as more memory makes reads slower, no less.
// With path compression lists of strides seldom meet in one state, and only the most promising of
// each number of levels are followed up; what is to be beaten are lists of one stride below the
// root. All that with a part of the sample. The best trees are then compared by all of it, and the
// best of these with such as differ from it in one stride, kind or capacity, as long as that helps.
//
// PlannerKind::learned compares by times that a small perceptron has corrected, which was trained
// on measured ones (planner_weights.h).
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/plan/tree_estimate.h"
#include "gpu/tree/choose_strides.h"

namespace stride {

enum class PlannerKind : uint8_t { automatic, optimal, learned };

struct PlanSearch {
  PlannerKind kind = PlannerKind::automatic;  // the one that was found better
  uint32_t followed_up = 0;                   // trees of each number of levels; 0: a few
  bool every_stride = false;                  // else a selection
  RunEach run_each;                           // none: one thread; the plan is the same
};

struct PlannedTree {
  TreeOptions options;  // strides, kinds and leaf capacity given
  TreeEstimate estimate;
  // That the tree takes, as the planner that chose it has it: the estimate's, or corrected.
  double nanoseconds = 0;
  PlannerKind kind = PlannerKind::optimal;
  uint32_t considered = 0;  // trees
};

// wanted: its leaf capacity and node kind, where given, and its path compression are kept.
PlannedTree plan_tree(const KeyStatistics& statistics, const PlanTarget& target,
                      const TreeOptions& wanted = {}, const PlanSearch& search = {});

// Trees are compared by this: the time, and 3 % of it more for each time that a tree doubles the
// memory that searches need.
double plan_rank(const TreeEstimate& estimate, double nanoseconds, const KeyStatistics& statistics,
                 const PlanTarget& target);

// options with strides, kinds and leaf capacity where they are open: the plan for batches of random
// queries on a machine with these costs, within options.max_image_bytes or default_image_bytes().
TreeOptions with_strides(const KeyStatistics& statistics, const AccessCosts& costs,
                         const TreeOptions& options, const RunEach& run_each);

// The time of a search in a tree as the better planner expects it: the estimate's, or corrected.
double expected_nanoseconds(const TreeEstimate& estimate, const KeyStatistics& statistics,
                            const PlanTarget& target);

// `automatic` stands for this kind of planner, on either backend: docs/results/planner.md has the
// figures. What the perceptron learns carries over to other keys only in part.
inline constexpr PlannerKind better_planner = PlannerKind::optimal;

}  // namespace stride

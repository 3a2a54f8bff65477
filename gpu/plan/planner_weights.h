// What the planner has learned of how long searches take: benchmark/tools/train_planner.py makes the
// numbers (planner_weights.inc) from measured ones.
#pragma once

#include "gpu/plan/tree_estimate.h"

namespace stride {

// One of searches on the host or a device, of numbers or of other keys.
struct PlannerModel {
  static constexpr uint32_t inputs = 23, hidden = 12;

  // Read cost of the smallest size (AccessCosts) of the machine where the rest was measured: what
  // is not memory scales with it.
  double reference_nanoseconds;
  // Nanoseconds of each kind of work (of memory: a factor), of all threads together.
  double cost[search_works];
  // The logarithm of measured over predicted time: a perceptron with two hidden layers (tanh).
  float first[hidden][inputs + 1];  // the last of each: the bias
  float second[hidden][hidden + 1];
  float last[hidden + 1];
};

const PlannerModel& planner_model(bool device, bool numbers);

// What the perceptron is shown of a tree. Shares of the predicted time, and logarithms.
std::array<float, PlannerModel::inputs> learned_inputs(const TreeEstimate& estimate,
                                                       const KeyStatistics& statistics,
                                                       const PlanTarget& target);
// The factor by which it corrects the predicted time.
double learned_correction(const TreeEstimate& estimate, const KeyStatistics& statistics,
                          const PlanTarget& target);

}  // namespace stride

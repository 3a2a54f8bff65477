#include "gpu/plan/planner_weights.h"

#include <algorithm>
#include <cmath>

namespace stride {

namespace {

// Host numbers, host bytes, device numbers, device bytes.
constexpr PlannerModel models[] = {
#include "gpu/plan/planner_weights.inc"
};
static_assert(std::size(models) == 4);

template <size_t outputs, size_t inputs>
void layer(const float (&weights)[outputs][inputs], const float* in, float* out) {
  for (size_t o = 0; o < outputs; ++o) {
    float sum = weights[o][inputs - 1];
    for (size_t i = 0; i + 1 < inputs; ++i) sum += weights[o][i] * in[i];
    out[o] = std::tanh(sum);
  }
}

float log2_share(double x, double whole) {
  return static_cast<float>(std::log2(std::max(x, 1e-3)) / whole);
}

// Work that is a time already, of this machine's memory.
bool is_time(size_t work) {
  return work == static_cast<size_t>(SearchWork::memory) ||
         work == static_cast<size_t>(SearchWork::memory_beside);
}

// What is not memory takes this many times as long as on the machine of the model.
double compute_scale(const PlannerModel& model, const PlanTarget& target) {
  const AccessCosts& costs = target.costs;
  double scale = costs.nanoseconds(0) / model.reference_nanoseconds;
  if (costs.device) return scale;
  return scale * costs.threads / target.threads();
}

}  // namespace

const PlannerModel& planner_model(bool device, bool numbers) {
  return models[2 * device + !numbers];
}

double nanoseconds_of(const std::array<double, search_works>& work, const KeyStatistics& statistics,
                      const PlanTarget& target) {
  const PlannerModel& model = planner_model(target.costs.device, statistics.are_numbers());
  double time = 0, computing = 0;
  for (size_t i = 0; i < search_works; ++i)
    (is_time(i) ? time : computing) += model.cost[i] * work[i];
  return compute_scale(model, target) * computing + time;
}

std::array<float, PlannerModel::inputs> learned_inputs(const TreeEstimate& estimate,
                                                       const KeyStatistics& statistics,
                                                       const PlanTarget& target) {
  const PlannerModel& model = planner_model(target.costs.device, statistics.are_numbers());
  double scale = compute_scale(model, target), whole = std::max(estimate.nanoseconds, 1e-9);
  std::array<float, PlannerModel::inputs> in{};
  size_t n = 0;
  for (size_t i = 0; i < search_works; ++i) {
    double part = model.cost[i] * estimate.work[i] * (is_time(i) ? 1 : scale);
    in[n++] = static_cast<float>(part / whole);
  }
  auto keys = static_cast<double>(std::max<uint64_t>(statistics.keys, 1));
  in[n++] = log2_share(keys, 16);
  in[n++] = log2_share(static_cast<double>(statistics.key_bytes) / keys, 4);
  in[n++] = log2_share(estimate.leaf_keys, 4);
  in[n++] = log2_share(estimate.image_bytes / keys, 4);
  in[n++] = static_cast<float>(estimate.visits() / 4);
  in[n++] = estimate.levels.empty() ? 0 : static_cast<float>(estimate.levels[0].stride / 16.0);
  in[n++] = log2_share(estimate[SearchWork::leaf_reads], 2);
  in[n++] = log2_share(estimate[SearchWork::memory] / whole, 4);
  static_assert(search_works + 8 == PlannerModel::inputs);
  return in;
}

double learned_correction(const TreeEstimate& estimate, const KeyStatistics& statistics,
                          const PlanTarget& target) {
  const PlannerModel& model = planner_model(target.costs.device, statistics.are_numbers());
  auto in = learned_inputs(estimate, statistics, target);
  float first[PlannerModel::hidden], second[PlannerModel::hidden];
  layer(model.first, in.data(), first);
  layer(model.second, first, second);
  float sum = model.last[PlannerModel::hidden];
  for (uint32_t i = 0; i < PlannerModel::hidden; ++i) sum += model.last[i] * second[i];
  return std::exp(std::clamp(sum, -1.0f, 1.0f));
}

}  // namespace stride

#include "gpu/match/match_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stride {

namespace {

constexpr uint32_t widest_bitmap = 28;
constexpr uint32_t widest_list = 16;  // slots are 16 bits
constexpr uint32_t narrowest = 4;

// What passing a level is worth, in bytes of the tree for each boundary that has bits behind it:
// boundaries stand for the addresses that will be looked up.
constexpr double bitmap_step = 16;
constexpr double list_step = 16;
constexpr double list_halving = 2;
constexpr double entry_bytes = 3;
// A few boundaries are passed as often as so many.
constexpr double min_boundaries = 8192;

}  // namespace

std::vector<MatchStride> plan_matches(const MatchCounts& counts, uint32_t address_bits) {
  struct Choice {
    double cost = 0;
    MatchStride level{};
  };
  Choice best[max_tree_address_bits + 1];
  double boundaries = 0;
  for (int64_t ending : counts.ending) boundaries += static_cast<double>(ending);
  double weight = std::max(min_boundaries / std::max(boundaries, 1.0), 1.0);
  double inside = 0;  // boundaries with bits set at `depth` or behind
  for (uint32_t depth = address_bits; depth-- > 0;) {
    inside += static_cast<double>(counts.ending[depth + 1]);
    double nodes = static_cast<double>(std::max<int64_t>(counts.nodes[depth], depth == 0));
    Choice& choice = best[depth];
    if (nodes == 0) continue;  // nothing to tell apart: costs nothing and has no levels
    choice.cost = std::numeric_limits<double>::infinity();
    double exact = 0;
    for (uint32_t stride = 1; stride <= std::min(widest_bitmap, address_bits - depth); ++stride) {
      exact += static_cast<double>(counts.ending[depth + stride]);
      if (stride < narrowest && stride < address_bits - depth) continue;
      uint32_t next = depth + stride;
      double children = next < address_bits ? static_cast<double>(counts.nodes[next]) : 0;
      double entries = nodes + exact + 2 * children;
      double rest = next < address_bits ? best[next].cost : 0;
      auto consider = [&](MatchKind kind, double bytes, double step) {
        double cost = bytes + entries * entry_bytes + inside * weight * step + rest;
        if (cost < choice.cost) choice = {cost, {kind, stride}};
      };
      consider(MatchKind::bitmap,
               nodes * static_cast<double>(blocks_of(stride)) * sizeof(MatchBlock), bitmap_step);
      if (depth > 0 && stride <= widest_list) {
        consider(MatchKind::list, nodes * 4 + entries * 2,
                 list_step + list_halving * std::log2(entries / nodes));
      }
    }
  }
  std::vector<MatchStride> levels;
  for (uint32_t depth = 0; depth < address_bits && best[depth].level.stride;
       depth += levels.back().stride) {
    levels.push_back(best[depth].level);
  }
  return levels;
}

}  // namespace stride

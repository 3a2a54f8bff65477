#include "gpu/tree_plan.h"

#include <algorithm>
#include <bit>

namespace stride {

namespace {

uint32_t floor_log2(uint64_t x) { return static_cast<uint32_t>(std::bit_width(x | 1)) - 1; }

// Bytes of keys that a leaf may hold on average, where it is searched as a whole: 16-byte keys were
// found a third faster with leaves of 4 than of 8. Keys of 8 bytes have one line of their leaf
// read.
constexpr uint64_t leaf_bytes = 96;
constexpr uint64_t most_leaf_keys = 8;
constexpr uint64_t least_leaf_keys = 4;
constexpr uint32_t capacity_per_leaf_key = 4;
// A root of 2^26 entries is 256 MiB.
constexpr uint32_t widest_root = 26;
constexpr uint32_t widest_level = 24;

}  // namespace

TreePlan plan_leaves(const TreeOptions& options, uint64_t keys, uint64_t key_bytes) {
  TreePlan plan;
  plan.budget_bytes = std::max(keys + keys / 2, key_bytes / 8);
  if (options.leaf_capacity) {
    plan.leaf_capacity = options.leaf_capacity;
    plan.leaf_keys = std::max(1u, options.leaf_capacity / capacity_per_leaf_key);
    return plan;
  }
  uint64_t average = keys ? std::max<uint64_t>(key_bytes / keys, 1) : 1;
  uint64_t leaf_keys = std::clamp(leaf_bytes / average, least_leaf_keys, most_leaf_keys);
  plan.leaf_keys = static_cast<uint32_t>(std::bit_floor(leaf_keys));
  plan.leaf_capacity = plan.leaf_keys * capacity_per_leaf_key;
  return plan;
}

uint32_t plan_root_stride(const TreePlan& plan, uint64_t keys,
                          const SharedBitsHistogram& histogram) {
  uint32_t widest = std::clamp(floor_log2(keys / plan.leaf_keys), 1u, widest_root);
  uint64_t prefixes[max_stride + 1] = {1};  // of each number of bits
  for (uint32_t bits = 1; bits <= widest; ++bits) {
    prefixes[bits] = prefixes[bits - 1] + histogram.pairs[bits - 1];
  }
  uint32_t stride = 1;
  while (prefixes[stride] * 4 < prefixes[widest] * 3) ++stride;
  return stride;
}

uint32_t plan_stride(const TreePlan& plan, uint64_t keys, const Oversized& oversized,
                     uint64_t spent_bytes) {
  if (oversized.nodes == 0 || spent_bytes >= plan.budget_bytes) return 0;
  constexpr uint64_t negligible_share = 64;
  constexpr uint64_t tolerable_capacities = 16;
  if (oversized.keys < keys / negligible_share &&
      oversized.largest <= tolerable_capacities * plan.leaf_capacity) {
    return 0;
  }
  uint64_t average = oversized.keys / oversized.nodes;
  return std::clamp(floor_log2(average / plan.leaf_keys), 1u, widest_level);
}

NodeKind plan_kind(uint64_t nodes, uint32_t stride, uint64_t entries) {
  uint64_t dense = nodes * ((uint64_t{1} << stride) + 1) * sizeof(uint32_t);
  uint64_t bitmap =
      nodes * words_of_node(stride) * sizeof(RankedWord) + (entries + nodes) * sizeof(uint32_t);
  return dense <= 2 * bitmap ? NodeKind::dense : NodeKind::bitmap;
}

}  // namespace stride

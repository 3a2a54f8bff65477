#include "gpu/tree/tree_plan.h"

#include <algorithm>
#include <bit>

#include "gpu/tree/nodes/node_kinds.h"

namespace stride {

namespace {

// Bytes of keys that a leaf may hold on average, where it is searched as a whole: 16-byte keys were
// found a third faster with leaves of 4 than of 8. Keys of 8 bytes have one line of their leaf
// read.
constexpr uint64_t leaf_bytes = 96;
constexpr uint64_t max_leaf_keys = 8;
constexpr uint64_t min_leaf_keys = 4;
constexpr uint32_t capacity_per_leaf_key = 4;

}  // namespace

uint32_t plan_leaf_capacity(const TreeOptions& options, uint64_t keys, uint64_t key_bytes) {
  if (options.leaf_capacity) return options.leaf_capacity;
  uint64_t average = keys ? std::max<uint64_t>(key_bytes / keys, 1) : 1;
  uint64_t leaf_keys = std::clamp(leaf_bytes / average, min_leaf_keys, max_leaf_keys);
  return static_cast<uint32_t>(std::bit_floor(leaf_keys)) * capacity_per_leaf_key;
}

NodeKind plan_kind(uint64_t nodes, uint32_t stride, uint64_t entries) {
  NodeKind best = NodeKind::automatic;
  uint64_t least = UINT64_MAX;
  each_kind([&](auto kind) {
    uint64_t bytes = nodes * kind.words_of_node(stride) * sizeof(RankedWord) +
                     starts_of(kind.kind, stride, nodes, entries) * sizeof(uint32_t);
    if (kind.has_words) bytes *= 2;
    if (bytes >= least) return;
    best = kind.kind;
    least = bytes;
  });
  return best;
}

}  // namespace stride

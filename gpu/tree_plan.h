// Chooses strides, node kinds and leaf capacity where the options leave them open.
#pragma once

#include <cstdint>

#include "gpu/tree_layout.h"
#include "gpu/tree_options.h"

namespace stride {

// For each d, how many neighbouring keys share exactly d bits past the bits that all keys share;
// those that share more than max_stride bits are left out.
struct SharedBitsHistogram {
  uint64_t pairs[max_stride + 1] = {};
};

// The keys of a level that are still in nodes too large for a leaf.
struct Oversized {
  uint64_t nodes = 0;
  uint64_t keys = 0;
  uint64_t largest = 0;
};

struct TreePlan {
  uint32_t leaf_keys = 0;      // aimed at, on average
  uint32_t leaf_capacity = 0;  // not exceeded while there are levels left
  uint64_t budget_bytes = 0;   // of the image: no level is added once it is spent
};

TreePlan plan_leaves(const TreeOptions& options, uint64_t keys, uint64_t key_bytes);

// The stride of the root. Wide enough that a leaf holds between leaf_keys and twice as many if keys
// were random, and no wider than the keys use: of the widths whose entries hold at least three
// quarters as many distinct prefixes, the smallest. So clustered keys get a narrow root, and the
// nodes below it skip to where their keys differ.
uint32_t plan_root_stride(const TreePlan& plan, uint64_t keys,
                          const SharedBitsHistogram& histogram);

// The stride of the next level below the root: so many slots that a leaf holds between leaf_keys
// and twice as many on average. 0 where the level is not worth having: few keys are left, and none
// of them in a node that is much too large; or `spent_bytes`, the image so far, are enough.
uint32_t plan_stride(const TreePlan& plan, uint64_t keys, const Oversized& oversized,
                     uint64_t spent_bytes);

// The kind of a level, from the entries that are not empty. A bitmap costs one more access, so
// that it has to be half the size.
NodeKind plan_kind(uint64_t nodes, uint32_t stride, uint64_t entries);

}  // namespace stride

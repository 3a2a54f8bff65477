// Chooses the leaf capacity and the kinds of nodes where the options of a tree give its strides
// only.
#pragma once

#include <cstdint>

#include "gpu/tree/tree_layout.h"
#include "gpu/tree_options.h"

namespace stride {

// Chooses the capacity of leaves where options leave it open.
uint32_t plan_leaf_capacity(const TreeOptions& options, uint64_t keys, uint64_t key_bytes);

// The kind of a level, from the entries that are not empty. Words cost one more access, so that a
// kind that has them has to be half the size.
NodeKind plan_kind(uint64_t nodes, uint32_t stride, uint64_t entries);

// What a level below the root gets that does not fit into the limit of memory with so many bits.
// 0: it is left out, and those that would follow.
inline uint32_t narrower_stride(uint32_t stride) {
  return stride > 3 ? stride - 2 : stride > 1 ? stride - 1 : 0;
}

}  // namespace stride

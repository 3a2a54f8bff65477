// Chooses the strides and kinds of a match tree's levels (match_layout.h).
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/match/match_layout.h"

namespace stride {

// Counts boundaries by bit depth d. A node at depth d is a run of boundaries that share their first
// d bits, one of which has bits set behind those. All that a plan costs follows from these counts.
struct MatchCounts {
  int64_t nodes[max_tree_address_bits + 1] = {};   // at depth d
  int64_t ending[max_tree_address_bits + 1] = {};  // boundaries whose last set bit is bit d - 1
};

struct MatchStride {
  MatchKind kind;
  uint32_t stride;
};

// The cheapest list of levels by dynamic programming over depths: bytes, and for each boundary what
// it takes to pass a level.
std::vector<MatchStride> plan_matches(const MatchCounts& counts, uint32_t address_bits);

}  // namespace stride

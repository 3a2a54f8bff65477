// Dense nodes: 2^stride entries, of which slot i is the i-th. Node n owns the 2^stride + 1 starts
// from n * (2^stride + 1) on.
#pragma once

#include <cstdint>

#include "gpu/tree/nodes/level_ref.h"
#include "storage/prefetch.h"

namespace stride {

// Writes the starts of all slots after the slot of the key before the part, up to that of the
// part's last key; those that follow the node's last key too.
struct FillDense {
  uint32_t* starts;

  template <class Level>
  STRIDE_HD uint64_t operator()(const Level& level, uint32_t node, uint32_t begin,
                                uint32_t end) const {
    uint32_t slots = uint32_t{1} << level.stride;
    uint32_t* next = starts + uint64_t{node} * (slots + 1);
    uint32_t* const base = next;
    if (begin > level.spans[node].first) next += level.slot(node, begin - 1) + 1;
    for (uint32_t rank = begin; rank < end; ++rank) {
      uint32_t* stop = base + level.slot(node, rank);
      while (next <= stop) *next++ = rank;
    }
    if (end == level.spans[node].last) {
      while (next <= base + slots) *next++ = end;
    }
    return 0;
  }
};

// The same in two steps, of which none is as long as a gap between two keys: marks the slot of each
// first key in one, and where the node ends; starts that are not marked take the next one's.
struct MarkDense {
  static constexpr uint32_t unmarked = UINT32_MAX;  // more than any rank
  uint32_t* starts;

  template <class Level>
  STRIDE_HD uint64_t operator()(const Level& level, uint32_t node, uint32_t begin,
                                uint32_t end) const {
    const uint32_t slots = uint32_t{1} << level.stride;
    uint32_t* const base = starts + uint64_t{node} * (slots + 1);
    for (uint32_t rank = begin; rank < end; ++rank) {
      const uint32_t slot = level.slot(node, rank);
      if (rank == level.spans[node].first || level.slot(node, rank - 1) != slot) base[slot] = rank;
    }
    if (end == level.spans[node].last) base[slots] = end;
    return 0;
  }
};

struct DenseNodes {
  static constexpr NodeKind kind = NodeKind::dense;
  static constexpr const char* name = "dense";
  static constexpr bool has_words = false;

  STRIDE_HD static constexpr uint64_t words_of_node(uint32_t) { return 0; }
  STRIDE_HD static constexpr uint64_t starts_of_node(uint32_t stride) {
    return (uint64_t{1} << stride) + 1;
  }

  template <class Passes>
  static void fill(Passes& passes, uint32_t, RankedWord*, uint32_t* starts) {
    if constexpr (Passes::thread_a_key) {
      passes.unmark_starts(MarkDense::unmarked);
      passes.over_keys(MarkDense{starts});
      passes.take_next_starts();
    } else {
      passes.over_keys(FillDense{starts});
    }
  }

  static bool check_node(const LevelRef& level, uint32_t, uint32_t, uint64_t* entries) {
    *entries = uint64_t{1} << level.stride;
    return true;
  }

  template <class Level>
  STRIDE_HD static EntryRef find(const Level& level, uint32_t node, uint32_t slot) {
    return {node * ((uint32_t{1} << level.stride) + 1) + slot, true};
  }
  STRIDE_HD static RankInterval ranks_of_node(const LevelRef& level, uint32_t node) {
    uint32_t slots = uint32_t{1} << level.stride;
    uint32_t first = node * (slots + 1);
    return {level.starts[first], level.starts[first + slots]};
  }
  static void prefetch_entry(const LevelRef& level, uint32_t node, uint32_t slot) {
    prefetch(level.starts + find(level, node, slot).start);
  }
};

}  // namespace stride

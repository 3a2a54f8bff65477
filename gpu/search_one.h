// One search on the calling thread.
#pragma once

#include <cstdint>

#include "gpu/column_reader.h"
#include "gpu/tree_search.h"

namespace stride {

// Whether the index has a tree that fits its column.
inline bool has_tree(const IndexView& index) {
  return index.tree.image != nullptr &&
         reinterpret_cast<const TreeHeader*>(index.tree.image)->keys == index.keys.size;
}

template <bool guarded>
uint32_t lower_bound_within(ColumnReader<guarded>& keys, Bytes query, RankInterval ranks) {
  while (ranks.first < ranks.last) {
    uint32_t middle = ranks.first + (ranks.last - ranks.first) / 2;
    if (compare_keys(keys[middle], query) < 0) {
      ranks.first = middle + 1;
    } else {
      ranks.last = middle;
    }
  }
  return ranks.first;
}

// Whether `rank` keys of the whole column are smaller than the query, given that this holds within
// the interval where the search for it ended: at the interval's edges it asks the neighbours.
template <bool guarded>
bool is_lower_bound(ColumnReader<guarded>& keys, Bytes query, uint32_t rank, RankInterval ranks) {
  if (rank > ranks.first && rank < ranks.last) return true;
  if (rank > 0 && rank == ranks.first && compare_keys(keys[rank - 1], query) >= 0) return false;
  return rank == keys.size() || rank < ranks.last || compare_keys(keys[rank], query) >= 0;
}

// The lower bound of a query that differs from the keys of its leaf in bits that a level skipped:
// it lies before or after all keys of the first node on the way that it does not belong to.
template <bool guarded>
uint32_t lower_bound_beside(const TreeRef& tree, ColumnReader<guarded>& keys, Bytes query) {
  struct Path {
    RankInterval nodes[max_tree_levels];
    uint32_t depths[max_tree_levels];
    uint32_t length = 0;
    void visit(const LevelRef& level, uint32_t node, uint32_t depth) {
      nodes[length] = ranks_of_node(level, node);
      depths[length++] = depth;
    }
  } path;
  descend(tree, ByteQuery{query.data(), query.size()}, path);
  RankInterval last = path.nodes[path.length - 1];
  if (last.first < last.last) {
    // All nodes on the way hold this key, so that it shows how far the query goes with them.
    Bytes key = keys[last.first];
    uint32_t shared = shared_bits(query.data(), query.size(), key.data(), key.size());
    for (uint32_t i = 0; i < path.length; ++i) {
      if (path.depths[i] <= shared) continue;
      return compare_keys(query, key) < 0 ? path.nodes[i].first : path.nodes[i].last;
    }
  }
  // Not reached where tree and column belong together.
  return lower_bound_within(keys, query, {0, static_cast<uint32_t>(keys.size())});
}

}  // namespace stride

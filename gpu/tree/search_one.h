// One search on the calling thread.
#pragma once

#include <cstdint>

#include "gpu/keys/column_reader.h"
#include "gpu/tree/tree_search.h"

namespace stride {

// Whether the index has a tree that fits its column.
inline bool has_tree(const IndexView& index) {
  return index.tree.image != nullptr &&
         reinterpret_cast<const TreeHeader*>(index.tree.image)->keys == index.keys.size;
}

// Searches for one query, for host and device code alike. Keys: keys[rank] is a Bytes or, where the
// query is one, a number; keys.size() is how many there are. Query: a Bytes, a number or (for
// bounds only) a PrefixEnd.

template <class Keys, class Query>
STRIDE_HD uint32_t lower_bound_within(Keys& keys, Query query, RankInterval ranks) {
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
template <class Keys, class Query>
STRIDE_HD bool is_lower_bound(Keys& keys, Query query, uint32_t rank, RankInterval ranks) {
  if (rank > ranks.first && rank < ranks.last) return true;
  if (rank > 0 && rank == ranks.first && compare_keys(keys[rank - 1], query) >= 0) return false;
  return rank == keys.size() || rank < ranks.last || compare_keys(keys[rank], query) >= 0;
}

// Looks for the first node on the way down that the query does not belong to, given how many bits
// it shares with a key of all of them.
struct FirstForeignNode {
  uint32_t shared;
  bool found = false;
  RankInterval ranks{};
  STRIDE_HD void visit(const LevelRef& level, uint32_t node, uint32_t depth) {
    if (found || depth <= shared) return;
    found = true;
    ranks = ranks_of_node(level, node);
  }
};

struct LastNode {
  RankInterval ranks{};
  STRIDE_HD void visit(const LevelRef& level, uint32_t node, uint32_t) {
    ranks = ranks_of_node(level, node);
  }
};

// The lower bound of a query that differs from the keys of its leaf in bits that a level skipped:
// it lies before or after all keys of the first node on the way that it does not belong to.
template <class Keys, class Query>
STRIDE_HD uint32_t lower_bound_beside(const TreeRef& tree, Keys& keys, Query query) {
  LastNode last;
  descend(tree, bits_of_query(query), last);
  if (last.ranks.first < last.ranks.last) {
    // All nodes on the way hold this key, so that it shows how far the query goes with them.
    auto key = keys[last.ranks.first];
    FirstForeignNode foreign{shared_bits(query, key)};
    descend(tree, bits_of_query(query), foreign);
    if (foreign.found) {
      return compare_keys(key, query) > 0 ? foreign.ranks.first : foreign.ranks.last;
    }
  }
  // Not reached where tree and column belong together.
  return lower_bound_within(keys, query, {0, static_cast<uint32_t>(keys.size())});
}

// tree: null where there is none.
template <class Keys, class Query>
STRIDE_HD uint32_t lower_bound_in(const TreeRef* tree, Keys& keys, Query query) {
  RankInterval ranks{0, static_cast<uint32_t>(keys.size())};
  if (!tree) return lower_bound_within(keys, query, ranks);
  ranks = descend(*tree, bits_of_query(query));
  uint32_t rank = lower_bound_within(keys, query, ranks);
  return is_lower_bound(keys, query, rank, ranks) ? rank : lower_bound_beside(*tree, keys, query);
}

// Location::absent where the key is not there.
template <class Keys, class Query>
STRIDE_HD uint32_t find_in(const TreeRef* tree, Keys& keys, Query query) {
  RankInterval ranks{0, static_cast<uint32_t>(keys.size())};
  if (tree) ranks = descend(*tree, bits_of_query(query));
  uint32_t rank = lower_bound_within(keys, query, ranks);
  return rank < ranks.last && equal_keys(keys[rank], query) ? rank : Location::absent;
}

}  // namespace stride

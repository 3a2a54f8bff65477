#include "gpu/search_one.h"

namespace stride {

namespace {

template <bool guarded>
uint32_t lower_bound_in(const IndexView& index, Bytes query, ColumnReader<guarded>& keys) {
  RankInterval all{0, static_cast<uint32_t>(keys.size())};
  if (!has_tree(index)) return lower_bound_within(keys, query, all);
  TreeRef tree = tree_ref(index.tree.image);
  RankInterval ranks = descend(tree, ByteQuery{query.data(), query.size()});
  uint32_t rank = lower_bound_within(keys, query, ranks);
  return is_lower_bound(keys, query, rank, ranks) ? rank : lower_bound_beside(tree, keys, query);
}

template <bool guarded>
uint32_t find_in(const IndexView& index, Bytes query) {
  ColumnReader<guarded> keys(index);
  RankInterval ranks{0, static_cast<uint32_t>(keys.size())};
  if (has_tree(index)) {
    ranks = descend(tree_ref(index.tree.image), ByteQuery{query.data(), query.size()});
  }
  uint32_t rank = lower_bound_within(keys, query, ranks);
  if (rank == ranks.last || !equal_keys(keys[rank], query) || keys.damaged()) {
    return Location::absent;
  }
  return rank;
}

}  // namespace

uint32_t find_one(const IndexView& index, Bytes key) {
  return index.guard ? find_in<true>(index, key) : find_in<false>(index, key);
}

uint32_t lower_bound_one(const IndexView& index, Bytes key) {
  if (!index.guard) {
    ColumnReader<false> keys(index);
    return lower_bound_in(index, key, keys);
  }
  ColumnReader<true> keys(index);
  uint32_t rank = lower_bound_in(index, key, keys);
  return keys.damaged() ? Location::absent : rank;
}

}  // namespace stride

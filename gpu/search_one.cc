#include "gpu/search_one.h"

#include <cstring>

#include "gpu/search_numbers.h"

namespace stride {

namespace {

template <bool guarded>
uint32_t lower_bound_in(const IndexView& index, Bytes query, ColumnReader<guarded>& keys) {
  RankInterval all{0, static_cast<uint32_t>(keys.size())};
  if (!has_tree(index)) return lower_bound_within(keys, query, all);
  TreeRef tree(index.tree.image);
  RankInterval ranks = descend(tree, ByteQuery{query.data(), query.size()});
  uint32_t rank = lower_bound_within(keys, query, ranks);
  return is_lower_bound(keys, query, rank, ranks) ? rank : lower_bound_beside(tree, keys, query);
}

template <bool guarded>
uint32_t find_in(const IndexView& index, Bytes query, bool* damaged) {
  ColumnReader<guarded> keys(index);
  RankInterval ranks{0, static_cast<uint32_t>(keys.size())};
  if (has_tree(index)) {
    ranks = descend(TreeRef(index.tree.image), ByteQuery{query.data(), query.size()});
  }
  uint32_t rank = lower_bound_within(keys, query, ranks);
  bool equal = rank < ranks.last && equal_keys(keys[rank], query);
  *damaged = keys.damaged();
  return equal && !*damaged ? rank : Location::absent;
}

template <bool guarded>
uint32_t find_number(const IndexView& index, Bytes query, bool* damaged) {
  uint64_t stored;
  std::memcpy(&stored, query.data(), 8);
  TreeRef tree(index.tree.image);
  NumberSearch<guarded> search(index, tree);
  uint32_t rank;
  search.find(&stored, 1, &rank);
  *damaged = search.damaged();
  return *damaged ? Location::absent : rank;
}

}  // namespace

uint32_t find_one(const IndexView& index, Bytes key, bool* damaged) {
  if (key.size() == 8 && has_numbers(index)) {
    return index.guard ? find_number<true>(index, key, damaged)
                       : find_number<false>(index, key, damaged);
  }
  return index.guard ? find_in<true>(index, key, damaged) : find_in<false>(index, key, damaged);
}

uint32_t find_one(const IndexView& index, Bytes key) {
  bool damaged;
  return find_one(index, key, &damaged);
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

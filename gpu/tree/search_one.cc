#include "gpu/tree/search_one.h"

#include <cstring>

#include "gpu/tree/search_numbers.h"

namespace stride {

namespace {

// Runs search(keys) with a reader of the index's keys.
template <class Search>
Status with_reader(const IndexView& index, const Search& search) {
  if (!index.guard) {
    ColumnReader<false> keys(index);
    search(keys);
    return {};
  }
  ColumnReader<true> keys(index);
  search(keys);
  return keys.damaged() ? index.guard->failure() : Status();
}

template <bool guarded, uint32_t width>
Status find_number(const IndexView& index, Bytes query, uint32_t* rank) {
  uint64_t stored = NumberWindow<width>::stored(query.data());
  TreeRef tree(index.tree.image);
  NumberSearch<guarded, width> search(index, tree);
  search.find(&stored, 1, rank);
  return search.damaged() ? index.guard->failure() : Status();
}

template <uint32_t width>
Status find_number(const IndexView& index, Bytes query, uint32_t* rank) {
  return index.guard ? find_number<true, width>(index, query, rank)
                     : find_number<false, width>(index, query, rank);
}

}  // namespace

Status find_one(const IndexView& index, Bytes key, uint32_t* rank) {
  *rank = Location::absent;
  if (key.size() == 8 && number_width(index) == 8) return find_number<8>(index, key, rank);
  if (key.size() == 4 && number_width(index) == 4) return find_number<4>(index, key, rank);
  return with_reader(index, [&](auto& keys) {
    RankInterval ranks{0, static_cast<uint32_t>(keys.size())};
    if (has_tree(index)) {
      ranks = descend(TreeRef(index.tree.image), ByteQuery{key.data(), key.size()});
    }
    if (index.rows && ranks.first < ranks.last) prefetch_row_near(*index.rows, ranks.first);
    uint32_t at = lower_bound_within(keys, key, ranks);
    if (at < ranks.last && equal_keys(keys[at], key)) *rank = at;
  });
}

Status lower_bound_one(const IndexView& index, Bytes key, uint32_t* rank) {
  return with_reader(index, [&](auto& keys) {
    if (!has_tree(index)) {
      *rank = lower_bound_in(nullptr, keys, key);
    } else {
      TreeRef tree(index.tree.image);
      *rank = lower_bound_in(&tree, keys, key);
    }
  });
}

}  // namespace stride

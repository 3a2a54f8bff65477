// Searches for a group of queries at once on one host thread: each stage asks for the memory that
// the next one reads, for all queries of the group, so that their cache misses overlap.
//
// After Chen, Ailamaki, Gibbons and Mowry, "Improving hash join performance through prefetching"
// (ICDE 2004), where this is group prefetching.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/keys/column_reader.h"
#include "gpu/tree/search_one.h"
#include "gpu/tree/tree_search.h"

namespace stride {

// Enough misses in flight to use what one core can have of them; measured flat from 16 to 64.
inline constexpr uint32_t group_queries = 32;

// A group's way down the tree.
struct GroupDescent {
  RankInterval ranks[group_queries];  // where each query's key can only be
  uint32_t used_bits[group_queries];  // of the query, skipped bits included

  template <class Query>
  void run(const TreeRef& tree, const Query* queries, uint32_t count) {
    const LevelRef& root = tree.level[0];
    for (uint32_t i = 0; i < count; ++i) {
      slots_[i] = queries[i].bits(tree.prefix_bits, root.stride);
      prefetch(root.starts + slots_[i]);
    }
    active_ = 0;
    for (uint32_t i = 0; i < count; ++i) {
      used_bits[i] = tree.prefix_bits + root.stride;
      leave(tree, 0, i, {slots_[i], true});
    }
    for (uint32_t level = 1; active_ > 0; ++level) run_level(tree, level, queries);
  }

 private:
  template <class Query>
  void run_level(const TreeRef& tree, uint32_t number, const Query* queries) {
    visit_kind(tree.level[number].kind,
               [&](auto nodes) { run_level_of(nodes, tree, number, queries); });
  }

  template <class Nodes, class Query>
  void run_level_of(Nodes, const TreeRef& tree, uint32_t number, const Query* queries) {
    const LevelRef& level = tree.level[number];
    for (uint32_t k = 0; k < active_; ++k) {
      uint32_t i = list_[k], depth = level.depths[nodes_[i]];
      used_bits[i] = depth + level.stride;
      slots_[i] = queries[i].bits(depth, level.stride);
      Nodes::prefetch_entry(level, nodes_[i], slots_[i]);
    }
    if constexpr (Nodes::has_words) {
      for (uint32_t k = 0; k < active_; ++k) {
        uint32_t i = list_[k];
        entries_[i] = Nodes::find(level, nodes_[i], slots_[i]);
        prefetch(level.starts + entries_[i].start);
      }
    }
    uint32_t before = active_;
    active_ = 0;
    for (uint32_t k = 0; k < before; ++k) {
      uint32_t i = list_[k];
      if constexpr (Nodes::has_words) {
        leave(tree, number, i, entries_[i]);
      } else {
        leave(tree, number, i, Nodes::find(level, nodes_[i], slots_[i]));
      }
    }
  }

  void leave(const TreeRef& tree, uint32_t number, uint32_t i, EntryRef entry) {
    DescentStep step = leave_node(tree, tree.level[number], entry);
    ranks[i] = step.ranks;
    if (step.child == no_node) return;
    nodes_[i] = step.child;
    prefetch(tree.level[number + 1].depths + step.child);
    list_[active_++] = i;
  }

  uint32_t active_ = 0;
  uint32_t list_[group_queries];  // the queries that are still on their way
  uint32_t slots_[group_queries];
  uint32_t nodes_[group_queries];
  EntryRef entries_[group_queries];
};

// Searches of a group in a column of any layout.
//
// The keys of a leaf share the bits that the tree used, and so does a query that is among them. So
// the 8 bytes that follow are compared first, and whole keys only where those are equal.
template <bool guarded>
class GroupSearch {
 public:
  GroupSearch(const IndexView& index, const TreeRef* tree) : keys_(index), tree_(tree) {}

  bool damaged() const { return keys_.damaged(); }

  // Sets ranks[i] to the rank of query i, or Location::absent. count <= group_queries.
  void find(const Bytes* queries, uint32_t count, uint32_t* ranks) {
    descend(queries, count);
    for (uint32_t i = 0; i < count; ++i) left_[i] = descent_.ranks[i];
    bisect(queries, count);
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t rank = left_[i].first;
      bool equal = rank < descent_.ranks[i].last && keys_.slice(rank, skipped_[i]) == slices_[i] &&
                   equal_keys(keys_[rank], queries[i]);
      ranks[i] = equal ? rank : Location::absent;
    }
  }

  // Sets ranks[i] to the number of keys that are smaller than query i.
  void lower_bound(const Bytes* queries, uint32_t count, uint32_t* ranks) {
    descend(queries, count);
    for (uint32_t i = 0; i < count; ++i) {
      left_[i] = descent_.ranks[i];
      if (skipped_[i] == 0 || shares_skipped(queries[i], i)) continue;
      ranks[i] = lower_bound_beside(*tree_, keys_, queries[i]);
      left_[i] = descent_.ranks[i] = {ranks[i], ranks[i]};
    }
    bisect(queries, count);
    for (uint32_t i = 0; i < count && !damaged(); ++i) {
      ranks[i] = left_[i].first;
      if (tree_ && !is_lower_bound(keys_, queries[i], ranks[i], descent_.ranks[i])) {
        ranks[i] = lower_bound_beside(*tree_, keys_, queries[i]);
      }
    }
  }

 private:
  void descend(const Bytes* queries, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      queries_[i] = ByteQuery(queries[i].data(), queries[i].size());
    }
    if (tree_) {
      descent_.run(*tree_, queries_, count);
    } else {
      RankInterval all{0, static_cast<uint32_t>(keys_.size())};
      std::fill_n(descent_.ranks, count, all);
      std::fill_n(descent_.used_bits, count, 0);
    }
    for (uint32_t i = 0; i < count; ++i) {
      skipped_[i] = descent_.used_bits[i] / 8;
      slices_[i] = skipped_[i] ? slice8(queries[i].data(), queries[i].size(), skipped_[i])
                               : queries_[i].head;
      keys_.prefetch_offset(descent_.ranks[i].first);
      keys_.prefetch_offset(descent_.ranks[i].last);
    }
  }

  // Whether the query begins with the bytes that the keys of its leaf share.
  bool shares_skipped(Bytes query, uint32_t i) {
    if (left_[i].first == left_[i].last) return true;
    Bytes key = keys_[left_[i].first];
    return shared_bits(query.data(), query.size(), key.data(), key.size()) >= skipped_[i] * 8;
  }

  // Narrows left_ down to the first key that is not smaller, given that the bytes before the slice
  // are equal: halves each query's interval in turn, until what is left of it is short. That is
  // fetched as a whole.
  void bisect(const Bytes* queries, uint32_t count) {
    uint32_t active = 0;
    for (uint32_t i = 0; i < count; ++i) {
      list_[active] = i;
      active += left_[i].first < left_[i].last;
    }
    while (active > 0 && !damaged()) {
      for (uint32_t k = 0; k < active; ++k) fetch(list_[k]);
      uint32_t before = active;
      active = 0;
      for (uint32_t k = 0; k < before; ++k) {
        uint32_t i = list_[k];
        left_[i] = narrow(left_[i], queries[i], slices_[i], skipped_[i], !short_[i]);
        if (left_[i].first == left_[i].last) continue;
        list_[active++] = i;
        keys_.prefetch_offset(middle(i));
      }
    }
  }

  static constexpr uint64_t short_bytes = 4 * cache_line;

  void fetch(uint32_t i) {
    uint64_t first = keys_.begin(left_[i].first), last = keys_.begin(left_[i].last);
    short_[i] = last - first <= short_bytes || last < first;
    if (!short_[i]) {
      first = keys_.begin(middle(i)) + skipped_[i];
      last = first + 8;
    }
    if (first >= last) return;
    const std::byte* data = keys_.column().data;
    for (uint64_t at = first; at < last; at += cache_line) prefetch(data + at);
    prefetch(data + last - 1);
  }

  // Compares with the middle key and keeps the half where the query is; once, or until none is
  // left.
  RankInterval narrow(RankInterval ranks, Bytes query, uint64_t query_slice, uint32_t skipped,
                      bool once) {
    do {
      uint32_t rank = ranks.first + (ranks.last - ranks.first) / 2;
      uint64_t slice = keys_.slice(rank, skipped);
      bool smaller = slice < query_slice;
      if (slice == query_slice) smaller = compare_keys(keys_[rank], query) < 0;
      ranks.first = smaller ? rank + 1 : ranks.first;
      ranks.last = smaller ? ranks.last : rank;
    } while (!once && ranks.first < ranks.last);
    return ranks;
  }

  uint32_t middle(uint32_t i) const {
    return left_[i].first + (left_[i].last - left_[i].first) / 2;
  }

  ColumnReader<guarded> keys_;
  const TreeRef* tree_;
  GroupDescent descent_;
  ByteQuery queries_[group_queries];
  uint32_t skipped_[group_queries];  // bytes, which the tree used
  uint64_t slices_[group_queries];   // of the queries, after those
  RankInterval left_[group_queries];
  bool short_[group_queries];
  uint32_t list_[group_queries + 1];
};

}  // namespace stride

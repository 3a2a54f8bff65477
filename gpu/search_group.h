// Searches for a group of queries at once on one host thread: each stage asks for the memory that
// the next one reads, for all queries of the group, so that their cache misses overlap.
//
// After Chen, Ailamaki, Gibbons and Mowry, "Improving hash join performance through prefetching"
// (ICDE 2004), where this is group prefetching.
#pragma once

#include <cstdint>

#include "gpu/column_reader.h"
#include "gpu/search_one.h"
#include "gpu/tree_search.h"

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
    const LevelRef& level = tree.level[number];
    for (uint32_t k = 0; k < active_; ++k) {
      uint32_t i = list_[k], depth = level.depths[nodes_[i]];
      used_bits[i] = depth + level.stride;
      slots_[i] = queries[i].bits(depth, level.stride);
      if (level.words) {
        prefetch(slot_word(level, nodes_[i], slots_[i]));
      } else {
        prefetch(level.starts + dense_entry(level, nodes_[i], slots_[i]).start);
      }
    }
    if (level.words) {
      for (uint32_t k = 0; k < active_; ++k) {
        uint32_t i = list_[k];
        entries_[i] = bitmap_entry(*slot_word(level, nodes_[i], slots_[i]), slots_[i]);
        prefetch(level.starts + entries_[i].start);
      }
    }
    uint32_t before = active_;
    active_ = 0;
    for (uint32_t k = 0; k < before; ++k) {
      uint32_t i = list_[k];
      leave(tree, number, i, level.words ? entries_[i] : dense_entry(level, nodes_[i], slots_[i]));
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
template <bool guarded>
class GroupSearch {
 public:
  GroupSearch(const IndexView& index, const TreeRef* tree) : keys_(index), tree_(tree) {}

  bool damaged() const { return keys_.damaged(); }

  // Sets ranks[i] to the rank of query i, or Location::absent. count <= group_queries.
  void find(const Bytes* queries, uint32_t count, uint32_t* ranks) {
    descend_all(queries, count);
    for (uint32_t i = 0; i < count; ++i) ranks[i] = Location::absent;
    bisect(queries, count, [&](uint32_t i, RankInterval left, bool equal) {
      if (equal) ranks[i] = left.first;
    });
  }

  // Sets ranks[i] to the number of keys that are smaller than query i.
  void lower_bound(const Bytes* queries, uint32_t count, uint32_t* ranks) {
    descend_all(queries, count);
    bisect(queries, count, [&](uint32_t i, RankInterval left, bool) { ranks[i] = left.first; });
    if (!tree_) return;
    for (uint32_t i = 0; i < count; ++i) {
      if (damaged()) return;
      if (!is_lower_bound(keys_, queries[i], ranks[i], descent_.ranks[i])) {
        ranks[i] = lower_bound_beside(*tree_, keys_, queries[i]);
      }
    }
  }

 private:
  void descend_all(const Bytes* queries, uint32_t count) {
    if (!tree_) {
      RankInterval all{0, static_cast<uint32_t>(keys_.size())};
      for (uint32_t i = 0; i < count; ++i) descent_.ranks[i] = all;
      return;
    }
    ByteQuery byte_queries[group_queries];
    for (uint32_t i = 0; i < count; ++i) byte_queries[i] = {queries[i].data(), queries[i].size()};
    descent_.run(*tree_, byte_queries, count);
  }

  // Halves each query's interval in turn, until what is left of it is short: that is fetched as a
  // whole. Calls done(i, [rank, ...), whether the key at rank is the query).
  template <class Done>
  void bisect(const Bytes* queries, uint32_t count, const Done& done) {
    uint32_t active = 0;
    for (uint32_t i = 0; i < count; ++i) {
      left_[i] = descent_.ranks[i];
      if (left_[i].first < left_[i].last) {
        list_[active++] = i;
        keys_.prefetch_offset(left_[i].first);
        keys_.prefetch_offset(left_[i].last);
      } else {
        done(i, left_[i], false);
      }
    }
    while (active > 0 && !damaged()) {
      for (uint32_t k = 0; k < active; ++k) fetch(list_[k]);
      uint32_t before = active;
      active = 0;
      for (uint32_t k = 0; k < before; ++k) {
        uint32_t i = list_[k];
        bool equal = false;
        do {
          equal = halve(i, queries[i]);
        } while (short_[i] && !equal && left_[i].first < left_[i].last);
        if (equal || left_[i].first == left_[i].last) {
          done(i, left_[i], equal);
        } else {
          list_[active++] = i;
          keys_.prefetch_offset(middle(i));
        }
      }
    }
  }

  static constexpr uint64_t short_bytes = 4 * cache_line;

  void fetch(uint32_t i) {
    uint64_t first = keys_.begin(left_[i].first), last = keys_.begin(left_[i].last);
    short_[i] = last - first <= short_bytes || last < first;
    if (!short_[i]) {
      first = keys_.begin(middle(i));
      last = first + cache_line;
    }
    if (first >= last) return;
    const std::byte* data = keys_.column().data;
    for (uint64_t at = first; at < last; at += cache_line) prefetch(data + at);
    prefetch(data + last - 1);
  }

  // Compares with the middle key and keeps the half where the query is. True: that key is it.
  bool halve(uint32_t i, Bytes query) {
    uint32_t rank = middle(i);
    int order = compare_keys(keys_[rank], query);
    if (order == 0) {
      left_[i] = {rank, rank};
    } else if (order < 0) {
      left_[i].first = rank + 1;
    } else {
      left_[i].last = rank;
    }
    return order == 0;
  }

  uint32_t middle(uint32_t i) const {
    return left_[i].first + (left_[i].last - left_[i].first) / 2;
  }

  ColumnReader<guarded> keys_;
  const TreeRef* tree_;
  GroupDescent descent_;
  RankInterval left_[group_queries];
  bool short_[group_queries];
  uint32_t list_[group_queries];
};

}  // namespace stride

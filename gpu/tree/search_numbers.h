// Searches of 8-byte queries in a column of 8-byte keys, the case that most is made of, and of
// 4-byte queries in a column of 4-byte keys.
//
// A query's next bits after those that the tree used tell where in its leaf it should be, as if the
// leaf's keys were spread evenly (interpolation). The line of cache there is compared at once; what
// is not in it goes on to the line before or after, and from the third on by bisection.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/keys/number_window.h"
#include "gpu/tree/search_group.h"

namespace stride {

// The width of the numbers by which NumberSearch can search the index, or 0.
inline uint32_t number_width(const IndexView& index) {
  const PackedColumn& keys = index.keys;
  bool numbers = keys.fixed && (keys.width == 4 || keys.width == 8);
  return numbers && keys.size * keys.width >= cache_line && has_tree(index) ? keys.width : 0;
}

// Precondition: number_width(index) == width.
template <bool guarded, uint32_t width>
class NumberSearch {
  using Window = NumberWindow<width>;

 public:
  NumberSearch(const IndexView& index, const TreeRef& tree)
      : keys_(index),
        data_(index.keys.data),
        last_window_(index.keys.size - Window::keys),
        tree_(tree),
        rows_(index.rows) {}

  bool damaged() const { return keys_.damaged(); }

  // As GroupSearch::find(). stored: the queries' bytes.
  void find(const uint64_t* stored, uint32_t count, uint32_t* ranks) {
    start(stored, count);
    if (count == 1 && rows_ && active_ == 1) prefetch_row_near(*rows_, guess(0));
    for (uint32_t i = 0; i < count; ++i) ranks[i] = Location::absent;
    run([&](uint32_t i, uint64_t window) {
      const std::byte* p = data_ + window * width;
      uint32_t equal = Window::equal(p, stored[i]);
      auto place = static_cast<uint32_t>(__builtin_ctz(equal | 1u << Window::keys));
      ranks[i] = equal ? static_cast<uint32_t>(window) + place : ranks[i];
      bool left = queries_[i].number < Window::number(p);
      bool right = queries_[i].number > Window::number(p + cache_line - width);
      return narrow(i, window, left, right) & !equal;
    });
  }

  // As GroupSearch::lower_bound().
  void lower_bound(const uint64_t* stored, uint32_t count, uint32_t* ranks) {
    start(stored, count);
    for (uint32_t i = 0; i < count; ++i) ranks[i] = low_[i];
    run([&](uint32_t i, uint64_t window) {
      const std::byte* p = data_ + window * width;
      uint32_t smaller = Window::smaller(p, queries_[i].number);
      uint64_t rank = window + smaller;
      rank = std::clamp<uint64_t>(rank, low_[i], high_[i]);
      ranks[i] = static_cast<uint32_t>(rank);
      // Where the first number is the query itself, there is none before it.
      bool left = smaller == 0 && stored[i] != Window::stored(p);
      return narrow(i, window, left, smaller == Window::keys);
    });
    for (uint32_t i = 0; i < count; ++i) {
      RankInterval ranks_of_leaf = descent_.ranks[i];
      if (ranks[i] > ranks_of_leaf.first && ranks[i] < ranks_of_leaf.last) continue;
      if (damaged()) return;
      Bytes query{reinterpret_cast<const std::byte*>(stored + i), width};
      if (!is_lower_bound(keys_, query, ranks[i], ranks_of_leaf)) {
        ranks[i] = lower_bound_beside(tree_, keys_, query);
      }
    }
  }

 private:
  void start(const uint64_t* stored, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) queries_[i].number = byte_swap(stored[i]);
    descent_.run(tree_, queries_, count);
    active_ = 0;
    for (uint32_t i = 0; i < count; ++i) {
      low_[i] = descent_.ranks[i].first;
      high_[i] = descent_.ranks[i].last;
      next_[i] = window_at(guess(i));
      prefetch(data_ + next_[i] * width);
      list_[active_] = i;
      active_ += low_[i] < high_[i];
    }
  }

  // Where in its leaf the query is, if the leaf's keys are spread evenly.
  uint64_t guess(uint32_t i) const {
    uint32_t rest = bits_of(queries_[i].number, descent_.used_bits[i], 32);
    return low_[i] + (uint64_t{rest} * (high_[i] - low_[i]) >> 32);
  }

  // Aligned, so that it is one line of cache; the last one is not, so that it ends with the column.
  uint64_t window_at(uint64_t rank) const {
    return std::min(rank / Window::keys * Window::keys, last_window_);
  }

  // Calls compare(i, window) for each active query until it returns false.
  template <class Compare>
  void run(const Compare& compare) {
    for (uint32_t round = 0; active_ > 0; ++round) {
      uint32_t before = active_;
      active_ = 0;
      for (uint32_t k = 0; k < before; ++k) {
        uint32_t i = list_[k];
        if (guarded && !keys_.ensure(data_ + next_[i] * width, cache_line)) return;
        bool more = compare(i, next_[i]);
        list_[active_] = i;
        active_ += more;
      }
      for (uint32_t k = 0; k < active_; ++k) {
        uint32_t i = list_[k];
        if (round >= 2) next_[i] = window_at(low_[i] + (high_[i] - low_[i]) / 2);
        prefetch(data_ + next_[i] * width);
      }
    }
  }

  // Leaves what lies beside the window, on the side where the query is. False: nothing does.
  bool narrow(uint32_t i, uint64_t window, bool left, bool right) {
    uint32_t begin = static_cast<uint32_t>(window), end = begin + Window::keys;
    high_[i] = left ? std::min(high_[i], begin) : high_[i];
    low_[i] = right ? std::max(low_[i], end) : low_[i];
    next_[i] = window_at(left ? high_[i] - 1 : low_[i]);
    return (left | right) & (low_[i] < high_[i]);
  }

  ColumnReader<guarded> keys_;
  const std::byte* data_;
  uint64_t last_window_;
  const TreeRef& tree_;
  const PackedColumn* rows_;
  GroupDescent descent_;
  uint32_t active_ = 0;
  uint32_t list_[group_queries + 1];
  NumberQuery queries_[group_queries];
  uint32_t low_[group_queries];
  uint32_t high_[group_queries];
  uint64_t next_[group_queries];
};

}  // namespace stride

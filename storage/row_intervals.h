// Rows of a segment that were erased together: intervals of row numbers.
//
//   RowIntervals erased;
//   erased.add({10, 20});
//   erased.contains(15);                        // true
//   for (uint64_t row = erased.skip(0); row < rows; row = erased.skip(row)) {
//     const uint64_t end = erased.next(row, rows);   // rows [row, end) are there
//     ...
//     row = end;
//   }
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace stride {

struct RowInterval {
  uint64_t first = 0, end = 0;
  bool empty() const { return first >= end; }
  friend bool operator==(const RowInterval&, const RowInterval&) = default;
};

// Ascending, disjoint, and none of them begins where another one ends. A search costs the logarithm
// of their number.
class RowIntervals {
 public:
  bool empty() const { return list_.empty(); }
  const std::vector<RowInterval>& list() const { return list_; }
  // How many rows lie in them.
  uint64_t rows() const { return rows_; }
  bool contains(uint64_t row) const {
    auto above = first_above(row);
    return above != list_.begin() && row < std::prev(above)->end;
  }

  // How many of these rows do.
  uint64_t rows_in(RowInterval rows) const {
    uint64_t count = 0;
    auto at = first_above(rows.first);
    if (at != list_.begin()) --at;
    for (; at != list_.end() && at->first < rows.end; ++at)
      if (at->end > rows.first)
        count += std::min(at->end, rows.end) - std::max(at->first, rows.first);
    return count;
  }

  // The first row from `row` on that lies in none.
  uint64_t skip(uint64_t row) const {
    auto above = first_above(row);
    return above == list_.begin() ? row : std::max(row, std::prev(above)->end);
  }
  // The first row from `row` on that lies in one; `limit` where that is less.
  uint64_t next(uint64_t row, uint64_t limit) const {
    auto above = first_above(row);
    if (above != list_.begin() && row < std::prev(above)->end) return std::min(row, limit);
    return above == list_.end() ? limit : std::min(above->first, limit);
  }
  // The same downwards from row end - 1: where the rows end that lie below `end`, without those of
  // an interval that reaches up to it; and from there, where the next interval ends, `limit` at
  // least.
  uint64_t skip_back(uint64_t end) const {
    auto above = first_above(end == 0 ? 0 : end - 1);
    if (end == 0 || above == list_.begin() || std::prev(above)->end < end) return end;
    return std::prev(above)->first;
  }
  uint64_t previous(uint64_t end, uint64_t limit) const {
    auto above = first_above(end == 0 ? 0 : end - 1);
    return above == list_.begin() ? limit : std::max(std::prev(above)->end, limit);
  }

  // What meets others becomes one with them.
  void add(RowInterval added) {
    if (added.empty()) return;
    auto first = std::lower_bound(list_.begin(), list_.end(), added.first,
                                  [](const RowInterval& i, uint64_t row) { return i.end < row; });
    auto last = first;
    for (; last != list_.end() && last->first <= added.end; ++last) {
      added.first = std::min(added.first, last->first);
      added.end = std::max(added.end, last->end);
      rows_ -= last->end - last->first;
    }
    rows_ += added.end - added.first;
    if (first == last) {
      list_.insert(first, added);
      return;
    }
    *first = added;
    list_.erase(first + 1, last);
  }
  void add(const RowIntervals& others) {
    for (const RowInterval& interval : others.list_) add(interval);
  }
  friend bool operator==(const RowIntervals&, const RowIntervals&) = default;

 private:
  std::vector<RowInterval>::const_iterator first_above(uint64_t row) const {
    return std::upper_bound(list_.begin(), list_.end(), row,
                            [](uint64_t r, const RowInterval& i) { return r < i.first; });
  }

  std::vector<RowInterval> list_;
  uint64_t rows_ = 0;
};

}  // namespace stride

// Which rows have equal values: what a segment of a table with share_equal_values is built from.
//
//   EqualValues equal;
//   if (find_equal_values(rows, backend, unshared_bytes, &equal))
//     ... rows.value(i) == rows.value(equal.firsts[equal.numbers[i]]) ...
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gpu/backend.h"
#include "storage/checksum.h"
#include "storage/column.h"
#include "storage/segment_format.h"

namespace stride {

// Values are numbered in the order in which rows use them first.
struct EqualValues {
  BulkVector<uint32_t> numbers;  // of each row's value; a tombstone, which has none, has any
  BulkVector<uint32_t> firsts;   // of each value, the first row that has it

  bool empty() const { return firsts.empty(); }
  // Of the section value_numbers.
  uint64_t stored_bytes() const {
    return empty() ? 0 : numbers.size() * ValueRows::width_for(firsts.size());
  }
};

// Each value once, as the rows that a column of values is written from.
template <class Rows>
struct DistinctRows {
  const Rows& rows;
  const EqualValues& equal;

  uint64_t size() const { return equal.firsts.size(); }
  Bytes value(uint64_t i) const { return rows.value(equal.firsts[i]); }
  void prefetch_offsets(uint64_t i) const { rows.prefetch_offsets(equal.firsts[i]); }
};

// A hash table from values to their numbers. It keeps no bytes: values are compared with those of
// the first rows that have them. 8 bytes an entry, less than two thirds of them used.
template <class Rows>
class ValueTable {
 public:
  ValueTable(const Rows& rows, BulkVector<uint32_t>* firsts)
      : rows_(rows), firsts_(*firsts), entries_(1024) {}

  // The number of a row's value, which is a new one where no row before has had it.
  uint32_t find_or_put(uint32_t row, uint64_t hash) {
    Bytes value = rows_.value(row);
    auto tag = static_cast<uint32_t>(hash >> 32);
    for (uint64_t at = hash & mask();; at = (at + 1) & mask()) {
      Entry& entry = entries_[at];
      if (entry.number_and_one == 0) {
        firsts_.push_back(row);
        entry = {tag, static_cast<uint32_t>(firsts_.size())};
        if (firsts_.size() * 3 > entries_.size() * 2) grow();
        return static_cast<uint32_t>(firsts_.size() - 1);
      }
      uint32_t number = entry.number_and_one - 1;
      if (entry.tag == tag && compare(rows_.value(firsts_[number]), value) == 0) return number;
    }
  }

 private:
  struct Entry {
    uint32_t tag = 0;
    uint32_t number_and_one = 0;  // 0: none
  };
  uint64_t mask() const { return entries_.size() - 1; }

  void grow() {
    std::vector<Entry> larger(entries_.size() * 4);
    for (uint32_t number = 0; number < firsts_.size(); ++number) {
      uint64_t hash = checksum(rows_.value(firsts_[number]));
      uint64_t at = hash & (larger.size() - 1);
      while (larger[at].number_and_one) at = (at + 1) & (larger.size() - 1);
      larger[at] = {static_cast<uint32_t>(hash >> 32), number + 1};
    }
    entries_.swap(larger);
  }

  const Rows& rows_;
  BulkVector<uint32_t>& firsts_;
  std::vector<Entry> entries_;
};

// False, with what it has found forgotten, as soon as it turns out that numbers and distinct values
// take no less than `unshared_bytes`. Memory: 4 bytes a row, and 24 a distinct value at the most.
template <class Rows>
bool find_equal_values(const Rows& rows, Backend& backend, uint64_t unshared_bytes,
                       EqualValues* equal) {
  constexpr uint64_t block_rows = 1 << 16;
  equal->numbers.resize(rows.size());
  ValueTable<Rows> table(rows, &equal->firsts);
  std::vector<uint64_t> hashes(std::min(rows.size(), block_rows));
  uint64_t distinct_bytes = 0;
  for (uint64_t first = 0; first < rows.size(); first += block_rows) {
    uint64_t n = std::min(block_rows, rows.size() - first);
    backend.parallel_for(n, 2048, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        if (i + 16 < end) rows.prefetch_offsets(first + i + 16);
        hashes[i] = checksum(rows.value(first + i));
      }
    });
    for (uint64_t i = 0; i < n; ++i) {
      auto row = static_cast<uint32_t>(first + i);
      equal->numbers[row] = 0;
      if (rows.kind(row) == EntryKind::tombstone) continue;
      uint64_t before = equal->firsts.size();
      equal->numbers[row] = table.find_or_put(row, hashes[i]);
      if (equal->firsts.size() > before) distinct_bytes += rows.value(row).size();
    }
    if (distinct_bytes + equal->stored_bytes() >= unshared_bytes) {
      *equal = {};
      return false;
    }
  }
  return !equal->empty();
}

}  // namespace stride

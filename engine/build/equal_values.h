// Which rows have equal values: what a segment of a table with share_equal_values is built from.
//
//   EqualValues equal;
//   STRIDE_TRY(find_equal_values(rows, length, backend, unshared_bytes, &equal));
//   if (!equal.empty()) ... rows.value(i) == rows.value(equal.firsts[equal.numbers[i]]) ...
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gpu/backend.h"
#include "storage/column.h"
#include "storage/prefetch.h"
#include "storage/segment_format.h"
#include "storage/status.h"
#include "storage/work_watch.h"

namespace stride {

// Values are numbered in the order in which rows use them first.
struct EqualValues {
  BulkVector<uint32_t> numbers;  // of each row's value; a tombstone, which has none, has any
  BulkVector<uint32_t> firsts;   // of each value, the first row that has it

  bool empty() const { return firsts.empty(); }
  // Bytes of the section value_numbers.
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

// Rows that are looked for together, as a column of their values. A value that is as large as a
// block is not copied.
class ValueBlock {
 public:
  static constexpr uint64_t max_rows = 1 << 15;
  static constexpr uint64_t max_bytes = 4 << 20;

  // Takes rows from `first` on, but for tombstones; returns the row that the next block begins
  // with.
  template <class Rows, class Length>
  uint64_t fill(const Rows& rows, const Length& length, uint64_t first, Backend& backend) {
    rows_.clear();
    offsets_.assign(1, 0);
    uint64_t row = first;
    for (; row < rows.size() && rows_.size() < max_rows; ++row) {
      if (rows.kind(row) == EntryKind::tombstone) continue;
      if (!rows_.empty() && offsets_.back() + length(row) > max_bytes) break;
      rows_.push_back(static_cast<uint32_t>(row));
      offsets_.push_back(offsets_.back() + length(row));
    }
    if (rows_.size() == 1) {
      data_ = rows.value(rows_[0]).data();
    } else {
      copy(rows, backend);
    }
    return row;
  }
  const std::vector<uint32_t>& rows() const { return rows_; }
  Column values() const { return Column::variable(data_, offsets_.data(), rows_.size()); }
  uint64_t bytes_of(uint64_t i) const { return offsets_[i + 1] - offsets_[i]; }

 private:
  template <class Rows>
  void copy(const Rows& rows, Backend& backend) {
    constexpr uint64_t distance = 16;
    copies_.resize(offsets_.back());
    data_ = copies_.data();
    backend.parallel_for(rows_.size(), 4096, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        if (i + 2 * distance < end) rows.prefetch_offsets(rows_[i + 2 * distance]);
        if (i + distance < end) {
          Bytes ahead = rows.value(rows_[i + distance]);
          for (uint64_t at = 0; at < ahead.size() && at < 256; at += 64)
            prefetch(ahead.data() + at);
        }
        Bytes value = rows.value(rows_[i]);
        if (!value.empty()) std::memcpy(copies_.data() + offsets_[i], value.data(), value.size());
      }
    });
  }

  std::vector<uint32_t> rows_;
  std::vector<uint64_t> offsets_;
  BulkVector<std::byte> copies_;
  const std::byte* data_ = nullptr;
};

// Leaves `equal` empty as soon as it turns out that numbers and distinct values take no less than
// `unshared_bytes`. length(row): of its value. Memory: the distinct values, 4 bytes a row, and some
// tens of bytes a distinct value.
template <class Rows, class Length>
Status find_equal_values(const Rows& rows, const Length& length, Backend& backend,
                         uint64_t unshared_bytes, EqualValues* equal) {
  auto set = backend.sets().make_byte_set();
  if (!set.ok()) return set.status();
  equal->numbers.resize(rows.size());
  ValueBlock block;
  std::vector<uint64_t> numbers, was_new;
  uint64_t distinct_bytes = 0;
  for (uint64_t first = 0, next; first < rows.size(); first = next) {
    STRIDE_TRY(WorkWatch::check());
    next = block.fill(rows, length, first, backend);
    uint64_t n = block.rows().size();
    numbers.resize(n);
    was_new.resize((n + 63) / 64);
    STRIDE_TRY((*set)->find_or_put(block.values(), numbers, was_new));
    std::fill(&equal->numbers[first], &equal->numbers[first] + (next - first), 0);
    for (uint64_t i = 0; i < n; ++i) {
      equal->numbers[block.rows()[i]] = static_cast<uint32_t>(numbers[i]);
      if (!(was_new[i / 64] >> i % 64 & 1)) continue;
      equal->firsts.push_back(block.rows()[i]);
      distinct_bytes += block.bytes_of(i);
    }
    if (distinct_bytes + equal->stored_bytes() >= unshared_bytes) {
      *equal = {};
      return {};
    }
  }
  return {};
}

}  // namespace stride

// Reads keys of a segment's column, and has damaged blocks found first where it has a guard.
//
//   ColumnReader<true> keys(index);
//   Bytes key = keys[rank];              // empty where the guard found damage
//   if (keys.damaged()) return keys.guard()->failure();
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/keys/key_bits.h"
#include "gpu/tree_index.h"
#include "storage/block_guard.h"
#include "storage/column.h"
#include "storage/prefetch.h"

namespace stride {

inline constexpr uint64_t cache_line = 64;

// Asks for a row of which the rank is known only about, and for its offset. Where the row lies is
// taken from its group's offsets as if all of the group were equally long.
inline void prefetch_row_near(const PackedColumn& column, uint64_t rank) {
  uint64_t begin = rank * column.width, bytes = column.width;
  if (!column.fixed) {
    const PackedOffsets& offsets = column.offsets;
    prefetch(static_cast<const std::byte*>(offsets.deltas) + rank * offsets.delta_width);
    uint64_t group = rank >> PackedOffsets::group_bits;
    if (group == column.size >> PackedOffsets::group_bits) return;  // no group's offset after it
    begin = offsets.bases[group];
    bytes = (offsets.bases[group + 1] - begin) >> PackedOffsets::group_bits;
    begin += bytes * (rank & ((1u << PackedOffsets::group_bits) - 1));
  }
  if (bytes > 4 * cache_line || begin > column.data_bytes) return;
  uint64_t from = begin < cache_line / 2 ? 0 : begin - cache_line / 2;
  uint64_t to = std::min(begin + bytes + cache_line / 2, column.data_bytes);
  for (uint64_t at = from; at < to; at += cache_line) prefetch(column.data + at);
}

template <bool guarded>
class ColumnReader {
 public:
  explicit ColumnReader(const IndexView& index) : column_(index.keys), guard_(index.guard) {}

  uint64_t size() const { return column_.size; }
  const PackedColumn& column() const { return column_; }
  BlockGuard* guard() const { return guard_; }
  bool damaged() const { return guarded && damaged_; }

  Bytes operator[](uint64_t row) {
    if constexpr (!guarded) return column_[row];
    uint64_t first = begin(row), last = begin(row + 1);
    if (last <= first || !ensure(column_.data + first, last - first)) return {};
    return {column_.data + first, last - first};
  }

  // slice8() of a key.
  uint64_t slice(uint64_t row, uint64_t at) {
    if constexpr (guarded) {
      Bytes key = (*this)[row];
      return slice8(key.data(), key.size(), at);
    }
    uint64_t first = begin(row) + at, last = begin(row + 1);
    if (first >= last) return 0;
    if (first + 8 > column_.data_bytes) return load_short(column_.data + first, last - first);
    // Bytes of the keys that follow are read too, and shifted out.
    uint64_t other_bits = last - first < 8 ? 64 - 8 * (last - first) : 0;
    return load_big_endian(column_.data + first) >> other_bits << other_bits;
  }

  // Where row `row` begins in the data, at most data_bytes. row <= size().
  uint64_t begin(uint64_t row) {
    if (column_.fixed) return row * column_.width;
    const PackedOffsets& offsets = column_.offsets;
    if (guarded && !(ensure(offsets.bases + (row >> PackedOffsets::group_bits), 8) &&
                     ensure(delta(row), offsets.delta_width))) {
      return 0;
    }
    uint64_t offset = offsets[row];
    return offset < column_.data_bytes ? offset : column_.data_bytes;
  }

  void prefetch_offset(uint64_t row) const {
    if (column_.fixed) return;
    prefetch(column_.offsets.bases + (row >> PackedOffsets::group_bits));
    prefetch(delta(row));
  }

  bool ensure(const void* p, uint64_t bytes) {
    if (guarded && !guard_->ensure(p, bytes)) damaged_ = true;
    return !damaged();
  }

 private:
  const std::byte* delta(uint64_t row) const {
    return static_cast<const std::byte*>(column_.offsets.deltas) +
           row * column_.offsets.delta_width;
  }

  PackedColumn column_;
  BlockGuard* guard_;
  bool damaged_ = false;
};

}  // namespace stride

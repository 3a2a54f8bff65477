// Rows of several segments, copied into columns one after another.
//
//   ColumnGather keys(keys_of(segments), /*in_cache=*/true);
//   rows = rows.first(keys.fit(rows, max_bytes));
//   KeyColumn column = keys.copy(rows);
#pragma once

#include <span>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/result_buffer.h"
#include "storage/column.h"

namespace stride {

// Rows of one column of several segments. What it copies stays until the next copy.
class ColumnGather {
 public:
  // sources: by the index of a Location.
  // in_cache: the rows have just been read.
  ColumnGather(std::vector<PackedColumn> sources, bool in_cache);

  // How many of the rows hold `max_bytes` or, with the last of them, more.
  uint64_t fit(std::span<const Location> rows, uint64_t max_bytes);
  // Precondition: fit() was asked about rows that begin with these.
  Column copy(std::span<const Location> rows);

 private:
  template <uint32_t part>
  void copy_fixed(std::span<const Location> rows);
  Column copy_variable(uint64_t n);

  std::vector<PackedColumn> sources_;
  std::vector<const std::byte*> data_of_;  // each source
  const bool in_cache_;
  bool fixed_;  // all rows have the same width
  uint32_t width_;
  bool wide_ = false;  // 64 bytes may be read from the beginning of every row
  ResultBuffer<const std::byte*> found_;
  ResultBuffer<uint64_t> offsets_;
  ResultBuffer<std::byte> data_;
};

std::vector<PackedColumn> keys_of(const SegmentList& segments);

// The values of rows, likewise; of shared ones it is first found out where they lie.
class ValueGather {
 public:
  explicit ValueGather(const SegmentList& segments);

  bool any_shared() const { return any_shared_; }
  uint64_t fit(std::span<const Location> rows, uint64_t max_bytes) {
    return gather_.fit(positions(rows), max_bytes);
  }
  // Precondition: fit() was asked about rows that begin with these.
  Column copy(std::span<const Location> rows) {
    return gather_.copy(any_shared_ ? std::span<const Location>(positions_.data(), rows.size())
                                    : rows);
  }

 private:
  // Where the rows' values lie in the columns of values.
  std::span<const Location> positions(std::span<const Location> rows);

  const SegmentList& segments_;
  ColumnGather gather_;
  bool any_shared_;
  ResultBuffer<Location> positions_;
};

}  // namespace stride

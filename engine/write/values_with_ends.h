// Values of a table with a time to live: rows that are put without a time get one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "storage/column.h"
#include "storage/manifest.h"

namespace stride {

inline bool has_time_to_live(const TableRecord& table) {
  return table.expiry && table.expiry->time_to_live > 0;
}

// Not thread-safe. Throws std::bad_alloc.
class ValuesWithEnds {
 public:
  // values: a copy is made where a row has no time. Offsets that descend are left as they are, for
  // those who check them. now: microseconds since 1970-01-01.
  ValuesWithEnds(const TableRecord& table, const ValueColumn& values, int64_t now)
      : values_(values) {
    const ExpiryCell& cell = *table.expiry;
    // Rounded up: no row ends before its time.
    const int64_t past = std::max<int64_t>(now, 0), floor = cell.in_unit(past);
    const int64_t begin = floor + (cell.in_microseconds(floor) < past ? 1 : 0);
    const int64_t end = begin > std::numeric_limits<int64_t>::max() - cell.time_to_live
                            ? std::numeric_limits<int64_t>::max()
                            : begin + cell.time_to_live;
    const uint64_t last = values.size > 0 ? values.begin(values.size) : 0;
    for (uint64_t i = 0; i < values.size; ++i) {
      const uint64_t from = values.begin(i), to = values.begin(i + 1);
      if (to < from || to > last) return;
      const bool has_cell =
          to - from >= uint64_t{cell.offset} + sizeof end && to - from > cell.valid_bit / 8;
      if (!has_cell || is_there(values.data + from, cell.valid_bit)) continue;
      if (bytes_.empty()) copy(values);
      std::byte* row = bytes_.data() + (from - values.begin(0));
      std::memcpy(row + cell.offset, &end, sizeof end);
      row[cell.valid_bit / 8] |= std::byte{1} << (cell.valid_bit % 8);
    }
  }
  ValuesWithEnds(const ValuesWithEnds&) = delete;
  ValuesWithEnds& operator=(const ValuesWithEnds&) = delete;

  const ValueColumn& values() const { return values_; }

 private:
  static bool is_there(const std::byte* row, uint32_t bit) {
    return std::to_integer<unsigned>(row[bit / 8]) >> (bit % 8) & 1;
  }
  void copy(const ValueColumn& values) {
    const uint64_t first = values.begin(0);
    bytes_.assign(values.data + first, values.data + values.begin(values.size));
    values_.data = bytes_.data() - first;
  }

  ValueColumn values_;
  std::vector<std::byte> bytes_;
};

}  // namespace stride

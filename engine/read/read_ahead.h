// Asks for the pages that an ordered read comes to next, where they lie in a mapped file.
//
//   RowReadAhead ahead(segment, first, last, /*reverse=*/false);
//   for (uint64_t row = first; row < last; row += n) {
//     ahead.advance(row + n);
//     ... read rows [row, row + n) ...
//   }
#pragma once

#include <cstdint>
#include <vector>

#include "storage/column.h"
#include "storage/file.h"
#include "storage/segment.h"

namespace stride {

// For one thread. The segment must outlive it. Only hints: nothing fails, nothing waits, and a
// resident segment costs nothing. Of each section that the rows lie in (keys, values, their packed
// offsets, kinds) it asks for up to max_bytes ahead of the reader, beginning with less for those
// who read only a few rows, and for next to nothing beyond the last row.
class RowReadAhead {
 public:
  static constexpr uint64_t first_bytes = 256 << 10;
  static constexpr uint64_t max_bytes = 4 << 20;
  static constexpr uint64_t max_step_bytes = 16 << 20;  // asked for by one advance()

  RowReadAhead() = default;
  // Rows [first, last) are going to be read in ascending order, or, if `reverse`, descending.
  RowReadAhead(const Segment& segment, uint64_t first, uint64_t last, bool reverse);

  bool idle() const { return sections_.empty(); }
  // Rows before `rank` or, if reverse, from `rank` on are about to be read, as far as they have not
  // been: those others are still to come.
  void advance(uint64_t rank);

 private:
  struct Section {
    Bytes bytes;
    PackedOffsets offsets{};  // where a row begins; bases null: rows are equally long
    uint32_t group_bits = 0;  // a power of two of rows shares `width` bytes
    uint32_t width = 0;
    // Both in bytes from the end of the section at which a reader begins.
    uint64_t at = 0;     // the reader
    uint64_t asked = 0;  // for what is before this
    uint64_t ahead = first_bytes;
  };
  void add_column(const PackedColumn& column);
  uint64_t offset_of(const Section& section, uint64_t rank) const;
  void advance(Section* section, uint64_t rank, uint64_t rows_left);
  void ask(const Section& section, uint64_t from, uint64_t to) const;

  const Mapping* mapping_ = nullptr;
  uint64_t rows_ = 0, first_ = 0, last_ = 0;
  bool reverse_ = false;
  std::vector<Section> sections_;
};

}  // namespace stride

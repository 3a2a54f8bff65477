// Rows in ascending key order, wherever they lie: what a segment is built from.
//
// A source of rows (engine/write/staged_rows.h, engine/merge/merged_rows.h) has, for each row i,
//
//   Bytes key(i), value(i);  EntryKind kind(i);
//   void prefetch_offsets(i);   // asks the cache for what says where the row lies
//
// and for all of them size(), max_bytes() (at least the bytes of all keys and values), keys8() (the
// keys as a column of 8 bytes each, or null) and Sizes, which counts the bytes that rows add to a
// segment: begin() begins the next segment, add(rows, i) returns those of row i.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/column.h"
#include "storage/segment_format.h"
#include "storage/work_watch.h"

namespace stride {

// The first row of each part that becomes a segment of its own. None has more rows than max_rows,
// or many more bytes than max_bytes. Throws StopRequested.
template <class Rows>
std::vector<uint64_t> cut_rows(const Rows& rows, uint64_t max_bytes, uint64_t max_rows) {
  std::vector<uint64_t> firsts{0};
  uint64_t bytes = 0;
  typename Rows::Sizes sizes(rows);
  const WorkWatch* watch = WorkWatch::current();
  for (uint64_t i = 0; i < rows.size(); ++i) {
    if (watch && i % 65'536 == 0) watch->throw_if_stopped();
    uint64_t of_row = sizes.add(rows, i);
    if ((bytes > 0 && bytes + of_row > max_bytes) || i - firsts.back() == max_rows) {
      firsts.push_back(i);
      bytes = 0;
      sizes.begin();
      of_row = sizes.add(rows, i);
    }
    bytes += of_row;
  }
  return firsts;
}

// Rows [first, first + count) of a source.
template <class Rows>
struct RowRange {
  const Rows& rows;
  uint64_t first;
  uint64_t count;

  uint64_t size() const { return count; }
  Bytes key(uint64_t i) const { return rows.key(first + i); }
  Bytes value(uint64_t i) const { return rows.value(first + i); }
  EntryKind kind(uint64_t i) const { return rows.kind(first + i); }
  void prefetch_offsets(uint64_t i) const { rows.prefetch_offsets(first + i); }
  const uint64_t* keys8() const { return rows.keys8() ? rows.keys8() + first : nullptr; }
};

}  // namespace stride

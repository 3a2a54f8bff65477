// Rows in ascending key order, wherever they lie: what a segment is built from.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/write/staging.h"
#include "gpu/backend.h"
#include "storage/prefetch.h"

namespace stride {

// Rows of staged chunks, in the order of a sort.
struct StagedRows {
  std::vector<const StagedChunk*> chunks;
  std::vector<KeyColumn> keys;      // of each chunk
  std::vector<ValueColumn> values;  // of each chunk
  Sorted sorted;

  uint64_t size() const { return sorted.order.size(); }
  Bytes key(uint64_t i) const { return keys[chunk(i)][row(i)]; }
  Bytes value(uint64_t i) const { return values[chunk(i)][row(i)]; }
  EntryKind kind(uint64_t i) const { return chunks[chunk(i)]->kind(row(i)); }
  void prefetch_offsets(uint64_t i) const {
    prefetch_both(keys[chunk(i)].offsets, row(i));
    prefetch_both(values[chunk(i)].offsets, row(i));
  }
  const uint64_t* keys8() const { return sorted.keys8.empty() ? nullptr : sorted.keys8.data(); }
  // Of all keys and values, superseded ones included.
  uint64_t most_bytes() const {
    uint64_t bytes = 0;
    for (size_t c = 0; c < chunks.size(); ++c) bytes += keys[c].bytes() + values[c].bytes();
    return bytes;
  }

 private:
  uint32_t chunk(uint64_t i) const { return sorted.order[i] >> row_bits; }
  uint32_t row(uint64_t i) const { return sorted.order[i] & (StagedChunk::max_rows - 1); }
  // Where a row begins and where it ends: every eighth pair lies in two lines.
  static void prefetch_both(const uint64_t* offsets, uint32_t row) {
    if (!offsets) return;
    prefetch(offsets + row);
    prefetch(offsets + row + 1);
  }
};

// Rows of segments, in the order of a merge. Their bytes have been checked (ensure_rows).
struct MergedRows {
  std::vector<std::shared_ptr<IndexedSegment>> segments;
  std::vector<Location> order;

  uint64_t size() const { return order.size(); }
  Bytes key(uint64_t i) const { return segments[order[i].index]->keys()[order[i].rank]; }
  Bytes value(uint64_t i) const { return segments[order[i].index]->values()[order[i].rank]; }
  EntryKind kind(uint64_t i) const { return segments[order[i].index]->kind(order[i].rank); }
  void prefetch_offsets(uint64_t) const {}  // ranks ascend: the hardware sees it coming
  const uint64_t* keys8() const { return nullptr; }
  uint64_t most_bytes() const {
    uint64_t bytes = 0;
    for (const auto& s : segments) bytes += s->record().bytes;
    return bytes;
  }
};

// How many bytes rows add to the segment that they become a part of, one after the other. Values
// that rows share already count once for each segment that they lie in.
class RowBytes {
 public:
  explicit RowBytes(const StagedRows&) {}
  explicit RowBytes(const MergedRows& rows) {
    for (const auto& s : rows.segments)
      seen_.emplace_back(s->values().shared() ? s->values().column.size : 0);
  }
  // Another segment begins.
  void begin() {
    for (Bitmap& seen : seen_) seen.reset(seen.size());
  }
  uint64_t add(const StagedRows& rows, uint64_t i) {
    return rows.key(i).size() + rows.value(i).size();
  }
  uint64_t add(const MergedRows& rows, uint64_t i) {
    const Location row = rows.order[i];
    const ValueRows& values = rows.segments[row.index]->values();
    uint64_t bytes = rows.key(i).size() + values.number_width;
    if (values.shared()) {
      Bitmap& seen = seen_[row.index];
      uint64_t place = values.place(row.rank);
      if (place >= seen.size() || seen[place]) return bytes;
      seen.set(place);
    }
    return bytes + rows.value(i).size();
  }

 private:
  std::vector<Bitmap> seen_;  // of each segment's values
};

// The first row of each part that becomes a segment of its own. None has more rows than max_rows, or
// many more bytes than max_bytes.
template <class Rows>
std::vector<uint64_t> cut_rows(const Rows& rows, uint64_t max_bytes, uint64_t max_rows) {
  std::vector<uint64_t> firsts{0};
  uint64_t bytes = 0;
  RowBytes added(rows);
  for (uint64_t i = 0; i < rows.size(); ++i) {
    uint64_t of_row = added.add(rows, i);
    if ((bytes > 0 && bytes + of_row > max_bytes) || i - firsts.back() == max_rows) {
      firsts.push_back(i);
      bytes = 0;
      added.begin();
      of_row = added.add(rows, i);
    }
    bytes += of_row;
  }
  return firsts;
}

// Rows [first, first + count) of others.
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

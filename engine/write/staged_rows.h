// The rows that a commit has staged for a table, in key order.
#pragma once

#include <cstdint>
#include <vector>

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
  // Where the sort has found row i: the chunk, and the row there.
  uint32_t chunk_of(uint64_t i) const { return sorted.order[i] >> row_bits; }
  uint32_t row_of(uint64_t i) const { return sorted.order[i] & (StagedChunk::max_rows - 1); }
  Bytes key(uint64_t i) const { return keys[chunk_of(i)][row_of(i)]; }
  Bytes value(uint64_t i) const { return values[chunk_of(i)][row_of(i)]; }
  EntryKind kind(uint64_t i) const { return chunks[chunk_of(i)]->kind(row_of(i)); }
  void prefetch_offsets(uint64_t i) const {
    prefetch_both(keys[chunk_of(i)].offsets, row_of(i));
    prefetch_both(values[chunk_of(i)].offsets, row_of(i));
  }
  const uint64_t* keys8() const { return sorted.keys8.empty() ? nullptr : sorted.keys8.data(); }
  // The bytes of all keys and values, superseded ones included.
  uint64_t max_bytes() const {
    uint64_t bytes = 0;
    for (size_t c = 0; c < chunks.size(); ++c) bytes += keys[c].bytes() + values[c].bytes();
    return bytes;
  }

  // How many bytes rows add to the segment that they become a part of (engine/build/row_source.h).
  struct Sizes {
    explicit Sizes(const StagedRows&) {}
    void begin() {}
    uint64_t add(const StagedRows& rows, uint64_t i) {
      return rows.key(i).size() + rows.value(i).size();
    }
  };

 private:
  // Where a row begins and where it ends: every eighth pair lies in two lines.
  static void prefetch_both(const uint64_t* offsets, uint32_t row) {
    if (!offsets) return;
    prefetch(offsets + row);
    prefetch(offsets + row + 1);
  }
};

}  // namespace stride

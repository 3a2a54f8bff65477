// The rows that a merge of segments leaves, in key order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/catalog/indexed_segment.h"
#include "gpu/location.h"
#include "storage/column.h"

namespace stride {

// Rows of segments, in the order of a merge. Their bytes have been checked (ensure_rows).
struct MergedRows {
  std::vector<std::shared_ptr<IndexedSegment>> segments;
  std::vector<Location> order;
  uint64_t bytes = 0;  // at least those of all keys and values

  uint64_t size() const { return order.size(); }
  Bytes key(uint64_t i) const { return segments[order[i].index]->keys()[order[i].rank]; }
  // Of a row that has ended nothing is left.
  Bytes value(uint64_t i) const {
    const IndexedSegment& segment = *segments[order[i].index];
    if (segment.may_expire() && segment.kind(order[i].rank) == EntryKind::tombstone) return {};
    return segment.values()[order[i].rank];
  }
  EntryKind kind(uint64_t i) const { return segments[order[i].index]->kind(order[i].rank); }
  void prefetch_offsets(uint64_t) const {}  // ranks ascend: the hardware sees it coming
  const uint64_t* keys8() const { return nullptr; }
  uint64_t max_bytes() const { return bytes; }

  // How many bytes rows add to the segment that they become a part of (engine/build/row_source.h).
  // Values that rows share already count once for each segment that they lie in.
  class Sizes {
   public:
    explicit Sizes(const MergedRows& rows) {
      for (const auto& s : rows.segments)
        seen_.emplace_back(s->values().shared() ? s->values().column.size : 0);
    }
    void begin() {
      for (Bitmap& seen : seen_) seen.reset(seen.size());
    }
    uint64_t add(const MergedRows& rows, uint64_t i) {
      const Location row = rows.order[i];
      const ValueRows& values = rows.segments[row.index]->values();
      uint64_t bytes = rows.key(i).size() + values.number_width;
      if (values.shared()) {
        Bitmap& seen = seen_[row.index];
        uint64_t position = values.position(row.rank);
        if (position >= seen.size() || seen[position]) return bytes;
        seen.set(position);
      }
      return bytes + rows.value(i).size();
    }

   private:
    std::vector<Bitmap> seen_;  // the values of each segment
  };
};

}  // namespace stride

// The rows of a damaged segment that can be read, as a source of rows of a new one
// (engine/build/row_source.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/salvage.h"
#include "storage/manifest.h"
#include "storage/segment_survey.h"

namespace stride {

struct RecoveredRows {
  PackedColumn keys;
  ValueRows values;
  std::vector<uint32_t> ranks;     // of the rows, in the damaged segment
  std::vector<bool> tombstones;    // whether each is one
  std::vector<std::byte> nothing;  // the value of a tombstone, where values have one width

  uint64_t size() const { return ranks.size(); }
  Bytes key(uint64_t i) const { return keys[ranks[i]]; }
  Bytes value(uint64_t i) const { return tombstones[i] ? Bytes(nothing) : values[ranks[i]]; }
  EntryKind kind(uint64_t i) const { return tombstones[i] ? EntryKind::tombstone : EntryKind::put; }
  void prefetch_offsets(uint64_t) const {}  // ranks ascend
  const uint64_t* keys8() const { return nullptr; }
};

// A row whose key can be read, and whose value can't, becomes a tombstone: what is older is not its
// value. Rows that ranges have erased are left out. What is lost is added to `lost`. The rows point
// into the survey.
RecoveredRows recover_rows(const SegmentSurvey& survey, const SegmentRecord& record,
                           const TableRecord& table, std::vector<LostRows>* lost);

}  // namespace stride

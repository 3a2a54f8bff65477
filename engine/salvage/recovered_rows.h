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
  struct Row {
    Bytes key, value;
    EntryKind kind = EntryKind::put;
  };
  std::vector<Row> rows;
  uint64_t bytes = 0;      // of all keys and values
  uint64_t recovered = 0;  // of the rows: not those that stand for lost ones

  uint64_t size() const { return rows.size(); }
  Bytes key(uint64_t i) const { return rows[i].key; }
  Bytes value(uint64_t i) const { return rows[i].value; }
  EntryKind kind(uint64_t i) const { return rows[i].kind; }
  void prefetch_offsets(uint64_t) const {}
  const uint64_t* keys8() const { return nullptr; }
};

// A row whose key can be read, and whose value can't, becomes a tombstone: what is older is not its
// value. Rows that ranges have erased are left out. What is lost is added to `lost`. The rows point
// into the survey.
RecoveredRows recover_rows(const SegmentSurvey& survey, const SegmentRecord& record,
                           const TableRecord& table, std::vector<LostRows>* lost);

}  // namespace stride

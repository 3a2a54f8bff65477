// What must hold of a segment besides its checksums: that it is the one that the manifest and its
// table tell of, and that its rows are what searches and merges take them for.
#pragma once

#include "engine/catalog/indexed_segment.h"
#include "engine/catalog/segment_list.h"
#include "gpu/backend.h"
#include "storage/manifest.h"
#include "storage/segment.h"
#include "storage/status.h"

namespace stride {

// Whether it tells of one segment only: what else is in the database can be read.
inline bool is_damage(const Status& s) {
  return s.code() == StatusCode::corruption || s.code() == StatusCode::io_error ||
         s.code() == StatusCode::unsupported_version;
}

// Rows, tombstones and bytes are those of the record; where the table's keys or values have one
// width, so do the segment's. Reads nothing but what was read when it was opened.
Status check_record(const Segment& segment, const SegmentRecord& record, const TableRecord& table);

// Keys strictly ascend, from the first that the segment names to the last. Those of a prefix table
// are prefixes, and the values of a table of numbers are numbers. Reads all of the keys.
Status check_rows(Backend& backend, const IndexedSegment& segment, const TableRecord& table);

// Checks everything on the disk: blocks, rows, trees that lead to each key, and filters that deny
// none.
Status verify_segment(FileSystem& fs, Backend& backend, const IndexedSegment& segment,
                      const TableRecord& table);
// That the keys of segments of a run do not overlap. segments: of a table.
Status check_runs(const SegmentList& segments);
// Both.
Status verify_table(FileSystem& fs, Backend& backend, const TableRecord& table,
                    const SegmentList& segments);

}  // namespace stride

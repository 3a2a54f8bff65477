// The rows of a segment that a range of keys covers: its keys ascend, so they lie together.
#pragma once

#include <optional>
#include <span>

#include "engine/catalog/indexed_segment.h"
#include "engine/catalog/segment_list.h"
#include "storage/column.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// Rows of keys from `from` on and below `to` (null: no bound). Costs two searches at most, and none
// where all rows lie on one side of each bound. corruption, io_error: the segment cannot be read.
Status find_rows_between(const IndexedSegment& segment, Bytes from, std::optional<Bytes> to,
                         RowInterval* rows);

// The list with these rows, too, erased of its segments. Those of other segments are passed over.
SegmentList with_erased_rows(const SegmentList& segments, std::span<const ErasedRows> erased);

}  // namespace stride

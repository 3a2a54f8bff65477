#include "engine/catalog/rows_between.h"

#include <unordered_map>
#include <vector>

#include "gpu/backend.h"

namespace stride {
namespace {

// How many rows have keys below `key`.
Status count_below(const IndexedSegment& segment, Bytes key, uint64_t* rows) {
  if (compare(segment.first_key(), key) >= 0) {
    *rows = 0;
    return {};
  }
  if (compare(segment.last_key(), key) < 0) {
    *rows = segment.rows();
    return {};
  }
  STRIDE_TRY(segment.prepare());
  uint32_t rank;
  STRIDE_TRY(lower_bound_one(segment.index(), key, &rank));
  *rows = rank;
  return {};
}

}  // namespace

Status find_rows_between(const IndexedSegment& segment, Bytes from, std::optional<Bytes> to,
                         RowInterval* rows) {
  STRIDE_TRY(segment.open_failure());
  *rows = {0, segment.rows()};
  if (segment.rows() == 0) return {};
  STRIDE_TRY(count_below(segment, from, &rows->first));
  return to ? count_below(segment, *to, &rows->end) : Status();
}

SegmentList with_erased_rows(const SegmentList& segments, std::span<const ErasedRows> erased) {
  if (erased.empty()) return segments;
  std::unordered_map<uint64_t, RowIntervals> by_segment;
  for (const ErasedRows& e : erased) by_segment[e.segment].add(e.rows);
  std::vector<std::shared_ptr<IndexedSegment>> all(segments.begin(), segments.end());
  for (auto& segment : all)
    if (auto found = by_segment.find(segment->record().segment);
        segment->is_stored() && found != by_segment.end())
      segment = std::make_shared<IndexedSegment>(*segment, found->second);
  return SegmentList(all);
}

}  // namespace stride

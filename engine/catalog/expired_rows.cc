#include "engine/catalog/expired_rows.h"

#include <algorithm>
#include <vector>

namespace stride {
namespace {

// Nobody has looked for the first end among rows that come from memtables.
bool may_have_ended(const IndexedSegment& segment, const ExpiryCheck& check) {
  return segment.open_failure().ok() &&
         (!segment.is_stored() || segment.record().expiry.first <= check.now);
}

}  // namespace

SegmentList segments_at(const TableRecord& table, const SegmentList& segments, int64_t now) {
  const ExpiryCheck check = expiry_at(table, now);
  auto has_ended = [&](const auto& segment) { return may_have_ended(*segment, check); };
  if (!check.is_there() || std::none_of(segments.begin(), segments.end(), has_ended))
    return segments;
  std::vector<std::shared_ptr<IndexedSegment>> all(segments.begin(), segments.end());
  for (auto& segment : all) {
    if (!has_ended(segment)) continue;
    // The next reader's object need not look again. What fails here is told by those who read.
    Status ignored = segment->prepare();
    segment = std::make_shared<IndexedSegment>(*segment, check);
  }
  return SegmentList(all);
}

std::shared_ptr<const TableVersion> table_at(const TableVersion& table, int64_t now) {
  SegmentList segments = segments_at(*table.table, table.segments, now);
  const bool is_same =
      std::equal(segments.begin(), segments.end(), table.segments.begin(), table.segments.end());
  if (is_same) return nullptr;
  auto made = std::make_shared<TableVersion>(table);
  made->segments = std::move(segments);
  return made;
}

}  // namespace stride

#include "engine/catalog/stored_segment.h"

#include <unordered_map>

#include "engine/catalog/segment_check.h"
#include "storage/log_follower.h"

namespace stride {

Result<std::shared_ptr<Segment>> open_segment(const DatabaseContext& context,
                                              const SegmentRecord& record,
                                              const TableRecord& table) {
  auto segment = Segment::open(*context.fs, context.segment_path(record.segment), record.segment);
  if (!segment.ok()) return segment;
  if (Status s = check_record(**segment, record, table); !s.ok()) return s;
  return segment;
}

Status as_damage(const Status& s, const std::string& file) {
  if (s.code() == StatusCode::not_found)
    return Status::corruption(file, 0, "the segment's file is missing")
        .with_remedy("restore the file from a backup");
  // A directory, say.
  if (s.code() == StatusCode::invalid_argument)
    return Status::corruption(file, 0, s.message()).with_remedy("restore the file from a backup");
  return s;
}

Status check_whole(const DatabaseContext& context, const VersionEdit& edit,
                   const ManifestReplay& before) {
  std::unordered_map<uint32_t, const TableRecord*> created;
  for (const TableRecord& table : edit.created) created.emplace(table.id, &table);
  for (const LogRecord& record : edit.created_logs) {
    STRIDE_TRY(LogFollower::open(*context.fs, context.log_path(record.number), record, 0).status());
  }
  for (const SegmentRecord& record : edit.added) {
    auto is_new = created.find(record.table);
    const TableRecord* table =
        is_new == created.end() ? before.find_table(record.table) : is_new->second;
    if (!table) continue;  // the edit does not fit
    auto segment = open_segment(context, record, *table);
    STRIDE_TRY(segment.ok() ? (*segment)->verify() : segment.status());
  }
  return {};
}

}  // namespace stride

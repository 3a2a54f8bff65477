#include "engine/write/adopted_segments.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/catalog/database_context.h"
#include "engine/catalog/pending_edit.h"
#include "engine/catalog/reserve_one_more.h"
#include "engine/catalog/stored_segment.h"
#include "engine/catalog/version.h"
#include "engine/catalog/version_set.h"
#include "storage/copy_files.h"
#include "storage/file_copy.h"
#include "storage/no_throw.h"
#include "storage/quoted.h"

namespace stride {
namespace {

// Tells of the first key that both ranges have.
Status keys_overlap(const TableRecord& table, const AdoptedSegment& below,
                    const AdoptedSegment& above) {
  const std::string& first = below.source->database->path;
  const std::string& second = above.source->database->path;
  const Bytes from = above.segment->first_key();
  std::string key(as_text(from));
  if (below.source == above.source)
    return Status::invalid("table '" + table.name + "' has several runs, whose ranges of keys " +
                           "overlap from " + in_quotes(from) + " on: it has to be one run")
        .with_file(first)
        .with_key(std::move(key))
        .with_remedy("call compact() on it and close it first");
  return Status::invalid("the ranges of keys of table '" + table.name + "' in " + in_quotes(first) +
                         " and in " + in_quotes(second) + " overlap from " + in_quotes(from) +
                         " on")
      .with_file(second)
      .with_key(std::move(key))
      .with_remedy("give each key to one of them, or adopt them in transactions of their own");
}

// Makes the file of one, and opens it.
Result<std::shared_ptr<Segment>> copy_one(const DatabaseContext& context,
                                          const SegmentRecord& record, const TableRecord& table,
                                          const AdoptedSegment& adopted) {
  FileSystem& fs = *context.fs;
  const std::string path = context.segment_path(record.segment);
  const std::string& from = adopted.segment->segment().path();
  auto source = FileSource::open(fs, from);
  if (!source.ok()) return as_damage(source.status(), from);
  auto sums = read_segment_sums(*source, adopted.segment->record().segment);
  if (!sums.ok()) return sums.status();
  STRIDE_TRY(copy_segment_as(record.segment, *source, *sums, fs, path));
  std::shared_ptr<Segment> copy;
  Status opened = no_throw([&] {
    auto segment = open_segment(context, record, table);
    if (segment.ok()) copy = std::move(*segment);
    return segment.status();
  });
  if (opened.ok()) return copy;
  Status ignored = no_throw([&] { return fs.remove(path); });
  return opened;
}

}  // namespace

Status sort_disjoint(const TableRecord& table, std::vector<AdoptedSegment>* segments) {
  std::sort(segments->begin(), segments->end(), [](const auto& a, const auto& b) {
    return compare(a.segment->first_key(), b.segment->first_key()) < 0;
  });
  for (size_t i = 1; i < segments->size(); ++i) {
    const AdoptedSegment& below = (*segments)[i - 1];
    const AdoptedSegment& above = (*segments)[i];
    if (compare(below.segment->last_key(), above.segment->first_key()) >= 0)
      return keys_overlap(table, below, above);
  }
  return {};
}

Status copy_adopted(const DatabaseContext& context, VersionSet& versions, const TableRecord& table,
                    std::span<const AdoptedSegment> segments, Durability durability,
                    PendingEdit* pending) {
  std::vector<SegmentRecord> records;
  for (const AdoptedSegment& adopted : segments) {
    const SegmentRecord& there = adopted.segment->record();
    records.push_back(
        {versions.new_id(), table.id, 0, there.rows, 0, there.bytes, {}, there.expiry});
  }
  std::vector<std::shared_ptr<Segment>> copies(segments.size());
  std::vector<PendingEdit::Unsynced> unsynced;
  for (const SegmentRecord& record : records)
    unsynced.push_back({nullptr, context.segment_path(record.segment)});
  reserve_more(&pending->segments, copies.size());
  reserve_more(&pending->edit.added, copies.size());
  reserve_more(&pending->unsynced, copies.size());
  const Status copied = copy_files(copies.size(), nullptr, [&](uint64_t i) {
    auto copy = copy_one(context, records[i], table, segments[i]);
    if (copy.ok()) copies[i] = std::move(*copy);
    return copy.status();
  });
  for (size_t i = 0; i < copies.size(); ++i) {
    if (!copies[i]) continue;
    // Its content is synced by now, but its name is only with the directory.
    unsynced[i].segment = copies[i];
    if (durability != Durability::sync) pending->unsynced.push_back(std::move(unsynced[i]));
    pending->edit.added.push_back(records[i]);
    pending->segments.push_back(std::move(copies[i]));
  }
  return copied;
}

}  // namespace stride

#include "engine/catalog/next_version.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <vector>

#include "engine/prefix/matcher.h"

namespace stride {
namespace {

using Segments = std::vector<std::shared_ptr<IndexedSegment>>;

// What an edit does to a table.
struct TableChange {
  Segments added;
  std::unordered_set<const IndexedSegment*> removed;
};

std::map<uint32_t, TableChange> changes_by_table(const PendingEdit& pending, FileSystem& fs) {
  std::map<uint32_t, TableChange> changes;
  const std::vector<SegmentRecord>& added = pending.edit.added;
  for (size_t i = 0; i < added.size(); ++i) {
    const auto& segment = pending.segments[i];
    auto file = std::make_shared<SegmentFile>(fs, segment->path());
    changes[added[i].table].added.push_back(
        std::make_shared<IndexedSegment>(std::move(file), segment, added[i]));
  }
  for (const auto& segment : pending.obsolete)
    changes[segment->record().table].removed.insert(segment.get());
  return changes;
}

SegmentList change_segments(const SegmentList& before, const TableChange& change) {
  if (change.removed.empty()) return before.with_newer(change.added);
  Segments kept;
  for (const auto& s : before)
    if (!change.removed.contains(s.get())) kept.push_back(s);
  if (!change.added.empty()) {
    const uint64_t run = change.added[0]->record().run;
    auto older = std::find_if(kept.begin(), kept.end(),
                              [&](const auto& s) { return s->record().run < run; });
    kept.insert(older, change.added.begin(), change.added.end());
  }
  return SegmentList(kept);
}

void replace(const SegmentList& before, const SegmentList& after, Version* version) {
  version->file_bytes += after.file_bytes() - before.file_bytes();
  version->resident_bytes += after.resident_bytes() - before.resident_bytes();
}

void drop_tables(const std::unordered_set<uint32_t>& dropped, Version* version) {
  std::erase_if(version->tables, [&](const auto& t) {
    if (!dropped.contains(t->table->id)) return false;
    replace(t->segments, {}, version);
    return true;
  });
  version->index = std::make_shared<const TableIndex>(
      *version->index, std::span<const TableRecord* const>(), dropped);
}

}  // namespace

std::shared_ptr<const TableVersion> empty_table(std::shared_ptr<const TableRecord> record) {
  const bool prefixes = record->address_bits > 0;
  return std::make_shared<const TableVersion>(
      TableVersion{std::move(record), {}, prefixes ? std::make_shared<MatcherSlot>() : nullptr});
}

std::shared_ptr<const Version> with_tables(
    std::shared_ptr<const Version> before,
    std::span<const std::shared_ptr<const TableRecord>> created) {
  if (created.empty()) return before;
  auto version = make_shared_here<Version>(*before);
  std::vector<const TableRecord*> records;
  std::vector<std::shared_ptr<const TableVersion>> tables;
  for (const auto& record : created) {
    records.push_back(record.get());
    tables.push_back(empty_table(record));
  }
  auto by_id = [](const auto& a, const auto& b) { return a->table->id < b->table->id; };
  std::sort(tables.begin(), tables.end(), by_id);
  // Ids ascend, so that nearly always all new tables go to the end.
  const auto first =
      std::upper_bound(version->tables.begin(), version->tables.end(), tables.front(), by_id) -
      version->tables.begin();
  const auto size = static_cast<ptrdiff_t>(version->tables.size());
  version->tables.insert(version->tables.end(), tables.begin(), tables.end());
  std::inplace_merge(version->tables.begin() + first, version->tables.begin() + size,
                     version->tables.end(), by_id);
  version->index =
      std::make_shared<const TableIndex>(*before->index, records, std::unordered_set<uint32_t>());
  return version;
}

std::shared_ptr<const Version> next_version(const Version& before, const PendingEdit& pending,
                                            FileSystem& fs) {
  auto next = make_shared_here<Version>(before);
  const std::unordered_set<uint32_t> dropped(pending.edit.dropped.begin(),
                                             pending.edit.dropped.end());
  for (const auto& [id, change] : changes_by_table(pending, fs)) {
    if (dropped.contains(id)) continue;
    std::shared_ptr<const TableVersion>& place = next->tables[before.index->position(id)];
    auto table = std::make_shared<TableVersion>(*place);
    table->segments = change_segments(place->segments, change);
    replace(place->segments, table->segments, next.get());
    if (table->matcher) table->matcher = place->matcher->follow(*next->executor, *table);
    place = std::move(table);
  }
  if (!dropped.empty()) drop_tables(dropped, next.get());
  return next;
}

}  // namespace stride

#include "engine/catalog/next_version.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_set>
#include <vector>

#include "engine/catalog/rows_between.h"
#include "engine/prefix/matcher.h"

namespace stride {
namespace {

using Segments = std::vector<std::shared_ptr<IndexedSegment>>;

// What an edit does to a table.
struct TableChange {
  Segments added;
  std::unordered_set<const IndexedSegment*> removed;
  std::vector<ErasedRows> erased;
};

std::map<uint32_t, TableChange> changes_by_table(const PendingEdit& pending) {
  std::map<uint32_t, TableChange> changes;
  const std::vector<SegmentRecord>& added = pending.edit.added;
  for (size_t i = 0; i < added.size(); ++i) {
    const auto& segment = pending.segments[i];
    auto file = std::make_shared<SegmentFile>(segment->path());
    changes[added[i].table].added.push_back(
        std::make_shared<IndexedSegment>(std::move(file), segment, added[i]));
  }
  for (const auto& segment : pending.obsolete)
    changes[segment->record().table].removed.insert(segment.get());
  for (const ErasedRows& erased : pending.edit.erased)
    changes[erased.table].erased.push_back(erased);
  return changes;
}

SegmentList add_and_remove(const SegmentList& before, const TableChange& change) {
  const bool is_newest = before.empty() || change.added.empty() ||
                         before[0]->record().run <= change.added[0]->record().run;
  if (change.removed.empty() && is_newest) return before.with_newer(change.added);
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

SegmentList change_segments(const SegmentList& before, const TableChange& change) {
  return with_erased_rows(add_and_remove(before, change), change.erased);
}

void count_bytes(const SegmentList& before, const SegmentList& after, Version* version) {
  version->file_bytes += after.file_bytes() - before.file_bytes();
  version->resident_bytes += after.resident_bytes() - before.resident_bytes();
}

std::shared_ptr<const TableVersion> change_table(const TableVersion& before,
                                                 const TableChange& change, Version* version) {
  auto table = std::make_shared<TableVersion>(before);
  table->segments = change_segments(before.segments, change);
  count_bytes(before.segments, table->segments, version);
  if (table->matcher) table->matcher = before.matcher->follow(*version->executor, *table);
  return table;
}

void drop_tables(const std::unordered_set<uint32_t>& dropped, Version* version) {
  std::vector<size_t> positions;
  std::vector<const TableRecord*> records;
  for (uint32_t id : dropped) {
    const size_t at = version->index->position(id);
    if (at == TableIndex::none) continue;
    const TableVersion& table = *version->tables[at];
    positions.push_back(at);
    records.push_back(table.table.get());
    count_bytes(table.segments, {}, version);
  }
  std::sort(positions.begin(), positions.end());
  version->index = std::make_shared<const TableIndex>(version->index->without(records));
  version->tables = version->tables.without(positions);
}

bool has_smaller_id(const TableList::value_type& a, const TableList::value_type& b) {
  return a->table->id < b->table->id;
}

// created: by ascending id.
TableList add_tables(const TableList& before, const std::vector<TableList::value_type>& created) {
  if (before.empty() || has_smaller_id(before[before.size() - 1], created.front()))
    return before.with_added(created);
  // Another transaction that began later was faster.
  std::vector<TableList::value_type> tables;
  std::vector<TableList::value_type> there = before.all();
  std::merge(there.begin(), there.end(), created.begin(), created.end(), std::back_inserter(tables),
             has_smaller_id);
  return TableList(tables);
}

// A table without rows.
std::shared_ptr<const TableVersion> empty_table(std::shared_ptr<const TableRecord> record) {
  const bool prefixes = record->address_bits > 0;
  return std::make_shared<const TableVersion>(
      TableVersion{std::move(record), {}, prefixes ? std::make_shared<MatcherSlot>() : nullptr});
}

}  // namespace

std::shared_ptr<const Version> with_tables(
    std::shared_ptr<const Version> before,
    std::span<const std::shared_ptr<const TableRecord>> created) {
  if (created.empty()) return before;
  auto version = make_shared_here<Version>(*before);
  std::vector<const TableRecord*> records;
  std::vector<TableList::value_type> tables;
  for (const auto& record : created) {
    records.push_back(record.get());
    tables.push_back(empty_table(record));
    if (record->expiry) before->database->clock.start();
  }
  std::sort(tables.begin(), tables.end(), has_smaller_id);
  version->tables = add_tables(before->tables, tables);
  version->index = std::make_shared<const TableIndex>(*before->index, records);
  return version;
}

std::shared_ptr<const Version> with_renamed(std::shared_ptr<const Version> before,
                                            std::span<const TableRenaming> renamed) {
  if (renamed.empty()) return before;
  auto version = make_shared_here<Version>(*before);
  std::vector<const TableRecord*> records;
  std::vector<TableList::Replacement> changed;
  for (const TableRenaming& renaming : renamed) {
    const auto& record = renaming.to;
    records.push_back(record.get());
    const size_t at = before->index->position(record->id);
    auto table = std::make_shared<TableVersion>(*before->tables[at]);
    table->table = record;
    changed.emplace_back(at, std::move(table));
  }
  std::sort(changed.begin(), changed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  version->tables = before->tables.with_replaced(changed);
  version->index = std::make_shared<const TableIndex>(before->index->with_renamed(records));
  return version;
}

std::shared_ptr<const Version> next_version(const Version& before, const PendingEdit& pending) {
  auto next = make_shared_here<Version>(before);
  const std::unordered_set<uint32_t> dropped(pending.edit.dropped.begin(),
                                             pending.edit.dropped.end());
  std::vector<TableList::Replacement> changed;
  for (const auto& [id, change] : changes_by_table(pending)) {
    if (dropped.contains(id)) continue;
    const size_t at = before.index->position(id);
    changed.emplace_back(at, change_table(*before.tables[at], change, next.get()));
  }
  next->tables = before.tables.with_replaced(changed);
  if (pending.memtable) {
    next->sealed.insert(next->sealed.begin(), pending.sealed);
    next->memtable = pending.memtable;
  }
  if (pending.flushed_run != 0)
    std::erase_if(next->sealed, [&](const auto& s) { return s.run == pending.flushed_run; });
  if (!dropped.empty()) drop_tables(dropped, next.get());
  return next;
}

}  // namespace stride

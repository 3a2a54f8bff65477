#include "engine/catalog/followed_tables.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/catalog/segment_check.h"
#include "engine/catalog/stored_segment.h"
#include "engine/prefix/matcher.h"

namespace stride {
namespace {

using Segments = std::vector<std::shared_ptr<IndexedSegment>>;

bool is_same(const SegmentRecord& a, const SegmentRecord& b) {
  return a.segment == b.segment && a.run == b.run && a.erased == b.erased;
}

class FollowedTables {
 public:
  FollowedTables(const DatabaseContext& context, const Version& before, MissingSegment missing)
      : context_(context), before_(before), missing_(missing) {}

  Result<std::shared_ptr<Version>> make(const ManifestState& state) {
    std::unordered_map<uint32_t, std::vector<const SegmentRecord*>> records;  // newest first
    for (size_t i = state.segments.size(); i-- > 0;)
      records[state.segments[i].table].push_back(&state.segments[i]);
    auto version = make_shared_here<Version>(before_);
    version->file_bytes = version->resident_bytes = 0;
    std::vector<TableList::value_type> tables;
    std::vector<const TableRecord*> table_records;
    for (const TableRecord& record : state.tables) {
      if (record.expiry) before_.database->clock.start();
      auto table = make_table(record, records[record.id]);
      if (!table.ok()) return table.status();
      version->file_bytes += (*table)->segments.file_bytes();
      version->resident_bytes += (*table)->segments.resident_bytes();
      table_records.push_back((*table)->table.get());
      tables.push_back(std::move(*table));
    }
    version->tables = TableList(tables);
    version->index = std::make_shared<const TableIndex>(TableIndex(), table_records);
    return version;
  }

 private:
  Result<TableList::value_type> make_table(const TableRecord& record,
                                           const std::vector<const SegmentRecord*>& records) {
    const size_t at = before_.index->position(record.id);
    const TableList::value_type there = at == TableIndex::none ? nullptr : before_.tables[at];
    const bool same_segments =
        there &&
        std::equal(records.begin(), records.end(), there->segments.begin(), there->segments.end(),
                   [](const SegmentRecord* a, const auto& b) { return is_same(*a, b->record()); });
    if (same_segments && there->table->name == record.name) return there;
    auto table = there ? std::make_shared<TableVersion>(*there) : std::make_shared<TableVersion>();
    if (!there || there->table->name != record.name)
      table->table = std::make_shared<const TableRecord>(record);
    if (!there && record.address_bits > 0) table->matcher = std::make_shared<MatcherSlot>();
    if (same_segments) return TableList::value_type(std::move(table));
    auto segments = make_segments(record, records, there.get());
    if (!segments.ok()) return segments.status();
    table->segments = SegmentList(*segments);
    if (there && table->matcher) table->matcher = there->matcher->follow(*before_.executor, *table);
    return TableList::value_type(std::move(table));
  }

  Result<Segments> make_segments(const TableRecord& table,
                                 const std::vector<const SegmentRecord*>& records,
                                 const TableVersion* there) {
    std::unordered_map<uint64_t, const std::shared_ptr<IndexedSegment>*> open;
    if (there)
      for (const auto& segment : there->segments) open.emplace(segment->record().segment, &segment);
    Segments segments;
    for (const SegmentRecord* record : records) {
      auto found = open.find(record->segment);
      if (found != open.end() && is_same(*record, (*found->second)->record())) {
        segments.push_back(*found->second);
      } else if (found != open.end() && (*found->second)->record().run == record->run) {
        segments.push_back(std::make_shared<IndexedSegment>(**found->second, record->erased));
      } else {
        auto opened = open_new(table, *record);
        if (!opened.ok()) return opened.status();
        segments.push_back(std::move(*opened));
      }
    }
    return segments;
  }

  Result<std::shared_ptr<IndexedSegment>> open_new(const TableRecord& table,
                                                   const SegmentRecord& record) {
    const std::string path = context_.segment_path(record.segment);
    auto segment = open_segment(context_, record, table);
    if (!segment.ok()) {
      const bool is_missing = segment.status().code() == StatusCode::not_found;
      if (is_missing && missing_ == MissingSegment::error) return segment.status();
      Status damage = as_damage(segment.status(), path);
      if (!is_damage(damage)) return damage;
      segment = Segment::unreadable(path, record.segment, std::move(damage));
    }
    return std::make_shared<IndexedSegment>(std::make_shared<SegmentFile>(path),
                                            std::move(*segment), record);
  }

  const DatabaseContext& context_;
  const Version& before_;
  const MissingSegment missing_;
};

}  // namespace

Result<std::shared_ptr<Version>> with_tables_of(const DatabaseContext& context,
                                                const ManifestState& state, const Version& before,
                                                MissingSegment missing) {
  return FollowedTables(context, before, missing).make(state);
}

}  // namespace stride

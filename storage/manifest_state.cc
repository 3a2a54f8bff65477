#include <algorithm>
#include <utility>
#include <vector>

#include "storage/manifest_replay.h"
#include "storage/prefix_key.h"

namespace stride {

namespace {

Status misfit(std::string what) {
  return Status(StatusCode::corruption, "version edit: " + std::move(what))
      .with_remedy("restore the database from a backup");
}

// Ids go up by one with each table, run and file: none comes as far as this, and names of files
// have as many digits at most.
constexpr uint64_t end_of_ids = 1'000'000'000'000'000'000;

Status check_key_width(const TableRecord& table) {
  uint32_t bits = table.address_bits;
  if (bits > max_address_bits && bits != byte_strings) {
    return Status(StatusCode::unsupported_version,
                  "table " + table.name + " is of unknown kind " + std::to_string(bits))
        .with_remedy("open the database with a newer StrideDB");
  }
  if (bits == 0 && table.key_width > max_key_bytes) {
    return misfit("table " + table.name + " has keys of " + std::to_string(table.key_width) +
                  " bytes");
  }
  if (bits != 0 && table.key_width != prefix_key_width(bits)) {
    return misfit("table " + table.name + " has prefixes of " + std::to_string(bits) +
                  " bits and keys of " + std::to_string(table.key_width) + " bytes");
  }
  return {};
}

}  // namespace

// Whether an edit fits, looked at in the order in which its parts are applied.
class ManifestReplay::Check {
 public:
  explicit Check(const ManifestReplay& before) : before_(before) {}

  Status run(const VersionEdit& edit) {
    if (edit.next_id > end_of_ids) return misfit("ids are used up");
    for (uint64_t id : edit.removed) STRIDE_TRY(remove(id));
    for (uint32_t id : edit.dropped) STRIDE_TRY(drop(id));
    for (const RenamedTable& table : edit.renamed) STRIDE_TRY(rename(table));
    for (const RenamedTable& table : edit.renamed) STRIDE_TRY(take_name(table.id, table.name));
    for (const TableRecord& table : edit.created) STRIDE_TRY(create(table));
    for (const SegmentRecord& segment : edit.added) STRIDE_TRY(add(segment));
    if (!edit.erased.empty()) STRIDE_TRY(erase_rows(edit));
    for (uint64_t log : edit.removed_logs) STRIDE_TRY(remove_log(log));
    for (const LogRecord& log : edit.created_logs) STRIDE_TRY(create_log(log.number));
    return edit.sealed_logs.empty() ? Status() : seal_logs(edit);
  }

 private:
  Status remove(uint64_t id) {
    bool known = before_.segments_.contains(id) && removed_.insert(id).second;
    return known ? Status() : misfit("removes unknown segment " + std::to_string(id));
  }
  Status drop(uint32_t id) {
    bool known = before_.tables_.contains(id) && dropped_.insert(id).second;
    return known ? Status() : misfit("drops unknown table " + std::to_string(id));
  }
  Status rename(const RenamedTable& table) {
    bool known = before_.tables_.contains(table.id) && !dropped_.contains(table.id);
    return known && renamed_.insert(table.id).second
               ? Status()
               : misfit("renames unknown table " + std::to_string(table.id) + ", or twice");
  }
  Status take_name(uint32_t id, const std::string& name);
  Status create(const TableRecord& table);
  Status add(const SegmentRecord& segment);
  Status erase_rows(const VersionEdit& edit) const;
  Status remove_log(uint64_t number) {
    bool known = before_.logs_.contains(number) && removed_logs_.insert(number).second;
    return known ? Status() : misfit("removes unknown log " + std::to_string(number));
  }
  Status create_log(uint64_t number) {
    uint64_t last = before_.logs_.empty() ? 0 : before_.logs_.rbegin()->first;
    bool is_new = number > std::max(last, last_log_);
    last_log_ = number;
    if (number >= end_of_ids) return misfit("ids are used up");
    return is_new ? Status() : misfit("creates log " + std::to_string(number) + " out of order");
  }

  Status seal_logs(const VersionEdit& edit) const;

  bool has_table(uint32_t id) const {
    return created_.contains(id) || (before_.tables_.contains(id) && !dropped_.contains(id));
  }
  bool has_name(const std::string& name) const {
    auto found = before_.ids_by_name_.find(name);
    return found != before_.ids_by_name_.end() && !dropped_.contains(found->second) &&
           !renamed_.contains(found->second);
  }
  bool has_segment(uint64_t id) const {
    auto found = before_.segments_.find(id);
    return found != before_.segments_.end() && !removed_.contains(id) &&
           !dropped_.contains(found->second.record.table);
  }

  const ManifestReplay& before_;
  std::unordered_set<uint64_t> removed_, added_, removed_logs_;
  uint64_t last_log_ = 0;
  std::unordered_set<uint32_t> dropped_, renamed_, created_;
  std::unordered_set<std::string> names_;  // of renamed_ and created_
};

Status ManifestReplay::Check::take_name(uint32_t id, const std::string& name) {
  const std::string table = "table " + std::to_string(id);
  if (name.find('\0') != std::string::npos) return misfit("the name of " + table + " has a NUL");
  if (name.empty()) return misfit(table + " has no name");
  if (has_name(name) || !names_.insert(name).second)
    return misfit("gives a name to " + table + " that would be there twice");
  return {};
}

Status ManifestReplay::Check::create(const TableRecord& table) {
  STRIDE_TRY(check_key_width(table));
  if (has_table(table.id) || table.id == 0)
    return misfit("creates table " + std::to_string(table.id) + " twice");
  STRIDE_TRY(take_name(table.id, table.name));
  created_.insert(table.id);
  return {};
}

Status ManifestReplay::Check::add(const SegmentRecord& segment) {
  std::string name = std::to_string(segment.segment);
  if (segment.segment == 0 || has_segment(segment.segment) ||
      !added_.insert(segment.segment).second) {
    return misfit("adds segment " + name + " twice");
  }
  if (!has_table(segment.table)) {
    return misfit("adds segment " + name + " to unknown table " + std::to_string(segment.table));
  }
  if (segment.tombstones > segment.rows) return misfit("more tombstones than rows");
  uint64_t largest = std::max(segment.segment, segment.run);
  if (largest >= end_of_ids) return misfit("ids are used up");
  return {};
}

// The rows are of segments that are there once the edit is applied.
Status ManifestReplay::Check::erase_rows(const VersionEdit& edit) const {
  std::unordered_map<uint64_t, const SegmentRecord*> added;
  for (const SegmentRecord& segment : edit.added) added[segment.segment] = &segment;
  std::unordered_set<uint32_t> prefix_tables;  // of those that are created
  for (const TableRecord& table : edit.created)
    if (table.address_bits != 0) prefix_tables.insert(table.id);
  std::unordered_map<uint64_t, uint64_t> ends;  // of what came before, by segment
  for (const ErasedRows& erased : edit.erased) {
    const std::string name = std::to_string(erased.segment);
    auto is_new = added.find(erased.segment);
    const SegmentRecord* segment = nullptr;
    if (is_new != added.end()) {
      segment = is_new->second;
    } else if (has_segment(erased.segment)) {
      segment = &before_.segments_.at(erased.segment).record;
    }
    if (!segment || segment->table != erased.table)
      return misfit("erases rows of segment " + name + ", which is not there");
    const TableRecord* table = before_.find_table(erased.table);
    if (prefix_tables.contains(erased.table) || (table && table->address_bits != 0))
      return misfit("erases rows of segment " + name + ", which is of a table of prefixes");
    if (erased.rows.empty() || erased.rows.end > segment->rows)
      return misfit("erases rows that segment " + name + " does not have");
    auto [end, is_first] = ends.try_emplace(erased.segment, erased.rows.end);
    if (!is_first && erased.rows.first <= end->second)
      return misfit("erases rows of segment " + name + " out of order");
    end->second = erased.rows.end;
  }
  return {};
}

// Logs are sealed one after the other, and so are the runs that they will be.
Status ManifestReplay::Check::seal_logs(const VersionEdit& edit) const {
  std::map<uint64_t, uint64_t> runs;  // by log
  for (const auto& [number, log] : before_.logs_)
    if (!removed_logs_.contains(number)) runs[number] = log.run;
  for (const LogRecord& log : edit.created_logs) runs[log.number] = 0;
  for (const SealedLog& log : edit.sealed_logs) {
    auto found = runs.find(log.number);
    if (found == runs.end() || found->second != 0 || log.run == 0)
      return misfit("seals log " + std::to_string(log.number) + ", which is not there or sealed");
    if (log.run >= end_of_ids) return misfit("ids are used up");
    found->second = log.run;
  }
  uint64_t last = 0;
  for (const auto& [number, run] : runs) {
    if (run != 0 && run < last)
      return misfit("seals log " + std::to_string(number) + " out of order");
    last = run == 0 ? end_of_ids : run;
  }
  return {};
}

ManifestReplay::ManifestReplay(const ManifestState& start)
    : synced_logs_(start.synced_logs), next_id_(start.next_id) {
  for (const TableRecord& table : start.tables) create_table(table);
  for (const SegmentRecord& segment : start.segments) add_segment(segment);
  for (const LogRecord& log : start.logs) logs_[log.number] = log;
}

void ManifestReplay::create_table(const TableRecord& table) {
  tables_[table.id] = {table, {}};
  ids_by_name_[table.name] = table.id;
  next_id_ = std::max(next_id_, uint64_t{table.id} + 1);
}

void ManifestReplay::drop_table(uint32_t id) {
  auto found = tables_.find(id);
  for (uint64_t segment : found->second.segments) segments_.erase(segment);
  ids_by_name_.erase(found->second.record.name);
  tables_.erase(found);
}

void ManifestReplay::rename_tables(const std::vector<RenamedTable>& renamed) {
  for (const RenamedTable& table : renamed) ids_by_name_.erase(tables_.at(table.id).record.name);
  for (const RenamedTable& table : renamed) {
    tables_.at(table.id).record.name = table.name;
    ids_by_name_[table.name] = table.id;
  }
}

void ManifestReplay::add_segment(const SegmentRecord& segment) {
  segments_[segment.segment] = {segment, ever_added_++};
  tables_[segment.table].segments.insert(segment.segment);
  next_id_ = std::max({next_id_, segment.segment + 1, segment.run + 1});
}

void ManifestReplay::remove_segment(uint64_t id) {
  auto found = segments_.find(id);
  tables_[found->second.record.table].segments.erase(id);
  segments_.erase(found);
}

Status ManifestReplay::apply(const VersionEdit& edit) {
  STRIDE_TRY(Check(*this).run(edit));
  for (uint64_t id : edit.removed) remove_segment(id);
  for (uint32_t id : edit.dropped) drop_table(id);
  rename_tables(edit.renamed);
  for (const TableRecord& table : edit.created) create_table(table);
  for (const SegmentRecord& segment : edit.added) add_segment(segment);
  for (const ErasedRows& erased : edit.erased)
    segments_[erased.segment].record.erased.add(erased.rows);
  for (uint64_t log : edit.removed_logs) logs_.erase(log);
  for (const LogRecord& log : edit.created_logs) {
    logs_[log.number] = {log.number, log.id};
    next_id_ = std::max(next_id_, log.number + 1);
  }
  for (const SealedLog& log : edit.sealed_logs) {
    logs_[log.number].run = log.run;
    next_id_ = std::max(next_id_, log.run + 1);
  }
  synced_logs_ = logs_.empty() ? 0 : edit.synced_logs.value_or(synced_logs_);
  next_id_ = std::max(next_id_, edit.next_id);
  return {};
}

const TableRecord* ManifestReplay::find_table(uint32_t id) const {
  auto found = tables_.find(id);
  return found == tables_.end() ? nullptr : &found->second.record;
}

ManifestState ManifestReplay::state() const {
  ManifestState state;
  state.next_id = next_id_;
  state.synced_logs = synced_logs_;
  for (const auto& [number, log] : logs_) state.logs.push_back(log);
  for (const auto& [id, table] : tables_) state.tables.push_back(table.record);
  std::vector<ReplayedSegment> segments;
  segments.reserve(segments_.size());
  for (const auto& [id, segment] : segments_) segments.push_back(segment);
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) {
    return std::pair(a.record.run, a.order) < std::pair(b.record.run, b.order);
  });
  for (const ReplayedSegment& segment : segments) state.segments.push_back(segment.record);
  return state;
}

Status ManifestState::apply(const VersionEdit& edit) {
  ManifestReplay replay(*this);
  STRIDE_TRY(replay.apply(edit));
  *this = replay.state();
  return {};
}

}  // namespace stride

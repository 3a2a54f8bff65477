#include <algorithm>
#include <unordered_set>

#include "storage/manifest.h"
#include "storage/prefix_key.h"

namespace stride {

namespace {

Status misfit(std::string what) {
  return Status(StatusCode::corruption, "version edit: " + std::move(what))
      .with_remedy("restore the database from a backup");
}

bool has_table(const ManifestState& state, uint32_t id) {
  return std::any_of(state.tables.begin(), state.tables.end(),
                     [&](const TableRecord& t) { return t.id == id; });
}

Status drop_tables(ManifestState* state, const std::vector<uint32_t>& dropped) {
  for (uint32_t id : dropped) {
    if (!std::erase_if(state->tables, [&](const TableRecord& t) { return t.id == id; })) {
      return misfit("drops unknown table " + std::to_string(id));
    }
    std::erase_if(state->segments, [&](const SegmentRecord& s) { return s.table == id; });
  }
  return {};
}

Status remove_segments(ManifestState* state, const std::vector<uint64_t>& removed) {
  if (removed.empty()) return {};
  std::unordered_set<uint64_t> ids(removed.begin(), removed.end());
  size_t count = std::erase_if(state->segments,
                               [&](const SegmentRecord& s) { return ids.contains(s.segment); });
  return count == removed.size() ? Status() : misfit("removes an unknown segment");
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

Status create_tables(ManifestState* state, const std::vector<TableRecord>& created) {
  for (const TableRecord& table : created) {
    STRIDE_TRY(check_key_width(table));
    if (table.name.find('\0') != std::string::npos) {
      return misfit("the name of table " + std::to_string(table.id) + " has a NUL");
    }
    bool taken = std::any_of(state->tables.begin(), state->tables.end(), [&](const auto& t) {
      return t.id == table.id || t.name == table.name;
    });
    if (taken || table.id == 0 || table.name.empty()) {
      return misfit("creates table " + std::to_string(table.id) + " twice, or without a name");
    }
    auto after = std::find_if(state->tables.begin(), state->tables.end(),
                              [&](const TableRecord& t) { return t.id > table.id; });
    state->tables.insert(after, table);
    state->next_id = std::max(state->next_id, uint64_t{table.id} + 1);
  }
  return {};
}

Status add_segments(ManifestState* state, const std::vector<SegmentRecord>& added) {
  if (added.empty()) return {};
  std::unordered_set<uint64_t> ids;
  for (const SegmentRecord& s : state->segments) ids.insert(s.segment);
  for (const SegmentRecord& segment : added) {
    std::string name = std::to_string(segment.segment);
    if (segment.segment == 0 || !ids.insert(segment.segment).second) {
      return misfit("adds segment " + name + " twice");
    }
    if (!has_table(*state, segment.table)) {
      return misfit("adds segment " + name + " to unknown table " + std::to_string(segment.table));
    }
    if (segment.tombstones > segment.rows) return misfit("more tombstones than rows");
    uint64_t largest = std::max(segment.segment, segment.run);
    if (largest >= end_of_ids) return misfit("ids are used up");
    state->segments.push_back(segment);
    state->next_id = std::max(state->next_id, largest + 1);
  }
  std::stable_sort(state->segments.begin(), state->segments.end(),
                   [](const auto& a, const auto& b) { return a.run < b.run; });
  return {};
}

}  // namespace

Status ManifestState::apply(const VersionEdit& edit) {
  if (edit.next_id > end_of_ids) return misfit("ids are used up");
  // On a copy, so that an edit which does not fit changes nothing.
  ManifestState next = *this;
  STRIDE_TRY(remove_segments(&next, edit.removed));
  STRIDE_TRY(drop_tables(&next, edit.dropped));
  STRIDE_TRY(create_tables(&next, edit.created));
  STRIDE_TRY(add_segments(&next, edit.added));
  next.next_id = std::max(next.next_id, edit.next_id);
  *this = std::move(next);
  return {};
}

}  // namespace stride

#include "engine/read/snapshot_reads.h"

#include <utility>
#include <vector>

#include "engine/catalog/expired_rows.h"
#include "engine/read/lookup.h"
#include "engine/read/overlay_scan.h"
#include "engine/read/scan_impl.h"

namespace stride {
namespace {

// More searches are worth to make segments with trees of a memtable's rows.
constexpr uint64_t max_tail_searches = 1024;

}  // namespace

// A row of the memtable is newer than all segments.
Result<std::optional<Bytes>> get_newest(const SnapshotState& state, const Table& table, Bytes key) {
  auto found = state.version()->find(table);
  if (!found.ok()) return found.status();
  if (!SnapshotState::has_newest_rows(*state.version(), **found)) {
    auto whole = state.table(table);
    if (!whole.ok()) return whole.status();
    return lookup_one((*whole)->segments, key);
  }
  const ExpiryCheck expiry = expiry_at(*(*found)->table, state.now());
  const TailRow* row = state.find((*found)->table->id, key);
  if (!row) return lookup_one((*found)->segments, key, expiry);
  if (row->kind == EntryKind::tombstone || expiry.hides(row->value()))
    return std::optional<Bytes>();
  return std::optional(row->value());
}

Result<Scan> scan_newest(const std::shared_ptr<const SnapshotState>& state, const Table& table,
                         const ScanOptions& options) {
  std::vector<OrderedTail> newest;
  auto found = state->ordered_table(table, &newest);
  if (!found.ok()) return found.status();
  TailMerger newer(newest, options);
  auto older =
      make_scan(std::shared_ptr<const Version>(state, state->version().get()), **found, options);
  if (!older.ok() || !newer.row()) return older;
  return overlay_scan(std::move(*older), std::move(newer), options);
}

Status find_sorted_rows(const Version& version, const SnapshotState* state, const Table& table,
                        uint64_t searches, std::vector<SortedRows>* sources) {
  std::vector<OrderedTail> tails;
  auto found = !state                          ? version.find(table)
               : searches <= max_tail_searches ? state->ordered_table(table, &tails)
                                               : state->table(table);
  if (!found.ok()) return found.status();
  return sorted_rows_of(**found, tails, sources);
}

}  // namespace stride

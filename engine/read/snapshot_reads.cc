#include "engine/read/snapshot_reads.h"

#include <utility>
#include <vector>

#include "engine/read/lookup.h"
#include "engine/read/overlay_scan.h"
#include "engine/read/scan_impl.h"

namespace stride {

// A row of the memtable is newer than all segments.
Result<std::optional<Bytes>> get_newest(const SnapshotState& state, const Table& table, Bytes key) {
  auto found = state.version()->find(table);
  if (!found.ok()) return found.status();
  if (!SnapshotState::has_newest_rows(*state.version(), **found)) {
    auto whole = state.table(table);
    if (!whole.ok()) return whole.status();
    return lookup_one((*whole)->segments, key);
  }
  const TailRow* row = state.find((*found)->table->id, key);
  if (!row) return lookup_one((*found)->segments, key);
  if (row->kind == EntryKind::tombstone) return std::optional<Bytes>();
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

}  // namespace stride

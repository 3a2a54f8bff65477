// Reads of what a snapshot holds, its memtables' rows included: one key, and in key order.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/memtable/snapshot_state.h"
#include "engine/read/sorted_rows.h"
#include "engine/scan.h"
#include "engine/table.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// The value lies in the state's memtables and segments.
Result<std::optional<Bytes>> get_newest(const SnapshotState& state, const Table& table, Bytes key);
// The scan keeps the state.
Result<Scan> scan_newest(const std::shared_ptr<const SnapshotState>& state, const Table& table,
                         const ScanOptions& options);
// The sources of a table, newest first, for so many searches. state: of the version; null: it has
// no rows in memtables. They live as long as the state or, without, the version.
Status find_sorted_rows(const Version& version, const SnapshotState* state, const Table& table,
                        uint64_t searches, std::vector<SortedRows>* sources);

}  // namespace stride

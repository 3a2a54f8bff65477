// Reads of what a snapshot holds, its memtables' rows included: one key, and in key order.
#pragma once

#include <memory>
#include <optional>

#include "engine/memtable/snapshot_state.h"
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

}  // namespace stride

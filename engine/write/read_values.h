// Whether a table's keys, intervals and addresses read the same at two moments: what is left to ask
// where rows have moved between segments in between.
#pragma once

#include <memory>
#include <vector>

#include "engine/memtable/snapshot_state.h"
#include "engine/write/read_set.h"
#include "storage/status.h"

namespace stride {

// conflict: they do not. Throws std::bad_alloc.
Status compare_reads(const TableReads& reads, const std::vector<KeyInterval>& intervals,
                     const std::shared_ptr<const SnapshotState>& before,
                     const std::shared_ptr<const SnapshotState>& now);

// What a commit is told.
Status changed_key(const TableRecord& table, Bytes key);
Status changed_interval(const TableRecord& table, Bytes key);

}  // namespace stride

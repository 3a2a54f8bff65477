// What erasing a range of keys means at the commit. Of many keys that are stored, the rows between
// the range's ends are erased in place, which costs as much as there are segments: a note in the
// manifest for each that the range cuts, and nothing more. A key of a memtable, and few stored
// ones, get a tombstone each.
#pragma once

#include <memory>
#include <vector>

#include "engine/catalog/pending_edit.h"
#include "engine/catalog/version.h"
#include "engine/write/staging.h"

namespace stride {

// Takes the ranges out of the table's chunks, and with them the rows before each that it erases. In
// front of all chunks it puts a tombstone for each key of the version, and of `before`, that lies
// in any of the ranges, but for stored rows of large ranges: those go to table->erased. version:
// with its newest rows as segments. before: null, or what comes before the table's chunks, without
// ranges. max_tombstones: Options::max_range_tombstones.
Status expand_ranges(const std::shared_ptr<const Version>& version, const StagedTable* before,
                     uint64_t max_tombstones, StagedTable* table);

// The version without the rows that the table's ranges erase in place.
std::shared_ptr<const Version> with_erased_rows(std::shared_ptr<const Version> version,
                                                const StagedTable& table);

// Enters the rows into the edit. table: of the version that the edit changes. may_remove: it will
// be synced, so that files may go. A segment of which nothing is left is removed then; else a merge
// drops it.
void enter_erased_rows(const TableVersion& table, const std::vector<ErasedRows>& erased,
                       bool may_remove, PendingEdit* pending);

}  // namespace stride

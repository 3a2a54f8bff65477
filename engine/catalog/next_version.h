// The version that follows another one.
#pragma once

#include <memory>
#include <span>

#include "engine/catalog/pending_edit.h"
#include "engine/catalog/table_renaming.h"
#include "engine/catalog/version.h"

namespace stride {

// The version with tables that are being created.
std::shared_ptr<const Version> with_tables(
    std::shared_ptr<const Version> before,
    std::span<const std::shared_ptr<const TableRecord>> created);

// The version with tables that are being renamed. All of them give up their names before one gets
// its new one. Precondition: the tables are there, and no other one has a new name.
std::shared_ptr<const Version> with_renamed(std::shared_ptr<const Version> before,
                                            std::span<const TableRenaming> renamed);

// The version after the edit. before: it has the tables that the edit creates already, and the
// names that it gives. The segments that go are those that pending.obsolete lists. A run that is
// added goes before all that have smaller numbers. Costs little more than what the edit changes.
std::shared_ptr<const Version> next_version(const Version& before, const PendingEdit& pending);

}  // namespace stride

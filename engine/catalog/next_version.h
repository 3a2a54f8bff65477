// The version that follows another one.
#pragma once

#include <memory>
#include <span>

#include "engine/catalog/pending_edit.h"
#include "engine/catalog/version.h"

namespace stride {

// The version with tables that are being created.
std::shared_ptr<const Version> with_tables(
    std::shared_ptr<const Version> before,
    std::span<const std::shared_ptr<const TableRecord>> created);

// The version after the edit. before: it has the tables that the edit creates already. The segments
// that go are those that pending.obsolete lists. A run that is added goes before all that have
// smaller numbers. Costs little more than what the edit changes.
std::shared_ptr<const Version> next_version(const Version& before, const PendingEdit& pending,
                                            FileSystem& fs);

}  // namespace stride

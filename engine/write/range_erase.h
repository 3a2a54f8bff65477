// What erasing a range of keys means at the commit: a tombstone for each key that is there.
#pragma once

#include <memory>

#include "engine/catalog/version.h"
#include "engine/write/staging.h"

namespace stride {

// Takes the ranges out of the table's chunks, and with them the rows before each that it erases. In
// front of all chunks it puts a tombstone for each key of the version, and of `before`, that lies in
// any of the ranges. before: null, or what comes before the table's chunks, without ranges.
Status expand_ranges(const std::shared_ptr<const Version>& version, const StagedTable* before,
                     StagedTable* table);

}  // namespace stride

// What erasing a range of keys means at the commit: a tombstone for each key that is there.
#pragma once

#include <memory>

#include "engine/staging.h"
#include "engine/version.h"

namespace stride {

// Puts tombstones in the place of each chunk of ranges: for the keys that the version has in them,
// and for those that chunks before it put there. before: null, or what comes before the table's
// chunks, without ranges.
Status expand_ranges(const std::shared_ptr<const Version>& version, const StagedTable* before,
                     StagedTable* table);

}  // namespace stride

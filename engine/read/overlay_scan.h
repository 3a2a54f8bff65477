// A scan of segments with newer rows of memtables among theirs.
#pragma once

#include <cstdint>

#include "engine/memtable/tail_merger.h"
#include "engine/scan.h"

namespace stride {

// older: within the same bounds and in the same direction as `newer`, and keeps the memtables.
Scan overlay_scan(Scan older, TailMerger newer, const ScanOptions& options);

}  // namespace stride

// What must hold of the rows of a segment whose blocks match their checksums. Internal to storage.
#pragma once

#include <string>

#include "storage/column.h"
#include "storage/segment_layout.h"
#include "storage/status.h"

namespace stride {

// Offsets ascend and end with the data, keys strictly ascend from first_key to last_key, and there
// are as many tombstones as the header says. Else corruption. The blocks have been checked
// (storage/block_check.h).
Status verify_rows(const std::string& path, const SegmentLayout& layout, Bytes first_key,
                   Bytes last_key);

}  // namespace stride

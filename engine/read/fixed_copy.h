// Copies the values of a batch where all values have one width and nothing is in the way of a row
// (BatchSearch::value_width() and is_plain()).
#pragma once

#include <cstdint>

#include "engine/lookup_result.h"
#include "engine/read/batch_search.h"
#include "storage/status.h"

namespace stride {

// width: of the values, not 0. It may be the one that is wanted.
Status copy_fixed(BatchSearch& search, HostQueries* queries, uint64_t width, GetResult* result);

}  // namespace stride

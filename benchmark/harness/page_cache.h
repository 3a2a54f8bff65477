// The page cache of the files of a directory, for reads that have to come from the disk.
#pragma once

#include <cstdint>
#include <string>

#include "storage/status.h"

namespace stride::benchmark {

// Writes back what is not on the disk yet, and asks the system to forget all that it keeps of the
// files. It does not forget pages that a process has mapped: close the database first.
Status evict_page_cache(const std::string& directory);

// Bytes of the files that are in memory. What the system does not tell counts as not there.
uint64_t cached_bytes(const std::string& directory);

}  // namespace stride::benchmark

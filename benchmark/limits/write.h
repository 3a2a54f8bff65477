// How fast bytes get to where a durable load has to bring them.
#pragma once

#include <cstdint>
#include <string>

#include "benchmark/harness/parallel.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

// Bytes a second of one file of about that size, written past the page cache by a few threads and
// synced, in a new directory below `directory`; the faster of two attempts. Where the file system
// knows no direct writes they go through the page cache.
Result<double> disk_bytes_per_second(const std::string& directory, uint64_t bytes);

// Bytes a second that all threads copy the columns with, into fresh memory on huge pages.
double copy_bytes_per_second(const KeyColumn& keys, const ValueColumn& values, Parallel* parallel);

}  // namespace stride::benchmark

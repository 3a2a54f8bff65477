// RocksDB's merge operator under the benchmark of accumulation.
#pragma once

#include <vector>

#include "benchmark/peers/accumulate_engine.h"

namespace stride::benchmark {

// merge        default options; threads merge batches of 1,000 deltas each, the WAL synced at the
//              end
// merge_tuned  the same with a memtable that holds all, more background threads, and no compression
//
// Empty in a build without RocksDB.
std::vector<AccumulateConfiguration> rocksdb_accumulate_configurations();

}  // namespace stride::benchmark

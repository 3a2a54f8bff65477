// LMDB as a peer of the benchmark.
#pragma once

#include <vector>

#include "benchmark/harness/engine_under_test.h"

namespace stride::benchmark {

// defaults       a transaction for each flow; LMDB has one writer, so the flows queue
// append         all flows' records sorted together and appended in one transaction to a writable
//                map, synced once; native integer keys where the keys are 8 bytes
// append_merged  the same, and a batch's queries are sorted before they are looked up
//
// Empty in a build without LMDB.
std::vector<EngineConfiguration> lmdb_configurations();

}  // namespace stride::benchmark

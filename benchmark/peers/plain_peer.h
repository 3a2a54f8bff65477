// Plain data structures in memory, which are no database: what a machine allows at the most.
#pragma once

#include <vector>

#include "benchmark/harness/engine_under_test.h"

namespace stride::benchmark {

// vector:plain  sorted arrays, searched by halving, 16 queries at a time on all cores
// hash:plain    the same arrays with an open addressing hash table over them
//
// Durable means that the arrays are dumped into one file and synced; open() reads it back.
std::vector<EngineConfiguration> plain_configurations();

}  // namespace stride::benchmark

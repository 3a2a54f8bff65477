// The STS DatabaseBenchmark workload: F flows of tick records into one table, two ordered reads,
// and random look-ups in batches.
//
// All records are made, in columns, before a clock starts. For every engine in turn, in a fresh
// directory: write (from the first record until all flows are durable), read and secondary_read
// (all records in order, on one thread, checked: keys ascend, their count, the sum of all value
// bytes), lookup_N (random batches of N keys, 10 % of them not there, values copied out), open
// (after closing). Untimed: every answer of some batches, and, after reopening, every record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/harness/engine_workload.h"

namespace stride::benchmark {

struct StsWorkloadOptions : EngineWorkloadOptions {
  uint64_t records = 1'000'000;  // of all flows together
  uint32_t flows = 4;
  double randomness = 1;
  uint64_t seed = 1;
  std::vector<uint64_t> batches = {1, 1000, 100'000, 1'000'000};
  double lookup_seconds = 0.2;  // that each size of batch is looked up at least
};

// Appends the rows of all repeats. The first failure or wrong answer ends it.
Status run_sts(const StsWorkloadOptions& options, const Progress& progress,
               std::vector<ResultRow>* rows);

}  // namespace stride::benchmark

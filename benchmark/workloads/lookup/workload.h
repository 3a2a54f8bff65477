// Random keys with values of one length: a bulk load, and random lookups in batches, beside the
// limits of the machine.
//
// For every engine in turn, in a fresh directory: load (all records in one transaction or as the
// engine likes them best), for each size B of batches lookup_B (10 % of the keys are not there,
// values copied out) and, where the engine has it, find_B (references to values), then open (after
// closing). With `cold` in place of lookups: cold_B, the first batch after a fresh open with none
// of the files in the page cache, and warm_B, the same batch again. Untimed: every answer of some
// batches (of all cold and warm ones, and of each caller's), and after reopening the count, the
// order of the keys and the sum of all value bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/datasets/random_records.h"
#include "benchmark/harness/engine_workload.h"

namespace stride::benchmark {

struct LookupWorkloadOptions : EngineWorkloadOptions {
  RandomRecordsOptions records;
  std::vector<uint64_t> batches = {1000, 1'000'000};
  double lookup_seconds = 0.2;  // that each size of batch is looked up at least
  unsigned callers = 1;         // that look up batches of their own at once
  bool cold = false;
  // Options::memory_limit_bytes of the databases that are opened for the cold batches.
  uint64_t cold_memory_bytes = 64'000'000;
};

// Appends the rows of all repeats, with the limits after them: engine `limit`, with the
// configurations gather (values from random places into one column), reads (a random read of memory
// a query), bus (queries to a device and answers back), disk and memory copy. A row that has such a
// bound names it: limit, limit_per_second, limit_percent. The first failure or wrong answer ends
// it.
Status run_lookup(const LookupWorkloadOptions& options, const Progress& progress,
                  std::vector<ResultRow>* rows);

}  // namespace stride::benchmark

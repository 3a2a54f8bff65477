// Accumulation: how fast deltas are added to 64-bit integers by key, in StrideDB, through RocksDB's
// merge operator, and in a std::unordered_map in memory.
//
// Keys are random, of 8 bytes; which of them a delta is for follows a distribution. Phases: load
// (the first numbers of all keys), accumulate (all deltas, which are durable then), read (all keys
// and their numbers). Untimed: what was read is compared with sums in a plain array.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/datasets/scatter_data.h"
#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/report.h"
#include "benchmark/peers/accumulate_engine.h"

namespace stride::benchmark {

// All of this build: StrideDB, RocksDB, the loop.
const std::vector<AccumulateConfiguration>& accumulate_engines();

struct AccumulateOptions {
  uint64_t deltas = 10'000'000, keys = 1'000'000;
  TargetDistribution distribution;
  std::vector<AccumulateConfiguration> engines;
  AccumulateSettings settings;  // but for the directory
  std::string directory = ".";
  unsigned repeats = 3;
  uint64_t seed = 1;
};

// Appends a row for each phase of each repeat. The first failure or wrong number ends it.
Status run_accumulate(const AccumulateOptions& options, const Progress& progress,
                      std::vector<ResultRow>* rows);

}  // namespace stride::benchmark

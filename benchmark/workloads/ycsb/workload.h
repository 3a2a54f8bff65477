// The YCSB core workloads on StrideDB and on its peers.
//
// For each workload and number of threads each store gets a new directory. The phase `load` puts
// the records in a random order, from all threads, in commits of load_batch records. The timed
// phase carries out the workload's operations, one record a commit. Then the store is closed and
// opened, and all records are read and checked, as is every answer before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "benchmark/harness/progress.h"
#include "benchmark/harness/report.h"
#include "benchmark/peers/small_store.h"
#include "benchmark/workloads/ycsb/mix.h"
#include "benchmark/workloads/ycsb/timed_phase.h"

namespace stride::benchmark {

struct YcsbOptions {
  std::vector<YcsbMix> mixes;
  std::optional<KeyChoice> keys;  // none: as the workload has it: zipf, or latest for D
  std::vector<unsigned> threads = {1};
  uint64_t records = 1'000'000;  // that are loaded
  uint64_t operations = 0;       // at most; 0: as many as there is time for
  double seconds = 10;           // at most; 0: until all operations are done
  uint32_t rounds = 20;          // of the workload that rewrites, in place of these two
  uint32_t value_bytes = 100;
  uint32_t load_batch = 1000;
  double interval_seconds = 0.5;
  Durability durability = Durability::sync;
  std::vector<SmallStoreConfiguration> stores;
  std::string directory = ".";
  unsigned repeats = 1;
  uint64_t seed = 1;
};

// What a store did over the time of one run.
struct YcsbSeries {
  std::string workload, store;
  unsigned threads = 1, repeat = 0;
  double interval_seconds = 0, seconds = 0;
  std::vector<YcsbInterval> intervals;
};

// Phases of the rows of workload A with 2 threads: A_2_load, A_2, A_2_reopen. The number columns of
// A_2 are in report.cc; times of calls are read_p50_us, read_p99_us, read_p999_us, read_max_us and
// the same of updates, inserts, scans and rmw. The first failure or wrong answer ends it.
Status run_ycsb(const YcsbOptions& options, const Progress& progress, std::vector<ResultRow>* rows,
                std::vector<YcsbSeries>* series);

}  // namespace stride::benchmark

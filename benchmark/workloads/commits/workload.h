// Commits of one record each, from one and from many threads: how many a second, and how long one
// takes, beside the same in RocksDB and LMDB.
//
// For each number of threads a fresh store: phase put_N (each thread commits records of its own
// until there are enough of them, or the time is up), get_N (random ones of them), reopen_N
// (closing and opening). Every value that is read is compared with what was written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/harness/progress.h"
#include "benchmark/harness/report.h"
#include "benchmark/peers/small_store.h"

namespace stride::benchmark {

struct CommitsOptions {
  uint64_t records = 1'000'000;  // at most, of a phase
  double seconds = 5;            // at most, of a phase
  uint32_t value_bytes = 100;
  std::vector<unsigned> threads = {1};
  Durability durability = Durability::sync;
  std::vector<SmallStoreConfiguration> stores;
  std::string directory = ".";
  unsigned repeats = 3;
  uint64_t seed = 1;
};

// Appends a row for each phase of each repeat, with the numbers threads and value_bytes and, of
// puts and gets, p50_us, p99_us and max_us of a call. The first failure or wrong value ends it.
Status run_commits(const CommitsOptions& options, const Progress& progress,
                   std::vector<ResultRow>* rows);

// What the latencies were, for below the table.
std::string latency_table(const std::vector<ResultRow>& rows);

// Puts and gets a second by the number of threads.
std::string threads_svg(const std::string& title, const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark

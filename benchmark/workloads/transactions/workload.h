// Transactions that read some records and change a few of them, from many threads at once, beside
// RocksDB's OptimisticTransactionDB and LMDB, whose writers take turns.
//
// For each number of threads and choice of keys each store gets a new directory, and the records.
// Each transaction reads `reads` different records and adds one to the counter of the first
// `writes` of them; one that is in conflict is tried again at once, with the same records. In the
// end the counters must add up to what was committed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/harness/progress.h"
#include "benchmark/harness/report.h"
#include "benchmark/peers/small_store.h"
#include "benchmark/workloads/ycsb/mix.h"

namespace stride::benchmark {

struct TransactionsOptions {
  uint64_t records = 1'000'000;
  double seconds = 5;  // of each phase
  uint32_t reads = 4;
  uint32_t writes = 2;  // not more than reads
  uint32_t value_bytes = 100;
  std::vector<unsigned> threads = {16};
  std::vector<KeyChoice> keys;  // uniform or zipf
  Durability durability = Durability::flush;
  std::vector<SmallStoreConfiguration> stores;
  std::string directory = ".";
  unsigned repeats = 3;
  uint64_t seed = 1;
};

// Appends a row for each phase of each repeat: records are commits, and the numbers are threads,
// conflicts (attempts that were in vain), p50_us, p99_us and max_us of a transaction with all its
// attempts. The first failure, or a counter that is wrong, ends it.
Status run_transactions(const TransactionsOptions& options, const Progress& progress,
                        std::vector<ResultRow>* rows);

// Commits, conflicts and latencies, for below the table.
std::string transactions_table(const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark

// From which size of batch on a device is faster than the host, and whether StrideDB knows.
//
// One database is loaded and closed. Several read-only handles open it, with different backends,
// and read all of it once. Then, for every size of batch from 1 to the largest, doubling, in turns:
// a loop of single gets (on the host), a batch on the host, a batch with the device, and a batch
// with the automatic choice, which has been used enough before to have brought the data to the
// device. Values are copied into one column. Untimed: every answer of some batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/datasets/random_records.h"
#include "benchmark/harness/engine_workload.h"

namespace stride::benchmark {

struct CrossoverOptions {
  RandomRecordsOptions records;
  uint64_t max_batch = 1 << 20;
  bool use_device = true;
  ValuePlacement values = ValuePlacement::host;
  unsigned repeats = 3;
  unsigned threads = 1;
  std::string directory = ".";
  double min_seconds = 0.05;  // of each size, way and repeat
};

// Appends the medians: rows of the engine stride with the configurations single, host, cuda and
// automatic, and the number `batch`. Where there is no device, the latter two are left out and
// *no_device says why. The first other failure or wrong answer ends it.
Status run_crossover(const CrossoverOptions& options, const Progress& progress,
                     std::vector<ResultRow>* rows, std::string* no_device);

}  // namespace stride::benchmark

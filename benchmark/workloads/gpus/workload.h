// Several devices beside one of them, in the same run.
//
// For each number of devices there is a backend, over as many GPUs, or over as many devices that
// share the first GPU. All of them have the same index, its values and the same table of prefixes,
// on each device or in parts.
// Each operation is measured with each backend in turn, round by round: batches whose queries and
// answers lie in the memory of the devices (spread over them evenly), in that of the first device
// alone, in pinned host memory and in any host memory. Untimed: every answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/harness/progress.h"
#include "benchmark/harness/report.h"
#include "benchmark/harness/timed_phases.h"
#include "gpu/backend.h"
#include "storage/status.h"

namespace stride::benchmark {

struct GpusOptions {
  bool one_gpu = false;                 // devices that share the first GPU
  std::vector<uint64_t> devices = {1};  // how many; 1 is among them
  uint64_t keys = 10'000'000;           // random, of 8 bytes
  uint64_t queries = 100'000'000;       // of a call
  double zipf =
      0;  // the k-th hottest key is as likely as 1 / k^zipf; 0: all alike, nine of ten hit
  uint64_t value_queries = 10'000'000;  // of a call that copies values
  uint32_t value_bytes = 32;
  uint64_t scatter_sources = 100'000'000;  // of a call that adds numbers up
  uint64_t scatter_targets = 1'000'000;
  uint64_t set_vectors = 50'000'000;  // of 4 words, that are put into a set in one call
  std::vector<std::string> prefixes;  // files, as read_routes() takes them
  SeveralOptions cut{};
  unsigned rounds = 3;
  TimingOptions timing;  // of an operation in a round
  unsigned threads = 1;
  uint64_t seed = 1;
};

// Appends a row for each number of devices, operation and round: engine stride, configuration
// "2 devices", phase "find_pinned", numbers `devices` and, where the model has one,
// `limit_per_second`. unavailable: there are not so many GPUs. The first other failure or wrong
// answer ends it.
Status run_gpus(const GpusOptions& options, const Progress& progress, std::vector<ResultRow>* rows);

}  // namespace stride::benchmark

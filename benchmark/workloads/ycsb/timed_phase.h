// The timed phase of a run: all clients at once, and what they did in each interval of time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "benchmark/harness/latency_histogram.h"
#include "benchmark/workloads/ycsb/client.h"

namespace stride::benchmark {

struct TimedPhaseOptions {
  unsigned threads = 1;
  uint64_t operations = 0;        // of all threads, at most; 0: as many as there is time for
  double seconds = 0;             // at most; 0: until all operations are done
  double interval_seconds = 0.5;  // of the series
};

struct YcsbInterval {
  uint64_t operations = 0;
  double p99_us = 0, max_us = 0;
  uint64_t directory_bytes = 0;  // at the interval's end
};

struct TimedPhase {
  double seconds = 0;
  uint64_t operations = 0;
  std::array<LatencyHistogram, operation_kinds> latencies;  // of each Operation
  std::vector<YcsbInterval> intervals;                      // the last one is shorter

  const LatencyHistogram& of(Operation operation) const {
    return latencies[static_cast<size_t>(operation)];
  }
};

// directory_bytes is called at the end of each interval, in the calling thread. The first failure
// ends it.
Status run_timed_phase(SmallStore* store, YcsbRecords* records, const YcsbClientOptions& clients,
                       const TimedPhaseOptions& options,
                       const std::function<uint64_t()>& directory_bytes, TimedPhase* phase);

}  // namespace stride::benchmark

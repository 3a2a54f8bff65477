// Scatter-add: how fast T[R[i]] += S[i] is, for sums, minima and maxima, beside a plain loop on the
// host and plain atomic operations on a device, and beside what reading S and R takes.
//
// S and R are made before a clock starts, and lie where they are used; T is set to zeros before
// each call, untimed. A row for each call: `scatter` (until the call has returned), on a device
// with all in its memory also `scatter_stream` (one of many calls on a stream). With prepared
// targets `prepare`, `apply` and `apply_stream`. Untimed: what the last call has made of T is
// compared with sums of twice the precision, or exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/datasets/scatter_data.h"
#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/report.h"
#include "benchmark/harness/timed_phases.h"
#include "gpu/backend.h"

namespace stride::benchmark {

// Where S, R and T lie for a device.
enum class ScatterMemory { device, pinned, host };

// Lists: each is combined with all others.
struct ScatterWorkloadOptions {
  std::vector<uint64_t> sources, targets;
  std::vector<TargetDistribution> distributions;
  std::vector<NumberType> types;
  std::vector<uint32_t> index_widths{4};
  std::vector<ScatterOperation> operations{ScatterOperation::add};
  // Only the first counts where results are exact anyway.
  std::vector<ScatterMode> modes{ScatterMode::fast};
  // A device always has `direct` too, to compare with.
  std::vector<ScatterMethod> methods{ScatterMethod::automatic};
  std::vector<ScatterMemory> memories{ScatterMemory::device};
  bool with_prepared = false;
  unsigned threads = 1;  // that make and check the data
  uint64_t seed = 1;
  TimingOptions timing;
  double stream_seconds = 0.05;  // about what the calls on a stream take together
};

// Null: not measured there. The loop runs where there is a host.
struct ScatterBackends {
  Backend* host = nullptr;
  Backend* device = nullptr;
};

// Appends a row for each phase, with the texts distribution, type, operation, mode, method and
// memory, and hash where the bits of T are the same on every run, and the numbers targets,
// index_bytes, threads, bytes_per_second (of S and R), bound_seconds (reading them at the speed of
// copies), bound_percent, and the ratio to_loop or to_direct. A method that cannot hold so many
// targets has a row of 0 seconds with the text `refused`. The first failure or wrong answer ends
// it.
Status run_scatter(const ScatterWorkloadOptions& options, const ScatterBackends& backends,
                   const Progress& progress, std::vector<ResultRow>* rows);

// As on the command line.
const char* scatter_name(ScatterOperation operation);
const char* scatter_name(ScatterMode mode);
const char* scatter_name(ScatterMethod method);
const char* scatter_name(ScatterMemory memory);

}  // namespace stride::benchmark

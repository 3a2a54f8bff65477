// What several devices could reach at most: so many times what one does, and no more than what
// buses and links carry.
#pragma once

#include <span>

#include "benchmark/harness/report.h"
#include "benchmark/workloads/gpus/machine.h"
#include "benchmark/workloads/gpus/workload.h"

namespace stride::benchmark {

// Adds `limit_per_second` to the rows of a machine, among those of all machines, where the model
// has one.
void set_gpus_limits(const GpusOptions& options, const GpusMachine& machine,
                     std::span<ResultRow> rows);

}  // namespace stride::benchmark

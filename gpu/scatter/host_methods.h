// Scatter-add on host threads.
#pragma once

#include <memory>

#include "gpu/execution_context.h"
#include "gpu/host/task_pool.h"
#include "gpu/scatter_add.h"
#include "storage/status.h"

namespace stride {

// As Scatter::apply_checked() and prepare(); throw std::bad_alloc.
Status scatter_host(TaskPool& pool, const Numbers& sources, const Indexes& targets,
                    const MutableNumbers& into, const ScatterOptions& options,
                    ScatterReport* report);
Result<std::unique_ptr<PreparedScatter>> prepare_scatter_host(TaskPool& pool,
                                                              const Indexes& targets,
                                                              uint64_t target_count,
                                                              OutOfRange out_of_range);

// What reproducible sums need to know of all sources.
struct NumbersSummary {
  double largest = 0;  // of the finite absolute values
  bool all_finite = true;
};
// These read columns in host memory, on the threads of a host backend.
NumbersSummary summarize_host(ExecutionContext& host, const Numbers& sources);
ScatterReport count_out_of_range_host(ExecutionContext& host, const Indexes& targets,
                                      uint64_t limit);
uint64_t target_at(const Indexes& targets, uint64_t i);

// Makes the error of OutOfRange::error. target: that of the first source that is out of range.
Status out_of_range_error(const ScatterReport& report, uint64_t target, uint64_t targets);

}  // namespace stride

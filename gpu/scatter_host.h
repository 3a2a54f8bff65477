// Scatter-add on host threads.
#pragma once

#include <memory>

#include "gpu/scatter_add.h"
#include "gpu/task_pool.h"

namespace stride {

// As Backend::scatter_checked() and make_route(); throw std::bad_alloc.
Status scatter_host(TaskPool& pool, const Numbers& sources, const Indexes& targets,
                    const MutableNumbers& into, const ScatterOptions& options,
                    ScatterReport* report);
Result<std::unique_ptr<ScatterRoute>> make_route_host(TaskPool& pool, const Indexes& targets,
                                                      uint64_t target_count,
                                                      OutOfRange out_of_range);

// Of OutOfRange::error. target: of the first source that is out of range.
Status out_of_range_error(const ScatterReport& report, uint64_t target, uint64_t targets);

}  // namespace stride

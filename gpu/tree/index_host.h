// Indexes that are searched in host memory.
#pragma once

#include <memory>

#include "gpu/backend.h"
#include "gpu/host/task_pool.h"

namespace stride {

// Checks all bytes of an index, before it goes where nothing checks them: keys and rows by its
// guard, and its tree.
Status check_index(const IndexView& index, const IndexRows& rows);

// As the Backend calls of the same names.
Result<std::shared_ptr<ResidentIndex>> make_resident_host(const IndexView& index);
Result<std::shared_ptr<ResidentIndex>> build_index_host(TaskPool& pool, const KeyColumn& keys,
                                                        KeyOrder order, const AccessCosts& costs,
                                                        const TreeOptions& options);

Status measure_limits_host(TaskPool& pool, uint64_t table_bytes, BackendLimits* limits);
Status measure_costs_host(TaskPool& pool, AccessCosts* costs);

}  // namespace stride

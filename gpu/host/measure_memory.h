// How fast the host's memory is, for batches on all threads of a pool.
#pragma once

#include <cstdint>

#include "gpu/access_costs.h"
#include "gpu/execution_context.h"
#include "gpu/host/task_pool.h"
#include "storage/status.h"

namespace stride {

// Measures random gathers from a table of so many bytes (at least 1 MiB), and copies.
Status measure_limits_host(TaskPool& pool, uint64_t table_bytes, BackendLimits* limits);
// Measures random reads by how much memory they are spread over.
Status measure_costs_host(TaskPool& pool, AccessCosts* costs);

}  // namespace stride

// Sorting a staged batch on host threads.
#pragma once

#include <span>

#include "gpu/backend.h"
#include "gpu/host/task_pool.h"

namespace stride {

// Whether there are no more rows than Backend::sort() takes.
Status check_chunks(std::span<const KeyColumn> chunks);

// As Backend::sort().
Status sort_host(TaskPool& pool, std::span<const KeyColumn> chunks, Sorted* sorted);

}  // namespace stride

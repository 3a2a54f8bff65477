// Sorting a staged batch on host threads. As Backend::sort().
#pragma once

#include <span>

#include "gpu/backend.h"
#include "gpu/task_pool.h"

namespace stride {

Status sort_host(TaskPool& pool, std::span<const KeyColumn> chunks, Sorted* sorted);

}  // namespace stride

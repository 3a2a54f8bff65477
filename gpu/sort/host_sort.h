// Sorting a staged batch on host threads.
#pragma once

#include <span>

#include "gpu/host/task_pool.h"
#include "gpu/sorter.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// Whether there are no more rows than Sorter::sort() takes.
Status check_chunks(std::span<const KeyColumn> chunks);

// As Sorter::sort().
Status sort_host(TaskPool& pool, std::span<const KeyColumn> chunks, Sorted* sorted);

}  // namespace stride

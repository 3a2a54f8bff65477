// The sorter on host threads.
#pragma once

#include <memory>

#include "gpu/host/task_pool.h"
#include "gpu/sorter.h"

namespace stride {

// The pool must outlive it.
std::unique_ptr<Sorter> make_host_sorter(TaskPool& pool);

}  // namespace stride

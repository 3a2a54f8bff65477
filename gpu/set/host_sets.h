// Sets in host memory.
#pragma once

#include <memory>

#include "gpu/host/task_pool.h"
#include "gpu/sets.h"

namespace stride {

// The pool must outlive it and its sets.
std::unique_ptr<Sets> make_host_sets(TaskPool& pool);

}  // namespace stride

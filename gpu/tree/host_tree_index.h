// The tree index on host threads.
#pragma once

#include <memory>

#include "gpu/host/task_pool.h"
#include "gpu/tree/choose_strides.h"
#include "gpu/tree_index.h"

namespace stride {

// The pool must outlive it.
std::unique_ptr<TreeIndex> make_host_tree_index(TaskPool& pool, PlanStrides plan);

}  // namespace stride

// Scattering on host threads.
#pragma once

#include <memory>

#include "gpu/host/task_pool.h"
#include "gpu/scatter.h"

namespace stride {

// The pool must outlive it.
std::unique_ptr<Scatter> make_host_scatter(TaskPool& pool);

}  // namespace stride

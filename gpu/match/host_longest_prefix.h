// The longest prefix on host threads.
#pragma once

#include <memory>

#include "gpu/host/task_pool.h"
#include "gpu/longest_prefix.h"

namespace stride {

// The pool must outlive it.
std::unique_ptr<LongestPrefix> make_host_longest_prefix(TaskPool& pool);

}  // namespace stride

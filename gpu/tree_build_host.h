// The tree's construction on host threads.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/task_pool.h"
#include "gpu/tree_options.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

Status build_tree_host(TaskPool& pool, const PackedColumn& keys, const TreeOptions& options,
                       std::vector<std::byte>* image);

}  // namespace stride

// The tree's construction on host threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/task_pool.h"
#include "gpu/tree_options.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// invalid_argument: more keys than ranks of 32 bits can name.
Status check_key_count(uint64_t keys);

Status build_tree_host(TaskPool& pool, const PackedColumn& keys, const TreeOptions& options,
                       std::vector<std::byte>* image);

}  // namespace stride

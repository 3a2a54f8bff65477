// The tree's construction on host threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/host/task_pool.h"
#include "gpu/key_statistics.h"
#include "gpu/tree/choose_strides.h"
#include "gpu/tree_options.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// invalid_argument: more keys than ranks of 32 bits can name.
Status check_key_count(uint64_t keys);

// costs: by which strides are chosen where the options leave them open.
Status build_tree_host(TaskPool& pool, const PackedColumn& keys, const ChooseStrides& choose,
                       const TreeOptions& options, std::vector<std::byte>* image);
// As the call of TreeIndex.
Status measure_keys_host(TaskPool& pool, const PackedColumn& keys, const SampleOptions& options,
                         KeyStatistics* statistics);

}  // namespace stride

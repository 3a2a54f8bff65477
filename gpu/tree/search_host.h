// Batches of searches on host threads. As the calls of TreeIndex of the same names.
#pragma once

#include <cstdint>
#include <span>

#include "gpu/host/task_pool.h"
#include "gpu/tree_index.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

Status find_host(TaskPool& pool, std::span<const IndexView> indexes, const KeyColumn& queries,
                 std::span<Location> out);
Status find_blocks_host(TaskPool& pool, std::span<const IndexView> indexes,
                        const KeyColumn& queries, const TakeLocations& take);
Status find_ranks_host(TaskPool& pool, const IndexView& index, const KeyColumn& queries,
                       std::span<uint32_t> out);
Status lower_bound_host(TaskPool& pool, const IndexView& index, const KeyColumn& queries,
                        std::span<uint32_t> out);
Status upper_bound_host(TaskPool& pool, const IndexView& index, const KeyColumn& queries,
                        std::span<uint32_t> out);
Status prefix_interval_host(TaskPool& pool, const IndexView& index, const KeyColumn& queries,
                            std::span<RankInterval> out);

}  // namespace stride

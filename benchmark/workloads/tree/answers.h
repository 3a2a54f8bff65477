// Compares the answers of searches with those of the standard library.
#pragma once

#include <cstdint>
#include <span>

#include "benchmark/datasets/sorted_column.h"
#include "benchmark/harness/parallel.h"
#include "gpu/backend.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

// Each takes what the Backend's search of that name gave for the queries. Where there are
// more than a million queries, a million that are spread evenly are checked, the first and the last
// among them.
// corruption: says key, expected and got of the first wrong answer.
Status check_find_ranks(const SortedColumn& keys, const KeyColumn& queries,
                        std::span<const uint32_t> ranks, Parallel* parallel);
Status check_lower_bound(const SortedColumn& keys, const KeyColumn& queries,
                         std::span<const uint32_t> ranks, Parallel* parallel);
Status check_prefix_interval(const SortedColumn& keys, const KeyColumn& queries,
                             std::span<const RankInterval> ranks, Parallel* parallel);

}  // namespace stride::benchmark

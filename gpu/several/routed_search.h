// Searches of an index in parts: each query goes to the device that has its range of the keys.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "gpu/bulk_vector.h"
#include "gpu/several/partitioned_index.h"
#include "gpu/tree_index.h"

namespace stride {

// Queries that go to one part: their numbers, ascending, and their keys, one after the other.
struct RoutedQueries {
  BulkVector<uint32_t> rows;
  BulkVector<std::byte> bytes;
  BulkVector<uint64_t> offsets;  // unused where all have one width
  KeyColumn keys;

  // Copies the keys of the rows.
  void gather(ExecutionContext& host, const KeyColumn& queries);
};

// At most this many queries are routed at once: it bounds the memory that their copies take.
inline constexpr uint64_t max_routed_queries = uint64_t{1} << 24;

// The queries of each of so many groups. group_of: of each query; no_group: it is in none.
// Precondition: the queries lie in host memory.
inline constexpr uint32_t no_group = UINT32_MAX;
std::vector<RoutedQueries> group_queries(ExecutionContext& host, const KeyColumn& queries,
                                         std::span<const uint32_t> group_of, size_t groups);

// Calls work(task, begin, end) for tasks of equal size that cover [0, n), on the host's threads.
inline constexpr uint64_t queries_per_task = 16384;
template <class Work>
void each_task(ExecutionContext& host, uint64_t n, const Work& work) {
  const uint64_t tasks = (n + queries_per_task - 1) / queries_per_task;
  host.parallel_for(tasks, 1, [&](uint64_t task, uint64_t last) {
    for (; task < last; ++task)
      work(task, task * queries_per_task, std::min(n, (task + 1) * queries_per_task));
  });
}

inline const PartitionedIndex& parts_of(const IndexView& index) {
  return static_cast<const PartitionedIndex&>(*index.resident);
}

using RankSearch = Status (TreeIndex::*)(const IndexView&, const KeyColumn&, std::span<uint32_t>);

// Searches a part on its device or, where that has failed or has no room for the batch, on the
// host, whose ranks are those of the whole index. Returns in *is_whole which of the two it was.
Status search_part(DeviceSet& devices, const IndexView& index, const PartitionedIndex::Part& part,
                   RankSearch search, const KeyColumn& queries, std::span<uint32_t> out,
                   bool* is_whole);

// index.resident is a PartitionedIndex. Queries and results lie in host memory. What a device fails
// to do is done on the host where the index has its columns there.
Status search_parts(DeviceSet& devices, const IndexView& index, RankSearch search,
                    const KeyColumn& queries, std::span<uint32_t> out);
Status find_prefixes_in_parts(DeviceSet& devices, const IndexView& index, const KeyColumn& queries,
                              std::span<RankInterval> out);

}  // namespace stride

#include "gpu/several/routed_search.h"

#include <algorithm>
#include <cstring>

namespace stride {

namespace {

// As search_part(), of search(trees, index, results).
template <class T, class Search>
Status search_one_part(DeviceSet& devices, const IndexView& index,
                       const PartitionedIndex::Part& part, std::span<T> results,
                       const Search& search, bool* is_whole) {
  *is_whole = false;
  Status status(StatusCode::io_error, "a part of the index lies on a device that has failed");
  if (devices.works(part.device)) {
    IndexView here = part.index->view();
    here.resident = part.index.get();
    status = search(devices[part.device].tree_index(), here, results);
    if (is_loss(status))
      devices.lose(part.device, status);
    else if (status.code() != StatusCode::resource_exhausted)
      return status;
  }
  if (!index.keys.data) return status;
  *is_whole = true;
  IndexView whole = index;
  whole.resident = nullptr;
  return devices.run_on_first(no_device_number, [&](size_t device) {
    return search(devices[device].tree_index(), whole, results);
  });
}

Status search_routed(DeviceSet& devices, const IndexView& index, RankSearch op,
                     const KeyColumn& queries, std::span<uint32_t> out) {
  const PartitionedIndex& all = parts_of(index);
  ExecutionContext& host = devices[0];
  BulkVector<uint32_t> part_of(queries.size);
  each_task(host, queries.size, [&](uint64_t, uint64_t i, uint64_t end) {
    for (; i < end; ++i) part_of[i] = static_cast<uint32_t>(all.part_of(queries[i]));
  });
  const std::vector<RoutedQueries> routed =
      group_queries(host, queries, part_of, all.parts().size());
  return devices.run_each(all.parts().size(), [&](uint64_t i) {
    const PartitionedIndex::Part& part = all.parts()[i];
    const RoutedQueries& mine = routed[i];
    if (mine.rows.empty()) return Status();
    BulkVector<uint32_t> ranks(mine.rows.size());
    bool is_whole = false;
    STRIDE_TRY(search_part(devices, index, part, op, mine.keys, ranks, &is_whole));
    const auto base = static_cast<uint32_t>(is_whole ? 0 : part.first);
    each_task(host, ranks.size(), [&](uint64_t, uint64_t row, uint64_t end) {
      for (; row < end; ++row)
        out[mine.rows[row]] = ranks[row] == Location::absent ? ranks[row] : ranks[row] + base;
    });
    return Status();
  });
}

}  // namespace

Status search_part(DeviceSet& devices, const IndexView& index, const PartitionedIndex::Part& part,
                   RankSearch search, const KeyColumn& queries, std::span<uint32_t> out,
                   bool* is_whole) {
  return search_one_part(
      devices, index, part, out,
      [&](TreeIndex& trees, const IndexView& view, std::span<uint32_t> results) {
        return (trees.*search)(view, queries, results);
      },
      is_whole);
}

void RoutedQueries::gather(ExecutionContext& host, const KeyColumn& queries) {
  const uint64_t n = rows.size();
  if (!queries.is_fixed()) {
    offsets.resize(n + 1);
    offsets[0] = 0;
    for (uint64_t i = 0; i < n; ++i) offsets[i + 1] = offsets[i] + queries[rows[i]].size();
  }
  bytes.resize(queries.is_fixed() ? n * queries.width : offsets[n]);
  keys = queries.is_fixed() ? KeyColumn::fixed(bytes.data(), queries.width, n)
                            : KeyColumn::variable(bytes.data(), offsets.data(), n);
  each_task(host, n, [&](uint64_t, uint64_t i, uint64_t end) {
    for (; i < end; ++i)
      if (const Bytes key = queries[rows[i]]; !key.empty())
        std::memcpy(bytes.data() + keys.begin(i), key.data(), key.size());
  });
}

std::vector<RoutedQueries> group_queries(ExecutionContext& host, const KeyColumn& queries,
                                         std::span<const uint32_t> group_of, size_t groups) {
  const uint64_t n = queries.size, tasks = (n + queries_per_task - 1) / queries_per_task;
  std::vector<uint64_t> begins(tasks * groups);  // of the queries of a task in each group
  each_task(host, n, [&](uint64_t task, uint64_t i, uint64_t end) {
    for (; i < end; ++i)
      if (group_of[i] != no_group) ++begins[task * groups + group_of[i]];
  });
  std::vector<RoutedQueries> grouped(groups);
  for (size_t group = 0; group < groups; ++group) {
    uint64_t begin = 0;
    for (uint64_t task = 0; task < tasks; ++task)
      begin += std::exchange(begins[task * groups + group], begin);
    grouped[group].rows.resize(begin);
  }
  each_task(host, n, [&](uint64_t task, uint64_t i, uint64_t end) {
    uint64_t* next = begins.data() + task * groups;
    for (; i < end; ++i)
      if (group_of[i] != no_group)
        grouped[group_of[i]].rows[next[group_of[i]]++] = static_cast<uint32_t>(i);
  });
  for (RoutedQueries& group : grouped) group.gather(host, queries);
  return grouped;
}

Status search_parts(DeviceSet& devices, const IndexView& index, RankSearch search,
                    const KeyColumn& queries, std::span<uint32_t> out) {
  for (uint64_t first = 0; first < queries.size; first += max_routed_queries) {
    const uint64_t count = std::min(max_routed_queries, queries.size - first);
    STRIDE_TRY(search_routed(devices, index, search, queries.slice(first, count),
                             out.subspan(first, count)));
  }
  return {};
}

// The keys that start with a query may lie in several parts: each of them is asked.
Status find_prefixes_in_parts(DeviceSet& devices, const IndexView& index, const KeyColumn& queries,
                              std::span<RankInterval> out) {
  std::vector<uint32_t> lower(queries.size);
  STRIDE_TRY(search_parts(devices, index, &TreeIndex::lower_bound, queries, lower));
  const PartitionedIndex& all = parts_of(index);
  std::vector<BulkVector<RankInterval>> found(all.parts().size());
  std::vector<uint8_t> whole(all.parts().size());
  STRIDE_TRY(devices.run_each(all.parts().size(), [&](uint64_t i) {
    found[i].resize(queries.size);
    bool is_whole = false;
    Status status = search_one_part(
        devices, index, all.parts()[i], std::span<RankInterval>(found[i]),
        [&](TreeIndex& trees, const IndexView& view, std::span<RankInterval> results) {
          return trees.prefix_interval(view, queries, results);
        },
        &is_whole);
    whole[i] = is_whole;
    return status;
  }));
  for (uint64_t query = 0; query < queries.size; ++query) {
    out[query] = {lower[query], lower[query]};
    for (size_t i = 0; i < found.size(); ++i) {
      const RankInterval here = found[i][query];
      const auto base = static_cast<uint32_t>(whole[i] ? 0 : all.parts()[i].first);
      if (here.first < here.last) out[query].last = std::max(out[query].last, base + here.last);
    }
  }
  return {};
}

}  // namespace stride

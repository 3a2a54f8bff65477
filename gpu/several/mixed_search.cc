#include "gpu/several/mixed_search.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "gpu/several/partitioned_index.h"
#include "gpu/several/routed_search.h"
#include "gpu/several/several_values.h"

namespace stride {

namespace {

// Values of queries that were found in the same index, and in the same part of it.
struct ValueGroup {
  RoutedQueries queries;
  IndexView index;
  size_t device = no_device_number;    // of the part; no_device_number: the index is no part
  uint64_t first_behind = UINT64_MAX;  // the rank, of the whole index, behind those of the part
  std::vector<uint64_t> found;
  BulkVector<uint64_t> ends;
  std::unique_ptr<FoundValues> values;
  BulkVector<std::byte> bytes;  // of the values

  uint64_t begin_of(uint64_t i) const { return i == 0 ? 0 : ends[i - 1]; }
};

class MixedValues final : public FoundValues {
 public:
  MixedValues(DeviceSet& devices, std::span<uint64_t> ends) : devices_(devices), ends_(ends) {}

  Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
              std::span<const Location> locations, std::span<uint64_t> found);
  uint64_t bytes() const override {
    uint64_t bytes = 0;
    for (const ValueGroup& group : groups_) bytes += group.values->bytes();
    return bytes;
  }
  bool have_width(uint64_t width) const override {
    return std::all_of(groups_.begin(), groups_.end(),
                       [&](const ValueGroup& group) { return group.values->have_width(width); });
  }
  Status copy(std::byte* values, uint64_t begin) override;

 private:
  void group(std::span<const IndexView> indexes, const KeyColumn& queries,
             std::span<const Location> locations);
  Status find_group(ValueGroup* group);
  // Calls use(group, i) for all queries of all groups.
  template <class Use>
  void each_value(const Use& use) const {
    for (const ValueGroup& group : groups_)
      each_task(devices_[0], group.queries.rows.size(), [&](uint64_t, uint64_t i, uint64_t end) {
        for (; i < end; ++i) use(group, i);
      });
  }

  DeviceSet& devices_;
  const std::span<uint64_t> ends_;
  std::vector<ValueGroup> groups_;
};

// A group for each index that is in one place, and one for each part of the others; those without
// queries are left out.
void MixedValues::group(std::span<const IndexView> indexes, const KeyColumn& queries,
                        std::span<const Location> locations) {
  std::vector<uint32_t> first_group;
  for (const IndexView& index : indexes) {
    first_group.push_back(static_cast<uint32_t>(groups_.size()));
    if (!has_parts({&index, 1})) {
      groups_.emplace_back().index = index;
      continue;
    }
    for (const auto& part : parts_of(index).parts()) {
      ValueGroup& group = groups_.emplace_back();
      group.index = part.index->view();
      group.index.resident = part.index.get();
      group.device = part.device;
      group.first_behind = part.first + part.rows;
    }
  }
  BulkVector<uint32_t> group_of(queries.size);
  each_task(devices_[0], queries.size, [&](uint64_t, uint64_t i, uint64_t end) {
    for (; i < end; ++i) {
      group_of[i] = no_group;
      if (!locations[i].found()) continue;
      uint32_t group = first_group[locations[i].index];
      while (locations[i].rank >= groups_[group].first_behind) ++group;
      group_of[i] = group;
    }
  });
  std::vector<RoutedQueries> grouped =
      group_queries(devices_[0], queries, group_of, groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) groups_[i].queries = std::move(grouped[i]);
  std::erase_if(groups_, [](const ValueGroup& group) { return group.queries.rows.empty(); });
}

Status MixedValues::find_group(ValueGroup* group) {
  const uint64_t n = group->queries.rows.size();
  group->found.assign((n + 63) / 64, 0);
  group->ends.resize(n);
  if (group->device != no_device_number && !devices_.works(group->device))
    return Status(StatusCode::io_error, "a part of the index lies on a device that has failed");
  auto find_there = [&]() -> Result<std::unique_ptr<FoundValues>> {
    if (group->device == no_device_number)
      return find_values_on_several(devices_, {&group->index, 1}, group->queries.keys, group->found,
                                    group->ends);
    return devices_[group->device].tree_index().find_values({&group->index, 1}, group->queries.keys,
                                                            group->found, group->ends);
  };
  auto values = find_there();
  if (group->device != no_device_number && is_loss(values.status()))
    devices_.lose(group->device, values.status());
  if (values.ok()) group->values = std::move(*values);
  return values.status();
}

Status MixedValues::find(std::span<const IndexView> indexes, const KeyColumn& queries,
                         std::span<const Location> locations, std::span<uint64_t> found) {
  group(indexes, queries, locations);
  STRIDE_TRY(
      devices_.run_each(groups_.size(), [&](uint64_t i) { return find_group(&groups_[i]); }));
  BulkVector<uint8_t> is_found(queries.size);
  each_task(devices_[0], queries.size, [&](uint64_t, uint64_t first, uint64_t end) {
    std::fill(is_found.begin() + first, is_found.begin() + end, uint8_t{0});
  });
  each_value([&](const ValueGroup& group, uint64_t i) {
    is_found[group.queries.rows[i]] = group.found[i / 64] >> (i % 64) & 1;
  });
  each_task(devices_[0], queries.size, [&](uint64_t, uint64_t first, uint64_t end) {
    set_bits(found, first, end - first, [&](uint64_t i) { return is_found[first + i] != 0; });
  });
  return {};
}

// The lengths, then where each ends, then the values.
Status MixedValues::copy(std::byte* values, uint64_t begin) {
  STRIDE_TRY(devices_.run_each(groups_.size(), [&](uint64_t i) {
    ValueGroup& group = groups_[i];
    group.bytes.resize(group.values->bytes());
    Status status = group.values->copy(group.bytes.data(), 0);
    if (is_loss(status) && group.device != no_device_number) devices_.lose(group.device, status);
    return status;
  }));
  ExecutionContext& host = devices_[0];
  each_task(host, ends_.size(), [&](uint64_t, uint64_t first, uint64_t end) {
    std::fill(ends_.begin() + first, ends_.begin() + end, uint64_t{0});
  });
  each_value([&](const ValueGroup& group, uint64_t i) {
    ends_[group.queries.rows[i]] = group.ends[i] - group.begin_of(i);
  });
  std::vector<uint64_t> begins((ends_.size() + queries_per_task - 1) / queries_per_task);
  each_task(host, ends_.size(), [&](uint64_t task, uint64_t first, uint64_t end) {
    begins[task] = std::accumulate(ends_.begin() + first, ends_.begin() + end, uint64_t{0});
  });
  uint64_t next = begin;
  for (uint64_t& of_task : begins) next += std::exchange(of_task, next);
  each_task(host, ends_.size(), [&](uint64_t task, uint64_t i, uint64_t end) {
    uint64_t at = begins[task];
    for (; i < end; ++i) ends_[i] = at += ends_[i];
  });
  each_value([&](const ValueGroup& group, uint64_t i) {
    const uint64_t from = group.begin_of(i), bytes = group.ends[i] - from;
    if (bytes > 0)
      std::memcpy(values + (ends_[group.queries.rows[i]] - bytes - begin),
                  group.bytes.data() + from, bytes);
  });
  return {};
}

}  // namespace

bool has_parts(std::span<const IndexView> indexes) {
  return std::any_of(indexes.begin(), indexes.end(), [](const IndexView& index) {
    return index.resident && static_cast<const SeveralIndex&>(*index.resident).is_partitioned();
  });
}

Status HostCopy::copy(DeviceSet& devices, const KeyColumn& column) {
  column_ = column;
  const size_t home = devices.home_of(column);
  if (home == no_device_number) return {};
  uint64_t first = 0, end = column.size * column.width;
  if (!column.is_fixed()) {
    offsets_.resize(column.size + 1);
    STRIDE_TRY(devices[home].copy(offsets_.data(), column.offsets, offsets_.size() * 8));
    first = offsets_.front();
    end = offsets_.back();
    column_.offsets = offsets_.data();
  }
  bytes_.resize(end - first);
  STRIDE_TRY(devices[home].copy(bytes_.data(), column.data + first, bytes_.size()));
  column_.data = bytes_.data() - first;
  return {};
}

Status find_mixed(ExecutionContext& host, TreeIndex& trees, std::span<const IndexView> indexes,
                  const KeyColumn& queries, std::span<Location> out) {
  constexpr uint64_t grain = 16384;
  std::fill(out.begin(), out.end(), Location{Location::absent, Location::absent});
  BulkVector<uint32_t> ranks(queries.size);
  for (uint32_t index = 0; index < indexes.size(); ++index) {
    STRIDE_TRY(trees.find_ranks(indexes[index], queries, ranks));
    host.parallel_for(queries.size, grain, [&](uint64_t i, uint64_t end) {
      for (; i < end; ++i)
        if (!out[i].found() && ranks[i] != Location::absent) out[i] = {index, ranks[i]};
    });
  }
  return {};
}

Result<std::unique_ptr<FoundValues>> find_mixed_values(DeviceSet& devices, TreeIndex& trees,
                                                       std::span<const IndexView> indexes,
                                                       const KeyColumn& queries,
                                                       std::span<uint64_t> found,
                                                       std::span<uint64_t> ends) {
  for (const IndexView& index : indexes)
    if (!index.resident || !index.resident->has_values())
      return Status(StatusCode::unavailable, "the values of an index are not on the devices")
          .with_remedy("make all indexes of a search resident, with their values");
  HostCopy here;
  STRIDE_TRY(here.copy(devices, queries));
  BulkVector<Location> locations(queries.size);
  STRIDE_TRY(find_mixed(devices[0], trees, indexes, here.column(), locations));
  auto values = std::make_unique<MixedValues>(devices, ends);
  STRIDE_TRY(values->find(indexes, here.column(), locations, found));
  return std::unique_ptr<FoundValues>(std::move(values));
}

}  // namespace stride

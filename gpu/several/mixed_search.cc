#include "gpu/several/mixed_search.h"

#include <algorithm>
#include <cstring>
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
  size_t device = no_device_number;  // of the part; no_device_number: the index is no part
  std::vector<uint64_t> found, ends;
  std::unique_ptr<FoundValues> values;
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
  void group(std::span<const IndexView> indexes, std::span<const Location> locations);
  Status find_group(ValueGroup* group);

  DeviceSet& devices_;
  const std::span<uint64_t> ends_;
  std::vector<ValueGroup> groups_;
};

// A group for each index that is in one place, and one for each part of the others.
void MixedValues::group(std::span<const IndexView> indexes, std::span<const Location> locations) {
  std::vector<size_t> first_group;
  for (const IndexView& index : indexes) {
    first_group.push_back(groups_.size());
    if (!static_cast<const SeveralIndex&>(*index.resident).is_partitioned()) {
      groups_.emplace_back().index = index;
      continue;
    }
    for (const auto& part : static_cast<const PartitionedIndex&>(*index.resident).parts()) {
      ValueGroup& group = groups_.emplace_back();
      group.index = part.index->view();
      group.index.resident = part.index.get();
      group.device = part.device;
    }
  }
  for (uint64_t i = 0; i < locations.size(); ++i) {
    const Location at = locations[i];
    if (!at.found()) continue;
    size_t group = first_group[at.index];
    const auto& resident = static_cast<const SeveralIndex&>(*indexes[at.index].resident);
    if (resident.is_partitioned()) {
      const auto& parts = static_cast<const PartitionedIndex&>(resident).parts();
      while (at.rank >=
             parts[group - first_group[at.index]].first + parts[group - first_group[at.index]].rows)
        ++group;
    }
    groups_[group].queries.rows.push_back(static_cast<uint32_t>(i));
  }
  std::erase_if(groups_, [](const ValueGroup& group) { return group.queries.rows.empty(); });
}

Status MixedValues::find_group(ValueGroup* group) {
  const uint64_t n = group->queries.rows.size();
  group->found.assign((n + 63) / 64, 0);
  group->ends.assign(n, 0);
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
  group(indexes, locations);
  for (ValueGroup& group : groups_) group.queries.gather(devices_[0], queries);
  STRIDE_TRY(
      devices_.run_each(groups_.size(), [&](uint64_t i) { return find_group(&groups_[i]); }));
  for (const ValueGroup& group : groups_)
    for (uint64_t i = 0; i < group.queries.rows.size(); ++i)
      if (group.found[i / 64] >> (i % 64) & 1) {
        const uint64_t row = group.queries.rows[i];
        found[row / 64] |= uint64_t{1} << (row % 64);
      }
  return {};
}

Status MixedValues::copy(std::byte* values, uint64_t begin) {
  std::vector<BulkVector<std::byte>> copies(groups_.size());
  STRIDE_TRY(devices_.run_each(groups_.size(), [&](uint64_t i) {
    copies[i].resize(groups_[i].values->bytes());
    Status status = groups_[i].values->copy(copies[i].data(), 0);
    if (is_loss(status) && groups_[i].device != no_device_number)
      devices_.lose(groups_[i].device, status);
    return status;
  }));
  // The lengths, then where each ends, then the values.
  std::fill(ends_.begin(), ends_.end(), 0);
  auto each_value = [&](const auto& use) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      uint64_t from = 0;
      for (uint64_t i = 0; i < groups_[g].ends.size(); ++i) {
        const uint64_t end = groups_[g].ends[i];
        use(groups_[g].queries.rows[i], copies[g].data() + from, end - from);
        from = end;
      }
    }
  };
  each_value([&](uint32_t row, const std::byte*, uint64_t bytes) { ends_[row] = bytes; });
  uint64_t end = begin;
  for (uint64_t& of_row : ends_) of_row = end += of_row;
  each_value([&](uint32_t row, const std::byte* from, uint64_t bytes) {
    if (bytes > 0) std::memcpy(values + (ends_[row] - bytes - begin), from, bytes);
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

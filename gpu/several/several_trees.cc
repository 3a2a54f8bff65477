#include "gpu/several/several_trees.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gpu/several/mixed_search.h"
#include "gpu/several/part_values.h"
#include "gpu/several/partitioned_index.h"
#include "gpu/several/replicated_index.h"
#include "gpu/several/routed_search.h"
#include "gpu/several/several_values.h"
#include "gpu/several/split_search.h"
#include "gpu/several/split_values.h"
#include "storage/first_failure.h"
#include "storage/work_watch.h"

namespace stride {

namespace {

// invalid_argument: there is not one result for each query.
Status check_result_room(uint64_t queries, uint64_t results) {
  if (results == queries) return {};
  return Status::invalid("room for " + std::to_string(results) + " results of " +
                         std::to_string(queries) + " queries")
      .with_remedy("give one result for each query");
}

using IntervalSearch = decltype(&TreeIndex::prefix_interval);

class SeveralTrees final : public TreeIndex {
 public:
  explicit SeveralTrees(DeviceSet& devices)
      : TreeIndex(devices[0].tree_index().access_costs()), devices_(devices) {}

  void set_access_costs(const AccessCosts& costs) override {
    TreeIndex::set_access_costs(costs);
    for (size_t i = 0; i < devices_.size(); ++i) trees(i).set_access_costs(costs);
  }
  Status measure_keys(const PackedColumn& keys, const SampleOptions& options,
                      KeyStatistics* statistics) override {
    return devices_.run_on_first(devices_.home_of(keys.data), [&](size_t device) {
      return trees(device).measure_keys(keys, options, statistics);
    });
  }
  Status measure_costs(AccessCosts* costs) override {
    return devices_.run_on_first(no_device_number,
                                 [&](size_t device) { return trees(device).measure_costs(costs); });
  }
  Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                    std::vector<std::byte>* image) override {
    return devices_.run_on_first(no_device_number, [&](size_t device) {
      return trees(device).build_tree(keys, options, image);
    });
  }

  Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
              std::span<Location> out) override {
    if (has_parts(indexes))
      return on_host_copies(queries, out, [&](const KeyColumn& here, std::span<Location> room) {
        return find_mixed(devices_[0], *this, indexes, here, room);
      });
    return search(indexes, queries, out,
                  [&](TreeIndex& on, std::span<const IndexView> here, const KeyColumn& part,
                      std::span<Location> room) { return on.find(here, part, room); });
  }
  Status find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                     const TakeLocations& take) override;
  Status find_ranks(const IndexView& index, const KeyColumn& queries,
                    std::span<uint32_t> out) override {
    return search_one(index, &TreeIndex::find_ranks, queries, out);
  }
  Status lower_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return search_one(index, &TreeIndex::lower_bound, queries, out);
  }
  Status upper_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return search_one(index, &TreeIndex::upper_bound, queries, out);
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    return search_one(index, &TreeIndex::prefix_interval, queries, out);
  }

  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index,
                                                       const IndexRows& rows) override;
  Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                     const TreeOptions& options) override;

  Result<std::unique_ptr<FoundValues>> find_values(std::span<const IndexView> indexes,
                                                   const KeyColumn& queries,
                                                   std::span<uint64_t> found,
                                                   std::span<uint64_t> ends) override {
    if (indexes.size() == 1 && has_parts(indexes) && parts_of(indexes[0]).value_width() > 0 &&
        can_split(devices_, indexes[0], queries))
      return find_part_values(devices_, *this, indexes[0], queries, found, ends);
    if (has_parts(indexes))
      return find_mixed_values(devices_, *this, indexes, queries, found, ends);
    return find_values_on_several(devices_, indexes, queries, found, ends);
  }
  Status find_on_device(std::span<const IndexView> indexes, const KeyColumn& queries, Location* out,
                        void* stream) override {
    return at_home(indexes, devices_.home_of(queries),
                   [&](TreeIndex& on, std::span<const IndexView> here) {
                     return on.find_on_device(here, queries, out, stream);
                   });
  }
  Status get_on_device(std::span<const IndexView> indexes, const KeyColumn& queries,
                       const DeviceValues& out, void* stream) override {
    if (out.width && !stream) {
      if (indexes.size() == 1 && has_parts(indexes) && can_split(devices_, indexes[0], queries))
        return get_split(devices_, indexes[0], queries, out);
      if (!devices_.is_on_one(queries.data) && !has_parts(indexes))
        return get_shares(indexes, queries, out);
    }
    return at_home(indexes, devices_.home_of(queries),
                   [&](TreeIndex& on, std::span<const IndexView> here) {
                     return on.get_on_device(here, queries, out, stream);
                   });
  }
  Status gather_on_device(std::span<const IndexView> indexes, const Location* locations,
                          uint64_t count, const GatheredRows& out, void* stream) override {
    return at_home(indexes, devices_.home_of(locations),
                   [&](TreeIndex& on, std::span<const IndexView> here) {
                     return on.gather_on_device(here, locations, count, out, stream);
                   });
  }
  Status make_keys_on_device(std::span<const DeviceKeyPart> parts, uint64_t rows, std::byte* keys,
                             void* stream) override {
    return at_home({}, devices_.home_of(keys), [&](TreeIndex& on, std::span<const IndexView>) {
      return on.make_keys_on_device(parts, rows, keys, stream);
    });
  }

 private:
  TreeIndex& trees(size_t device) const { return devices_[device].tree_index(); }

  // Queries of many lengths on a device stay there: the host cannot see where they lie.
  SharedBatch batch_of(const ReplicatedViews& views, const KeyColumn& queries,
                       const void* out) const {
    const size_t home = devices_.home_of(queries);
    const bool is_divisible = home == no_device_number || queries.is_fixed();
    return {.size = queries.size,
            .divisible = views.all_resident() && is_divisible,
            .home = home != no_device_number ? home : devices_.home_of(out),
            .has = [&views](size_t device) { return views.on(device); }};
  }

  // Calls work(trees, indexes, queries, results) for each share.
  template <class T, class Work>
  Status search(std::span<const IndexView> indexes, const KeyColumn& queries, std::span<T> out,
                const Work& work) {
    STRIDE_TRY(check_result_room(queries.size, out.size()));
    const ReplicatedViews views(indexes);
    return devices_.run(batch_of(views, queries, out.data()), [&](size_t device, Share share) {
      const std::vector<IndexView> here = views.for_device(device);
      return work(trees(device), here, queries.slice(share.first, share.count),
                  out.subspan(share.first, share.count));
    });
  }
  template <class T>
  Status search_one(const IndexView& index,
                    Status (TreeIndex::*op)(const IndexView&, const KeyColumn&, std::span<T>),
                    const KeyColumn& queries, std::span<T> out) {
    if (has_parts({&index, 1})) return search_in_parts(index, op, queries, out);
    return search(std::span<const IndexView>(&index, 1), queries, out,
                  [&](TreeIndex& on, std::span<const IndexView> here, const KeyColumn& part,
                      std::span<T> room) { return (on.*op)(here[0], part, room); });
  }

  // Values of one width, to queries that are spread over the devices.
  Status get_shares(std::span<const IndexView> indexes, const KeyColumn& queries,
                    const DeviceValues& out) {
    const ReplicatedViews views(indexes);
    return devices_.run(batch_of(views, queries, out.values), [&](size_t device, Share share) {
      const std::vector<IndexView> here = views.for_device(device);
      return trees(device).get_on_device(here, queries.slice(share.first, share.count),
                                         out.from(share.first), nullptr);
    });
  }

  Status search_in_parts(const IndexView& index, RankSearch op, const KeyColumn& queries,
                         std::span<uint32_t> out) {
    STRIDE_TRY(check_result_room(queries.size, out.size()));
    if (can_split(devices_, index, queries)) {
      Status status = search_split(devices_, index, op, queries, out);
      if (status.code() != StatusCode::resource_exhausted) return status;
    }
    return on_host_copies(queries, out, [&](const KeyColumn& here, std::span<uint32_t> room) {
      return search_parts(devices_, index, op, here, room);
    });
  }
  Status search_in_parts(const IndexView& index, IntervalSearch, const KeyColumn& queries,
                         std::span<RankInterval> out) {
    return on_host_copies(queries, out, [&](const KeyColumn& here, std::span<RankInterval> room) {
      return find_prefixes_in_parts(devices_, index, here, room);
    });
  }

  // Calls work(queries, results) with both in host memory, for indexes in parts.
  template <class T, class Work>
  Status on_host_copies(const KeyColumn& queries, std::span<T> out, const Work& work) {
    STRIDE_TRY(check_result_room(queries.size, out.size()));
    HostCopy here;
    STRIDE_TRY(here.copy(devices_, queries));
    const size_t home = devices_.home_of(out.data());
    if (out.empty() || home == no_device_number) return work(here.column(), out);
    BulkVector<T> results(out.size());
    STRIDE_TRY(work(here.column(), std::span<T>(results)));
    return devices_[home].copy(out.data(), results.data(), out.size_bytes());
  }

  Status find_blocks_in_parts(std::span<const IndexView> indexes, const KeyColumn& queries,
                              const TakeLocations& take);

  // Calls work(trees, indexes) of the device where a batch lies, or of the first.
  template <class Work>
  Status at_home(std::span<const IndexView> indexes, size_t home, const Work& work) {
    const ReplicatedViews views(indexes);
    SharedBatch batch{.size = 1,
                      .divisible = false,
                      .home = home == no_device_number ? devices_.first() : home,
                      .has = [&views](size_t device) { return views.on(device); }};
    return devices_.run(batch, [&](size_t device, Share) {
      const std::vector<IndexView> here = views.for_device(device);
      return work(trees(device), std::span<const IndexView>(here));
    });
  }

  DeviceSet& devices_;
};

// What `take` fails with is no failure of a device.
Status SeveralTrees::find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                                 const TakeLocations& take) {
  if (has_parts(indexes)) return find_blocks_in_parts(indexes, queries, take);
  const ReplicatedViews views(indexes);
  FirstFailure taken;
  Status status =
      devices_.run(batch_of(views, queries, nullptr), [&](size_t device, Share share) -> Status {
        auto take_here = [&](uint64_t first, std::span<const Location> locations) {
          Status of_block = take(share.first + first, locations);
          if (of_block.ok()) return of_block;
          taken.report(std::move(of_block));
          return WorkWatch::cancelled();
        };
        return trees(device).find_blocks(views.for_device(device),
                                         queries.slice(share.first, share.count), take_here);
      });
  return taken.failed() ? taken.status() : status;
}

// A chunk at a time, which is handed over on the host's threads.
Status SeveralTrees::find_blocks_in_parts(std::span<const IndexView> indexes,
                                          const KeyColumn& queries, const TakeLocations& take) {
  constexpr uint64_t block = 4096;
  HostCopy here;
  STRIDE_TRY(here.copy(devices_, queries));
  BulkVector<Location> locations(std::min(queries.size, max_routed_queries));
  for (uint64_t first = 0; first < queries.size; first += max_routed_queries) {
    const uint64_t count = std::min(max_routed_queries, queries.size - first);
    STRIDE_TRY(find_mixed(devices_[0], *this, indexes, here.column().slice(first, count),
                          std::span<Location>(locations).first(count)));
    FirstFailure taken;
    devices_[0].parallel_for((count + block - 1) / block, 1, [&](uint64_t i, uint64_t end) {
      for (; i < end && !taken.failed(); ++i)
        taken.report(take(first + i * block, std::span<const Location>(locations).subspan(
                                                 i * block, std::min(block, count - i * block))));
    });
    STRIDE_TRY(taken.status());
  }
  return {};
}

// A copy on each device or, where that does not fit, a part on each.
Result<std::shared_ptr<ResidentIndex>> SeveralTrees::make_resident(const IndexView& index,
                                                                   const IndexRows& rows) {
  if (devices_.options().in_parts && devices_.working().size() > 1) {
    auto parts = PartitionedIndex::make(devices_, index, rows);
    if (parts.ok()) return std::shared_ptr<ResidentIndex>(std::move(*parts));
    if (parts.status().code() != StatusCode::resource_exhausted) return parts.status();
  }
  std::vector<std::shared_ptr<ResidentIndex>> replicas(devices_.size());
  const Status status = devices_.run_on_all([&](size_t device) {
    auto made = trees(device).make_resident(index, rows);
    if (made.ok()) replicas[device] = std::move(*made);
    return made.status();
  });
  if (status.ok())
    return std::shared_ptr<ResidentIndex>(std::make_shared<ReplicatedIndex>(std::move(replicas)));
  if (status.code() != StatusCode::resource_exhausted) return status;
  replicas.clear();
  auto parts = PartitionedIndex::make(devices_, index, rows);
  if (!parts.ok()) return parts.status();
  return std::shared_ptr<ResidentIndex>(std::move(*parts));
}

// It lies on the device that has built it, alone, or in parts, where it is to be or does not fit.
Result<std::shared_ptr<ResidentIndex>> SeveralTrees::build_index(const KeyColumn& keys,
                                                                 KeyOrder order,
                                                                 const TreeOptions& options) {
  const bool can_be_in_parts =
      order == KeyOrder::ascending && keys.is_fixed() && devices_.working().size() > 1;
  auto in_parts = [&]() -> Result<std::shared_ptr<ResidentIndex>> {
    auto parts = PartitionedIndex::build(devices_, keys, options);
    if (!parts.ok()) return parts.status();
    return std::shared_ptr<ResidentIndex>(std::move(*parts));
  };
  if (can_be_in_parts && devices_.options().in_parts) {
    auto parts = in_parts();
    if (parts.status().code() != StatusCode::resource_exhausted) return parts;
  }
  std::vector<std::shared_ptr<ResidentIndex>> replicas(devices_.size());
  const Status status = devices_.run_on_first(devices_.home_of(keys), [&](size_t device) {
    auto made = trees(device).build_index(keys, order, options);
    if (made.ok()) replicas[device] = std::move(*made);
    return made.status();
  });
  if (status.code() == StatusCode::resource_exhausted && can_be_in_parts) return in_parts();
  STRIDE_TRY(status);
  return std::shared_ptr<ResidentIndex>(std::make_shared<ReplicatedIndex>(std::move(replicas)));
}

}  // namespace

std::unique_ptr<TreeIndex> make_several_trees(DeviceSet& devices) {
  return std::make_unique<SeveralTrees>(devices);
}

}  // namespace stride

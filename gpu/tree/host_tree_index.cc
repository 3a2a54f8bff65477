#include "gpu/tree/host_tree_index.h"

#include "gpu/host/measure_memory.h"
#include "gpu/host/no_device.h"
#include "gpu/tree/index_host.h"
#include "gpu/tree/search_host.h"
#include "gpu/tree/tree_build_host.h"
#include "storage/no_throw.h"

namespace stride {

namespace {

class HostTreeIndex final : public TreeIndex {
 public:
  HostTreeIndex(TaskPool& pool, PlanStrides plan)
      : TreeIndex(AccessCosts::typical_host(pool.threads())), pool_(pool), plan_(plan) {}

  Status measure_keys(const PackedColumn& keys, const SampleOptions& options,
                      KeyStatistics* statistics) override {
    return no_throw([&] { return measure_keys_host(pool_, keys, options, statistics); });
  }
  Status measure_costs(AccessCosts* costs) override {
    return no_throw([&] { return measure_costs_host(pool_, costs); });
  }
  Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                    std::vector<std::byte>* image) override {
    return no_throw([&] { return build_tree_host(pool_, keys, choose_strides(), options, image); });
  }

  Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
              std::span<Location> out) override {
    return no_throw([&] { return find_host(pool_, indexes, queries, out); });
  }
  Status find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                     const TakeLocations& take) override {
    return no_throw([&] { return find_blocks_host(pool_, indexes, queries, take); });
  }
  Status find_ranks(const IndexView& index, const KeyColumn& queries,
                    std::span<uint32_t> out) override {
    return no_throw([&] { return find_ranks_host(pool_, index, queries, out); });
  }
  Status lower_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return no_throw([&] { return lower_bound_host(pool_, index, queries, out); });
  }
  Status upper_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return no_throw([&] { return upper_bound_host(pool_, index, queries, out); });
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    return no_throw([&] { return prefix_interval_host(pool_, index, queries, out); });
  }

  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index,
                                                       const IndexRows& rows) override {
    return no_throw([&]() -> Result<std::shared_ptr<ResidentIndex>> {
      STRIDE_TRY(check_index(index, rows));
      return make_resident_host(index);
    });
  }
  Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                     const TreeOptions& options) override {
    return no_throw(
        [&] { return build_index_host(pool_, keys, order, choose_strides(), options); });
  }

  Result<std::unique_ptr<FoundValues>> find_values(std::span<const IndexView>, const KeyColumn&,
                                                   std::span<uint64_t>,
                                                   std::span<uint64_t>) override {
    return no_device();
  }
  Status find_on_device(std::span<const IndexView>, const KeyColumn&, Location*, void*) override {
    return no_device();
  }
  Status get_on_device(std::span<const IndexView>, const KeyColumn&, const DeviceValues&,
                       void*) override {
    return no_device();
  }
  Status gather_on_device(std::span<const IndexView>, const Location*, uint64_t,
                          const GatheredRows&, void*) override {
    return no_device();
  }
  Status make_keys_on_device(std::span<const DeviceKeyPart>, uint64_t, std::byte*, void*) override {
    return no_device();
  }

 private:
  ChooseStrides choose_strides() {
    return [this](const KeyStatistics& statistics, const TreeOptions& options) {
      auto run_each = [this](uint64_t n, const TaskPool::Body& body) { pool_.run_each(n, body); };
      return plan_(statistics, access_costs(), options, run_each);
    };
  }

  TaskPool& pool_;
  PlanStrides plan_;
};

}  // namespace

std::unique_ptr<TreeIndex> make_host_tree_index(TaskPool& pool, PlanStrides plan) {
  return std::make_unique<HostTreeIndex>(pool, plan);
}

}  // namespace stride

#include <cstring>
#include <string>
#include <utility>

#include "gpu/backend.h"
#include "gpu/host/guarded.h"
#include "gpu/host/task_pool.h"
#include "gpu/match/match_build_host.h"
#include "gpu/match/match_search_host.h"
#include "gpu/scatter/scatter_host.h"
#include "gpu/set/vector_set_host.h"
#include "gpu/sort/sort_host.h"
#include "gpu/tree/index_host.h"
#include "gpu/tree/search_host.h"
#include "gpu/tree/tree_build_host.h"

namespace stride {

namespace {

class HostMemory final : public BackendMemory {
 public:
  explicit HostMemory(uint64_t bytes) : memory_(bytes) {
    data_ = memory_.data();
    size_ = bytes;
  }

 private:
  BulkVector<std::byte> memory_;
};

class HostBackend : public Backend {
 public:
  explicit HostBackend(unsigned threads) : pool_(threads) {}

  std::string name() const override {
    return "host (" + std::to_string(pool_.threads()) +
           (pool_.threads() == 1 ? " thread)" : " threads)");
  }
  unsigned threads() const override { return pool_.threads(); }
  bool has_device() const override { return false; }

  Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) override {
    return guarded([&] { return sort_host(pool_, chunks, sorted); });
  }
  Status measure_keys(const PackedColumn& keys, const SampleOptions& options,
                      KeyStatistics* statistics) override {
    return guarded([&] { return measure_keys_host(pool_, keys, options, statistics); });
  }
  Status measure_costs(AccessCosts* costs) override {
    return guarded([&] { return measure_costs_host(pool_, costs); });
  }
  Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                    std::vector<std::byte>* image) override {
    return guarded([&] { return build_tree_host(pool_, keys, access_costs(), options, image); });
  }
  Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
              std::span<Location> out) override {
    return guarded([&] { return find_host(pool_, indexes, queries, out); });
  }
  Status find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                     const TakeLocations& take) override {
    return guarded([&] { return find_blocks_host(pool_, indexes, queries, take); });
  }
  Status find_ranks(const IndexView& index, const KeyColumn& queries,
                    std::span<uint32_t> out) override {
    return guarded([&] { return find_ranks_host(pool_, index, queries, out); });
  }
  Status lower_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return guarded([&] { return lower_bound_host(pool_, index, queries, out); });
  }
  Status upper_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return guarded([&] { return upper_bound_host(pool_, index, queries, out); });
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    return guarded([&] { return prefix_interval_host(pool_, index, queries, out); });
  }
  Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                       std::vector<std::byte>* image, std::vector<uint32_t>* parents) override {
    return guarded(
        [&] { return build_matches_host(pool_, prefixes, address_bits, image, parents); });
  }
  Status longest_match(const MatchView& matches, const KeyColumn& addresses,
                       std::span<uint32_t> out) override {
    return guarded([&] { return longest_match_host(pool_, matches, addresses, out); });
  }
  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index,
                                                       const IndexRows& rows) override {
    return guarded([&]() -> Result<std::shared_ptr<ResidentIndex>> {
      STRIDE_TRY(check_index(index, rows));
      return make_resident_host(index);
    });
  }
  Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView&,
                                                         const MatchRows&) override {
    return no_device();
  }
  Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                     const TreeOptions& options) override {
    return guarded([&] { return build_index_host(pool_, keys, order, access_costs(), options); });
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
  Status match_on_device(const ResidentMatches&, uint32_t, const ResidentMatches*, const KeyColumn&,
                         Location*, void*) override {
    return no_device();
  }
  Result<std::unique_ptr<ScatterRoute>> make_route(const Indexes& targets, uint64_t target_count,
                                                   OutOfRange out_of_range) override {
    STRIDE_TRY(check_targets(targets));
    return guarded([&] { return make_route_host(pool_, targets, target_count, out_of_range); });
  }
  Result<std::unique_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options) override {
    return guarded([&] { return make_vector_set_host(pool_, options); });
  }
  Result<std::unique_ptr<ByteSet>> make_byte_set() override {
    return guarded([&]() -> Result<std::unique_ptr<ByteSet>> { return make_byte_set_host(pool_); });
  }
  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    return guarded([&]() -> Result<std::unique_ptr<BackendMemory>> {
      return std::unique_ptr<BackendMemory>(std::make_unique<HostMemory>(bytes));
    });
  }
  Result<std::unique_ptr<BackendMemory>> allocate_host(uint64_t bytes) override {
    return allocate(bytes);
  }
  bool is_on_device(const void*) const override { return false; }
  Status copy(void* to, const void* from, uint64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }
  Status measure_limits(uint64_t table_bytes, BackendLimits* limits) override {
    return guarded([&] { return measure_limits_host(pool_, table_bytes, limits); });
  }
  void parallel_for(uint64_t n, uint64_t grain,
                    const std::function<void(uint64_t, uint64_t)>& body) override {
    pool_.run(n, grain, body);
  }

 private:
  Status scatter_checked(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                         const ScatterOptions& options, ScatterReport* report) override {
    if (options.stream) return no_device();
    return guarded([&] { return scatter_host(pool_, sources, targets, into, options, report); });
  }
  static Status no_device() {
    return Status(StatusCode::unavailable, "the host backend has no device")
        .with_remedy("use the CUDA backend, or the call that returns values in host memory");
  }

  TaskPool pool_;
};

}  // namespace

std::unique_ptr<Backend> Backend::host(unsigned threads) {
  return std::make_unique<HostBackend>(threads);
}

}  // namespace stride

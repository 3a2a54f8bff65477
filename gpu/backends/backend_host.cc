#include <cstring>
#include <memory>
#include <string>

#include "gpu/backend.h"
#include "gpu/bulk_vector.h"
#include "gpu/host/measure_memory.h"
#include "gpu/host/task_pool.h"
#include "gpu/match/host_longest_prefix.h"
#include "gpu/plan/tree_planner.h"
#include "gpu/scatter/host_scatter.h"
#include "gpu/set/host_sets.h"
#include "gpu/sort/host_sorter.h"
#include "gpu/tree/host_tree_index.h"
#include "storage/no_throw.h"
#include "storage/status.h"

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

class HostBackend final : public Backend {
 public:
  explicit HostBackend(unsigned threads) : pool_(threads) {}

  Sorter& sorter() override { return *sorter_; }
  TreeIndex& tree_index() override { return *tree_index_; }
  LongestPrefix& longest_prefix() override { return *longest_prefix_; }
  Scatter& scatter() override { return *scatter_; }
  Sets& sets() override { return *sets_; }

  std::string name() const override {
    return "host (" + std::to_string(pool_.threads()) +
           (pool_.threads() == 1 ? " thread)" : " threads)");
  }
  unsigned threads() const override { return pool_.threads(); }
  bool has_device() const override { return false; }

  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    return no_throw([&]() -> Result<std::unique_ptr<BackendMemory>> {
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
    return no_throw([&] { return measure_limits_host(pool_, table_bytes, limits); });
  }
  void parallel_for(uint64_t n, uint64_t grain,
                    const std::function<void(uint64_t, uint64_t)>& body) override {
    pool_.run(n, grain, body);
  }

 private:
  TaskPool pool_;
  std::unique_ptr<Sorter> sorter_ = make_host_sorter(pool_);
  std::unique_ptr<TreeIndex> tree_index_ = make_host_tree_index(pool_, with_strides);
  std::unique_ptr<LongestPrefix> longest_prefix_ = make_host_longest_prefix(pool_);
  std::unique_ptr<Scatter> scatter_ = make_host_scatter(pool_);
  std::unique_ptr<Sets> sets_ = make_host_sets(pool_);
};

}  // namespace

std::unique_ptr<Backend> Backend::host(unsigned threads) {
  return std::make_unique<HostBackend>(threads);
}

}  // namespace stride

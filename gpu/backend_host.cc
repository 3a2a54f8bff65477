#include <new>
#include <string>

#include "gpu/backend.h"
#include "gpu/search_host.h"
#include "gpu/sort_host.h"
#include "gpu/task_pool.h"
#include "gpu/tree_build_host.h"

namespace stride {

namespace {

// Runs a call, and turns what it throws for want of memory into a Status.
template <class Call>
Status guarded(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::resource_exhausted, "not enough memory for the batch")
        .with_remedy("use smaller batches or free some memory");
  }
}

class HostBackend : public Backend {
 public:
  explicit HostBackend(unsigned threads) : pool_(threads) {}

  std::string name() const override {
    return "host (" + std::to_string(pool_.threads()) +
           (pool_.threads() == 1 ? " thread)" : " threads)");
  }
  unsigned threads() const override { return pool_.threads(); }

  Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) override {
    return guarded([&] { return sort_host(pool_, chunks, sorted); });
  }
  Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                    std::vector<std::byte>* image) override {
    return guarded([&] { return build_tree_host(pool_, keys, options, image); });
  }
  Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
              std::span<Location> out) override {
    return guarded([&] { return find_host(pool_, indexes, queries, out); });
  }
  Status lower_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return guarded([&] { return lower_bound_host(pool_, index, queries, out); });
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    return guarded([&] { return prefix_interval_host(pool_, index, queries, out); });
  }
  void parallel_for(uint64_t n, uint64_t grain,
                    const std::function<void(uint64_t, uint64_t)>& body) override {
    pool_.run(n, grain, body);
  }

 private:
  TaskPool pool_;
};

}  // namespace

std::unique_ptr<Backend> Backend::host(unsigned threads) {
  return std::make_unique<HostBackend>(threads);
}

}  // namespace stride

#include "gpu/sort/host_sorter.h"

#include "gpu/sort/host_sort.h"
#include "storage/no_throw.h"

namespace stride {

namespace {

class HostSorter final : public Sorter {
 public:
  explicit HostSorter(TaskPool& pool) : pool_(pool) {}

  Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) override {
    return no_throw([&] { return sort_host(pool_, chunks, sorted); });
  }

 private:
  TaskPool& pool_;
};

}  // namespace

std::unique_ptr<Sorter> make_host_sorter(TaskPool& pool) {
  return std::make_unique<HostSorter>(pool);
}

}  // namespace stride

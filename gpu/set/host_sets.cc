#include "gpu/set/host_sets.h"

#include "gpu/set/vector_set_host.h"
#include "storage/no_throw.h"

namespace stride {

namespace {

class HostSets final : public Sets {
 public:
  explicit HostSets(TaskPool& pool) : pool_(pool) {}

  Result<std::unique_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options) override {
    return no_throw([&] { return make_vector_set_host(pool_, options); });
  }
  Result<std::unique_ptr<ByteSet>> make_byte_set() override {
    return no_throw(
        [&]() -> Result<std::unique_ptr<ByteSet>> { return make_byte_set_host(pool_); });
  }

 private:
  TaskPool& pool_;
};

}  // namespace

std::unique_ptr<Sets> make_host_sets(TaskPool& pool) { return std::make_unique<HostSets>(pool); }

}  // namespace stride

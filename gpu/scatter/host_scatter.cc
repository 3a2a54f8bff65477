#include "gpu/scatter/host_scatter.h"

#include "gpu/host/no_device.h"
#include "gpu/scatter/host_methods.h"
#include "storage/no_throw.h"

namespace stride {

namespace {

class HostScatter final : public Scatter {
 public:
  explicit HostScatter(TaskPool& pool) : pool_(pool) {}

  Result<std::unique_ptr<PreparedScatter>> prepare(const Indexes& targets, uint64_t target_count,
                                                   OutOfRange out_of_range) override {
    STRIDE_TRY(check_targets(targets));
    return no_throw(
        [&] { return prepare_scatter_host(pool_, targets, target_count, out_of_range); });
  }

 private:
  Status apply_checked(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                       const ScatterOptions& options, ScatterReport* report) override {
    if (options.stream) return no_device();
    return no_throw([&] { return scatter_host(pool_, sources, targets, into, options, report); });
  }

  TaskPool& pool_;
};

}  // namespace

std::unique_ptr<Scatter> make_host_scatter(TaskPool& pool) {
  return std::make_unique<HostScatter>(pool);
}

}  // namespace stride

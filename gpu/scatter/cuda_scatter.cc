#include "gpu/scatter/cuda_scatter.h"

#include "gpu/device/cuda_fallback.h"
#include "gpu/scatter/cuda_methods.h"

namespace stride {

namespace {

// The host has added fewer sources before the device has started.
constexpr uint64_t min_device_sources = 1 << 17;

class CudaScatter final : public Scatter {
 public:
  CudaScatter(const CudaContext& context, Scatter& host) : context_(context), host_(host) {}

  Result<std::unique_ptr<PreparedScatter>> prepare(const Indexes& targets, uint64_t target_count,
                                                   OutOfRange out_of_range) override {
    STRIDE_TRY(check_targets(targets));
    auto on_device = [&] {
      return prepare_scatter_cuda(context_, targets, target_count, out_of_range);
    };
    if (context_.owns(targets.data)) return cuda_guarded(on_device);
    return device_or_host(on_device,
                          [&] { return host_.prepare(targets, target_count, out_of_range); });
  }

 private:
  Status apply_checked(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                       const ScatterOptions& options, ScatterReport* report) override {
    auto on_device = [&] {
      return scatter_cuda(context_, sources, targets, into, options, report);
    };
    auto on_host = [&] { return host_.apply(sources, targets, into, options, report); };
    // A method that is asked for is one of the device's.
    const bool may_go_to_host = options.method == ScatterMethod::automatic &&
                                !context_.owns(sources.data) && !context_.owns(targets.data) &&
                                !context_.owns(into.data);
    if (!may_go_to_host) return cuda_guarded(on_device);
    if (!options.stream && sources.size < min_device_sources) return on_host();
    return device_or_host(on_device, on_host);
  }

  CudaContext context_;
  Scatter& host_;
};

}  // namespace

std::unique_ptr<Scatter> make_cuda_scatter(const CudaContext& context, Scatter& host) {
  return std::make_unique<CudaScatter>(context, host);
}

}  // namespace stride

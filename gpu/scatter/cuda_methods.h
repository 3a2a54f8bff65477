// Scatter-add in the memory of a device.
#pragma once

#include <memory>

#include "gpu/device/cuda_transfer.h"
#include "gpu/scatter_add.h"
#include "storage/status.h"

namespace stride {

// As Scatter::apply_checked(); throws CudaFailure and std::bad_alloc. Sources and targets in host
// memory come in pieces, T as a whole.
Status scatter_cuda(const CudaContext& context, const Numbers& sources, const Indexes& targets,
                    const MutableNumbers& into, const ScatterOptions& options,
                    ScatterReport* report);

// As Scatter::prepare().
Result<std::unique_ptr<PreparedScatter>> prepare_scatter_cuda(const CudaContext& context,
                                                              const Indexes& targets,
                                                              uint64_t target_count,
                                                              OutOfRange out_of_range);

// T in device memory, as long as the work lasts.
class PlacedTargets {
 public:
  PlacedTargets(const CudaContext& context, const MutableNumbers& into, cudaStream_t stream)
      : context_(context), into_(into), stream_(stream) {
    bytes_ = into.size * width_of(into.type);
    if (context.device.owns(into.data)) return;
    copy_ = CudaArray<std::byte>(context.device, stream, bytes_);
    context.transfer.to_device(copy_.data(), into.data, bytes_, stream);
  }
  MutableNumbers there() {
    MutableNumbers there = into_;
    if (copy_.data()) there.data = copy_.data();
    return there;
  }
  // When the work is done.
  void give_back() {
    if (copy_.data()) context_.transfer.to_host(into_.data, copy_.data(), bytes_, stream_);
  }

 private:
  CudaContext context_;
  MutableNumbers into_;
  cudaStream_t stream_;
  uint64_t bytes_ = 0;
  CudaArray<std::byte> copy_;
};

}  // namespace stride

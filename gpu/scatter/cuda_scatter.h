// Scattering in the memory of a device.
#pragma once

#include <memory>

#include "gpu/device/cuda_transfer.h"
#include "gpu/scatter.h"

namespace stride {

// The context and `host`, which does what the device can't, must outlive it.
std::unique_ptr<Scatter> make_cuda_scatter(const CudaContext& context, Scatter& host);

}  // namespace stride

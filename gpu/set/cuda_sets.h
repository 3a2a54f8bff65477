// Sets in the memory of a device; byte strings stay on the host.
#pragma once

#include <memory>

#include "gpu/device/cuda_transfer.h"
#include "gpu/sets.h"

namespace stride {

// The context and `host`, which does what the device can't, must outlive it.
std::unique_ptr<Sets> make_cuda_sets(const CudaContext& context, Sets& host);

}  // namespace stride

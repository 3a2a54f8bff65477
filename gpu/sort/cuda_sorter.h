// The sorter on a device.
#pragma once

#include <memory>

#include "gpu/device/cuda_transfer.h"
#include "gpu/sorter.h"

namespace stride {

// The context and `host`, which does what the device can't, must outlive it.
std::unique_ptr<Sorter> make_cuda_sorter(const CudaContext& context, Sorter& host);

}  // namespace stride

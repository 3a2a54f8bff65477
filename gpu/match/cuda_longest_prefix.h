// The longest prefix on a device.
#pragma once

#include <memory>

#include "gpu/device/cuda_transfer.h"
#include "gpu/longest_prefix.h"

namespace stride {

// The context and `host`, which does what the device can't, must outlive it.
std::unique_ptr<LongestPrefix> make_cuda_longest_prefix(const CudaContext& context,
                                                        LongestPrefix& host);

}  // namespace stride

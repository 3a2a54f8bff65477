// The tree index on a device.
#pragma once

#include <memory>

#include "gpu/device/cuda_transfer.h"
#include "gpu/tree/choose_strides.h"
#include "gpu/tree_index.h"

namespace stride {

// The context and `host`, which does what the device can't, must outlive it.
std::unique_ptr<TreeIndex> make_cuda_tree_index(const CudaContext& context, TreeIndex& host,
                                                PlanStrides plan);

}  // namespace stride

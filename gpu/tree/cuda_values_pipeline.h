// Batches whose values are gathered on the device and go to host memory.
#pragma once

#include <memory>
#include <span>

#include "gpu/device/cuda_transfer.h"
#include "gpu/tree_index.h"
#include "storage/column.h"

namespace stride {

// As TreeIndex::find_values(); throws CudaFailure. All indexes have their values on the device.
std::unique_ptr<FoundValues> find_values_cuda(CudaTransfer& transfer,
                                              std::span<const IndexView> indexes,
                                              const KeyColumn& queries, std::span<uint64_t> found,
                                              std::span<uint64_t> ends);

}  // namespace stride

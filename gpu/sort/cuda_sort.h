// Sorting the staged chunks of a bulk write on a device.
#pragma once

#include <span>

#include "gpu/device/cuda_transfer.h"
#include "gpu/sorter.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// As Sorter::sort(); throws CudaFailure and std::bad_alloc. Needs 24 bytes of the device's memory
// for each row of 8-byte keys.
Status sort_chunks_cuda(const CudaContext& context, std::span<const KeyColumn> chunks,
                        Sorted* sorted);

}  // namespace stride

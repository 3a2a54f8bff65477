// Sets of vectors in the memory of a device.
#pragma once

#include <memory>

#include "gpu/device/cuda_transfer.h"
#include "gpu/vector_set.h"
#include "storage/status.h"

namespace stride {

// As Sets::make_vector_set(); throws CudaFailure and std::bad_alloc.
Result<std::unique_ptr<VectorSet>> make_vector_set_cuda(const CudaContext& context,
                                                        VectorSetOptions options);

}  // namespace stride

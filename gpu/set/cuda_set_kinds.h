// The kinds of sets in the memory of a device, each in its own file.
#pragma once

#include <memory>

#include "gpu/device/cuda_transfer.h"
#include "gpu/vector_set.h"

namespace stride {

// unavailable: the device has no atomic operations of 128 bits.
Status check_wide(const CudaDevice& device);

// These throw CudaFailure and std::bad_alloc. The options are complete (complete_options()).
Result<std::unique_ptr<VectorSet>> make_cuda_dense_set(const CudaContext& context,
                                                       const VectorSetOptions& options);
Result<std::unique_ptr<VectorSet>> make_cuda_slot_set(const CudaContext& context,
                                                      const VectorSetOptions& options);
Result<std::unique_ptr<VectorSet>> make_cuda_compressed_set(const CudaContext& context,
                                                            const VectorSetOptions& options);

}  // namespace stride

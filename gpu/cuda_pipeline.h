// Batches of searches whose queries or results lie in host memory: chunks of queries go to the
// device, are searched and come back on several streams at once, so that the copies of one chunk
// overlap the search and the copies of others.
#pragma once

#include <cstdint>
#include <functional>

#include "gpu/backend.h"
#include "gpu/cuda_transfer.h"

namespace stride {

// Starts the searches of some queries, both in device memory, on the stream.
using StartSearch =
    std::function<void(const KeyColumn& queries, void* results, cudaStream_t stream)>;

// Runs a batch; results has queries.size times result_bytes bytes. Either may be in device memory,
// in pinned host memory or in any host memory. Throws CudaFailure.
void search_in_chunks(CudaTransfer& transfer, const KeyColumn& queries, void* results,
                      uint32_t result_bytes, const StartSearch& start);

}  // namespace stride

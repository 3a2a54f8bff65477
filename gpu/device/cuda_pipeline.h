// Batches of searches whose queries or results lie in host memory: chunks of queries go to the
// device, are searched and come back on several streams at once, so that the copies of one chunk
// overlap the search and the copies of others.
#pragma once

#include <cstdint>
#include <functional>

#include "gpu/device/cuda_transfer.h"
#include "gpu/device/piece_flags.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// How a search reads its queries, and writes its results.
enum class QueryAccess {
  any,  // as it likes: they have to be in the device's memory
  // Each once, neighbouring threads neighbouring ones: pinned host memory will do, also while the
  // host still brings queries there (piece_flags.h).
  once
};

// Starts the searches of some queries of a batch on the stream. pieces: null, unless the host still
// brings them.
using StartSearch = std::function<void(const KeyColumn& queries, void* results,
                                       const QueryPieces* pieces, cudaStream_t stream)>;

struct BatchSearchKernel {
  uint32_t result_bytes;  // of each query
  QueryAccess access;
  StartSearch start;
  std::function<void()> meanwhile = {};  // as that of a PieceBatch (cuda_piece_run.h)
};

// Takes results [first, first + count), in host memory. Called from several threads at once; a
// Status that is not ok ends the batch.
using TakeResults = std::function<Status(uint64_t first, uint64_t count, const std::byte* results)>;

// Runs a batch; results has queries.size times search.result_bytes bytes. Either may be in the
// device's memory or another one's, in pinned host memory or in any host memory. Throws
// CudaFailure.
void search_in_chunks(CudaTransfer& transfer, const KeyColumn& queries, void* results,
                      const BatchSearchKernel& search);
// The same with results that are handed over chunk by chunk.
Status search_in_chunks(CudaTransfer& transfer, const KeyColumn& queries,
                        const BatchSearchKernel& search, const TakeResults& take);

}  // namespace stride

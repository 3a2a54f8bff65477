// Runs batches of pieces (piece_flags.h): the host's threads bring pieces and take results while
// one kernel works. To start a kernel and two copies for each chunk takes longer than a small
// batch.
#pragma once

#include <cstdint>
#include <functional>

#include "gpu/device/cuda_pipeline.h"
#include "gpu/device/cuda_transfer.h"
#include "gpu/device/piece_flags.h"
#include "gpu/device/piece_room.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// A batch. What it does is called from several threads at once. slot: below the number of slots,
// the same for in and out.
struct PieceBatch {
  uint64_t pieces;  // at most large_room.max_pieces
  // Starts the one kernel on the stream.
  std::function<void(const PieceFlags& flags, const PieceRoom& room, cudaStream_t stream)> start;
  // Puts a piece into its slot of room.in(). Null: all is there. Does not throw, nor wait.
  std::function<void(uint64_t piece, uint64_t slot, const PieceRoom& room)> bring;
  // Takes what came out of a piece from its slot of room.out(). Null: it is there. A Status that is
  // not ok ends the batch.
  std::function<Status(uint64_t piece, uint64_t slot, const PieceRoom& room)> take;
  // What a thread does when nobody waits for a piece that it has to bring or to take, again and
  // again until all pieces have been taken, and once more then. May be null. Does not throw.
  std::function<void()> meanwhile;
};

// Throws CudaFailure.
Status run_in_pieces(CudaTransfer& transfer, const PieceBatch& batch);

// Smaller batches are brought by one thread.
inline constexpr uint64_t min_queries_in_pieces = 8 * piece_queries;
// Whether a batch of queries is searched in pieces.
bool fits_pieces(uint64_t queries, uint64_t query_bytes, uint64_t result_bytes);

// As search_in_chunks(), of queries of one width. queries_are_here: the device reads them where
// they lie. there: where the device writes results itself; null: they go to `take`. Precondition:
// fits_pieces(). With something to do meanwhile the device is free for others in between.
Status search_in_pieces(CudaTransfer& transfer, const KeyColumn& queries,
                        const BatchSearchKernel& search, bool queries_are_here, void* there,
                        const TakeResults& take);

}  // namespace stride

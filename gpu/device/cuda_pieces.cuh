// Kernels that work piece by piece while the host brings pieces (piece_flags.h), and searches of
// queries, in pieces or all of them at once.
//
// A Search has
//
//   using Query = ...;
//   Query load(uint64_t i) const;                // reads query i
//   void answer(uint64_t i, Query query) const;  // writes result i
//
// and reads each query once and writes each result once, neighbouring threads neighbouring ones:
// they may lie in pinned host memory, which the device then reads and writes over the bus.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/device/cuda_space.cuh"
#include "gpu/device/piece_flags.h"

namespace stride {

inline constexpr uint32_t piece_threads = 512;

__device__ inline uint32_t load_flag_of_host(const uint32_t* flag) {
  uint32_t x;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(x) : "l"(flag) : "memory");
  return x;
}
__device__ inline uint32_t peek_flag(const uint32_t* flag) {
  uint32_t x;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(x) : "l"(flag) : "memory");
  return x;
}
__device__ inline void raise_flag(uint32_t* flag, uint32_t round) {
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(flag), "r"(round) : "memory");
}
__device__ inline void raise_flag_of_host(uint32_t* flag, uint32_t round) {
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(flag), "r"(round) : "memory");
}

// One block reads the host's flags for all others: neighbouring ones in one access over the bus,
// which many blocks that ask would fill. A flag is passed on in the loop that asks for it: behind a
// loop of its own the threads of a warp would wait for each other first.
__device__ inline void relay_flags(const PieceFlags& flags) {
  for (uint32_t piece = threadIdx.x; piece < flags.pieces;) {
    if (load_flag_of_host(flags.ready + piece) != flags.round) continue;
    raise_flag(flags.relayed + piece, flags.round);
    piece += blockDim.x;
  }
}

// Calls work(piece), with all threads of the block, for the piece that is this block's, once it is
// there. All kernels that are started with `flags` do nothing else.
template <class Work>
__device__ void work_on_piece(const PieceFlags& flags, const Work& work) {
  __shared__ uint32_t ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(flags.tickets, 1) - flags.first_ticket;
  __syncthreads();
  // The block that begins first, for others may have to wait for room.
  if (ticket == 0) return relay_flags(flags);
  const uint32_t piece = ticket - 1;
  if (threadIdx.x == 0) {
    // To acquire in each turn would empty the first-level cache as often.
    while (peek_flag(flags.relayed + piece) != flags.round) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
  work(piece);
  __syncthreads();
  if (threadIdx.x == 0)
    raise_flag_of_host(flags.done + PieceFlags::done_flag(piece, flags.done_columns), flags.round);
}

template <class Search>
__global__ void __launch_bounds__(piece_threads)
    search_pieces(const __grid_constant__ Search search, const __grid_constant__ QueryPieces pieces,
                  uint64_t count) {
  constexpr uint32_t of_thread = piece_queries / piece_threads;
  work_on_piece(pieces.flags, [&](uint32_t piece) {
    const uint64_t first = uint64_t{piece} * piece_queries, left = count - first;
    const uint64_t in_ring = uint64_t{piece % pieces.flags.slots} * piece_queries;
    const uint64_t from = pieces.queries_in_ring ? in_ring : first;
    const uint64_t to = pieces.results_in_ring ? in_ring : first;
    typename Search::Query queries[of_thread];
#pragma unroll
    for (uint32_t k = 0; k < of_thread; ++k) {
      const uint32_t i = threadIdx.x + k * piece_threads;
      if (i < left) queries[k] = search.load(from + i);
    }
#pragma unroll
    for (uint32_t k = 0; k < of_thread; ++k) {
      const uint32_t i = threadIdx.x + k * piece_threads;
      if (i < left) search.answer(to + i, queries[k]);
    }
  });
}

template <class Search>
__global__ void __launch_bounds__(block_threads)
    search_all(const __grid_constant__ Search search, uint64_t count) {
  const uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x;
  if (i < count) search.answer(i, search.load(i));
}

// Starts the search of `count` queries; pieces: null where all are there.
template <class Search>
void start_search(const Search& search, uint64_t count, const QueryPieces* pieces,
                  cudaStream_t stream) {
  if (pieces) {
    search_pieces<<<pieces->flags.blocks(), piece_threads, 0, stream>>>(search, *pieces, count);
  } else {
    search_all<<<blocks_for(count), block_threads, 0, stream>>>(search, count);
  }
}

}  // namespace stride

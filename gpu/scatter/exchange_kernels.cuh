// The two kernels of an exchange (exchange_plan.h).
#pragma once

#include <cstdint>

#include "gpu/scatter/cuda_operations.cuh"
#include "gpu/scatter/exchange_plan.h"
#include "gpu/scatter/scatter_kernels.cuh"

namespace stride {

namespace {

constexpr uint32_t exchange_threads = 1024;
constexpr uint32_t exchange_warps = exchange_threads / 32;

// An ExchangeSlab in device memory.
struct SlabRef {
  uint64_t first;
  uint32_t sources, chunk_sources;
  uint32_t max_items, most_targets;
  const uint16_t* picks;
  const ExchangeSlab::Piece* pieces;
  const uint32_t *chunk_piece, *chunk_pick;
  const uint32_t *part_target, *part_item, *part_group;
  const uint32_t *group_targets, *group_list;
  const uint16_t* list;
  uint32_t items, parts, heavy_hitter_count;
  const ExchangeSlab::HeavyHitter* heavy_hitters;
};

// What is read once a call should not drive what lies between its kernels from the cache.
enum class Reads { once, again };

// Begins to copy n entries to a block's shared memory, behind its registers. Both sides are aligned
// to 16 bytes.
template <Reads reads, class E>
__device__ __forceinline__ void load(E* to, const E* from, uint32_t n) {
  constexpr uint32_t in_vector = 16 / sizeof(E);
  const uint32_t vectors = n / in_vector;
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  for (uint32_t i = threadIdx.x; i < vectors; i += exchange_threads) {
    const uint4* vector = reinterpret_cast<const uint4*>(from) + i;
    if constexpr (reads == Reads::once)
      asm volatile(
          "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(shared + i * 16),
          "l"(vector), "l"(policy)
          : "memory");
    else
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared + i * 16), "l"(vector)
                   : "memory");
  }
  for (uint32_t i = vectors * in_vector + threadIdx.x; i < n; i += exchange_threads)
    to[i] = from[i];
}
__device__ __forceinline__ void wait_until_in() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

// A piece is taken by half of a warp.
constexpr uint32_t half_threads = 16;
__device__ __forceinline__ ExchangeSlab::Piece piece_of(const ExchangeSlab::Piece& mine,
                                                        uint32_t thread) {
  uint2 words;
  memcpy(&words, &mine, sizeof words);
  words.x = __shfl_sync(whole_warp, words.x, thread, half_threads);
  words.y = __shfl_sync(whole_warp, words.y, thread, half_threads);
  ExchangeSlab::Piece piece;
  memcpy(&piece, &words, sizeof piece);
  return piece;
}
static_assert(sizeof(ExchangeSlab::Piece) == sizeof(uint2));
static_assert(exchange_piece_sources == half_threads * exchange_quad);

// Adds up the sums of `threads` neighbours.
template <class T>
__device__ __forceinline__ T sum_of(T sum, uint32_t threads) {
#pragma unroll
  for (uint32_t lanes = threads / 2; lanes > 0; lanes /= 2)
    sum = AddOp<T>::join(sum, __shfl_xor_sync(whole_warp, sum, lanes));
  return sum;
}

template <class T>
__device__ __forceinline__ void store_quad(T* to, const T (&quad)[exchange_quad]) {
#pragma unroll
  for (uint32_t k = 0; k < sizeof quad / 16; ++k) {
    uint4 vector;
    memcpy(&vector, reinterpret_cast<const std::byte*>(quad) + k * 16, 16);
    reinterpret_cast<uint4*>(to)[k] = vector;
  }
}

// A block a chunk: its sources go to their parts, or are added up for heavy hitters.
template <class T>
__global__ __launch_bounds__(exchange_threads) void exchange_chunks(TileSource source, SlabRef slab,
                                                                    T* items) {
  extern __shared__ uint4 shared_vectors[];
  T* values = reinterpret_cast<T*>(shared_vectors);
  auto* picks = reinterpret_cast<uint16_t*>(values + slab.chunk_sources);
  const uint64_t chunk = blockIdx.x, begin = chunk * slab.chunk_sources;
  const auto n = static_cast<uint32_t>(
      slab.sources - begin < slab.chunk_sources ? slab.sources - begin : slab.chunk_sources);
  let_later_work_begin();
  const uint32_t first_pick = slab.chunk_pick[chunk];
  load<Reads::again>(picks, slab.picks + first_pick, slab.chunk_pick[chunk + 1] - first_pick);
  // Each half of a warp has every exchange_halves-th piece, and each of its threads brings one of
  // these.
  constexpr uint32_t exchange_halves = exchange_threads / half_threads;
  const uint32_t first_piece = slab.chunk_piece[chunk], last_piece = slab.chunk_piece[chunk + 1];
  const uint32_t half = threadIdx.x / half_threads, thread = threadIdx.x % half_threads;
  auto load_piece = [&](uint32_t from_piece) {
    const uint32_t p = from_piece + half + exchange_halves * thread;
    return p < last_piece ? slab.pieces[p] : ExchangeSlab::Piece{0, 0, 0};
  };
  ExchangeSlab::Piece mine = load_piece(first_piece);
  wait_for_earlier_work();
  if (source.numbers_aligned && source.type != NumberType::f16 && source.type != NumberType::bf16 &&
      source.numbers && (slab.first + begin) % 4 == 0) {
    load<Reads::once>(values, static_cast<const T*>(source.numbers) + slab.first + begin, n);
  } else {
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < n; i += exchange_threads)
      values[i] = number_at<T>(source, slab.first + begin + i);
  }
  wait_until_in();
  for (uint32_t from_piece = first_piece; from_piece < last_piece; from_piece += exchange_threads) {
    if (from_piece != first_piece) mine = load_piece(from_piece);
    const uint32_t turns = (last_piece - from_piece + exchange_halves - 1) / exchange_halves;
    for (uint32_t turn = 0; turn < min(turns, half_threads); ++turn) {
      const ExchangeSlab::Piece piece = piece_of(mine, turn);
      const uint16_t* from = picks + piece.begin;
      const bool is_sum = piece.to >= slab.items && piece.count > 0;
      if (!is_sum && thread * exchange_quad < piece.count) {
        const uint2 four = reinterpret_cast<const uint2*>(from)[thread];
        const T quad[exchange_quad] = {values[four.x & 0xFFFF], values[four.x >> 16],
                                       values[four.y & 0xFFFF], values[four.y >> 16]};
        store_quad(items + piece.to + thread * exchange_quad, quad);
      }
      if (!__any_sync(whole_warp, is_sum)) continue;
      T sum = AddOp<T>::none();
      if (is_sum)
        for (uint32_t j = thread; j < piece.count; j += half_threads)
          sum = AddOp<T>::join(sum, values[from[j]]);
      sum = sum_of(sum, half_threads);
      if (is_sum && thread == 0) items[piece.to] = sum;
    }
  }
}

// A warp a heavy hitter.
template <class T>
__device__ void add_heavy_hitter(const SlabRef& slab, uint32_t h, const T* items, T* into) {
  if (h >= slab.heavy_hitter_count) return;
  const ExchangeSlab::HeavyHitter hitter = slab.heavy_hitters[h];
  T sum = AddOp<T>::none();
  for (uint32_t i = hitter.begin + threadIdx.x % 32; i < slab.heavy_hitters[h + 1].begin; i += 32)
    sum = AddOp<T>::join(sum, items[i]);
  sum = sum_of(sum, 32);
  if (threadIdx.x % 32 == 0) into[hitter.target] = AddOp<T>::join(into[hitter.target], sum);
}

// A block a part: its targets add up their items, in order. Further blocks see to heavy hitters.
template <class T>
__global__ __launch_bounds__(exchange_threads) void add_parts(SlabRef slab, const T* items,
                                                              T* into) {
  extern __shared__ uint4 shared_vectors[];
  const uint32_t part = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  let_later_work_begin();
  if (part >= slab.parts) {
    wait_for_earlier_work();
    return add_heavy_hitter(slab, (part - slab.parts) * exchange_warps + warp, items, into);
  }
  const uint32_t first = slab.part_item[part], n = slab.part_item[part + 1] - first;
  const uint32_t first_target = slab.part_target[part];
  const uint32_t targets = slab.part_target[part + 1] - first_target;
  const uint32_t first_group = slab.part_group[part], last_group = slab.part_group[part + 1];
  const uint32_t first_list = slab.group_list[first_group];
  T* values = reinterpret_cast<T*>(shared_vectors);
  T* sums = values + slab.max_items + exchange_quad;
  auto* list = reinterpret_cast<uint16_t*>(sums + (slab.most_targets + 3) / 4 * 4);
  load<Reads::again>(list, slab.list + first_list, slab.group_list[last_group] - first_list);
  // A warp's first group; then always the next one, while it sees to one.
  uint32_t g = first_group + warp, target = no_exchange_target, begin = 0, end = 0;
  auto look_ahead = [&] {
    if (g >= last_group) return;
    target = slab.group_targets[g * exchange_group_targets + lane];
    begin = slab.group_list[g] - first_list;
    end = slab.group_list[g + 1] - first_list;
  };
  look_ahead();
  for (uint32_t t = threadIdx.x; t < targets; t += exchange_threads) sums[t] = AddOp<T>::none();
  wait_for_earlier_work();
  load<Reads::again>(values, items + first, n);
  if (threadIdx.x == 0) values[n] = AddOp<T>::none();
  wait_until_in();
  while (g < last_group) {
    const uint32_t to = target, list_end = end;
    uint32_t at = begin + lane;
    g += exchange_warps;
    look_ahead();
    T sum = AddOp<T>::none();
#pragma unroll 4
    for (; at < list_end; at += exchange_group_targets) sum = AddOp<T>::join(sum, values[list[at]]);
    if (to != no_exchange_target) sums[to - first_target] = sum;
  }
  __syncthreads();
  for (uint32_t t = threadIdx.x; t < targets; t += exchange_threads)
    if (!AddOp<T>::is_none(sums[t]))
      into[first_target + t] = AddOp<T>::join(into[first_target + t], sums[t]);
}
static_assert(exchange_group_targets == 32);

}  // namespace

}  // namespace stride

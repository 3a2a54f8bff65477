// The kernel of min and max. Most sources change nothing, and a read of T sorts them out: what was
// read may be old, but T only ever comes closer.
#pragma once

#include "gpu/scatter/cuda_operations.cuh"
#include "gpu/scatter/scatter_kernels.cuh"

namespace stride {

template <class T>
__device__ __forceinline__ void extreme_to(T* to, T x, bool is_min) {
  using Bits = std::conditional_t<sizeof(T) == 4, int, long long>;
  using Plain = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
  Bits bits;
  memcpy(&bits, &x, sizeof x);
  auto* cell = reinterpret_cast<Bits*>(to);
  if (std::is_integral_v<T> || bits >= 0) {
    if (is_min)
      atomicMin(cell, bits);
    else
      atomicMax(cell, bits);
    return;
  }
  // Among those with a sign, the larger bits are the smaller number; and as unsigned bits they are
  // above all others.
  auto plain = static_cast<Plain>(bits);
  if (is_min)
    atomicMax(reinterpret_cast<Plain*>(cell), plain);
  else
    atomicMin(reinterpret_cast<Plain*>(cell), plain);
}

template <class T>
__global__ void extreme_tiles(TileSource source, T* into, bool is_min, ScatterCounters* counters) {
  LeftOut left_out;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x * 4;
  for (uint64_t i = (blockIdx.x * uint64_t{blockDim.x} + threadIdx.x) * 4; i < source.n;
       i += step) {
    uint32_t count = source.n - i < 4 ? static_cast<uint32_t>(source.n - i) : 4;
    uint64_t targets[4];
    T numbers[4] = {};
    load_targets(source, i, count, targets);
    load_numbers(source, i, count, numbers);
    left_out.look(targets, i, count);
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      T x = numbers[k];
      if (targets[k] == UINT64_MAX || x != x) continue;
      auto mine = total_order(x), there = total_order(into[targets[k]]);
      if (is_min ? mine < there : mine > there) extreme_to(into + targets[k], x, is_min);
    }
  }
  left_out.report(source, counters);
}

}  // namespace stride

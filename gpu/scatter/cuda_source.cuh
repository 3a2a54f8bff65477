// The sources of a scatter as kernels read them, in tiles of 128, and how kernels overlap.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/device/cuda_device.h"
#include "gpu/scatter/scatter_arith.h"
#include "gpu/scatter_add.h"

namespace stride {

inline constexpr uint32_t tile_sources = 128;  // a warp
inline constexpr uint32_t thread_sources = 4;
inline constexpr uint32_t whole_warp = 0xFFFFFFFF;

// A kernel may be started before the work that it comes after on its stream is done, by
// launch_early(): that is done, and seen, behind wait_for_earlier_work(), which each such kernel
// calls before it ends.
__device__ __forceinline__ void wait_for_earlier_work() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
__device__ __forceinline__ void let_later_work_begin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// On a device that cannot do that, a kernel comes after the one before it.
template <class... Parameters, class... Arguments>
void launch_early(const CudaDevice& device, void (*kernel)(Parameters...), uint32_t blocks,
                  uint32_t threads, uint64_t shared_bytes, cudaStream_t stream,
                  const Arguments&... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = device.generation() >= 9 ? 1 : 0;
  cuda_check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...),
             "start a kernel");
}

// What kernels report. Zeros before.
struct ScatterCounters {
  unsigned long long out_of_range;
  unsigned long long least;  // UINT64_MAX less the first that is out of range
};

// What is known of all sources before they are cut.
struct SourceSummary {
  unsigned long long largest;  // of the finite absolute values, as the bits of a double
  uint32_t not_finite;         // 1: some are
  // deepest_zero less the smallest exponent of a last bit: whether any number has a low part.
  uint32_t deepest;
  static constexpr int deepest_zero = 4096;
  static constexpr uint32_t deepest_unknown = 8192;

  __device__ SumScale scale(uint64_t sources) const {
    return SumScale::of(sources, double_of_bits(largest));
  }
  __device__ bool has_low(const SumScale& scale) const {
    return static_cast<int>(deepest) > deepest_zero - scale.high_exponent;
  }
};

// What a sample of the sources is like.
struct SourceSample {
  static constexpr uint32_t slots_log = 11, slots = 1 << slots_log;
  static constexpr uint32_t none = UINT32_MAX;
  // The targets that it met often, one for each slot of a small hash table.
  uint32_t has_heavy_hitters;  // 0: none is
  uint32_t heavy_hitters[slots];
  // Most floats that are not 0 are of sizes in [window / 256, window). 0: there is no such window.
  float window;
  uint32_t ascending;  // 1: targets are sorted
  uint32_t runs;       // 1: neighbours of one target are common

  __device__ static uint32_t slot_of(uint32_t t) { return t * 0x9E3779B1u >> (32 - slots_log); }
};

// Sources and their targets, in device memory.
struct TileSource {
  const void* numbers;  // null: ones
  const void* targets;
  uint64_t n;
  uint64_t limit;  // targets are below
  uint64_t first;  // of the batch that they are a part of
  NumberType type;
  bool wide_targets;                      // 64 bits, else 32
  bool numbers_aligned, targets_aligned;  // for vector loads
};

// Four neighbours. They are read once, and should not drive T from the cache.
template <class E>
__device__ __forceinline__ void load_four(const void* column, uint64_t i, uint32_t count,
                                          bool aligned, E (&out)[4]) {
  const E* from = static_cast<const E*>(column) + i;
  if (aligned && count == 4) {
    if constexpr (sizeof(E) == 2) {
      uint2 x = __ldcs(reinterpret_cast<const uint2*>(from));
      memcpy(out, &x, sizeof x);
    } else {
#pragma unroll
      for (uint32_t k = 0; k < sizeof(E) / 4; ++k) {
        uint4 x = __ldcs(reinterpret_cast<const uint4*>(from) + k);
        memcpy(out + k * (16 / sizeof(E)), &x, sizeof x);
      }
    }
    return;
  }
#pragma unroll
  for (uint32_t k = 0; k < 4; ++k)
    if (k < count) out[k] = from[k];
}

template <class T>
__device__ __forceinline__ void load_numbers(const TileSource& source, uint64_t i, uint32_t count,
                                             T (&out)[4]) {
  if (!source.numbers) {
#pragma unroll
    for (T& x : out) x = 1;
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (source.type != NumberType::f32) {
      uint16_t halves[4] = {};
      load_four(source.numbers, i, count, source.numbers_aligned, halves);
#pragma unroll
      for (uint32_t k = 0; k < 4; ++k)
        out[k] = source.type == NumberType::f16 ? to_float(Half{halves[k]})
                                                : to_float(BrainHalf{halves[k]});
      return;
    }
  }
  load_four(source.numbers, i, count, source.numbers_aligned, out);
}

template <class T>
__device__ __forceinline__ T number_at(const TileSource& source, uint64_t i) {
  if (!source.numbers) return 1;
  if constexpr (std::is_same_v<T, float>) {
    if (source.type == NumberType::f16)
      return to_float(static_cast<const Half*>(source.numbers)[i]);
    if (source.type == NumberType::bf16)
      return to_float(static_cast<const BrainHalf*>(source.numbers)[i]);
  }
  return static_cast<const T*>(source.numbers)[i];
}

// Target: uint32_t, where all limits are below its largest, or uint64_t.
template <class Target>
inline constexpr Target no_target = static_cast<Target>(-1);

// What has no target has no_target. Returns whether there is any such.
template <class Index, class Target>
__device__ __forceinline__ bool load_targets_of(const TileSource& source, uint64_t i,
                                                uint32_t count, Target (&out)[4]) {
  Index there[4];
#pragma unroll
  for (Index& t : there) t = static_cast<Index>(-1);
  load_four(source.targets, i, count, source.targets_aligned, there);
  bool all = count == 4;
#pragma unroll
  for (uint32_t k = 0; k < 4; ++k) {
    all &= there[k] < source.limit;
    out[k] = static_cast<Target>(there[k]);
  }
  if (all) return false;
#pragma unroll
  for (uint32_t k = 0; k < 4; ++k)
    if (k >= count || there[k] >= source.limit) out[k] = no_target<Target>;
  return true;
}
template <class Target>
__device__ __forceinline__ bool load_targets(const TileSource& source, uint64_t i, uint32_t count,
                                             Target (&out)[4]) {
  return source.wide_targets ? load_targets_of<uint64_t>(source, i, count, out)
                             : load_targets_of<uint32_t>(source, i, count, out);
}

}  // namespace stride

// The kernels that look at the sources of a scatter before it begins: a sample, and their sum.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "gpu/scatter/cuda_operations.cuh"
#include "gpu/scatter/scatter_kernels.cuh"

namespace stride {

namespace {

// How much is worth a look at what the sources are like: it takes some microseconds.
constexpr uint64_t min_sampled = 1 << 21;
constexpr uint32_t sample_threads = 1024;
// One processor brings one source after the other, so that there are few where all is done soon.
constexpr uint64_t many_to_sample = 1 << 26;
constexpr uint32_t few_samples_log = 11, many_samples_log = 13;
constexpr uint64_t min_to_sample = 1 << (many_samples_log + 1);
// A heavy hitter comes at least so often in a sample, and one in heavy_hitter_share of the sample's
// sources must have such a target.
constexpr uint32_t min_heavy_hitter_count = 3;
constexpr uint32_t heavy_hitter_share = 32;
// Where fewer neighbours have the same target, adding them up first takes longer than it saves.
constexpr uint32_t runs_share = 16;

// What a block has of a sample in its shared memory: targets counted in a small hash table, which
// may miss some, and how large the numbers are.
template <uint32_t sample_log>
struct SampleTable {
  static constexpr uint32_t sample_size = 1 << sample_log, slots = sample_size / 2;
  static constexpr uint32_t none = UINT32_MAX, probes = 4, exponents = 256;
  uint32_t keys[slots], counts[slots];
  uint32_t best[SourceSample::slots];  // count, and where it is
  uint32_t sizes[exponents];
  uint32_t sources_of_heavy_hitters, not_zero, best_window;

  __device__ __forceinline__ void clear() {
    for (uint32_t i = threadIdx.x; i < slots; i += sample_threads) {
      keys[i] = none;
      counts[i] = 0;
    }
    for (uint32_t i = threadIdx.x; i < SourceSample::slots; i += sample_threads) best[i] = 0;
    if (threadIdx.x < exponents) sizes[threadIdx.x] = 0;
    if (threadIdx.x == 0) sources_of_heavy_hitters = not_zero = best_window = 0;
  }

  __device__ __forceinline__ void add_size(float number) {
    // A few will do, as most have to wait for each other there.
    if (threadIdx.x % 4 == 0 && number != 0) {
      uint32_t exponent = __float_as_uint(number) >> 23 & 0xFF;
      atomicAdd(sizes + exponent, 1);
      atomicAdd(&not_zero, 1);
    }
  }

  __device__ __forceinline__ void add_target(uint32_t target) {
    uint32_t slot = target * 0x9E3779B1u >> (32 - sample_log + 1);
    for (uint32_t p = 0; p < probes; ++p, slot = (slot + 1) % slots) {
      uint32_t there = atomicCAS(keys + slot, none, target);
      if (there != none && there != target) continue;
      atomicAdd(counts + slot, 1);
      break;
    }
  }

  // Behind a barrier; another one has to follow.
  __device__ __forceinline__ void choose_heavy_hitters(SourceSample* sample) {
    for (uint32_t i = threadIdx.x; i < slots; i += sample_threads)
      if (counts[i] >= min_heavy_hitter_count)
        atomicMax(best + SourceSample::slot_of(keys[i]), counts[i] << sample_log | i);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < SourceSample::slots; i += sample_threads) {
      sample->heavy_hitters[i] = best[i] ? keys[best[i] & (sample_size - 1)] : SourceSample::none;
      if (best[i]) atomicAdd(&sources_of_heavy_hitters, best[i] >> sample_log);
    }
  }

  // The window has eight neighbouring exponents, so far from both ends that the powers of two that
  // go with them are normal.
  __device__ __forceinline__ void choose_window() {
    const uint32_t e = threadIdx.x;
    if (e > 40 && e < 250) {
      uint32_t inside = 0;
      for (uint32_t d = 0; d < 8; ++d) inside += sizes[e - d];
      atomicMax(&best_window, inside << 8 | e);
    }
  }
};

// One block takes a sample, in a kernel that may be started early.
template <class T, uint32_t sample_log>
__device__ void take_sample_of(const TileSource& source, SourceSample* sample) {
  using Table = SampleTable<sample_log>;
  constexpr uint32_t sample_size = Table::sample_size, none = Table::none;
  constexpr uint32_t samples_of_thread = sample_size / sample_threads;
  __shared__ Table table;
  table.clear();
  wait_for_earlier_work();
  // The first of each of as many stretches, and its neighbour.
  const uint64_t stretch = source.n / sample_size;
  uint32_t targets[samples_of_thread];
  bool in_order[samples_of_thread], same[samples_of_thread];
  T numbers[samples_of_thread];
#pragma unroll
  for (uint32_t k = 0; k < samples_of_thread; ++k) {
    uint64_t i = (k * sample_threads + threadIdx.x) * stretch;
    uint64_t wide = 0, next = 0;
    if (source.wide_targets) {
      wide = static_cast<const uint64_t*>(source.targets)[i];
      next = static_cast<const uint64_t*>(source.targets)[i + 1];
    } else {
      wide = static_cast<const uint32_t*>(source.targets)[i];
      next = static_cast<const uint32_t*>(source.targets)[i + 1];
    }
    targets[k] = wide < source.limit ? static_cast<uint32_t>(wide) : none;
    in_order[k] = wide <= next;
    same[k] = wide == next;
    numbers[k] = 0;
    if constexpr (std::is_same_v<T, float>) numbers[k] = number_at<T>(source, i);
  }
  uint32_t ascending = 0, in_runs = 0;
#pragma unroll
  for (uint32_t k = 0; k < samples_of_thread; ++k) {
    ascending += static_cast<uint32_t>(__syncthreads_count(in_order[k]));
    in_runs += static_cast<uint32_t>(__syncthreads_count(same[k]));
  }
#pragma unroll
  for (uint32_t k = 0; k < samples_of_thread; ++k) {
    if constexpr (std::is_same_v<T, float>) table.add_size(numbers[k]);
    if (targets[k] != none) table.add_target(targets[k]);
  }
  __syncthreads();
  table.choose_heavy_hitters(sample);
  if constexpr (std::is_same_v<T, float>) table.choose_window();
  __syncthreads();
  if (threadIdx.x != 0) return;
  sample->has_heavy_hitters = table.sources_of_heavy_hitters >= sample_size / heavy_hitter_share;
  sample->ascending = ascending >= sample_size - sample_size / 16;
  sample->runs = in_runs >= sample_size / runs_share;
  // Numbers of exponent e are below 2^(e - 126).
  const uint32_t window = table.best_window, not_zero = table.not_zero;
  const bool most = window >> 8 > 0 && window >> 8 >= not_zero - not_zero / 8;
  sample->window = most ? __uint_as_float(((window & 0xFF) + 1) << 23) : 0;
}

template <class T, uint32_t sample_log>
__global__ __launch_bounds__(sample_threads) void sample_sources(TileSource source,
                                                                 SourceSample* sample) {
  let_later_work_begin();
  take_sample_of<T, sample_log>(source, sample);
}

// The largest finite |S|, and the last of all last bits. sample: null, or one more block takes it.
template <class T, uint32_t sample_log>
__global__ __launch_bounds__(sample_threads, 2) void summarize_sources(TileSource source,
                                                                       SourceSummary* summary,
                                                                       SourceSample* sample) {
  const uint32_t blocks = sample ? gridDim.x - 1 : gridDim.x;
  if (blockIdx.x == blocks) return take_sample_of<T, sample_log>(source, sample);
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int digits = std::numeric_limits<T>::digits;  // of a mantissa
  constexpr Bits infinity = Bits{(1 << (sizeof(T) * 8 - digits)) - 1} << (digits - 1);
  constexpr Bits implicit = Bits{1} << (digits - 1);
  constexpr int bits_exponent = digits + 1 - std::numeric_limits<T>::min_exponent;
  Bits largest = 0;
  int last_bit = SourceSummary::deepest_zero;
  bool not_finite = false;
  wait_for_earlier_work();
  const uint64_t step = uint64_t{blocks} * blockDim.x * 4;
  for (uint64_t i = (blockIdx.x * uint64_t{blockDim.x} + threadIdx.x) * 4; i < source.n;
       i += 2 * step) {
    T numbers[2][4] = {};
#pragma unroll
    for (uint32_t k = 0; k < 2; ++k) {
      const uint64_t at = i + k * step;
      if (at < source.n)
        load_numbers(source, at, source.n - at < 4 ? static_cast<uint32_t>(source.n - at) : 4,
                     numbers[k]);
    }
#pragma unroll
    for (const auto& four : numbers)
#pragma unroll
      for (T x : four) {
        Bits bits;
        memcpy(&bits, &x, sizeof bits);
        // Numbers without their signs compare as their bits do.
        bits &= ~Bits{0} >> 1;
        if (bits - 1 < infinity - 1) {
          largest = max(largest, bits);
          // Subnormal numbers get one less than their last bit.
          const Bits mantissa = (bits & (implicit - 1)) | implicit;
          const int last = (sizeof(T) == 4 ? __ffs(static_cast<int>(mantissa))
                                           : __ffsll(static_cast<long long>(mantissa))) -
                           1;
          last_bit = min(last_bit, static_cast<int>(bits >> (digits - 1)) - bits_exponent + last);
        } else {
          not_finite |= bits != 0;
        }
      }
  }
  let_later_work_begin();
  for (uint32_t lanes = 16; lanes > 0; lanes /= 2) {
    largest = max(largest, __shfl_xor_sync(whole_warp, largest, lanes));
    last_bit = min(last_bit, __shfl_xor_sync(whole_warp, last_bit, lanes));
  }
  if (threadIdx.x % 32 == 0 && largest > 0) {
    T size;
    memcpy(&size, &largest, sizeof size);
    atomicMax(&summary->largest,
              static_cast<unsigned long long>(bits_of_double(static_cast<double>(size))));
    atomicMax(&summary->deepest, static_cast<uint32_t>(SourceSummary::deepest_zero - last_bit));
  }
  if (not_finite) summary->not_finite = 1;
}

// Where there are low parts.
template <class T>
__global__ void clear_low(QuantizedOperation<T> op, uint64_t limit) {
  wait_for_earlier_work();
  if (!op.summary->has_low(op.summary->scale(op.sources))) return;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t t = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; t < limit; t += step)
    op.low[t] = 0;
}

// T and the sums of cut numbers become T.
template <class T>
__global__ void fold_sums(QuantizedOperation<T> op, uint64_t limit) {
  wait_for_earlier_work();
  const SumScale scale = op.summary->scale(op.sources);
  const bool not_finite = op.summary->not_finite != 0, has_low = op.summary->has_low(scale);
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  constexpr uint32_t at_once = 4;  // reads that wait together
  for (uint64_t first = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; first < limit;
       first += at_once * step) {
    QuantizedNumber sums[at_once] = {};
    T there[at_once];
#pragma unroll
    for (uint32_t k = 0; k < at_once; ++k)
      if (const uint64_t t = first + k * step; t < limit) {
        sums[k] = {op.high[t], has_low ? op.low[t] : 0};
        there[k] = op.into[t];
      }
#pragma unroll
    for (uint32_t k = 0; k < at_once; ++k)
      if (const uint64_t t = first + k * step;
          t < limit && (not_finite || !QuantizedOperation<T>::is_none(sums[k])))
        op.into[t] = folded(scale, there[k], sums[k]);
  }
}

__global__ void count_left_out(TileSource source, ScatterCounters* counters) {
  LeftOut left_out;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x * 4;
  for (uint64_t i = (blockIdx.x * uint64_t{blockDim.x} + threadIdx.x) * 4; i < source.n;
       i += step) {
    uint32_t count = source.n - i < 4 ? static_cast<uint32_t>(source.n - i) : 4;
    uint64_t targets[4];
    load_targets(source, i, count, targets);
    left_out.look(targets, i, count);
  }
  left_out.report(source, counters);
}

}  // namespace

}  // namespace stride

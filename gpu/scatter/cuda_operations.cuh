// What a kernel of a scatter keeps of a source, and how that gets into memory.
#pragma once

#include "gpu/scatter/cuda_source.cuh"
#include "gpu/scatter/scatter_arith.h"

namespace stride {

// The members of an operation: `cell_words` counts the words of a block's copy of a sum, which lie
// `slots` words apart. `max_copies_log` limits the copies of one sum in a block, where additions in
// shared memory wait for each other. `joined` is std::true_type where a value may be of several
// sources.

__device__ __forceinline__ void add_to(int32_t* to, int32_t x) { atomicAdd(to, x); }
__device__ __forceinline__ void add_to(float* to, float x) { atomicAdd(to, x); }
__device__ __forceinline__ void add_to(double* to, double x) { atomicAdd(to, x); }
__device__ __forceinline__ void add_to(int64_t* to, int64_t x) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(x));
}

// A sum of 64 bits in two words: additions of 32 bits are what shared memory does itself.
__device__ __forceinline__ void add_to_words(uint32_t* low, uint32_t* high, int64_t x) {
  auto bits = static_cast<uint64_t>(x);
  auto part = static_cast<uint32_t>(bits), rest = static_cast<uint32_t>(bits >> 32);
  if (part != 0 && atomicAdd(low, part) > ~part) ++rest;
  if (rest != 0) atomicAdd(high, rest);
}
__device__ __forceinline__ int64_t of_words(uint32_t low, uint32_t high) {
  return static_cast<int64_t>(uint64_t{high} << 32 | low);
}

template <class T>
struct AddOp {
  using Number = T;
  using Value = T;
  static constexpr bool is_float = std::is_same_v<T, float>;
  static constexpr uint32_t cell_words = is_float ? 2 : sizeof(T) / 4;
  static constexpr uint32_t max_copies_log = std::is_same_v<T, double> ? 3 : 0;
  static constexpr uint32_t memory_bytes = sizeof(T);  // of a target
  T* into;
  // Additions of floats in shared memory are loops that wait for each other where targets meet. So
  // floats of sizes in [window / 256, window), which are multiples of window / 2^31, are added to
  // cells as such, exactly; others go to memory. 0: all are added as floats.
  float window = 0, up = 0, down = 0;

  __device__ void begin(const SourceSample* sample) {
    window = is_float && sample ? sample->window : 0;
    if (window == 0) return;
    up = static_cast<float>(0x1p31 / window);
    down = static_cast<float>(window / 0x1p31);
  }
  __device__ Value value(T x, uint64_t) const { return x; }
  __device__ static Value none() { return 0; }
  __device__ static bool is_none(Value v) { return v == 0; }
  __device__ static Value join(Value a, Value b) { return wrapping_sum(a, b); }
  __device__ static Value from_lane(Value v, uint32_t lane) {
    return __shfl_sync(whole_warp, v, lane);
  }
  __device__ static Value from_lane_below(Value v, uint32_t lanes) {
    return __shfl_up_sync(whole_warp, v, lanes);
  }
  __device__ void to_memory(uint64_t t, Value v) const { add_to(into + t, v); }
  template <class Joined>
  __device__ void to_cell(uint32_t* cells, uint32_t slots, uint32_t slot, uint64_t t, Value v,
                          Joined) const {
    if constexpr (is_float) {
      if (window != 0) {
        const float size = fabsf(v);
        // Sums of neighbours may be larger.
        if (size >= window / 256 && size < (Joined::value ? window * 0x1p16f : window))
          add_to_words(cells + slot, cells + slots + slot,
                       Joined::value ? __float2ll_rn(v * up) : __float2int_rn(v * up));
        else if (v != 0)
          to_memory(t, v);
        return;
      }
    }
    if constexpr (std::is_same_v<T, int64_t>)
      add_to_words(cells + slot, cells + slots + slot, v);
    else
      add_to(reinterpret_cast<T*>(cells) + slot, v);
  }
  __device__ Value of_cell(const uint32_t* cells, uint32_t slots, uint32_t slot) const {
    if constexpr (is_float) {
      if (window != 0)
        return static_cast<float>(static_cast<double>(of_words(cells[slot], cells[slots + slot])) *
                                  down);
    }
    if constexpr (std::is_same_v<T, int64_t>)
      return of_words(cells[slot], cells[slots + slot]);
    else
      return reinterpret_cast<const T*>(cells)[slot];
  }
};

// These make reproducible sums where there are no low parts.
struct HighPart {
  int64_t high;
  __device__ operator QuantizedNumber() const { return {high, 0}; }
};
struct HighOp {
  using Value = HighPart;
  __device__ static Value none() { return {}; }
  __device__ static Value join(Value a, Value b) { return {a.high + b.high}; }
  __device__ static Value from_lane(Value v, uint32_t lane) {
    return {__shfl_sync(whole_warp, v.high, lane)};
  }
  __device__ static Value from_lane_below(Value v, uint32_t lanes) {
    return {__shfl_up_sync(whole_warp, v.high, lanes)};
  }
};

// Makes reproducible sums of high and low parts, apart.
template <class T>
struct QuantizedOperation {
  using Number = T;
  using Value = QuantizedNumber;
  using Short = HighOp;  // for tiles without low parts
  // The low parts of floats are seldom there, and go to memory at once.
  static constexpr bool low_cells = std::is_same_v<T, double>;
  static constexpr uint32_t cell_words = low_cells ? 4 : 2;
  static constexpr uint32_t max_copies_log = 0;
  static constexpr uint32_t memory_bytes = 8;
  T* into;
  int64_t *high, *low;
  const SourceSummary* summary;
  uint64_t sources;
  SumScale scale;

  __device__ void begin(const SourceSample*) { scale = summary->scale(sources); }
  // What is not finite goes to T itself, in whatever order.
  __device__ Value value(T x, uint64_t t) const {
    if (is_finite(x)) return cut_number(scale, x);
    if (t != UINT64_MAX) atomicAdd(into + t, x);
    return {};
  }
  __device__ static Value none() { return {}; }
  __device__ static bool is_none(Value v) { return v.high == 0 && v.low == 0; }
  __device__ static Value join(Value a, Value b) { return {a.high + b.high, a.low + b.low}; }
  __device__ static Value from_lane(Value v, uint32_t lane) {
    return {__shfl_sync(whole_warp, v.high, lane), __shfl_sync(whole_warp, v.low, lane)};
  }
  __device__ static Value from_lane_below(Value v, uint32_t lanes) {
    return {__shfl_up_sync(whole_warp, v.high, lanes), __shfl_up_sync(whole_warp, v.low, lanes)};
  }
  __device__ void to_memory(uint64_t t, Value v) const {
    if (v.high != 0) add_to(high + t, v.high);
    if (v.low != 0) add_to(low + t, v.low);
  }
  template <class Joined>
  __device__ void to_cell(uint32_t* cells, uint32_t slots, uint32_t slot, uint64_t t, Value v,
                          Joined) const {
    add_to_words(cells + slot, cells + slots + slot, v.high);
    if (v.low == 0) return;
    if constexpr (low_cells)
      add_to_words(cells + 2 * slots + slot, cells + 3 * slots + slot, v.low);
    else
      add_to(low + t, v.low);
  }
  __device__ static Value of_cell(const uint32_t* cells, uint32_t slots, uint32_t slot) {
    Value v{of_words(cells[slot], cells[slots + slot]), 0};
    if constexpr (low_cells) v.low = of_words(cells[2 * slots + slot], cells[3 * slots + slot]);
    return v;
  }
};

}  // namespace stride

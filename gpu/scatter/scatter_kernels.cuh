// The kernels of scatter_add: what is done with a source on its way into T.
//
// A warp takes tiles of 128 sources, four neighbours a thread. Neighbours of one target are added
// up in registers, in a thread and then across the warp, so that sorted targets cost one addition a
// run; what remains goes to a *sink*: T in memory, or copies of T, of all of it or of its hot
// targets, in the shared memory of a block.
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
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void let_later_work_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
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
  uint32_t hot_in_use;  // 0: none is
  uint32_t hot_targets[slots];
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

// --- Operations: what is kept of a source, and how it gets into memory. `cell_words`: words of a
// --- block's copy of a sum, which lie `slots` words apart. `most_copies_log`: of copies of one sum
// --- in a block, where additions in shared memory wait for each other. `joined`: std::true_type
// --- where a value may be of several sources.

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
  static constexpr uint32_t most_copies_log = std::is_same_v<T, double> ? 3 : 0;
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
  __device__ operator CutNumber() const { return {high, 0}; }
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
struct CutOp {
  using Number = T;
  using Value = CutNumber;
  using Short = HighOp;  // for tiles without low parts
  // The low parts of floats are seldom there, and go to memory at once.
  static constexpr bool low_cells = std::is_same_v<T, double>;
  static constexpr uint32_t cell_words = low_cells ? 4 : 2;
  static constexpr uint32_t most_copies_log = 0;
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

// --- Sinks. One that is not wanted does nothing: another one is.

template <class Op>
struct DirectSink {
  static constexpr uint32_t block_threads = 512;
  static constexpr bool to_memory = true;
  Op op;
  const SourceSample* sample;  // null: none was taken

  __device__ bool is_wanted() const { return !sample || sample->hot_in_use == 0; }
  __device__ bool has_runs() const { return !sample || sample->runs != 0; }
  __device__ void begin(uint32_t*) { op.begin(nullptr); }
  template <class Target, class Joined>
  __device__ void put(Target t, typename Op::Value v, Joined) const {
    if (t != no_target<Target>) op.to_memory(t, v);
  }
  __device__ void end() const {}
};

// Keeps copies of all of T. Threads of a warp share out 2^copies_log of them, so that those of one
// target seldom meet.
template <class Op>
struct CopiesSink {
  static constexpr uint32_t block_threads = 1024;
  static constexpr bool to_memory = false;
  Op op;
  const SourceSample* sample;  // null: none was taken
  uint32_t targets, copies_log;
  uint32_t* cells;

  __device__ uint32_t log() const { return Op::most_copies_log > 0 ? copies_log : 0; }
  __device__ uint32_t slots() const { return targets << log(); }
  __device__ bool is_wanted() const { return true; }
  __device__ bool has_runs() const { return !sample || sample->runs != 0; }
  __device__ void begin(uint32_t* shared) {
    op.begin(sample);
    cells = shared;
    for (uint32_t i = threadIdx.x; i < slots() * Op::cell_words; i += blockDim.x) cells[i] = 0;
    __syncthreads();
  }
  template <class Target, class Joined>
  __device__ void put(Target t, typename Op::Value v, Joined joined) const {
    if (t == no_target<Target>) return;
    const uint32_t copy = threadIdx.x & ((1u << log()) - 1);
    op.to_cell(cells, slots(), static_cast<uint32_t>(t) << log() | copy, t, v, joined);
  }
  __device__ void end() const {
    __syncthreads();
    for (uint32_t t = threadIdx.x; t < targets; t += blockDim.x) {
      typename Op::Value sum = Op::none();
      for (uint32_t copy = 0; copy < 1u << log(); ++copy)
        sum = Op::join(sum, op.of_cell(cells, slots(), t << log() | copy));
      if (!Op::is_none(sum)) op.to_memory(t, sum);
    }
  }
};

template <class Op>
struct HotSink {
  static constexpr uint32_t block_threads = 512;
  static constexpr bool to_memory = true;
  Op op;
  const SourceSample* sample;
  uint32_t *tags, *cells;

  static constexpr uint32_t shared_words = SourceSample::slots * (1 + Op::cell_words);

  __device__ bool is_wanted() const { return sample->hot_in_use != 0; }
  __device__ bool has_runs() const { return sample->runs != 0; }
  __device__ void begin(uint32_t* shared) {
    op.begin(sample);
    cells = shared;
    tags = shared + SourceSample::slots * Op::cell_words;
    for (uint32_t i = threadIdx.x; i < SourceSample::slots; i += blockDim.x) {
      tags[i] = sample->hot_targets[i];
      for (uint32_t w = 0; w < Op::cell_words; ++w) cells[w * SourceSample::slots + i] = 0;
    }
    __syncthreads();
  }
  template <class Target, class Joined>
  __device__ void put(Target t, typename Op::Value v, Joined joined) const {
    if (t == no_target<Target>) return;
    const uint32_t slot = SourceSample::slot_of(static_cast<uint32_t>(t));
    if (tags[slot] == t)
      op.to_cell(cells, SourceSample::slots, slot, t, v, joined);
    else
      op.to_memory(t, v);
  }
  __device__ void end() const {
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < SourceSample::slots; i += blockDim.x) {
      typename Op::Value sum = op.of_cell(cells, SourceSample::slots, i);
      if (tags[i] != SourceSample::none && !Op::is_none(sum)) op.to_memory(tags[i], sum);
    }
  }
};

// --- Tiles.

// Puts a tile's sources in their order, 32 neighbours at a time.
template <class Op, class Target, class Sink>
__device__ __forceinline__ void put_in_order(const Sink& sink, const Target (&targets)[4],
                                             const typename Op::Value (&values)[4]) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (uint32_t turn = 0; turn < 4; ++turn) {
    const uint32_t from = turn * 8 + lane / 4;
    Target target = no_target<Target>;
    typename Op::Value value = Op::none();
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      Target t = __shfl_sync(whole_warp, targets[k], from);
      typename Op::Value v = Op::from_lane(values[k], from);
      if (lane % 4 == k) {
        target = t;
        value = v;
      }
    }
    sink.put(target, value, std::false_type());
  }
}

// Adds up neighbours of one target, and puts what remains.
template <class Op, class Target, class Sink>
__device__ __forceinline__ void put_runs(const Sink& sink, const Target (&targets)[4],
                                         const typename Op::Value (&values)[4]) {
  const uint32_t lane = threadIdx.x % 32;
  if constexpr (Sink::to_memory) {
    // Sorted targets that are all different: neighbours in memory go there together.
    bool sparse = targets[0] < targets[1] && targets[1] < targets[2] && targets[2] < targets[3] &&
                  targets[3] - targets[0] < 64;
    if (__popc(__ballot_sync(whole_warp, sparse)) >= 24)
      return put_in_order<Op>(sink, targets, values);
  }
  Target run = targets[0];
  typename Op::Value sum = values[0];
  bool whole = true;  // the thread's sources are one run
#pragma unroll
  for (uint32_t k = 1; k < 4; ++k) {
    if (targets[k] == run) {
      sum = Op::join(sum, values[k]);
    } else {
      sink.put(run, sum, std::true_type());
      run = targets[k];
      sum = values[k];
      whole = false;
    }
  }
  Target below = __shfl_up_sync(whole_warp, run, 1);
  uint32_t goes_on = __ballot_sync(whole_warp, lane > 0 && whole && below == run);
  if (goes_on == 0) return sink.put(run, sum, std::true_type());
  // The lane where this one's run begins.
  uint32_t begin =
      31 - static_cast<uint32_t>(__clz(static_cast<int>(~goes_on & (whole_warp >> (31 - lane)))));
#pragma unroll
  for (uint32_t lanes = 1; lanes < 32; lanes *= 2) {
    typename Op::Value other = Op::from_lane_below(sum, lanes);
    if (lane >= begin + lanes) sum = Op::join(sum, other);
  }
  bool is_last = lane == 31 || (goes_on >> (lane + 1) & 1) == 0;
  if (is_last) sink.put(run, sum, std::true_type());
}

// A tile's sources, where neighbours of one target are common or not.
template <class Op, class Target, class Sink>
__device__ __forceinline__ void put_tile(const Sink& sink, bool has_runs,
                                         const Target (&targets)[4],
                                         const typename Op::Value (&values)[4]) {
  if (has_runs) return put_runs<Op>(sink, targets, values);
#pragma unroll
  for (uint32_t k = 0; k < 4; ++k) sink.put(targets[k], values[k], std::false_type());
}

// Counts what has no target.
struct LeftOut {
  uint32_t count = 0;
  uint64_t first = UINT64_MAX;

  template <class Target>
  __device__ __forceinline__ void look(const Target (&targets)[4], uint64_t i,
                                       uint32_t count_here) {
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k)
      if (targets[k] == no_target<Target> && k < count_here) {
        ++count;
        if (i + k < first) first = i + k;
      }
  }
  // counters: null where nobody asks.
  __device__ void report(const TileSource& source, ScatterCounters* counters) const {
    if (count == 0 || !counters) return;
    atomicAdd(&counters->out_of_range, static_cast<unsigned long long>(count));
    atomicMax(&counters->least,
              static_cast<unsigned long long>(UINT64_MAX - (source.first + first)));
  }
};

template <class Op, class Target, class Sink>
inline constexpr uint32_t blocks_of_processor = Sink::block_threads == 512 &&
                                                        sizeof(typename Op::Value) == 4 &&
                                                        sizeof(Target) == 4
                                                    ? 4
                                                : Sink::block_threads == 512 ? 2
                                                                             : 1;

template <class Op, class Target, class Sink, uint32_t unroll>
__global__ __launch_bounds__(
    Sink::block_threads,
    (blocks_of_processor<Op, Target, Sink>)) void scatter_tiles(TileSource source, Sink sink,
                                                                ScatterCounters* counters) {
  extern __shared__ uint32_t shared[];
  wait_for_earlier_work();
  if (!sink.is_wanted()) return;
  sink.begin(shared);
  const bool has_runs = sink.has_runs();
  LeftOut left_out;
  const uint64_t warps = uint64_t{gridDim.x} * (blockDim.x / 32);
  const uint64_t warp = (blockIdx.x * uint64_t{blockDim.x} + threadIdx.x) / 32;
  const uint32_t lane = threadIdx.x % 32;
  for (uint64_t tile = warp * unroll; tile * tile_sources < source.n; tile += warps * unroll) {
    Target targets[unroll][4];
    typename Op::Number numbers[unroll][4];
#pragma unroll
    for (uint32_t u = 0; u < unroll; ++u) {
      uint64_t i = (tile + u) * tile_sources + lane * thread_sources;
      uint32_t count = i >= source.n      ? 0
                       : source.n - i < 4 ? static_cast<uint32_t>(source.n - i)
                                          : 4;
#pragma unroll
      for (auto& x : numbers[u]) x = 0;
      bool any_left_out = load_targets(source, i, count, targets[u]);
      load_numbers(source, i, count, numbers[u]);
      if (any_left_out) left_out.look(targets[u], i, count);
    }
#pragma unroll
    for (uint32_t u = 0; u < unroll; ++u) {
      typename Op::Value values[4];
#pragma unroll
      for (uint32_t k = 0; k < 4; ++k) {
        Target t = targets[u][k];
        values[k] = sink.op.value(numbers[u][k], t == no_target<Target> ? UINT64_MAX : t);
      }
      if constexpr (requires { typename Op::Short; }) {
        bool has_low = false;
#pragma unroll
        for (uint32_t k = 0; k < 4; ++k) has_low |= values[k].low != 0;
        if (!__any_sync(whole_warp, has_low)) {
          HighPart high[4];
#pragma unroll
          for (uint32_t k = 0; k < 4; ++k) high[k] = {values[k].high};
          put_tile<typename Op::Short>(sink, has_runs, targets[u], high);
          continue;
        }
      }
      put_tile<Op>(sink, has_runs, targets[u], values);
    }
  }
  let_later_work_begin();
  sink.end();
  left_out.report(source, counters);
}

// --- Min and max. Most sources change nothing, and are seen to by a read of T: what was read may
// be
// --- old, but T only ever comes closer.

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

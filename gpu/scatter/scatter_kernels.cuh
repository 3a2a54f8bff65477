// The kernels of scatter_add: what is done with a source on its way into T.
//
// A warp takes tiles of 128 sources, four neighbours a thread. Neighbours of one target are added
// up in registers, in a thread and then across the warp, so that sorted targets cost one addition a
// run; what remains goes to a *sink*: T in memory, or copies of T, of all of it or of its heavy
// targets, in the shared memory of a block.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/scatter/cuda_operations.cuh"
#include "gpu/scatter/cuda_source.cuh"

namespace stride {

// Sinks. One that the launch did not ask for does nothing.

template <class Op>
struct DirectSink {
  static constexpr uint32_t block_threads = 512;
  static constexpr bool to_memory = true;
  Op op;
  const SourceSample* sample;  // null: none was taken

  __device__ bool is_wanted() const { return !sample || sample->has_heavy_hitters == 0; }
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
struct PrivatizedSink {
  static constexpr uint32_t block_threads = 1024;
  static constexpr bool to_memory = false;
  Op op;
  const SourceSample* sample;  // null: none was taken
  uint32_t targets, copies_log;
  uint32_t* cells;

  __device__ uint32_t log() const { return Op::max_copies_log > 0 ? copies_log : 0; }
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
struct HeavyHitterSink {
  static constexpr uint32_t block_threads = 512;
  static constexpr bool to_memory = true;
  Op op;
  const SourceSample* sample;
  uint32_t *tags, *cells;

  static constexpr uint32_t shared_words = SourceSample::slots * (1 + Op::cell_words);

  __device__ bool is_wanted() const { return sample->has_heavy_hitters != 0; }
  __device__ bool has_runs() const { return sample->runs != 0; }
  __device__ void begin(uint32_t* shared) {
    op.begin(sample);
    cells = shared;
    tags = shared + SourceSample::slots * Op::cell_words;
    for (uint32_t i = threadIdx.x; i < SourceSample::slots; i += blockDim.x) {
      tags[i] = sample->heavy_hitters[i];
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

}  // namespace stride

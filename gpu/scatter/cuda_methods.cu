#include <algorithm>
#include <bit>
#include <cstring>
#include <cub/device/device_radix_sort.cuh>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "gpu/device/cuda_transfer.h"
#include "gpu/scatter/cuda_methods.h"
#include "gpu/scatter/host_methods.h"
#include "gpu/scatter/scatter_kernels.cuh"
#include "storage/status.h"

namespace stride {

namespace {

// How much is worth a look at what the sources are like: it takes some microseconds.
constexpr uint64_t fewest_sampled = 1 << 21;
constexpr uint32_t sample_threads = 1024;
// One processor brings one source after the other, so that there are few where all is done soon.
constexpr uint64_t many_to_sample = 1 << 26;
constexpr uint32_t few_samples_log = 11, many_samples_log = 13;
constexpr uint64_t fewest_to_sample = 1 << (many_samples_log + 1);
// A hot target comes at least so often in a sample, and one in hot_share of the sample's sources
// must have such a target.
constexpr uint32_t hot_count = 3;
constexpr uint32_t hot_share = 32;
// Where fewer neighbours have the same target, adding them up first takes longer than it saves.
constexpr uint32_t runs_share = 16;

// One block takes a sample, in a kernel that may be started early. Targets are counted in a small
// hash table, which may miss some.
template <class T, uint32_t sample_log>
__device__ void take_sample_of(const TileSource& source, SourceSample* sample) {
  constexpr uint32_t sample_size = 1 << sample_log, slots = sample_size / 2;
  constexpr uint32_t samples_of_thread = sample_size / sample_threads;
  constexpr uint32_t none = UINT32_MAX, probes = 4, exponents = 256;
  __shared__ uint32_t keys[slots], counts[slots];
  __shared__ uint32_t best[SourceSample::slots];  // count, and where it is
  __shared__ uint32_t sizes[exponents];
  __shared__ uint32_t sources_of_hot, not_zero, best_window;
  for (uint32_t i = threadIdx.x; i < slots; i += sample_threads) {
    keys[i] = none;
    counts[i] = 0;
  }
  for (uint32_t i = threadIdx.x; i < SourceSample::slots; i += sample_threads) best[i] = 0;
  if (threadIdx.x < exponents) sizes[threadIdx.x] = 0;
  if (threadIdx.x == 0) sources_of_hot = not_zero = best_window = 0;
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
    if constexpr (std::is_same_v<T, float>) {
      // A few will do, as most have to wait for each other there.
      if (threadIdx.x % 4 == 0 && numbers[k] != 0) {
        uint32_t exponent = __float_as_uint(numbers[k]) >> 23 & 0xFF;
        atomicAdd(sizes + exponent, 1);
        atomicAdd(&not_zero, 1);
      }
    }
    if (targets[k] == none) continue;
    uint32_t slot = targets[k] * 0x9E3779B1u >> (32 - sample_log + 1);
    for (uint32_t p = 0; p < probes; ++p, slot = (slot + 1) % slots) {
      uint32_t there = atomicCAS(keys + slot, none, targets[k]);
      if (there != none && there != targets[k]) continue;
      atomicAdd(counts + slot, 1);
      break;
    }
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < slots; i += sample_threads)
    if (counts[i] >= hot_count)
      atomicMax(best + SourceSample::slot_of(keys[i]), counts[i] << sample_log | i);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < SourceSample::slots; i += sample_threads) {
    sample->hot_targets[i] = best[i] ? keys[best[i] & (sample_size - 1)] : SourceSample::none;
    if (best[i]) atomicAdd(&sources_of_hot, best[i] >> sample_log);
  }
  if constexpr (std::is_same_v<T, float>) {
    // Those of eight neighbouring exponents, so far from both ends that the powers of two that go
    // with them are normal.
    const uint32_t e = threadIdx.x;
    if (e > 40 && e < 250) {
      uint32_t inside = 0;
      for (uint32_t d = 0; d < 8; ++d) inside += sizes[e - d];
      atomicMax(&best_window, inside << 8 | e);
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  sample->hot_in_use = sources_of_hot >= sample_size / hot_share;
  sample->ascending = ascending >= sample_size - sample_size / 16;
  sample->runs = in_runs >= sample_size / runs_share;
  // Numbers of exponent e are below 2^(e - 126).
  const bool most = best_window >> 8 > 0 && best_window >> 8 >= not_zero - not_zero / 8;
  sample->window = most ? __uint_as_float(((best_window & 0xFF) + 1) << 23) : 0;
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
__global__ void clear_low(CutOp<T> op, uint64_t limit) {
  wait_for_earlier_work();
  if (!op.summary->has_low(op.summary->scale(op.sources))) return;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t t = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; t < limit; t += step)
    op.low[t] = 0;
}

// T and the sums of cut numbers become T.
template <class T>
__global__ void fold_sums(CutOp<T> op, uint64_t limit) {
  wait_for_earlier_work();
  const SumScale scale = op.summary->scale(op.sources);
  const bool not_finite = op.summary->not_finite != 0, has_low = op.summary->has_low(scale);
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  constexpr uint32_t at_once = 4;  // reads that wait together
  for (uint64_t first = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; first < limit;
       first += at_once * step) {
    CutNumber sums[at_once] = {};
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
          t < limit && (not_finite || !CutOp<T>::is_none(sums[k])))
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

template <class Kernel>
void allow_shared(Kernel* kernel, uint64_t bytes) {
  if (bytes <= 48 << 10) return;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "ask for shared memory");
}

// One scatter into T, which lies in device memory.
class Job {
 public:
  virtual ~Job() = default;
  // Prepares reproducible sums, before the first part. `all`: all sources, if they are in device
  // memory.
  virtual void begin(const TileSource* all, const NumbersSummary* known, cudaStream_t stream) = 0;
  // Starts the work on some of the sources.
  virtual void add(const TileSource& part, cudaStream_t stream) = 0;
  virtual void finish(cudaStream_t stream) = 0;
};

struct JobContext {
  CudaDevice& device;
  uint64_t sources, limit;
  bool wide_targets;  // 64 bits
  ScatterOptions options;
  ScatterCounters* counters;
  uint32_t processors, most_shared;

  uint32_t grid(uint64_t n, uint32_t threads, uint32_t per_processor) const {
    uint64_t needed = (n + threads * thread_sources - 1) / (threads * thread_sources);
    return static_cast<uint32_t>(std::min<uint64_t>(needed, uint64_t{processors} * per_processor));
  }
};

const std::byte* at(const void* column, uint64_t bytes) {
  return column ? static_cast<const std::byte*>(column) + bytes : nullptr;
}

// Above this all targets of 32 bits are told apart from no_target.
bool fits_narrow(uint64_t limit) { return limit < UINT32_MAX; }

[[noreturn]] void refuse(const char* method) {
  throw CudaFailure(Status::invalid(std::string("ScatterMethod::") + method)
                        .with_remedy("use another method, or ScatterMethod::automatic"));
}

// Calls kernel(std::integral_constant<uint32_t, SAMPLE_LOG>) for so many sources.
template <class Kernel>
void with_sample_log(uint64_t n, const Kernel& kernel) {
  if (n >= many_to_sample)
    kernel(std::integral_constant<uint32_t, many_samples_log>());
  else
    kernel(std::integral_constant<uint32_t, few_samples_log>());
}

template <class Op>
class Adder {
 public:
  // Throws CudaFailure (invalid_argument) where the method cannot do it.
  explicit Adder(const JobContext& context) : context_(context) { check_method(); }

  // sample: of the part, where one has been taken.
  void run(const Op& op, const TileSource& part, cudaStream_t stream,
           CudaArray<SourceSample> sample = {}) {
    auto sampled = [&]() -> const SourceSample* {
      if (!sample.data()) sample = take_sample(part, stream);
      return sample.data();
    };
    switch (choose(part, sampled, stream)) {
      case ScatterMethod::copies:
        return with_copies(op, part, part.n >= fewest_sampled ? sampled() : nullptr, stream);
      case ScatterMethod::hot:
        return with_hot(op, part, sampled(), stream);
      case ScatterMethod::partition:
        return partitioned(op, part, stream);
      default:
        return directly(op, part, nullptr, stream);
    }
  }

 private:
  static constexpr uint32_t cell_bytes = Op::cell_words * 4;

  bool has_room_for_copies() const { return context_.limit * cell_bytes <= context_.most_shared; }

  void check_method() const {
    const ScatterMethod asked = context_.options.method;
    if (asked == ScatterMethod::copies && !has_room_for_copies())
      refuse("copies, with a T of more bytes than a block has of shared memory");
    if (asked == ScatterMethod::hot && context_.sources < fewest_to_sample)
      refuse("hot, with fewer sources than a sample needs");
    if (asked != ScatterMethod::hot && asked != ScatterMethod::partition) return;
    if (!fits_narrow(context_.limit)) refuse("hot or partition, with 2^32 - 1 targets or more");
    if (asked == ScatterMethod::partition && context_.wide_targets)
      refuse("partition, with targets of 64 bits");
  }

  template <class Sampled>
  ScatterMethod choose(const TileSource& part, const Sampled& sampled, cudaStream_t stream) const {
    const uint64_t n = part.n;
    const ScatterMethod asked = context_.options.method;
    // The last piece may be a short one, where sources come in pieces.
    if (asked == ScatterMethod::hot && n < fewest_to_sample) return ScatterMethod::direct;
    if (asked != ScatterMethod::automatic) return asked;
    const bool narrow = fits_narrow(context_.limit);
    // Each block brings a copy of T to memory, so it should have several sources for each target.
    if (has_room_for_copies() && n / 4 / context_.limit >= context_.processors)
      return ScatterMethod::copies;
    if (context_.limit * Op::memory_bytes > far_bytes && n >= fewest_partitioned && narrow &&
        !part.wide_targets && !is_ascending(sampled(), stream))
      return ScatterMethod::partition;
    return n >= fewest_sampled && narrow ? ScatterMethod::hot : ScatterMethod::direct;
  }

  template <class Target, class Sink, uint32_t unroll>
  void launch(const TileSource& part, const Sink& sink, uint32_t threads, uint32_t blocks,
              uint64_t shared_bytes, cudaStream_t stream) {
    auto* kernel = scatter_tiles<Op, Target, Sink, unroll>;
    allow_shared(kernel, shared_bytes);
    launch_early(context_.device, kernel, blocks, threads, shared_bytes, stream, part, sink,
                 context_.counters);
  }

  // sample: of the part, which leaves the work to with_hot() where there are hot targets; or null.
  void directly(const Op& op, const TileSource& part, const SourceSample* sample,
                cudaStream_t stream) {
    DirectSink<Op> sink{op, sample};
    constexpr uint32_t threads = DirectSink<Op>::block_threads;
    // Launches extra blocks when there are many sources, so that late ones fill multiprocessors
    // that finish early.
    uint32_t blocks = context_.grid(part.n, threads, part.n >= many_sources ? 16 : 4);
    if (fits_narrow(context_.limit))
      launch<uint32_t, DirectSink<Op>, 1>(part, sink, threads, blocks, 0, stream);
    else
      launch<uint64_t, DirectSink<Op>, 1>(part, sink, threads, blocks, 0, stream);
  }

  // sample: of the part, or null.
  void with_copies(const Op& op, const TileSource& part, const SourceSample* sample,
                   cudaStream_t stream) {
    const uint64_t copy_bytes = context_.limit * cell_bytes;
    uint32_t log = 0;
    if constexpr (Op::most_copies_log > 0)
      while (log < Op::most_copies_log && copy_bytes << (log + 1) <= context_.most_shared) ++log;
    const uint64_t bytes = copy_bytes << log;
    constexpr uint32_t threads = CopiesSink<Op>::block_threads;
    const uint32_t per_processor = bytes * 2 <= context_.most_shared ? 2 : 1;
    uint64_t worth = std::max<uint64_t>(1, part.n / 4 / context_.limit);
    uint32_t blocks = static_cast<uint32_t>(
        std::min<uint64_t>(worth, context_.grid(part.n, threads, per_processor)));
    CopiesSink<Op> sink{op, sample, static_cast<uint32_t>(context_.limit), log, nullptr};
    launch<uint32_t, CopiesSink<Op>, 2>(part, sink, threads, blocks, bytes, stream);
  }

  // Or directly where the sample finds no hot targets, which the device knows first: of the two
  // kernels that are started, one does nothing.
  void with_hot(const Op& op, const TileSource& part, const SourceSample* sample,
                cudaStream_t stream) {
    HotSink<Op> sink{op, sample, nullptr, nullptr};
    constexpr uint32_t threads = HotSink<Op>::block_threads;
    launch<uint32_t, HotSink<Op>, 1>(part, sink, threads, context_.grid(part.n, threads, 4),
                                     HotSink<Op>::shared_words * 4, stream);
    directly(op, part, sample, stream);
  }

  // Sources by the first bits of their targets, so that those which are added at about the same
  // time go to a part of T that the cache holds.
  class Partition {
   public:
    Partition(const JobContext& context, const TileSource& part, cudaStream_t stream)
        : stream_(stream),
          width_(part.numbers ? width_of(part.type) : 0),
          end_(static_cast<int>(std::bit_width(context.limit - 1))),
          targets_(context.device, stream, std::min(part.n, partition_sources)),
          numbers_(context.device, stream, targets_.size() * width_) {
      size_t bytes = 0;
      TileSource most = part;
      most.n = targets_.size();
      sort_as(most, nullptr, &bytes);
      scratch_ = CudaArray<std::byte>(context.device, stream, std::max<size_t>(bytes, 1));
    }

    // Sources [first, ...) of the part, as many as there is room for.
    TileSource bring(const TileSource& part, uint64_t first) {
      TileSource piece = part;
      piece.n = std::min<uint64_t>(targets_.size(), part.n - first);
      piece.targets = static_cast<const uint32_t*>(part.targets) + first;
      piece.numbers = at(part.numbers, first * width_);
      size_t bytes = scratch_.size();
      sort_as(piece, scratch_.data(), &bytes);
      piece.targets = targets_.data();
      if (part.numbers) piece.numbers = numbers_.data();
      piece.targets_aligned = piece.numbers_aligned = true;
      return piece;
    }

   private:
    void sort_as(const TileSource& piece, void* scratch, size_t* bytes) {
      switch (width_) {
        case 0:
          return sort<cub::NullType>(piece, scratch, bytes);
        case 2:
          return sort<uint16_t>(piece, scratch, bytes);
        case 4:
          return sort<uint32_t>(piece, scratch, bytes);
        default:
          return sort<uint64_t>(piece, scratch, bytes);
      }
    }
    template <class E>
    void sort(const TileSource& piece, void* scratch, size_t* bytes) {
      constexpr int bits = 8;  // one pass
      auto* keys = static_cast<const uint32_t*>(piece.targets);
      cudaError_t error;
      if constexpr (std::is_same_v<E, cub::NullType>)
        error = cub::DeviceRadixSort::SortKeys(scratch, *bytes, keys, targets_.data(), piece.n,
                                               std::max(0, end_ - bits), end_, stream_);
      else
        error = cub::DeviceRadixSort::SortPairs(scratch, *bytes, keys, targets_.data(),
                                                static_cast<const E*>(piece.numbers),
                                                reinterpret_cast<E*>(numbers_.data()), piece.n,
                                                std::max(0, end_ - bits), end_, stream_);
      cuda_check(error, "bring sources together");
    }

    cudaStream_t stream_;
    uint32_t width_;
    int end_;
    CudaArray<uint32_t> targets_;
    CudaArray<std::byte> numbers_;
    CudaArray<std::byte> scratch_;
  };

  void partitioned(const Op& op, const TileSource& part, cudaStream_t stream) {
    std::optional<Partition> partition;
    try {
      partition.emplace(context_, part, stream);
    } catch (const CudaFailure& failure) {
      if (failure.status().code() != StatusCode::resource_exhausted ||
          context_.options.method != ScatterMethod::automatic)
        throw;
      return directly(op, part, nullptr, stream);
    }
    if (context_.counters) {  // where they are now
      count_left_out<<<context_.grid(part.n, 512, 4), 512, 0, stream>>>(part, context_.counters);
      cuda_check(cudaGetLastError(), "count sources");
    }
    Adder rest(*this);
    rest.context_.counters = nullptr;
    for (uint64_t first = 0; first < part.n; first += partition_sources) {
      TileSource piece = partition->bring(part, first);
      if (piece.n >= fewest_sampled)
        rest.with_hot(op, piece, take_sample(piece, stream).data(), stream);
      else
        rest.directly(op, piece, nullptr, stream);
    }
  }

  static bool is_ascending(const SourceSample* sample, cudaStream_t stream) {
    uint32_t ascending = 0;
    cuda_check(cudaMemcpyAsync(&ascending, &sample->ascending, 4, cudaMemcpyDeviceToHost, stream),
               "sample sources");
    cuda_check(cudaStreamSynchronize(stream), "sample sources");
    return ascending != 0;
  }

  CudaArray<SourceSample> take_sample(const TileSource& part, cudaStream_t stream) {
    CudaArray<SourceSample> sample(context_.device, stream, 1);
    with_sample_log(part.n, [&](auto log) {
      launch_early(context_.device, sample_sources<typename Op::Number, log()>, 1, sample_threads,
                   0, stream, part, sample.data());
    });
    return sample;
  }

  // T, or the sums that become it, are far larger than the device's cache.
  static constexpr uint64_t far_bytes = 128 << 20;
  static constexpr uint64_t fewest_partitioned = 1 << 22;
  static constexpr uint64_t partition_sources = 1 << 26;
  static constexpr uint64_t many_sources = 1 << 26;

  JobContext context_;
};

template <class T>
class FastJob final : public Job {
 public:
  FastJob(const JobContext& context, void* into) : adder_(context), op_{static_cast<T*>(into)} {}
  void begin(const TileSource*, const NumbersSummary*, cudaStream_t) override {}
  void add(const TileSource& part, cudaStream_t stream) override { adder_.run(op_, part, stream); }
  void finish(cudaStream_t) override {}

 private:
  Adder<AddOp<T>> adder_;
  AddOp<T> op_;
};

template <class T>
class CutJob final : public Job {
 public:
  CutJob(const JobContext& context, void* into, cudaStream_t stream)
      : context_(context),
        adder_(context),
        memory_(context.device, stream, summary_words + 2 * context.limit),
        op_{static_cast<T*>(into),
            memory_.data() + summary_words,
            memory_.data() + summary_words + context.limit,
            summary(),
            context.sources,
            {}} {
    uint64_t words = summary_words + (clears_low() ? 1 : 2) * context.limit;
    cuda_check(cudaMemsetAsync(memory_.data(), 0, words * 8, stream), "clear sums");
  }
  void begin(const TileSource* all, const NumbersSummary* known, cudaStream_t stream) override {
    if (known) {
      SourceSummary given{bits_of_double(known->largest), known->all_finite ? 0u : 1u,
                          SourceSummary::deepest_unknown};
      cuda_check(cudaMemcpyAsync(summary(), &given, sizeof given, cudaMemcpyHostToDevice, stream),
                 "copy to the device");
      cuda_check(cudaStreamSynchronize(stream), "copy to the device");
    } else {
      if (all->targets && all->n >= fewest_sampled)
        sample_ = CudaArray<SourceSample>(context_.device, stream, 1);
      with_sample_log(all->n, [&](auto log) {
        launch_early(context_.device, summarize_sources<T, log()>,
                     context_.grid(all->n, sample_threads, 2) + (sample_.data() ? 1 : 0),
                     sample_threads, 0, stream, *all, summary(), sample_.data());
      });
    }
    if (clears_low())
      launch_early(context_.device, clear_low<T>, context_.grid(context_.limit * 4, 512, 4), 512, 0,
                   stream, op_, context_.limit);
  }
  void add(const TileSource& part, cudaStream_t stream) override {
    // It is of all sources, which then are the only part.
    adder_.run(op_, part, stream, sample_.data() ? std::move(sample_) : CudaArray<SourceSample>());
  }
  void finish(cudaStream_t stream) override {
    launch_early(context_.device, fold_sums<T>, context_.grid(context_.limit * 4, 512, 4), 512, 0,
                 stream, op_, context_.limit);
  }

 private:
  // Whether low parts are cleared only where there are any, by a kernel that finds out. Few are
  // cleared sooner than it is started.
  bool clears_low() const { return context_.limit > 1 << 20; }
  SourceSummary* summary() { return reinterpret_cast<SourceSummary*>(memory_.data()); }

  static constexpr uint64_t summary_words = sizeof(SourceSummary) / 8;
  JobContext context_;
  Adder<CutOp<T>> adder_;
  CudaArray<int64_t> memory_;  // the summary, high parts, low parts
  CudaArray<SourceSample> sample_;
  CutOp<T> op_;
};

template <class T>
class ExtremeJob final : public Job {
 public:
  ExtremeJob(const JobContext& context, void* into)
      : context_(context), into_(static_cast<T*>(into)) {
    const ScatterMethod asked = context.options.method;
    if (asked != ScatterMethod::automatic && asked != ScatterMethod::direct)
      refuse("copies, hot or partition, for min or max on a device");
  }
  void begin(const TileSource*, const NumbersSummary*, cudaStream_t) override {}
  void add(const TileSource& part, cudaStream_t stream) override {
    extreme_tiles<T><<<context_.grid(part.n, 512, 4), 512, 0, stream>>>(
        part, into_, context_.options.operation == ScatterOperation::min, context_.counters);
    cuda_check(cudaGetLastError(), "scatter");
  }
  void finish(cudaStream_t) override {}

 private:
  JobContext context_;
  T* into_;
};

template <class T>
std::unique_ptr<Job> make_job(const JobContext& context, void* into, cudaStream_t stream) {
  if (context.options.operation != ScatterOperation::add)
    return std::make_unique<ExtremeJob<T>>(context, into);
  if constexpr (std::is_floating_point_v<T>) {
    if (context.options.mode == ScatterMode::reproducible)
      return std::make_unique<CutJob<T>>(context, into, stream);
  }
  return std::make_unique<FastJob<T>>(context, into);
}

std::unique_ptr<Job> make_job(const JobContext& context, const MutableNumbers& into,
                              cudaStream_t stream) {
  switch (into.type) {
    case NumberType::i32:
      return make_job<int32_t>(context, into.data, stream);
    case NumberType::i64:
      return make_job<int64_t>(context, into.data, stream);
    case NumberType::f64:
      return make_job<double>(context, into.data, stream);
    default:
      return make_job<float>(context, into.data, stream);
  }
}

bool is_aligned(const void* p, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % std::min<uint64_t>(bytes, 16) == 0;
}

// Sources [first, first + n) of a batch; the pointers are to the first of them.
TileSource tiles(const Numbers& sources, const void* numbers, const Indexes& targets,
                 const void* indexes, uint64_t first, uint64_t n, uint64_t limit) {
  return {.numbers = numbers,
          .targets = indexes,
          .n = n,
          .limit = limit,
          .first = first,
          .type = sources.type,
          .wide_targets = targets.width == 8,
          .numbers_aligned = !numbers || is_aligned(numbers, 4 * width_of(sources.type)),
          .targets_aligned = is_aligned(indexes, 4 * targets.width)};
}

// A column of a batch, and where it lies.
struct Side {
  const void* data;
  uint32_t width;
  MemorySide side;

  bool is_here() const { return !data || side == MemorySide::device; }
};

// A stream with the memory that a piece of the batch needs on its way.
class PieceLane {
 public:
  explicit PieceLane(CudaTransfer& transfer)
      : numbers_(transfer), targets_(transfer), stream_(transfer.device()) {}

  Status run(const Side& numbers, const Side& targets, uint64_t first, uint64_t n,
             const std::function<void(const void*, const void*, cudaStream_t)>& start) {
    STRIDE_TRY(finish());
    const void* s = numbers_.bring(numbers, first, n, stream_);
    const void* r = targets_.bring(targets, first, n, stream_);
    start(s, r, stream_);
    return {};
  }
  Status finish() {
    stream_.wait();
    return {};
  }

 private:
  // Brings pieces of one column to the device.
  class Arrival {
   public:
    explicit Arrival(CudaTransfer& transfer) : transfer_(transfer), room_(transfer) {}
    const void* bring(const Side& column, uint64_t first, uint64_t n, cudaStream_t stream) {
      const void* from = at(column.data, first * column.width);
      if (column.is_here()) return from;
      uint64_t bytes = n * column.width;
      if (column.side == MemorySide::pageable) {
        if (!staged_.data()) staged_ = transfer_.pinned().take();
        std::memcpy(staged_.data(), from, bytes);
        from = staged_.data();
      }
      std::byte* to = room_.room(bytes);
      cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream),
                 "copy to the device");
      return to;
    }

   private:
    CudaTransfer& transfer_;
    PinnedPool::Piece staged_;
    DeviceRoom room_;
  };

  Arrival numbers_, targets_;
  CudaStream stream_;  // goes first, and waits for what uses the memory
};

// Where the bus reads the caller's memory itself, few large pieces keep it busiest.
constexpr uint64_t pinned_pieces = 8;
constexpr uint64_t pinned_workers = 2;

void add_in_pieces(const CudaContext& context, const Numbers& sources, const Indexes& targets,
                   uint64_t limit, Job* job) {
  Side numbers{sources.data, width_of(sources.type), memory_side(context.device, sources.data)};
  Side indexes{targets.data, targets.width, memory_side(context.device, targets.data)};
  bool staged = (numbers.data && numbers.side == MemorySide::pageable) ||
                indexes.side == MemorySide::pageable;
  uint64_t piece = staging_bytes / std::max(numbers.width, indexes.width);
  if (!staged) piece *= pinned_pieces;
  Status status = run_lanes<PieceLane>(
      context.transfer, (sources.size + piece - 1) / piece,
      staged ? context.transfer.most_workers() : pinned_workers,
      [&](auto& lane) { lane.emplace(context.transfer); },
      [&](PieceLane& lane, uint64_t i) {
        uint64_t first = i * piece, n = std::min(piece, sources.size - first);
        return lane.run(numbers, indexes, first, n,
                        [&](const void* s, const void* r, cudaStream_t stream) {
                          job->add(tiles(sources, s, targets, r, first, n, limit), stream);
                        });
      });
  if (!status.ok()) throw CudaFailure(status);
}

ScatterReport fetch(const CudaContext& context, const ScatterCounters* counters,
                    cudaStream_t stream) {
  auto staged = context.transfer.pinned().take();
  cuda_check(
      cudaMemcpyAsync(staged.data(), counters, sizeof *counters, cudaMemcpyDeviceToHost, stream),
      "count sources");
  cuda_check(cudaStreamSynchronize(stream), "count sources");
  ScatterCounters there;
  std::memcpy(&there, staged.data(), sizeof there);
  if (there.out_of_range == 0) return {};
  return {there.out_of_range, UINT64_MAX - there.least};
}

CudaArray<ScatterCounters> make_counters(CudaDevice& device, cudaStream_t stream) {
  CudaArray<ScatterCounters> counters(device, stream, 1);
  cuda_check(cudaMemsetAsync(counters.data(), 0, counters.bytes(), stream), "clear counters");
  return counters;
}

JobContext job_context(CudaDevice& device, const Indexes& targets, uint64_t limit,
                       const ScatterOptions& options, ScatterCounters* counters) {
  return {device,
          targets.size,
          limit,
          targets.width == 8,
          options,
          counters,
          device.attribute(cudaDevAttrMultiProcessorCount),
          device.attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - (1 << 10)};
}

// All in device memory.
void start_here(CudaDevice& device, const Numbers& sources, const Indexes& targets,
                const MutableNumbers& into, const ScatterOptions& options,
                ScatterCounters* counters, cudaStream_t stream) {
  auto job = make_job(job_context(device, targets, into.size, options, counters), into, stream);
  TileSource all = tiles(sources, sources.data, targets, targets.data, 0, sources.size, into.size);
  job->begin(&all, nullptr, stream);
  job->add(all, stream);
  job->finish(stream);
}

uint64_t fetch_target(const Indexes& targets, uint64_t i) {
  uint64_t target = 0;
  cuda_check(
      cudaMemcpy(&target, at(targets.data, i * targets.width), targets.width, cudaMemcpyDefault),
      "count sources");
  return target;
}

ScatterReport count_out_of_range(const CudaContext& context, const Indexes& targets, uint64_t limit,
                                 cudaStream_t stream) {
  if (!context.device.owns(targets.data))
    return count_out_of_range_host(context.transfer.host(), targets, limit);
  auto counters = make_counters(context.device, stream);
  TileSource all = tiles(Numbers(), nullptr, targets, targets.data, 0, targets.size, limit);
  JobContext size = job_context(context.device, targets, limit, {}, counters.data());
  count_left_out<<<size.grid(targets.size, 512, 4), 512, 0, stream>>>(all, counters.data());
  cuda_check(cudaGetLastError(), "count sources");
  return fetch(context, counters.data(), stream);
}

}  // namespace

Status scatter_cuda(const CudaContext& context, const Numbers& sources, const Indexes& targets,
                    const MutableNumbers& into, const ScatterOptions& options,
                    ScatterReport* report) {
  auto is_here = [&](const void* p) { return !p || context.device.owns(p); };
  const bool all_here = is_here(sources.data) && is_here(targets.data);
  if (options.stream) {
    if (!all_here || !is_here(into.data))
      return Status::invalid("a column in host memory, for work on a stream")
          .with_remedy("give no stream, or columns in the device's memory");
    OnDevice on(context.device);
    auto stream = static_cast<cudaStream_t>(options.stream);
    start_here(context.device, sources, targets, into, options, nullptr, stream);
    return {};
  }
  CudaStream stream(context.device);
  auto counters = make_counters(context.device, stream);
  if (options.out_of_range == OutOfRange::error) {
    *report = count_out_of_range(context, targets, into.size, stream);
    if (report->out_of_range > 0)
      return out_of_range_error(*report, fetch_target(targets, report->first_out_of_range),
                                into.size);
  }
  PlacedTargets placed(context, into, stream);
  if (all_here) {
    start_here(context.device, sources, targets, placed.there(), options, counters.data(), stream);
  } else {
    auto job = make_job(job_context(context.device, targets, into.size, options, counters.data()),
                        placed.there(), stream);
    if (is_float(into.type) && options.mode == ScatterMode::reproducible) {
      if (is_here(sources.data)) {
        TileSource all = tiles(sources, sources.data, targets, nullptr, 0, sources.size, into.size);
        job->begin(&all, nullptr, stream);
      } else {
        NumbersSummary summary = summarize_host(context.transfer.host(), sources);
        job->begin(nullptr, &summary, stream);
      }
    }
    stream.wait();
    add_in_pieces(context, sources, targets, into.size, job.get());
    job->finish(stream);
  }
  *report = fetch(context, counters.data(), stream);
  placed.give_back();
  return {};
}

}  // namespace stride

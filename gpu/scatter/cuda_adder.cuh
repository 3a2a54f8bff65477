// Adds sources to T by the way that suits them: straight to memory, by copies in blocks, or brought
// together by ranges of targets first.
#pragma once

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
#include "gpu/scatter/cuda_sample.cuh"
#include "gpu/scatter/host_methods.h"
#include "gpu/scatter/scatter_kernels.cuh"

namespace stride {

namespace {

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
      case ScatterMethod::privatized:
        return with_privatized(op, part, part.n >= min_sampled ? sampled() : nullptr, stream);
      case ScatterMethod::heavy_hitters:
        return with_heavy_hitters(op, part, sampled(), stream);
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
    if (asked == ScatterMethod::privatized && !has_room_for_copies())
      refuse("privatized, with a T of more bytes than a block has of shared memory");
    if (asked == ScatterMethod::heavy_hitters && context_.sources < min_to_sample)
      refuse("heavy_hitters, with fewer sources than a sample needs");
    if (asked != ScatterMethod::heavy_hitters && asked != ScatterMethod::partition) return;
    if (!fits_narrow(context_.limit))
      refuse("heavy_hitters or partition, with 2^32 - 1 targets or more");
    if (asked == ScatterMethod::partition && context_.wide_targets)
      refuse("partition, with targets of 64 bits");
  }

  template <class Sampled>
  ScatterMethod choose(const TileSource& part, const Sampled& sampled, cudaStream_t stream) const {
    const uint64_t n = part.n;
    const ScatterMethod asked = context_.options.method;
    // The last piece may be a short one, where sources come in pieces.
    if (asked == ScatterMethod::heavy_hitters && n < min_to_sample) return ScatterMethod::direct;
    if (asked != ScatterMethod::automatic) return asked;
    const bool narrow = fits_narrow(context_.limit);
    // Each block brings a copy of T to memory, so it should have several sources for each target.
    if (has_room_for_copies() && n / 4 / context_.limit >= context_.processors)
      return ScatterMethod::privatized;
    if (context_.limit * Op::memory_bytes > far_bytes && n >= min_partitioned && narrow &&
        !part.wide_targets && !is_ascending(sampled(), stream))
      return ScatterMethod::partition;
    return n >= min_sampled && narrow ? ScatterMethod::heavy_hitters : ScatterMethod::direct;
  }

  template <class Target, class Sink, uint32_t unroll>
  void launch(const TileSource& part, const Sink& sink, uint32_t threads, uint32_t blocks,
              uint64_t shared_bytes, cudaStream_t stream) {
    auto* kernel = scatter_tiles<Op, Target, Sink, unroll>;
    allow_shared(kernel, shared_bytes);
    launch_early(context_.device, kernel, blocks, threads, shared_bytes, stream, part, sink,
                 context_.counters);
  }

  // sample: of the part, which leaves the work to with_heavy_hitters() where there are heavy
  // hitters; or null.
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
  void with_privatized(const Op& op, const TileSource& part, const SourceSample* sample,
                       cudaStream_t stream) {
    const uint64_t copy_bytes = context_.limit * cell_bytes;
    uint32_t log = 0;
    if constexpr (Op::max_copies_log > 0)
      while (log < Op::max_copies_log && copy_bytes << (log + 1) <= context_.most_shared) ++log;
    const uint64_t bytes = copy_bytes << log;
    constexpr uint32_t threads = PrivatizedSink<Op>::block_threads;
    const uint32_t per_processor = bytes * 2 <= context_.most_shared ? 2 : 1;
    uint64_t worth = std::max<uint64_t>(1, part.n / 4 / context_.limit);
    uint32_t blocks = static_cast<uint32_t>(
        std::min<uint64_t>(worth, context_.grid(part.n, threads, per_processor)));
    PrivatizedSink<Op> sink{op, sample, static_cast<uint32_t>(context_.limit), log, nullptr};
    launch<uint32_t, PrivatizedSink<Op>, 2>(part, sink, threads, blocks, bytes, stream);
  }

  // Or directly where the sample finds no heavy hitters, which the device knows first: of the two
  // kernels that are started, one does nothing.
  void with_heavy_hitters(const Op& op, const TileSource& part, const SourceSample* sample,
                          cudaStream_t stream) {
    HeavyHitterSink<Op> sink{op, sample, nullptr, nullptr};
    constexpr uint32_t threads = HeavyHitterSink<Op>::block_threads;
    launch<uint32_t, HeavyHitterSink<Op>, 1>(part, sink, threads, context_.grid(part.n, threads, 4),
                                             HeavyHitterSink<Op>::shared_words * 4, stream);
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
    TileSource fetch(const TileSource& part, uint64_t first) {
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
      TileSource piece = partition->fetch(part, first);
      if (piece.n >= min_sampled)
        rest.with_heavy_hitters(op, piece, take_sample(piece, stream).data(), stream);
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
  static constexpr uint64_t min_partitioned = 1 << 22;
  static constexpr uint64_t partition_sources = 1 << 26;
  static constexpr uint64_t many_sources = 1 << 26;

  JobContext context_;
};

}  // namespace

}  // namespace stride

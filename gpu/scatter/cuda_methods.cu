#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "gpu/device/cuda_transfer.h"
#include "gpu/scatter/cuda_adder.cuh"
#include "gpu/scatter/cuda_extremes.cuh"
#include "gpu/scatter/cuda_methods.h"
#include "gpu/scatter/host_methods.h"
#include "gpu/scatter/scatter_kernels.cuh"
#include "storage/status.h"

namespace stride {

namespace {

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
class QuantizedJob final : public Job {
 public:
  QuantizedJob(const JobContext& context, void* into, cudaStream_t stream)
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
      if (all->targets && all->n >= min_sampled)
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
  Adder<QuantizedOperation<T>> adder_;
  CudaArray<int64_t> memory_;  // the summary, high parts, low parts
  CudaArray<SourceSample> sample_;
  QuantizedOperation<T> op_;
};

template <class T>
class ExtremeJob final : public Job {
 public:
  ExtremeJob(const JobContext& context, void* into)
      : context_(context), into_(static_cast<T*>(into)) {
    const ScatterMethod asked = context.options.method;
    if (asked != ScatterMethod::automatic && asked != ScatterMethod::direct)
      refuse("privatized, heavy_hitters or partition, for min or max on a device");
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
      return std::make_unique<QuantizedJob<T>>(context, into, stream);
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
    const void* s = numbers_.fetch(numbers, first, n, stream_);
    const void* r = targets_.fetch(targets, first, n, stream_);
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
    const void* fetch(const Side& column, uint64_t first, uint64_t n, cudaStream_t stream) {
      const void* from = at(column.data, first * column.width);
      if (column.is_here()) return from;
      uint64_t bytes = n * column.width;
      if (column.side == MemorySide::pageable) {
        if (!staged_.data()) staged_ = transfer_.pinned().take();
        std::memcpy(staged_.data(), from, bytes);
        from = staged_.data();
      }
      std::byte* to = room_.room(bytes);
      cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copy to the device");
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
      staged ? context.transfer.max_workers() : pinned_workers,
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

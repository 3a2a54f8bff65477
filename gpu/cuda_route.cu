#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gpu/cuda_scatter.h"
#include "gpu/cuda_transfer.h"
#include "gpu/route_plan.h"
#include "gpu/scatter_host.h"
#include "gpu/scatter_kernels.cuh"

namespace stride {

namespace {

constexpr uint32_t exchange_threads = 512;

// A RouteSlab in device memory.
struct SlabRef {
  uint64_t first;
  uint32_t sources, chunk_sources, parts;
  const uint16_t* picks;
  const uint16_t* run_begin;
  const uint32_t* run_to;
  const uint64_t* part_target;
  const uint32_t* part_item;
  const uint16_t* list;
  const uint16_t* list_begin;
};

// Copies to a block's shared memory, with as many reads under way as there are threads. Both sides
// are aligned to 16 bytes.
template <class E>
__device__ __forceinline__ void bring_in(E* to, const E* from, uint32_t n) {
  constexpr uint32_t in_vector = 16 / sizeof(E);
  const uint32_t vectors = n / in_vector;
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < vectors; i += exchange_threads)
    reinterpret_cast<uint4*>(to)[i] = __ldcs(reinterpret_cast<const uint4*>(from) + i);
  for (uint32_t i = vectors * in_vector + threadIdx.x; i < n; i += exchange_threads)
    to[i] = from[i];
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

// A block a chunk: its sources go to their parts.
template <class T>
__global__ __launch_bounds__(exchange_threads) void exchange_chunks(TileSource source, SlabRef slab,
                                                                    T* items) {
  extern __shared__ uint4 shared_vectors[];
  T* values = reinterpret_cast<T*>(shared_vectors);
  auto* picks = reinterpret_cast<uint16_t*>(values + slab.chunk_sources);
  const uint64_t chunk = blockIdx.x, begin = chunk * slab.chunk_sources;
  const auto n = static_cast<uint32_t>(
      slab.sources - begin < slab.chunk_sources ? slab.sources - begin : slab.chunk_sources);
  const uint16_t* run_begin = slab.run_begin + chunk * (slab.parts + 1);
  const uint32_t* run_to = slab.run_to + chunk * slab.parts;
  if (source.numbers_aligned && source.type != NumberType::f16 && source.type != NumberType::bf16 &&
      source.numbers && (slab.first + begin) % 4 == 0) {
    bring_in(values, static_cast<const T*>(source.numbers) + slab.first + begin, n);
  } else {
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < n; i += exchange_threads)
      values[i] = number_at<T>(source, slab.first + begin + i);
  }
  bring_in(picks, slab.picks + begin, run_begin[slab.parts]);
  __syncthreads();
  // A warp takes 32 runs at a time, one after the other.
  const uint32_t lane = threadIdx.x % 32;
  for (uint32_t p = threadIdx.x / 32 * 32; p < slab.parts; p += exchange_threads) {
    const uint32_t mine = p + lane < slab.parts ? p + lane : slab.parts - 1;
    const uint32_t my_begin = run_begin[mine], my_end = run_begin[mine + 1], my_to = run_to[mine];
    const uint32_t runs = slab.parts - p < 32 ? slab.parts - p : 32;
    for (uint32_t r = 0; r < runs; ++r) {
      const uint32_t run = __shfl_sync(whole_warp, my_begin, r);
      const uint32_t end = __shfl_sync(whole_warp, my_end, r);
      T* to = items + __shfl_sync(whole_warp, my_to, r);
      for (uint32_t j = run + lane; j < end; j += 32) to[j - run] = values[picks[j]];
    }
  }
}

// A block a part: its targets add up their items, in order.
template <class T>
__global__ __launch_bounds__(exchange_threads) void add_parts(SlabRef slab, const T* items,
                                                              T* into) {
  extern __shared__ uint4 shared_vectors[];
  const uint32_t part = blockIdx.x;
  const uint32_t first = slab.part_item[part], n = slab.part_item[part + 1] - first;
  // Neither stretch needs to begin at a vector.
  const uint32_t skip = first % 8;
  T* values = reinterpret_cast<T*>(shared_vectors);
  auto* list = reinterpret_cast<uint16_t*>(values + (route_part_sources + 8));
  bring_in(values, items + first - skip, n + skip);
  bring_in(list, slab.list + first - skip, n + skip);
  __syncthreads();
  const uint64_t last = slab.part_target[part + 1];
  for (uint64_t t = slab.part_target[part] + threadIdx.x; t < last; t += exchange_threads) {
    uint32_t at = slab.list_begin[t], end = t + 1 < last ? slab.list_begin[t + 1] : n;
    if (at == end) continue;
    T sum = AddOp<T>::none();
    for (; at < end; ++at) sum = AddOp<T>::join(sum, values[skip + list[skip + at]]);
    into[t] = AddOp<T>::join(into[t], sum);
  }
}

// Of hot targets: stretches of their lists, of so many sources at most.
constexpr uint32_t stretch_sources = 8192;
constexpr uint32_t stretch_threads = 256;

struct HotStretch {
  uint32_t begin, end;  // of the list
};
struct HotTarget {
  uint64_t target;
  uint32_t begin, end;  // stretches
};

// A block a stretch.
template <class T>
__global__ __launch_bounds__(stretch_threads) void add_stretches(TileSource source, uint64_t first,
                                                                 const HotStretch* stretches,
                                                                 const uint32_t* list, T* sums) {
  __shared__ T of_warp[stretch_threads / 32];
  const HotStretch stretch = stretches[blockIdx.x];
  T sum = AddOp<T>::none();
#pragma unroll 4
  for (uint32_t i = stretch.begin + threadIdx.x; i < stretch.end; i += stretch_threads)
    sum = AddOp<T>::join(sum, number_at<T>(source, first + list[i]));
  for (uint32_t lanes = 16; lanes > 0; lanes /= 2)
    sum = AddOp<T>::join(sum, __shfl_xor_sync(whole_warp, sum, lanes));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (uint32_t w = 1; w < stretch_threads / 32; ++w) sum = AddOp<T>::join(sum, of_warp[w]);
  sums[blockIdx.x] = sum;
}

template <class T>
__global__ void add_hot(const HotTarget* hot, uint32_t n, const T* sums, T* into) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T sum = AddOp<T>::none();
  for (uint32_t s = hot[i].begin; s < hot[i].end; ++s) sum = AddOp<T>::join(sum, sums[s]);
  into[hot[i].target] = AddOp<T>::join(into[hot[i].target], sum);
}

// A slab's plan and what applying it needs, in device memory.
class Slab {
 public:
  Slab(const CudaContext& context, const RouteSlab& plan, cudaStream_t stream)
      : plan_(sizes(plan)) {
    auto keep = [&](auto* to, const auto& from) {
      *to = std::remove_reference_t<decltype(*to)>(context.device, stream, from.size() + 8);
      if (!from.empty())
        context.transfer.to_device(to->data(), from.data(), from.size() * sizeof(from[0]), stream);
    };
    keep(&picks_, plan.picks);
    keep(&run_begin_, plan.run_begin);
    keep(&run_to_, plan.run_to);
    keep(&part_target_, plan.part_target);
    keep(&part_item_, plan.part_item);
    keep(&list_, plan.list);
    keep(&list_begin_, plan.list_begin);
    keep(&hot_list_, plan.hot_sources);
    std::vector<HotStretch> stretches;
    std::vector<HotTarget> hot;
    for (size_t h = 0; h < plan.hot.size(); ++h) {
      auto end = static_cast<uint32_t>(h + 1 < plan.hot.size() ? plan.hot[h + 1].begin
                                                               : plan.hot_sources.size());
      auto first = static_cast<uint32_t>(stretches.size());
      for (uint32_t at = plan.hot[h].begin; at < end; at += stretch_sources)
        stretches.push_back({at, std::min(end, at + stretch_sources)});
      hot.push_back({plan.hot[h].target, first, static_cast<uint32_t>(stretches.size())});
    }
    keep(&stretches_, stretches);
    keep(&hot_, hot);
    stretch_count_ = static_cast<uint32_t>(stretches.size());
    hot_count_ = static_cast<uint32_t>(hot.size());
    stream_wait(stream);
    settle();
  }

  uint64_t items() const { return plan_.items; }
  uint64_t stretches() const { return stretch_count_; }
  uint64_t bytes() const {
    return picks_.bytes() + run_begin_.bytes() + run_to_.bytes() + part_target_.bytes() +
           part_item_.bytes() + list_.bytes() + list_begin_.bytes() + hot_list_.bytes() +
           stretches_.bytes() + hot_.bytes();
  }

  // items: room for items() and stretches().
  template <class T>
  void add(const TileSource& source, T* items, T* into, cudaStream_t stream) const {
    SlabRef slab = ref();
    const uint64_t chunk_bytes = plan_.chunk_sources * (sizeof(T) + 2) + 32;
    const uint64_t part_bytes = (route_part_sources + 8) * (sizeof(T) + 2);
    if (plan_.items > 0) {
      allow(exchange_chunks<T>, chunk_bytes);
      exchange_chunks<T>
          <<<plan_.chunks, exchange_threads, chunk_bytes, stream>>>(source, slab, items);
      allow(add_parts<T>, part_bytes);
      add_parts<T><<<plan_.parts, exchange_threads, part_bytes, stream>>>(slab, items, into);
    }
    if (stretch_count_ > 0) {
      T* sums = items + plan_.items;
      add_stretches<T><<<stretch_count_, stretch_threads, 0, stream>>>(
          source, plan_.first, stretches_.data(), hot_list_.data(), sums);
      add_hot<T><<<(hot_count_ + 127) / 128, 128, 0, stream>>>(hot_.data(), hot_count_, sums, into);
    }
    cuda_check(cudaGetLastError(), "apply a route");
  }

 private:
  static RouteSlab sizes(const RouteSlab& plan) {
    RouteSlab sizes;
    sizes.first = plan.first;
    sizes.sources = plan.sources;
    sizes.chunk_sources = plan.chunk_sources;
    sizes.chunks = plan.chunks;
    sizes.parts = plan.parts;
    sizes.items = plan.items;
    return sizes;
  }
  static void stream_wait(cudaStream_t stream) {
    cuda_check(cudaStreamSynchronize(stream), "prepare a route");
  }
  template <class Kernel>
  static void allow(Kernel* kernel, uint64_t bytes) {
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "ask for shared memory");
  }
  void settle() {
    picks_.settle();
    run_begin_.settle();
    run_to_.settle();
    part_target_.settle();
    part_item_.settle();
    list_.settle();
    list_begin_.settle();
    hot_list_.settle();
    stretches_.settle();
    hot_.settle();
  }
  SlabRef ref() const {
    return {plan_.first,       plan_.sources,     plan_.chunk_sources, plan_.parts,
            picks_.data(),     run_begin_.data(), run_to_.data(),      part_target_.data(),
            part_item_.data(), list_.data(),      list_begin_.data()};
  }

  RouteSlab plan_;  // its sizes
  CudaArray<uint16_t> picks_, run_begin_;
  CudaArray<uint32_t> run_to_;
  CudaArray<uint64_t> part_target_;
  CudaArray<uint32_t> part_item_;
  CudaArray<uint16_t> list_, list_begin_;
  CudaArray<uint32_t> hot_list_;
  CudaArray<HotStretch> stretches_;
  CudaArray<HotTarget> hot_;
  uint32_t stretch_count_ = 0, hot_count_ = 0;
};

class CudaRoute final : public ScatterRoute {
 public:
  // targets: in device memory.
  CudaRoute(const CudaContext& context, const ScatterReport& report, CudaArray<std::byte> targets,
            uint32_t width, uint64_t sources, uint64_t target_count)
      : ScatterRoute(sources, target_count),
        context_(context),
        targets_(std::move(targets)),
        width_(width) {
    report_ = report;
  }

  void plan(const Indexes& in_host_memory, uint32_t processors, cudaStream_t stream) {
    uint64_t most = 0;
    for (uint64_t first = 0; first < sources(); first += route_slab_sources) {
      uint64_t n = std::min(route_slab_sources, sources() - first);
      slabs_.emplace_back(context_,
                          plan_slab(in_host_memory, first, n, this->targets(), processors), stream);
      most = std::max(most, slabs_.back().items() + slabs_.back().stretches());
    }
    items_ = CudaArray<uint64_t>(context_.device, stream, most + 8);
    cuda_check(cudaStreamSynchronize(stream), "prepare a route");
    items_.settle();
  }

  uint64_t memory_bytes() const override {
    uint64_t bytes = targets_.bytes() + items_.bytes();
    for (const Slab& slab : slabs_) bytes += slab.bytes();
    return bytes;
  }

 private:
  Indexes indexes() const { return {targets_.data(), sources(), width_}; }

  Status apply_checked(const Numbers& sources, const MutableNumbers& into, ScatterMode mode,
                       void* stream) const override {
    return cuda_guarded([&]() -> Status {
      bool exact = !is_float(into.type) || mode == ScatterMode::fast;
      ScatterReport unused;
      ScatterOptions options{.mode = mode, .stream = stream};
      if (slabs_.empty() || !exact)
        return scatter_cuda(context_, sources, indexes(), into, options, &unused);
      if (stream) {
        if (!context_.device.owns(into.data) ||
            (sources.data && !context_.device.owns(sources.data)))
          return Status::invalid("a column in host memory, for work on a stream")
              .with_remedy("give no stream, or columns in the device's memory");
        OnDevice on(context_.device);
        exchange(sources, into, static_cast<cudaStream_t>(stream));
        return {};
      }
      return apply_and_wait(sources, into);
    });
  }

  Status apply_and_wait(Numbers sources, MutableNumbers into) const {
    CudaStream stream(context_.device);
    CudaArray<std::byte> numbers, sums;
    if (sources.data && !context_.device.owns(sources.data)) {
      uint64_t bytes = sources.size * width_of(sources.type);
      numbers = CudaArray<std::byte>(context_.device, stream, bytes);
      context_.transfer.to_device(numbers.data(), sources.data, bytes, stream);
      sources.data = numbers.data();
    }
    PlacedTargets placed(context_, into, stream);
    exchange(sources, placed.there(), stream);
    stream.wait();
    placed.give_back();
    return {};
  }

  void exchange(const Numbers& sources, const MutableNumbers& into, cudaStream_t stream) const {
    TileSource source{};
    source.numbers = sources.data;
    source.type = sources.type;
    source.numbers_aligned = reinterpret_cast<uintptr_t>(sources.data) % 16 == 0;
    switch (into.type) {
      case NumberType::i32:
        return exchange_as<int32_t>(source, into.data, stream);
      case NumberType::i64:
        return exchange_as<int64_t>(source, into.data, stream);
      case NumberType::f64:
        return exchange_as<double>(source, into.data, stream);
      default:
        return exchange_as<float>(source, into.data, stream);
    }
  }
  template <class T>
  void exchange_as(const TileSource& source, void* into, cudaStream_t stream) const {
    auto* items = reinterpret_cast<T*>(items_.data());
    for (const Slab& slab : slabs_) slab.add(source, items, static_cast<T*>(into), stream);
  }

  CudaContext context_;
  CudaArray<std::byte> targets_;
  uint32_t width_;
  std::vector<Slab> slabs_;
  mutable CudaArray<uint64_t> items_;  // of the slab that is being applied
};

}  // namespace

Result<std::unique_ptr<ScatterRoute>> make_route_cuda(const CudaContext& context,
                                                      const Indexes& targets, uint64_t target_count,
                                                      OutOfRange out_of_range) {
  CudaStream stream(context.device);
  const uint64_t bytes = targets.size * targets.width;
  const bool here = targets.size > 0 && context.device.owns(targets.data);
  std::vector<std::byte> copy;
  Indexes in_host_memory = targets;
  CudaArray<std::byte> kept(context.device, stream, bytes);
  if (here) {
    copy.resize(bytes);
    context.transfer.to_host(copy.data(), targets.data, bytes, stream);
    in_host_memory.data = copy.data();
    cuda_check(cudaMemcpyAsync(kept.data(), targets.data, bytes, cudaMemcpyDeviceToDevice, stream),
               "keep targets");
  } else if (bytes > 0) {
    context.transfer.to_device(kept.data(), targets.data, bytes, stream);
  }
  ScatterReport report =
      count_out_of_range_host(context.transfer.host(), in_host_memory, target_count);
  if (out_of_range == OutOfRange::error && report.out_of_range > 0)
    return out_of_range_error(report, target_at(in_host_memory, report.first_out_of_range),
                              target_count);
  stream.wait();
  kept.settle();
  auto route = std::make_unique<CudaRoute>(context, report, std::move(kept), targets.width,
                                           targets.size, target_count);
  if (is_exchanged(targets.size, target_count)) {
    int processors = 0;
    cuda_check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                      context.device.number()),
               "ask for the device's size");
    route->plan(in_host_memory, static_cast<uint32_t>(processors), stream);
  }
  return std::unique_ptr<ScatterRoute>(std::move(route));
}

}  // namespace stride

#include <cuda_pipeline.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <type_traits>
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
  uint32_t sources, chunk_sources;
  uint32_t most_items, most_list, most_targets;
  const uint16_t* picks;
  const RouteSlab::Piece* pieces;
  const uint32_t *chunk_piece, *chunk_picks;
  const uint32_t *part_target, *part_item, *part_group;
  const uint32_t *group_targets, *group_list;
  const uint16_t* list;
};

// The work before this on the stream is done, and seen, behind wait_for_earlier_work(). A kernel
// may be started before, where the one before it has said that it may.
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

// Begins to copy n entries to a block's shared memory, behind its registers. Both sides are aligned
// to 16 bytes.
template <class E>
__device__ __forceinline__ void bring_in(E* to, const E* from, uint32_t n) {
  constexpr uint32_t in_vector = 16 / sizeof(E);
  const uint32_t vectors = n / in_vector;
  for (uint32_t i = threadIdx.x; i < vectors; i += exchange_threads)
    __pipeline_memcpy_async(reinterpret_cast<uint4*>(to) + i,
                            reinterpret_cast<const uint4*>(from) + i, 16);
  for (uint32_t i = vectors * in_vector + threadIdx.x; i < n; i += exchange_threads)
    to[i] = from[i];
}
__device__ __forceinline__ void wait_until_in() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
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
  let_later_work_begin();
  bring_in(picks, slab.picks + begin, slab.chunk_picks[chunk]);
  const uint32_t first_piece = slab.chunk_piece[chunk], last_piece = slab.chunk_piece[chunk + 1];
  wait_for_earlier_work();
  if (source.numbers_aligned && source.type != NumberType::f16 && source.type != NumberType::bf16 &&
      source.numbers && (slab.first + begin) % 4 == 0) {
    bring_in(values, static_cast<const T*>(source.numbers) + slab.first + begin, n);
  } else {
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < n; i += exchange_threads)
      values[i] = number_at<T>(source, slab.first + begin + i);
  }
  wait_until_in();
  // A warp takes 32 pieces at a time, one after the other.
  const uint32_t lane = threadIdx.x % 32;
  for (uint32_t p = first_piece + threadIdx.x / 32; p < last_piece; p += exchange_threads / 32) {
    const RouteSlab::Piece piece = slab.pieces[p];
    T* to = items + piece.to;
    const uint16_t* from = picks + piece.begin;
#pragma unroll
    for (uint32_t turn = 0; turn < route_piece_sources / 32; ++turn) {
      uint32_t j = turn * 32 + lane;
      if (j < piece.count) to[j] = values[from[j]];
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
  const uint32_t first_target = slab.part_target[part];
  const uint32_t targets = slab.part_target[part + 1] - first_target;
  const uint32_t first_group = slab.part_group[part], last_group = slab.part_group[part + 1];
  const uint32_t first_list = slab.group_list[first_group];
  // The items need not begin at a vector.
  const uint32_t skip = first % 4;
  T* values = reinterpret_cast<T*>(shared_vectors);
  T* sums = values + (slab.most_items + 8 + 3) / 4 * 4;
  auto* list = reinterpret_cast<uint16_t*>(sums + (slab.most_targets + 3) / 4 * 4);
  let_later_work_begin();
  bring_in(list, slab.list + first_list, slab.group_list[last_group] - first_list);
  for (uint32_t t = threadIdx.x; t < targets; t += exchange_threads) sums[t] = AddOp<T>::none();
  wait_for_earlier_work();
  bring_in(values, items + first - skip, n + skip);
  if (threadIdx.x == 0) values[skip + n] = AddOp<T>::none();
  wait_until_in();
  const uint32_t lane = threadIdx.x % 32;
  for (uint32_t g = first_group + threadIdx.x / 32; g < last_group; g += exchange_threads / 32) {
    const uint32_t target = slab.group_targets[g * route_group_targets + lane];
    uint32_t at = slab.group_list[g] - first_list + lane;
    const uint32_t end = slab.group_list[g + 1] - first_list;
    T sum = AddOp<T>::none();
#pragma unroll 4
    for (; at < end; at += route_group_targets) sum = AddOp<T>::join(sum, values[skip + list[at]]);
    if (target != no_route_target) sums[target - first_target] = sum;
  }
  __syncthreads();
  for (uint32_t t = threadIdx.x; t < targets; t += exchange_threads)
    if (!AddOp<T>::is_none(sums[t]))
      into[first_target + t] = AddOp<T>::join(into[first_target + t], sums[t]);
}
static_assert(route_group_targets == 32);

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
    keep(&pieces_, plan.pieces);
    keep(&chunk_piece_, plan.chunk_piece);
    keep(&chunk_picks_, plan.chunk_picks);
    keep(&part_target_, plan.part_target);
    keep(&part_item_, plan.part_item);
    keep(&part_group_, plan.part_group);
    keep(&group_targets_, plan.group_targets);
    keep(&group_list_, plan.group_list);
    keep(&list_, plan.list);
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
    each([](auto& array) { array.settle(); });
  }

  uint64_t items() const { return plan_.items; }
  // Whether numbers of this size fit into the memory of a block.
  template <class T>
  bool fits() const {
    return std::max(chunk_bytes<T>(), part_bytes<T>()) <= most_shared_;
  }
  uint64_t stretches() const { return stretch_count_; }
  uint64_t bytes() const {
    uint64_t sum = 0;
    const_cast<Slab*>(this)->each([&](auto& array) { sum += array.bytes(); });
    return sum;
  }

  // items: room for items() and stretches().
  template <class T>
  void add(const TileSource& source, T* items, T* into, cudaStream_t stream) const {
    SlabRef slab = ref();
    if (plan_.items > 0) {
      launch<exchange_chunks<T>>(plan_.chunks, chunk_bytes<T>(), stream, source, slab, items);
      launch<add_parts<T>>(plan_.parts, part_bytes<T>(), stream, slab, items, into);
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
    sizes.most_items = plan.most_items;
    sizes.most_list = plan.most_list;
    sizes.most_targets = plan.most_targets;
    return sizes;
  }
  static void stream_wait(cudaStream_t stream) {
    cuda_check(cudaStreamSynchronize(stream), "prepare a route");
  }
  template <class T>
  uint64_t chunk_bytes() const {
    return plan_.chunk_sources * (sizeof(T) + 2);
  }
  template <class T>
  uint64_t part_bytes() const {
    return (plan_.most_items + 16 + plan_.most_targets) * sizeof(T) + plan_.most_list * 2;
  }

  // The kernel may be started before the work that it waits for has ended.
  template <auto kernel, class... Arguments>
  void launch(uint32_t blocks, uint64_t shared_bytes, cudaStream_t stream,
              const Arguments&... arguments) const {
    static std::atomic<uint64_t> allowed{0};  // a bit for each device
    const uint64_t device = uint64_t{1} << device_number_ % 64;
    if ((allowed & device) == 0) {
      cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(most_shared_)),
                 "ask for shared memory");
      allowed |= device;
    }
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = exchange_threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    cuda_check(cudaLaunchKernelEx(&config, kernel, arguments...), "apply a route");
  }

  template <class Use>
  void each(const Use& use) {
    use(picks_);
    use(pieces_);
    use(chunk_piece_);
    use(chunk_picks_);
    use(part_target_);
    use(part_item_);
    use(part_group_);
    use(group_targets_);
    use(group_list_);
    use(list_);
    use(hot_list_);
    use(stretches_);
    use(hot_);
  }
  SlabRef ref() const {
    return {plan_.first,         plan_.sources,         plan_.chunk_sources, plan_.most_items,
            plan_.most_list,     plan_.most_targets,    picks_.data(),       pieces_.data(),
            chunk_piece_.data(), chunk_picks_.data(),   part_target_.data(), part_item_.data(),
            part_group_.data(),  group_targets_.data(), group_list_.data(),  list_.data()};
  }

  RouteSlab plan_;  // its sizes
  int device_number_;
  uint64_t most_shared_ = 0;
  CudaArray<uint16_t> picks_, list_;
  CudaArray<RouteSlab::Piece> pieces_;
  CudaArray<uint32_t> chunk_piece_, chunk_picks_, part_target_, part_item_, part_group_;
  CudaArray<uint32_t> group_targets_, group_list_;
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
      ScatterReport unused;
      ScatterOptions options{.mode = mode, .stream = stream};
      if (!is_exchange(into.type, mode))
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

  bool is_exchange(NumberType type, ScatterMode mode) const {
    if (slabs_.empty() || (is_float(type) && mode == ScatterMode::reproducible)) return false;
    return std::all_of(slabs_.begin(), slabs_.end(), [&](const Slab& slab) {
      return width_of(type) == 4 ? slab.fits<uint32_t>() : slab.fits<uint64_t>();
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

#include <algorithm>
#include <atomic>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu/device/cuda_transfer.h"
#include "gpu/scatter/cuda_methods.h"
#include "gpu/scatter/exchange_kernels.cuh"
#include "gpu/scatter/exchange_plan.h"
#include "gpu/scatter/host_methods.h"
#include "gpu/scatter/scatter_kernels.cuh"
#include "storage/status.h"

namespace stride {

namespace {

// A slab's plan and what applying it needs, in device memory.
class Slab {
 public:
  Slab(const CudaContext& context, const ExchangeSlab& plan, cudaStream_t stream)
      : plan_(sizes(plan)), device_(context.device) {
    most_shared_ = device_.attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    shared_of_processor_ = device_.attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    auto keep = [&](auto* to, const auto& from) {
      *to = std::remove_reference_t<decltype(*to)>(context.device, stream, from.size() + 8);
      if (!from.empty())
        context.transfer.to_device(to->data(), from.data(), from.size() * sizeof(from[0]), stream);
    };
    keep(&picks_, plan.picks);
    keep(&pieces_, plan.pieces);
    keep(&chunk_piece_, plan.chunk_piece);
    keep(&chunk_pick_, plan.chunk_pick);
    keep(&part_target_, plan.part_target);
    keep(&part_item_, plan.part_item);
    keep(&part_group_, plan.part_group);
    keep(&group_targets_, plan.group_targets);
    keep(&group_list_, plan.group_list);
    keep(&list_, plan.list);
    keep(&heavy_hitters_, plan.heavy_hitters);
    stream_wait(stream);
    each([](auto& array) { array.outlive_stream(); });
  }

  // What is kept between its two kernels.
  uint64_t items() const { return plan_.items + plan_.heavy_hitter_sums(); }
  // Whether two blocks with numbers of this size find room in a processor: one alone is slower than
  // no exchange.
  template <class T>
  bool fits() const {
    constexpr uint64_t of_system = 1 << 10;  // in each block
    return 2 * (std::max(chunk_bytes<T>(), part_bytes<T>()) + of_system) <= shared_of_processor_;
  }
  uint64_t bytes() const {
    uint64_t sum = 0;
    const_cast<Slab*>(this)->each([&](auto& array) { sum += array.bytes(); });
    return sum;
  }

  // between: room for items().
  template <class T>
  void add(const TileSource& source, T* between, T* into, cudaStream_t stream) const {
    SlabRef slab = ref();
    if (items() == 0) return;
    launch<exchange_chunks<T>>(plan_.chunks, chunk_bytes<T>(), stream, source, slab, between);
    const uint32_t heavy_hitter_blocks =
        (plan_.heavy_hitter_count() + exchange_warps - 1) / exchange_warps;
    launch<add_parts<T>>(plan_.parts + heavy_hitter_blocks, part_bytes<T>(), stream, slab, between,
                         into);
  }

 private:
  static ExchangeSlab sizes(const ExchangeSlab& plan) {
    ExchangeSlab sizes;
    sizes.first = plan.first;
    sizes.sources = plan.sources;
    sizes.chunk_sources = plan.chunk_sources;
    sizes.chunks = plan.chunks;
    sizes.parts = plan.parts;
    sizes.items = plan.items;
    sizes.heavy_hitters = plan.heavy_hitters;
    sizes.most_picks = plan.most_picks;
    sizes.max_items = plan.max_items;
    sizes.most_list = plan.most_list;
    sizes.most_targets = plan.most_targets;
    return sizes;
  }
  static void stream_wait(cudaStream_t stream) {
    cuda_check(cudaStreamSynchronize(stream), "prepare targets");
  }
  template <class T>
  uint64_t chunk_bytes() const {
    return plan_.chunk_sources * sizeof(T) + plan_.most_picks * 2;
  }
  template <class T>
  uint64_t part_bytes() const {
    return (plan_.max_items + 16 + plan_.most_targets) * sizeof(T) + plan_.most_list * 2;
  }

  // The kernel may be started before the work that it waits for has ended.
  template <auto kernel, class... Arguments>
  void launch(uint32_t blocks, uint64_t shared_bytes, cudaStream_t stream,
              const Arguments&... arguments) const {
    static std::atomic<uint64_t> allowed{0};  // a bit for each device
    const uint64_t device = uint64_t{1} << device_.number() % 64;
    if ((allowed & device) == 0) {
      cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(most_shared_)),
                 "ask for shared memory");
      allowed |= device;
    }
    launch_early(device_, kernel, blocks, exchange_threads, shared_bytes, stream, arguments...);
  }

  template <class Use>
  void each(const Use& use) {
    use(picks_);
    use(pieces_);
    use(chunk_piece_);
    use(chunk_pick_);
    use(part_target_);
    use(part_item_);
    use(part_group_);
    use(group_targets_);
    use(group_list_);
    use(list_);
    use(heavy_hitters_);
  }
  SlabRef ref() const {
    return {.first = plan_.first,
            .sources = plan_.sources,
            .chunk_sources = plan_.chunk_sources,
            .max_items = plan_.max_items,
            .most_targets = plan_.most_targets,
            .picks = picks_.data(),
            .pieces = pieces_.data(),
            .chunk_piece = chunk_piece_.data(),
            .chunk_pick = chunk_pick_.data(),
            .part_target = part_target_.data(),
            .part_item = part_item_.data(),
            .part_group = part_group_.data(),
            .group_targets = group_targets_.data(),
            .group_list = group_list_.data(),
            .list = list_.data(),
            .items = plan_.items,
            .parts = plan_.parts,
            .heavy_hitter_count = plan_.heavy_hitter_count(),
            .heavy_hitters = heavy_hitters_.data()};
  }

  ExchangeSlab plan_;  // its sizes
  const CudaDevice& device_;
  uint64_t most_shared_ = 0, shared_of_processor_ = 0;
  CudaArray<uint16_t> picks_, list_;
  CudaArray<ExchangeSlab::Piece> pieces_;
  CudaArray<uint32_t> chunk_piece_, chunk_pick_, part_target_, part_item_, part_group_;
  CudaArray<uint32_t> group_targets_, group_list_;
  CudaArray<ExchangeSlab::HeavyHitter> heavy_hitters_;
};

class CudaPreparedScatter final : public PreparedScatter {
 public:
  // targets: in device memory.
  CudaPreparedScatter(const CudaContext& context, const ScatterReport& report,
                      CudaArray<std::byte> targets, uint32_t width, uint64_t sources,
                      uint64_t target_count)
      : PreparedScatter(sources, target_count),
        context_(context),
        targets_(std::move(targets)),
        width_(width) {
    report_ = report;
  }

  void plan(const Indexes& in_host_memory, uint32_t processors, cudaStream_t stream) {
    uint64_t most = 0;
    const uint64_t slab = exchange_slab_sources(this->targets());
    for (uint64_t first = 0; first < sources(); first += slab) {
      uint64_t n = std::min(slab, sources() - first);
      slabs_.emplace_back(context_,
                          plan_slab(in_host_memory, first, n, this->targets(), processors), stream);
      most = std::max(most, slabs_.back().items());
    }
    items_ = CudaArray<uint64_t>(context_.device, stream, most + 8);
    cuda_check(cudaStreamSynchronize(stream), "prepare targets");
    items_.outlive_stream();
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

Result<std::unique_ptr<PreparedScatter>> prepare_scatter_cuda(const CudaContext& context,
                                                              const Indexes& targets,
                                                              uint64_t target_count,
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
  kept.outlive_stream();
  auto prepared = std::make_unique<CudaPreparedScatter>(context, report, std::move(kept),
                                                        targets.width, targets.size, target_count);
  if (is_exchanged(targets.size, target_count)) {
    prepared->plan(in_host_memory, context.device.attribute(cudaDevAttrMultiProcessorCount),
                   stream);
  }
  return std::unique_ptr<PreparedScatter>(std::move(prepared));
}

}  // namespace stride

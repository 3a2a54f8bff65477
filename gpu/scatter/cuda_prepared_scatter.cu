#include <algorithm>
#include <atomic>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu/device/cuda_transfer.h"
#include "gpu/scatter/cuda_methods.h"
#include "gpu/scatter/exchange_plan.h"
#include "gpu/scatter/host_methods.h"
#include "gpu/scatter/scatter_kernels.cuh"
#include "storage/status.h"

namespace stride {

namespace {

constexpr uint32_t exchange_threads = 1024;
constexpr uint32_t exchange_warps = exchange_threads / 32;

// A ExchangeSlab in device memory.
struct SlabRef {
  uint64_t first;
  uint32_t sources, chunk_sources;
  uint32_t max_items, most_targets;
  const uint16_t* picks;
  const ExchangeSlab::Piece* pieces;
  const uint32_t *chunk_piece, *chunk_pick;
  const uint32_t *part_target, *part_item, *part_group;
  const uint32_t *group_targets, *group_list;
  const uint16_t* list;
  uint32_t items, parts, heavy_hitter_count;
  const ExchangeSlab::HeavyHitter* heavy_hitters;
};

// What is read once a call should not drive what lies between its kernels from the cache.
enum class Reads { once, again };

// Begins to copy n entries to a block's shared memory, behind its registers. Both sides are aligned
// to 16 bytes.
template <Reads reads, class E>
__device__ __forceinline__ void load(E* to, const E* from, uint32_t n) {
  constexpr uint32_t in_vector = 16 / sizeof(E);
  const uint32_t vectors = n / in_vector;
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  for (uint32_t i = threadIdx.x; i < vectors; i += exchange_threads) {
    const uint4* vector = reinterpret_cast<const uint4*>(from) + i;
    if constexpr (reads == Reads::once)
      asm volatile(
          "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(shared + i * 16),
          "l"(vector), "l"(policy)
          : "memory");
    else
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared + i * 16), "l"(vector)
                   : "memory");
  }
  for (uint32_t i = vectors * in_vector + threadIdx.x; i < n; i += exchange_threads)
    to[i] = from[i];
}
__device__ __forceinline__ void wait_until_in() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

// A piece is taken by half of a warp.
constexpr uint32_t half_threads = 16;
__device__ __forceinline__ ExchangeSlab::Piece piece_of(const ExchangeSlab::Piece& mine,
                                                        uint32_t thread) {
  uint2 words;
  memcpy(&words, &mine, sizeof words);
  words.x = __shfl_sync(whole_warp, words.x, thread, half_threads);
  words.y = __shfl_sync(whole_warp, words.y, thread, half_threads);
  ExchangeSlab::Piece piece;
  memcpy(&piece, &words, sizeof piece);
  return piece;
}
static_assert(sizeof(ExchangeSlab::Piece) == sizeof(uint2));
static_assert(exchange_piece_sources == half_threads * exchange_quad);

// Adds up the sums of `threads` neighbours.
template <class T>
__device__ __forceinline__ T sum_of(T sum, uint32_t threads) {
#pragma unroll
  for (uint32_t lanes = threads / 2; lanes > 0; lanes /= 2)
    sum = AddOp<T>::join(sum, __shfl_xor_sync(whole_warp, sum, lanes));
  return sum;
}

template <class T>
__device__ __forceinline__ void store_quad(T* to, const T (&quad)[exchange_quad]) {
#pragma unroll
  for (uint32_t k = 0; k < sizeof quad / 16; ++k) {
    uint4 vector;
    memcpy(&vector, reinterpret_cast<const std::byte*>(quad) + k * 16, 16);
    reinterpret_cast<uint4*>(to)[k] = vector;
  }
}

// A block a chunk: its sources go to their parts, or are added up for heavy hitters.
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
  const uint32_t first_pick = slab.chunk_pick[chunk];
  load<Reads::again>(picks, slab.picks + first_pick, slab.chunk_pick[chunk + 1] - first_pick);
  // Each half of a warp has every exchange_halves-th piece, and each of its threads brings one of
  // these.
  constexpr uint32_t exchange_halves = exchange_threads / half_threads;
  const uint32_t first_piece = slab.chunk_piece[chunk], last_piece = slab.chunk_piece[chunk + 1];
  const uint32_t half = threadIdx.x / half_threads, thread = threadIdx.x % half_threads;
  auto load_piece = [&](uint32_t from_piece) {
    const uint32_t p = from_piece + half + exchange_halves * thread;
    return p < last_piece ? slab.pieces[p] : ExchangeSlab::Piece{0, 0, 0};
  };
  ExchangeSlab::Piece mine = load_piece(first_piece);
  wait_for_earlier_work();
  if (source.numbers_aligned && source.type != NumberType::f16 && source.type != NumberType::bf16 &&
      source.numbers && (slab.first + begin) % 4 == 0) {
    load<Reads::once>(values, static_cast<const T*>(source.numbers) + slab.first + begin, n);
  } else {
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < n; i += exchange_threads)
      values[i] = number_at<T>(source, slab.first + begin + i);
  }
  wait_until_in();
  for (uint32_t from_piece = first_piece; from_piece < last_piece; from_piece += exchange_threads) {
    if (from_piece != first_piece) mine = load_piece(from_piece);
    const uint32_t turns = (last_piece - from_piece + exchange_halves - 1) / exchange_halves;
    for (uint32_t turn = 0; turn < min(turns, half_threads); ++turn) {
      const ExchangeSlab::Piece piece = piece_of(mine, turn);
      const uint16_t* from = picks + piece.begin;
      const bool is_sum = piece.to >= slab.items && piece.count > 0;
      if (!is_sum && thread * exchange_quad < piece.count) {
        const uint2 four = reinterpret_cast<const uint2*>(from)[thread];
        const T quad[exchange_quad] = {values[four.x & 0xFFFF], values[four.x >> 16],
                                       values[four.y & 0xFFFF], values[four.y >> 16]};
        store_quad(items + piece.to + thread * exchange_quad, quad);
      }
      if (!__any_sync(whole_warp, is_sum)) continue;
      T sum = AddOp<T>::none();
      if (is_sum)
        for (uint32_t j = thread; j < piece.count; j += half_threads)
          sum = AddOp<T>::join(sum, values[from[j]]);
      sum = sum_of(sum, half_threads);
      if (is_sum && thread == 0) items[piece.to] = sum;
    }
  }
}

// A warp a heavy hitter.
template <class T>
__device__ void add_heavy_hitter(const SlabRef& slab, uint32_t h, const T* items, T* into) {
  if (h >= slab.heavy_hitter_count) return;
  const ExchangeSlab::HeavyHitter hitter = slab.heavy_hitters[h];
  T sum = AddOp<T>::none();
  for (uint32_t i = hitter.begin + threadIdx.x % 32; i < slab.heavy_hitters[h + 1].begin; i += 32)
    sum = AddOp<T>::join(sum, items[i]);
  sum = sum_of(sum, 32);
  if (threadIdx.x % 32 == 0) into[hitter.target] = AddOp<T>::join(into[hitter.target], sum);
}

// A block a part: its targets add up their items, in order. Further blocks see to heavy hitters.
template <class T>
__global__ __launch_bounds__(exchange_threads) void add_parts(SlabRef slab, const T* items,
                                                              T* into) {
  extern __shared__ uint4 shared_vectors[];
  const uint32_t part = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  let_later_work_begin();
  if (part >= slab.parts) {
    wait_for_earlier_work();
    return add_heavy_hitter(slab, (part - slab.parts) * exchange_warps + warp, items, into);
  }
  const uint32_t first = slab.part_item[part], n = slab.part_item[part + 1] - first;
  const uint32_t first_target = slab.part_target[part];
  const uint32_t targets = slab.part_target[part + 1] - first_target;
  const uint32_t first_group = slab.part_group[part], last_group = slab.part_group[part + 1];
  const uint32_t first_list = slab.group_list[first_group];
  T* values = reinterpret_cast<T*>(shared_vectors);
  T* sums = values + slab.max_items + exchange_quad;
  auto* list = reinterpret_cast<uint16_t*>(sums + (slab.most_targets + 3) / 4 * 4);
  load<Reads::again>(list, slab.list + first_list, slab.group_list[last_group] - first_list);
  // A warp's first group; then always the next one, while it sees to one.
  uint32_t g = first_group + warp, target = no_exchange_target, begin = 0, end = 0;
  auto look_ahead = [&] {
    if (g >= last_group) return;
    target = slab.group_targets[g * exchange_group_targets + lane];
    begin = slab.group_list[g] - first_list;
    end = slab.group_list[g + 1] - first_list;
  };
  look_ahead();
  for (uint32_t t = threadIdx.x; t < targets; t += exchange_threads) sums[t] = AddOp<T>::none();
  wait_for_earlier_work();
  load<Reads::again>(values, items + first, n);
  if (threadIdx.x == 0) values[n] = AddOp<T>::none();
  wait_until_in();
  while (g < last_group) {
    const uint32_t to = target, list_end = end;
    uint32_t at = begin + lane;
    g += exchange_warps;
    look_ahead();
    T sum = AddOp<T>::none();
#pragma unroll 4
    for (; at < list_end; at += exchange_group_targets) sum = AddOp<T>::join(sum, values[list[at]]);
    if (to != no_exchange_target) sums[to - first_target] = sum;
  }
  __syncthreads();
  for (uint32_t t = threadIdx.x; t < targets; t += exchange_threads)
    if (!AddOp<T>::is_none(sums[t]))
      into[first_target + t] = AddOp<T>::join(into[first_target + t], sums[t]);
}
static_assert(exchange_group_targets == 32);

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

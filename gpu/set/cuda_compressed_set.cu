#include "gpu/set/cuda_set_base.cuh"
#include "gpu/set/cuda_set_kinds.h"

namespace stride {

namespace {

// One level up. A thread makes one item of the level above: the id of a pair's node, or the item
// that is left over. bad: rows some node of which is not there.
template <uint32_t group, bool put, class Entry, class In, class Item>
__global__ void __launch_bounds__(block_threads)
    fold_level(const __grid_constant__ PartsRef<Entry> parts, const In* items, uint64_t count,
               uint32_t width, Item* out, uint8_t* bad) {
  uint32_t above = items_above(width);
  uint64_t k = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  bool is_new = false;
  if (k < count * above) {
    uint64_t row =
        above % 2 == 0 && (above & (above - 1)) == 0 ? k >> (31 - __clz(above)) : k / above;
    auto p = static_cast<uint32_t>(k - row * above);
    const In* at = items + row * width + 2 * p;
    if (2 * p + 1 == width) {
      out[k] = at[0];
    } else if (!bad[row]) {
      Entry entry;
      if (width % 2 == 0 && sizeof(In) == 4) {
        uint2 pair = __ldcs(reinterpret_cast<const uint2*>(at));
        entry = static_cast<Entry>(pair.y) << (8 * sizeof(Item)) | pair.x;
      } else {
        entry = static_cast<Entry>(at[1]) << (8 * sizeof(Item)) | at[0];
      }
      uint64_t id;
      if constexpr (put) {
        id = put_entry<group>(parts, entry, &is_new);
        is_new &= entry != 0;
      } else {
        id = find_entry<group>(parts, entry);
      }
      if (id >= static_cast<Item>(absent)) bad[row] = 1;
      out[k] = static_cast<Item>(id);
    }
  }
  if constexpr (put) count_true(is_new, &parts.counters->size);
}

// The roots: of two items, or of one.
template <uint32_t group, bool put, class Entry, class In>
__global__ void __launch_bounds__(block_threads)
    fold_roots(const __grid_constant__ PartsRef<Entry> parts, const In* items, uint64_t count,
               uint32_t width, bool again, const uint8_t* bad, uint64_t* ids, uint32_t* bits) {
  uint64_t i = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  bool is_new = false, failed = false, counts = false;
  if (i < count && (!again || ids[i] == absent)) {
    uint64_t id = absent;
    if (!bad[i]) {
      Entry entry = items[i * width];
      if (width == 2) entry |= static_cast<Entry>(items[i * 2 + 1]) << (4 * sizeof(Entry));
      if constexpr (put) {
        id = put_entry<group>(parts, entry, &is_new);
        counts = is_new && entry != 0;
      } else {
        id = find_entry<group>(parts, entry);
      }
    }
    failed = id == absent;
    ids[i] = id;
  }
  if constexpr (put) {
    uint32_t news = __ballot_sync(full_warp, is_new);
    if (bits && threadIdx.x % 32 == 0 && i < count)
      bits[i / 32] = again ? bits[i / 32] | news : news;
    count_true(counts, &parts.counters->size);
    if (__syncthreads_or(failed)) count_true(failed, &parts.counters->failed);
  }
}

template <class Entry, class Item>
__global__ void expand_roots(const __grid_constant__ PartsRef<Entry> parts, const uint64_t* ids,
                             uint64_t count, uint32_t width, Item* out,
                             unsigned long long* first_bad) {
  uint64_t i = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (i >= count) return;
  Entry entry;
  if (!entry_of(parts, ids[i], &entry)) atomicMin(first_bad, static_cast<unsigned long long>(i));
  for (uint32_t p = 0; p < width; ++p)
    out[i * width + p] = static_cast<Item>(entry >> (p * 8 * sizeof(Item)));
}

// One level down: from the ids of pairs, and the item that was left over, to `width` items.
template <class Entry, class Item>
__global__ void expand_level(const __grid_constant__ PartsRef<Entry> parts, const Item* items,
                             uint64_t count, uint32_t width, Item* out) {
  uint32_t above = items_above(width);
  uint64_t k = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (k >= count * above) return;
  uint64_t row = k / above;
  auto p = static_cast<uint32_t>(k - row * above);
  Item* to = out + row * width + 2 * p;
  if (2 * p + 1 == width) {
    to[0] = items[k];
    return;
  }
  Entry entry;
  entry_of(parts, items[k], &entry);
  to[0] = static_cast<Item>(entry);
  to[1] = static_cast<Item>(entry >> (8 * sizeof(Item)));
}

template <class From, class To>
__global__ void convert_words(const From* from, uint64_t count, To* to) {
  uint64_t i = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (i < count) to[i] = static_cast<To>(from[i]);
}

template <class Item>
class CudaCompressedSet final : public CudaVectorSet {
 public:
  using Entry = std::conditional_t<sizeof(Item) == 4, uint64_t, Wide>;

  CudaCompressedSet(const CudaContext& context, const VectorSetOptions& options,
                    cudaStream_t stream)
      : CudaVectorSet(context, options.words),
        nodes_(context, options, options.node_capacity, static_cast<Item>(absent), stream),
        roots_(context, options, options.capacity, UINT64_MAX, stream) {}

  uint64_t size() const override { return roots_.size(); }
  uint64_t id_limit() const override { return roots_.id_limit(); }
  uint64_t nodes() const override { return nodes_.size(); }
  uint64_t memory_bytes() const override { return nodes_.memory_bytes() + roots_.memory_bytes(); }

 private:
  // With pieces of this size a level stays in the second-level cache until the next has read it.
  static constexpr uint64_t items_of_piece = 4 << 20;
  uint64_t rows_of_chunk() const override { return uint64_t{1} << 30; }

  struct Levels {
    CudaArray<Item> items, next;
    CudaArray<uint8_t> bad;
    const Item* top = nullptr;  // items of the roots
    uint32_t width = 0;
  };

  // Up to the items of the roots. level(items, width, out) does one.
  template <class Level>
  Levels climb(const uint32_t* vectors, uint64_t count, cudaStream_t stream, const Level& level) {
    Levels levels;
    uint64_t room = count * std::max(items_above(words_), 2u);
    levels.bad = CudaArray<uint8_t>(context_.device, stream, count);
    cuda_check(cudaMemsetAsync(levels.bad.data(), 0, count, stream), "clear flags");
    bool aligned = reinterpret_cast<uintptr_t>(vectors) % 8 == 0;
    if (sizeof(Item) > 4 || !aligned || words_ <= 2) room = std::max(room, count * words_);
    levels.items = CudaArray<Item>(context_.device, stream, room);
    levels.next = CudaArray<Item>(context_.device, stream, room);
    uint32_t width = words_;
    if (sizeof(Item) > 4 || !aligned || words_ <= 2) {
      convert_words<<<blocks_for(count * words_), block_threads, 0, stream>>>(
          vectors, count * words_, levels.items.data());
    } else {
      level(levels, reinterpret_cast<const Item*>(vectors), width, levels.items.data());
      width = items_above(width);
    }
    for (; width > 2; width = items_above(width)) {
      level(levels, static_cast<const Item*>(levels.items.data()), width, levels.next.data());
      std::swap(levels.items, levels.next);
    }
    levels.top = levels.items.data();
    levels.width = width;
    return levels;
  }

  template <bool put>
  void fold(const Levels& levels, const Item* items, uint64_t count, uint32_t width, Item* out,
            cudaStream_t stream) {
    nodes_.with_group([&](auto group) {
      fold_level<group(), put>
          <<<blocks_for(count * items_above(width)), block_threads, 0, stream>>>(
              nodes_.ref(), items, count, width, out, const_cast<uint8_t*>(levels.bad.data()));
    });
  }

  uint64_t put_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids, uint32_t* bits,
                     cudaStream_t stream) override {
    CudaArray<uint64_t> own;
    if (!ids) {
      own = CudaArray<uint64_t>(context_.device, stream, count);
      ids = own.data();
    }
    auto put_all = [&](bool again) {
      for (uint64_t at = 0; at < count;) {
        // Every node may be new; what there is room for decides how many rows go together.
        uint64_t rows = std::min(count - at, items_of_piece / items_above(words_) / 64 * 64);
        if (roots_.grows()) rows = rows_of_piece(rows, roots_.room(stream), rows);
        if (nodes_.grows() && words_ > 2)
          rows = rows_of_piece(rows, nodes_.room(stream) / (words_ - 2), rows);
        roots_.expect(rows);
        nodes_.expect(rows * (words_ > 2 ? words_ - 2 : 0));
        put_rows(vectors + at * words_, rows, again, ids + at, bits ? bits + at / 32 : nullptr,
                 stream);
        at += rows;
      }
      nodes_.read_counters(stream);
      return roots_.take_failed(stream);
    };
    uint64_t failed = put_all(false);
    while (failed > 0) {
      bool grew = nodes_.worth_growing() && nodes_.grow(stream);
      grew |= roots_.worth_growing() && roots_.grow(stream);
      if (!grew) break;
      failed = put_all(true);
    }
    return failed;
  }
  void put_rows(const uint32_t* vectors, uint64_t rows, bool again, uint64_t* ids, uint32_t* bits,
                cudaStream_t stream) {
    Levels levels = climb(vectors, rows, stream,
                          [&](const Levels& at, const Item* items, uint32_t width, Item* out) {
                            fold<true>(at, items, rows, width, out, stream);
                          });
    roots_.with_group([&](auto group) {
      fold_roots<group(), true><<<blocks_for(rows), block_threads, 0, stream>>>(
          roots_.ref(), levels.top, rows, levels.width, again,
          static_cast<const uint8_t*>(levels.bad.data()), ids, bits);
    });
  }
  void find_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids,
                  cudaStream_t stream) override {
    uint64_t most = items_of_piece / items_above(words_) / 64 * 64;
    for (uint64_t at = 0; at < count; at += most)
      find_piece(vectors + at * words_, std::min(most, count - at), ids + at, stream);
  }
  void find_piece(const uint32_t* vectors, uint64_t count, uint64_t* ids, cudaStream_t stream) {
    Levels levels = climb(vectors, count, stream,
                          [&](const Levels& at, const Item* items, uint32_t width, Item* out) {
                            fold<false>(at, items, count, width, out, stream);
                          });
    roots_.with_group([&](auto group) {
      fold_roots<group(), false><<<blocks_for(count), block_threads, 0, stream>>>(
          roots_.ref(), levels.top, count, levels.width, false,
          static_cast<const uint8_t*>(levels.bad.data()), ids, static_cast<uint32_t*>(nullptr));
    });
  }
  uint64_t get_chunk(const uint64_t* ids, uint64_t count, uint32_t* vectors,
                     cudaStream_t stream) override {
    uint64_t most = items_of_piece / words_ / 64 * 64;
    for (uint64_t at = 0; at < count; at += most) {
      uint64_t bad = get_piece(ids + at, std::min(most, count - at), vectors + at * words_, stream);
      if (bad != absent) return at + bad;
    }
    return absent;
  }
  uint64_t get_piece(const uint64_t* ids, uint64_t count, uint32_t* vectors, cudaStream_t stream) {
    CudaArray<Item> items(context_.device, stream, count * words_);
    CudaArray<Item> next(context_.device, stream, count * words_);
    FirstBad bad(context_.device, stream);
    expand_roots<<<blocks_for(count), block_threads, 0, stream>>>(
        roots_.ref(), ids, count, std::min(words_, 2u), items.data(), bad.data());
    std::vector<uint32_t> widths;
    for (uint32_t width = words_; width > 2; width = items_above(width)) widths.push_back(width);
    for (; !widths.empty(); widths.pop_back()) {
      uint32_t width = widths.back();
      expand_level<<<blocks_for(count * items_above(width)), block_threads, 0, stream>>>(
          nodes_.ref(), static_cast<const Item*>(items.data()), count, width, next.data());
      std::swap(items, next);
    }
    convert_words<<<blocks_for(count * words_), block_threads, 0, stream>>>(
        items.data(), count * words_, vectors);
    cuda_check(cudaGetLastError(), "get vectors");
    return bad.fetch();
  }
  void clear_all(cudaStream_t stream) override {
    nodes_.clear(stream);
    roots_.clear(stream);
  }

  CudaSlots<Entry> nodes_, roots_;
};

}  // namespace

Result<std::unique_ptr<VectorSet>> make_cuda_compressed_set(const CudaContext& context,
                                                            const VectorSetOptions& options) {
  if (!options.wide_nodes) return make_set_of<CudaCompressedSet<uint32_t>>(context, options);
  STRIDE_TRY(check_wide(context.device));
  return make_set_of<CudaCompressedSet<uint64_t>>(context, options);
}

}  // namespace stride

#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <utility>
#include <vector>

#include "gpu/device/cuda_space.cuh"
#include "gpu/device/cuda_transfer.h"
#include "gpu/set/cuda_vector_set.h"
#include "gpu/set/vector_layout.h"
#include "gpu/set/vector_set_plan.h"

namespace stride {

namespace {

constexpr uint64_t absent = VectorSet::absent;
constexpr uint32_t full_warp = 0xFFFFFFFF;

// What kernels count.
struct Counters {
  unsigned long long size;  // of a table of slots: but for the entry of zeros
  unsigned long long failed;
  uint32_t zero;                 // the entry of zeros is there
};

// Parts of a table of slots, oldest first.
template <class Entry>
struct PartsRef {
  static constexpr uint32_t most = 28;
  SlotLayout layout[most];
  Entry* slots[most];
  uint64_t first[most];  // the first part's slots come first, and so on
  uint32_t count;
  VectorHash hash;
  Counters* counters;
};

template <uint32_t bytes>
struct PieceOf;
template <>
struct PieceOf<8> {
  using Type = uint2;
};
template <>
struct PieceOf<16> {
  using Type = uint4;
};

// Neighbouring slots. What was once read of a slot that is not empty is what it will always hold;
// one that seems to be empty may have been filled since.
template <class Entry, uint32_t count>
__device__ __forceinline__ void read_slots(const Entry* slots, Entry (&out)[count]) {
  if constexpr (sizeof(Entry) == 16) {
    for (uint32_t i = 0; i < count; ++i) {
      // As a whole, or not at all.
      uint64_t low, high;
      asm volatile("{ .reg .b128 x; ld.relaxed.gpu.b128 x, [%2]; mov.b128 {%0, %1}, x; }"
                   : "=l"(low), "=l"(high)
                   : "l"(slots + i)
                   : "memory");
      out[i] = Wide{high} << 64 | low;
    }
  } else {
    constexpr uint32_t bytes = count * sizeof(Entry), piece = bytes < 16 ? bytes : 16;
    using Piece = typename PieceOf<piece>::Type;
    Piece pieces[bytes / piece];
#pragma unroll
    for (uint32_t i = 0; i < bytes / piece; ++i)
      pieces[i] = __ldca(reinterpret_cast<const Piece*>(slots) + i);
    memcpy(out, pieces, bytes);
  }
}

// What is not read again.
template <class Entry>
__device__ __forceinline__ Entry read_once(const Entry* entry) {
  if constexpr (sizeof(Entry) == 16) {
    ulonglong2 x = __ldcs(reinterpret_cast<const ulonglong2*>(entry));
    return Wide{x.y} << 64 | x.x;
  } else {
    return __ldcs(entry);
  }
}

// Puts an entry into a slot that seemed to be empty, and returns what was there.
__device__ inline uint32_t take_slot(uint32_t* slot, uint32_t entry) {
  return atomicCAS(slot, 0u, entry);
}
__device__ inline uint64_t take_slot(uint64_t* slot, uint64_t entry) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(slot), 0ull, entry);
}
__device__ inline Wide take_slot(Wide* slot, Wide entry) {
#if __CUDA_ARCH__ >= 900
  uint64_t low, high;
  asm volatile(
      "{ .reg .b128 seen, none, x; mov.b128 none, {%3, %3}; mov.b128 x, {%4, %5};"
      " atom.relaxed.gpu.global.cas.b128 seen, [%2], none, x; mov.b128 {%0, %1}, seen; }"
      : "=l"(low), "=l"(high)
      : "l"(slot), "l"(uint64_t{0}), "l"(static_cast<uint64_t>(entry)),
        "l"(static_cast<uint64_t>(entry >> 64))
      : "memory");
  return Wide{high} << 64 | low;
#else
  (void)slot, (void)entry;
  __trap();  // make_vector_set() refuses such sets there
  return 0;
#endif
}

// The id of an entry, or `absent`. group: slots that are read at once.
template <uint32_t group, class Entry>
__device__ __forceinline__ uint64_t find_in(const PartsRef<Entry>& parts, uint32_t part,
                                            Entry entry, uint64_t first) {
  BucketWalk walk(parts.layout[part], first);
  do {
    for (uint32_t s = 0; s < parts.layout[part].bucket_slots; s += group) {
      Entry seen[group];
      read_slots(parts.slots[part] + walk.slot() + s, seen);
#pragma unroll
      for (uint32_t i = 0; i < group; ++i) {
        if (seen[i] == entry) return 1 + parts.first[part] + walk.slot() + s + i;
        if (seen[i] == 0) return absent;
      }
    }
  } while (walk.next([&] { return parts.hash.second(entry); }));
  return absent;
}

template <uint32_t group, class Entry>
__device__ __forceinline__ uint64_t find_entry(const PartsRef<Entry>& parts, Entry entry) {
  if (entry == 0) return parts.counters->zero ? 0 : absent;
  uint64_t first = parts.hash.first(entry), id = absent;
  for (uint32_t p = 0; p < parts.count && id == absent; ++p)
    id = find_in<group>(parts, p, entry, first);
  return id;
}

template <uint32_t group, class Entry>
__device__ __forceinline__ uint64_t put_entry(const PartsRef<Entry>& parts, Entry entry,
                                              bool* is_new) {
  if (entry == 0) {
    uint32_t* zero = &parts.counters->zero;
    *is_new = *static_cast<volatile uint32_t*>(zero) == 0 && atomicExch(zero, 1u) == 0;
    return 0;
  }
  uint64_t first = parts.hash.first(entry);
  uint32_t newest = parts.count - 1;
  for (uint32_t p = 0; p < newest; ++p) {
    uint64_t id = find_in<group>(parts, p, entry, first);
    if (id != absent) return id;
  }
  const SlotLayout& layout = parts.layout[newest];
  Entry* slots = parts.slots[newest];
  BucketWalk walk(layout, first);
  do {
    for (uint32_t s = 0; s < layout.bucket_slots; s += group) {
      uint64_t at = walk.slot() + s;
      Entry seen[group];
      read_slots(slots + at, seen);
#pragma unroll
      for (uint32_t i = 0; i < group; ++i) {
        if (seen[i] == 0) {
          seen[i] = take_slot(slots + at + i, entry);
          *is_new = seen[i] == 0;
          if (*is_new) return 1 + parts.first[newest] + at + i;
        }
        if (seen[i] == entry) return 1 + parts.first[newest] + at + i;
      }
    }
  } while (walk.next([&] { return parts.hash.second(entry); }));
  return absent;
}

// Adds up what the threads of a block say.
__device__ __forceinline__ void count_true(bool yes, unsigned long long* counter) {
  auto n = static_cast<uint32_t>(__syncthreads_count(yes));
  if (threadIdx.x == 0 && n) atomicAdd(counter, n);
}

// again: only those that did not fit before.
template <uint32_t group, class Entry>
__global__ void __launch_bounds__(block_threads)
    put_slots(const __grid_constant__ PartsRef<Entry> parts, const Entry* entries, uint64_t count,
              bool again, uint64_t* ids, uint32_t* bits) {
  uint64_t i = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  bool is_new = false, failed = false, counts = false;
  if (i < count && (!again || ids[i] == absent)) {
    Entry entry = read_once(entries + i);
    uint64_t id = put_entry<group>(parts, entry, &is_new);
    __stcs(ids + i, id);
    counts = is_new && entry != 0;
    failed = id == absent;
  }
  uint32_t news = __ballot_sync(full_warp, is_new);
  if (bits && threadIdx.x % 32 == 0 && i < count) bits[i / 32] = again ? bits[i / 32] | news : news;
  count_true(counts, &parts.counters->size);
  if (__syncthreads_or(failed)) count_true(failed, &parts.counters->failed);
}

template <uint32_t group, class Entry>
__global__ void __launch_bounds__(block_threads)
    find_slots(const __grid_constant__ PartsRef<Entry> parts, const Entry* entries, uint64_t count,
               uint64_t* ids) {
  uint64_t i = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (i < count) __stcs(ids + i, find_entry<group>(parts, read_once(entries + i)));
}

// The entry of an id, if there is one.
template <class Entry>
__device__ __forceinline__ bool entry_of(const PartsRef<Entry>& parts, uint64_t id, Entry* entry) {
  *entry = 0;
  if (id == 0) return parts.counters->zero != 0;
  for (uint32_t p = 0; p < parts.count; ++p) {
    uint64_t at = id - 1 - parts.first[p];
    if (at >= parts.layout[p].slots()) continue;
    *entry = parts.slots[p][at];
    return *entry != 0;
  }
  return false;
}

template <class Entry>
__global__ void get_slots(const __grid_constant__ PartsRef<Entry> parts, const uint64_t* ids,
                          uint64_t count, Entry* out, unsigned long long* first_bad) {
  uint64_t i = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (i >= count) return;
  Entry entry;
  if (!entry_of(parts, ids[i], &entry)) atomicMin(first_bad, static_cast<unsigned long long>(i));
  out[i] = entry;
}

// A table of slots on the device, as SlotTable is on the host.
template <class Entry>
class CudaSlots {
 public:
  CudaSlots(const CudaContext& context, const VectorSetOptions& options, uint64_t capacity,
            uint64_t most_ids, cudaStream_t stream)
      : device_(context.device),
        options_(options),
        most_ids_(most_ids),
        counters_(device_, stream, 1) {
    ref_.count = 0;
    ref_.hash = VectorHash{options.seed};
    ref_.counters = counters_.data();
    counters_.settle();
    add_part(options.grows ? std::max(capacity, 16 * spare_rows) : capacity, stream);
    clear(stream);
  }

  const PartsRef<Entry>& ref() const { return ref_; }
  uint64_t size() const { return size_; }
  uint64_t id_limit() const { return 1 + ref_.first[ref_.count - 1] + slots_of_newest(); }
  uint64_t memory_bytes() const { return (id_limit() - 1) * sizeof(Entry); }
  bool grows() const { return options_.grows && can_grow_; }

  void clear(cudaStream_t stream) {
    ref_.count = 1;
    parts_.resize(1);
    capacity_ = first_capacity_;
    clear_part(stream);
    const Counters none{};
    cuda_check(
        cudaMemcpyAsync(counters_.data(), &none, sizeof none, cudaMemcpyHostToDevice, stream),
        "clear a set");
    cuda_check(cudaStreamSynchronize(stream), "clear a set");
    size_ = before_ = counted_ = coming_ = failed_ = 0;
    can_grow_ = true;
  }

  // How many entries may come before the table is fuller than it should be; makes room for some.
  uint64_t room(cudaStream_t stream) {
    if (is_full()) settle(stream);
    if (is_full()) grow(stream);
    return left();
  }
  // Announces entries that are being put, all of which may be new.
  void expect(uint64_t entries) { coming_ += entries; }
  // Doubles the room; false: there is no memory for it.
  bool grow(cudaStream_t stream) {
    if (!grows() || ref_.count == PartsRef<Entry>::most) return false;
    can_grow_ = id_limit() + layout_of(options_, capacity_).slots() <= most_ids_;
    if (!can_grow_) return false;
    try {
      add_part(capacity_, stream);
    } catch (const CudaFailure& failure) {
      if (failure.status().code() != StatusCode::resource_exhausted) throw;
      can_grow_ = false;
      return false;
    }
    clear_part(stream);
    before_ = counted_;
    return true;
  }
  bool worth_growing() const { return counted_ * 64 >= id_limit(); }
  // How many did not fit, of all since this was last asked.
  uint64_t take_failed(cudaStream_t stream) {
    settle(stream);
    return std::exchange(failed_, 0);
  }
  // Reads the counters, and sets that of failures to 0.
  Counters settle(cudaStream_t stream) {
    Counters now;
    cuda_check(cudaMemcpyAsync(&now, counters_.data(), sizeof now, cudaMemcpyDeviceToHost, stream),
               "count vectors");
    cuda_check(cudaStreamSynchronize(stream), "put vectors");
    counted_ = now.size;
    coming_ = 0;
    failed_ += now.failed;
    size_ = now.size + now.zero;
    if (now.failed) {
      Counters reset = now;
      reset.failed = 0;
      cuda_check(
          cudaMemcpyAsync(counters_.data(), &reset, sizeof reset, cudaMemcpyHostToDevice, stream),
          "count vectors");
      cuda_check(cudaStreamSynchronize(stream), "count vectors");
    }
    return now;
  }

  // Calls launch(group) with how many slots are read at once, as a constant.
  template <class Launch>
  void with_group(const Launch& launch) const {
    constexpr uint32_t sector = 32 / sizeof(Entry);
    if (options_.bucket_slots >= sector) {
      launch(std::integral_constant<uint32_t, sector>());
    } else {
      launch(std::integral_constant<uint32_t, 2>());
    }
    cuda_check(cudaGetLastError(), "search a set");
  }

 private:
  uint64_t newest() const { return ref_.count == 1 ? capacity_ : capacity_ / 2; }
  uint64_t left() const {
    uint64_t there = counted_ + coming_ - before_;
    return newest() > there ? newest() - there : 0;
  }
  bool is_full() const { return left() * 16 < newest(); }
  uint64_t slots_of_newest() const { return ref_.layout[ref_.count - 1].slots(); }
  void add_part(uint64_t capacity, cudaStream_t stream) {
    SlotLayout layout = layout_of(options_, capacity);
    device_.require(layout.slots() * sizeof(Entry));
    CudaArray<Entry> slots(device_, stream, layout.slots());
    slots.settle();
    uint32_t p = ref_.count;
    ref_.layout[p] = layout;
    ref_.slots[p] = slots.data();
    ref_.first[p] = p == 0 ? 0 : ref_.first[p - 1] + slots_of_newest();
    parts_.push_back(std::move(slots));
    if (p == 0) first_capacity_ = capacity;
    capacity_ = p == 0 ? capacity : 2 * capacity_;
    ++ref_.count;
  }
  void clear_part(cudaStream_t stream) {
    cuda_check(
        cudaMemsetAsync(ref_.slots[ref_.count - 1], 0, slots_of_newest() * sizeof(Entry), stream),
        "clear a table");
  }

  CudaDevice& device_;
  VectorSetOptions options_;
  uint64_t most_ids_;
  CudaArray<Counters> counters_;
  std::vector<CudaArray<Entry>> parts_;
  PartsRef<Entry> ref_;
  uint64_t capacity_ = 0, first_capacity_ = 0;  // of all parts, and of the first
  uint64_t size_ = 0, before_ = 0;              // before: entries of all parts but the newest
  uint64_t counted_ = 0;                        // entries, when last looked
  uint64_t coming_ = 0, failed_ = 0;
  bool can_grow_ = true;
};

// The first row of one call whose id was never given: several may be under way.
class FirstBad {
 public:
  FirstBad(CudaDevice& device, cudaStream_t stream) : row_(device, stream, 1), stream_(stream) {
    cuda_check(cudaMemsetAsync(row_.data(), 0xFF, row_.bytes(), stream), "clear counters");
  }
  unsigned long long* data() { return row_.data(); }
  // Or `absent`.
  uint64_t fetch() {
    unsigned long long row;
    cuda_check(cudaMemcpyAsync(&row, row_.data(), sizeof row, cudaMemcpyDeviceToHost, stream_),
               "get vectors");
    cuda_check(cudaStreamSynchronize(stream_), "get vectors");
    return row;
  }

 private:
  CudaArray<unsigned long long> row_;
  cudaStream_t stream_;
};

// Arrays of a call that lie in host memory, as arrays of the device.
class DeviceArguments {
 public:
  DeviceArguments(const CudaContext& context, cudaStream_t stream)
      : context_(context), stream_(stream) {}

  // In: what is to be read.
  template <class T>
  const T* in(const T* data, uint64_t n) {
    if (n == 0 || context_.device.owns(data)) return data;
    T* there = room<T>(n);
    context_.transfer.to_device(there, data, n * sizeof(T), stream_);
    return there;
  }
  // Out: what is to be written, or null. Called in any order; bring_back() copies.
  template <class T>
  T* out(T* data, uint64_t n) {
    if (!data || n == 0 || context_.device.owns(data)) return data;
    T* there = room<T>(n);
    outs_.push_back({data, there, n * sizeof(T)});
    return there;
  }
  void bring_back() {
    for (const Out& out : outs_) context_.transfer.to_host(out.to, out.from, out.bytes, stream_);
  }
  template <class T>
  T* room(uint64_t n) {
    arrays_.emplace_back(context_.device, stream_, n * sizeof(T));
    return reinterpret_cast<T*>(arrays_.back().data());
  }

 private:
  struct Out {
    void* to;
    const void* from;
    uint64_t bytes;
  };
  CudaContext context_;
  cudaStream_t stream_;
  std::vector<CudaArray<std::byte>> arrays_;
  std::vector<Out> outs_;
};

// Sets of a device: calls come in chunks whose arrays are on the device.
class CudaVectorSet : public VectorSet {
 protected:
  CudaVectorSet(const CudaContext& context, uint32_t words) : VectorSet(words), context_(context) {}

  // Rows of a chunk: what is kept of each while it is under way stays near the caches' size.
  virtual uint64_t rows_of_chunk() const = 0;
  // bits: null, or (count + 31) / 32 words. Return how many did not fit.
  virtual uint64_t put_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids, uint32_t* bits,
                             cudaStream_t stream) = 0;
  virtual void find_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids,
                          cudaStream_t stream) = 0;
  // The first row whose id was never given, or `absent`.
  virtual uint64_t get_chunk(const uint64_t* ids, uint64_t count, uint32_t* vectors,
                             cudaStream_t stream) = 0;
  virtual void clear_all(cudaStream_t stream) = 0;

  CudaContext context_;

 private:
  // At most so many bytes of host memory are taken at once: a copy of them is on the device
  // meanwhile.
  static constexpr uint64_t most_bytes_copied = 256 << 20;

  const uint32_t* words_of(const KeyColumn& vectors) const {
    return reinterpret_cast<const uint32_t*>(vectors.data);
  }
  uint64_t rows_at_once(bool on_device) const {
    uint64_t rows = rows_of_chunk();
    if (!on_device) rows = std::min(rows, most_bytes_copied / (words_ * 4));
    return std::max<uint64_t>(rows / 64 * 64, 64);
  }
  // Calls chunk(first, rows) for one after the other.
  template <class Chunk>
  static void in_chunks(uint64_t count, uint64_t rows, const Chunk& chunk) {
    for (uint64_t at = 0; at < count; at += rows) chunk(at, std::min(rows, count - at));
  }
  Status check_alignment(const void* data, uint64_t alignment) const {
    if (!context_.device.owns(data) || reinterpret_cast<uintptr_t>(data) % alignment == 0)
      return {};
    return Status::invalid("an array on the device that is not aligned to " +
                           std::to_string(alignment) + " bytes")
        .with_remedy("align vectors to 4 bytes, and ids and bits to 8");
  }

  Result<uint64_t> put_vectors(const KeyColumn& vectors, uint64_t* ids,
                               uint64_t* was_new) override {
    STRIDE_TRY(check_alignment(vectors.data, 4));
    STRIDE_TRY(check_alignment(ids, 8));
    STRIDE_TRY(check_alignment(was_new, 8));
    return cuda_guarded([&]() -> Result<uint64_t> {
      CudaStream stream(context_.device);
      uint64_t failed = 0;
      bool here = context_.device.owns(vectors.data);
      in_chunks(vectors.size, rows_at_once(here), [&](uint64_t at, uint64_t rows) {
        DeviceArguments arguments(context_, stream);
        const uint32_t* in = arguments.in(words_of(vectors) + at * words_, rows * words_);
        uint64_t* out = arguments.out(ids ? ids + at : nullptr, rows);
        uint64_t* bits = arguments.out(was_new ? was_new + at / 64 : nullptr, bitmap_words(rows));
        // Warps write 32 bits each.
        if (bits)
          cuda_check(cudaMemsetAsync(bits + bitmap_words(rows) - 1, 0, 8, stream), "clear bits");
        failed += put_chunk(in, rows, out, reinterpret_cast<uint32_t*>(bits), stream);
        arguments.bring_back();
        stream.wait();
      });
      return failed;
    });
  }
  Status find_vectors(const KeyColumn& vectors, uint64_t* ids) override {
    STRIDE_TRY(check_alignment(vectors.data, 4));
    STRIDE_TRY(check_alignment(ids, 8));
    return cuda_guarded([&] {
      CudaStream stream(context_.device);
      bool here = context_.device.owns(vectors.data) && context_.device.owns(ids);
      in_chunks(vectors.size, rows_at_once(here), [&](uint64_t at, uint64_t rows) {
        DeviceArguments arguments(context_, stream);
        const uint32_t* in = arguments.in(words_of(vectors) + at * words_, rows * words_);
        find_chunk(in, rows, arguments.out(ids + at, rows), stream);
        arguments.bring_back();
      });
      stream.wait();
      return Status();
    });
  }
  Result<uint64_t> get_vectors(std::span<const uint64_t> ids, std::byte* vectors) override {
    STRIDE_TRY(check_alignment(ids.data(), 8));
    STRIDE_TRY(check_alignment(vectors, 4));
    return cuda_guarded([&]() -> Result<uint64_t> {
      CudaStream stream(context_.device);
      uint64_t bad = absent;
      bool here = context_.device.owns(vectors) && context_.device.owns(ids.data());
      in_chunks(ids.size(), rows_at_once(here), [&](uint64_t at, uint64_t rows) {
        DeviceArguments arguments(context_, stream);
        const uint64_t* in = arguments.in(ids.data() + at, rows);
        auto* to = reinterpret_cast<uint32_t*>(vectors) + at * words_;
        uint64_t row = get_chunk(in, rows, arguments.out(to, rows * words_), stream);
        arguments.bring_back();
        if (row != absent) bad = std::min(bad, at + row);
      });
      stream.wait();
      return bad;
    });
  }
  Status clear_vectors() override {
    return cuda_guarded([&] {
      CudaStream stream(context_.device);
      clear_all(stream);
      stream.wait();
      return Status();
    });
  }
};

template <class Entry>
class CudaSlotSet final : public CudaVectorSet {
 public:
  CudaSlotSet(const CudaContext& context, const VectorSetOptions& options, cudaStream_t stream)
      : CudaVectorSet(context, options.words),
        table_(context, options, options.capacity, UINT64_MAX, stream) {}

  uint64_t size() const override { return table_.size(); }
  uint64_t id_limit() const override { return table_.id_limit(); }
  uint64_t memory_bytes() const override { return table_.memory_bytes(); }

 private:
  uint64_t rows_of_chunk() const override { return uint64_t{1} << 30; }

  // Vectors of two words may begin at any word.
  const Entry* entries(const uint32_t* vectors, uint64_t count, CudaArray<Entry>* aligned,
                       cudaStream_t stream) const {
    if (reinterpret_cast<uintptr_t>(vectors) % sizeof(Entry) == 0)
      return reinterpret_cast<const Entry*>(vectors);
    *aligned = CudaArray<Entry>(context_.device, stream, count);
    cuda_check(cudaMemcpyAsync(aligned->data(), vectors, count * sizeof(Entry),
                               cudaMemcpyDeviceToDevice, stream),
               "align vectors");
    return aligned->data();
  }
  uint64_t put_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids, uint32_t* bits,
                     cudaStream_t stream) override {
    CudaArray<Entry> aligned;
    CudaArray<uint64_t> own;
    const Entry* in = entries(vectors, count, &aligned, stream);
    if (!ids) {
      own = CudaArray<uint64_t>(context_.device, stream, count);
      ids = own.data();
    }
    for (uint64_t at = 0; at < count;) {
      uint64_t rows = count - at;
      if (table_.grows()) rows = rows_of_piece(rows, table_.room(stream), rows);
      table_.expect(rows);
      put(in + at, rows, false, ids + at, bits ? bits + at / 32 : nullptr, stream);
      at += rows;
    }
    uint64_t failed = table_.take_failed(stream);
    // Vectors that were made to collide fill a few buckets long before the table is full.
    while (failed > 0 && table_.worth_growing() && table_.grow(stream)) {
      put(in, count, true, ids, bits, stream);
      failed = table_.take_failed(stream);
    }
    return failed;
  }
  void put(const Entry* in, uint64_t rows, bool again, uint64_t* ids, uint32_t* bits,
           cudaStream_t stream) {
    table_.with_group([&](auto group) {
      put_slots<group()><<<blocks_for(rows), block_threads, 0, stream>>>(table_.ref(), in, rows,
                                                                         again, ids, bits);
    });
  }
  void find_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids,
                  cudaStream_t stream) override {
    CudaArray<Entry> aligned;
    const Entry* in = entries(vectors, count, &aligned, stream);
    table_.with_group([&](auto group) {
      find_slots<group()>
          <<<blocks_for(count), block_threads, 0, stream>>>(table_.ref(), in, count, ids);
    });
  }
  uint64_t get_chunk(const uint64_t* ids, uint64_t count, uint32_t* vectors,
                     cudaStream_t stream) override {
    CudaArray<Entry> aligned;
    auto* out = reinterpret_cast<Entry*>(vectors);
    bool is_aligned = reinterpret_cast<uintptr_t>(vectors) % sizeof(Entry) == 0;
    if (!is_aligned) {
      aligned = CudaArray<Entry>(context_.device, stream, count);
      out = aligned.data();
    }
    FirstBad bad(context_.device, stream);
    get_slots<<<blocks_for(count), block_threads, 0, stream>>>(table_.ref(), ids, count, out,
                                                               bad.data());
    cuda_check(cudaGetLastError(), "get vectors");
    if (!is_aligned)
      cuda_check(
          cudaMemcpyAsync(vectors, out, count * sizeof(Entry), cudaMemcpyDeviceToDevice, stream),
          "get vectors");
    return bad.fetch();
  }
  void clear_all(cudaStream_t stream) override { table_.clear(stream); }

  CudaSlots<Entry> table_;
};

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
class CudaTreeSet final : public CudaVectorSet {
 public:
  using Entry = std::conditional_t<sizeof(Item) == 4, uint64_t, Wide>;

  CudaTreeSet(const CudaContext& context, const VectorSetOptions& options, cudaStream_t stream)
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
      nodes_.settle(stream);
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
      uint64_t bad =
          get_piece(ids + at, std::min(most, count - at), vectors + at * words_, stream);
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

// Vectors by dense ids, in chunks that never move.
struct StoreRef {
  static constexpr uint32_t most = GrowingChunks::most;
  uint32_t* chunks[most];
  uint64_t first;  // vectors of the first chunk
  uint32_t words;

  __device__ __forceinline__ uint32_t* at(uint64_t id) const {
    if (id < first) return chunks[0] + id * words;
    uint32_t chunk = GrowingChunks::chunk_of(id, first);
    return chunks[chunk] + (id - GrowingChunks::begin(chunk, first)) * words;
  }
};

struct DenseCounters {
  unsigned long long size;
  unsigned long long failed;
};

struct DenseRef {
  SlotLayout layout;
  uint64_t* slots;
  StoreRef store;
  VectorHash hash;
  DenseCounters* counters;
};

__device__ __forceinline__ uint64_t pair_of(uint2 x) { return uint64_t{x.y} << 32 | x.x; }

// Hashes and comparisons by pieces: of as many words as vectors are aligned to.
template <class Piece>
__device__ __forceinline__ uint64_t hash_of(const VectorHash& hash, const uint32_t* vector,
                                            uint32_t words, bool is_first) {
  uint64_t state = hash.begin(is_first);
  const auto* pieces = reinterpret_cast<const Piece*>(vector);
  if constexpr (sizeof(Piece) == 16) {
    for (uint32_t i = 0; i < words / 4; ++i) {
      uint4 x = pieces[i];
      state = VectorHash::add(state, pair_of({x.x, x.y}), is_first);
      state = VectorHash::add(state, pair_of({x.z, x.w}), is_first);
    }
  } else if constexpr (sizeof(Piece) == 8) {
    for (uint32_t i = 0; i < words / 2; ++i)
      state = VectorHash::add(state, pair_of(pieces[i]), is_first);
  } else {
    for (uint32_t i = 0; i < words; i += 2) {
      uint32_t high = i + 1 < words ? pieces[i + 1] : 0;
      state = VectorHash::add(state, pair_of({pieces[i], high}), is_first);
    }
  }
  return VectorHash::end(state, words);
}

__device__ __forceinline__ bool same(uint32_t a, uint32_t b) { return a == b; }
__device__ __forceinline__ bool same(uint2 a, uint2 b) { return a.x == b.x && a.y == b.y; }
__device__ __forceinline__ bool same(uint4 a, uint4 b) {
  return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
}

template <class Piece>
__device__ __forceinline__ bool equal(const uint32_t* a, const uint32_t* b, uint32_t words) {
  const auto* left = reinterpret_cast<const Piece*>(a);
  const auto* right = reinterpret_cast<const Piece*>(b);
  for (uint32_t i = 0; i < words / (sizeof(Piece) / 4); ++i)
    if (!same(left[i], right[i])) return false;
  return true;
}

// What a row of a batch found, until ids are known.
struct Found {
  static constexpr uint64_t is_id = uint64_t{1} << 63, is_row = uint64_t{1} << 62;
  static constexpr uint64_t nothing = UINT64_MAX;
  static constexpr uint64_t mask = is_row - 1;
};

// Each row finds its vector among those stored and those of other rows, or leaves its own number
// there; of equal ones the smallest stays.
template <class Piece>
__global__ void __launch_bounds__(block_threads)
    claim_rows(const __grid_constant__ DenseRef set, const uint32_t* vectors, uint64_t count,
               uint64_t* found) {
  uint64_t row = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  bool failed = false;
  if (row < count) {
    uint32_t words = set.store.words;
    const uint32_t* vector = vectors + row * words;
    uint64_t before = set.counters->size;
    uint64_t hash = hash_of<Piece>(set.hash, vector, words, true);
    uint64_t own = DenseEntry::of(hash, before + row), result = Found::nothing;
    BucketWalk walk(set.layout, hash);
    bool more = true;
    while (more) {
      for (uint32_t s = 0; more && s < set.layout.bucket_slots; s += 2) {
        uint64_t at = walk.slot() + s, seen[2];
        read_slots(set.slots + at, seen);
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i) {
          if (!more) continue;
          if (seen[i] == 0) seen[i] = take_slot(set.slots + at + i, own);
          if (seen[i] == 0) {
            result = at + i;
            more = false;
          } else if (DenseEntry::may_be(seen[i], hash)) {
            uint64_t number = DenseEntry::number(seen[i]);
            if (number < before) {
              if (!equal<Piece>(vector, set.store.at(number), words)) continue;
              result = Found::is_id | number;
            } else {
              if (!equal<Piece>(vector, vectors + (number - before) * words, words)) continue;
              if (before + row < number)
                atomicMin(reinterpret_cast<unsigned long long*>(set.slots + at + i), own);
              result = at + i;
            }
            more = false;
          }
        }
      }
      if (more) more = walk.next([&] { return hash_of<Piece>(set.hash, vector, words, false); });
    }
    found[row] = result;
    failed = result == Found::nothing;
  }
  if (__syncthreads_or(failed)) count_true(failed, &set.counters->failed);
}

// Which rows are new: those whose own number stayed.
__global__ void settle_rows(const __grid_constant__ DenseRef set, uint64_t count, uint64_t* found,
                            uint32_t* news) {
  uint64_t row = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  bool is_new = false;
  if (row < count && !(found[row] & Found::is_id)) {
    uint64_t owner = DenseEntry::number(__ldcg(set.slots + found[row])) - set.counters->size;
    is_new = owner == row;
    if (!is_new) found[row] = Found::is_row | owner;
  }
  uint32_t word = __ballot_sync(full_warp, is_new);
  if (threadIdx.x % 32 == 0 && row < count) news[row / 32] = word;
}

struct CountNews {
  const uint32_t* news;
  STRIDE_HD uint32_t operator()(uint64_t i) const { return count_bits(news[i]); }
};

template <class Piece>
__global__ void finish_rows(const __grid_constant__ DenseRef set, const uint32_t* vectors,
                            uint64_t count, const uint64_t* found, const uint32_t* news,
                            const uint32_t* ranks, bool again, uint64_t* ids, uint32_t* bits) {
  uint64_t row = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (row >= count) return;
  uint64_t before = set.counters->size, at = found[row], id = absent;
  auto id_of = [&](uint64_t i) {
    return before + ranks[i / 32] + __popc(news[i / 32] & ((1u << i % 32) - 1));
  };
  if (at == Found::nothing) {
  } else if (at & Found::is_id) {
    id = at & Found::mask;
  } else if (at & Found::is_row) {
    id = id_of(at & Found::mask);
  } else {
    id = id_of(row);
    // The half of an entry that is its number.
    reinterpret_cast<uint32_t*>(set.slots + at)[0] = static_cast<uint32_t>(id) + 1;
    const auto* from = reinterpret_cast<const Piece*>(vectors + row * set.store.words);
    auto* to = reinterpret_cast<Piece*>(set.store.at(id));
    for (uint32_t i = 0; i < set.store.words / (sizeof(Piece) / 4); ++i) to[i] = from[i];
  }
  if (ids) ids[row] = id;
  if (bits && row % 32 == 0)
    bits[row / 32] = again ? bits[row / 32] | news[row / 32] : news[row / 32];
}

__global__ void add_news(DenseCounters* counters, const uint32_t* news, const uint32_t* ranks,
                         uint64_t words) {
  counters->size += ranks[words - 1] + __popc(news[words - 1]);
}

template <class Piece>
__global__ void __launch_bounds__(block_threads)
    find_rows(const __grid_constant__ DenseRef set, const uint32_t* vectors, uint64_t count,
              uint64_t* ids) {
  uint64_t row = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (row >= count) return;
  uint32_t words = set.store.words;
  const uint32_t* vector = vectors + row * words;
  uint64_t hash = hash_of<Piece>(set.hash, vector, words, true), id = absent;
  BucketWalk walk(set.layout, hash);
  bool more = true;
  while (more) {
    for (uint32_t s = 0; more && s < set.layout.bucket_slots; s += 2) {
      uint64_t seen[2];
      read_slots(set.slots + walk.slot() + s, seen);
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        if (!more) continue;
        if (seen[i] == 0) {
          more = false;
        } else if (DenseEntry::may_be(seen[i], hash) &&
                   equal<Piece>(vector, set.store.at(DenseEntry::number(seen[i])), words)) {
          id = DenseEntry::number(seen[i]);
          more = false;
        }
      }
    }
    if (more) more = walk.next([&] { return hash_of<Piece>(set.hash, vector, words, false); });
  }
  __stcs(ids + row, id);
}

template <class Piece>
__global__ void get_rows(const __grid_constant__ DenseRef set, const uint64_t* ids, uint64_t count,
                         uint32_t* vectors, unsigned long long* first_bad) {
  uint32_t pieces = set.store.words / (sizeof(Piece) / 4);
  uint64_t k = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (k >= count * pieces) return;
  uint64_t row = k / pieces, id = ids[row];
  if (id >= set.counters->size) {
    atomicMin(first_bad, static_cast<unsigned long long>(row));
    return;
  }
  reinterpret_cast<Piece*>(vectors)[k] =
      reinterpret_cast<const Piece*>(set.store.at(id))[k - row * pieces];
}

__global__ void __launch_bounds__(block_threads)
    count_absent(const uint64_t* ids, uint64_t count, DenseCounters* counters) {
  uint64_t row = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  count_true(row < count && ids[row] == absent, &counters->failed);
}

// All that is stored goes into another table.
template <class Piece>
__global__ void refill_slots(const __grid_constant__ DenseRef set, uint64_t count) {
  uint64_t id = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (id >= count) return;
  const uint32_t* vector = set.store.at(id);
  uint64_t hash = hash_of<Piece>(set.hash, vector, set.store.words, true);
  uint64_t entry = DenseEntry::of(hash, id);
  BucketWalk walk(set.layout, hash);
  do {
    for (uint32_t s = 0; s < set.layout.bucket_slots; ++s) {
      uint64_t* slot = set.slots + walk.slot() + s;
      if (__ldcg(slot) == 0 && take_slot(slot, entry) == 0) return;
    }
  } while (walk.next([&] { return hash_of<Piece>(set.hash, vector, set.store.words, false); }));
  atomicAdd(&set.counters->failed, 1ull);
}

class CudaDenseSet final : public CudaVectorSet {
 public:
  CudaDenseSet(const CudaContext& context, const VectorSetOptions& options, cudaStream_t stream)
      : CudaVectorSet(context, options.words),
        options_(options),
        counters_(context.device, stream, 1) {
    counters_.settle();
    ref_.hash = VectorHash{options.seed};
    ref_.counters = counters_.data();
    ref_.store.first = options.capacity + spare_rows;
    ref_.store.words = words_;
    ref_.layout = layout_of(options_, ref_.store.first);
    slots_ = make_slots(ref_.layout, stream);
    ref_.slots = slots_.data();
    make_store(options.capacity, stream);
    clear_all(stream);
  }

  uint64_t size() const override { return size_; }
  uint64_t id_limit() const override { return size_; }
  uint64_t memory_bytes() const override { return slots_.bytes() + store_room_ * words_ * 4; }

 private:
  // Smaller pieces, which stay in the second-level cache, cost more in launches than they save.
  static constexpr uint64_t rows_of_one_piece = 4 << 20;
  uint64_t rows_of_chunk() const override { return uint64_t{1} << 30; }

  // What is noted of the rows of a piece.
  struct Notes {
    CudaArray<uint64_t> found;
    CudaArray<uint32_t> news, ranks;
    CudaArray<std::byte> scratch;
  };

  // Calls launch(piece) with the piece that vectors at p, and stored ones, are aligned to.
  template <class Launch>
  void with_piece(const void* p, const Launch& launch) const {
    auto aligned = [&](uint32_t bytes) {
      return words_ * 4 % bytes == 0 && reinterpret_cast<uintptr_t>(p) % bytes == 0;
    };
    if (aligned(16)) {
      launch(uint4());
    } else if (aligned(8)) {
      launch(uint2());
    } else {
      launch(uint32_t());
    }
    cuda_check(cudaGetLastError(), "search a set");
  }

  CudaArray<uint64_t> make_slots(const SlotLayout& layout, cudaStream_t stream) {
    context_.device.require(layout.slots() * sizeof(uint64_t));
    CudaArray<uint64_t> slots(context_.device, stream, layout.slots());
    slots.settle();
    cuda_check(cudaMemsetAsync(slots.data(), 0, slots.bytes(), stream), "clear a table");
    return slots;
  }
  void make_store(uint64_t capacity, cudaStream_t stream) {
    while (store_room_ < capacity + spare_rows) {
      auto chunk = static_cast<uint32_t>(chunks_.size());
      uint64_t rows = GrowingChunks::size(chunk, ref_.store.first);
      context_.device.require(rows * words_ * 4);
      chunks_.emplace_back(context_.device, stream, rows * words_);
      chunks_.back().settle();
      ref_.store.chunks[chunk] = chunks_.back().data();
      store_room_ += rows;
    }
  }
  // Doubles the room; false: there is no memory for it.
  bool grow(cudaStream_t stream) {
    if (!options_.grows || size_ >= max_dense_ids - 2 * spare_rows) return false;
    uint64_t capacity = std::min(2 * options_.capacity, max_dense_ids - 2 * spare_rows);
    try {
      make_store(capacity, stream);
      SlotLayout layout = layout_of(options_, std::max(capacity + spare_rows, ref_.layout.slots()));
      CudaArray<uint64_t> slots = make_slots(layout, stream);
      DenseRef larger = ref_;
      larger.layout = layout;
      larger.slots = slots.data();
      if (size_ > 0) {
        with_piece(nullptr, [&](auto piece) {
          refill_slots<decltype(piece)>
              <<<blocks_for(size_), block_threads, 0, stream>>>(larger, size_);
        });
      }
      if (settle(stream).failed) return false;
      slots_ = std::move(slots);
      ref_ = larger;
      options_.capacity = capacity;
      return true;
    } catch (const CudaFailure& failure) {
      if (failure.status().code() != StatusCode::resource_exhausted) throw;
      return false;
    }
  }
  DenseCounters settle(cudaStream_t stream) {
    DenseCounters now;
    cuda_check(cudaMemcpyAsync(&now, counters_.data(), sizeof now, cudaMemcpyDeviceToHost, stream),
               "count vectors");
    cuda_check(cudaStreamSynchronize(stream), "put vectors");
    size_ = now.size;
    DenseCounters reset{now.size, 0};
    if (now.failed) {
      cuda_check(
          cudaMemcpyAsync(counters_.data(), &reset, sizeof reset, cudaMemcpyHostToDevice, stream),
          "count vectors");
      cuda_check(cudaStreamSynchronize(stream), "count vectors");
    }
    return now;
  }

  uint64_t put_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids, uint32_t* bits,
                     cudaStream_t stream) override {
    Notes notes = make_notes(std::min(count, rows_of_one_piece), stream);
    uint64_t first = 0, failed = 0;  // of the rows whose failures are not yet counted
    uint64_t coming = 0;             // rows since the size was last read, all of which may be new
    auto catch_up = [&](uint64_t at) {
      uint64_t lost = settle(stream).failed;
      coming = 0;
      auto part = [&](auto* p, uint64_t i) { return p ? p + i : nullptr; };
      // Vectors that were made to collide fill a few buckets long before the table is full.
      while (lost > 0 && size_ * 64 >= ref_.layout.slots() && grow(stream)) {
        for (uint64_t i = first; i < at; i += rows_of_one_piece) {
          put_rows(vectors + i * words_, std::min(rows_of_one_piece, at - i), true, part(ids, i),
                   part(bits, i / 32), &notes, stream);
        }
        lost = settle(stream).failed;
      }
      failed += lost;
      first = at;
    };
    for (uint64_t at = 0; at < count;) {
      if (size_ + coming + rows_of_one_piece > options_.capacity && coming > 0) catch_up(at);
      while (size_ >= options_.capacity)
        if (!grow(stream)) break;
      uint32_t* to = bits ? bits + at / 32 : nullptr;
      uint64_t* out = ids ? ids + at : nullptr;
      if (size_ >= options_.capacity)
        return failed + find_rest(vectors + at * words_, count - at, out, to, stream);
      uint64_t rows = rows_of_piece(count - at, options_.capacity - size_ - coming, count - at);
      rows = std::min(rows, rows_of_one_piece);
      put_rows(vectors + at * words_, rows, false, out, to, &notes, stream);
      coming += rows;
      at += rows;
    }
    catch_up(count);
    return failed;
  }
  static auto counts_of(const Notes& notes) {
    return thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0),
                                           CountNews{notes.news.data()});
  }
  Notes make_notes(uint64_t rows, cudaStream_t stream) {
    CudaSpace space(context_.device, stream);
    uint64_t words = (rows + 31) / 32;
    Notes notes{space.buffer<uint64_t>(rows),
                space.buffer<uint32_t>(words),
                space.buffer<uint32_t>(words),
                {}};
    size_t bytes = 0;
    cuda_check(cub::DeviceScan::ExclusiveSum(nullptr, bytes, counts_of(notes), notes.ranks.data(),
                                             words, stream),
               "count new vectors");
    notes.scratch = space.buffer<std::byte>(std::max<size_t>(bytes, 1));
    return notes;
  }
  void put_rows(const uint32_t* vectors, uint64_t rows, bool again, uint64_t* ids, uint32_t* bits,
                Notes* notes, cudaStream_t stream) {
    uint64_t words = (rows + 31) / 32;
    uint32_t blocks = blocks_for(rows);
    uint64_t* found = notes->found.data();
    uint32_t *news = notes->news.data(), *ranks = notes->ranks.data();
    with_piece(vectors, [&](auto piece) {
      claim_rows<decltype(piece)><<<blocks, block_threads, 0, stream>>>(ref_, vectors, rows, found);
    });
    settle_rows<<<blocks, block_threads, 0, stream>>>(ref_, rows, found, news);
    size_t bytes = notes->scratch.size();
    cuda_check(cub::DeviceScan::ExclusiveSum(notes->scratch.data(), bytes, counts_of(*notes), ranks,
                                             words, stream),
               "count new vectors");
    with_piece(vectors, [&](auto piece) {
      finish_rows<decltype(piece)><<<blocks, block_threads, 0, stream>>>(
          ref_, vectors, rows, found, news, ranks, again, ids, bits);
    });
    add_news<<<1, 1, 0, stream>>>(counters_.data(), news, ranks, words);
    cuda_check(cudaGetLastError(), "put vectors");
  }
  uint64_t find_rest(const uint32_t* vectors, uint64_t count, uint64_t* ids, uint32_t* bits,
                     cudaStream_t stream) {
    CudaArray<uint64_t> own;
    if (!ids) {
      own = CudaArray<uint64_t>(context_.device, stream, count);
      ids = own.data();
    }
    find_chunk(vectors, count, ids, stream);
    if (bits) cuda_check(cudaMemsetAsync(bits, 0, (count + 31) / 32 * 4, stream), "clear bits");
    count_absent<<<blocks_for(count), block_threads, 0, stream>>>(ids, count, counters_.data());
    cuda_check(cudaGetLastError(), "count vectors");
    return settle(stream).failed;
  }
  void find_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids,
                  cudaStream_t stream) override {
    with_piece(vectors, [&](auto piece) {
      find_rows<decltype(piece)>
          <<<blocks_for(count), block_threads, 0, stream>>>(ref_, vectors, count, ids);
    });
  }
  uint64_t get_chunk(const uint64_t* ids, uint64_t count, uint32_t* vectors,
                     cudaStream_t stream) override {
    FirstBad bad(context_.device, stream);
    with_piece(vectors, [&](auto piece) {
      uint64_t pieces = count * words_ / (sizeof(piece) / 4);
      get_rows<decltype(piece)>
          <<<blocks_for(pieces), block_threads, 0, stream>>>(ref_, ids, count, vectors, bad.data());
    });
    return bad.fetch();
  }
  void clear_all(cudaStream_t stream) override {
    cuda_check(cudaMemsetAsync(slots_.data(), 0, slots_.bytes(), stream), "clear a table");
    DenseCounters none{};
    cuda_check(
        cudaMemcpyAsync(counters_.data(), &none, sizeof none, cudaMemcpyHostToDevice, stream),
        "clear a set");
    cuda_check(cudaStreamSynchronize(stream), "clear a set");
    size_ = 0;
  }

  VectorSetOptions options_;
  CudaArray<DenseCounters> counters_;
  CudaArray<uint64_t> slots_;
  std::vector<CudaArray<uint32_t>> chunks_;
  uint64_t store_room_ = 0;  // vectors
  DenseRef ref_;
  uint64_t size_ = 0;
};

template <class Set>
Result<std::unique_ptr<VectorSet>> make(const CudaContext& context,
                                        const VectorSetOptions& options) {
  CudaStream stream(context.device);
  auto set = std::make_unique<Set>(context, options, stream);
  stream.wait();
  return std::unique_ptr<VectorSet>(std::move(set));
}

Status check_wide(const CudaDevice& device) {
  if (device.generation() >= 9) return {};
  return Status(StatusCode::unavailable, device.model() + " has no atomic operations of 128 bits")
      .with_remedy("use nodes of 64 bits, or the host backend");
}

}  // namespace

Result<std::unique_ptr<VectorSet>> make_vector_set_cuda(const CudaContext& context,
                                                        VectorSetOptions options) {
  STRIDE_TRY(complete_options(&options));
  switch (options.form) {
    case VectorForm::dense:
      return make<CudaDenseSet>(context, options);
    case VectorForm::slots:
      if (options.words == 1) return make<CudaSlotSet<uint32_t>>(context, options);
      if (options.words == 2) return make<CudaSlotSet<uint64_t>>(context, options);
      STRIDE_TRY(check_wide(context.device));
      return make<CudaSlotSet<Wide>>(context, options);
    case VectorForm::compressed:
      if (!options.wide_nodes) return make<CudaTreeSet<uint32_t>>(context, options);
      STRIDE_TRY(check_wide(context.device));
      return make<CudaTreeSet<uint64_t>>(context, options);
  }
  return Status::invalid("no such form of a set");
}

}  // namespace stride

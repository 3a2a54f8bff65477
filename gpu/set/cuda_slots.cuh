// Tables of slots in device memory: what kernels do with them, and the host's object that grows
// them.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "gpu/device/cuda_space.cuh"
#include "gpu/device/cuda_transfer.h"
#include "gpu/set/vector_layout.h"
#include "gpu/set/vector_set_plan.h"
#include "gpu/vector_set.h"

namespace stride {

inline constexpr uint64_t absent = VectorSet::absent;
inline constexpr uint32_t full_warp = 0xFFFFFFFF;

// What kernels count.
struct Counters {
  unsigned long long size;  // of a table of slots: but for the entry of zeros
  unsigned long long failed;
  uint32_t zero;  // the entry of zeros is there
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
      // As a whole, or not at all; CUDA has no call for such a load.
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
  return atomicCAS(slot, Wide{0}, entry);
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
            uint64_t max_ids, cudaStream_t stream)
      : device_(context.device),
        options_(options),
        max_ids_(max_ids),
        counters_(device_, stream, 1) {
    ref_.count = 0;
    ref_.hash = VectorHash{options.seed};
    ref_.counters = counters_.data();
    counters_.outlive_stream();
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
    if (is_full()) read_counters(stream);
    if (is_full()) grow(stream);
    return left();
  }
  // Announces entries that are being put, all of which may be new.
  void expect(uint64_t entries) { coming_ += entries; }
  // Doubles the room; false: there is no memory for it.
  bool grow(cudaStream_t stream) {
    if (!grows() || ref_.count == PartsRef<Entry>::most) return false;
    can_grow_ = id_limit() + layout_of(options_, capacity_).slots() <= max_ids_;
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
    read_counters(stream);
    return std::exchange(failed_, 0);
  }
  // Reads the counters, and sets that of failures to 0.
  Counters read_counters(cudaStream_t stream) {
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
    slots.outlive_stream();
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
  uint64_t max_ids_;
  CudaArray<Counters> counters_;
  std::vector<CudaArray<Entry>> parts_;
  PartsRef<Entry> ref_;
  uint64_t capacity_ = 0, first_capacity_ = 0;  // of all parts, and of the first
  uint64_t size_ = 0, before_ = 0;              // before: entries of all parts but the newest
  uint64_t counted_ = 0;                        // entries, when last looked
  uint64_t coming_ = 0, failed_ = 0;
  bool can_grow_ = true;
};

}  // namespace stride

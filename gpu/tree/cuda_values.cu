#include <algorithm>
#include <bit>
#include <cub/device/device_scan.cuh>

#include "gpu/device/cuda_pieces.cuh"
#include "gpu/device/cuda_space.cuh"
#include "gpu/sort/cuda_sort.cuh"
#include "gpu/tree/cuda_search.cuh"
#include "gpu/tree/cuda_values.h"

namespace stride {

namespace {

struct AddEnds {
  STRIDE_HD ValueEnd operator()(ValueEnd a, ValueEnd b) const {
    return {(a.end() + b.end()) << 1 | (b.word & 1)};
  }
};

__global__ void measure(const __grid_constant__ DeviceIndexes indexes, Location* locations,
                        uint64_t count, ValueEnd* lengths) {
  uint64_t i = this_thread();
  if (i >= count) return;
  Location at = locations[i];
  if (at.found()) {
    const DeviceIndex& index = indexes[at.index];
    if (index.hidden && index.hidden[at.rank]) {
      at = {Location::absent, Location::absent};
      locations[i] = at;
    }
  }
  if (!lengths) return;
  uint64_t length = at.found() ? indexes[at.index].values[at.rank].size() : 0;
  lengths[i] = {length << 1 | at.found()};
}

constexpr uint32_t value_lanes = 8;

// Eight threads copy a value, by words of four bytes where all of it is aligned to them.
__device__ void copy_value(const std::byte* value, std::byte* to, uint64_t bytes) {
  const uint32_t lane = threadIdx.x % value_lanes;
  const uintptr_t mixed =
      reinterpret_cast<uintptr_t>(value) | reinterpret_cast<uintptr_t>(to) | bytes;
  if (mixed % 4 == 0) {
    for (uint64_t b = 4 * lane; b < bytes; b += 4 * value_lanes) {
      *reinterpret_cast<uint32_t*>(to + b) = __ldg(reinterpret_cast<const uint32_t*>(value + b));
    }
    return;
  }
  for (uint64_t b = lane; b < bytes; b += value_lanes) to[b] = value[b];
}

// Eight threads a value.
__global__ void gather(const __grid_constant__ DeviceIndexes indexes, const Location* locations,
                       const ValueEnd* ends, uint64_t count, std::byte* out, uint64_t capacity) {
  const uint64_t i = this_thread() / value_lanes;
  if (i >= count || !ends[i].found() || ends[i].end() > capacity) return;
  const uint64_t from = i == 0 ? 0 : ends[i - 1].end();
  const Location at = locations[i];
  copy_value(indexes[at.index].values[at.rank].data(), out + from, ends[i].end() - from);
}

// `lanes` threads a value or key, a power of two, by units of which a row has some and at which all
// rows of `out` begin.
template <class Unit, bool of_keys>
__global__ void gather_rows(const __grid_constant__ DeviceIndexes indexes,
                            const Location* locations, uint64_t count, Unit* out, uint32_t width,
                            uint32_t lanes, uint8_t* there, const uint32_t* places) {
  const uint32_t lane = threadIdx.x % lanes;
  const uint32_t units = width / sizeof(Unit);
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x / lanes;
  for (uint64_t i = this_thread() / lanes; i < count; i += step) {
    const Location at = locations[i];
    bool is_there = at.found();
    const std::byte* value = nullptr;
    if (is_there) {
      const DeviceIndex& index = indexes[at.index];
      is_there = !(index.hidden && index.hidden[at.rank]);
      const Bytes bytes = (of_keys ? index.keys : index.values)[at.rank];
      if (is_there && bytes.size() == width) value = bytes.data();
    }
    const uint64_t place = places ? places[i] : i;
    if (lane == 0 && there) there[place] = is_there;
    Unit* to = out + place * units;
    if (value && reinterpret_cast<uintptr_t>(value) % sizeof(Unit) != 0) {
      auto* bytes = reinterpret_cast<std::byte*>(to);
      for (uint32_t b = lane; b < width; b += lanes) bytes[b] = value[b];
      continue;
    }
    const Unit* from = reinterpret_cast<const Unit*>(value);
    for (uint32_t u = lane; u < units; u += lanes) to[u] = from ? __ldg(from + u) : Unit{};
  }
}

// A thread a cell.
__global__ void make_key_part(DeviceKeyPart part, uint64_t rows, std::byte* keys,
                              uint32_t key_width) {
  uint64_t i = this_thread();
  if (i >= rows) return;
  const std::byte* from = part.data + i * part.stride;
  std::byte* to = keys + i * key_width;
  if (part.kind == DeviceKeyPart::Kind::bytes) {
    for (uint32_t b = 0; b < part.width; ++b) to[b] = from[b];
    return;
  }
  uint64_t bits = 0;
  const bool aligned = reinterpret_cast<uintptr_t>(from) % 8 == 0 && part.width == 8;
  if (aligned) {
    bits = *reinterpret_cast<const uint64_t*>(from);
  } else {
    for (uint32_t b = 0; b < part.width; ++b) bits |= static_cast<uint64_t>(from[b]) << (8 * b);
  }
  const uint64_t sign = uint64_t{1} << (8 * part.width - 1);
  if (part.kind == DeviceKeyPart::Kind::signed_number) bits ^= sign;
  if (part.kind == DeviceKeyPart::Kind::floating) bits = bits & sign ? ~bits : bits ^ sign;
  if (aligned && reinterpret_cast<uintptr_t>(to) % 8 == 0) {
    const auto high = static_cast<uint32_t>(bits >> 32), low = static_cast<uint32_t>(bits);
    *reinterpret_cast<uint64_t*>(to) =
        uint64_t{__byte_perm(low, 0, 0x0123)} << 32 | __byte_perm(high, 0, 0x0123);
    return;
  }
  for (uint32_t b = 0; b < part.width; ++b)
    to[b] = static_cast<std::byte>(bits >> (8 * (part.width - 1 - b)));
}

__global__ void unpack(const ValueEnd* ends, uint64_t count, uint32_t* found, uint64_t* offsets) {
  uint64_t i = this_thread();
  bool is_found = i < count && ends[i].found();
  uint32_t word = __ballot_sync(0xFFFFFFFF, is_found);
  if (i >= count) return;
  if (i % 32 == 0) found[i / 32] = word;
  if (i == 0) offsets[0] = 0;
  offsets[i + 1] = ends[i].end();
}

// Copies ends, as a Search (gpu/device/cuda_pieces.cuh).
struct EndsSearch {
  using Query = unsigned long long;
  const Query* ends;
  Query* out;

  __device__ Query load(uint64_t i) const { return __ldcs(ends + i); }
  __device__ void answer(uint64_t i, Query end) const { __stcs(out + i, end); }
};

// How many of the first values end at `byte` or before it; the whole block asks.
__device__ uint64_t count_ends(const ValueEnd* ends, uint64_t count, uint64_t byte) {
  uint64_t low = 0, high = count;
  while (high - low > piece_threads) {
    const uint64_t part = (high - low) / (piece_threads + 1);
    const uint64_t probe = low + part * (threadIdx.x + 1);
    const auto before = static_cast<uint64_t>(__syncthreads_count(ends[probe].end() <= byte));
    if (before < piece_threads) high = low + part * (before + 1);
    if (before > 0) low += part * before + 1;
  }
  const uint64_t probe = low + threadIdx.x;
  return low +
         static_cast<uint64_t>(__syncthreads_count(probe < high && ends[probe].end() <= byte));
}

// Copies what values have of bytes [from, to) of all values. first: the first value that ends
// behind `from`. A warp looks at 32 values at a time, for there may be millions that were not found
// between two that were; eight of its threads copy one.
__device__ void gather_part(const DeviceIndexes& indexes, const Location* locations,
                            const ValueEnd* ends, uint64_t first, uint64_t count, uint64_t from,
                            uint64_t to, std::byte* out) {
  constexpr uint32_t all_threads = 0xFFFFFFFF, warp = 32, at_once = warp / value_lanes;
  constexpr uint32_t warps = piece_threads / warp;
  const uint32_t lane = threadIdx.x % warp;
  // Of wide values a piece has so few that neighbours have to be different warps'.
  const bool is_wide = ends[count - 1].end() >= count * (slot_bytes / piece_threads);
  for (uint64_t i = first + (is_wide ? lane * warps + threadIdx.x / warp : threadIdx.x);;
       i += piece_threads) {
    // Bytes [begin, end) of all values are this thread's to have copied.
    uint64_t begin = to, end = to;
    const std::byte* value = nullptr;
    if (i < count) {
      begin = i == 0 ? 0 : ends[i - 1].end();
      const ValueEnd at_end = ends[i];
      end = min(at_end.end(), to);
      if (begin < end && at_end.found()) {
        const Location at = locations[i];
        value = indexes[at.index].values[at.rank].data();
        if (begin < from) value += from - begin;
        begin = max(begin, from);
      }
    }
    uint32_t owner = lane / value_lanes;
    for (uint32_t wanted = __ballot_sync(all_threads, value != nullptr); wanted != 0;
         wanted >>= at_once, owner += at_once) {
      const uint64_t its_begin = __shfl_sync(all_threads, begin, owner);
      const uint64_t its_end = __shfl_sync(all_threads, end, owner);
      const auto source = __shfl_sync(all_threads, reinterpret_cast<uintptr_t>(value), owner);
      if (source)
        copy_value(reinterpret_cast<const std::byte*>(source), out + (its_begin - from),
                   its_end - its_begin);
    }
    // The warp's last thread has the last of its values.
    if (__shfl_sync(all_threads, begin, warp - 1) >= to) return;
  }
}

// Gathers the values of a piece in shared memory, so that whole lines go over the bus.
__global__ void __launch_bounds__(piece_threads)
    gather_pieces(const __grid_constant__ DeviceIndexes indexes, const Location* locations,
                  const ValueEnd* ends, uint64_t count, uint64_t begin, uint64_t end,
                  const __grid_constant__ PieceFlags flags, std::byte* ring) {
  constexpr uint32_t line = sizeof(uint4);
  __shared__ uint4 gathered[slot_bytes / line];
  work_on_piece(flags, [&](uint32_t piece) {
    const uint64_t from = begin + uint64_t{piece} * slot_bytes;
    const uint64_t to = min(from + slot_bytes, end);
    auto* buffer = reinterpret_cast<std::byte*>(gathered);
    const uint64_t first = count_ends(ends, count, from);
    gather_part(indexes, locations, ends, first, count, from, to, buffer);
    __syncthreads();
    auto* out = reinterpret_cast<uint4*>(ring + uint64_t{piece % flags.slots} * slot_bytes);
    for (uint32_t k = threadIdx.x; k * line < to - from; k += piece_threads)
      __stcs(out + k, gathered[k]);
  });
}

// Pointers that travel with the launch, so that nobody waits for a copy.
struct SomeIndexes {
  static constexpr uint32_t capacity = 64;
  const DeviceIndex* at[capacity];
};

__global__ void put_indexes(const __grid_constant__ SomeIndexes some, const DeviceIndex** to) {
  to[threadIdx.x] = some.at[threadIdx.x];
}

const CudaResident& as_cuda(const IndexView& index) {
  return static_cast<const CudaResident&>(*index.resident);
}

}  // namespace

CudaIndexList::CudaIndexList(CudaDevice& device, std::span<const IndexView> indexes,
                             cudaStream_t stream) {
  indexes_.count = static_cast<uint32_t>(indexes.size());
  if (indexes_.count <= DeviceIndexes::capacity) {
    for (uint32_t i = 0; i < indexes_.count; ++i)
      indexes_.few[i] = as_cuda(indexes[i]).device_copy();
  } else {
    list_ = CudaArray<const DeviceIndex*>(device, stream, indexes.size());
    indexes_.all = list_.data();
  }
  for (uint32_t first = 0; first < list_.size(); first += SomeIndexes::capacity) {
    SomeIndexes some{};
    uint32_t n = std::min(SomeIndexes::capacity, indexes_.count - first);
    for (uint32_t i = 0; i < n; ++i) some.at[i] = as_cuda(indexes[first + i]).device_copy();
    put_indexes<<<1, n, 0, stream>>>(some, list_.data() + first);
  }
  cuda_check(cudaGetLastError(), "list indexes");
  width_ = number_width(indexes);
}

void CudaIndexList::find(const KeyColumn& queries, Location* out, const QueryPieces* pieces,
                         cudaStream_t stream) const {
  find_in_cuda(indexes_, width_, queries, out, pieces, stream);
}

QueryAccess CudaIndexList::access(const KeyColumn& queries) const {
  return access_of(width_, queries);
}

void measure_values_cuda(CudaDevice& device, const CudaIndexList& indexes, Location* locations,
                         uint64_t count, ValueEnd* ends, cudaStream_t stream) {
  if (count == 0) return;
  measure<<<blocks_for(count), block_threads, 0, stream>>>(indexes.indexes(), locations, count,
                                                           ends);
  cuda_check(cudaGetLastError(), "measure values");
  if (!ends) return;
  CudaSpace space(device, stream);
  with_scratch(space, "sum up lengths", [&](void* scratch, size_t& bytes) {
    return cub::DeviceScan::InclusiveScan(scratch, bytes, ends, ends, AddEnds{}, count, stream);
  });
}

void gather_values_cuda(const CudaIndexList& indexes, const Location* locations,
                        const ValueEnd* ends, uint64_t count, std::byte* out, uint64_t capacity,
                        cudaStream_t stream) {
  if (count == 0) return;
  gather<<<blocks_for(count * value_lanes), block_threads, 0, stream>>>(
      indexes.indexes(), locations, ends, count, out, capacity);
  cuda_check(cudaGetLastError(), "gather values");
}

void gather_pieces_cuda(const CudaIndexList& indexes, const Location* locations,
                        const ValueEnd* ends, uint64_t count, uint64_t begin, uint64_t end,
                        const PieceFlags& flags, std::byte* ring, cudaStream_t stream) {
  gather_pieces<<<flags.blocks(), piece_threads, 0, stream>>>(indexes.indexes(), locations, ends,
                                                              count, begin, end, flags, ring);
  cuda_check(cudaGetLastError(), "gather values");
}

void copy_ends_cuda(const ValueEnd* ends, uint64_t count, void* out, const QueryPieces* pieces,
                    cudaStream_t stream) {
  start_search(EndsSearch{reinterpret_cast<const unsigned long long*>(ends),
                          static_cast<unsigned long long*>(out)},
               count, pieces, stream);
  cuda_check(cudaGetLastError(), "copy the ends of values");
}

namespace {

// Precondition: width is not 0.
template <bool of_keys>
void start_gather_rows(const CudaIndexList& indexes, const Location* locations, uint64_t count,
                       const GatheredRows& rows, uint32_t most_blocks, cudaStream_t stream) {
  std::byte* out = of_keys ? rows.keys : rows.values;
  const uint32_t width = of_keys ? rows.key_width : rows.value_width;
  if (count == 0) return;
  const uint64_t lies = reinterpret_cast<uintptr_t>(out) | width;
  auto start = [&](auto unit) {
    using Unit = decltype(unit);
    const auto units = static_cast<uint32_t>(width / sizeof(Unit));
    const uint32_t lanes = std::min(8u, std::bit_ceil(units));
    const uint32_t blocks = std::min(blocks_for(count * lanes), most_blocks);
    gather_rows<Unit, of_keys><<<blocks, block_threads, 0, stream>>>(
        indexes.indexes(), locations, count, reinterpret_cast<Unit*>(out), width, lanes, rows.there,
        rows.places);
  };
  if (lies % 16 == 0)
    start(uint4{});
  else if (lies % 4 == 0)
    start(uint32_t{});
  else
    start(uint8_t{});
  cuda_check(cudaGetLastError(), "gather rows");
}

}  // namespace

void gather_rows_cuda(CudaDevice& device, const CudaIndexList& indexes, const Location* locations,
                      uint64_t count, const GatheredRows& out, cudaStream_t stream) {
  // What is written over a link is as slow as that: few blocks are enough for it, and leave room
  // for other work.
  constexpr uint32_t blocks_of_link = 264;
  auto most_blocks = [&](const void* p) { return device.has(p) ? UINT32_MAX : blocks_of_link; };
  if (out.key_width)
    start_gather_rows<true>(indexes, locations, count, out, most_blocks(out.keys), stream);
  if (out.value_width)
    start_gather_rows<false>(indexes, locations, count, out, most_blocks(out.values), stream);
}

void make_keys_cuda(std::span<const DeviceKeyPart> parts, uint64_t rows, std::byte* keys,
                    cudaStream_t stream) {
  if (rows == 0) return;
  uint32_t key_width = 0;
  for (const DeviceKeyPart& part : parts) key_width += part.width;
  for (const DeviceKeyPart& part : parts) {
    make_key_part<<<blocks_for(rows), block_threads, 0, stream>>>(part, rows, keys, key_width);
    keys += part.width;
  }
  cuda_check(cudaGetLastError(), "make keys");
}

void unpack_ends_cuda(const ValueEnd* ends, uint64_t count, uint32_t* found, uint64_t* offsets,
                      cudaStream_t stream) {
  if (count == 0) {
    cuda_check(cudaMemsetAsync(offsets, 0, sizeof(uint64_t), stream), "clear offsets");
    return;
  }
  unpack<<<blocks_for(count), block_threads, 0, stream>>>(ends, count, found, offsets);
  cuda_check(cudaGetLastError(), "unpack offsets");
}

}  // namespace stride

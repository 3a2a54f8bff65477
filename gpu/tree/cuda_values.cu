#include <algorithm>
#include <bit>
#include <cub/device/device_scan.cuh>

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

__global__ void measure(const DeviceIndex* const* indexes, Location* locations, uint64_t count,
                        ValueEnd* lengths) {
  uint64_t i = this_thread();
  if (i >= count) return;
  Location at = locations[i];
  if (at.found()) {
    const DeviceIndex& index = *indexes[at.index];
    if (index.hidden && index.hidden[at.rank]) {
      at = {Location::absent, Location::absent};
      locations[i] = at;
    }
  }
  if (!lengths) return;
  uint64_t length = at.found() ? indexes[at.index]->values[at.rank].size() : 0;
  lengths[i] = {length << 1 | at.found()};
}

// Eight threads a value; by words of four bytes where all of it is aligned to them.
__global__ void gather(const DeviceIndex* const* indexes, const Location* locations,
                       const ValueEnd* ends, uint64_t begin, uint64_t count, std::byte* out,
                       uint64_t capacity) {
  constexpr uint32_t lanes = 8;
  uint64_t i = this_thread() / lanes;
  if (i >= count || !ends[i].found()) return;
  uint64_t from = i == 0 ? begin : ends[i - 1].end();
  uint64_t bytes = ends[i].end() - from;
  if (ends[i].end() - begin > capacity) return;
  Location at = locations[i];
  const std::byte* value = indexes[at.index]->values[at.rank].data();
  std::byte* to = out + (from - begin);
  uint32_t lane = threadIdx.x % lanes;
  uintptr_t mixed = reinterpret_cast<uintptr_t>(value) | reinterpret_cast<uintptr_t>(to) | bytes;
  if (mixed % 4 == 0) {
    for (uint64_t b = 4 * lane; b < bytes; b += 4 * lanes) {
      *reinterpret_cast<uint32_t*>(to + b) = __ldg(reinterpret_cast<const uint32_t*>(value + b));
    }
    return;
  }
  for (uint64_t b = lane; b < bytes; b += lanes) to[b] = value[b];
}

// `lanes` threads a value or key, a power of two, by units of which a row has some and at which all
// rows of `out` begin.
template <class Unit, bool of_keys>
__global__ void gather_rows(const DeviceIndex* const* indexes, const Location* locations,
                            uint64_t count, Unit* out, uint32_t width, uint32_t lanes,
                            uint8_t* there, const uint32_t* places) {
  const uint32_t lane = threadIdx.x % lanes;
  const uint32_t units = width / sizeof(Unit);
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x / lanes;
  for (uint64_t i = this_thread() / lanes; i < count; i += step) {
    const Location at = locations[i];
    bool is_there = at.found();
    const std::byte* value = nullptr;
    if (is_there) {
      const DeviceIndex& index = *indexes[at.index];
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
                             cudaStream_t stream)
    : list_(device, stream, indexes.size()), count_(static_cast<uint32_t>(indexes.size())) {
  for (uint32_t first = 0; first < count_; first += SomeIndexes::capacity) {
    SomeIndexes some{};
    uint32_t n = std::min(SomeIndexes::capacity, count_ - first);
    for (uint32_t i = 0; i < n; ++i) some.at[i] = as_cuda(indexes[first + i]).device_copy();
    put_indexes<<<1, n, 0, stream>>>(some, list_.data() + first);
  }
  cuda_check(cudaGetLastError(), "list indexes");
  if (count_ > 0) width_ = number_width(*indexes[0].resident);
  for (const IndexView& index : indexes)
    if (number_width(*index.resident) != width_) width_ = 0;
}

void CudaIndexList::find(const KeyColumn& queries, Location* out, cudaStream_t stream) const {
  find_in_cuda(list_.data(), count_, width_, queries, out, stream);
}

void measure_values_cuda(CudaDevice& device, const CudaIndexList& indexes, Location* locations,
                         uint64_t count, ValueEnd* ends, cudaStream_t stream) {
  if (count == 0) return;
  measure<<<blocks_for(count), block_threads, 0, stream>>>(indexes.data(), locations, count, ends);
  cuda_check(cudaGetLastError(), "measure values");
  if (!ends) return;
  CudaSpace space(device, stream);
  with_scratch(space, "sum up lengths", [&](void* scratch, size_t& bytes) {
    return cub::DeviceScan::InclusiveScan(scratch, bytes, ends, ends, AddEnds{}, count, stream);
  });
}

void gather_values_cuda(const CudaIndexList& indexes, const Location* locations,
                        const ValueEnd* ends, uint64_t begin, uint64_t count, std::byte* out,
                        uint64_t capacity, cudaStream_t stream) {
  if (count == 0) return;
  gather<<<blocks_for(count * 8), block_threads, 0, stream>>>(indexes.data(), locations, ends,
                                                              begin, count, out, capacity);
  cuda_check(cudaGetLastError(), "gather values");
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
        indexes.data(), locations, count, reinterpret_cast<Unit*>(out), width, lanes, rows.there,
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

#include <utility>

#include "gpu/keys/key_bits.h"
#include "gpu/location.h"
#include "gpu/several/cuda_split.cuh"
#include "gpu/several/range_split.h"

namespace stride {

namespace {

constexpr uint32_t max_ranges = RangeSplit::max_ranges;
static_assert(max_ranges == max_split_parts);

// Keys of 8 bytes, and the first keys of the ranges as numbers.
struct NumberKeys {
  using Row = uint64_t;  // as it lies in memory

  const uint64_t* keys;
  uint64_t first_keys[max_ranges];
  uint32_t others;  // ranges but the first

  __device__ Row load(uint64_t i) const { return keys[i]; }
  __device__ uint32_t part_of(Row key) const {
    const uint64_t number = byte_swap(key);
    uint32_t range = 0;
    for (uint32_t next = 0; next < others; ++next) range += number >= first_keys[next];
    return range;
  }
  __device__ void store(Row key, std::byte* to, uint64_t at) const {
    reinterpret_cast<uint64_t*>(to)[at] = key;
  }
};

// Keys of any one width.
struct ByteKeys {
  using Row = const std::byte*;

  const std::byte* keys;
  const std::byte* first_keys;
  uint32_t others;
  uint32_t width;

  __device__ Row load(uint64_t i) const { return keys + i * width; }
  __device__ bool is_below(const std::byte* key, const std::byte* other) const {
    for (uint32_t at = 0; at < width; ++at)
      if (key[at] != other[at]) return key[at] < other[at];
    return false;
  }
  __device__ uint32_t part_of(Row key) const {
    uint32_t range = 0;
    while (range < others && !is_below(key, first_keys + range * width)) ++range;
    return range;
  }
  __device__ void store(Row key, std::byte* to, uint64_t at) const {
    for (uint32_t byte = 0; byte < width; ++byte) to[at * width + byte] = key[byte];
  }
};

struct RankEdges {
  uint32_t ends[max_ranges];         // slots at which ranges end
  uint32_t first_ranks[max_ranges];  // of each range
};

__global__ void put_back(const uint32_t* ranks, const uint32_t* slots, uint32_t n, uint32_t ranges,
                         RankEdges edges, uint32_t* out) {
  const uint64_t first = uint64_t{blockIdx.x} * split::tile_rows + threadIdx.x;
  uint32_t slot[split::thread_rows], rank[split::thread_rows];
#pragma unroll
  for (uint32_t j = 0; j < split::thread_rows; ++j)
    if (first + j * block_threads < n) slot[j] = slots[first + j * block_threads];
#pragma unroll
  for (uint32_t j = 0; j < split::thread_rows; ++j)
    if (first + j * block_threads < n) rank[j] = ranks[slot[j]];
#pragma unroll
  for (uint32_t j = 0; j < split::thread_rows; ++j) {
    if (first + j * block_threads >= n) break;
    uint32_t range = 0;
    for (uint32_t next = 0; next + 1 < ranges; ++next) range += slot[j] >= edges.ends[next];
    out[first + j * block_threads] =
        rank[j] == Location::absent ? rank[j] : rank[j] + edges.first_ranks[range];
  }
}

class CudaRangeSplit final : public RangeSplit, private CudaSplit {
 public:
  CudaRangeSplit(CudaDevice& device, const KeyColumn& keys, size_t ranges, SplitFor purpose,
                 const RoomOfDevice& memory)
      : CudaSplit(device,
                  {.rows = keys.size,
                   .row_bytes = keys.width,
                   .parts = ranges,
                   .in_order = false,
                   .with_places = purpose == SplitFor::rows,
                   .slot_bytes = purpose == SplitFor::ranks ? sizeof(uint32_t) : 0},
                  memory) {
    if (purpose == SplitFor::ranks) ranks_ = take<uint32_t>(all_slots_);
  }

  void split(const KeyColumn& keys, const std::vector<std::string>& first_keys) {
    const auto others = static_cast<uint32_t>(first_keys.size());
    if (row_bytes_ == 8 && reinterpret_cast<uintptr_t>(keys.data) % 8 == 0) {
      NumberKeys numbers{reinterpret_cast<const uint64_t*>(keys.data), {}, others};
      for (uint32_t i = 0; i < others; ++i)
        numbers.first_keys[i] = load_big_endian(as_bytes(first_keys[i]).data());
      return move(numbers);
    }
    CudaSpace space(stream_.device(), stream_);
    std::string joined;
    for (const std::string& key : first_keys) joined += key;
    auto there = space.buffer<std::byte>(joined.size());
    space.copy_in(there.data(), joined.data(), joined.size());
    move(ByteKeys{keys.data, there.data(), others, static_cast<uint32_t>(row_bytes_)});
  }

  KeyColumn keys(size_t range) const override {
    return KeyColumn::fixed(moved(range), row_bytes_, count(range));
  }
  std::span<uint32_t> ranks(size_t range) override {
    return {ranks_ + starts_[range], count(range)};
  }
  Status put_ranks(std::span<const uint32_t> first_ranks, uint32_t* out) override {
    return cuda_guarded([&] {
      RankEdges edges{};
      for (size_t range = 0; range < parts(); ++range) {
        edges.ends[range] = starts_[range + 1];
        edges.first_ranks[range] = first_ranks[range];
      }
      if (n_ > 0) {
        put_back<<<tiles(), block_threads, 0, stream_>>>(
            ranks_, slots_, n_, static_cast<uint32_t>(parts()), edges, out);
        cuda_check(cudaGetLastError(), "put answers back");
      }
      stream_.wait();
      return Status();
    });
  }
  const uint32_t* places(size_t range) const override { return places_ + starts_[range]; }

 private:
  uint32_t* ranks_ = nullptr;  // as moved_
};

}  // namespace

Result<std::unique_ptr<RangeSplit>> split_by_range(CudaDevice& device, const KeyColumn& keys,
                                                   const std::vector<std::string>& first_keys,
                                                   SplitFor purpose, const RoomOfDevice& memory) {
  return cuda_guarded([&]() -> Result<std::unique_ptr<RangeSplit>> {
    auto split =
        std::make_unique<CudaRangeSplit>(device, keys, first_keys.size() + 1, purpose, memory);
    split->split(keys, first_keys);
    return std::unique_ptr<RangeSplit>(std::move(split));
  });
}

}  // namespace stride

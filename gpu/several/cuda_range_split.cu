#include <thrust/scan.h>

#include <utility>

#include "gpu/device/cuda_device.h"
#include "gpu/device/cuda_space.cuh"
#include "gpu/keys/key_bits.h"
#include "gpu/location.h"
#include "gpu/several/range_split.h"

namespace stride {

namespace {

constexpr uint32_t max_ranges = RangeSplit::max_ranges;
constexpr uint32_t tile_keys = 4096;  // of a block
constexpr uint32_t warps = block_threads / 32;
constexpr uint32_t all_lanes = 0xFFFFFFFF;

// Keys of 8 bytes, and the first keys of the ranges as numbers.
struct NumberKeys {
  const uint64_t* keys;
  uint64_t first_keys[max_ranges];
  uint32_t others;  // ranges but the first

  __device__ uint32_t range_of(uint64_t i) const {
    const uint64_t key = byte_swap(keys[i]);
    uint32_t range = 0;
    for (uint32_t next = 0; next < others; ++next) range += key >= first_keys[next];
    return range;
  }
  __device__ void copy(uint64_t i, std::byte* to, uint64_t at) const {
    reinterpret_cast<uint64_t*>(to)[at] = keys[i];
  }
};

// Keys of any one width.
struct ByteKeys {
  const std::byte* keys;
  const std::byte* first_keys;
  uint32_t others;
  uint32_t width;

  __device__ bool is_below(const std::byte* key, const std::byte* other) const {
    for (uint32_t at = 0; at < width; ++at)
      if (key[at] != other[at]) return key[at] < other[at];
    return false;
  }
  __device__ uint32_t range_of(uint64_t i) const {
    uint32_t range = 0;
    while (range < others && !is_below(keys + i * width, first_keys + range * width)) ++range;
    return range;
  }
  __device__ void copy(uint64_t i, std::byte* to, uint64_t at) const {
    for (uint32_t byte = 0; byte < width; ++byte) to[at * width + byte] = keys[i * width + byte];
  }
};

// counts[range * gridDim.x + block]: the keys of the block's tile in a range.
template <class Keys>
__global__ void count_ranges(Keys keys, uint32_t n, uint32_t ranges, uint32_t* counts) {
  __shared__ uint32_t sums[max_ranges];
  if (threadIdx.x < ranges) sums[threadIdx.x] = 0;
  __syncthreads();
  for (uint32_t at = threadIdx.x; at < tile_keys; at += block_threads) {
    const uint64_t i = uint64_t{blockIdx.x} * tile_keys + at;
    const uint32_t range = i < n ? keys.range_of(i) : max_ranges;
    const uint32_t same = __match_any_sync(all_lanes, range);
    if (range < max_ranges && threadIdx.x % 32 == __ffs(same) - 1)
      atomicAdd(&sums[range], __popc(same));
  }
  __syncthreads();
  if (threadIdx.x < ranges) counts[threadIdx.x * gridDim.x + blockIdx.x] = sums[threadIdx.x];
}

// starts: the sums of all counts before. slots[i]: where key i has gone.
template <class Keys>
__global__ void move_to_ranges(Keys keys, uint32_t n, uint32_t ranges, const uint32_t* starts,
                               std::byte* moved, uint32_t* slots) {
  __shared__ uint32_t next[max_ranges];
  __shared__ uint32_t of_warp[warps][max_ranges];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x < ranges) next[threadIdx.x] = starts[threadIdx.x * gridDim.x + blockIdx.x];
  for (uint32_t at = threadIdx.x; at < tile_keys; at += block_threads) {
    if (lane < max_ranges) of_warp[warp][lane] = 0;
    __syncwarp();
    const uint64_t i = uint64_t{blockIdx.x} * tile_keys + at;
    const uint32_t range = i < n ? keys.range_of(i) : max_ranges;
    const uint32_t same = __match_any_sync(all_lanes, range);
    const uint32_t before = __popc(same & ((uint32_t{1} << lane) - 1));
    if (range < max_ranges && before == 0) of_warp[warp][range] = __popc(same);
    __syncthreads();
    if (range < max_ranges) {
      uint32_t slot = next[range] + before;
      for (uint32_t other = 0; other < warp; ++other) slot += of_warp[other][range];
      keys.copy(i, moved, slot);
      slots[i] = slot;
    }
    __syncthreads();
    if (threadIdx.x < ranges)
      for (uint32_t other = 0; other < warps; ++other)
        next[threadIdx.x] += of_warp[other][threadIdx.x];
    __syncthreads();
  }
}

struct RankEdges {
  uint32_t ends[max_ranges];         // slots at which ranges end
  uint32_t first_ranks[max_ranges];  // of each range
};

__global__ void put_back(const uint32_t* ranks, const uint32_t* slots, uint32_t n, RankEdges edges,
                         uint32_t* out) {
  const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint32_t slot = slots[i], rank = ranks[slot];
  uint32_t range = 0;
  while (slot >= edges.ends[range]) ++range;
  out[i] = rank == Location::absent ? rank : rank + edges.first_ranks[range];
}

class CudaRangeSplit final : public RangeSplit {
 public:
  CudaRangeSplit(CudaDevice& device, const KeyColumn& keys, size_t ranges)
      : stream_(device),
        n_(static_cast<uint32_t>(keys.size)),
        width_(keys.width),
        moved_(device, stream_, keys.bytes()),
        slots_(device, stream_, keys.size),
        ranks_(device, stream_, keys.size),
        starts_(ranges + 1, n_) {}

  void split(const KeyColumn& keys, const std::vector<std::string>& first_keys) {
    const auto others = static_cast<uint32_t>(first_keys.size());
    if (width_ == 8 && reinterpret_cast<uintptr_t>(keys.data) % 8 == 0) {
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
    move(ByteKeys{keys.data, there.data(), others, static_cast<uint32_t>(width_)});
  }

  KeyColumn keys(size_t range) const override {
    return KeyColumn::fixed(moved_.data() + starts_[range] * width_, width_, count(range));
  }
  std::span<uint32_t> ranks(size_t range) override {
    return {ranks_.data() + starts_[range], count(range)};
  }
  Status put_ranks(std::span<const uint32_t> first_ranks, uint32_t* out) override {
    return cuda_guarded([&] {
      RankEdges edges{};
      for (size_t range = 0; range + 1 < starts_.size(); ++range) {
        edges.ends[range] = starts_[range + 1];
        edges.first_ranks[range] = first_ranks[range];
      }
      if (n_ > 0) {
        put_back<<<blocks_for(n_), block_threads, 0, stream_>>>(ranks_.data(), slots_.data(), n_,
                                                                edges, out);
        cuda_check(cudaGetLastError(), "put answers back");
      }
      stream_.wait();
      return Status();
    });
  }

 private:
  uint64_t count(size_t range) const { return starts_[range + 1] - starts_[range]; }

  template <class Keys>
  void move(const Keys& keys) {
    if (n_ == 0) return;
    const auto ranges = static_cast<uint32_t>(starts_.size() - 1);
    const uint32_t tiles = (n_ + tile_keys - 1) / tile_keys;
    CudaSpace space(stream_.device(), stream_);
    auto counts = space.buffer<uint32_t>(uint64_t{ranges} * tiles);
    count_ranges<<<tiles, block_threads, 0, stream_>>>(keys, n_, ranges, counts.data());
    cuda_check(cudaGetLastError(), "count the keys of ranges");
    thrust::exclusive_scan(space.policy(), counts.data(), counts.data() + counts.size(),
                           counts.data());
    move_to_ranges<<<tiles, block_threads, 0, stream_>>>(keys, n_, ranges, counts.data(),
                                                         moved_.data(), slots_.data());
    cuda_check(cudaGetLastError(), "put keys together by range");
    cuda_check(
        cudaMemcpy2DAsync(starts_.data(), sizeof(uint32_t), counts.data(), tiles * sizeof(uint32_t),
                          sizeof(uint32_t), ranges, cudaMemcpyDeviceToHost, stream_),
        "copy the edges of ranges");
    stream_.wait();
  }

  CudaStream stream_;
  uint32_t n_;
  uint64_t width_;
  CudaArray<std::byte> moved_;    // keys, range by range
  CudaArray<uint32_t> slots_;     // of each key in moved_
  CudaArray<uint32_t> ranks_;     // as moved_
  std::vector<uint32_t> starts_;  // of each range in moved_, and the end
};

}  // namespace

Result<std::unique_ptr<RangeSplit>> split_by_range(CudaDevice& device, const KeyColumn& keys,
                                                   const std::vector<std::string>& first_keys) {
  return cuda_guarded([&]() -> Result<std::unique_ptr<RangeSplit>> {
    auto split = std::make_unique<CudaRangeSplit>(device, keys, first_keys.size() + 1);
    split->split(keys, first_keys);
    return std::unique_ptr<RangeSplit>(std::move(split));
  });
}

}  // namespace stride

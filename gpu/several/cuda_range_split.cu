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
constexpr uint32_t thread_keys = 8;
constexpr uint32_t tile_keys = block_threads * thread_keys;  // of a block
constexpr uint32_t warps = block_threads / 32;
constexpr uint32_t all_lanes = 0xFFFFFFFF;

// Keys of 8 bytes, and the first keys of the ranges as numbers.
struct NumberKeys {
  using Key = uint64_t;  // as it lies in memory

  const uint64_t* keys;
  uint64_t first_keys[max_ranges];
  uint32_t others;  // ranges but the first

  __device__ Key load(uint64_t i) const { return keys[i]; }
  __device__ uint32_t range_of(Key key) const {
    const uint64_t number = byte_swap(key);
    uint32_t range = 0;
    for (uint32_t next = 0; next < others; ++next) range += number >= first_keys[next];
    return range;
  }
  __device__ void store(Key key, std::byte* to, uint64_t at) const {
    reinterpret_cast<uint64_t*>(to)[at] = key;
  }
};

// Keys of any one width.
struct ByteKeys {
  using Key = const std::byte*;

  const std::byte* keys;
  const std::byte* first_keys;
  uint32_t others;
  uint32_t width;

  __device__ Key load(uint64_t i) const { return keys + i * width; }
  __device__ bool is_below(const std::byte* key, const std::byte* other) const {
    for (uint32_t at = 0; at < width; ++at)
      if (key[at] != other[at]) return key[at] < other[at];
    return false;
  }
  __device__ uint32_t range_of(Key key) const {
    uint32_t range = 0;
    while (range < others && !is_below(key, first_keys + range * width)) ++range;
    return range;
  }
  __device__ void store(Key key, std::byte* to, uint64_t at) const {
    for (uint32_t byte = 0; byte < width; ++byte) to[at * width + byte] = key[byte];
  }
};

// The keys of a thread: a warp has thread_keys * 32 that follow one another, lane by lane. Those
// behind the end are of no range.
template <class Keys>
struct ThreadKeys {
  __device__ ThreadKeys(const Keys& all, uint32_t n) {
    first =
        uint64_t{blockIdx.x} * tile_keys + threadIdx.x / 32 * (thread_keys * 32) + threadIdx.x % 32;
#pragma unroll
    for (uint32_t j = 0; j < thread_keys; ++j)
      if (first + j * 32 < n) keys[j] = all.load(first + j * 32);
#pragma unroll
    for (uint32_t j = 0; j < thread_keys; ++j)
      ranges[j] = first + j * 32 < n ? all.range_of(keys[j]) : max_ranges;
  }

  uint64_t first;  // and each 32nd from there
  typename Keys::Key keys[thread_keys];
  uint32_t ranges[thread_keys];
};

// counts[range * gridDim.x + block]: the keys of the block's tile in a range.
template <class Keys>
__global__ void count_ranges(Keys keys, uint32_t n, uint32_t ranges, uint32_t* counts) {
  __shared__ uint32_t of_warp[warps][max_ranges];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const ThreadKeys<Keys> mine(keys, n);
  for (uint32_t range = 0; range < ranges; ++range) {
    uint32_t count = 0;
#pragma unroll
    for (uint32_t j = 0; j < thread_keys; ++j)
      count += __popc(__ballot_sync(all_lanes, mine.ranges[j] == range));
    if (lane == 0) of_warp[warp][range] = count;
  }
  __syncthreads();
  if (threadIdx.x >= ranges) return;
  uint32_t sum = 0;
  for (uint32_t other = 0; other < warps; ++other) sum += of_warp[other][threadIdx.x];
  counts[threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

// starts: the sums of all counts before. slots[i]: where key i has gone; places: the reverse,
// or null.
template <class Keys>
__global__ void move_to_ranges(Keys keys, uint32_t n, uint32_t ranges, const uint32_t* starts,
                               std::byte* moved, uint32_t* slots, uint32_t* places) {
  __shared__ uint32_t next[warps][max_ranges];  // slots of a warp's keys
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t lanes_before = (uint32_t{1} << lane) - 1;
  const ThreadKeys<Keys> mine(keys, n);
  uint32_t before[thread_keys];  // keys of the same range in the warp
  for (uint32_t range = 0; range < ranges; ++range) {
    uint32_t count = 0;
#pragma unroll
    for (uint32_t j = 0; j < thread_keys; ++j) {
      const uint32_t same = __ballot_sync(all_lanes, mine.ranges[j] == range);
      if (mine.ranges[j] == range) before[j] = count + __popc(same & lanes_before);
      count += __popc(same);
    }
    if (lane == 0) next[warp][range] = count;
  }
  __syncthreads();
  if (threadIdx.x < ranges) {
    uint32_t slot = starts[threadIdx.x * gridDim.x + blockIdx.x];
    for (uint32_t other = 0; other < warps; ++other) {
      const uint32_t count = next[other][threadIdx.x];
      next[other][threadIdx.x] = slot;
      slot += count;
    }
  }
  __syncthreads();
#pragma unroll
  for (uint32_t j = 0; j < thread_keys; ++j) {
    if (mine.ranges[j] == max_ranges) continue;
    const uint32_t slot = next[warp][mine.ranges[j]] + before[j];
    keys.store(mine.keys[j], moved, slot);
    slots[mine.first + j * 32] = slot;
    if (places) places[slot] = static_cast<uint32_t>(mine.first + j * 32);
  }
}

struct RankEdges {
  uint32_t ends[max_ranges];         // slots at which ranges end
  uint32_t first_ranks[max_ranges];  // of each range
};

__global__ void put_back(const uint32_t* ranks, const uint32_t* slots, uint32_t n, uint32_t ranges,
                         RankEdges edges, uint32_t* out) {
  const uint64_t first = uint64_t{blockIdx.x} * tile_keys + threadIdx.x;
  uint32_t slot[thread_keys], rank[thread_keys];
#pragma unroll
  for (uint32_t j = 0; j < thread_keys; ++j)
    if (first + j * block_threads < n) slot[j] = slots[first + j * block_threads];
#pragma unroll
  for (uint32_t j = 0; j < thread_keys; ++j)
    if (first + j * block_threads < n) rank[j] = ranks[slot[j]];
#pragma unroll
  for (uint32_t j = 0; j < thread_keys; ++j) {
    if (first + j * block_threads >= n) break;
    uint32_t range = 0;
    for (uint32_t next = 0; next + 1 < ranges; ++next) range += slot[j] >= edges.ends[next];
    out[first + j * block_threads] =
        rank[j] == Location::absent ? rank[j] : rank[j] + edges.first_ranks[range];
  }
}

class CudaRangeSplit final : public RangeSplit {
 public:
  CudaRangeSplit(CudaDevice& device, const KeyColumn& keys, size_t ranges, SplitFor purpose)
      : stream_(device),
        n_(static_cast<uint32_t>(keys.size)),
        width_(keys.width),
        moved_(device, stream_, keys.bytes()),
        slots_(device, stream_, keys.size),
        places_(device, stream_, purpose == SplitFor::rows ? keys.size : 0),
        ranks_(device, stream_, purpose == SplitFor::ranks ? keys.size : 0),
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
        put_back<<<tiles(), block_threads, 0, stream_>>>(ranks_.data(), slots_.data(), n_,
                                                         static_cast<uint32_t>(starts_.size() - 1),
                                                         edges, out);
        cuda_check(cudaGetLastError(), "put answers back");
      }
      stream_.wait();
      return Status();
    });
  }
  const uint32_t* places(size_t range) const override { return places_.data() + starts_[range]; }

 private:
  uint32_t tiles() const { return (n_ + tile_keys - 1) / tile_keys; }
  uint64_t count(size_t range) const { return starts_[range + 1] - starts_[range]; }

  template <class Keys>
  void move(const Keys& keys) {
    if (n_ == 0) return;
    const auto ranges = static_cast<uint32_t>(starts_.size() - 1);
    CudaSpace space(stream_.device(), stream_);
    auto counts = space.buffer<uint32_t>(uint64_t{ranges} * tiles());
    count_ranges<<<tiles(), block_threads, 0, stream_>>>(keys, n_, ranges, counts.data());
    cuda_check(cudaGetLastError(), "count the keys of ranges");
    thrust::exclusive_scan(space.policy(), counts.data(), counts.data() + counts.size(),
                           counts.data());
    move_to_ranges<<<tiles(), block_threads, 0, stream_>>>(
        keys, n_, ranges, counts.data(), moved_.data(), slots_.data(),
        places_.size() > 0 ? places_.data() : nullptr);
    cuda_check(cudaGetLastError(), "put keys together by range");
    cuda_check(cudaMemcpy2DAsync(starts_.data(), sizeof(uint32_t), counts.data(),
                                 tiles() * sizeof(uint32_t), sizeof(uint32_t), ranges,
                                 cudaMemcpyDeviceToHost, stream_),
               "copy the edges of ranges");
    stream_.wait();
  }

  CudaStream stream_;
  uint32_t n_;
  uint64_t width_;
  CudaArray<std::byte> moved_;    // keys, range by range
  CudaArray<uint32_t> slots_;     // of each key in moved_
  CudaArray<uint32_t> places_;    // of each key in moved_ among those that were given
  CudaArray<uint32_t> ranks_;     // as moved_
  std::vector<uint32_t> starts_;  // of each range in moved_, and the end
};

}  // namespace

Result<std::unique_ptr<RangeSplit>> split_by_range(CudaDevice& device, const KeyColumn& keys,
                                                   const std::vector<std::string>& first_keys,
                                                   SplitFor purpose) {
  return cuda_guarded([&]() -> Result<std::unique_ptr<RangeSplit>> {
    auto split = std::make_unique<CudaRangeSplit>(device, keys, first_keys.size() + 1, purpose);
    split->split(keys, first_keys);
    return std::unique_ptr<RangeSplit>(std::move(split));
  });
}

}  // namespace stride

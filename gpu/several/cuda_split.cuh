// The rows of a column put together by part, in tiles of which a block puts each row in its slot:
//   in order  the block counts its rows in each part first, and the sums of all counts before tell
//             where its own begin
//   unordered each part has room for all rows, and a block takes the next places of it, so that
//   rows
//             are read once; those of a block stay together
#pragma once

#include <thrust/scan.h>

#include <utility>
#include <vector>

#include "gpu/device/cuda_device.h"
#include "gpu/device/cuda_space.cuh"
#include "gpu/several/room_cache.h"

namespace stride {

inline constexpr uint32_t max_split_parts = 16;

namespace split {

constexpr uint32_t thread_rows = 8;
constexpr uint32_t tile_rows = block_threads * thread_rows;  // of a block
constexpr uint32_t warps = block_threads / 32;
constexpr uint32_t all_lanes = 0xFFFFFFFF;

// The rows of a thread: a warp has thread_rows * 32 that follow one another, lane by lane. Those
// behind the end are of no part.
template <class Rows>
struct ThreadRows {
  __device__ ThreadRows(const Rows& all, uint32_t n) {
    first =
        uint64_t{blockIdx.x} * tile_rows + threadIdx.x / 32 * (thread_rows * 32) + threadIdx.x % 32;
#pragma unroll
    for (uint32_t j = 0; j < thread_rows; ++j)
      if (first + j * 32 < n) rows[j] = all.load(first + j * 32);
#pragma unroll
    for (uint32_t j = 0; j < thread_rows; ++j)
      parts[j] = first + j * 32 < n ? all.part_of(rows[j]) : max_split_parts;
  }

  uint64_t first;  // and each 32nd from there
  typename Rows::Row rows[thread_rows];
  uint32_t parts[thread_rows];
};

// counts[part * gridDim.x + block]: the rows of the block's tile in a part.
template <class Rows>
__global__ void count_parts(Rows all, uint32_t n, uint32_t parts, uint32_t* counts) {
  __shared__ uint32_t of_warp[warps][max_split_parts];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const ThreadRows<Rows> mine(all, n);
  for (uint32_t part = 0; part < parts; ++part) {
    uint32_t count = 0;
#pragma unroll
    for (uint32_t j = 0; j < thread_rows; ++j)
      count += __popc(__ballot_sync(all_lanes, mine.parts[j] == part));
    if (lane == 0) of_warp[warp][part] = count;
  }
  __syncthreads();
  if (threadIdx.x >= parts) return;
  uint32_t sum = 0;
  for (uint32_t other = 0; other < warps; ++other) sum += of_warp[other][threadIdx.x];
  counts[threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

// slots[i]: where row i has gone; places: the reverse, or null. room: 0, and starts are the sums of
// all counts before; or that of each part, and starts are how many rows each has so far.
template <class Rows>
__global__ void move_to_parts(Rows all, uint32_t n, uint32_t parts, uint32_t room, uint32_t* starts,
                              std::byte* moved, uint32_t* slots, uint32_t* places) {
  __shared__ uint32_t next[warps][max_split_parts];  // slots of a warp's rows
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t lanes_before = (uint32_t{1} << lane) - 1;
  const ThreadRows<Rows> mine(all, n);
  uint32_t before[thread_rows];  // rows of the same part in the warp
  for (uint32_t part = 0; part < parts; ++part) {
    uint32_t count = 0;
#pragma unroll
    for (uint32_t j = 0; j < thread_rows; ++j) {
      const uint32_t same = __ballot_sync(all_lanes, mine.parts[j] == part);
      if (mine.parts[j] == part) before[j] = count + __popc(same & lanes_before);
      count += __popc(same);
    }
    if (lane == 0) next[warp][part] = count;
  }
  __syncthreads();
  if (threadIdx.x < parts) {
    uint32_t slot = room == 0 ? starts[threadIdx.x * gridDim.x + blockIdx.x] : threadIdx.x * room;
    if (room != 0) {
      uint32_t count = 0;
      for (uint32_t other = 0; other < warps; ++other) count += next[other][threadIdx.x];
      slot += atomicAdd(starts + threadIdx.x, count);
    }
    for (uint32_t other = 0; other < warps; ++other) {
      const uint32_t count = next[other][threadIdx.x];
      next[other][threadIdx.x] = slot;
      slot += count;
    }
  }
  __syncthreads();
#pragma unroll
  for (uint32_t j = 0; j < thread_rows; ++j) {
    if (mine.parts[j] == max_split_parts) continue;
    const uint32_t slot = next[warp][mine.parts[j]] + before[j];
    all.store(mine.rows[j], moved, slot);
    slots[mine.first + j * 32] = slot;
    if (places) places[slot] = static_cast<uint32_t>(mine.first + j * 32);
  }
}

}  // namespace split

// What all splits of rows have. Rows: Row load(i), as it lies in memory, uint32_t part_of(row), and
// store(row, to, at); all of them device code.
class CudaSplit {
 protected:
  struct Shape {
    uint64_t rows, row_bytes;
    size_t parts;
    bool in_order, with_places;
    uint64_t slot_bytes;      // that are taken for each slot, beside the rows
    uint64_t more_bytes = 0;  // beside them
  };

  // All memory is taken from `memory`, at once. Throws CudaFailure.
  CudaSplit(CudaDevice& device, const Shape& shape, const RoomOfDevice& memory)
      : stream_(device),
        n_(static_cast<uint32_t>(shape.rows)),
        row_bytes_(shape.row_bytes),
        room_(shape.in_order || !fit_unordered(shape) ? 0 : n_),
        all_slots_(room_ == 0 ? shape.rows : shape.rows * shape.parts),
        starts_(shape.parts + 1, static_cast<uint32_t>(all_slots_)),
        counts_(shape.parts) {
    const uint64_t counts = room_ == 0 ? shape.parts * tiles() : shape.parts;
    const uint64_t places = shape.with_places ? all_slots_ : 0;
    const uint64_t bytes = padded(all_slots_ * row_bytes_) + padded(rows_bytes<uint32_t>(n_)) +
                           padded(rows_bytes<uint32_t>(places)) +
                           padded(rows_bytes<uint32_t>(counts)) +
                           padded(all_slots_ * shape.slot_bytes) + padded(shape.more_bytes);
    if (Status status = memory.make(bytes); !status.ok()) throw CudaFailure(std::move(status));
    next_ = memory.room->data();
    moved_ = take<std::byte>(all_slots_ * row_bytes_);
    slots_ = take<uint32_t>(n_);
    places_ = places > 0 ? take<uint32_t>(places) : nullptr;
    device_counts_ = take<uint32_t>(counts);
  }

  // Takes some of what the shape has announced. Aligned to 256 bytes.
  template <class T>
  T* take(uint64_t n) {
    auto* taken = reinterpret_cast<T*>(next_);
    next_ += padded(rows_bytes<T>(n));
    return taken;
  }

  size_t parts() const { return counts_.size(); }
  uint64_t count(size_t part) const { return counts_[part]; }
  const std::byte* moved(size_t part) const { return moved_ + starts_[part] * row_bytes_; }
  uint32_t tiles() const { return (n_ + split::tile_rows - 1) / split::tile_rows; }

  template <class Rows>
  void move(const Rows& rows) {
    if (n_ == 0) return;
    const auto all_parts = static_cast<uint32_t>(parts());
    if (room_ == 0) {
      CudaSpace space(stream_.device(), stream_);
      split::count_parts<<<tiles(), block_threads, 0, stream_>>>(rows, n_, all_parts,
                                                                 device_counts_);
      cuda_check(cudaGetLastError(), "count the rows of parts");
      thrust::exclusive_scan(space.policy(), device_counts_,
                             device_counts_ + uint64_t{all_parts} * tiles(), device_counts_);
      move_rows(rows);
    } else {
      cuda_check(cudaMemsetAsync(device_counts_, 0, all_parts * sizeof(uint32_t), stream_),
                 "clear counters");
      move_rows(rows);
    }
    for (uint32_t part = 0; part < all_parts; ++part)
      starts_[part] = room_ == 0 ? counts_[part] : part * room_;
    for (uint32_t part = 0; part < all_parts && room_ == 0; ++part)
      counts_[part] = starts_[part + 1] - starts_[part];
  }

 private:
  static constexpr uint64_t most_unordered_bytes = uint64_t{1} << 30;

  static uint64_t padded(uint64_t bytes) { return (bytes + 255) / 256 * 256; }
  template <class T>
  static uint64_t rows_bytes(uint64_t n) {
    return n * sizeof(T);
  }
  static bool fit_unordered(const Shape& shape) {
    return shape.rows * shape.parts <= UINT32_MAX &&
           shape.rows * shape.parts * shape.row_bytes <= most_unordered_bytes;
  }
  template <class Rows>
  void move_rows(const Rows& rows) {
    const auto all_parts = static_cast<uint32_t>(parts());
    split::move_to_parts<<<tiles(), block_threads, 0, stream_>>>(
        rows, n_, all_parts, room_, device_counts_, moved_, slots_, places_);
    cuda_check(cudaGetLastError(), "put rows together by part");
    const uint64_t pitch = (room_ == 0 ? tiles() : 1) * sizeof(uint32_t);
    cuda_check(cudaMemcpy2DAsync(counts_.data(), sizeof(uint32_t), device_counts_, pitch,
                                 sizeof(uint32_t), all_parts, cudaMemcpyDeviceToHost, stream_),
               "copy the edges of parts");
    stream_.wait();
  }

 protected:
  CudaStream stream_;
  const uint32_t n_;
  const uint64_t row_bytes_;
  const uint32_t room_;           // of each part; 0: rows are in order, without gaps
  const uint64_t all_slots_;      // of all parts
  std::byte* moved_ = nullptr;    // rows, part by part
  uint32_t* slots_ = nullptr;     // of each row in moved_
  uint32_t* places_ = nullptr;    // of each row in moved_ among those that were given
  std::vector<uint32_t> starts_;  // slots where parts begin, and the end
  std::vector<uint32_t> counts_;  // rows of each part

 private:
  uint32_t* device_counts_ = nullptr;
  std::byte* next_ = nullptr;  // memory that was not taken yet
};

}  // namespace stride

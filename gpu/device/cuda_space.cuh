// Where a tree is built on a device (tree_build.h), and other Thrust work.
#pragma once

#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/cuda/execution_policy.h>

#include <cstddef>
#include <cstdint>

#include "gpu/device/cuda_device.h"
#include "gpu/keys/key_bits.h"

namespace stride {

// Scratch memory of Thrust's, from the device's pool.
class CudaScratch {
 public:
  using value_type = char;
  CudaScratch(CudaDevice& device, cudaStream_t stream) : device_(&device), stream_(stream) {}
  char* allocate(ptrdiff_t bytes) {
    return static_cast<char*>(device_->allocate(static_cast<uint64_t>(bytes), stream_));
  }
  void deallocate(char* memory, size_t bytes) { device_->free(memory, bytes, stream_); }

 private:
  CudaDevice* device_;
  cudaStream_t stream_;
};

inline constexpr uint32_t block_threads = 256;
inline uint32_t blocks_for(uint64_t n) {
  return static_cast<uint32_t>((n + block_threads - 1) / block_threads);
}

// Adds up what op(i, add) passes to add(bin, n); a block sums in its shared memory first.
template <uint32_t bins, class Op>
__global__ void histogram_bins(uint64_t n, Op op, unsigned long long* counts) {
  __shared__ int32_t sums[bins];
  for (uint32_t bin = threadIdx.x; bin < bins; bin += blockDim.x) sums[bin] = 0;
  __syncthreads();
  auto add = [](uint32_t bin, int32_t by) { atomicAdd(&sums[bin], by); };
  uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < n; i += step) op(i, add);
  __syncthreads();
  for (uint32_t bin = threadIdx.x; bin < bins; bin += blockDim.x) {
    // Negative sums wrap around and back.
    auto sum = static_cast<long long>(sums[bin]);
    if (sum) atomicAdd(counts + bin, static_cast<unsigned long long>(sum));
  }
}

class CudaSpace {
 public:
  // A thread a key: neighbours read neighbours.
  static constexpr uint64_t keys_per_task = 1;
  static constexpr uint64_t threads_in_step = 32;
  static constexpr uint32_t max_blocks = 132 * 16;
  template <class T>
  using Buffer = CudaArray<T>;
  using Image = CudaArray<std::byte>;

  CudaSpace(CudaDevice& device, cudaStream_t stream)
      : device_(device), stream_(stream), scratch_(device, stream) {}

  auto policy() { return thrust::cuda::par_nosync(scratch_).on(stream_); }
  template <class T>
  CudaArray<T> buffer(uint64_t n) {
    return CudaArray<T>(device_, stream_, n);
  }
  void make_image(uint64_t bytes, Image* image) {
    *image = buffer<std::byte>(bytes);
    set_zero(image->data(), image->bytes());
  }
  std::byte* data(Image* image) { return image->data(); }
  void copy(void* to, const void* from, uint64_t bytes) {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copy");
  }
  // From pageable memory, which the call has read when it returns.
  void copy_in(void* to, const void* from, uint64_t bytes) {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copy");
    if (device_.reads_pageable_memory()) cuda_check(cudaStreamSynchronize(stream_), "copy");
  }
  void copy_out(void* to, const void* from, uint64_t bytes) {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "copy");
    cuda_check(cudaStreamSynchronize(stream_), "copy");
  }

  void set_zero(void* to, uint64_t bytes) {
    cuda_check(cudaMemsetAsync(to, 0, bytes, stream_), "clear memory");
  }
  template <class Op>
  void each(uint64_t n, const Op& op) {
    thrust::for_each_n(policy(), thrust::counting_iterator<uint64_t>(0), n, op);
  }

  template <uint32_t bins, class Op>
  void histogram(uint64_t n, const Op& op, int64_t* counts) {
    CudaArray<unsigned long long> sums = buffer<unsigned long long>(bins);
    set_zero(sums.data(), sums.bytes());
    uint32_t blocks = n < max_blocks * uint64_t{block_threads} ? blocks_for(n) : max_blocks;
    histogram_bins<bins><<<blocks, block_threads, 0, stream_>>>(n, op, sums.data());
    cuda_check(cudaGetLastError(), "count");
    copy_out(counts, sums.data(), bins * sizeof *counts);
  }

  CudaDevice& device() { return device_; }
  cudaStream_t stream() { return stream_; }

 private:
  CudaDevice& device_;
  cudaStream_t stream_;
  CudaScratch scratch_;
};

}  // namespace stride

// What all sets of a device share: arguments that lie in host memory, and calls cut into chunks.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/device/cuda_space.cuh"
#include "gpu/device/cuda_transfer.h"
#include "gpu/set/cuda_slots.cuh"
#include "gpu/set/vector_set_plan.h"
#include "gpu/vector_set.h"

namespace stride {

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
  // Out: what is to be written, or null. Called in any order; copy_back() copies.
  template <class T>
  T* out(T* data, uint64_t n) {
    if (!data || n == 0 || context_.device.owns(data)) return data;
    T* there = room<T>(n);
    outs_.push_back({data, there, n * sizeof(T)});
    return there;
  }
  void copy_back() {
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
        arguments.copy_back();
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
        arguments.copy_back();
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
        arguments.copy_back();
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

template <class Set>
Result<std::unique_ptr<VectorSet>> make_set_of(const CudaContext& context,
                                               const VectorSetOptions& options) {
  CudaStream stream(context.device);
  auto set = std::make_unique<Set>(context, options, stream);
  stream.wait();
  return std::unique_ptr<VectorSet>(std::move(set));
}

}  // namespace stride

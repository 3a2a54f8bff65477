// What all sets of a device share: arguments that lie in host memory, and calls cut into chunks.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/device/cuda_pipeline.h"
#include "gpu/device/cuda_space.cuh"
#include "gpu/device/cuda_transfer.h"
#include "gpu/host/ordered_stages.h"
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

// A call whose rows are worked on in their order, chunk by chunk. Arrays that lie elsewhere have
// rooms on the device: the next chunk comes in, and the one before goes out meanwhile.
class ChunkedCall {
 public:
  // chunk: rows, a multiple of 64.
  ChunkedCall(const CudaContext& context, uint64_t count, uint64_t chunk)
      : context_(context), count_(count), chunk_(chunk) {}

  // Arrays with so many bits of each row; null: not wanted.
  template <class T>
  void in(const T* data, uint32_t row_bits) {
    add(const_cast<T*>(data), row_bits, /*comes_in=*/true);
  }
  template <class T>
  void out(T* data, uint32_t row_bits) {
    add(data, row_bits, /*comes_in=*/false);
  }

  // Calls work(first, rows, arrays, stream) for each chunk, with the arrays on the device.
  template <class Work>
  void run(const Work& work) {
    const uint64_t chunks = (count_ + chunk_ - 1) / chunk_;
    make_rooms(std::min(chunks, chunk_rooms));
    auto work_on = [&](uint64_t chunk) {
      std::vector<std::byte*> places;
      for (Array& array : arrays_) places.push_back(place(array, chunk));
      work(chunk * chunk_, rows_of(chunk), places, static_cast<cudaStream_t>(working_));
      working_.wait();
    };
    if (chunks == 1 || std::all_of(arrays_.begin(), arrays_.end(),
                                   [](const Array& array) { return array.rooms.empty(); })) {
      for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
        copy_in(chunk);
        work_on(chunk);
        copy_out(chunk);
      }
      return;
    }
    run_in_order(
        chunks, [&](uint64_t chunk) { copy_in(chunk); }, work_on,
        [&](uint64_t chunk) { copy_out(chunk); });
  }

 private:
  struct Array {
    std::byte* data;
    uint32_t row_bits;
    bool comes_in;
    bool lies_elsewhere;
    std::vector<CudaArray<std::byte>> rooms;

    // Bits are in words of 64.
    uint64_t bytes(uint64_t rows) const {
      return row_bits == 1 ? (rows + 63) / 64 * 8 : rows * (row_bits / 8);
    }
    std::byte* from(uint64_t row) const { return data + row * row_bits / 8; }
  };

  void add(void* data, uint32_t row_bits, bool comes_in) {
    const bool elsewhere = data && !context_.device.owns(data);
    arrays_.push_back({static_cast<std::byte*>(data), row_bits, comes_in, elsewhere, {}});
  }
  void make_rooms(uint64_t n) {
    for (Array& array : arrays_)
      for (uint64_t i = 0; array.lies_elsewhere && i < n; ++i)
        array.rooms.emplace_back(context_.device, working_, array.bytes(std::min(chunk_, count_)));
    working_.wait();
  }
  uint64_t rows_of(uint64_t chunk) const { return std::min(chunk_, count_ - chunk * chunk_); }
  std::byte* place(Array& array, uint64_t chunk) {
    if (!array.lies_elsewhere) return array.data ? array.from(chunk * chunk_) : nullptr;
    return array.rooms[chunk % chunk_rooms].data();
  }
  void copy_in(uint64_t chunk) {
    OnDevice on(context_.device);
    for (Array& array : arrays_)
      if (array.comes_in && array.lies_elsewhere)
        context_.transfer.to_device(place(array, chunk), array.from(chunk * chunk_),
                                    array.bytes(rows_of(chunk)), incoming_);
  }
  void copy_out(uint64_t chunk) {
    OnDevice on(context_.device);
    for (Array& array : arrays_)
      if (!array.comes_in && array.lies_elsewhere)
        context_.transfer.to_host(array.from(chunk * chunk_), place(array, chunk),
                                  array.bytes(rows_of(chunk)), outgoing_);
  }

  CudaContext context_;
  const uint64_t count_, chunk_;
  CudaStream incoming_{context_.device}, working_{context_.device}, outgoing_{context_.device};
  std::vector<Array> arrays_;  // go first
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
  // Vectors of host memory that come in at once: a copy of them is on the device meanwhile.
  static constexpr uint64_t bytes_of_chunk = 32 << 20;

  const uint32_t* words_of(const KeyColumn& vectors) const {
    return reinterpret_cast<const uint32_t*>(vectors.data);
  }
  // here: all arrays lie in the memory of the device.
  uint64_t rows_of_call(bool here) const {
    const uint64_t most = here ? UINT64_MAX : bytes_of_chunk / (words_ * 4);
    return std::max<uint64_t>(std::min(rows_of_chunk(), most) / 64 * 64, 64);
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
    const bool here = is_here(vectors.data) && is_here(ids) && is_here(was_new);
    return cuda_guarded([&]() -> Result<uint64_t> {
      uint64_t failed = 0;
      ChunkedCall call(context_, vectors.size, rows_of_call(here));
      call.in(words_of(vectors), 32 * words_);
      call.out(ids, 64);
      call.out(was_new, 1);
      call.run(
          [&](uint64_t, uint64_t rows, std::span<std::byte* const> arrays, cudaStream_t stream) {
            auto* bits = reinterpret_cast<uint32_t*>(arrays[2]);
            // Warps write 32 bits each.
            if (bits)
              cuda_check(cudaMemsetAsync(bits + 2 * (bitmap_words(rows) - 1), 0, 8, stream),
                         "clear bits");
            failed += put_chunk(reinterpret_cast<const uint32_t*>(arrays[0]), rows,
                                reinterpret_cast<uint64_t*>(arrays[1]), bits, stream);
          });
      return failed;
    });
  }
  bool is_here(const void* p) const { return !p || context_.device.owns(p); }
  Status find_vectors(const KeyColumn& vectors, uint64_t* ids) override {
    STRIDE_TRY(check_alignment(vectors.data, 4));
    STRIDE_TRY(check_alignment(ids, 8));
    return cuda_guarded([&] {
      const uint64_t most = rows_of_call(/*here=*/true);
      auto start = [&](const KeyColumn& some, void* found, const QueryPieces*,
                       cudaStream_t stream) {
        in_chunks(some.size, most, [&](uint64_t at, uint64_t rows) {
          find_chunk(words_of(some) + at * words_, rows, static_cast<uint64_t*>(found) + at,
                     stream);
        });
      };
      search_in_chunks(context_.transfer, vectors, ids,
                       {sizeof(uint64_t), QueryAccess::any, start});
      return Status();
    });
  }
  Result<uint64_t> get_vectors(std::span<const uint64_t> ids, std::byte* vectors) override {
    STRIDE_TRY(check_alignment(ids.data(), 8));
    STRIDE_TRY(check_alignment(vectors, 4));
    return cuda_guarded([&]() -> Result<uint64_t> {
      uint64_t bad = absent;
      const bool here = is_here(vectors) && is_here(ids.data());
      ChunkedCall call(context_, ids.size(), rows_of_call(here));
      call.in(ids.data(), 64);
      call.out(vectors, 32 * words_);
      call.run(
          [&](uint64_t at, uint64_t rows, std::span<std::byte* const> arrays, cudaStream_t stream) {
            const uint64_t row = get_chunk(reinterpret_cast<const uint64_t*>(arrays[0]), rows,
                                           reinterpret_cast<uint32_t*>(arrays[1]), stream);
            if (row != absent) bad = std::min(bad, at + row);
          });
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

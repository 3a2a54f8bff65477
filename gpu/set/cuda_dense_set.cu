#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <utility>
#include <vector>

#include "gpu/set/cuda_dense_kernels.cuh"
#include "gpu/set/cuda_set_base.cuh"
#include "gpu/set/cuda_set_kinds.h"

namespace stride {

namespace {

class CudaDenseSet final : public CudaVectorSet {
 public:
  CudaDenseSet(const CudaContext& context, const VectorSetOptions& options, cudaStream_t stream)
      : CudaVectorSet(context, options.words),
        options_(options),
        counters_(context.device, stream, 1) {
    counters_.outlive_stream();
    ref_.hash = VectorHash{options.seed};
    ref_.counters = counters_.data();
    ref_.store.first = options.capacity + spare_rows;
    ref_.store.words = words_;
    ref_.layout = layout_of(options_, ref_.store.first);
    slots_ = make_slots(ref_.layout, stream);
    ref_.slots = slots_.data();
    make_store(options.capacity, stream);
    clear_all(stream);
  }

  uint64_t size() const override { return size_; }
  uint64_t id_limit() const override { return size_; }
  uint64_t memory_bytes() const override { return slots_.bytes() + store_room_ * words_ * 4; }

 private:
  // Smaller pieces, which stay in the second-level cache, cost more in launches than they save.
  static constexpr uint64_t rows_of_one_piece = 4 << 20;
  uint64_t rows_of_chunk() const override { return uint64_t{1} << 30; }

  // The memory of what is noted of the rows of a piece.
  struct Notes {
    CudaArray<uint64_t> found;
    CudaArray<uint32_t> taken, lost, successor, ranks;
    CudaArray<std::byte> scratch;
    RowNotes ref() {
      return {found.data(), taken.data(), lost.data(), successor.data(), ranks.data()};
    }
  };

  // Calls launch(piece) with the piece that vectors at p, and stored ones, are aligned to.
  template <class Launch>
  void with_piece(const void* p, const Launch& launch) const {
    auto aligned = [&](uint32_t bytes) {
      return words_ * 4 % bytes == 0 && reinterpret_cast<uintptr_t>(p) % bytes == 0;
    };
    if (aligned(16)) {
      launch(uint4());
    } else if (aligned(8)) {
      launch(uint2());
    } else {
      launch(uint32_t());
    }
    cuda_check(cudaGetLastError(), "search a set");
  }

  CudaArray<uint64_t> make_slots(const SlotLayout& layout, cudaStream_t stream) {
    context_.device.require(layout.slots() * sizeof(uint64_t));
    CudaArray<uint64_t> slots(context_.device, stream, layout.slots());
    slots.outlive_stream();
    cuda_check(cudaMemsetAsync(slots.data(), 0, slots.bytes(), stream), "clear a table");
    return slots;
  }
  void make_store(uint64_t capacity, cudaStream_t stream) {
    while (store_room_ < capacity + spare_rows) {
      auto chunk = static_cast<uint32_t>(chunks_.size());
      uint64_t rows = GrowingChunks::size(chunk, ref_.store.first);
      context_.device.require(rows * words_ * 4);
      chunks_.emplace_back(context_.device, stream, rows * words_);
      chunks_.back().outlive_stream();
      ref_.store.chunks[chunk] = chunks_.back().data();
      store_room_ += rows;
    }
  }
  // Doubles the room; false: there is no memory for it.
  bool grow(cudaStream_t stream) {
    if (!options_.grows || size_ >= max_dense_ids - 2 * spare_rows) return false;
    uint64_t capacity = std::min(2 * options_.capacity, max_dense_ids - 2 * spare_rows);
    try {
      make_store(capacity, stream);
      SlotLayout layout = layout_of(options_, std::max(capacity + spare_rows, ref_.layout.slots()));
      CudaArray<uint64_t> slots = make_slots(layout, stream);
      DenseRef larger = ref_;
      larger.layout = layout;
      larger.slots = slots.data();
      if (size_ > 0) {
        with_piece(nullptr, [&](auto piece) {
          refill_slots<decltype(piece)>
              <<<blocks_for(size_), block_threads, 0, stream>>>(larger, size_);
        });
      }
      if (read_counters(stream).failed) return false;
      slots_ = std::move(slots);
      ref_ = larger;
      options_.capacity = capacity;
      return true;
    } catch (const CudaFailure& failure) {
      if (failure.status().code() != StatusCode::resource_exhausted) throw;
      return false;
    }
  }
  DenseCounters read_counters(cudaStream_t stream) {
    DenseCounters now;
    cuda_check(cudaMemcpyAsync(&now, counters_.data(), sizeof now, cudaMemcpyDeviceToHost, stream),
               "count vectors");
    cuda_check(cudaStreamSynchronize(stream), "put vectors");
    size_ = now.size;
    DenseCounters reset{now.size, 0};
    if (now.failed) {
      cuda_check(
          cudaMemcpyAsync(counters_.data(), &reset, sizeof reset, cudaMemcpyHostToDevice, stream),
          "count vectors");
      cuda_check(cudaStreamSynchronize(stream), "count vectors");
    }
    return now;
  }

  uint64_t put_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids, uint32_t* bits,
                     cudaStream_t stream) override {
    Notes notes = make_notes(std::min(count, rows_of_one_piece), stream);
    uint64_t first = 0, failed = 0;  // of the rows whose failures are not yet counted
    uint64_t coming = 0;             // rows since the size was last read, all of which may be new
    auto catch_up = [&](uint64_t at) {
      uint64_t lost = read_counters(stream).failed;
      coming = 0;
      auto part = [&](auto* p, uint64_t i) { return p ? p + i : nullptr; };
      // Vectors that were made to collide fill a few buckets long before the table is full.
      while (lost > 0 && size_ * 64 >= ref_.layout.slots() && grow(stream)) {
        for (uint64_t i = first; i < at; i += rows_of_one_piece) {
          put_rows(vectors + i * words_, std::min(rows_of_one_piece, at - i), true, part(ids, i),
                   part(bits, i / 32), &notes, stream);
        }
        lost = read_counters(stream).failed;
      }
      failed += lost;
      first = at;
    };
    for (uint64_t at = 0; at < count;) {
      if (size_ + coming + rows_of_one_piece > options_.capacity && coming > 0) catch_up(at);
      while (size_ >= options_.capacity)
        if (!grow(stream)) break;
      uint32_t* to = bits ? bits + at / 32 : nullptr;
      uint64_t* out = ids ? ids + at : nullptr;
      if (size_ >= options_.capacity)
        return failed + find_rest(vectors + at * words_, count - at, out, to, stream);
      uint64_t rows = rows_of_piece(count - at, options_.capacity - size_ - coming, count - at);
      rows = std::min(rows, rows_of_one_piece);
      put_rows(vectors + at * words_, rows, false, out, to, &notes, stream);
      coming += rows;
      at += rows;
    }
    catch_up(count);
    return failed;
  }
  static auto counts_of(const RowNotes& notes) {
    return thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0),
                                           CountNews{notes});
  }
  Notes make_notes(uint64_t rows, cudaStream_t stream) {
    CudaSpace space(context_.device, stream);
    uint64_t words = (rows + 31) / 32;
    Notes notes{space.buffer<uint64_t>(rows),  space.buffer<uint32_t>(words),
                space.buffer<uint32_t>(words), space.buffer<uint32_t>(rows),
                space.buffer<uint32_t>(words), {}};
    size_t bytes = 0;
    cuda_check(cub::DeviceScan::ExclusiveSum(nullptr, bytes, counts_of(notes.ref()),
                                             notes.ranks.data(), words, stream),
               "count new vectors");
    notes.scratch = space.buffer<std::byte>(std::max<size_t>(bytes, 1));
    return notes;
  }
  void put_rows(const uint32_t* vectors, uint64_t rows, bool again, uint64_t* ids, uint32_t* bits,
                Notes* memory, cudaStream_t stream) {
    const uint64_t words = (rows + 31) / 32;
    const uint32_t blocks = blocks_for(rows);
    const RowNotes notes = memory->ref();
    cuda_check(cudaMemsetAsync(notes.lost, 0, words * sizeof(uint32_t), stream), "put vectors");
    with_piece(vectors, [&](auto piece) {
      claim_rows<decltype(piece)><<<blocks, block_threads, 0, stream>>>(ref_, vectors, rows, notes);
    });
    size_t bytes = memory->scratch.size();
    cuda_check(cub::DeviceScan::ExclusiveSum(memory->scratch.data(), bytes, counts_of(notes),
                                             notes.ranks, words, stream),
               "count new vectors");
    with_piece(vectors, [&](auto piece) {
      finish_rows<decltype(piece)>
          <<<blocks, block_threads, 0, stream>>>(ref_, vectors, rows, notes, again, ids, bits);
    });
    add_news<<<1, 1, 0, stream>>>(counters_.data(), notes, words);
    cuda_check(cudaGetLastError(), "put vectors");
  }
  uint64_t find_rest(const uint32_t* vectors, uint64_t count, uint64_t* ids, uint32_t* bits,
                     cudaStream_t stream) {
    CudaArray<uint64_t> own;
    if (!ids) {
      own = CudaArray<uint64_t>(context_.device, stream, count);
      ids = own.data();
    }
    find_chunk(vectors, count, ids, stream);
    if (bits) cuda_check(cudaMemsetAsync(bits, 0, (count + 31) / 32 * 4, stream), "clear bits");
    count_absent<<<blocks_for(count), block_threads, 0, stream>>>(ids, count, counters_.data());
    cuda_check(cudaGetLastError(), "count vectors");
    return read_counters(stream).failed;
  }
  void find_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids,
                  cudaStream_t stream) override {
    with_piece(vectors, [&](auto piece) {
      find_rows<decltype(piece)>
          <<<blocks_for(count), block_threads, 0, stream>>>(ref_, vectors, count, ids);
    });
  }
  uint64_t get_chunk(const uint64_t* ids, uint64_t count, uint32_t* vectors,
                     cudaStream_t stream) override {
    FirstBad bad(context_.device, stream);
    with_piece(vectors, [&](auto piece) {
      uint64_t pieces = count * words_ / (sizeof(piece) / 4);
      get_rows<decltype(piece)>
          <<<blocks_for(pieces), block_threads, 0, stream>>>(ref_, ids, count, vectors, bad.data());
    });
    return bad.fetch();
  }
  void clear_all(cudaStream_t stream) override {
    cuda_check(cudaMemsetAsync(slots_.data(), 0, slots_.bytes(), stream), "clear a table");
    DenseCounters none{};
    cuda_check(
        cudaMemcpyAsync(counters_.data(), &none, sizeof none, cudaMemcpyHostToDevice, stream),
        "clear a set");
    cuda_check(cudaStreamSynchronize(stream), "clear a set");
    size_ = 0;
  }

  VectorSetOptions options_;
  CudaArray<DenseCounters> counters_;
  CudaArray<uint64_t> slots_;
  std::vector<CudaArray<uint32_t>> chunks_;
  uint64_t store_room_ = 0;  // vectors
  DenseRef ref_;
  uint64_t size_ = 0;
};

}  // namespace

Result<std::unique_ptr<VectorSet>> make_cuda_dense_set(const CudaContext& context,
                                                       const VectorSetOptions& options) {
  return make_set_of<CudaDenseSet>(context, options);
}

}  // namespace stride

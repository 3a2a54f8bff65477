#include "gpu/set/cuda_set_base.cuh"
#include "gpu/set/cuda_set_kinds.h"

namespace stride {

namespace {

template <class Entry>
class CudaSlotSet final : public CudaVectorSet {
 public:
  CudaSlotSet(const CudaContext& context, const VectorSetOptions& options, cudaStream_t stream)
      : CudaVectorSet(context, options.words),
        table_(context, options, options.capacity, UINT64_MAX, stream) {}

  uint64_t size() const override { return table_.size(); }
  uint64_t id_limit() const override { return table_.id_limit(); }
  uint64_t memory_bytes() const override { return table_.memory_bytes(); }

 private:
  uint64_t rows_of_chunk() const override { return uint64_t{1} << 30; }

  // Vectors of two words may begin at any word.
  const Entry* entries(const uint32_t* vectors, uint64_t count, CudaArray<Entry>* aligned,
                       cudaStream_t stream) const {
    if (reinterpret_cast<uintptr_t>(vectors) % sizeof(Entry) == 0)
      return reinterpret_cast<const Entry*>(vectors);
    *aligned = CudaArray<Entry>(context_.device, stream, count);
    cuda_check(cudaMemcpyAsync(aligned->data(), vectors, count * sizeof(Entry),
                               cudaMemcpyDeviceToDevice, stream),
               "align vectors");
    return aligned->data();
  }
  uint64_t put_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids, uint32_t* bits,
                     cudaStream_t stream) override {
    CudaArray<Entry> aligned;
    CudaArray<uint64_t> own;
    const Entry* in = entries(vectors, count, &aligned, stream);
    if (!ids) {
      own = CudaArray<uint64_t>(context_.device, stream, count);
      ids = own.data();
    }
    for (uint64_t at = 0; at < count;) {
      uint64_t rows = count - at;
      if (table_.grows()) rows = rows_of_piece(rows, table_.room(stream), rows);
      table_.expect(rows);
      put(in + at, rows, false, ids + at, bits ? bits + at / 32 : nullptr, stream);
      at += rows;
    }
    uint64_t failed = table_.take_failed(stream);
    // Vectors that were made to collide fill a few buckets long before the table is full.
    while (failed > 0 && table_.worth_growing() && table_.grow(stream)) {
      put(in, count, true, ids, bits, stream);
      failed = table_.take_failed(stream);
    }
    return failed;
  }
  void put(const Entry* in, uint64_t rows, bool again, uint64_t* ids, uint32_t* bits,
           cudaStream_t stream) {
    table_.with_group([&](auto group) {
      put_slots<group()><<<blocks_for(rows), block_threads, 0, stream>>>(table_.ref(), in, rows,
                                                                         again, ids, bits);
    });
  }
  void find_chunk(const uint32_t* vectors, uint64_t count, uint64_t* ids,
                  cudaStream_t stream) override {
    CudaArray<Entry> aligned;
    const Entry* in = entries(vectors, count, &aligned, stream);
    table_.with_group([&](auto group) {
      find_slots<group()>
          <<<blocks_for(count), block_threads, 0, stream>>>(table_.ref(), in, count, ids);
    });
  }
  uint64_t get_chunk(const uint64_t* ids, uint64_t count, uint32_t* vectors,
                     cudaStream_t stream) override {
    CudaArray<Entry> aligned;
    auto* out = reinterpret_cast<Entry*>(vectors);
    bool is_aligned = reinterpret_cast<uintptr_t>(vectors) % sizeof(Entry) == 0;
    if (!is_aligned) {
      aligned = CudaArray<Entry>(context_.device, stream, count);
      out = aligned.data();
    }
    FirstBad bad(context_.device, stream);
    get_slots<<<blocks_for(count), block_threads, 0, stream>>>(table_.ref(), ids, count, out,
                                                               bad.data());
    cuda_check(cudaGetLastError(), "get vectors");
    if (!is_aligned)
      cuda_check(
          cudaMemcpyAsync(vectors, out, count * sizeof(Entry), cudaMemcpyDeviceToDevice, stream),
          "get vectors");
    return bad.fetch();
  }
  void clear_all(cudaStream_t stream) override { table_.clear(stream); }

  CudaSlots<Entry> table_;
};

}  // namespace

Result<std::unique_ptr<VectorSet>> make_cuda_slot_set(const CudaContext& context,
                                                      const VectorSetOptions& options) {
  if (options.words == 1) return make_set_of<CudaSlotSet<uint32_t>>(context, options);
  if (options.words == 2) return make_set_of<CudaSlotSet<uint64_t>>(context, options);
  STRIDE_TRY(check_wide(context.device));
  return make_set_of<CudaSlotSet<Wide>>(context, options);
}

}  // namespace stride

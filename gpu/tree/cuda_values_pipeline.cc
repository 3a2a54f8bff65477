#include "gpu/tree/cuda_values_pipeline.h"

#include <algorithm>
#include <atomic>

#include "gpu/device/cuda_piece_run.h"
#include "gpu/device/cuda_pipeline.h"
#include "gpu/tree/cuda_values.h"
#include "storage/stream_store.h"

namespace stride {

namespace {

// The device is the thread's only as long as a call lasts.
class CudaFoundValues final : public FoundValues {
 public:
  CudaFoundValues(CudaTransfer& transfer, std::span<const IndexView> indexes, uint64_t count,
                  std::span<uint64_t> found, std::span<uint64_t> ends)
      : transfer_(transfer),
        stream_(transfer.device()),
        indexes_(transfer.device(), indexes, stream_),
        locations_(transfer.device(), stream_, count),
        ends_on_device_(transfer.device(), stream_, count),
        found_(found),
        ends_(ends) {
    stream_.wait();  // other streams use the arrays
  }

  void find(const KeyColumn& queries) {
    auto start = [&](const KeyColumn& some, void* locations, const QueryPieces* pieces,
                     cudaStream_t stream) {
      indexes_.find(some, static_cast<Location*>(locations), pieces, stream);
    };
    search_in_chunks(transfer_, queries, locations_.data(),
                     {sizeof(Location), indexes_.access(queries), start});
    if (queries.size == 0) return;
    measure_values_cuda(transfer_.device(), indexes_, locations_.data(), queries.size,
                        ends_on_device_.data(), stream_);
    stream_.wait();
    fetch_ends();
    bytes_ = ends_.back();
  }

  uint64_t bytes() const override { return bytes_; }

  bool have_width(uint64_t width) const override {
    std::atomic<bool> equal{true};
    transfer_.host().parallel_for(ends_.size(), grain, [&](uint64_t i, uint64_t last) {
      if (!equal.load(std::memory_order_relaxed)) return;
      for (uint64_t end = i == 0 ? 0 : ends_[i - 1]; i < last; ++i) {
        const bool is_found = found_[i / 64] >> (i % 64) & 1;
        if (is_found && ends_[i] - end != width)
          return equal.store(false, std::memory_order_relaxed);
        end = ends_[i];
      }
    });
    return equal;
  }

  Status copy(std::byte* values, uint64_t begin) override {
    return cuda_guarded([&] {
      constexpr uint64_t most = uint64_t{large_room.max_pieces} * slot_bytes;
      for (uint64_t first = 0; first < bytes_; first += most)
        STRIDE_TRY(copy_some(values, first, std::min(bytes_, first + most)));
      transfer_.host().parallel_for(begin ? ends_.size() : 0, grain,
                                    [&](uint64_t i, uint64_t last) {
                                      for (; i < last; ++i) ends_[i] += begin;
                                    });
      return Status();
    });
  }

 private:
  static constexpr uint64_t grain = 1 << 14;

  // Bytes [first, last) of all values.
  Status copy_some(std::byte* values, uint64_t first, uint64_t last) {
    PieceBatch batch{(last - first + slot_bytes - 1) / slot_bytes, {}, {}, {}, {}};
    batch.start = [&](const PieceFlags& flags, const PieceRoom& room, cudaStream_t stream) {
      gather_pieces_cuda(indexes_, locations_.data(), ends_on_device_.data(), ends_.size(), first,
                         last, flags, room.out(), stream);
    };
    batch.take = [&](uint64_t piece, uint64_t slot, const PieceRoom& room) {
      const uint64_t begin = first + piece * slot_bytes;
      copy_result(values + begin, room.out() + slot * slot_bytes,
                  std::min<uint64_t>(slot_bytes, last - begin), bytes_);
      return Status();
    };
    return run_in_pieces(transfer_, batch);
  }

  // Where values end, and which there are: to the host.
  void fetch_ends() {
    auto start = [](const KeyColumn& some, void* results, const QueryPieces* pieces,
                    cudaStream_t stream) {
      copy_ends_cuda(reinterpret_cast<const ValueEnd*>(some.data), some.size, results, pieces,
                     stream);
    };
    auto take = [&](uint64_t first, uint64_t count, const std::byte* results) -> Status {
      auto* ends = reinterpret_cast<const ValueEnd*>(results);
      for (uint64_t i = 0; i < count; ++i) ends_[first + i] = ends[i].end();
      set_bits(found_, first, count, [&](uint64_t i) { return ends[i].found(); });
      return {};
    };
    const auto* words = reinterpret_cast<const std::byte*>(ends_on_device_.data());
    (void)search_in_chunks(transfer_, KeyColumn::fixed(words, sizeof(ValueEnd), ends_.size()),
                           {sizeof(ValueEnd), QueryAccess::once, start}, take);
  }

  CudaTransfer& transfer_;
  LentStream stream_;
  CudaIndexList indexes_;
  CudaArray<Location> locations_;
  CudaArray<ValueEnd> ends_on_device_;
  std::span<uint64_t> found_, ends_;
  uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<FoundValues> find_values_cuda(CudaTransfer& transfer,
                                              std::span<const IndexView> indexes,
                                              const KeyColumn& queries, std::span<uint64_t> found,
                                              std::span<uint64_t> ends) {
  OnDevice on(transfer.device());
  auto values = std::make_unique<CudaFoundValues>(transfer, indexes, queries.size, found, ends);
  values->find(queries);
  return values;
}

}  // namespace stride

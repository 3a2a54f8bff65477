#include "gpu/tree/cuda_values_pipeline.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/device/cuda_pipeline.h"
#include "gpu/tree/cuda_values.h"
#include "storage/stream_store.h"

namespace stride {

namespace {

// Queries that were searched together: their ends are relative to the first, until they are copied.
struct Chunk {
  uint64_t first, count;
  uint64_t base = 0;  // where its first value begins, once all chunks are known
};

// Values that go to the host together.
struct Piece {
  const Chunk* chunk;
  uint64_t first, count;  // queries
  uint64_t begin, bytes;  // of the chunk's values
};

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
    std::mutex mutex;
    auto start = [&](uint64_t first, const KeyColumn& chunk, void* results, cudaStream_t stream) {
      Location* locations = locations_.data() + first;
      indexes_.find(chunk, locations, stream);
      measure_values_cuda(transfer_.device(), indexes_, locations, chunk.size,
                          ends_on_device_.data() + first, stream);
      cuda_check(cudaMemcpyAsync(results, ends_on_device_.data() + first,
                                 chunk.size * sizeof(ValueEnd), cudaMemcpyDeviceToDevice, stream),
                 "copy the ends of values");
    };
    auto take = [&](uint64_t first, uint64_t count, const std::byte* results) -> Status {
      auto* ends = reinterpret_cast<const ValueEnd*>(results);
      for (uint64_t i = 0; i < count; ++i) ends_[first + i] = ends[i].end();
      set_bits(found_, first, count, [&](uint64_t i) { return ends[i].found(); });
      std::lock_guard lock(mutex);
      chunks_.push_back({first, count});
      return {};
    };
    (void)search_in_chunks(transfer_, queries, sizeof(ValueEnd), start, take);
    std::sort(chunks_.begin(), chunks_.end(),
              [](const Chunk& a, const Chunk& b) { return a.first < b.first; });
    for (Chunk& chunk : chunks_) {
      chunk.base = bytes_;
      bytes_ += ends_[chunk.first + chunk.count - 1];
    }
  }

  uint64_t bytes() const override { return bytes_; }

  bool have_width(uint64_t width) const override {
    std::atomic<bool> equal{true};
    transfer_.host().parallel_for(chunks_.size(), 1, [&](uint64_t i, uint64_t last) {
      for (; i < last && equal.load(std::memory_order_relaxed); ++i)
        if (!has_width(chunks_[i], width)) equal.store(false, std::memory_order_relaxed);
    });
    return equal;
  }

  Status copy(std::byte* values, uint64_t begin) override {
    begin_ = begin;
    return cuda_guarded([&] {
      std::vector<Piece> pieces = cut();
      return run_lanes<Lane>(
          transfer_, pieces.size(), transfer_.max_workers(),
          [&](auto& lane) { lane.emplace(*this, values); },
          [&](Lane& lane, uint64_t i) {
            lane.run(pieces[i]);
            return Status();
          });
    });
  }

 private:
  // A stream with the memory that a piece needs on its way.
  class Lane {
   public:
    Lane(CudaFoundValues& all, std::byte* values)
        : all_(all), values_(values), gathered_(all.transfer_), stream_(all.transfer_.device()) {}

    void run(const Piece& piece) {
      (void)finish();
      std::byte* gathered = gathered_.room(piece.bytes);
      gather_values_cuda(all_.indexes_, all_.locations_.data() + piece.first,
                         all_.ends_on_device_.data() + piece.first, piece.begin, piece.count,
                         gathered, piece.bytes, stream_);
      piece_ = piece;
      if (piece.bytes > staging_bytes) {  // a single large value
        all_.transfer_.to_host(place(piece), gathered, piece.bytes, stream_);
      }
      if (piece.bytes > staging_bytes || piece.bytes == 0) return;
      if (!staged_.data()) staged_ = all_.transfer_.pinned().take();
      cuda_check(
          cudaMemcpyAsync(staged_.data(), gathered, piece.bytes, cudaMemcpyDeviceToHost, stream_),
          "copy values");
    }

    // Waits for the piece that is under way, if any, and puts it in its place.
    Status finish() {
      if (piece_.count == 0) return {};
      Piece piece = std::exchange(piece_, {});
      if (piece.bytes > 0 && piece.bytes <= staging_bytes) {
        stream_.wait();
        copy_result(place(piece), staged_.data(), piece.bytes, all_.bytes_);
      }
      uint64_t* ends = all_.ends_.data() + piece.first;
      for (uint64_t i = 0; i < piece.count; ++i) ends[i] += all_.begin_ + piece.chunk->base;
      return {};
    }

   private:
    std::byte* place(const Piece& piece) const { return values_ + piece.chunk->base + piece.begin; }

    CudaFoundValues& all_;
    std::byte* values_;
    PinnedPool::Piece staged_;
    DeviceRoom gathered_;
    CudaStream stream_;  // goes first, and waits for what uses the memory
    Piece piece_{};
  };

  bool has_width(const Chunk& chunk, uint64_t width) const {
    uint64_t end = 0;
    for (uint64_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
      const bool is_found = found_[i / 64] >> (i % 64) & 1;
      if (is_found && ends_[i] - end != width) return false;
      end = ends_[i];
    }
    return true;
  }

  // Pieces of about equal size in each chunk; all queries are in one of them.
  std::vector<Piece> cut() const {
    std::vector<Piece> pieces;
    for (const Chunk& chunk : chunks_) {
      const uint64_t* ends = ends_.data() + chunk.first;
      uint64_t total = ends[chunk.count - 1];
      uint64_t parts = total / staging_bytes + 1, part = total / parts + 1;
      for (uint64_t i = 0, begin = 0; i < chunk.count;) {
        const uint64_t* last = std::upper_bound(ends + i, ends + chunk.count, begin + part);
        auto count = std::max<uint64_t>(1, static_cast<uint64_t>(last - (ends + i)));
        uint64_t end = ends[i + count - 1];
        pieces.push_back({&chunk, chunk.first + i, count, begin, end - begin});
        i += count;
        begin = end;
      }
    }
    return pieces;
  }

  CudaTransfer& transfer_;
  LentStream stream_;
  CudaIndexList indexes_;
  CudaArray<Location> locations_;
  CudaArray<ValueEnd> ends_on_device_;
  std::span<uint64_t> found_, ends_;
  std::vector<Chunk> chunks_;
  uint64_t bytes_ = 0;
  uint64_t begin_ = 0;  // of the first value, in the ends
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

#include "gpu/cuda_pipeline.h"

#include <algorithm>
#include <optional>

namespace stride {

namespace {

constexpr uint32_t lanes_in_flight = 4;

enum class Side { device, pinned, pageable };

Side side_of(const CudaDevice& device, const void* p) {
  if (device.owns(p)) return Side::device;
  cudaPointerAttributes attributes{};
  bool known = cudaPointerGetAttributes(&attributes, p) == cudaSuccess;
  if (!known) (void)cudaGetLastError();
  return known && attributes.type == cudaMemoryTypeHost ? Side::pinned : Side::pageable;
}

// The batch, and where its parts lie.
struct Batch {
  KeyColumn queries;
  std::byte* results;
  uint32_t result_bytes;
  Side queries_side, results_side;

  // How many queries from `first` on fit into one piece of staging memory, and their results.
  uint64_t chunk(uint64_t first) const {
    uint64_t left = queries.size - first;
    uint64_t most = std::min(left, staging_bytes / result_bytes);
    if (queries.is_fixed()) {
      return std::min(most, std::max<uint64_t>(1, staging_bytes / std::max(1u, queries.width)));
    }
    if (queries_side == Side::device) return most;
    most = std::min(most, staging_bytes / 8 - 1);
    const uint64_t* begin = queries.offsets + first;
    const uint64_t* end = std::upper_bound(begin, begin + most + 1, *begin + staging_bytes);
    return std::max<uint64_t>(1, static_cast<uint64_t>(end - begin) - 1);
  }
};

// A stream with the memory that a chunk needs on its way.
class Lane {
 public:
  Lane(CudaTransfer& transfer, const Batch& batch)
      : transfer_(transfer), batch_(batch), stream_(transfer.device()) {}

  void run(uint64_t first, uint64_t count, const StartSearch& start) {
    finish();
    first_ = first;
    count_ = count;
    KeyColumn queries = bring(batch_.queries.slice(first, count));
    if (batch_.results_side == Side::device) {
      start(queries, results(), stream_);
      return;
    }
    if (!found_.size()) found_ = CudaArray<std::byte>(transfer_.device(), stream_, staging_bytes);
    start(queries, found_.data(), stream_);
    void* to = results();
    if (batch_.results_side == Side::pageable) {
      if (!staged_results_.data()) staged_results_ = transfer_.pinned().take();
      to = staged_results_.data();
    }
    cuda_check(cudaMemcpyAsync(to, found_.data(), result_bytes(), cudaMemcpyDeviceToHost, stream_),
               "copy results");
  }

  // Waits for the chunk that is under way, if any, and hands its results over.
  void finish() {
    if (count_ == 0) return;
    stream_.wait();
    if (batch_.results_side == Side::pageable) {
      transfer_.copy(results(), staged_results_.data(), result_bytes());
    }
    count_ = 0;
  }

 private:
  std::byte* results() const { return batch_.results + first_ * batch_.result_bytes; }
  uint64_t result_bytes() const { return count_ * batch_.result_bytes; }

  KeyColumn bring(KeyColumn queries) {
    if (batch_.queries_side == Side::device) return queries;
    uint64_t begin = queries.begin(0);
    KeyColumn there = queries;
    there.data = send(queries.data + begin, queries.bytes(), &keys_, &staged_keys_) - begin;
    if (!queries.is_fixed()) {
      there.offsets = reinterpret_cast<const uint64_t*>(
          send(queries.offsets, (queries.size + 1) * 8, &offsets_, &staged_offsets_));
    }
    return there;
  }

  const std::byte* send(const void* from, uint64_t bytes, CudaArray<std::byte>* there,
                        PinnedPool::Piece* staged) {
    if (!there->size()) *there = CudaArray<std::byte>(transfer_.device(), stream_, staging_bytes);
    if (batch_.queries_side == Side::pageable) {
      if (!staged->data()) *staged = transfer_.pinned().take();
      transfer_.copy(staged->data(), from, bytes);
      from = staged->data();
    }
    cuda_check(cudaMemcpyAsync(there->data(), from, bytes, cudaMemcpyHostToDevice, stream_),
               "copy queries");
    return there->data();
  }

  CudaTransfer& transfer_;
  const Batch& batch_;
  PinnedPool::Piece staged_keys_, staged_offsets_, staged_results_;
  CudaStream stream_;
  CudaArray<std::byte> keys_, offsets_, found_;
  uint64_t first_ = 0, count_ = 0;
};

}  // namespace

void search_in_chunks(CudaTransfer& transfer, const KeyColumn& queries, void* results,
                      uint32_t result_bytes, const StartSearch& start) {
  if (queries.size == 0) return;
  const void* source = queries.is_fixed() ? static_cast<const void*>(queries.data)
                                          : static_cast<const void*>(queries.offsets);
  Batch batch{queries, static_cast<std::byte*>(results), result_bytes,
              side_of(transfer.device(), source), side_of(transfer.device(), results)};
  if (batch.queries_side == Side::device && batch.results_side == Side::device) {
    CudaStream stream(transfer.device());
    start(queries, results, stream);
    stream.wait();
    return;
  }
  std::optional<Lane> lanes[lanes_in_flight];
  uint64_t number = 0;
  for (uint64_t first = 0; first < queries.size; ++number) {
    std::optional<Lane>& lane = lanes[number % lanes_in_flight];
    if (!lane) lane.emplace(transfer, batch);
    uint64_t count = batch.chunk(first);
    lane->run(first, count, start);
    first += count;
  }
  // In the order in which they were started.
  for (uint64_t i = 0; i < lanes_in_flight; ++i) {
    if (auto& lane = lanes[(number + i) % lanes_in_flight]) lane->finish();
  }
}

}  // namespace stride

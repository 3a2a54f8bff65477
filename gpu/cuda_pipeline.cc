#include "gpu/cuda_pipeline.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

namespace stride {

namespace {

constexpr uint32_t lanes_of_worker = 2;
// More of them only queue for the driver.
constexpr uint64_t most_workers = 8;

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

  // Of queries or results that a chunk may have. Staged pieces are small, so that they stay in the
  // host's cache; pieces that the bus reads where they are cost less if they are large.
  uint64_t piece_bytes() const {
    bool staged = queries_side == Side::pageable || results_side == Side::pageable;
    return staged ? staging_bytes : 4 * staging_bytes;
  }

  // How many queries from `first` on fit into one piece, and their results.
  uint64_t chunk(uint64_t first) const {
    uint64_t left = queries.size - first;
    uint64_t most = std::min(left, piece_bytes() / result_bytes);
    if (queries.is_fixed()) {
      return std::min(most, std::max<uint64_t>(1, piece_bytes() / std::max(1u, queries.width)));
    }
    if (queries_side == Side::device) return most;
    most = std::min(most, piece_bytes() / 8 - 1);
    const uint64_t* begin = queries.offsets + first;
    const uint64_t* end = std::upper_bound(begin, begin + most + 1, *begin + piece_bytes());
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
    if (!found_.size())
      found_ = CudaArray<std::byte>(transfer_.device(), stream_, batch_.piece_bytes());
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
      std::memcpy(results(), staged_results_.data(), result_bytes());
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
    if (bytes > batch_.piece_bytes()) {  // a single query of that size
      *there = CudaArray<std::byte>(transfer_.device(), stream_, bytes);
      there->clear_padding();
      transfer_.to_device(there->data(), from, bytes, stream_);
      return there->data();
    }
    if (there->size() != batch_.piece_bytes()) {
      *there = CudaArray<std::byte>(transfer_.device(), stream_, batch_.piece_bytes());
      // The word that holds the last byte of a chunk is read as a whole.
      cuda_check(cudaMemsetAsync(there->data(), 0, there->bytes(), stream_), "clear memory");
    }
    if (batch_.queries_side == Side::pageable) {
      if (!staged->data()) *staged = transfer_.pinned().take();
      std::memcpy(staged->data(), from, bytes);
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

// Carries the first exception of several threads to the one that waits for them.
class FirstFailure {
 public:
  template <class Work>
  void watch(const Work& work) {
    try {
      work();
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failed_.exchange(true)) exception_ = std::current_exception();
    }
  }
  bool failed() const { return failed_; }
  void rethrow() {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::exception_ptr exception_;
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
  std::vector<uint64_t> starts;  // of the chunks
  for (uint64_t first = 0; first < queries.size; first += batch.chunk(first))
    starts.push_back(first);
  starts.push_back(queries.size);
  // Each worker takes the next chunk, stages it and goes on with the one it started before.
  std::atomic<uint64_t> next{0};
  FirstFailure failure;
  uint64_t chunks = starts.size() - 1;
  uint64_t workers = std::min<uint64_t>({chunks, transfer.threads(), most_workers});
  transfer.each_worker(workers, [&] {
    failure.watch([&] {
      transfer.device().enter();
      std::optional<Lane> lanes[lanes_of_worker];
      for (uint64_t turn = 0;; ++turn) {
        uint64_t chunk = next++;
        if (chunk >= chunks || failure.failed()) break;
        std::optional<Lane>& lane = lanes[turn % lanes_of_worker];
        if (!lane) lane.emplace(transfer, batch);
        lane->run(starts[chunk], starts[chunk + 1] - starts[chunk], start);
      }
      for (auto& lane : lanes)
        if (lane) lane->finish();
    });
  });
  failure.rethrow();
}

}  // namespace stride

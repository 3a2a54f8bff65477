#include "gpu/device/cuda_pipeline.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "storage/stream_store.h"

namespace stride {

namespace {

// As many at least for each worker, so that all have work, unless they are so small that starting
// them takes longer than searching.
constexpr uint64_t chunks_of_worker = 2;
constexpr uint64_t min_chunk = 8192;
// Where the bus, or the link between two devices, reads and writes the caller's memory itself, few
// large pieces keep it busiest.
constexpr uint64_t direct_bytes = 8 * staging_bytes;
constexpr uint64_t direct_workers = 2;
constexpr uint64_t direct_chunks = 16;  // at least: one way is idle for the first and the last

// The batch, and where its parts lie.
struct Batch {
  KeyColumn queries;
  std::byte* results;
  uint32_t result_bytes;
  MemorySide queries_side, results_side;
  uint64_t max_queries;               // of a chunk
  const TakeResults* take = nullptr;  // in place of results

  // A chunk may have so many bytes of queries or of results. Staged pieces are small, so that they
  // stay in the host's cache.
  uint64_t piece_bytes() const { return is_staged() ? staging_bytes : direct_bytes; }
  bool is_staged() const {
    return queries_side == MemorySide::pageable || results_side == MemorySide::pageable;
  }

  // How many queries from `first` on fit into one piece, and their results.
  uint64_t chunk(uint64_t first) const {
    uint64_t left = queries.size - first;
    uint64_t most = std::min({left, piece_bytes() / result_bytes, max_queries});
    if (queries.is_fixed()) {
      return std::min(most, std::max<uint64_t>(1, piece_bytes() / std::max(1u, queries.width)));
    }
    if (queries_side == MemorySide::device) return most;
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
      : transfer_(transfer),
        batch_(batch),
        keys_(transfer),
        offsets_(transfer),
        found_(transfer),
        stream_(transfer.device()) {}

  Status run(uint64_t first, uint64_t count, const StartSearch& start) {
    STRIDE_TRY(finish());
    first_ = first;
    count_ = count;
    KeyColumn queries = copy_to_device(batch_.queries.slice(first, count));
    if (batch_.results_side == MemorySide::device) {
      start(first, queries, results(), stream_);
      return {};
    }
    std::byte* found = found_.room(result_bytes());
    start(first, queries, found, stream_);
    void* to = staged_results_.data();
    if (is_direct(batch_.results_side)) {
      to = results();
    } else if (to == nullptr) {
      staged_results_ = transfer_.pinned().take();
      to = staged_results_.data();
    }
    cuda_check(cudaMemcpyAsync(to, found, result_bytes(),
                               kind_of(batch_.results_side, cudaMemcpyDeviceToHost), stream_),
               "copy results");
    return {};
  }

  // Waits for the chunk that is under way, if any, and hands its results over.
  Status finish() {
    if (count_ == 0) return {};
    uint64_t count = std::exchange(count_, 0);
    stream_.wait();
    if (batch_.take) return (*batch_.take)(first_, count, staged_results_.data());
    if (batch_.results_side == MemorySide::pageable) {
      copy_result(results(), staged_results_.data(), count * batch_.result_bytes,
                  batch_.queries.size * batch_.result_bytes);
    }
    return {};
  }

 private:
  // Whether memory is read and written where it lies.
  static bool is_direct(MemorySide side) {
    return side == MemorySide::pinned || side == MemorySide::peer;
  }
  static cudaMemcpyKind kind_of(MemorySide side, cudaMemcpyKind of_host) {
    return side == MemorySide::peer ? cudaMemcpyDefault : of_host;
  }
  std::byte* results() const { return batch_.results + first_ * batch_.result_bytes; }
  uint64_t result_bytes() const { return count_ * batch_.result_bytes; }

  KeyColumn copy_to_device(KeyColumn queries) {
    if (batch_.queries_side == MemorySide::device) return queries;
    uint64_t begin = queries.begin(0);
    KeyColumn there = queries;
    there.data = send(queries.data + begin, queries.bytes(), &keys_, &staged_keys_) - begin;
    if (!queries.is_fixed()) {
      there.offsets = reinterpret_cast<const uint64_t*>(
          send(queries.offsets, (queries.size + 1) * 8, &offsets_, &staged_offsets_));
    }
    return there;
  }

  const std::byte* send(const void* from, uint64_t bytes, DeviceRoom* there,
                        PinnedPool::Piece* staged) {
    std::byte* to = there->room(bytes);
    if (bytes > batch_.piece_bytes()) {  // a single query of that size
      transfer_.to_device(to, from, bytes, stream_);
      return to;
    }
    if (batch_.queries_side == MemorySide::pageable) {
      if (!staged->data()) *staged = transfer_.pinned().take();
      std::memcpy(staged->data(), from, bytes);
      from = staged->data();
    }
    cuda_check(cudaMemcpyAsync(to, from, bytes,
                               kind_of(batch_.queries_side, cudaMemcpyHostToDevice), stream_),
               "copy queries");
    return to;
  }

  CudaTransfer& transfer_;
  const Batch& batch_;
  PinnedPool::Piece staged_keys_, staged_offsets_, staged_results_;
  DeviceRoom keys_, offsets_, found_;
  CudaStream stream_;  // goes first, and waits for what uses the memory
  uint64_t first_ = 0, count_ = 0;
};

// Rows of many lengths that lie on another device, on this one: the host has to know where each
// begins.
class HereFromPeer {
 public:
  HereFromPeer(CudaTransfer& transfer, KeyColumn* queries) {
    if (queries->is_fixed() || memory_side(transfer.device(), queries->offsets) != MemorySide::peer)
      return;
    uint64_t bytes = (queries->size + 1) * sizeof(uint64_t), edges[2];
    copy(transfer, edges, queries->offsets, sizeof edges[0]);
    copy(transfer, edges + 1, queries->offsets + queries->size, sizeof edges[1]);
    offsets_ = transfer.make_device_memory(bytes);
    data_ = transfer.make_device_memory(edges[1] - edges[0]);
    copy(transfer, offsets_.data(), queries->offsets, bytes);
    copy(transfer, data_.data(), queries->data + edges[0], edges[1] - edges[0]);
    queries->offsets = reinterpret_cast<const uint64_t*>(offsets_.data());
    queries->data = data_.data() - edges[0];
  }

 private:
  static void copy(CudaTransfer& transfer, void* to, const void* from, uint64_t bytes) {
    if (Status status = transfer.copy(to, from, bytes); !status.ok()) throw CudaFailure(status);
  }

  CudaArray<std::byte> offsets_, data_;
};

MemorySide side_of_queries(const CudaDevice& device, const KeyColumn& queries) {
  return memory_side(device, queries.is_fixed() ? static_cast<const void*>(queries.data)
                                                : static_cast<const void*>(queries.offsets));
}

Status run_chunks(CudaTransfer& transfer, Batch batch, const StartSearch& start) {
  const KeyColumn& queries = batch.queries;
  uint64_t workers = batch.is_staged() ? transfer.max_workers() : direct_workers;
  uint64_t wanted = queries.size / (batch.is_staged() ? chunks_of_worker * workers : direct_chunks);
  batch.max_queries = std::max(min_chunk, (wanted + 63) / 64 * 64);
  std::vector<uint64_t> starts;
  for (uint64_t first = 0; first < queries.size; first += batch.chunk(first))
    starts.push_back(first);
  starts.push_back(queries.size);
  return run_lanes<Lane>(
      transfer, starts.size() - 1, workers, [&](auto& lane) { lane.emplace(transfer, batch); },
      [&](Lane& lane, uint64_t chunk) {
        return lane.run(starts[chunk], starts[chunk + 1] - starts[chunk], start);
      });
}

}  // namespace

void search_in_chunks(CudaTransfer& transfer, const KeyColumn& given, void* results,
                      uint32_t result_bytes, const StartSearch& start) {
  if (given.size == 0) return;
  KeyColumn queries = given;
  const HereFromPeer brought(transfer, &queries);
  Batch batch{queries,
              static_cast<std::byte*>(results),
              result_bytes,
              side_of_queries(transfer.device(), queries),
              memory_side(transfer.device(), results),
              0};
  if (batch.queries_side == MemorySide::device && batch.results_side == MemorySide::device) {
    CudaStream stream(transfer.device());
    start(0, queries, results, stream);
    stream.wait();
    return;
  }
  (void)run_chunks(transfer, batch, start);  // it fails only where `take` does
}

Status search_in_chunks(CudaTransfer& transfer, const KeyColumn& given, uint32_t result_bytes,
                        const StartSearch& start, const TakeResults& take) {
  if (given.size == 0) return {};
  KeyColumn queries = given;
  const HereFromPeer brought(transfer, &queries);
  Batch batch{queries,
              nullptr,
              result_bytes,
              side_of_queries(transfer.device(), queries),
              MemorySide::pageable,
              0};
  batch.take = &take;
  return run_chunks(transfer, batch, start);
}

}  // namespace stride

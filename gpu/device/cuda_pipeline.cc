#include "gpu/device/cuda_pipeline.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "gpu/device/cuda_piece_run.h"
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
// A small batch in pinned memory is one chunk, where the search reads and writes it there. Of a
// large one the queries are copied to the device, which takes the bus's whole width, and so are
// results, unless they are ranks of numbers of 8 bytes: to write those over the bus is 2 % faster.
constexpr uint64_t max_read_in_place = 2 << 20;
constexpr uint64_t written_in_place_chunks = 8, max_written_in_place_chunk = 1 << 20;

bool is_of_host(MemorySide side) {
  return side == MemorySide::pinned || side == MemorySide::pageable;
}

// The batch, and where its parts lie.
struct Batch {
  KeyColumn queries;
  std::byte* results;
  const BatchSearchKernel& search;
  MemorySide queries_side, results_side;
  const TakeResults* take;  // in place of results

  uint64_t max_queries = 0;  // of a chunk
  uint64_t workers = 1;
  // Whether the search reads queries, and writes results, where they lie in the host's memory.
  bool reads_in_place = false, writes_in_place = false;

  // A chunk may have so many bytes of queries or of results. Staged pieces are small, so that they
  // stay in the host's cache.
  uint64_t piece_bytes() const { return is_staged() ? staging_bytes : direct_bytes; }
  bool is_staged() const {
    return queries_side == MemorySide::pageable || results_side == MemorySide::pageable;
  }

  // Says how the batch is cut.
  void plan(const CudaTransfer& transfer) {
    const bool once = search.access != QueryAccess::any && queries.is_fixed();
    const bool is_small = is_staged() || queries.size <= max_read_in_place;
    const bool are_ranks_of_numbers = queries.width == 8 && search.result_bytes == 4;
    reads_in_place = once && is_of_host(queries_side) && is_small;
    writes_in_place = once && is_of_host(results_side) && (is_small || are_ranks_of_numbers);
    auto share_of = [&](uint64_t chunks) { return (queries.size / chunks + 63) / 64 * 64; };
    if (is_staged()) {
      workers = transfer.max_workers();
      max_queries =
          std::max(once ? min_queries_in_pieces : min_chunk, share_of(chunks_of_worker * workers));
    } else if (once && is_small) {
      max_queries = queries.size;
    } else if (writes_in_place) {
      max_queries = std::min(share_of(written_in_place_chunks), max_written_in_place_chunk);
    } else {
      workers = direct_workers;
      max_queries = std::max(min_chunk, share_of(direct_chunks));
    }
  }

  // How many queries from `first` on fit into one piece, and their results.
  uint64_t chunk(uint64_t first) const {
    uint64_t left = queries.size - first;
    uint64_t most = std::min({left, piece_bytes() / search.result_bytes, max_queries});
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

  Status run(uint64_t first, uint64_t count) {
    STRIDE_TRY(finish());
    first_ = first;
    count_ = count;
    const KeyColumn queries = queries_for_device(batch_.queries.slice(first, count));
    if (batch_.results_side == MemorySide::device || batch_.writes_in_place) {
      batch_.search.start(queries, there_or_staged(), nullptr, stream_);
      return {};
    }
    std::byte* found = found_.room(result_bytes());
    batch_.search.start(queries, found, nullptr, stream_);
    cuda_check(cudaMemcpyAsync(there_or_staged(), found, result_bytes(),
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
      copy_result(results(), staged_results_.data(), count * batch_.search.result_bytes,
                  batch_.queries.size * batch_.search.result_bytes);
    }
    return {};
  }

 private:
  static cudaMemcpyKind kind_of(MemorySide side, cudaMemcpyKind of_host) {
    return side == MemorySide::peer ? cudaMemcpyDefault : of_host;
  }
  std::byte* results() const { return batch_.results + first_ * batch_.search.result_bytes; }
  uint64_t result_bytes() const { return count_ * batch_.search.result_bytes; }
  // Where results go: to the caller's memory, or on their way there.
  std::byte* there_or_staged() {
    if (batch_.results_side != MemorySide::pageable) return results();
    if (!staged_results_.data()) staged_results_ = transfer_.pinned().take();
    return staged_results_.data();
  }

  KeyColumn queries_for_device(KeyColumn queries) {
    if (batch_.queries_side == MemorySide::device) return queries;
    if (batch_.reads_in_place) {
      if (batch_.queries_side == MemorySide::pageable)
        queries.data = stage(queries.data, queries.bytes(), &staged_keys_);
      return queries;
    }
    uint64_t begin = queries.begin(0);
    KeyColumn there = queries;
    there.data = send(queries.data + begin, queries.bytes(), &keys_, &staged_keys_) - begin;
    if (!queries.is_fixed()) {
      there.offsets = reinterpret_cast<const uint64_t*>(
          send(queries.offsets, (queries.size + 1) * 8, &offsets_, &staged_offsets_));
    }
    return there;
  }

  // Copies what is at most staging_bytes to pinned memory.
  const std::byte* stage(const void* from, uint64_t bytes, PinnedPool::Piece* staged) {
    if (!staged->data()) *staged = transfer_.pinned().take();
    std::memcpy(staged->data(), from, bytes);
    return staged->data();
  }

  const std::byte* send(const void* from, uint64_t bytes, DeviceRoom* there,
                        PinnedPool::Piece* staged) {
    std::byte* to = there->room(bytes);
    if (bytes > batch_.piece_bytes()) {  // a single query of that size
      transfer_.to_device(to, from, bytes, stream_);
      return to;
    }
    if (batch_.queries_side == MemorySide::pageable) from = stage(from, bytes, staged);
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
  return queries.is_fixed() ? memory_side(device, queries.data, queries.bytes())
                            : memory_side(device, queries.offsets, (queries.size + 1) * 8);
}

Status run_chunks(CudaTransfer& transfer, const Batch& batch) {
  std::vector<uint64_t> starts;
  for (uint64_t first = 0; first < batch.queries.size; first += batch.chunk(first))
    starts.push_back(first);
  starts.push_back(batch.queries.size);
  return run_lanes<Lane>(
      transfer, starts.size() - 1, batch.workers,
      [&](auto& lane) { lane.emplace(transfer, batch); },
      [&](Lane& lane, uint64_t chunk) {
        return lane.run(starts[chunk], starts[chunk + 1] - starts[chunk]);
      });
}

Status run_batch(CudaTransfer& transfer, Batch batch) {
  const KeyColumn& queries = batch.queries;
  const bool to_take = batch.results_side == MemorySide::pageable;
  const bool in_pieces = batch.search.access == QueryAccess::once && queries.is_fixed() &&
                         batch.is_staged() && batch.queries_side != MemorySide::peer &&
                         batch.results_side != MemorySide::peer &&
                         fits_pieces(queries.size, queries.width, batch.search.result_bytes);
  if (!in_pieces) {
    batch.plan(transfer);
    return run_chunks(transfer, batch);
  }
  const uint64_t width = batch.search.result_bytes;
  const TakeResults copy = [&](uint64_t first, uint64_t count, const std::byte* results) {
    copy_result(batch.results + first * width, results, count * width, queries.size * width);
    return Status();
  };
  return search_in_pieces(transfer, queries, batch.search,
                          batch.queries_side != MemorySide::pageable,
                          to_take ? nullptr : batch.results, batch.take ? *batch.take : copy);
}

}  // namespace

void search_in_chunks(CudaTransfer& transfer, const KeyColumn& given, void* results,
                      const BatchSearchKernel& search) {
  if (given.size == 0) return;
  KeyColumn queries = given;
  const HereFromPeer brought(transfer, &queries);
  const MemorySide queries_side = side_of_queries(transfer.device(), queries);
  const MemorySide results_side =
      memory_side(transfer.device(), results, queries.size * search.result_bytes);
  if (queries_side == MemorySide::device && results_side == MemorySide::device) {
    CudaStream stream(transfer.device());
    search.start(queries, results, nullptr, stream);
    stream.wait();
    return;
  }
  // It fails only where `take` does.
  (void)run_batch(transfer, {queries, static_cast<std::byte*>(results), search, queries_side,
                             results_side, nullptr});
}

Status search_in_chunks(CudaTransfer& transfer, const KeyColumn& given,
                        const BatchSearchKernel& search, const TakeResults& take) {
  if (given.size == 0) return {};
  KeyColumn queries = given;
  const HereFromPeer brought(transfer, &queries);
  return run_batch(transfer, {queries, nullptr, search, side_of_queries(transfer.device(), queries),
                              MemorySide::pageable, &take});
}

}  // namespace stride

#include "gpu/device/cuda_piece_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace stride {

namespace {

using Clock = std::chrono::steady_clock;
// A kernel that is not done by then may have others before it, or a device may have failed.
constexpr std::chrono::microseconds spin_time{200};
// Half of a batch, so that results are taken while other pieces are still brought.
uint64_t slots_for(uint64_t pieces) {
  return std::min<uint64_t>(
      pieces, std::clamp<uint64_t>(pieces / 2, small_room.max_slots, large_room.max_slots));
}

// Whether to start a kernel takes until it ends, as CUDA_LAUNCH_BLOCKING asks for: then a thread of
// its own starts it, for the others have to bring it pieces.
bool starts_wait_for_kernels() {
  static const bool wait = [] {
    const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
    return value && *value && std::strcmp(value, "0") != 0;
  }();
  return wait;
}

class PieceRun {
 public:
  PieceRun(CudaTransfer& transfer, const PieceBatch& batch)
      : transfer_(transfer),
        batch_(batch),
        slots_(slots_for(batch.pieces)),
        lent_(transfer.piece_rooms(batch.pieces).take()),
        room_(lent_.memory()),
        stream_(transfer.device()) {
    // Once nothing can fail before the kernel is started: its blocks are counted from now on.
    flags_ = room_.begin(static_cast<uint32_t>(batch.pieces), static_cast<uint32_t>(slots_));
  }

  Status run() {
    try {
      transfer_.each_worker(batch_.pieces, [&] { work(); });
    } catch (...) {
      // The kernel may have been started all the same. Where it was, nobody knows how many of its
      // blocks have begun.
      (void)cudaStreamSynchronize(stream_);
      lent_.forget();
      throw;
    }
    if (room_.is_worn()) {
      stream_.wait();
      lent_.forget();
    }
    return std::move(failure_);
  }

 private:
  // Each thread does this. All pieces are brought whatever fails: the kernel waits for them.
  void work() {
    std::exception_ptr error, of_start;
    auto watch = [&](std::exception_ptr* to, const auto& step) {
      try {
        step();
      } catch (...) {
        if (!*to) *to = std::current_exception();
        failed_ = true;
      }
    };
    std::thread starter;
    if (!started_.exchange(true)) {
      auto begin = [&] { watch(&of_start, [&] { start(); }); };
      watch(&error,
            [&] { starts_wait_for_kernels() ? void(starter = std::thread(begin)) : begin(); });
    }
    for (uint64_t turn; (turn = next_++) < batch_.pieces + slots_;) {
      if (turn >= slots_) watch(&error, [&] { take(turn - slots_); });
      if (turn >= batch_.pieces) continue;
      if (batch_.bring) batch_.bring(turn, turn % slots_, room_);
      room_.raise_ready(turn);
    }
    if (starter.joinable()) starter.join();
    if (of_start) std::rethrow_exception(of_start);
    if (error) std::rethrow_exception(error);
  }

  void start() {
    OnDevice on(transfer_.device());
    batch_.start(flags_, room_, stream_);
  }

  // Waits for the results of a piece, and hands them over.
  void take(uint64_t piece) {
    if (!wait_for(piece) || !batch_.take || has_failure_) return;
    Status status = batch_.take(piece, piece % slots_, room_);
    if (status.ok()) return;
    std::lock_guard lock(mutex_);
    if (!has_failure_.exchange(true)) failure_ = std::move(status);
  }

  // Returns whether they are there, or throws. Never waits for the kernel's end, for which others
  // may have to bring pieces yet.
  bool wait_for(uint64_t piece) {
    for (;;) {
      const auto end = Clock::now() + spin_time;
      do {
        for (int i = 0; i < 64; ++i)
          if (room_.is_done(piece)) return true;
        if (failed_) return false;
      } while (Clock::now() < end);
      OnDevice on(transfer_.device());
      const cudaError_t state = cudaStreamQuery(stream_);
      if (state != cudaSuccess && state != cudaErrorNotReady) cuda_check(state, "wait for pieces");
      std::this_thread::yield();
    }
  }

  CudaTransfer& transfer_;
  const PieceBatch& batch_;
  uint64_t slots_;
  PieceRoomPool::Piece lent_;
  PieceRoom& room_;
  PieceFlags flags_{};
  CudaStream stream_;  // goes first, and waits for what uses the room
  std::atomic<bool> started_{false}, failed_{false}, has_failure_{false};
  std::atomic<uint64_t> next_{0};
  std::mutex mutex_;
  Status failure_;
};

}  // namespace

Status run_in_pieces(CudaTransfer& transfer, const PieceBatch& batch) {
  if (batch.pieces == 0) return {};
  return PieceRun(transfer, batch).run();
}

bool fits_pieces(uint64_t queries, uint64_t query_bytes, uint64_t result_bytes) {
  return std::max(query_bytes, result_bytes) <= slot_bytes / piece_queries &&
         queries >= min_queries_in_pieces;
}

Status search_in_pieces(CudaTransfer& transfer, const KeyColumn& all,
                        const BatchSearchKernel& search, bool queries_are_here, void* there,
                        const TakeResults& take) {
  constexpr uint64_t most = uint64_t{large_room.max_pieces} * piece_queries;
  const uint64_t width = all.width, result_bytes = search.result_bytes;
  for (uint64_t begin = 0; begin < all.size; begin += most) {
    const KeyColumn queries = all.slice(begin, std::min(most, all.size - begin));
    auto first_of = [](uint64_t piece) { return piece * piece_queries; };
    auto count_of = [&](uint64_t piece) {
      return std::min<uint64_t>(piece_queries, queries.size - first_of(piece));
    };
    PieceBatch batch{(queries.size + piece_queries - 1) / piece_queries, {}, {}, {}};
    batch.start = [&](const PieceFlags& flags, const PieceRoom& room, cudaStream_t stream) {
      const QueryPieces pieces{flags, !queries_are_here, !there};
      const KeyColumn from =
          queries_are_here ? queries : Column::fixed(room.in(), all.width, queries.size);
      void* to = there ? static_cast<std::byte*>(there) + begin * result_bytes : room.out();
      search.start(begin, from, to, &pieces, stream);
    };
    if (!queries_are_here)
      batch.bring = [&](uint64_t piece, uint64_t slot, const PieceRoom& room) {
        const KeyColumn some = queries.slice(first_of(piece), count_of(piece));
        std::memcpy(room.in() + slot * piece_queries * width, some.data, some.bytes());
      };
    if (!there)
      batch.take = [&](uint64_t piece, uint64_t slot, const PieceRoom& room) {
        return take(begin + first_of(piece), count_of(piece),
                    room.out() + slot * piece_queries * result_bytes);
      };
    STRIDE_TRY(run_in_pieces(transfer, batch));
  }
  return {};
}

}  // namespace stride

#include "gpu/device/cuda_piece_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "storage/spin_pause.h"

namespace stride {

namespace {

using Clock = std::chrono::steady_clock;
// Who waits for longer lets others have the processor.
constexpr std::chrono::microseconds spin_time{200};
// A kernel that is not done by then may have others before it, or the device may have failed.
constexpr std::chrono::milliseconds patience{10};
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

// Asks the device how a kernel is, on a thread of its own: who has pieces to bring must not wait in
// the driver, which may hold a lock until all kernels end.
class KernelWatch {
 public:
  explicit KernelWatch(cudaStream_t stream) : stream_(stream) {}
  ~KernelWatch() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  KernelWatch(const KernelWatch&) = delete;

  // The kernel has been started. Until then that the stream is idle says nothing.
  void started() { is_started_ = true; }
  // Any thread may call it again and again.
  void begin() {
    if (is_watching_.exchange(true)) return;
    try {
      thread_ = std::thread([this] { watch(); });
    } catch (const std::system_error&) {
      is_watching_ = false;  // there may be a thread later on
    }
  }
  // Whether the kernel is known to run no more.
  bool has_ended() const { return has_ended_; }
  // What has ended it. Precondition: has_ended().
  cudaError_t error() const { return error_; }

 private:
  void watch() {
    while (!is_over_ && !has_ended_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const bool may_end = is_started_;
      const cudaError_t state = cudaStreamQuery(stream_);
      if (state == cudaErrorNotReady || (state == cudaSuccess && !may_end)) continue;
      error_ = state;
      has_ended_ = true;
    }
  }

  const cudaStream_t stream_;
  std::atomic<bool> is_started_{false}, is_watching_{false}, has_ended_{false}, is_over_{false};
  std::atomic<cudaError_t> error_{cudaSuccess};
  std::thread thread_;
};

class PieceRun {
 public:
  PieceRun(CudaTransfer& transfer, const PieceBatch& batch)
      : transfer_(transfer),
        batch_(batch),
        slots_(slots_for(batch.pieces)),
        lent_(transfer.piece_rooms(batch.pieces).take()),
        room_(lent_.memory()),
        stream_(transfer.device()),
        watch_(stream_) {
    // Once nothing can fail before the kernel is started: its blocks are counted from now on.
    flags_ = room_.begin(static_cast<uint32_t>(batch.pieces), static_cast<uint32_t>(slots_));
  }

  Status run() {
    try {
      // Whoever has no piece has time for the rest.
      transfer_.each_worker(batch_.meanwhile ? UINT64_MAX : batch_.pieces, [&] { work(); });
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
  // Each thread does this. All flags are raised whatever fails: the kernel waits for them.
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
      watch(&error, [&] { starts_wait_for_kernels() ? begin_beside(begin, &starter) : begin(); });
    }
    for (uint64_t turn; (turn = next_++) < batch_.pieces + slots_;) {
      if (turn >= slots_) {
        watch(&error, [&] { take(turn - slots_); });
        if (batch_.meanwhile) ++taken_;
      }
      if (turn < batch_.pieces) {
        if (batch_.bring && goes_on()) batch_.bring(turn, turn % slots_, room_);
        room_.raise_ready(turn);
      }
      if (batch_.meanwhile && goes_on()) batch_.meanwhile();
    }
    if (batch_.meanwhile) help_the_last();
    if (starter.joinable()) starter.join();
    if (of_start) std::rethrow_exception(of_start);
    if (error) std::rethrow_exception(error);
  }

  // Others still take pieces, and with each there may be more to do.
  void help_the_last() {
    for (const auto begin = Clock::now(); goes_on();) {
      const bool all_taken = taken_ == batch_.pieces;
      batch_.meanwhile();
      if (all_taken) return;
      Clock::now() - begin < spin_time ? spin_pause() : std::this_thread::yield();
    }
  }

  // Whether results of this batch are results.
  bool goes_on() const { return !failed_ && !has_failure_; }

  void start() {
    OnDevice on(transfer_.device());
    batch_.start(flags_, room_, stream_);
    watch_.started();
  }
  static void begin_beside(const std::function<void()>& begin, std::thread* starter) {
    try {
      *starter = std::thread(begin);
    } catch (const std::system_error& e) {
      throw CudaFailure(Status(StatusCode::resource_exhausted,
                               std::string("a thread cannot be made: ") + e.what())
                            .with_remedy("raise the limit of threads"));
    }
  }

  // Waits for the results of a piece, and hands them over. Not where something has failed: then
  // pieces are not brought any more, and what comes out of them are no results.
  void take(uint64_t piece) {
    if (has_failure_ || !wait_for(piece) || !batch_.take || !goes_on()) return;
    Status status = batch_.take(piece, piece % slots_, room_);
    if (status.ok()) return;
    std::lock_guard lock(mutex_);
    if (!has_failure_.exchange(true)) failure_ = std::move(status);
  }

  // Returns whether they are there, or throws. Never waits for the kernel's end, for which others
  // may have to bring pieces yet, nor for the driver.
  bool wait_for(uint64_t piece) {
    const auto begin = Clock::now();
    for (;;) {
      for (int i = 0; i < 64; ++i) {
        if (room_.is_done(piece)) return true;
        spin_pause();
      }
      if (failed_) return false;
      const auto waited = Clock::now() - begin;
      if (waited < spin_time) continue;
      if (waited > patience) watch_.begin();
      if (watch_.has_ended() && !room_.is_done(piece)) {
        cuda_check(watch_.error(), "wait for pieces");
        throw CudaFailure(
            Status(StatusCode::io_error, "a kernel has ended without all its pieces"));
      }
      std::this_thread::yield();
    }
  }

  CudaTransfer& transfer_;
  const PieceBatch& batch_;
  uint64_t slots_;
  PieceRoomPool::Piece lent_;
  PieceRoom& room_;
  PieceFlags flags_{};
  CudaStream stream_;  // goes before the room, and waits for what uses it
  KernelWatch watch_;
  // Lines of their own, for all threads write them in each turn and read what lies around them.
  alignas(64) std::atomic<uint64_t> next_{0};
  alignas(64) std::atomic<uint64_t> taken_{0};
  alignas(64) std::atomic<bool> started_{false}, failed_{false}, has_failure_{false};
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
  // What is done meanwhile takes longer than to search, and a kernel of more pieces than the device
  // has room for keeps other kernels waiting until nearly all of its pieces have been brought.
  const uint64_t most =
      piece_queries * uint64_t{search.meanwhile ? large_room.max_slots : large_room.max_pieces};
  const uint64_t width = all.width, result_bytes = search.result_bytes;
  for (uint64_t begin = 0; begin < all.size; begin += most) {
    const KeyColumn queries = all.slice(begin, std::min(most, all.size - begin));
    auto first_of = [](uint64_t piece) { return piece * piece_queries; };
    auto count_of = [&](uint64_t piece) {
      return std::min<uint64_t>(piece_queries, queries.size - first_of(piece));
    };
    PieceBatch batch{
        (queries.size + piece_queries - 1) / piece_queries, {}, {}, {}, search.meanwhile};
    batch.start = [&](const PieceFlags& flags, const PieceRoom& room, cudaStream_t stream) {
      const QueryPieces pieces{flags, !queries_are_here, !there};
      const KeyColumn from =
          queries_are_here ? queries : Column::fixed(room.in(), all.width, queries.size);
      void* to = there ? static_cast<std::byte*>(there) + begin * result_bytes : room.out();
      search.start(from, to, &pieces, stream);
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

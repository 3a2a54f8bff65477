#include "gpu/host/ordered_stages.h"

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace stride {

namespace {

class OrderedStages {
 public:
  explicit OrderedStages(uint64_t chunks) : chunks_(chunks) {}

  // All of one stage: 0, 1 or 2.
  void run(size_t stage, const ChunkStage& call) {
    try {
      for (uint64_t chunk = 0; chunk < chunks_ && wait(stage, chunk); ++chunk) {
        call(chunk);
        std::lock_guard lock(mutex_);
        done_[stage] = chunk + 1;
        changed_.notify_all();
      }
    } catch (...) {
      fail(std::current_exception());
    }
  }
  void fail(std::exception_ptr exception) {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(exception);
    changed_.notify_all();
  }
  // Once all stages have returned.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // False: a stage has failed.
  bool wait(size_t stage, uint64_t chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return failure_ || (stage == 0 ? chunk < done_[2] + chunk_rooms : chunk < done_[stage - 1]);
    });
    return !failure_;
  }

  const uint64_t chunks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<uint64_t, 3> done_{};  // chunks that have passed a stage
  std::exception_ptr failure_;
};

}  // namespace

void run_in_order(uint64_t chunks, const ChunkStage& in, const ChunkStage& work,
                  const ChunkStage& out) {
  OrderedStages stages(chunks);
  bool has_threads = true;
  {
    std::jthread first, last;
    try {
      first = std::jthread([&] { stages.run(0, in); });
      last = std::jthread([&] { stages.run(2, out); });
    } catch (const std::system_error&) {
      stages.fail(std::current_exception());
      has_threads = false;
    }
    stages.run(1, work);
  }
  if (has_threads) return stages.rethrow();
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    in(chunk);
    work(chunk);
    out(chunk);
  }
}

}  // namespace stride

#include "adapters/cli/input/pipeline.h"

#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "adapters/cli/interrupt.h"

namespace stride::cli {
namespace {

class Pipeline {
 public:
  explicit Pipeline(BlockReader* reader) : reader_(*reader) {}

  void work(BlockWorker* worker) {
    TextBuffer memory;
    Block block;
    for (;;) {
      uint64_t number = 0;
      bool more = false;
      ExitStatus outcome = read(&memory, &block, &number, &more);
      if (outcome.ok() && !more) return;
      if (outcome.ok()) outcome = guarded([&] { return worker->process(block); });
      if (!hand_on(worker, block, number, std::move(outcome))) return;
    }
  }

  ExitStatus result() { return result_; }

 private:
  template <class Call>
  static ExitStatus guarded(const Call& call) {
    try {
      return call();
    } catch (const std::bad_alloc&) {
      return ExitStatus(ExitCode::no_room, "out of memory");
    } catch (const std::exception& e) {
      return ExitStatus(ExitCode::failure, e.what());
    }
  }

  // A block's number is its place in the order, and that of a failure to read it.
  ExitStatus read(TextBuffer* memory, Block* block, uint64_t* number, bool* more) {
    {
      std::unique_lock lock(input_);
      free_.wait(lock, [&] { return ended_ || !reading_; });
      if (ended_) return {};
      reading_ = true;
    }
    *number = read_;
    ExitStatus outcome = guarded([&]() -> ExitStatus {
      if (interrupted()) return ExitStatus::interrupted();
      return reader_.next(memory, block, more);
    });
    if (!outcome.ok() || *more) ++read_;
    std::lock_guard lock(input_);
    reading_ = false;
    if (!outcome.ok() || !*more) ended_ = true;
    free_.notify_all();
    return outcome;
  }

  bool hand_on(BlockWorker* worker, const Block& block, uint64_t number, ExitStatus outcome) {
    std::unique_lock lock(order_);
    turned_.wait(lock, [&] { return turn_ == number || !result_.ok(); });
    if (!result_.ok()) return false;
    if (outcome.ok()) {
      // It is this block's turn and no other's until `turn_` moves on.
      lock.unlock();
      outcome = guarded([&] { return worker->emit(block); });
      lock.lock();
    }
    if (outcome.ok()) {
      ++turn_;
    } else {
      result_ = std::move(outcome);
      std::lock_guard input(input_);
      ended_ = true;
      free_.notify_all();
    }
    turned_.notify_all();
    return result_.ok();
  }

  BlockReader& reader_;
  // One worker reads at a time. The others wait for a condition, not for a mutex: a read may take
  // for ever, and ThreadSanitizer holds back the signals of a thread that waits for a mutex.
  std::mutex input_;
  std::condition_variable free_;
  bool reading_ = false;
  bool ended_ = false;
  uint64_t read_ = 0;  // of the one that reads
  std::mutex order_;
  std::condition_variable turned_;
  uint64_t turn_ = 0;
  ExitStatus result_;
};

}  // namespace

ExitStatus run_pipeline(BlockReader* reader,
                        const std::vector<std::unique_ptr<BlockWorker>>& workers) {
  Pipeline pipeline(reader);
  std::vector<std::thread> threads;
  threads.reserve(workers.size());
  try {
    for (size_t i = 1; i < workers.size(); ++i)
      threads.emplace_back([&, i] { pipeline.work(workers[i].get()); });
  } catch (const std::system_error&) {
    // Those that there are do the work.
  }
  pipeline.work(workers[0].get());
  for (std::thread& thread : threads) thread.join();
  return pipeline.result();
}

unsigned available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return std::max(1u, std::thread::hardware_concurrency());
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace stride::cli

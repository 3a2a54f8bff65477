// A few threads that write, for several files at once: first come, first served.
//
//   auto io = std::make_shared<IoThreads>();
//   io->submit(this, [this] { write_piece(3); });
//   uint64_t never_run = io->drop(this);
//
// Internal to storage, but for whoever makes one and hands it to several writers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace stride {

// Thread-safe. Threads are started as they are needed, and stay.
class IoThreads {
 public:
  explicit IoThreads(unsigned threads = 4) : max_threads_(threads) {}
  // Precondition: nothing is queued. Not to be called from a task.
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  // Tasks begin in the order in which they were submitted, so that one may wait for an earlier one.
  // Where no thread or no memory can be had, the caller carries it out.
  void submit(const void* owner, std::function<void()> task);
  // Takes this owner's tasks out of the queue and returns how many; those that run go on.
  uint64_t drop(const void* owner);

 private:
  struct Task {
    const void* owner;
    std::function<void()> run;
  };
  // False where the caller is to carry it out.
  bool queue(Task& task);
  void run();

  const unsigned max_threads_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<Task> queue_;
  unsigned idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace stride

#include "storage/io_threads.h"

#include <system_error>
#include <utility>

namespace stride {

IoThreads::~IoThreads() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void IoThreads::submit(const void* owner, std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= idle_ && threads_.size() < max_threads_) {
      try {
        threads_.emplace_back([this] { run(); });
      } catch (const std::system_error&) {
        // Those that there are do the work.
      }
    }
    if (!threads_.empty()) queue_.push_back({owner, std::exchange(task, nullptr)});
  }
  if (task) return task();
  wake_.notify_one();
}

uint64_t IoThreads::drop(const void* owner) {
  std::lock_guard lock(mutex_);
  return std::erase_if(queue_, [&](const Task& task) { return task.owner == owner; });
}

void IoThreads::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task.run();
    task = {};
    lock.lock();
  }
}

}  // namespace stride

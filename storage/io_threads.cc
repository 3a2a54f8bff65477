#include "storage/io_threads.h"

#include <exception>
#include <new>
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
  Task next{owner, std::move(task)};
  if (!queue(next)) return next.run();
  wake_.notify_one();
}

bool IoThreads::queue(Task& task) {
  std::lock_guard lock(mutex_);
  try {
    if (queue_.size() >= idle_ && threads_.size() < max_threads_)
      threads_.emplace_back([this] { run(); });
  } catch (const std::exception&) {
    // No memory or no more threads: those that there are do the work.
  }
  if (threads_.empty()) return false;
  try {
    queue_.push_back(std::move(task));
  } catch (const std::bad_alloc&) {
    return false;  // and the task is as it was
  }
  return true;
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

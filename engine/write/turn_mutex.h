// A mutex that is had in the order of arrival, and whose wait can be given up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "storage/work_watch.h"

namespace stride {

// For what is held long: a std::mutex may go to the same threads again and again.
class TurnMutex {
 public:
  void lock() { await(nullptr); }
  bool try_lock() {
    std::lock_guard guard(mutex_);
    if (held_) return false;
    held_ = true;
    return true;
  }
  // False, some milliseconds after the watch was stopped: then it is not had.
  bool lock_unless_stopped(const WorkWatch& watch) { return await(&watch); }
  void unlock() {
    std::lock_guard guard(mutex_);
    Waiter* next = first_;
    if (!next) {
      held_ = false;
      return;
    }
    remove(next);
    next->granted = true;
    changed_.notify_all();
  }

 private:
  struct Waiter {
    bool granted = false;
    Waiter* next = nullptr;
  };

  bool await(const WorkWatch* watch) {
    std::unique_lock guard(mutex_);
    if (!held_) {
      held_ = true;
      return true;
    }
    Waiter self;
    Waiter** end = &first_;
    while (*end) end = &(*end)->next;
    *end = &self;
    auto granted = [&] { return self.granted; };
    if (!watch) {
      changed_.wait(guard, granted);
      return true;
    }
    while (!changed_.wait_for(guard, std::chrono::milliseconds(10), granted)) {
      if (!watch->is_stopped()) continue;
      remove(&self);
      return false;
    }
    return true;
  }
  void remove(Waiter* waiter) {
    Waiter** at = &first_;
    while (*at != waiter) at = &(*at)->next;
    *at = waiter->next;
  }

  std::mutex mutex_;  // guards what follows; never held for long
  std::condition_variable changed_;
  bool held_ = false;
  Waiter* first_ = nullptr;  // of those that wait, in their order
};

}  // namespace stride

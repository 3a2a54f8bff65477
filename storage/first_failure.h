// The first failure of work that several threads share.
//
//   FirstFailure failure;
//   parallel_for(tasks, [&](uint64_t i) {
//     if (!failure.failed()) failure.report(work(i));
//   });
//   return failure.status();
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "storage/status.h"

namespace stride {

// Thread-safe.
class FirstFailure {
 public:
  // Keeps the status if it is the first that is not ok.
  void report(Status status) {
    if (status.ok()) return;
    std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
    failed_.store(true, std::memory_order_release);
  }
  // Takes no lock, so that each step of a loop may ask.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  Status status() const {
    std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;  // guards status_
  std::atomic<bool> failed_{false};
  Status status_;
};

}  // namespace stride

// The first failure of work that several threads share.
//
//   FirstFailure failure;
//   parallel_for(tasks, [&](uint64_t i) {
//     if (!failure.failed()) failure.report(work(i));
//   });
//   return failure.status();
//
// Which failure is the first in time differs from run to run. Where every task before one that
// fails is worked on too, `failure.report(work(i), i)` keeps that of the first task, in every run
// the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "storage/status.h"

namespace stride {

// Thread-safe.
class FirstFailure {
 public:
  // Keeps the status if it is not ok, and the first such, or of an earlier task than the one kept.
  void report(Status status, uint64_t task = 0) {
    if (status.ok()) return;
    std::lock_guard lock(mutex_);
    if (status_.ok() || task < task_) {
      status_ = std::move(status);
      task_ = task;
    }
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
  uint64_t task_ = 0;  // which failed with it
};

}  // namespace stride

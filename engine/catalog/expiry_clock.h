// The time by which rows of an open database have ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "storage/expiry.h"

namespace stride {

// Thread-safe. It never goes back, whatever its source does: what has ended stays so.
class ExpiryClock {
 public:
  // source: microseconds since 1970-01-01, from any thread; null: the system's clock.
  explicit ExpiryClock(std::function<int64_t()> source = nullptr) : source_(std::move(source)) {}

  // There is a table whose rows end. Until this is called nobody pays for the time.
  void start() const noexcept { started_.store(true, std::memory_order_relaxed); }
  bool is_started() const noexcept { return started_.load(std::memory_order_relaxed); }
  // before_all_time: it was not started.
  int64_t now() const { return is_started() ? look() : before_all_time; }
  int64_t look() const {
    const int64_t time = source_ ? source_() : system_time();
    int64_t latest = latest_.load(std::memory_order_relaxed);
    while (latest < time &&
           !latest_.compare_exchange_weak(latest, time, std::memory_order_relaxed)) {
    }
    return std::max(latest, time);
  }

 private:
  static int64_t system_time() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  }

  const std::function<int64_t()> source_;
  mutable std::atomic<bool> started_{false};
  mutable std::atomic<int64_t> latest_{before_all_time};
};

}  // namespace stride

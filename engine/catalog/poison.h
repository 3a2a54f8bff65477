// Why nothing more is written through a handle of a database.
#pragma once

#include <mutex>

#include "engine/monitoring/monitor.h"
#include "storage/status.h"

namespace stride {

// Set by the first sync that fails, or the first write that fails after its commit has returned:
// what the kernel did with the unsynced pages is unknown then. Thread-safe.
class Poison {
 public:
  // monitor: null, or who is told of it, and outlives it.
  explicit Poison(Monitor* monitor = nullptr) : monitor_(monitor) {}

  // Ok as long as nothing has failed.
  Status status() const {
    std::lock_guard lock(mutex_);
    return status_;
  }
  bool is_set() const {
    std::lock_guard lock(mutex_);
    return !status_.ok();
  }
  // Returns `why`, which later writes are told of.
  Status set(Status why) noexcept;

 private:
  Monitor* const monitor_;
  mutable std::mutex mutex_;
  Status status_;
  // What is said where memory is too short to say more.
  const Status plain_{StatusCode::poisoned,
                      "an earlier write or sync failed: open the database again"};
};

}  // namespace stride

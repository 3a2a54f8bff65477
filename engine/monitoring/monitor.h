// What is watched of one opening of a database: what its callers do, what it does by itself, and
// who is told.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "engine/event_listener.h"
#include "engine/metrics.h"
#include "engine/monitoring/event_queue.h"
#include "engine/monitoring/operation_counters.h"
#include "storage/log_writer.h"
#include "storage/status.h"

namespace stride {

// What the database does by itself, each rarely enough for one counter. WorkMetrics says what each
// is.
struct WorkCounters {
  using Counter = std::atomic<uint64_t>;
  Counter bulk_bytes{0};
  Counter flushes{0}, failed_flushes{0}, flush_memory_bytes{0}, flush_bytes{0}, flush_ns{0};
  Counter compactions{0}, failed_compactions{0}, compaction_read_bytes{0}, compaction_bytes{0},
      compaction_ns{0};
  Counter stalls{0}, stall_ns{0};
  Counter device_copies{0}, device_evictions{0};
};

// Thread-safe.
class Monitor {
 public:
  using Clock = std::chrono::steady_clock;

  Monitor() = default;
  explicit Monitor(EventTargets targets) : events_(std::move(targets)) {}

  OperationCounters& operations() { return operations_; }
  WorkCounters& work() { return work_; }
  const std::shared_ptr<LogCounts>& log() const { return log_; }
  EventQueue& events() { return events_; }

  // A commit, or several, waited since `begin`. Nothing where that was less than a millisecond.
  void waited_since(Clock::time_point begin) noexcept;
  // Tells of the waits that no event has told of yet; closes the queue behind it.
  void end(Status closing) noexcept;
  WorkMetrics work_metrics() const noexcept;

 private:
  // Requires stall_mutex_.
  void tell_of_stalls() noexcept;

  OperationCounters operations_;
  WorkCounters work_;
  const std::shared_ptr<LogCounts> log_ = std::make_shared<LogCounts>();
  EventQueue events_;
  std::mutex stall_mutex_;  // guards what follows
  uint64_t untold_stalls_ = 0;
  Clock::duration untold_time_{};
  Clock::time_point told_at_{};
};

// A flush or a compaction: tells of its begin, and of its end with what has become of it.
//
//   WatchedTask task(monitor, /*flush=*/false);
//   task.begin({.table = table.name, .bytes_in = bytes});
//   Status s = ...;
//   task.end(s, bytes_out);
class WatchedTask {
 public:
  // Nothing is told before begin().
  WatchedTask(Monitor& monitor, bool flush) : monitor_(monitor), flush_(flush) {}
  ~WatchedTask() { end(Status::out_of_memory(), 0); }
  WatchedTask(const WatchedTask&) = delete;
  WatchedTask& operator=(const WatchedTask&) = delete;

  // Names the event's run, table, inputs, rows and bytes_in. Once, before end().
  void begin(Event event) noexcept;
  // The first call counts; without one it has failed for lack of memory.
  void end(const Status& status, uint64_t bytes_out) noexcept;

 private:
  void count(const Status& status, uint64_t bytes_out, uint64_t ns) noexcept;

  Monitor& monitor_;
  const bool flush_;
  bool goes_on_ = false;
  Monitor::Clock::time_point begin_{};
  Event event_;
};

}  // namespace stride

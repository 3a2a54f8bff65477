#include "engine/monitoring/monitor.h"

#include <utility>

#include "storage/no_throw.h"

namespace stride {
namespace {

constexpr std::chrono::milliseconds min_stall{1};
constexpr std::chrono::seconds between_stall_events{1};

double seconds_of_ns(const std::atomic<uint64_t>& ns) {
  return static_cast<double>(ns.load(std::memory_order_relaxed)) * 1e-9;
}

uint64_t ns_of(Monitor::Clock::duration d) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(d).count());
}

}  // namespace

void Monitor::waited_since(Clock::time_point begin) noexcept {
  const auto now = Clock::now();
  if (now - begin < min_stall) return;
  ++work_.stalls;
  work_.stall_ns += ns_of(now - begin);
  std::lock_guard lock(stall_mutex_);
  ++untold_stalls_;
  untold_time_ += now - begin;
  if (told_at_ != Clock::time_point() && now - told_at_ < between_stall_events) return;
  told_at_ = now;
  tell_of_stalls();
}

void Monitor::tell_of_stalls() noexcept {
  if (untold_stalls_ == 0) return;
  events_.push({.kind = EventKind::stalled,
                .inputs = std::exchange(untold_stalls_, 0),
                .seconds = std::chrono::duration<double>(
                               std::exchange(untold_time_, Clock::duration::zero()))
                               .count()});
}

void Monitor::end(Status closing) noexcept {
  {
    std::lock_guard lock(stall_mutex_);
    tell_of_stalls();
  }
  events_.push({.kind = EventKind::closed, .status = std::move(closing)});
  events_.stop();
}

WorkMetrics Monitor::work_metrics() const noexcept {
  return {.log_bytes = log_->bytes,
          .log_syncs = log_->syncs,
          .bulk_bytes = work_.bulk_bytes,
          .flushes = work_.flushes,
          .failed_flushes = work_.failed_flushes,
          .flush_memory_bytes = work_.flush_memory_bytes,
          .flush_bytes = work_.flush_bytes,
          .flush_s = seconds_of_ns(work_.flush_ns),
          .compactions = work_.compactions,
          .failed_compactions = work_.failed_compactions,
          .compaction_read_bytes = work_.compaction_read_bytes,
          .compaction_bytes = work_.compaction_bytes,
          .compaction_s = seconds_of_ns(work_.compaction_ns),
          .stalls = work_.stalls,
          .stall_s = seconds_of_ns(work_.stall_ns),
          .device_copies = work_.device_copies,
          .device_evictions = work_.device_evictions,
          .events = events_.pushed(),
          .dropped_events = events_.dropped()};
}

void WatchedTask::begin(Event event) noexcept {
  goes_on_ = true;
  begin_ = Monitor::Clock::now();
  event.kind = flush_ ? EventKind::flush_begun : EventKind::compaction_begun;
  if (!monitor_.events().is_heard()) {
    event_.bytes_in = event.bytes_in;
    return;
  }
  // Where there is no memory for the name of the table the end is told without it.
  Status ignored = no_throw([&] {
    event_ = event;
    return Status();
  });
  event_.bytes_in = event.bytes_in;
  monitor_.events().push(std::move(event));
}

void WatchedTask::end(const Status& status, uint64_t bytes_out) noexcept {
  if (!std::exchange(goes_on_, false)) return;
  const auto took = Monitor::Clock::now() - begin_;
  count(status, bytes_out, ns_of(took));
  event_.kind = flush_ ? EventKind::flush_ended : EventKind::compaction_ended;
  event_.bytes_out = bytes_out;
  event_.seconds = std::chrono::duration<double>(took).count();
  event_.status = status;
  monitor_.events().push(std::move(event_));
}

// What ends because the database is closed, or because others were faster, has not failed.
void WatchedTask::count(const Status& status, uint64_t bytes_out, uint64_t ns) noexcept {
  WorkCounters& work = monitor_.work();
  (flush_ ? work.flush_ns : work.compaction_ns) += ns;
  if (!status.ok()) {
    const bool is_usual =
        status.code() == StatusCode::closed || status.code() == StatusCode::cancelled;
    if (!is_usual) ++(flush_ ? work.failed_flushes : work.failed_compactions);
    return;
  }
  ++(flush_ ? work.flushes : work.compactions);
  (flush_ ? work.flush_memory_bytes : work.compaction_read_bytes) += event_.bytes_in;
  (flush_ ? work.flush_bytes : work.compaction_bytes) += bytes_out;
}

}  // namespace stride

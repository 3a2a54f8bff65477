#include "storage/work_watch.h"

namespace stride {
namespace {

thread_local WorkWatch* watch_of_thread = nullptr;
thread_local WorkWatch* offered_to_thread = nullptr;

// Made when the library is loaded, so that to say it needs no memory.
const Status& prepared_cancelled() {
  static const Status status = Status(StatusCode::cancelled, "the caller asked for an end")
                                   .with_remedy("nothing was changed: begin again, if you wish");
  return status;
}
[[maybe_unused]] const Status& cancelled_at_load = prepared_cancelled();

}  // namespace

WorkWatch::Scope::Scope(WorkWatch* watch) : before_(watch_of_thread) { watch_of_thread = watch; }
WorkWatch::Scope::~Scope() { watch_of_thread = before_; }

WorkWatch* WorkWatch::current() noexcept { return watch_of_thread; }

WorkWatch::Offer::Offer(WorkWatch* watch) : before_(offered_to_thread) {
  offered_to_thread = watch;
}
WorkWatch::Offer::~Offer() { offered_to_thread = before_; }

WorkWatch* WorkWatch::offered() noexcept {
  return watch_of_thread ? watch_of_thread : offered_to_thread;
}

Status WorkWatch::cancelled() noexcept { return prepared_cancelled(); }

Status WorkWatch::check() {
  return watch_of_thread && watch_of_thread->is_stopped() ? cancelled() : Status();
}

void WorkWatch::expect(uint64_t units) {
  std::lock_guard lock(mutex_);
  expected_ = done_ + step_units_ + units;
}

void WorkWatch::begin_step(uint64_t units, uint64_t amount, uint64_t rows) {
  std::lock_guard lock(mutex_);
  done_ += step_units_;
  rows_ += step_rows_;
  step_units_ = units;
  step_amount_ = amount;
  step_rows_ = rows;
  amount_.store(0, std::memory_order_relaxed);
}

double WorkWatch::share_of_step() const {
  if (step_amount_ == 0) return 0;
  const double share = static_cast<double>(amount_.load(std::memory_order_relaxed)) /
                       static_cast<double>(step_amount_);
  return std::min(share, 1.0);
}

double WorkWatch::share() const {
  std::lock_guard lock(mutex_);
  if (expected_ == 0) return 0;
  const double done =
      static_cast<double>(done_) + static_cast<double>(step_units_) * share_of_step();
  return std::min(done / static_cast<double>(expected_), 1.0);
}

uint64_t WorkWatch::rows() const {
  std::lock_guard lock(mutex_);
  return rows_ + static_cast<uint64_t>(static_cast<double>(step_rows_) * share_of_step());
}

}  // namespace stride

// Lets one thread see how far another one is with long work, and stop it.
//
//   auto watch = std::make_shared<WorkWatch>();
//   {                                          // the thread that works:
//     WorkWatch::Scope scope(watch.get());
//     STRIDE_TRY(sort_and_build());            // `cancelled`, soon after stop()
//   }
//   double done = watch->share();              // any other thread, meanwhile
//   watch->stop();
//
// Work asks WorkWatch::check() between its parts. Loops on the threads of a TaskPool need not: they
// end early, and the call that began them throws StopRequested. A thread that nobody watches pays
// for a look at a pointer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#include "storage/status.h"

namespace stride {

// What no_throw() makes `cancelled` of.
class StopRequested : public std::exception {
 public:
  const char* what() const noexcept override { return "the work was stopped"; }
};

class WorkWatch : public std::enable_shared_from_this<WorkWatch> {
 public:
  // Any thread.
  void stop() { stopped_.store(true, std::memory_order_release); }
  bool is_stopped() const { return stopped_.load(std::memory_order_acquire); }
  void throw_if_stopped() const {
    if (is_stopped()) throw StopRequested();
  }

  // What follows this step is so many units, whatever a unit is.
  void expect(uint64_t units);
  // What follows is so many of these units, and consists of `amount` rows or bytes, of which add()
  // tells. Rows that are finished with it are counted by rows(). Ends the step before it.
  void begin_step(uint64_t units, uint64_t amount, uint64_t rows = 0);
  void end_step() { begin_step(0, 0); }
  // Any thread.
  void add(uint64_t amount) { amount_.fetch_add(amount, std::memory_order_relaxed); }
  void add_written(uint64_t bytes) { written_.fetch_add(bytes, std::memory_order_relaxed); }

  // From 0 to 1. Any thread, as what follows.
  double share() const;
  uint64_t rows() const;
  uint64_t written_bytes() const { return written_.load(std::memory_order_relaxed); }

  // Makes it the calling thread's watch, as long as this lives. null: nobody watches.
  class Scope {
   public:
    explicit Scope(WorkWatch* watch);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WorkWatch* const before_;
  };
  // That of the calling thread, or null.
  static WorkWatch* current() noexcept;

  // Calls of the public interface that can be ended watch themselves by it, as long as this lives
  // and nothing else watches the calling thread; all others are carried out to their end.
  //
  //   const WorkWatch::Scope scope(WorkWatch::offered());  // in such a call
  class Offer {
   public:
    explicit Offer(WorkWatch* watch);
    ~Offer();
    Offer(const Offer&) = delete;
    Offer& operator=(const Offer&) = delete;

   private:
    WorkWatch* const before_;
  };
  // current(), or what the calling thread is offered, or null.
  static WorkWatch* offered() noexcept;
  // cancelled, where the calling thread's is stopped.
  static Status check();
  static Status cancelled() noexcept;

 private:
  double share_of_step() const;  // requires mutex_

  std::atomic<bool> stopped_{false};
  std::atomic<uint64_t> amount_{0};  // of this step
  std::atomic<uint64_t> written_{0};

  mutable std::mutex mutex_;  // guards what follows
  uint64_t expected_ = 0;     // units
  uint64_t done_ = 0;         // units, by the steps before this one
  uint64_t rows_ = 0;         // the same
  uint64_t step_units_ = 0, step_amount_ = 0, step_rows_ = 0;
};

}  // namespace stride

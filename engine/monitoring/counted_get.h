// Counts one lookup of a single key, and measures how long some of them take.
#pragma once

#include <chrono>
#include <optional>

#include "engine/monitoring/operation_counters.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// To look at the clock twice takes about as long as a lookup in a small table, so that it is done
// for one of so many lookups of a thread.
inline constexpr uint64_t gets_per_measured = 128;

class CountedGet {
 public:
  explicit CountedGet(OperationCounters& counters) noexcept
      : slot_(counters.slot()), measured_(slot_.count(Count::gets) % gets_per_measured == 0) {
    if (measured_) [[unlikely]]
      begin_ = Clock::now();
  }
  CountedGet(const CountedGet&) = delete;
  CountedGet& operator=(const CountedGet&) = delete;

  void end(const Result<std::optional<Bytes>>& result) noexcept {
    if (result.ok() && result->has_value()) {
      slot_.add_found_get((*result)->size());
    } else {
      slot_.add(Count::gets, 1);
      slot_.add(Count::absent_gets, 1);
    }
    if (measured_) [[unlikely]]
      slot_.add_get_latency(
          static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin_).count()));
  }

 private:
  using Clock = std::chrono::steady_clock;
  OperationCounters::Slot& slot_;
  const bool measured_;
  Clock::time_point begin_;
};

}  // namespace stride

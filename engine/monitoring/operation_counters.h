// Counts the calls of a database's interface, for next to nothing.
//
//   counters.slot().add(Count::batch_keys, queries.size);
//
// Each thread writes to a slot of its own, without an instruction that other cores have to agree
// to; who reads adds the slots up. Threads beyond max_own_numbers share one slot, atomically.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/metrics.h"
#include "engine/monitoring/latency_histogram.h"
#include "engine/monitoring/thread_number.h"

namespace stride {

enum class Count : uint8_t {
  gets,
  absent_gets,  // of these: nothing was found, or they have failed
  get_bytes,
  batch_gets,
  batch_keys,
  batch_found,
  batch_bytes,
  device_keys,
  lower_bounds,
  scans,
  scan_rows,
  scan_bytes,
  match_addresses,
  match_found,
  small_commits,
  large_commits,
  failed_commits,
  committed_rows,
  committed_bytes,
  end,
};

// Thread-safe.
class OperationCounters {
 public:
  // What one thread counts, or, where it is shared, several.
  class alignas(64) Slot {
   public:
    explicit Slot(bool shared) noexcept : shared_(shared) {}

    void add(Count what, uint64_t n) noexcept { add_to(&counts_[index(what)], n); }
    uint64_t count(Count what) const noexcept {
      return counts_[index(what)].load(std::memory_order_relaxed);
    }
    // A get that has found so many bytes.
    void add_found_get(uint64_t bytes) noexcept {
      auto& gets = counts_[index(Count::gets)];
      auto& total = counts_[index(Count::get_bytes)];
      if (shared_) {
        gets.fetch_add(1, std::memory_order_relaxed);
        total.fetch_add(bytes, std::memory_order_relaxed);
      } else {
        gets.store(gets.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        total.store(total.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
      }
    }
    void add_get_latency(uint64_t ns) noexcept { add_latency(&gets_, ns); }
    void add_commit_latency(uint64_t ns) noexcept { add_latency(&commits_, ns); }

   private:
    friend class OperationCounters;
    struct Latencies {
      std::atomic<uint64_t> sum_ns{0};
      std::array<std::atomic<uint64_t>, LatencyBuckets::count> calls{};
    };
    static size_t index(Count what) { return static_cast<size_t>(what); }
    void add_to(std::atomic<uint64_t>* counter, uint64_t n) noexcept {
      if (shared_)
        counter->fetch_add(n, std::memory_order_relaxed);
      else
        counter->store(counter->load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    void add_latency(Latencies* of, uint64_t ns) noexcept {
      add_to(&of->calls[LatencyBuckets::of(ns)], 1);
      add_to(&of->sum_ns, ns);
    }
    static void add_to_totals(const Latencies& of, LatencyTotals* totals) noexcept;

    const bool shared_;
    std::array<std::atomic<uint64_t>, static_cast<size_t>(Count::end)> counts_{};
    Latencies gets_, commits_;
  };

  OperationCounters() = default;
  ~OperationCounters();
  OperationCounters(const OperationCounters&) = delete;
  OperationCounters& operator=(const OperationCounters&) = delete;

  Slot& slot() noexcept {
    const size_t number = thread_number();
    if (number >= max_own_numbers) return common_;
    Slot* own = own_[number].load(std::memory_order_acquire);
    return own ? *own : make_slot(number);
  }
  OperationMetrics metrics() const noexcept;

 private:
  Slot& make_slot(size_t number) noexcept;
  template <class Use>
  void for_each_slot(const Use& use) const noexcept;

  std::array<std::atomic<Slot*>, max_own_numbers> own_{};  // by the thread's number; made when used
  Slot common_{/*shared=*/true};
};

}  // namespace stride

#include "engine/monitoring/operation_counters.h"

#include <algorithm>
#include <new>

namespace stride {

OperationCounters::~OperationCounters() {
  for (auto& own : own_) delete own.load(std::memory_order_acquire);
}

// Only the thread that has the number makes its slot. Where there is no memory for it the thread
// shares one.
OperationCounters::Slot& OperationCounters::make_slot(size_t number) noexcept {
  Slot* made = new (std::nothrow) Slot(/*shared=*/false);
  if (!made) return common_;
  own_[number].store(made, std::memory_order_release);
  return *made;
}

void OperationCounters::Slot::add_to_totals(const Latencies& of, LatencyTotals* totals) noexcept {
  for (size_t i = 0; i < of.calls.size(); ++i)
    totals->add(i, of.calls[i].load(std::memory_order_relaxed));
  totals->add_time(of.sum_ns.load(std::memory_order_relaxed));
}

template <class Use>
void OperationCounters::for_each_slot(const Use& use) const noexcept {
  use(common_);
  for (const auto& own : own_)
    if (const Slot* slot = own.load(std::memory_order_acquire)) use(*slot);
}

OperationMetrics OperationCounters::metrics() const noexcept {
  LatencyTotals gets, commits;
  std::array<uint64_t, static_cast<size_t>(Count::end)> sums{};
  for_each_slot([&](const Slot& slot) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += slot.count(static_cast<Count>(i));
    Slot::add_to_totals(slot.gets_, &gets);
    Slot::add_to_totals(slot.commits_, &commits);
  });
  auto sum = [&](Count what) { return sums[static_cast<size_t>(what)]; };
  // Threads that go on meanwhile may have counted one and not yet the other.
  const uint64_t found = sum(Count::gets) - std::min(sum(Count::gets), sum(Count::absent_gets));
  return {.gets = sum(Count::gets),
          .get_found = found,
          .get_bytes = sum(Count::get_bytes),
          .batch_gets = sum(Count::batch_gets),
          .batch_keys = sum(Count::batch_keys),
          .batch_found = sum(Count::batch_found),
          .batch_bytes = sum(Count::batch_bytes),
          .device_keys = sum(Count::device_keys),
          .lower_bounds = sum(Count::lower_bounds),
          .scans = sum(Count::scans),
          .scan_rows = sum(Count::scan_rows),
          .scan_bytes = sum(Count::scan_bytes),
          .match_addresses = sum(Count::match_addresses),
          .match_found = sum(Count::match_found),
          .small_commits = sum(Count::small_commits),
          .large_commits = sum(Count::large_commits),
          .failed_commits = sum(Count::failed_commits),
          .committed_rows = sum(Count::committed_rows),
          .committed_bytes = sum(Count::committed_bytes),
          .get_latency = gets.metrics(),
          .commit_latency = commits.metrics()};
}

}  // namespace stride

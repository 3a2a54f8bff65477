#include "benchmark/workloads/ycsb/timed_phase.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace stride::benchmark {
namespace {

using Seconds = std::chrono::duration<double>;

// Shared by all threads of a phase.
struct PhaseState {
  YcsbClock::time_point begin = YcsbClock::now();
  std::atomic<uint64_t> next{0};
  std::atomic<bool> ended{false};
  std::mutex mutex;
  std::condition_variable changed;
  unsigned running = 0;  // threads

  double seconds_at(YcsbClock::time_point time) const { return Seconds(time - begin).count(); }
};

// One thread, and what it has measured. No two threads write to one cache line.
class alignas(64) Worker {
 public:
  Worker(SmallStore* store, YcsbRecords* records, const YcsbClientOptions& clients, unsigned thread,
         const TimedPhaseOptions& options)
      : client_(store, records, clients, thread), options_(options) {}

  void run(PhaseState* phase) {
    status_ = work(phase);
    if (!status_.ok()) phase->ended = true;
    const std::lock_guard lock(phase->mutex);
    --phase->running;
    phase->changed.notify_all();
  }

  Status& status() { return status_; }
  // Adds what was measured.
  void add_to(TimedPhase* phase, std::vector<LatencyHistogram>* intervals) const {
    for (size_t kind = 0; kind < operation_kinds; ++kind) {
      phase->latencies[kind].add(latencies_[kind]);
      phase->operations += latencies_[kind].count();
    }
    if (intervals->size() <= intervals_.size()) intervals->resize(intervals_.size() + 1);
    for (size_t i = 0; i < intervals_.size(); ++i) intervals_[i].add_to(&(*intervals)[i]);
    (*intervals)[intervals_.size()].add(interval_);
    phase->seconds = std::max(phase->seconds, end_);
  }

 private:
  // Operations are taken in chunks, so that threads do not contend for each.
  Status work(PhaseState* phase) {
    constexpr uint64_t chunk = 16;
    const uint64_t all = options_.operations ? options_.operations : UINT64_MAX;
    while (!phase->ended) {
      const uint64_t first = phase->next.fetch_add(chunk, std::memory_order_relaxed);
      const uint64_t past = first < all ? first + std::min(chunk, all - first) : first;
      if (first == past) break;
      for (uint64_t number = first; number < past && !phase->ended; ++number) {
        YcsbCall call;
        STRIDE_TRY(client_.run(number, &call));
        end_ = phase->seconds_at(call.end);
        record(call);
        if (options_.seconds > 0 && end_ >= options_.seconds) return {};
      }
    }
    return {};
  }

  void record(const YcsbCall& call) {
    const auto interval = static_cast<size_t>(end_ / options_.interval_seconds);
    while (intervals_.size() < interval) {
      intervals_.emplace_back(interval_);
      interval_.clear();
    }
    interval_.record(call.nanoseconds);
    latencies_[static_cast<size_t>(call.operation)].record(call.nanoseconds);
  }

  YcsbClient client_;
  const TimedPhaseOptions& options_;
  std::array<LatencyHistogram, operation_kinds> latencies_;
  LatencyHistogram interval_;               // the current one
  std::vector<SparseHistogram> intervals_;  // those before
  double end_ = 0;                          // of the last call
  Status status_;
};

// Samples the directory's size until all threads have ended.
std::vector<uint64_t> sample_sizes(PhaseState* phase, double interval_seconds,
                                   const std::function<uint64_t()>& directory_bytes) {
  std::vector<uint64_t> sizes;
  for (bool ended = false; !ended;) {
    const auto ticks = static_cast<double>(sizes.size() + 1);
    const auto until = phase->begin + std::chrono::duration_cast<YcsbClock::duration>(
                                          Seconds(interval_seconds * ticks));
    {
      std::unique_lock lock(phase->mutex);
      ended = phase->changed.wait_until(lock, until, [&] { return phase->running == 0; });
    }
    sizes.push_back(directory_bytes());
  }
  return sizes;
}

}  // namespace

Status run_timed_phase(SmallStore* store, YcsbRecords* records, const YcsbClientOptions& clients,
                       const TimedPhaseOptions& options,
                       const std::function<uint64_t()>& directory_bytes, TimedPhase* phase) {
  std::vector<Worker> workers;
  workers.reserve(options.threads);
  for (unsigned t = 0; t < options.threads; ++t)
    workers.emplace_back(store, records, clients, t, options);
  PhaseState state;
  state.running = options.threads;
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back([&] { worker.run(&state); });
  const std::vector<uint64_t> sizes =
      sample_sizes(&state, options.interval_seconds, directory_bytes);
  for (std::thread& thread : threads) thread.join();

  std::vector<LatencyHistogram> intervals;
  for (Worker& worker : workers) {
    STRIDE_TRY(std::move(worker.status()));
    worker.add_to(phase, &intervals);
  }
  for (size_t i = 0; i < intervals.size(); ++i)
    phase->intervals.push_back({intervals[i].count(), intervals[i].percentile(0.99) / 1e3,
                                static_cast<double>(intervals[i].max()) / 1e3,
                                sizes[std::min(i, sizes.size() - 1)]});
  return {};
}

}  // namespace stride::benchmark

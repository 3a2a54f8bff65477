#include "engine/backup/copy_work.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "engine/write/watched_work.h"
#include "storage/first_failure.h"
#include "storage/no_throw.h"

namespace stride {

// The work begins once the first call has answered: a small copy can be stopped, too.
Status run_copy(const CopyOptions& options, const std::function<Status(CopyCounters*)>& work) {
  CopyCounters counters;
  if (!options.progress) return no_throw([&] { return work(&counters); });
  enum Answer : int { none, yes, no };
  std::atomic<int> first{none};
  auto answer = [&](bool goes_on) {
    int expected = none;
    if (first.compare_exchange_strong(expected, goes_on ? yes : no)) first.notify_one();
    return goes_on;
  };
  auto carry_out = [&](WorkWatch* watch) {
    first.wait(none);
    if (first == no) return WorkWatch::cancelled();
    WorkWatch::Scope scope(watch);
    STRIDE_TRY(WorkWatch::check());
    return work(&counters);
  };
  return run_watched(carry_out, [&](const WorkWatch& watch) {
    try {
      return answer(options.progress({.files = counters.files,
                                      .total_files = counters.total_files,
                                      .bytes = watch.written_bytes(),
                                      .total_bytes = counters.total_bytes}));
    } catch (...) {
      answer(false);
      throw;
    }
  });
}

// One thread reads, checks and writes by turns: several keep the disk at work.
Status copy_files(uint64_t files, CopyCounters* counters,
                  const std::function<Status(uint64_t)>& copy) {
  constexpr uint64_t max_threads = 4;
  WorkWatch* watch = WorkWatch::current();
  FirstFailure failure;
  std::atomic<uint64_t> next{0};
  auto work = [&] {
    WorkWatch::Scope scope(watch);
    for (uint64_t i; (i = next.fetch_add(1)) < files && !failure.failed();) {
      Status s = no_throw([&] {
        STRIDE_TRY(WorkWatch::check());
        return copy(i);
      });
      if (s.ok()) counters->files.fetch_add(1);
      failure.report(std::move(s));
    }
  };
  std::vector<std::thread> threads;
  try {
    const uint64_t useful = std::min(max_threads, files);
    threads.reserve(useful);
    while (threads.size() + 1 < useful) threads.emplace_back(work);
  } catch (const std::exception&) {
    // Those that there are do it all.
  }
  work();
  for (std::thread& thread : threads) thread.join();
  return failure.status();
}

}  // namespace stride

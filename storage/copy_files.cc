#include "storage/copy_files.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "storage/first_failure.h"
#include "storage/no_throw.h"
#include "storage/work_watch.h"

namespace stride {

// One thread reads, checks and writes by turns: several keep the disk at work.
Status copy_files(uint64_t files, std::atomic<uint64_t>* copied,
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
      if (s.ok() && copied) copied->fetch_add(1);
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

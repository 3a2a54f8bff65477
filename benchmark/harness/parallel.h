// Splits a batch over the cores, for the peers' lookups and for the harness's own sorting: one
// persistent pool, so that a batch pays no thread's start.
#pragma once

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdint>
#if defined(__SANITIZE_THREAD__)
#include <atomic>
#include <thread>
#include <vector>
#endif

namespace stride::benchmark {

// For one thread at a time.
class Parallel {
 public:
  explicit Parallel(unsigned threads)
      : threads_(std::max(1u, threads)),
        allowed_(tbb::global_control::max_allowed_parallelism,
                 std::max(threads_, static_cast<unsigned>(tbb::info::default_concurrency()))),
        arena_(static_cast<int>(threads_)) {}

  unsigned threads() const { return threads_; }
  // Parts that for_parts makes at most: several a thread, so that a thread that is held up does
  // not hold up the batch.
  unsigned max_parts() const { return threads_ == 1 ? 1 : threads_ * 4; }

  // Calls f(part, begin, end) once for each of up to max_parts() ranges that make up [0, n). Ranges
  // begin at multiples of 64, so that two parts never share a word of a bitmap, and have about
  // `min_items` or more. Small batches run on the calling thread.
  template <class F>
  void for_parts(uint64_t n, uint64_t min_items, F&& f) {
    unsigned parts = static_cast<unsigned>(std::clamp<uint64_t>(n / min_items, 1, max_parts()));
    if (parts == 1) return f(0u, uint64_t{0}, n);
    auto begin = [&](unsigned part) {
      return part == parts ? n : n * part / parts & ~uint64_t{63};
    };
#if defined(__SANITIZE_THREAD__)
    // ThreadSanitizer cannot see the order that an uninstrumented TBB keeps.
    std::atomic<unsigned> next{0};
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads_; ++t) {
      workers.emplace_back([&] {
        for (unsigned part; (part = next++) < parts;) f(part, begin(part), begin(part + 1));
      });
    }
    for (std::thread& worker : workers) worker.join();
#else
    arena_.execute([&] {
      tbb::parallel_for(
          0u, parts, [&](unsigned part) { f(part, begin(part), begin(part + 1)); },
          tbb::simple_partitioner());
    });
#endif
  }

  // Calls f() where the algorithms of TBB use this pool.
  template <class F>
  void run(F&& f) {
    arena_.execute(f);
  }

 private:
  unsigned threads_;
  tbb::global_control allowed_;  // more threads than cores, where that is asked for
  tbb::task_arena arena_;
};

}  // namespace stride::benchmark

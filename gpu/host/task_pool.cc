#include "gpu/host/task_pool.h"

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "storage/work_watch.h"

namespace stride {

// ThreadSanitizer cannot see the order that an uninstrumented TBB keeps. Plain threads, which it
// does see, let it check the bodies.
#if defined(__SANITIZE_THREAD__)

struct TaskPool::Arena {
  explicit Arena(unsigned) {}
};

namespace {

void run_on_threads(unsigned threads, uint64_t tasks, const std::function<void(uint64_t)>& task) {
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  auto work = [&] {
    try {
      for (uint64_t i; (i = next.fetch_add(1)) < tasks;) task(i);
    } catch (...) {
      std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (uint64_t i = 1; i < std::min<uint64_t>(threads, tasks); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

void TaskPool::run_all(uint64_t n, const Body& body) {
  run_on_threads(threads_, n, [&](uint64_t i) { body(i, i + 1); });
}

void TaskPool::inside(const std::function<void()>& work) { work(); }

#else

struct TaskPool::Arena {
  // Calls that go on at once, each on its caller's thread: who comes while others are at work
  // begins at once, so that a commit does not wait for batches of reads.
  static constexpr unsigned callers = 64;

  explicit Arena(unsigned threads) : arena(static_cast<int>(threads - 1 + callers), callers) {}
  // Who waits for the rest of its work takes up none of other calls, which may last much longer.
  template <class Work>
  void run(const Work& work) {
    arena.execute([&] { tbb::this_task_arena::isolate(work); });
  }
  tbb::task_arena arena;
};

void TaskPool::run_all(uint64_t n, const Body& body) {
  if (n == 0) return;
  if (n == 1 || threads_ == 1) {
    for (uint64_t i = 0; i < n; ++i) body(i, i + 1);
    return;
  }
  arena_->run([&] {
    tbb::parallel_for(
        tbb::blocked_range<uint64_t>(0, n, 1),
        [&](const tbb::blocked_range<uint64_t>& range) { body(range.begin(), range.end()); },
        tbb::simple_partitioner());
  });
}

void TaskPool::inside(const std::function<void()>& work) {
  WorkWatch::Scope unwatched(nullptr);
  arena_->run(work);
}

#endif

namespace {

unsigned threads_for(unsigned wanted) {
#if defined(__SANITIZE_THREAD__)
  return wanted ? wanted : std::max(2u, std::thread::hardware_concurrency());
#else
  auto cores = static_cast<unsigned>(std::max(1, tbb::info::default_concurrency()));
  return wanted ? std::min(wanted, cores) : cores;
#endif
}

}  // namespace

TaskPool::TaskPool(unsigned threads)
    : threads_(threads_for(threads)), arena_(std::make_unique<Arena>(threads_)) {}

TaskPool::~TaskPool() = default;

// Bodies run on any thread of the pool, and none of them has a watch.
void TaskPool::run_each(uint64_t n, const Body& body) {
  const WorkWatch* watch = WorkWatch::current();
  if (!watch) return run_all(n, body);
  WorkWatch::Scope unwatched(nullptr);
  run_all(n, [&](uint64_t begin, uint64_t end) {
    if (!watch->is_stopped()) body(begin, end);
  });
  watch->throw_if_stopped();
}

void TaskPool::run(uint64_t n, uint64_t grain, const Body& body) {
  if (n == 0) return;
  // More pieces than threads, so that a thread which is held up does not hold up all.
  constexpr uint64_t pieces_per_thread = 8;
  // Each takes some milliseconds at most, and the call can be stopped in time.
  constexpr uint64_t watched_pieces = 512;
  const bool watched = WorkWatch::current() != nullptr;
  uint64_t pieces =
      std::clamp<uint64_t>(n / std::max<uint64_t>(grain, 1), 1,
                           std::max(threads_ * pieces_per_thread, watched ? watched_pieces : 1));
  if (pieces == 1 || (threads_ == 1 && !watched)) return body(0, n);
  run_each(pieces, [&](uint64_t i, uint64_t) {
    auto edge = [&](uint64_t piece) { return n / pieces * piece + std::min(piece, n % pieces); };
    body(edge(i), edge(i + 1));
  });
}

}  // namespace stride

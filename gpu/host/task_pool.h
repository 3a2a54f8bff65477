// The threads of the host backend.
//
//   TaskPool pool(0);  // one thread for each core
//   pool.run(rows, 4096, [&](uint64_t begin, uint64_t end) { ... });
//
// Calls may be made from several threads at once, and from inside a body. Where the calling
// thread's WorkWatch is stopped (storage/work_watch.h), bodies that have not begun are left out,
// and the call throws StopRequested.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace stride {

class TaskPool {
 public:
  using Body = std::function<void(uint64_t begin, uint64_t end)>;

  // threads: the caller's included, at most one a core; 0: one for each core.
  explicit TaskPool(unsigned threads);
  ~TaskPool();

  unsigned threads() const { return threads_; }

  // Calls body for disjoint ranges that cover [0, n), each of `grain` or more where n is, and
  // returns when all are done. A single range runs on the calling thread without waking anybody.
  void run(uint64_t n, uint64_t grain, const Body& body);
  // Calls body(i, i + 1) for each i below n, each as a task of its own.
  void run_each(uint64_t n, const Body& body);
  // Calls work() where a parallel algorithm uses this pool's threads.
  void inside(const std::function<void()>& work);

 private:
  struct Arena;
  // run_each(), whoever watches.
  void run_all(uint64_t n, const Body& body);

  unsigned threads_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace stride

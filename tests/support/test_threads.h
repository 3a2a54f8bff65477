// Threads of a test case.
//
//   TestThreads threads;
//   for (int t = 0; t < 4; ++t) threads.start([&, t] { CHECK_OK(table.put(key(t), "value")); });
//   threads.join();
//
// Catch2's assertions belong to the thread that runs the test case. CHECK_MESSAGE, CHECK_OK and
// their REQUIRE forms may be used here: what fails is kept, and fails the test case at join().
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace stride::test {

struct ThreadFailures;

class TestThreads {
 public:
  TestThreads();
  ~TestThreads();  // join()
  TestThreads(const TestThreads&) = delete;
  TestThreads& operator=(const TestThreads&) = delete;

  // An assertion that is required and fails ends the thread; so does an exception, which fails the
  // test too.
  void start(std::function<void()> body);
  // True from join() on, and where the test case ends before that: a thread that repeats something
  // ends then. Safe to call from any thread.
  bool stopping() const { return stopping_; }
  // Waits for all of them. Call it from the thread that runs the test case.
  void join();
  // Whether an assertion of a thread has failed. Safe to call from any thread.
  bool failed() const;

 private:
  std::unique_ptr<ThreadFailures> failures_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_{false};
};

// Runs `body` on a thread of its own, and waits for it.
inline void run_elsewhere(std::function<void()> body) {
  TestThreads threads;
  threads.start(std::move(body));
  threads.join();
}

}  // namespace stride::test

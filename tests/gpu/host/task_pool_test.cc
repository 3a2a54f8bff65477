
#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gpu/backend.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

TEST_CASE("ParallelForTest.CoversEachNumberOnce", "[ParallelForTest]") {
  for (unsigned threads : {1u, 2u, 7u}) {
    auto backend = Backend::host(threads);
    CHECK(backend->threads() >= 1u);
    CHECK(backend->threads() <= threads);
    for (uint64_t n : {0, 1, 99, 100, 101, 12345}) {
      std::vector<int> seen(n);
      std::atomic<int> short_ranges{0};
      backend->parallel_for(n, 100, [&](uint64_t begin, uint64_t end) {
        short_ranges += begin >= end || end - begin < std::min<uint64_t>(n, 100);
        for (uint64_t i = begin; i < end; ++i) ++seen[i];
      });
      CHECK(short_ranges == 0);
      CHECK(seen == std::vector<int>(n, 1));
    }
  }
}

TEST_CASE("ParallelForTest.RunsASingleRangeOnTheCaller", "[ParallelForTest]") {
  auto backend = Backend::host(4);
  std::thread::id runner;
  backend->parallel_for(199, 100, [&](uint64_t, uint64_t) { runner = std::this_thread::get_id(); });
  CHECK((runner == std::this_thread::get_id()));
}

TEST_CASE("ParallelForTest.MayBeCalledFromManyThreadsAndNested", "[ParallelForTest]") {
  auto backend = Backend::host(2);
  std::atomic<uint64_t> sum{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      backend->parallel_for(100, 10, [&](uint64_t begin, uint64_t end) {
        backend->parallel_for(end - begin, 1, [&](uint64_t b, uint64_t e) { sum += e - b; });
      });
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(sum == 400u);
}

// Both threads of the pool are held until another call is done.
TEST_CASE("ParallelForTest.ACallDoesNotWaitForOthers", "[ParallelForTest]") {
  auto backend = Backend::host(2);
  std::atomic<int> held{0};
  std::atomic<bool> done{false};
  std::thread holder([&] {
    backend->parallel_for(2, 1, [&](uint64_t, uint64_t) {
      ++held;
      while (!done) std::this_thread::yield();
    });
  });
  while (held < std::min(2, static_cast<int>(backend->threads()))) std::this_thread::yield();
  std::atomic<uint64_t> sum{0};
  backend->parallel_for(100, 1, [&](uint64_t begin, uint64_t end) { sum += end - begin; });
  done = true;
  holder.join();
  CHECK(sum == 100u);
}

// A call whose last body runs elsewhere waits for that one alone, and not for work of others that
// it has taken up meanwhile.
TEST_CASE("ParallelForTest.WhoWaitsTakesUpNoWorkOfOthers", "[ParallelForTest]") {
  auto backend = Backend::host(2);
  if (backend->threads() < 2) return;
  std::atomic<std::thread::id> waiter;
  std::atomic<bool> elsewhere{false}, waits{false}, done{false};
  std::thread caller([&] {
    waiter = std::this_thread::get_id();
    backend->parallel_for(2, 1, [&](uint64_t, uint64_t) {
      if (std::this_thread::get_id() == waiter.load()) {
        while (!elsewhere) std::this_thread::yield();
        waits = true;
      } else {
        elsewhere = true;
        while (!done) std::this_thread::yield();
      }
    });
  });
  while (!waits) std::this_thread::yield();
  std::atomic<int> taken_up{0};
  backend->parallel_for(100, 1, [&](uint64_t, uint64_t) {
    taken_up += std::this_thread::get_id() == waiter.load();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  });
  done = true;
  caller.join();
  CHECK(taken_up == 0);
}

TEST_CASE("ParallelForTest.HandsExceptionsOn", "[ParallelForTest]") {
  auto backend = Backend::host(2);
  CHECK_THROWS_AS(
      backend->parallel_for(100, 1, [](uint64_t, uint64_t) { throw std::runtime_error("stop"); }),
      std::runtime_error);
}

}  // namespace
}  // namespace stride::test

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gpu/backend.h"

namespace stride::test {
namespace {

TEST(ParallelForTest, CoversEachNumberOnce) {
  for (unsigned threads : {1u, 2u, 7u}) {
    auto backend = Backend::host(threads);
    EXPECT_GE(backend->threads(), 1u);
    EXPECT_LE(backend->threads(), threads);
    for (uint64_t n : {0, 1, 99, 100, 101, 12345}) {
      std::vector<int> seen(n);
      backend->parallel_for(n, 100, [&](uint64_t begin, uint64_t end) {
        EXPECT_LT(begin, end);
        EXPECT_GE(end - begin, std::min<uint64_t>(n, 100));
        for (uint64_t i = begin; i < end; ++i) ++seen[i];
      });
      EXPECT_EQ(seen, std::vector<int>(n, 1));
    }
  }
}

TEST(ParallelForTest, RunsASingleRangeOnTheCaller) {
  auto backend = Backend::host(4);
  backend->parallel_for(199, 100, [caller = std::this_thread::get_id()](uint64_t, uint64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

TEST(ParallelForTest, MayBeCalledFromManyThreadsAndNested) {
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
  EXPECT_EQ(sum, 400u);
}

// Both threads of the pool are held until another call is done.
TEST(ParallelForTest, ACallDoesNotWaitForOthers) {
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
  EXPECT_EQ(sum, 100u);
}

TEST(ParallelForTest, HandsExceptionsOn) {
  auto backend = Backend::host(2);
  EXPECT_THROW(
      backend->parallel_for(100, 1, [](uint64_t, uint64_t) { throw std::runtime_error("stop"); }),
      std::runtime_error);
}

}  // namespace
}  // namespace stride::test

// Chunks that come in, are worked on and go out, each stage on a thread of its own.
#include "gpu/host/ordered_stages.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

TEST_CASE("OrderedStagesTest.EachChunkPassesAllStagesInOrder", "[OrderedStagesTest]") {
  std::mt19937_64 random(seed());
  for (uint64_t chunks : {0, 1, 2, 3, 4, 7, 50}) {
    std::vector<uint64_t> rooms(chunk_rooms);  // chunk + 1 while it is in, 0 before and after
    std::vector<uint64_t> seen[3];
    std::atomic<bool> right{true};
    auto pause = [&, share = random() % 3](uint64_t chunk) {
      if (chunk % 3 == share) std::this_thread::sleep_for(std::chrono::microseconds(200));
    };
    run_in_order(
        chunks,
        [&](uint64_t chunk) {
          right = right && rooms[chunk % chunk_rooms] == 0;
          rooms[chunk % chunk_rooms] = chunk + 1;
          seen[0].push_back(chunk);
          pause(chunk);
        },
        [&](uint64_t chunk) {
          right = right && rooms[chunk % chunk_rooms] == chunk + 1;
          pause(chunk + 1);
          seen[1].push_back(chunk);
        },
        [&](uint64_t chunk) {
          right = right && rooms[chunk % chunk_rooms] == chunk + 1;
          pause(chunk + 2);
          rooms[chunk % chunk_rooms] = 0;
          seen[2].push_back(chunk);
        });
    CHECK(right);
    for (const std::vector<uint64_t>& of_stage : seen) {
      CHECK(of_stage.size() == chunks);
      for (uint64_t i = 0; i < of_stage.size(); ++i) CHECK(of_stage[i] == i);
    }
  }
}

// In a process of its own that has no room for the stack of another thread.
TEST_CASE("OrderedStagesTest.WithoutThreadsTheCallerDoesAll", "[OrderedStagesTest]") {
  if (under_sanitizer) SKIP("sanitizers need the addresses");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit none{1 << 20, 1 << 20};
    uint64_t sum = 0, rooms[chunk_rooms] = {};
    try {
      if (setrlimit(RLIMIT_AS, &none) != 0) _exit(2);
      run_in_order(
          20, [&](uint64_t chunk) { rooms[chunk % chunk_rooms] = chunk + 1; },
          [&](uint64_t chunk) { rooms[chunk % chunk_rooms] *= 2; },
          [&](uint64_t chunk) { sum += rooms[chunk % chunk_rooms]; });
    } catch (...) {
      _exit(3);
    }
    _exit(sum == 420 ? 0 : 1);
  }
  int ended = 0;
  REQUIRE(waitpid(child, &ended, 0) == child);
  CHECK(ended == 0);
}

TEST_CASE("OrderedStagesTest.AStageThatThrowsEndsAll", "[OrderedStagesTest]") {
  for (int thrower = 0; thrower < 3; ++thrower)
    for (uint64_t at : {0, 1, 4, 19}) {
      std::atomic<uint64_t> passed[3] = {0, 0, 0};
      auto stage = [&](int number) {
        return [&, number](uint64_t chunk) {
          if (number == thrower && chunk == at)
            throw std::runtime_error("stage " + std::to_string(number));
          ++passed[number];
        };
      };
      std::string what;
      try {
        run_in_order(20, stage(0), stage(1), stage(2));
      } catch (const std::runtime_error& error) {
        what = error.what();
      }
      CHECK(what == "stage " + std::to_string(thrower));
      CHECK(passed[thrower] == at);
      for (int later = thrower + 1; later < 3; ++later) CHECK(passed[later] <= at);
    }
}

}  // namespace
}  // namespace stride::test

#include "engine/background/pace.h"

#include <chrono>
#include <cstdint>

#include "tests/support/catch.h"

namespace stride::test {

constexpr uint64_t MB = 1'000'000;

TEST_CASE("PaceTest.AMemtableIsFilledFreelyToItsMiddle", "[PaceTest]") {
  CHECK(memtable_pace(0, 64 * MB, 1e8) == unpaced);
  CHECK(memtable_pace(32 * MB, 64 * MB, 1e8) == unpaced);
  double before = unpaced;
  for (uint64_t bytes = 33 * MB; bytes <= 70 * MB; bytes += MB) {
    const double pace = memtable_pace(bytes, 64 * MB, 1e8);
    CHECK(pace <= before);
    before = pace;
  }
  CHECK(memtable_pace(48 * MB, 64 * MB, 1e8) == 1e8);  // half of the second half
  CHECK(before == 1e8 / 16);
}

TEST_CASE("PaceTest.MergesSlowCommitsByWhatTheyOwe", "[PaceTest]") {
  auto pace = [](uint64_t bottom, uint64_t written) {
    return merge_pace({bottom * MB, written * MB}, 3e8, 2e8);
  };
  // Nothing is known, nothing is owed, or it is merged in a second.
  CHECK(merge_pace({1000 * MB, 5000 * MB}, 0, 2e8) == unpaced);
  CHECK(pace(0, 1000) == unpaced);
  CHECK(pace(1000, 0) == unpaced);
  CHECK(pace(1000, 500) == unpaced);
  CHECK(pace(100, 190) == unpaced);
  double before = unpaced;
  for (uint64_t written = 510; written <= 1500; written += 10) {
    const double now = pace(1000, written);
    CHECK(now <= before);
    CHECK(now <= 2e8);
    before = now;
  }
  CHECK(pace(1000, 750) < 2e8);
  // As much above as in the bottom run: 2 GB are merged in 6.7 s, and half a GB comes meanwhile.
  CHECK(pace(1000, 1000) == 3e8 / 4);
  CHECK(pace(1000, 9000) == 3e8 / 4);
  // Flushes are slower than that.
  CHECK(merge_pace({1000 * MB, 1000 * MB}, 3e8, 1e7) == 1e7);
}

TEST_CASE("PaceTest.ThePacerSleepsForWhatIsOwed", "[PaceTest]") {
  using Clock = std::chrono::steady_clock;
  Pacer pacer;
  pacer.pace(0, 1e6);
  auto begin = Clock::now();
  pacer.pace(500 * MB, unpaced);
  CHECK(Clock::now() - begin < std::chrono::seconds(1));
  // 100 calls of 2,000 bytes at a million bytes a second take 0.2 s together, and none 20 ms more.
  begin = Clock::now();
  for (uint64_t i = 1; i <= 100; ++i) pacer.pace(500 * MB + i * 2000, 1e6);
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(170));
}

}  // namespace stride::test

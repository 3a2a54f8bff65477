// Bytes of a small database are flipped, and its files cut, one at a time.
#include "tests/engine/salvage/every_byte.h"

#include "tests/support/catch.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

// How many there are of each kind, of files of some ten kilobytes: the soak tries all of them.
constexpr uint64_t tries = 400;

uint64_t total_bytes(const EveryByte& every) {
  uint64_t bytes = 0;
  for (const auto& [name, content] : every.files()) bytes += content.size();
  return bytes;
}

TEST_CASE("EveryByteTest.Flipped", "[EveryByteTest]") {
  std::mt19937_64 random(seed());
  EveryByte every;
  const uint64_t step = std::max<uint64_t>(1, total_bytes(every) / tries);
  for (const auto& [name, bytes] : every.files()) {
    // Small files, and the ends of large ones, have the most in the fewest bytes.
    const uint64_t stride = bytes.size() < 4096 ? std::max<uint64_t>(1, step / 8) : step;
    for (uint64_t at = random() % stride; at < bytes.size(); at += 1 + random() % (2 * stride))
      every.flip(name, at, static_cast<uint8_t>(1 + random() % 255));
  }
  CHECK(every.tried() > tries / 2);
}

TEST_CASE("EveryByteTest.Cut", "[EveryByteTest]") {
  std::mt19937_64 random(seed());
  EveryByte every;
  const uint64_t step = std::max<uint64_t>(1, total_bytes(every) / tries);
  for (const auto& [name, bytes] : every.files()) {
    const uint64_t stride = bytes.size() < 4096 ? std::max<uint64_t>(1, step / 8) : step;
    for (uint64_t at = random() % stride; at < bytes.size(); at += 1 + random() % (2 * stride))
      every.cut(name, at);
  }
}

// Records begin at multiples of 8.
TEST_CASE("EveryByteTest.CutBetweenRecords", "[EveryByteTest]") {
  EveryByte every;
  for (const auto& [name, bytes] : every.files())
    for (uint64_t at = 0; !segment_number(name) && at < std::min<uint64_t>(bytes.size(), 1024);
         at += 8)
      every.cut(name, at);
}

TEST_CASE("EveryByteTest.Removed", "[EveryByteTest]") {
  EveryByte every;
  for (const auto& [name, bytes] : every.files()) every.remove(name);
}

}  // namespace
}  // namespace stride::test

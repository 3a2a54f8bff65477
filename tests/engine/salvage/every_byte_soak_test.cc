// Every byte of a small database is flipped, and every length cut, one at a time.
#include <cstdio>

#include "tests/engine/salvage/every_byte.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

TEST_CASE("EveryByteSoakTest.All", "[EveryByteSoakTest]") {
  std::mt19937_64 random(seed());
  EveryByte every;
  for (const auto& [name, bytes] : every.files()) {
    for (uint64_t at = 0; at < bytes.size(); ++at) {
      // Each bit of it, in turn.
      every.flip(name, at, static_cast<uint8_t>(1u << (at % 8)));
      every.flip(name, at, static_cast<uint8_t>(1 + random() % 255));
      every.cut(name, at);
    }
    every.remove(name);
  }
  std::printf("%llu files damaged\n", static_cast<unsigned long long>(every.tried()));
}

}  // namespace
}  // namespace stride::test

// Operations of a database under some options, beside the model of the metamorphic tests: each call
// is answered as the model does.
//
// Input: four bytes that draw the options, and four for each operation.
#include "tests/engine/metamorphic/history.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

constexpr size_t most_operations = 60;

// Numbers that are near each other draw what is not.
uint64_t seed_of(uint32_t number) { return number * 0x9E3779B97F4A7C15; }

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (uint32_t seed = 0; seed < 32; ++seed) {
    std::string input;
    for (uint32_t i = 0; i < 2 + seed; ++i) {
      const uint32_t number = seed * 64 + i;
      input.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    seeds.push_back(input);
  }
  return seeds;
}

}  // namespace stride::test

using namespace stride::test;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stride::test::metamorphic;
  FuzzInput input(data, size);
  OptionSet set = make_option_set(seed_of(input.take<uint32_t>()));
  set.on_disk = false;
  // A failure is to come again with the same input.
  set.background_work = false;
  History history;
  while (input.left() > 0 && history.size() < most_operations)
    history.push_back(make_operation(seed_of(input.take<uint32_t>())));
  const auto mismatch = run(history, set);
  REQUIRE_MESSAGE(!mismatch, describe({history, set, *mismatch}));
  return 0;
}

// One history of random operations under many option sets: answers are those of a std::map, and so
// the same under all of them.

#include "tests/engine/metamorphic/history.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test::metamorphic {
namespace {

TEST_CASE("MetamorphicTest.OneHistoryHasTheSameAnswersUnderAllOptions", "[MetamorphicTest]") {
  std::mt19937_64 random(seed());
  for (int round = 0; round < smaller_under_sanitizers(10, 3); ++round) {
    const History history = make_history(random(), smaller_under_sanitizers(400, 120));
    for (int i = 0; i < smaller_under_sanitizers(8, 4); ++i) {
      const OptionSet set = make_option_set(random());
      // A disk takes milliseconds for each commit that is synced.
      const size_t operations = set.on_disk ? 100 : history.size();
      const History part(history.begin(), history.begin() + static_cast<ptrdiff_t>(operations));
      auto mismatch = run(part, set);
      if (mismatch) FAIL(describe(shrink({part, set, *mismatch}, std::chrono::seconds(60))));
    }
  }
}

}  // namespace
}  // namespace stride::test::metamorphic

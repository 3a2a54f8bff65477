// As metamorphic_test.cc, for as long as STRIDE_SOAK_SECONDS says.

#include <cstdio>

#include "tests/engine/metamorphic/history.h"
#include "tests/support/catch.h"
#include "tests/support/soak.h"

namespace stride::test::metamorphic {
namespace {

TEST_CASE("MetamorphicSoak.OneHistoryHasTheSameAnswersUnderAllOptions", "[MetamorphicSoak]") {
  std::mt19937_64 random(seed());
  size_t operations = 0;
  for (Deadline deadline; !deadline.over();) {
    const History history = make_history(random(), 50 + random() % 1500);
    for (int i = 0; i < 6 && !deadline.over(); ++i) {
      const OptionSet set = make_option_set(random());
      auto mismatch = run(history, set);
      operations += history.size();
      if (mismatch) FAIL(describe(shrink({history, set, *mismatch}, std::chrono::seconds(120))));
    }
  }
  std::fprintf(stderr, "operations: %zu\n", operations);
}

}  // namespace
}  // namespace stride::test::metamorphic

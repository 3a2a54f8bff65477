// One history of random operations under many option sets: answers are those of a std::map, and so
// the same under all of them.

#include <algorithm>

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

// Two rows of a key, however far apart, under an option: what is left is those two.
TEST_CASE("MetamorphicTest.AFailureIsMadeAsShortAsItCanBe", "[MetamorphicTest]") {
  std::mt19937_64 random(seed());
  History history = make_history(random(), 200);
  OptionSet set = make_option_set(random());
  set.memtable_bytes = 4096;
  auto rows = [](const Operation& operation) {
    size_t n = 0;
    for (const Changes& changes : operation.transactions)
      for (const Step& step : changes.steps)
        n += static_cast<size_t>(std::count(step.keys.begin(), step.keys.end(), "n1"));
    return n;
  };
  for (size_t at : {20u, 150u}) {
    Operation& operation = history[at] = make_operation(random());
    operation.kind = Operation::Kind::commit;
    Step step;
    for (int i = 0; i < 50; ++i) step.keys.push_back("n" + std::to_string(i));
    step.values = step.keys;
    step.deltas.resize(step.keys.size());
    operation.transactions = {{{step, step, step}, Durability::sync, false}};
  }
  auto fails = [&](const History& run, const OptionSet& under) -> std::optional<Mismatch> {
    size_t seen = 0;
    for (size_t i = 0; i < run.size(); ++i)
      if (under.memtable_bytes && rows(run[i]) && ++seen == 2) return Mismatch{i, "", ""};
    return std::nullopt;
  };
  auto mismatch = fails(history, set);
  REQUIRE(mismatch.has_value());
  const Failure least = shrink({history, set, *mismatch}, std::chrono::seconds(60), fails);
  REQUIRE(least.history.size() == 2u);
  for (const Operation& operation : least.history) CHECK(rows(operation) == 1u);
  CHECK(least.set.memtable_bytes == 4096u);
  CHECK(least.set.reopen_every == 0);
  CHECK(least.set.tree.strides.empty());
  CHECK_FALSE(least.set.background_work);
}

}  // namespace
}  // namespace stride::test::metamorphic

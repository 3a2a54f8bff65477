// Committed transactions are as if one had come after the other.
#include "tests/engine/transaction/histories.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

const ListKey x{0, "x"}, y{1, "y"};

RecordedTransaction transaction(uint32_t number, uint64_t begin, uint64_t end,
                                std::map<ListKey, List> read, std::vector<ListKey> appended) {
  return {number, begin, end, std::move(read), std::move(appended)};
}

TEST_CASE("SerializabilityTest.TheCheckFindsWhatMustNotBe", "[SerializabilityTest]") {
  auto t = transaction;
  struct Case {
    const char* name;
    std::vector<RecordedTransaction> committed;
    std::map<ListKey, List> last;
    const char* wrong;  // a part of what is said
  };
  const Case cases[] = {
      {"nothing", {}, {}, ""},
      {"one after the other",
       {t(1, 1, 3, {{x, {}}}, {x}), t(2, 2, 4, {{x, {1}}}, {x})},
       {{x, {1, 2}}},
       ""},
      {"a lost update",
       {t(1, 1, 3, {{x, {}}}, {x}), t(2, 2, 4, {{x, {}}}, {x})},
       {{x, {2}}},
       "1 appends are lost"},
      {"an update of what was not read",
       {t(1, 1, 3, {{x, {}}}, {x}), t(2, 2, 4, {{x, {}}}, {x})},
       {{x, {1, 2}}},
       "cycle"},
      {"write skew",
       {t(1, 1, 3, {{x, {}}, {y, {}}}, {x}), t(2, 2, 4, {{x, {}}, {y, {}}}, {y})},
       {{x, {1}}, {y, {2}}},
       "cycle"},
      {"half a commit",
       {t(1, 1, 3, {}, {x, y}), t(2, 2, 4, {{x, {1}}, {y, {}}}, {})},
       {{x, {1}}, {y, {1}}},
       "cycle"},
      {"an old state", {t(1, 1, 2, {}, {x}), t(2, 3, 4, {{x, {}}}, {})}, {{x, {1}}}, "cycle"},
      {"an aborted append", {t(2, 3, 4, {{x, {1}}}, {})}, {{x, {1}}}, "not committed"},
      {"an append twice", {t(1, 1, 2, {}, {x})}, {{x, {1, 1}}}, "twice"},
      {"another order than was read",
       {t(1, 1, 4, {}, {x}), t(2, 2, 5, {}, {x}), t(3, 3, 6, {{x, {2}}}, {})},
       {{x, {1, 2}}},
       "no beginning"},
  };
  for (const Case& c : cases) {
    const std::string wrong = check_history(c.committed, c.last);
    CHECK_MESSAGE((c.wrong[0] ? wrong.find(c.wrong) != std::string::npos : wrong.empty()),
                  c.name << ": " << wrong);
  }
}

TEST_CASE("SerializabilityTest.TransactionsAreSerializable", "[SerializabilityTest]") {
  for (const uint32_t keys : {4u, 30u}) {
    const History history = run_history({.transactions = 500, .keys = keys}, seed() + keys);
    const std::string wrong = check_history(history.committed, history.last);
    CHECK_MESSAGE(wrong.empty(), wrong);
    CHECK(history.committed.size() > 100u);
  }
}

}  // namespace
}  // namespace stride::test

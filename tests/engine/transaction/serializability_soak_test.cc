// Histories of transactions, for as long as STRIDE_SOAK_SECONDS says.
#include "tests/engine/transaction/histories.h"
#include "tests/support/catch.h"
#include "tests/support/soak.h"

namespace stride::test {
namespace {

TEST_CASE("SerializabilitySoakTest.TransactionsAreSerializable", "[SerializabilitySoakTest]") {
  uint64_t round = 0, committed = 0, conflicts = 0;
  for (Deadline deadline; round == 0 || !deadline.over(); ++round) {
    HistoryOptions options{.threads = 8, .transactions = 12'500, .keys = 1000};
    if (round % 2) options = {.threads = 8, .transactions = 1250, .keys = 30};
    options.memtable_bytes = round % 3 ? 256 << 10 : 64 << 10;
    const History history = run_history(options, seed() + round * 1000);
    const std::string wrong = check_history(history.committed, history.last);
    REQUIRE_MESSAGE(wrong.empty(), "round " << round << ": " << wrong);
    committed += history.committed.size();
    conflicts += history.conflicts;
  }
  std::fprintf(stderr, "%llu transactions were committed, %llu were in conflict\n",
               static_cast<unsigned long long>(committed),
               static_cast<unsigned long long>(conflicts));
}

}  // namespace
}  // namespace stride::test

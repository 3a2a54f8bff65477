// stride-bench transactions as a person meets it.
#include <map>

#include "benchmark/workloads/transactions/workload.h"
#include "tests/benchmark/harness/command_line_fixture.h"
#include "tests/support/catch.h"

namespace stride::benchmark {
namespace {

class TransactionsTest : public CommandLineFixture {
 protected:
  int transactions(const std::vector<std::string>& arguments) {
    return run_with("transactions",
                    {{"--records", "300"},
                     {"--clients", "1,3"},
                     {"--seconds", "0.05"},
                     {"--repeat", "1"},
                     {"--directory", directory_}},
                    arguments);
  }
};

// Each run checks that its counters add up.
TEST_CASE_METHOD(TransactionsTest, "TransactionsTest.EveryEngineTakesThem", "[TransactionsTest]") {
  TransactionsOptions options;
  options.records = 10;
  options.seconds = 0.2;
  options.threads = {1, 4};
  options.keys = {*parse_key_choice("uniform"), *parse_key_choice("zipf:0.99")};
  options.stores = small_stores();
  options.directory = directory_;
  options.repeats = 1;
  std::vector<ResultRow> rows;
  REQUIRE_OK(run_transactions(options, Progress(false), &rows));
  CHECK(rows.size() == small_stores().size() * 2 * 2);
  for (const ResultRow& row : rows) {
    CHECK(row.records > 0);
    CHECK(row.number_of("p50_us") <= row.number_of("p99_us"));
    if (row.number_of("threads") == 1) CHECK(row.number_of("conflicts") == 0);
    if (row.engine == "lmdb") CHECK(row.number_of("conflicts") == 0);
  }
}

TEST_CASE_METHOD(TransactionsTest, "TransactionsTest.ShowsRatesAndConflicts",
                 "[TransactionsTest]") {
  REQUIRE_MESSAGE(transactions({}) == 0, error_);
  for (const char* text : {"stride:defaults", "uniform 3", "zipf:0.99 1", "conflicts"})
    CHECK_MESSAGE(out_.find(text) != std::string::npos, out_);
}

TEST_CASE_METHOD(TransactionsTest, "TransactionsTest.RefusesWhatItDoesNotKnow",
                 "[TransactionsTest]") {
  const std::map<std::string, std::vector<std::string>> refused = {
      {"unknown engine 'none'", {"--engines", "none"}},
      {"--clients", {"--clients", "x"}},
      {"--distribution", {"--distribution", "latest"}},
      {"--writes must not be more", {"--writes", "5"}},
      {"--reads must not be more", {"--records", "3"}}};
  for (const auto& [says, arguments] : refused) {
    CHECK(transactions(arguments) != 0);
    CHECK_MESSAGE(error_.find(says) != std::string::npos, error_);
  }
}

}  // namespace
}  // namespace stride::benchmark

// stride-bench commits as a person meets it.
#include <map>

#include "benchmark/workloads/commits/workload.h"
#include "tests/benchmark/harness/command_line_fixture.h"
#include "tests/support/catch.h"

namespace stride::benchmark {
namespace {

class CommitsTest : public CommandLineFixture {
 protected:
  int commits(const std::vector<std::string>& arguments) {
    return run_with("commits",
                    {{"--records", "300"},
                     {"--writers", "1,3"},
                     {"--durability", "none"},
                     {"--repeat", "1"},
                     {"--directory", directory_}},
                    arguments);
  }
};

TEST_CASE_METHOD(CommitsTest, "CommitsTest.EveryEngineTakesThem", "[CommitsTest]") {
  CommitsOptions options;
  options.records = 500;
  options.threads = {1, 4};
  options.durability = Durability::flush;
  options.stores = small_stores();
  options.directory = directory_;
  options.repeats = 1;
  std::vector<ResultRow> rows;
  REQUIRE_OK(run_commits(options, Progress(false), &rows));
  CHECK(rows.size() == small_stores().size() * 2 * 3);
  for (const ResultRow& row : rows) {
    CHECK(row.records == 500);
    CHECK(row.seconds > 0);
    if (row.phase.starts_with("reopen")) continue;
    CHECK(row.number_of("p50_us") > 0);
    CHECK(row.number_of("p50_us") <= row.number_of("p99_us"));
    CHECK(row.number_of("p99_us") <= row.number_of("max_us"));
  }
}

TEST_CASE_METHOD(CommitsTest, "CommitsTest.ShowsRatesAndLatencies", "[CommitsTest]") {
  REQUIRE_MESSAGE(commits({"--plot", directory_ + "/plot.svg"}) == 0, error_);
  for (const char* text : {"stride:defaults", "put 3", "get 1", "p99"})
    CHECK_MESSAGE(out_.find(text) != std::string::npos, out_);
  CHECK(read_text(directory_ + "/plot.svg").find("get 1") != std::string::npos);
  const std::string by_threads = read_text(directory_ + "/plot-threads.svg");
  CHECK(by_threads.find("thousand calls a second") != std::string::npos);
  CHECK(by_threads.find("<polyline") != std::string::npos);
}

TEST_CASE_METHOD(CommitsTest, "CommitsTest.RefusesWhatItDoesNotKnow", "[CommitsTest]") {
  const std::map<std::string, std::vector<std::string>> refused = {
      {"unknown engine 'none'", {"--engines", "none"}},
      {"--writers", {"--writers", "x"}},
      {"--records", {"--records", "-1"}},
      {"--durability", {"--durability", "often"}}};
  for (const auto& [says, arguments] : refused) {
    CHECK(commits(arguments) != 0);
    CHECK_MESSAGE(error_.find(says) != std::string::npos, error_);
  }
}

}  // namespace
}  // namespace stride::benchmark

// stride-bench lookup and stride-bench crossover as a person meets them.
#include "benchmark/workloads/crossover/report.h"
#include "tests/benchmark/harness/command_line_fixture.h"
#include "tests/support/catch.h"

namespace stride::benchmark {
namespace {

class LookupCommandTest : public CommandLineFixture {
 protected:
  // With small defaults.
  int lookup(const std::vector<std::string>& arguments) {
    return run_with("lookup",
                    {{"--n", "2000"},
                     {"--batch", "100,1k"},
                     {"--engines", "stride,hash"},
                     {"--backend", "host"},
                     {"--durability", "none"},
                     {"--repeat", "1"},
                     {"--directory", directory_}},
                    arguments);
  }
  int crossover(const std::vector<std::string>& arguments) {
    return run_with(
        "crossover",
        {{"--n", "2000"}, {"--largest-batch", "8"}, {"--repeat", "1"}, {"--directory", directory_}},
        arguments);
  }
  std::string json_ = directory_ + "/rows.json", plot_ = directory_ + "/plot.svg";
};

TEST_CASE_METHOD(LookupCommandTest, "LookupCommandTest.TableAndFiles", "[LookupCommandTest]") {
  REQUIRE_MESSAGE(
      lookup({"--value-bytes", "20", "--seed", "9", "--json", json_, "--plot", plot_}) == 0,
      error_);
  CHECK(error_ == "");
  CHECK(out_.find("2,000 keys of 8 bytes, values of 20 bytes, seed 9") != std::string::npos);
  for (const char* line : {"\nstride:defaults", "\nhash:plain", "\nlimit:gather", "\nlimit:reads",
                           "\nlimit:memory copy", "\nstride, % of the limit", "\nwhich is"}) {
    CHECK_MESSAGE(out_.find(line) != std::string::npos, line << out_);
  }
  auto rows = read_rows(json_);
  CHECK(
      phases_of(rows, "stride", "defaults") ==
      (std::vector<std::string>{"load", "lookup_100", "find_100", "lookup_1k", "find_1k", "open"}));
  CHECK(rows[0]["raw_bytes"] == 2000 * 28);
  CHECK(rows[0]["limit"] == "memory copy");
  CHECK(rows[1]["limit"] == "gather");
  CHECK(rows[2]["limit"] == "reads");
  CHECK(std::string(rows[2]["backend"]).substr(0, 6) == "host (");
  CHECK(read_text(plot_).find("limit:gather, lookup 1k") != std::string::npos);
}

TEST_CASE_METHOD(LookupCommandTest, "LookupCommandTest.ManyCallers", "[LookupCommandTest]") {
  REQUIRE(lookup({"--n", "5k", "--batch", "1,1k,10k", "--engines", "stride", "--callers", "5",
                  "--json", json_}) == 0);
  CHECK_MESSAGE(out_.find(", 5 callers, median of") != std::string::npos, out_);
  CHECK(phases_of(read_rows(json_), "stride", "defaults") ==
        (std::vector<std::string>{"load", "lookup_1", "find_1", "lookup_1k", "find_1k",
                                  "lookup_10k", "find_10k", "open"}));
}

TEST_CASE_METHOD(LookupCommandTest, "LookupCommandTest.SyncedLoadHasTheDiskAsItsLimit",
                 "[LookupCommandTest]") {
  REQUIRE_MESSAGE(lookup({"--durability", "sync", "--engines", "stride", "--json", json_}) == 0,
                  error_);
  CHECK(read_rows(json_)[0]["limit"] == "disk");
}

TEST_CASE_METHOD(LookupCommandTest, "LookupCommandTest.Cold", "[LookupCommandTest]") {
  REQUIRE_MESSAGE(
      lookup({"--cold", "--memory-limit", "1m", "--value-bytes", "0", "--json", json_}) == 0,
      error_);
  CHECK_MESSAGE(out_.find("cold, memory limit 1,000,000 bytes") != std::string::npos, out_);
  CHECK(phases_of(read_rows(json_), "stride", "defaults") ==
        (std::vector<std::string>{"load", "cold_100", "warm_100", "cold_1k", "warm_1k"}));
}

TEST_CASE_METHOD(LookupCommandTest, "LookupCommandTest.WrongArgumentsAreRefusedWithTheReason",
                 "[LookupCommandTest]") {
  expect_refused(lookup({"--n", "0"}), "--n must be a number from 1 to");
  expect_refused(lookup({"--n", "many"}), "not 'many'");
  expect_refused(lookup({"--n", "5000000000"}), "--n");
  expect_refused(lookup({"--value-bytes", "65536"}),
                 "--value-bytes must be a number from 0 to 65535");
  expect_refused(lookup({"--value-bytes", "-1"}), "--value-bytes");
  expect_refused(lookup({"--batch", "0"}), "a size in --batch must be a number from 1 to");
  expect_refused(lookup({"--batch", "1,17m"}), "--batch");
  expect_refused(lookup({"--batch", ""}), "--batch is empty");
  expect_refused(lookup({"--backend", "fpga"}), "--backend");
  expect_refused(lookup({"--values", "disk"}), "--values");
  expect_refused(lookup({"--engines", "mongodb"}), "unknown engine 'mongodb'");
  expect_refused(lookup({"--memory-limit", "1m"}), "--memory-limit goes with --cold");
  expect_refused(lookup({"--cold", "--memory-limit", "0"}), "--memory-limit must be");
  expect_refused(lookup({"--callers", "0"}), "--callers must be a number from 1 to");
  expect_refused(lookup({"--callers", "2", "--engines", "stride,lmdb"}),
                 "--callers goes with --engines stride");
  expect_refused(lookup({"--callers", "2", "--engines", "stride", "--cold"}), "not with --cold");
  CHECK(lookup({"--n", "4000m", "--value-bytes", "60k"}) == 1);
  CHECK_MESSAGE(error_.find("lower --n or --value-bytes") != std::string::npos, error_);
  if (!Backend::cuda().ok()) {
    CHECK(lookup({"--backend", "cuda"}) == 1);
    CHECK_MESSAGE(error_.find("unavailable") != std::string::npos, error_);
  }
}

TEST_CASE_METHOD(LookupCommandTest, "LookupCommandTest.Help", "[LookupCommandTest]") {
  CHECK(run({"lookup", "--help"}) == 0);
  CHECK(out_.find("dropped from the page cache") != std::string::npos);
  CHECK(run({"crossover", "--help"}) == 0);
  CHECK(out_.find("read-only handles") != std::string::npos);
}

TEST_CASE_METHOD(LookupCommandTest, "LookupCommandTest.CrossoverOfTheHost", "[LookupCommandTest]") {
  REQUIRE_MESSAGE(
      crossover({"--backend", "host", "--value-bytes", "5", "--json", json_, "--plot", plot_}) == 0,
      error_);
  CHECK(error_ == "");
  auto rows = read_rows(json_);
  REQUIRE(rows.size() == 8u);  // 1, 2, 4 and 8 queries, each single and as a batch
  for (const auto& row : rows) CHECK(row["records_per_second"] > 0);
  CHECK(rows[7]["configuration"] == "host");
  CHECK(rows[7]["batch"] == 8);
  CHECK_MESSAGE(out_.find("a batch beats a loop of single gets") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("without a device: it was not asked for") != std::string::npos, out_);
  CHECK(read_text(plot_).find("stride:host, 8 a call") != std::string::npos);
}

TEST_CASE_METHOD(LookupCommandTest, "LookupCommandTest.CrossoverSaysWhyThereIsNoDevice",
                 "[LookupCommandTest]") {
  if (Backend::cuda().ok()) SKIP("there is one");
  for (const char* backend : {"auto", "cuda"}) {
    REQUIRE_MESSAGE(crossover({"--backend", backend}) == 0, error_);
    CHECK_MESSAGE(out_.find("without a device: unavailable") != std::string::npos, out_);
    CHECK_MESSAGE(out_.find("automatic") == std::string::npos, out_);
  }
}

TEST_CASE_METHOD(LookupCommandTest, "LookupCommandTest.CrossoverRefusesWrongArguments",
                 "[LookupCommandTest]") {
  expect_refused(crossover({"--n", "0"}), "--n must be a number from 1 to");
  expect_refused(crossover({"--largest-batch", "0"}), "--largest-batch must be");
  expect_refused(crossover({"--value-bytes", "70k"}), "--value-bytes must be");
}

// Rows of ways whose queries take so many nanoseconds with 1, 2, 4, ... a call.
std::vector<ResultRow> curve(const std::vector<std::pair<std::string, std::vector<double>>>& ways) {
  std::vector<ResultRow> rows;
  for (const auto& [way, times] : ways) {
    uint64_t batch = 1;
    for (double nanoseconds : times) {
      ResultRow row;
      row.engine = "stride";
      row.configuration = way;
      row.records = 1'000'000'000;
      row.seconds = nanoseconds;
      row.numbers["batch"] = static_cast<double>(batch);
      batch *= 2;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

TEST_CASE("CrossoverReportTest.CrossingsAndVerdicts", "[CrossoverReportTest]") {
  auto rows = curve({{"single", {300, 300, 300, 300}},
                     {"host", {300, 200, 100, 90}},
                     {"cuda", {900, 100, 110, 30}},
                     {"automatic", {305, 205, 100, 33}}});
  CHECK(crossing(rows, "host", "single") == 2u);
  CHECK(crossing(rows, "cuda", "host") == 8u);  // not from 2 on, as 4 is slower
  CHECK(crossing(rows, "single", "host") == 0u);
  CHECK(crossing(rows, "host", "absent") == 0u);
  std::string text = crossover_tables(rows);
  CHECK_MESSAGE(text.find("the device beats the host: from 8 queries on") != std::string::npos,
                text);
  CHECK_MESSAGE(text.find("within 10 % of the best at 3 of 4 sizes") != std::string::npos, text);
  CHECK_MESSAGE(text.find("no, 48.8 %") != std::string::npos, text);
  auto never = curve({{"single", {300}}, {"host", {300}}});
  CHECK(crossover_tables(never).find("single gets: never here") != std::string::npos);
}

}  // namespace
}  // namespace stride::benchmark

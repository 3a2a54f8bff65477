// stride-bench lookup and stride-bench crossover as a person meets them.
#include "benchmark/workloads/crossover/report.h"
#include "tests/benchmark/harness/command_line_fixture.h"

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

TEST_F(LookupCommandTest, TableAndFiles) {
  ASSERT_EQ(lookup({"--value-bytes", "20", "--seed", "9", "--json", json_, "--plot", plot_}), 0)
      << error_;
  EXPECT_EQ(error_, "");
  EXPECT_NE(out_.find("2,000 keys of 8 bytes, values of 20 bytes, seed 9"), std::string::npos);
  for (const char* line : {"\nstride:defaults", "\nhash:plain", "\nlimit:gather", "\nlimit:reads",
                           "\nlimit:memory copy", "\nstride, % of the limit", "\nwhich is"}) {
    EXPECT_NE(out_.find(line), std::string::npos) << line << out_;
  }
  auto rows = read_rows(json_);
  EXPECT_EQ(
      phases_of(rows, "stride", "defaults"),
      (std::vector<std::string>{"load", "lookup_100", "find_100", "lookup_1k", "find_1k", "open"}));
  EXPECT_EQ(rows[0]["raw_bytes"], 2000 * 28);
  EXPECT_EQ(rows[0]["limit"], "memory copy");
  EXPECT_EQ(rows[1]["limit"], "gather");
  EXPECT_EQ(rows[2]["limit"], "reads");
  EXPECT_EQ(std::string(rows[2]["backend"]).substr(0, 6), "host (");
  EXPECT_NE(read_text(plot_).find("limit:gather, lookup 1k"), std::string::npos);
}

TEST_F(LookupCommandTest, SyncedLoadHasTheDiskAsItsLimit) {
  ASSERT_EQ(lookup({"--durability", "sync", "--engines", "stride", "--json", json_}), 0) << error_;
  EXPECT_EQ(read_rows(json_)[0]["limit"], "disk");
}

TEST_F(LookupCommandTest, Cold) {
  ASSERT_EQ(lookup({"--cold", "--memory-limit", "1m", "--value-bytes", "0", "--json", json_}), 0)
      << error_;
  EXPECT_NE(out_.find("cold, memory limit 1,000,000 bytes"), std::string::npos) << out_;
  EXPECT_EQ(phases_of(read_rows(json_), "stride", "defaults"),
            (std::vector<std::string>{"load", "cold_100", "warm_100", "cold_1k", "warm_1k"}));
}

TEST_F(LookupCommandTest, WrongArgumentsAreRefusedWithTheReason) {
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
  EXPECT_EQ(lookup({"--n", "4000m", "--value-bytes", "60k"}), 1);
  EXPECT_NE(error_.find("lower --n or --value-bytes"), std::string::npos) << error_;
  if (!Backend::cuda().ok()) {
    EXPECT_EQ(lookup({"--backend", "cuda"}), 1);
    EXPECT_NE(error_.find("unavailable"), std::string::npos) << error_;
  }
}

TEST_F(LookupCommandTest, Help) {
  EXPECT_EQ(run({"lookup", "--help"}), 0);
  EXPECT_NE(out_.find("dropped from the page cache"), std::string::npos);
  EXPECT_EQ(run({"crossover", "--help"}), 0);
  EXPECT_NE(out_.find("read-only handles"), std::string::npos);
}

TEST_F(LookupCommandTest, CrossoverOfTheHost) {
  ASSERT_EQ(
      crossover({"--backend", "host", "--value-bytes", "5", "--json", json_, "--plot", plot_}), 0)
      << error_;
  EXPECT_EQ(error_, "");
  auto rows = read_rows(json_);
  ASSERT_EQ(rows.size(), 8u);  // 1, 2, 4 and 8 queries, each single and as a batch
  for (const auto& row : rows) EXPECT_GT(row["records_per_second"], 0);
  EXPECT_EQ(rows[7]["configuration"], "host");
  EXPECT_EQ(rows[7]["batch"], 8);
  EXPECT_NE(out_.find("a batch beats a loop of single gets"), std::string::npos) << out_;
  EXPECT_NE(out_.find("without a device: it was not asked for"), std::string::npos) << out_;
  EXPECT_NE(read_text(plot_).find("stride:host, 8 a call"), std::string::npos);
}

TEST_F(LookupCommandTest, CrossoverSaysWhyThereIsNoDevice) {
  if (Backend::cuda().ok()) GTEST_SKIP() << "there is one";
  for (const char* backend : {"auto", "cuda"}) {
    ASSERT_EQ(crossover({"--backend", backend}), 0) << error_;
    EXPECT_NE(out_.find("without a device: unavailable"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("automatic"), std::string::npos) << out_;
  }
}

TEST_F(LookupCommandTest, CrossoverRefusesWrongArguments) {
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

TEST(CrossoverReportTest, CrossingsAndVerdicts) {
  auto rows = curve({{"single", {300, 300, 300, 300}},
                     {"host", {300, 200, 100, 90}},
                     {"cuda", {900, 100, 110, 30}},
                     {"automatic", {305, 205, 100, 33}}});
  EXPECT_EQ(crossing(rows, "host", "single"), 2u);
  EXPECT_EQ(crossing(rows, "cuda", "host"), 8u);  // not from 2 on, as 4 is slower
  EXPECT_EQ(crossing(rows, "single", "host"), 0u);
  EXPECT_EQ(crossing(rows, "host", "absent"), 0u);
  std::string text = crossover_tables(rows);
  EXPECT_NE(text.find("the device beats the host: from 8 queries on"), std::string::npos) << text;
  EXPECT_NE(text.find("within 10 % of the best at 3 of 4 sizes"), std::string::npos) << text;
  EXPECT_NE(text.find("no, 48.8 %"), std::string::npos) << text;
  auto never = curve({{"single", {300}}, {"host", {300}}});
  EXPECT_NE(crossover_tables(never).find("single gets: never here"), std::string::npos);
}

}  // namespace
}  // namespace stride::benchmark

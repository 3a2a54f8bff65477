// stride-bench gpus as a person meets it.
#include <fstream>

#include "benchmark/workloads/gpus/report.h"
#include "gpu/backend.h"
#include "tests/benchmark/harness/command_line_fixture.h"
#include "tests/support/catch.h"

namespace stride::benchmark {
namespace {

class GpusCommandTest : public CommandLineFixture {
 protected:
  GpusCommandTest() { std::ofstream(prefixes_) << "10.0.0.0/8\ta\n10.1.0.0/16\tb\n0.0.0.0/1\tc\n"; }

  // With small defaults.
  int gpus(const std::vector<std::string>& arguments) {
    return run_with("gpus",
                    {{"--devices", "1,2"},
                     {"--kind", "one-gpu"},
                     {"--keys", "20k"},
                     {"--queries", "10k"},
                     {"--value-queries", "1k"},
                     {"--scatter-sources", "20k"},
                     {"--scatter-targets", "100"},
                     {"--set-vectors", "10k"},
                     {"--min-share", "100"},
                     {"--min-device-share", "100"},
                     {"--prefixes", prefixes_},
                     {"--rounds", "1"},
                     {"--repeat", "1"}},
                    arguments);
  }

  const std::string prefixes_ = directory_ + "/prefixes.tsv";
  const std::string json_ = directory_ + "/rows.json";
};

TEST_CASE_METHOD(GpusCommandTest, "GpusCommandTest.MeasuresWhereThereIsADevice",
                 "[GpusCommandTest]") {
  CHECK(run({"gpus", "--help"}) == 0);
  const bool is_there = Backend::list_devices().ok();
  CHECK((gpus({"--json", json_}) == 0) == is_there);
  if (!is_there) {
    CHECK_MESSAGE(error_.find("unavailable") != std::string::npos, error_);
    return;
  }
  CHECK_MESSAGE(out_.find("find devices") != std::string::npos, out_);
  CHECK(read_rows(json_).size() > 20u);
  CHECK(gpus({"--placement", "parts", "--zipf", "1.1"}) == 0);
  CHECK_MESSAGE(out_.find("lower bound devices") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("match") == std::string::npos, out_);
}

TEST_CASE_METHOD(GpusCommandTest, "GpusCommandTest.RefusesWrongArguments", "[GpusCommandTest]") {
  expect_refused(gpus({"--keys", "0"}), "--keys must be a number from 1 to");
  expect_refused(gpus({"--devices", "0"}), "--devices must be");
  expect_refused(gpus({"--min-share", "x"}), "--min-share must be");
  expect_refused(gpus({"--kind", "x"}), "--kind");
  expect_refused(gpus({"--placement", "x"}), "--placement");
}

TEST_CASE_METHOD(GpusCommandTest, "GpusCommandTest.ShowsRatiosAndTheModel", "[GpusCommandTest]") {
  std::vector<ResultRow> rows;
  for (uint64_t devices : {1, 2}) {
    ResultRow row;
    row.engine = "stride";
    row.configuration = std::to_string(devices) + " devices";
    row.phase = "find_pinned";
    row.records = 1'000'000 * devices;
    row.seconds = 1;
    row.numbers = {{"devices", static_cast<double>(devices)}, {"limit_per_second", 4e6}};
    rows.push_back(row);
  }
  const std::string text = gpus_tables(rows);
  for (const char* part : {"find pinned", "2 to 1", "2.00x", "25.0", "50.0"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
}

}  // namespace
}  // namespace stride::benchmark

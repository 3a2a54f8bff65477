// stride-bench map as a person meets it.
#include <set>

#include "benchmark/workloads/map/workload.h"
#include "tests/benchmark/harness/command_line_fixture.h"
#include "tests/support/catch.h"

namespace stride::benchmark {
namespace {

class MapTest : public CommandLineFixture {
 protected:
  // With small defaults.
  int map(const std::vector<std::string>& arguments) {
    return run_with("map",
                    {{"--sources", "2000"},
                     {"--targets", "100"},
                     {"--backend", "host"},
                     {"--threads", "2"},
                     {"--repeat", "1"},
                     {"--directory", directory_}},
                    arguments);
  }

  std::string json_ = directory_ + "/rows.json", plot_ = directory_ + "/plot.svg";
};

// A call of the workload, without the time that a measurement takes.
std::vector<ResultRow> run_quickly(MapOptions options, Status* status) {
  options.timing = {.repeats = 1, .min_seconds = 0};
  std::vector<ResultRow> rows;
  *status = run_map(options, Progress(false), &rows);
  return rows;
}

TEST_CASE_METHOD(MapTest, "MapTest.TablesAndFiles", "[MapTest]") {
  REQUIRE_MESSAGE(map({"--mode", "fast", "--threads", "1", "--json", json_, "--plot", plot_}) == 0,
                  error_);
  CHECK(error_ == "");
  CHECK_MESSAGE(out_.find("f32: 2,000 sources (keys u64), 100 targets") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("\nloop:1 thread") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("\nstride:map_weights, 1 thread") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("\nstride:plan, fast, 1 thread") != std::string::npos, out_);
  auto rows = read_rows(json_);
  CHECK(phases_of(rows, "loop", "1 thread") ==
        (std::vector<std::string>{"prepare", "map", "whole"}));
  CHECK(phases_of(rows, "stride", "map_weights, 1 thread") == (std::vector<std::string>{"whole"}));
  CHECK(phases_of(rows, "stride", "plan, fast, 1 thread") ==
        (std::vector<std::string>{"prepare", "map"}));
  CHECK(rows.size() == 6u);
  for (const auto& row : rows) {
    CHECK(row["workload"] == "map");
    CHECK(row["type"] == "f32");
    CHECK(row["keys"] == "u64");
    CHECK(row["records"] == 2000);
    CHECK(row["targets"] == 100);
    CHECK(row["records_per_second"] > 0);
  }
  CHECK(read_text(plot_).find("</svg>") != std::string::npos);
}

// Also on a device, where there is one.
TEST_CASE_METHOD(MapTest, "MapTest.EveryTypeAndMode", "[MapTest]") {
  std::string lines = directory_ + "/lines.txt";
  std::ofstream(lines) << "one\ntwo\nthree\n\ntwo\n";
  for (const char* keys : {"u64", "u32", "fixed:16", lines.c_str()}) {
    MapOptions options;
    options.keys = *parse_key_kind(keys);
    options.sources = options.keys.path.empty() ? 3000 : 0;
    options.targets = 40;
    options.types = {NumberType::f64};
    if (options.keys.width == 8)
      options.types = {NumberType::i32, NumberType::i64, NumberType::f32, NumberType::f64};
    options.threads = 2;
    options.calls = 3;
    options.directory = directory_;
    Status status;
    auto rows = run_quickly(options, &status);
    REQUIRE_OK(status);
    std::set<std::string> types, configurations;
    for (const ResultRow& row : rows) {
      types.insert(row.texts.at("type"));
      configurations.insert(row.engine_name());
      CHECK(row.records % (options.sources ? options.sources : 3) == 0u);
    }
    CHECK(types.size() == options.types.size());
    CHECK(configurations.contains("stride:plan, reproducible, 2 threads"));
    CHECK(configurations.contains("stride:map_weights, 1 thread"));
    CHECK_FALSE(map_tables(rows).empty());
  }
}

TEST_CASE_METHOD(MapTest, "MapTest.RefusesWhatIsWrong", "[MapTest]") {
  expect_refused(map({"--sources", "0"}), "--sources must be");
  expect_refused(map({"--targets", "x"}), "--targets must be");
  expect_refused(map({"--type", "f16"}), "--type: there is no 'f16', but i32, i64, f32, f64");
  expect_refused(map({"--type", ""}), "--type is empty");
  expect_refused(map({"--mode", "slow"}), "there is no 'slow', but fast, reproducible");
  expect_refused(map({"--engines", "rocksdb"}), "there is no 'rocksdb', but stride, loop");
  expect_refused(map({"--calls", "0"}), "--calls must be");
  expect_refused(map({"--keys", "genomes"}), "genomes");
  CHECK(run({"map", "--help"}) == 0);
  for (const char* option : {"--sources", "--targets", "--keys", "--type", "--mode", "--calls",
                             "--backend", "--repeat", "--threads", "--json", "--plot", "--seed"})
    CHECK_MESSAGE(out_.find(option) != std::string::npos, option);
}

}  // namespace
}  // namespace stride::benchmark

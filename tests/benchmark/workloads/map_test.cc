// stride-bench map as a person meets it.
#include <set>

#include "benchmark/workloads/map/workload.h"
#include "tests/benchmark/harness/command_line_fixture.h"

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
  options.timing = {.repeats = 1, .least_seconds = 0};
  std::vector<ResultRow> rows;
  *status = run_map(options, Progress(false), &rows);
  return rows;
}

TEST_F(MapTest, TablesAndFiles) {
  ASSERT_EQ(map({"--mode", "fast", "--threads", "1", "--json", json_, "--plot", plot_}), 0)
      << error_;
  EXPECT_EQ(error_, "");
  EXPECT_NE(out_.find("f32: 2,000 sources (keys u64), 100 targets"), std::string::npos) << out_;
  EXPECT_NE(out_.find("\nloop:1 thread"), std::string::npos) << out_;
  EXPECT_NE(out_.find("\nstride:map_weights, 1 thread"), std::string::npos) << out_;
  EXPECT_NE(out_.find("\nstride:route, fast, 1 thread"), std::string::npos) << out_;
  auto rows = read_rows(json_);
  EXPECT_EQ(phases_of(rows, "loop", "1 thread"),
            (std::vector<std::string>{"prepare", "map", "whole"}));
  EXPECT_EQ(phases_of(rows, "stride", "map_weights, 1 thread"),
            (std::vector<std::string>{"whole"}));
  EXPECT_EQ(phases_of(rows, "stride", "route, fast, 1 thread"),
            (std::vector<std::string>{"prepare", "map"}));
  EXPECT_EQ(rows.size(), 6u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["workload"], "map");
    EXPECT_EQ(row["type"], "f32");
    EXPECT_EQ(row["keys"], "u64");
    EXPECT_EQ(row["records"], 2000);
    EXPECT_EQ(row["targets"], 100);
    EXPECT_GT(row["records_per_second"], 0);
  }
  EXPECT_NE(read_text(plot_).find("</svg>"), std::string::npos);
}

// Also on a device, where there is one.
TEST_F(MapTest, EveryTypeAndMode) {
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
    ASSERT_TRUE(status.ok()) << status.to_string();
    std::set<std::string> types, configurations;
    for (const ResultRow& row : rows) {
      types.insert(row.texts.at("type"));
      configurations.insert(row.engine_name());
      EXPECT_EQ(row.records % (options.sources ? options.sources : 3), 0u);
    }
    EXPECT_EQ(types.size(), options.types.size());
    EXPECT_TRUE(configurations.contains("stride:route, reproducible, 2 threads"));
    EXPECT_TRUE(configurations.contains("stride:map_weights, 1 thread"));
    EXPECT_FALSE(map_tables(rows).empty());
  }
}

TEST_F(MapTest, RefusesWhatIsWrong) {
  expect_refused(map({"--sources", "0"}), "--sources must be");
  expect_refused(map({"--targets", "x"}), "--targets must be");
  expect_refused(map({"--type", "f16"}), "--type: unknown 'f16': there are i32, i64, f32, f64");
  expect_refused(map({"--type", ""}), "--type is empty");
  expect_refused(map({"--mode", "slow"}), "there are fast, reproducible");
  expect_refused(map({"--engines", "rocksdb"}), "there are stride, loop");
  expect_refused(map({"--calls", "0"}), "--calls must be");
  expect_refused(map({"--keys", "genomes"}), "genomes");
  EXPECT_EQ(run({"map", "--help"}), 0);
  for (const char* option : {"--sources", "--targets", "--keys", "--type", "--mode", "--calls",
                             "--backend", "--repeat", "--threads", "--json", "--plot", "--seed"})
    EXPECT_NE(out_.find(option), std::string::npos) << option;
}

}  // namespace
}  // namespace stride::benchmark

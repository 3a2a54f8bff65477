// stride-bench scatter and accumulate as a person meets them, and what they are made of.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "benchmark/datasets/scatter_data.h"
#include "benchmark/peers/scatter_loop.h"
#include "benchmark/workloads/accumulate/workload.h"
#include "benchmark/workloads/scatter/report.h"
#include "benchmark/workloads/scatter/workload.h"
#include "tests/benchmark/harness/command_line_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"

namespace stride::benchmark {
namespace {

class ScatterTest : public CommandLineFixture {
 protected:
  // With small defaults.
  int scatter(const std::vector<std::string>& arguments) {
    return run_with("scatter",
                    {{"--sources", "3000"},
                     {"--targets", "100"},
                     {"--distribution", "uniform"},
                     {"--backend", "host"},
                     {"--threads", "2"},
                     {"--repeat", "1"}},
                    arguments);
  }
  int accumulate(const std::vector<std::string>& arguments) {
    return run_with("accumulate",
                    {{"--deltas", "5000"},
                     {"--keys", "700"},
                     {"--threads", "2"},
                     {"--repeat", "1"},
                     {"--durability", "none"},
                     {"--directory", directory_}},
                    arguments);
  }
  TargetDistribution distribution(const std::string& text) { return *parse_distribution(text); }
  OwnedIndexes targets(uint64_t n, uint64_t count, const std::string& text, uint32_t width = 4,
                       uint64_t seed = 1) {
    return make_targets({n, count, distribution(text), seed}, width, &parallel_);
  }
  static std::vector<uint64_t> counts(const OwnedIndexes& targets, uint64_t count) {
    std::vector<uint64_t> found(count);
    for (uint64_t i = 0; i < targets.size; ++i) ++found.at(targets[i]);
    return found;
  }
  // Everything combined, without waiting for steady times.
  ScatterWorkloadOptions quick() {
    ScatterWorkloadOptions options;
    options.sources = {2000};
    options.targets = {1, 300};
    options.distributions = {distribution("uniform"), distribution("zipf:1.2")};
    options.types = {NumberType::f32};
    options.threads = 2;
    options.timing = {.repeats = 1, .min_seconds = 0};
    options.stream_seconds = 0;
    return options;
  }

  std::string json_ = directory_ + "/rows.json", plot_ = directory_ + "/plot.svg";
  Parallel parallel_{2};
};

TEST_CASE_METHOD(ScatterTest, "ScatterTest.TargetsAreTheSameForAllThreadsAndWidths",
                 "[ScatterTest]") {
  Parallel one(1);
  for (const char* text : {"uniform", "sorted", "zipf:0", "zipf:1", "zipf:1.5"}) {
    TargetOptions options{200'000, 12'345, distribution(text), 7};
    OwnedIndexes narrow = make_targets(options, 4, &parallel_);
    OwnedIndexes wide = make_targets(options, 8, &one);
    REQUIRE(narrow.size == options.sources);
    for (uint64_t i = 0; i < narrow.size; ++i) {
      REQUIRE_MESSAGE(narrow[i] == wide[i], text);
      REQUIRE_MESSAGE(narrow[i] < options.targets, text);
    }
    options.seed = 8;
    CHECK_MESSAGE(make_targets(options, 4, &one).words != narrow.words, text);
  }
  CHECK(targets(100, 1, "zipf:1.1")[99] == 0u);
  CHECK(targets(100, 1, "sorted")[99] == 0u);
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.TargetsAreDistributedAsTheirNameSays", "[ScatterTest]") {
  constexpr uint64_t n = 1'000'000, count = 1000;
  for (const char* text : {"uniform", "sorted", "zipf:0"}) {
    OwnedIndexes made = targets(n, count, text);
    // 1000 of each, give or take a standard deviation of 32: 6 of them are hardly ever seen.
    double squares = 0;
    for (uint64_t found : counts(made, count)) {
      CHECK_MESSAGE(std::abs(static_cast<double>(found) - 1000) <= 200, text);
      squares += std::pow(static_cast<double>(found) - 1000, 2);
    }
    CHECK_MESSAGE(std::abs(squares / count - 1000) <= 200, text);
    bool ascending = true;
    for (uint64_t i = 1; i < n; ++i) ascending &= made[i - 1] <= made[i];
    CHECK_MESSAGE(ascending == (std::string(text) == "sorted"), text);
  }
  for (double exponent : {0.5, 1.0, 1.1, 2.0}) {
    std::vector<uint64_t> found =
        counts(targets(n, count, "zipf:" + std::to_string(exponent)), count);
    uint64_t most_frequent =
        static_cast<uint64_t>(std::max_element(found.begin(), found.end()) - found.begin());
    CHECK_MESSAGE(most_frequent != 0u, "frequent targets lie anywhere");
    std::sort(found.rbegin(), found.rend());
    double all = 0;
    for (uint64_t k = 1; k <= count; ++k) all += std::pow(k, -exponent);
    for (uint64_t k : {1u, 2u, 3u}) {
      double expected = n * std::pow(k, -exponent) / all;
      CHECK_MESSAGE(std::abs(static_cast<double>(found[k - 1]) - expected) <= 0.05 * expected + 50,
                    exponent);
    }
  }
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.SourcesAreNumbersOfTheirType", "[ScatterTest]") {
  constexpr uint64_t n = 10'000;
  for (NumberType type : {NumberType::f32, NumberType::f64, NumberType::f16, NumberType::bf16}) {
    OwnedNumbers made = make_sources(type, n, 1, &parallel_);
    std::vector<double> sums(1);
    std::vector<float> narrow(1);
    OwnedIndexes first = targets(n, 1, "uniform");
    double least = 2, most = -2;
    for (uint64_t i = 0; i < n; ++i) {
      Numbers one = made.view();
      one.data = static_cast<const std::byte*>(one.data) + i * width_of(type);
      one.size = 1;
      Indexes to{first.words.data(), 1, 4};
      sums[0] = narrow[0] = 0;
      double x;
      if (type == NumberType::f64) {
        scatter_loop(one, to, MutableNumbers::of(std::span<double>(sums)), ScatterOperation::add);
        x = sums[0];
      } else {
        scatter_loop(one, to, MutableNumbers::of(std::span<float>(narrow)), ScatterOperation::add);
        x = narrow[0];
      }
      least = std::min(least, x);
      most = std::max(most, x);
    }
    CHECK_MESSAGE(least >= -1.0, to_string(type));
    CHECK_MESSAGE(least <= -0.99, to_string(type));
    CHECK_MESSAGE(most <= 1.0, to_string(type));
    CHECK_MESSAGE(most >= 0.99, to_string(type));
  }
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.WrongSumsAreFound", "[ScatterTest]") {
  constexpr uint64_t n = 5000, count = 40;
  OwnedIndexes r = targets(n, count, "uniform");
  for (NumberType type : {NumberType::i32, NumberType::i64, NumberType::f32, NumberType::f64,
                          NumberType::f16, NumberType::bf16}) {
    OwnedNumbers s = make_sources(type, n, 3, &parallel_);
    for (ScatterOperation operation :
         {ScatterOperation::add, ScatterOperation::min, ScatterOperation::max}) {
      ScatterReference reference(s.view(), r.view(), count, operation, &parallel_);
      std::vector<uint64_t> memory(count);
      MutableNumbers t{sum_type_of(type), memory.data(), count};
      scatter_loop(s.view(), r.view(), t, operation);
      CHECK_MESSAGE(reference.check(t.data, ScatterMode::fast, &parallel_).ok(), to_string(type));
      uint64_t hash = hash_numbers(t.type, t.data, count, &parallel_);
      // One source more.
      OwnedNumbers more = make_sources(type, 3, 3, &parallel_);
      Indexes to{r.words.data(), 1, 4};
      Numbers one = more.view();
      one.size = 1;
      if (operation == ScatterOperation::add) {
        scatter_loop(one, to, t, operation);
      } else {
        reinterpret_cast<uint8_t*>(memory.data())[5 * width_of(t.type)] ^= 1;
      }
      CHECK(hash_numbers(t.type, t.data, count, &parallel_) != hash);
      for (ScatterMode mode : {ScatterMode::fast, ScatterMode::reproducible}) {
        Status status = reference.check(t.data, mode, &parallel_);
        CHECK_MESSAGE(status.code() == StatusCode::corruption, to_string(type));
        CHECK_MESSAGE(status.message().find("wrong answer: T[") != std::string::npos,
                      status.message());
      }
    }
  }
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.TablesAndFiles", "[ScatterTest]") {
  REQUIRE_MESSAGE(scatter({"--distribution", "sorted", "--mode", "both", "--prepared", "--json",
                           json_, "--plot", plot_}) == 0,
                  error_);
  CHECK(error_ == "");
  CHECK_MESSAGE(out_.find("f32 add, u32 targets") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("\n3k to 100, sorted\n  loop:1 thread") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("\n  stride:2 threads, reproducible, prepared") != std::string::npos,
                out_);
  auto rows = read_rows(json_);
  using Phases = std::vector<std::string>;
  CHECK(phases_of(rows, "loop", "1 thread") == Phases{"scatter"});
  CHECK(phases_of(rows, "stride", "2 threads, fast") == Phases{"scatter"});
  CHECK(phases_of(rows, "stride", "2 threads, reproducible") == Phases{"scatter"});
  CHECK(phases_of(rows, "stride", "2 threads, fast, prepared") == (Phases{"prepare", "apply"}));
  std::set<std::string> hashes;
  for (const auto& row : rows) {
    CHECK(row["workload"] == "scatter");
    CHECK(row["distribution"] == "sorted");
    CHECK(row["records"] == 3000);
    CHECK(row["targets"] == 100);
    CHECK(row["raw_bytes"] == 3000 * 8);
    CHECK(row["records_per_second"] > 0);
    if (row["phase"] == "prepare") continue;
    CHECK(row["to_loop"] > 0);
    CHECK(row["bytes_per_second"] > 0);
    CHECK(row["bound_percent"] > 0);
    bool reproducible = row.contains("mode") && row["mode"] == "reproducible";
    CHECK(row.contains("hash") == reproducible);
    if (reproducible) hashes.insert(row["hash"]);
  }
  CHECK(hashes.size() == 1u);
  CHECK(read_text(plot_).find("M sources a second") != std::string::npos);
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.AMethodThatABackendDoesNotHaveHasNoTimes",
                 "[ScatterTest]") {
  REQUIRE_MESSAGE(scatter({"--method", "automatic,direct,privatized,heavy_hitters,partition",
                           "--json", json_}) == 0,
                  error_);
  CHECK_MESSAGE(out_.find("heavy_hitters: invalid_argument: ScatterMethod::heavy_hitters, which "
                          "the host does not know") != std::string::npos,
                out_);
  std::map<std::string, double> rates;
  for (const auto& row : read_rows(json_)) {
    if (row["engine"] != "stride") continue;
    rates[row["method"]] = row["records_per_second"];
    CHECK(row.contains("refused") == (row["method"] == "heavy_hitters"));
  }
  CHECK(rates.size() == 5u);
  for (const auto& [method, rate] : rates)
    CHECK_MESSAGE((rate > 0) == (method != "heavy_hitters"), method);
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.EveryTypeAndOperation", "[ScatterTest]") {
  ScatterWorkloadOptions options = quick();
  options.types = {NumberType::i32, NumberType::i64, NumberType::f32,
                   NumberType::f64, NumberType::f16, NumberType::bf16};
  options.index_widths = {4, 8};
  options.operations = {ScatterOperation::add, ScatterOperation::min, ScatterOperation::max};
  options.modes = {ScatterMode::fast, ScatterMode::reproducible};
  auto host = Backend::host(2);
  std::vector<ResultRow> rows;
  Status status = run_scatter(options, {.host = host.get()}, Progress(false), &rows);
  REQUIRE_OK(status);
  // The loop and, of sums of floats, both modes; of the others one.
  CHECK(rows.size() == 2u * 2 * 2 * (6 * 3 * 2 + 4));
  // Exact results of all engines have one hash.
  std::map<std::string, std::set<std::string>> hashes;
  for (const ResultRow& row : rows) {
    bool sum_of_floats = row.texts.at("operation") == "add" && row.texts.at("type")[0] != 'i';
    if (sum_of_floats) continue;
    hashes[row.texts.at("type") + row.texts.at("operation") + row.texts.at("distribution") +
           std::to_string(row.numbers.at("targets"))]
        .insert(row.texts.at("hash"));
  }
  CHECK(hashes.size() == (2u + 6 * 2) * 2 * 2);
  for (const auto& [name, same] : hashes) CHECK_MESSAGE(same.size() == 1u, name);
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.OnADeviceBesideDirect", "[ScatterTest]") {
  ScatterWorkloadOptions options = quick();
  options.distributions.pop_back();
  options.targets = {300};
  options.modes = {ScatterMode::fast, ScatterMode::reproducible};
  options.memories = {ScatterMemory::device, ScatterMemory::pinned, ScatterMemory::host};
  options.with_prepared = true;
  auto host = Backend::host(2);
  test::FakeDevice device(1 << 20);
  std::vector<ResultRow> rows;
  Status status = run_scatter(options, {host.get(), &device}, Progress(false), &rows);
  REQUIRE_OK(status);
  std::map<std::string, std::vector<std::string>> phases;
  std::set<std::string> hashes;
  for (const ResultRow& row : rows) {
    phases[row.engine_name()].push_back(row.phase);
    if (row.texts.contains("hash")) hashes.insert(row.texts.at("hash"));
    bool on_device = row.backend == "fake device" && row.phase != "prepare";
    CHECK_MESSAGE(row.numbers.contains("to_direct") == on_device, row.engine_name());
  }
  using Phases = std::vector<std::string>;
  CHECK(phases["loop:1 thread"] == Phases{"scatter"});
  CHECK(phases["stride:device memory, fast, direct"] == (Phases{"scatter", "scatter_stream"}));
  CHECK(phases["stride:device memory, fast"] == (Phases{"scatter", "scatter_stream"}));
  CHECK(phases["stride:device memory, reproducible, prepared"] ==
        (Phases{"prepare", "apply", "apply_stream"}));
  CHECK(phases["stride:pinned memory, fast"] == Phases{"scatter"});
  CHECK(phases["stride:host memory, reproducible"] == Phases{"scatter"});
  CHECK_MESSAGE(hashes.size() == 1u, "the host and the device have the same bits");
  std::string text = scatter_tables(rows);
  CHECK_MESSAGE(text.find("stream G/s") != std::string::npos, text);
  CHECK_MESSAGE(text.find("prepare ms") != std::string::npos, text);
  std::vector<ResultRow> plot = scatter_plot(rows);
  CHECK(std::any_of(plot.begin(), plot.end(), [](const ResultRow& row) {
    return row.engine_name() == "stride:device memory, fast, stream" && row.phase == "uniform";
  }));
  // A failure ends it.
  device.fail_call(20, StatusCode::io_error);
  CHECK_FALSE(run_scatter(options, {nullptr, &device}, Progress(false), &rows).ok());
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.RefusesWhatIsWrong", "[ScatterTest]") {
  expect_refused(scatter({"--sources", "0"}), "--sources must be a number from 1");
  expect_refused(scatter({"--sources", ""}), "--sources is empty");
  expect_refused(scatter({"--targets", "many"}), "--targets must be a number from 1");
  expect_refused(scatter({"--distribution", "normal"}), "there are uniform, sorted and zipf:S");
  expect_refused(scatter({"--distribution", "zipf:-1"}),
                 "the exponent of zipf must be from 0 to 10");
  expect_refused(scatter({"--distribution", "zipf:"}), "the exponent of zipf must be from 0 to 10");
  expect_refused(scatter({"--distribution", ""}), "--distribution is empty");
  expect_refused(scatter({"--type", "u8"}), "--type: there is no 'u8', but i32, i64");
  expect_refused(scatter({"--index", "u16"}), "--index: there is no 'u16'");
  expect_refused(scatter({"--operation", "mul"}), "--operation: there is no 'mul'");
  expect_refused(scatter({"--mode", "slow"}), "--mode: there is no 'slow'");
  expect_refused(scatter({"--method", "best"}), "--method: there is no 'best'");
  expect_refused(scatter({"--memory", "disk"}), "--memory: there is no 'disk'");
  expect_refused(scatter({"--targets", "5000m"}), "use --index u64");
  CHECK(scatter({"--sources", "99999m", "--index", "u64"}) == 1);
  CHECK_MESSAGE(error_.find("lower --sources or --targets") != std::string::npos, error_);
  expect_refused(accumulate({"--deltas", "0"}), "--deltas must be");
  expect_refused(accumulate({"--keys", "x"}), "--keys must be");
  expect_refused(accumulate({"--batch", "0"}), "--batch must be");
  expect_refused(accumulate({"--engines", "sqlite"}), "known are stride:defaults");
  expect_refused(accumulate({"--engines", ""}), "--engines is empty");
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.Accumulate", "[ScatterTest]") {
  for (const char* batch : {"", "999"}) {
    std::vector<std::string> arguments = {"--distribution", "zipf:1", "--json", json_};
    if (*batch) arguments.insert(arguments.end(), {"--batch", batch});
    REQUIRE_MESSAGE(accumulate(arguments) == 0, error_);
    CHECK_MESSAGE(
        out_.find("Accumulate: 5,000 deltas on 700 keys, zipf:1, seed 1") != std::string::npos,
        out_);
    auto rows = read_rows(json_);
    std::vector<std::string> phases{"load", "accumulate", "read"};
    for (const AccumulateConfiguration& engine : accumulate_engines())
      CHECK_MESSAGE(phases_of(rows, engine.engine, engine.configuration) == phases, engine.name());
    for (const auto& row : rows)
      CHECK(row["records"] == (row["phase"] == "accumulate" ? 5000 : 700));
  }
  REQUIRE_MESSAGE(accumulate({"--engines", "loop,stride:defaults", "--json", json_}) == 0, error_);
  CHECK(read_rows(json_).size() == 6u);
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.Help", "[ScatterTest]") {
  CHECK(run({"scatter", "--help"}) == 0);
  for (const char* option : {"--sources", "--targets", "--distribution", "--type", "--index",
                             "--operation", "--mode", "--method", "--memory", "--prepared",
                             "--backend", "--threads", "--repeat", "--seed", "--json", "--plot"})
    CHECK_MESSAGE(out_.find(option) != std::string::npos, option);
  CHECK(run({"accumulate", "--help"}) == 0);
  for (const char* option : {"--deltas", "--keys", "--distribution", "--batch", "--engines",
                             "--durability", "--directory", "stride:defaults"})
    CHECK_MESSAGE(out_.find(option) != std::string::npos, option);
}

}  // namespace
}  // namespace stride::benchmark

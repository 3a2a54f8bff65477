#include "benchmark/harness/report.h"

#include <nlohmann/json.hpp>
#include <regex>

#include "benchmark/harness/plot.h"
#include "benchmark/harness/text_table.h"
#include "tests/support/catch.h"

namespace stride::benchmark {
namespace {

ResultRow row(const std::string& engine, const std::string& configuration, const std::string& phase,
              double seconds) {
  ResultRow r;
  r.workload = "sts";
  r.engine = engine;
  r.configuration = configuration;
  r.backend = "host";
  r.phase = phase;
  r.records = 1'000'000;
  r.seconds = seconds;
  r.bytes_on_disk = 60'000'000;
  r.peak_rss_bytes = 104'000'000;
  r.is_database = engine != "hash";
  r.raw_bytes = 52'000'000;
  r.machine = "a <fast> machine & \"more\"";
  r.numbers = {{"flows", 4}, {"randomness", 0.5}};
  r.texts = {{"durability", "sync"}};
  return r;
}

std::vector<ResultRow> sample() {
  return {row("stride", "defaults", "write", 0.1),  row("stride", "defaults", "read", 0.01),
          row("stride", "defaults", "open", 0.002), row("rocksdb", "defaults", "write", 1),
          row("rocksdb", "defaults", "read", 0.25), row("rocksdb", "ingest", "write", 0.2),
          row("rocksdb", "ingest", "read", 0.1),    row("hash", "plain", "read", 0.005)};
}

TEST_CASE("ReportTest.JsonRowsHaveEveryField", "[ReportTest]") {
  auto json = nlohmann::json::parse(to_json(sample()));
  REQUIRE(json.is_array());
  REQUIRE(json.size() == sample().size());
  CHECK(json[0]["workload"] == "sts");
  CHECK(json[0]["engine"] == "stride");
  CHECK(json[0]["configuration"] == "defaults");
  CHECK(json[0]["backend"] == "host");
  CHECK(json[0]["phase"] == "write");
  CHECK(json[0]["records"] == 1'000'000);
  CHECK_THAT(json[0]["seconds"], Catch::Matchers::WithinULP(0.1, 4));
  CHECK_THAT(json[0]["records_per_second"], Catch::Matchers::WithinULP(1e7, 4));
  CHECK(json[0]["bytes_on_disk"] == 60'000'000);
  CHECK(json[0]["peak_rss_bytes"] == 104'000'000);
  CHECK(json[0]["machine"] == "a <fast> machine & \"more\"");
  CHECK(json[0]["flows"] == 4);
  CHECK(json[0]["durability"] == "sync");
  CHECK(nlohmann::json::parse(to_json({})).empty());
}

TEST_CASE("ReportTest.PercentagesOfTheLimits", "[ReportTest]") {
  std::vector<ResultRow> rows = sample();
  CHECK(comparison(rows).find("of the limit") == std::string::npos);
  rows[1].numbers["limit_percent"] = 41.5;
  rows[1].texts["limit"] = "gather";
  ResultRow limit = row("limit", "gather", "load", 0.004);
  limit.is_database = false;
  limit.bytes_on_disk = limit.peak_rss_bytes = 0;
  rows.push_back(limit);
  std::string text = comparison(rows);
  CHECK_MESSAGE(std::regex_search(text, std::regex("\nstride, % of the limit +- +41\\.5")), text);
  CHECK_MESSAGE(std::regex_search(text, std::regex("\nwhich is +- +gather")), text);
  CHECK_MESSAGE(std::regex_search(text, std::regex("\nlimit:gather +- +- +250 +- +- +-\n")), text);
}

TEST_CASE("ReportTest.MediansByRate", "[ReportTest]") {
  std::vector<ResultRow> rows;
  for (double seconds : {3.0, 1.0, 2.0}) {
    rows.push_back(row("stride", "defaults", "write", seconds));
    rows.push_back(row("stride", "defaults", "read", seconds / 10));
  }
  std::vector<ResultRow> middle = medians(rows);
  REQUIRE(middle.size() == 2u);
  CHECK(middle[0].seconds == 2.0);
  CHECK(middle[0].numbers.at("repeats") == 3);
  CHECK(middle[1].phase == "read");
  CHECK(middle[1].seconds == 0.2);
}

TEST_CASE("ReportTest.ComparisonShowsRatiosToTheBestPeerAndToDefaults", "[ReportTest]") {
  std::string text = comparison(sample());
  auto line = [&](const std::string& start) {
    size_t at = text.find("\n" + start);
    CHECK_MESSAGE(at != std::string::npos, start << " in\n" << text);
    return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  };
  CHECK(line("stride to the best peer").find("2.00x") != std::string::npos);  // write: ingest
  CHECK(line("stride to the best peer").find("10.0x") != std::string::npos);  // read, not hash
  CHECK(line("stride to rocksdb:defaults").find("25.0x") != std::string::npos);
  CHECK(line("rocksdb:ingest").find("5.00*") != std::string::npos);
  CHECK(line("stride:defaults").find("2.00  ") != std::string::npos);  // ms to open
  CHECK(comparison({row("stride", "defaults", "read", 1)}).find("stride to") == std::string::npos);
}

TEST_CASE("ReportTest.UnwritableFile", "[ReportTest]") {
  Status status = write_json("/nonexistent/directory/file.json", sample());
  CHECK_FALSE(status.ok());
  CHECK(status.file() == "/nonexistent/directory/file.json");
}

TEST_CASE("TextTableTest.ThreeDigits", "[TextTableTest]") {
  CHECK(three_digits(0) == "0");
  CHECK(three_digits(0.01234) == "0.0123");
  CHECK(three_digits(4.5678) == "4.57");
  CHECK(three_digits(45.678) == "45.7");
  CHECK(three_digits(4567.8) == "4568");
  CHECK(three_digits(9.9999) == "10.0");
  CHECK(three_digits(9.99) == "9.99");
}

// Every element is closed in the right order, and no text has a bare < or &.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  size_t at = 0;
  while ((at = xml.find('<', at)) != std::string::npos) {
    size_t end = xml.find('>', at);
    REQUIRE(end != std::string::npos);
    std::string tag = xml.substr(at + 1, end - at - 1);
    at = end;
    REQUIRE_MESSAGE(tag.find('<') == std::string::npos, tag);
    if (tag[0] == '?' || tag.back() == '/') continue;
    std::string name = tag.substr(tag[0] == '/', tag.find(' '));
    if (tag[0] != '/') {
      open.push_back(name);
    } else {
      REQUIRE_FALSE(open.empty());
      REQUIRE(open.back() == name);
      open.pop_back();
    }
  }
  CHECK(open.empty());
  for (at = xml.find('&'); at != std::string::npos; at = xml.find('&', at + 1)) {
    REQUIRE(xml.find(';', at) < at + 7);
  }
}

TEST_CASE("PlotTest.IsWellFormedAndHasABarForEachRate", "[PlotTest]") {
  std::string svg = plot_svg("1 < 2 & \"so on\"", sample());
  expect_well_formed(svg);
  CHECK(svg.starts_with("<?xml"));
  CHECK(svg.find("stride:defaults, write: 10.0 M/s") != std::string::npos);
  CHECK(svg.find("rocksdb:ingest, read: 10.0 M/s") != std::string::npos);
  CHECK(svg.find("a &lt;fast&gt; machine &amp;") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
}

TEST_CASE("PlotTest.NothingToShow", "[PlotTest]") {
  expect_well_formed(plot_svg("nothing", {}));
  ResultRow zero = row("stride", "defaults", "read", 0);
  expect_well_formed(plot_svg("zero", {zero}));
}

}  // namespace
}  // namespace stride::benchmark

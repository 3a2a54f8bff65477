// The text for Prometheus, read line by line as its format is told of.
#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

struct Samples {
  std::map<std::string, std::string> types;  // by family
  std::map<std::string, double> values;      // by name and unescaped labels: name{label=value}
};

std::string unescape(const std::string& value) {
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '\\') {
      text += value[i];
      continue;
    }
    REQUIRE(++i < value.size());
    REQUIRE((value[i] == '\\' || value[i] == '"' || value[i] == 'n'));
    text += value[i] == 'n' ? '\n' : value[i];
  }
  return text;
}

// The family that a sample belongs to.
std::string family_of(const std::string& name, const std::map<std::string, std::string>& types) {
  for (const std::string suffix : {"_sum", "_count"}) {
    if (!name.ends_with(suffix)) continue;
    const std::string family = name.substr(0, name.size() - suffix.size());
    auto found = types.find(family);
    if (found != types.end() && found->second == "summary") return family;
  }
  return name;
}

Samples parse(const std::string& text) {
  static const std::regex help(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ([^\\]+))");
  static const std::regex type(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|summary))");
  static const std::regex sample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"\})? (\S+))re");
  Samples samples;
  std::string family;
  REQUIRE(text.ends_with("\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      family = match[1];
      REQUIRE(family.starts_with("stride_"));
      REQUIRE_FALSE(samples.types.contains(family));
    } else if (std::regex_match(line, match, type)) {
      REQUIRE(match[1] == family);
      REQUIRE(samples.types.emplace(family, match[2]).second);
      REQUIRE((match[2] == "counter") == family.ends_with("_total"));
    } else {
      REQUIRE(std::regex_match(line, match, sample));
      REQUIRE(family_of(match[1], samples.types) == family);
      std::string name = match[1];
      if (match[2].matched) name += "{" + match[3].str() + "=" + unescape(match[4]) + "}";
      const std::string number = match[5];
      char* end = nullptr;
      const double value = std::strtod(number.c_str(), &end);
      REQUIRE(*end == '\0');
      REQUIRE(samples.values.emplace(name, value).second);
    }
  }
  return samples;
}

TEST_CASE("PrometheusTextTest.EveryLineCanBeRead", "[PrometheusTextTest]") {
  MemoryFileSystem files;
  auto db = Database::open("/db", {.backend = BackendKind::host, .file_system = &files});
  REQUIRE_OK(db);
  const std::string odd = "a \"b\" \\ c\nd {e=\"f\"} \xC3\xA4";
  auto table = (*db)->create_table(odd);
  REQUIRE_OK(table);
  REQUIRE_OK((*db)->create_table("bytes \xFF"));
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.put(*table, "key", "value"));
  REQUIRE_OK(t.commit());
  REQUIRE_OK((*db)->snapshot().get(*table, "key"));
  REQUIRE_OK((*db)->snapshot().get(*table, "none"));
  const Metrics metrics = (*db)->metrics();
  const Samples all = parse(prometheus_text(metrics));
  auto value = [&](const std::string& name) {
    auto found = all.values.find(name);
    REQUIRE_MESSAGE(found != all.values.end(), name);
    return found->second;
  };
  CHECK(value("stride_gets_total") == 2);
  CHECK(value("stride_get_found_total") == 1);
  CHECK(value("stride_get_bytes_total") == 5);
  CHECK(value("stride_commits_total{size=small}") == 1);
  CHECK(value("stride_commits_total{size=large}") == 0);
  CHECK(value("stride_commit_seconds_count") == 1);
  CHECK(value("stride_commit_seconds{quantile=0.99}") ==
        Approx(metrics.operations.commit_latency.p99_s));
  CHECK(value("stride_commit_seconds_sum") == Approx(metrics.operations.commit_latency.sum_s));
  CHECK(value("stride_log_bytes_total") == static_cast<double>(metrics.work.log_bytes));
  CHECK(value("stride_size_bytes") == static_cast<double>(metrics.state.size_bytes));
  CHECK(value("stride_write_amplification") == Approx(metrics.state.write_amplification));
  CHECK(value("stride_table_rows{table=" + odd + "}") == 1);
  CHECK(value("stride_table_rows{table=bytes \\xff}") == 0);
  CHECK(all.types.at("stride_get_seconds") == "summary");
  CHECK(all.types.at("stride_size_bytes") == "gauge");
}

TEST_CASE("PrometheusTextTest.TheStateAloneHasNoCounters", "[PrometheusTextTest]") {
  const Samples state = parse(prometheus_text(Metrics(), MetricsPart::state));
  CHECK(state.values.contains("stride_size_bytes"));
  for (const auto& [family, type] : state.types) CHECK_MESSAGE(type == "gauge", family);
}

TEST_CASE("PrometheusTextTest.LargeAndSmallNumbersKeepTheirDigits", "[PrometheusTextTest]") {
  Metrics metrics;
  metrics.operations.get_bytes = UINT64_MAX;
  metrics.operations.get_latency = {3, 1e-9, 2e-9, 3e-9, 1.5, 68.7, 68.7};
  const std::string text = prometheus_text(metrics);
  CHECK(text.find("stride_get_bytes_total 18446744073709551615\n") != std::string::npos);
  const Samples samples = parse(text);
  CHECK(samples.values.at("stride_get_seconds{quantile=0.5}") == Approx(2e-9));
  CHECK(samples.values.at("stride_get_seconds_sum") == Approx(1e-9));
  CHECK(samples.values.at("stride_get_seconds{quantile=1}") == Approx(68.7));
  CHECK(std::isnan(samples.values.at("stride_commit_seconds{quantile=0.5}")));
}

}  // namespace
}  // namespace stride::test

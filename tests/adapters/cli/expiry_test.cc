// Tables whose rows end, at the command line.
#include <string>
#include <vector>

#include "adapters/cli/text/number_text.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

using CliExpiryTest = CliFixture;

const std::vector<std::string> with_ends = {"--header", "--schema", "name string, until timestamp?",
                                            "--expires", "until"};
const char* const sessions =
    "id,name,until\n"
    "a,ended,2001-01-01T00:00:00Z\n"
    "b,stays,\n"
    "c,later,2999-01-01T00:00:00Z\n";

TEST_CASE_METHOD(CliExpiryTest, "CliExpiryTest.RowsThatHaveEndedAreNotFound", "[CliExpiryTest]") {
  REQUIRE_MESSAGE(load(file("s.csv", sessions), with_ends) == 0, error_);
  CHECK(scan({"--columns", "name"}) == "b\tstays\nc\tlater\n");
  CHECK(run({"get", database_, "t", "a"}) == 0);
  CHECK(out_.empty());
  CHECK(run({"count", database_, "t"}) == 0);
  CHECK(out_ == "2\n");
  CHECK(run({"tables", database_}) == 0);
  CHECK(out_.find("\texpires=until\n") != std::string::npos);
  CHECK(run({"tables", database_, "--json"}) == 0);
  CHECK(out_.find("\"expires\":\"until\"") != std::string::npos);
  REQUIRE_MESSAGE(run({"compact", database_}) == 0, error_);
  CHECK(run({"stats", database_}) == 0);
  CHECK(out_.find("t.rows\t2\n") != std::string::npos);
  CHECK(run({"verify", database_}) == 0);
}

TEST_CASE_METHOD(CliExpiryTest, "CliExpiryTest.RowsWithoutATimeGetTheTimeToLive",
                 "[CliExpiryTest]") {
  std::vector<std::string> options = with_ends;
  options.insert(options.end(), {"--ttl", "24h"});
  REQUIRE_MESSAGE(load(file("s.csv", sessions), options) == 0, error_);
  CHECK(run({"tables", database_}) == 0);
  CHECK(out_.find("\texpires=until,ttl=1d\n") != std::string::npos);
  CHECK(run({"get", database_, "t", "b", "--columns", "until"}) == 0);
  CHECK(out_.size() > std::string("b\t2026-01-01").size());
  // Later loads and puts know it, and options that differ are refused.
  REQUIRE_MESSAGE(load(file("more.csv", "id,name,until\nd,x,\n"), {"--header"}) == 0, error_);
  CHECK(run({"get", database_, "t", "d", "--columns", "until"}) == 0);
  CHECK(out_.size() > std::string("d\t2026-01-01").size());
  CHECK(load(file("more.csv", "id,name,until\ne,x,\n"), {"--header", "--expires", "name"}) == 2);
  CHECK(error_.find("table 't' was made with --expires until, which cannot be changed") !=
        std::string::npos);
  CHECK(load(file("more.csv", "id,name,until\ne,x,\n"),
             {"--header", "--expires", "until", "--ttl", "1h"}) == 2);
  CHECK(error_.find("was made with another --ttl") != std::string::npos);
}

TEST_CASE_METHOD(CliExpiryTest, "CliExpiryTest.DumpsKeepWhenRowsEnd", "[CliExpiryTest]") {
  std::vector<std::string> options = with_ends;
  options.insert(options.end(), {"--ttl", "90s"});
  REQUIRE_MESSAGE(load(file("s.csv", sessions), options) == 0, error_);
  const std::string rows = scan();
  const std::string copy = directory_ + "/copy";
  REQUIRE_MESSAGE(run({"dump", database_}) == 0, error_);
  const std::string dump = out_;
  REQUIRE_MESSAGE(run({"restore", copy, "-"}, dump) == 0, error_);
  CHECK(run({"tables", copy}) == 0);
  CHECK(out_.find("\texpires=until,ttl=90s\n") != std::string::npos);
  CHECK(run({"scan", copy, "t"}) == 0);
  CHECK(out_ == rows);
}

TEST_CASE_METHOD(CliExpiryTest, "CliExpiryTest.MistakesAreTold", "[CliExpiryTest]") {
  const std::string rows = file("s.csv", sessions);
  const std::string all_end = file("e.csv", "id,name,until\na,x,2999-01-01T00:00:00Z\n");
  auto refusal = [&](const std::vector<std::string>& options) {
    CHECK(load(all_end, options) == 2);
    return error_;
  };
  auto tells = [](const std::string& text, const char* what) {
    CHECK_MESSAGE(text.find(what) != std::string::npos, text);
  };
  tells(refusal({"--header", "--ttl", "1h"}), "--ttl needs a column with the time when a row ends");
  tells(refusal({"--header", "--expires", "nothing"}), "--expires nothing is no column of values");
  tells(refusal({"--header", "--expires", "name"}), "--expires name has values of type string");
  tells(refusal({"--header", "--schema", "none", "--expires", "until"}),
        "--expires until needs a table with columns");
  tells(refusal({"--header", "--schema", "name string, until timestamp", "--expires", "until",
                 "--ttl", "1h"}),
        "give --schema with 'until timestamp?'");
  for (const char* time : {"0s", "-1h", "1", "h", "1 h", "1w", "99999999999999999999d", ""})
    CHECK_FALSE(microseconds_of(time).has_value());
  CHECK(microseconds_of("90s") == 90'000'000);
  CHECK(microseconds_of("7d") == 604'800'000'000);
  CHECK(time_text(90'000'000) == "90s");
  CHECK(time_text(3'600'000'000) == "1h");
  CHECK(time_text(1'500) == "1500us");
  CHECK(load(rows, {"--header", "--expires", "until", "--ttl", "soon"}) == 2);
}

}  // namespace
}  // namespace stride::cli

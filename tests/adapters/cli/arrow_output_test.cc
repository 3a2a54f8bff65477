// Parquet and Arrow files that a scan writes: what it writes it reads, the same rows of the same
// types.
#include <string>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class ArrowOutputTest : public CliFixture {};

TEST_CASE_METHOD(ArrowOutputTest, "ArrowOutputTest.ScansAreFiles", "[ArrowOutputTest]") {
  const std::string text =
      "country,year,name,score,day,at,ok,v,id\n"
      "nz,1840,Auckland,1.5,2020-01-01,2020-01-01 10:00:00.5,true,\"[1,-2]\","
      "12345678-9abc-def0-1234-56789abcdef0\n"
      "de,-5,\"a,\"\"b\",,,,,,\n";
  REQUIRE_MESSAGE(
      load(file("a.csv", text),
           {"--header", "--key", "country,year", "--key-type", "string,i16", "--schema",
            "name string, score f64?, day date?, at timestamp[ms]?, ok bool?, v i8[2]?, "
            "id uuid?"}) == 0,
      error_);
  const std::string csv = scan({"--format", "csv"});
  for (const char* format : {"parquet", "arrow"}) {
    const std::string path = file(std::string("b.") + format, scan({"--format", format}));
    const std::string name = std::string("of_") + format;
    REQUIRE_MESSAGE(load(path, {"--key", "country,year", "--key-type", "string,i16"}, name) == 0,
                    error_);
    REQUIRE(run({"tables", database_}) == 0);
    CHECK(
        out_.find("name string, score f64?, day date?, at timestamp[ms]?, ok bool?, v i8[2]?, ") !=
        std::string::npos);
    CHECK(scan({"--columns", "name,score,day,at,ok,v", "--format", "csv"}, name) ==
          scan({"--columns", "name,score,day,at,ok,v", "--format", "csv"}));
  }
  // Other keys and values, many rows, and none.
  std::string rows;
  for (int i = 0; i < 150'000; ++i)
    rows += std::to_string(i) + "\tvalue " + std::to_string(i) + "\n";
  REQUIRE(load(file("c.tsv", rows), {"--key-type", "u64"}, "plain") == 0);
  const std::string plain = file("d.parquet", scan({"--format", "parquet"}, "plain"));
  REQUIRE_MESSAGE(load(plain, {"--key-type", "u64", "--schema", "none"}, "again") == 0, error_);
  CHECK(scan({}, "again") == scan({}, "plain"));
  REQUIRE(load(file("e.tsv", "10.0.0.1\t5\n"), {"--key-type", "ip", "--numbers", "i32"}, "ip") ==
          0);
  const std::string ip = file("f.arrow", scan({"--format", "arrow", "--limit", "0"}, "ip"));
  REQUIRE_MESSAGE(load(ip, {"--key-type", "ip"}, "none") == 0, error_);
  CHECK(scan({}, "none") == "");
  const std::string one = file("g.arrow", scan({"--format", "arrow"}, "ip"));
  REQUIRE_MESSAGE(load(one, {"--key-type", "ip"}, "one") == 0, error_);
  CHECK(scan({}, "one") == "10.0.0.1\t5\n");
}

}  // namespace
}  // namespace stride::cli

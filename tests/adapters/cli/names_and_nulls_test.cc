// Cells that are empty and not null, names with commas, and files whose first rows say nothing.
#include <string>

#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class NamesAndNullsTest : public CliFixture {
 protected:
  std::string csv(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.end(), {"--format", "csv"});
    return scan(arguments);
  }
};

TEST_CASE_METHOD(NamesAndNullsTest, "NamesAndNullsTest.AQuotedEmptyTextIsNoNull",
                 "[NamesAndNullsTest]") {
  const std::string rows =
      "id,s,b,v\n1,,,\n2,\"\",\"\",\"\"\n3,x,\"\",5\n4,\"\",\"a,b\",\"6\"\n5,,,\n";
  const std::vector<std::string> options = {"--schema", "s string?, b bytes?, v i32?"};
  REQUIRE_MESSAGE(load(file("a.csv", rows), options) == 0, error_);
  // Whatever is empty is null in a column of numbers.
  const std::string written = "id,s,b,v\n1,,,\n2,\"\",\"\",\n3,x,\"\",5\n4,\"\",\"a,b\",6\n5,,,\n";
  CHECK(csv() == written);
  REQUIRE_MESSAGE(load(file("b.csv", written), options, "again") == 0, error_);
  REQUIRE(run({"scan", database_, "again", "--format", "csv"}) == 0);
  CHECK(out_ == written);
  REQUIRE(run({"scan", database_, "again", "--format", "jsonl", "--limit", "2"}) == 0);
  CHECK(out_ ==
        "{\"id\":\"1\",\"s\":null,\"b\":null,\"v\":null}\n"
        "{\"id\":\"2\",\"s\":\"\",\"b\":\"\",\"v\":null}\n");
}

TEST_CASE_METHOD(NamesAndNullsTest, "NamesAndNullsTest.NamesHaveCommasInQuotes",
                 "[NamesAndNullsTest]") {
  const std::string users =
      file("u.csv", "id,\"name, first\",\"say \"\"x\"\"\",n\n7,Ada,hi,1\n8,Bo,ho,2\n");
  REQUIRE_MESSAGE(load(users, {"--value", "n,\"name, first\""}) == 0, error_);
  CHECK(csv() == "id,n,\"name, first\"\n7,1,Ada\n8,2,Bo\n");
  CHECK(csv({"--columns", "\"name, first\",n"}) == "id,\"name, first\",n\n7,Ada,1\n8,Bo,2\n");
  CHECK(csv({"--columns", "\"name, first\"", "--columns", "n"}) ==
        "id,\"name, first\",n\n7,Ada,1\n8,Bo,2\n");
  REQUIRE_MESSAGE(run({"group", database_, "t", "--by", "\"name, first\"", "--sum-of", "n"}) == 0,
                  error_);
  CHECK(out_ == "Ada\t1\nBo\t2\n");
  REQUIRE_MESSAGE(load(users,
                       {"--key", "\"name, first\",n", "--key-type", "string,i64", "--value",
                        "\"say \"\"x\"\"\""},
                       "two") == 0,
                  error_);
  REQUIRE(run({"scan", database_, "two", "--format", "csv"}) == 0);
  CHECK(out_ == "\"name, first\",n,\"say \"\"x\"\"\"\nAda,1,hi\nBo,2,ho\n");
  // One name is taken as it is, or in quotes.
  for (const char* key : {"name, first", "\"name, first\""}) {
    REQUIRE_MESSAGE(load(users, {"--key", key, "--value", "n"}, key) == 0, error_);
    REQUIRE(run({"scan", database_, key, "--format", "csv"}) == 0);
    CHECK(out_ == "\"name, first\",n\nAda,1\nBo,2\n");
  }
  expect_refused({"scan", database_, "t", "--columns", "name, first"}, 2, "no column 'name'");
}

// The columns are those of the first block with a row in it.
TEST_CASE_METHOD(NamesAndNullsTest, "NamesAndNullsTest.RowsBehindTheFirstBlockTellTheColumns",
                 "[NamesAndNullsTest]") {
  const std::string blank(5 << 20, '\n');
  const std::string row = "{\"key\":\"a\",\"n\":5}\n";
  REQUIRE_MESSAGE(load(file("blank.jsonl", blank + row)) == 0, error_);
  CHECK(csv() == "key,n\na,5\n");
  const std::string empty = file("empty.jsonl", ""), full = file("full.jsonl", row);
  REQUIRE_MESSAGE(run({"load", database_, "second", empty, full}) == 0, error_);
  REQUIRE(run({"scan", database_, "second", "--format", "csv"}) == 0);
  CHECK(out_ == "key,n\na,5\n");
  const std::string header = file("h.csv", "id,n\n"), rows = file("r.csv", "id,n\nx,5\ny,6\n");
  REQUIRE_MESSAGE(run({"load", database_, "third", header, rows, "--header"}) == 0, error_);
  CHECK(error_.find("n i64?") != std::string::npos);
  REQUIRE(run({"scan", database_, "third", "--format", "csv"}) == 0);
  CHECK(out_ == "id,n\nx,5\ny,6\n");
  // Rows that are left out tell nothing.
  std::string bad;
  while (bad.size() < (5 << 20)) bad += "k,1," + std::string(4000, 'x') + "\n";
  REQUIRE_MESSAGE(load(file("bad.csv", "id,n\n" + bad + "z,7\n"),
                       {"--header", "--rejects", directory_ + "/rejects"}, "fourth") == 0,
                  error_);
  REQUIRE(run({"scan", database_, "fourth", "--format", "csv"}) == 0);
  CHECK(out_ == "id,n\nz,7\n");
  CHECK(error_.empty());
}

}  // namespace
}  // namespace stride::cli

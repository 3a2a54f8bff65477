// Parquet and Arrow files where the program is built without Arrow's library.
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class NoArrowTest : public CliFixture {};

TEST_CASE_METHOD(NoArrowTest, "NoArrowTest.SaysWhatToDo", "[NoArrowTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "a\t1\n")) == 0, error_);
  for (std::string name : {"a.parquet", "a.arrow", "a.feather"}) {
    std::string path = file(name, "PAR1"),
                message = path + ": this program reads no " +
                          (name == "a.parquet" ? "parquet" : "arrow") +
                          " files: write them as CSV or JSON lines first";
    expect_load_refused(path, {}, 8, message);
    expect_refused({"join", database_, "t", path}, 8, message);
    expect_refused({"get", database_, "t", "--keys", path}, 8, message);
  }
  expect_load_refused(file("a.tsv", "a\t1\n"), {"--format", "parquet"}, 8,
                      "reads no parquet files");
  expect_refused({"scan", database_, "t", "--format", "parquet"}, 8,
                 "this program writes no parquet files: give --format csv or jsonl");
}

}  // namespace
}  // namespace stride::cli

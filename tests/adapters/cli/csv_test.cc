// CSV as spreadsheets and other programs write it.
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class CsvTest : public CliFixture {
 protected:
  // Whatever the blocks are, the same rows, as csv.
  void expect_rows(const std::string& text, const std::vector<std::string>& options,
                   const std::string& rows) {
    std::string path = file("rows.csv", text);
    for (const char* bytes : {"1", "2", "7", "1000000"}) {
      std::filesystem::remove_all(database_);
      std::vector<std::string> all = options;
      all.insert(all.end(), {"--block-bytes", bytes});
      REQUIRE_MESSAGE(load(path, all) == 0, error_);
      CHECK_MESSAGE(scan({"--format", "csv", "--no-header"}) == rows, bytes);
    }
  }
  void expect_bad(const std::string& text, const std::vector<std::string>& options, int code,
                  const std::string& message) {
    std::string path = file("rows.csv", text);
    for (const char* bytes : {"1", "7", "1000000"}) {
      std::vector<std::string> all = options;
      all.insert(all.end(), {"--block-bytes", bytes});
      expect_load_refused(path, all, code, path + message);
    }
  }
};

// A spreadsheet ends rows with CRLF, and lines within a cell with LF.
TEST_CASE_METHOD(CsvTest, "CsvTest.RowsEndAsTheFirstRowDoes", "[CsvTest]") {
  expect_rows("\"a\nb\",1\r\nc,2\r\n", {}, "\"a\nb\",1\nc,2\n");
  expect_rows("\"a\n\nb\",\"\n\"\r\nc,2\r\n", {}, "\"a\n\nb\",\"\n\"\nc,2\n");
  expect_rows("\"a\r\nb\",1\nc,2\n", {}, "\"a\r\nb\",1\nc,2\n");
  expect_rows("x,\"y\nz\"\r\nc,2\r\n", {"--header"}, "c,2\n");
  expect_rows("\"say \"\"\n\"\"\",1\r\nc,2\r\n", {}, "c,2\n\"say \"\"\n\"\"\",1\n");
  expect_bad("\"a\nb\",1\r\nc,2\n", {}, 3, ":3: mixed line ends: this one is LF");
  expect_bad("\"a\r\nb\",1\nc,2\r\n", {}, 3, ":3: mixed line ends: this one is CRLF");
}

TEST_CASE_METHOD(CsvTest, "CsvTest.AByteOrderMarkIsNoData", "[CsvTest]") {
  const std::string mark = "\xEF\xBB\xBF";
  expect_rows(mark + "a,1\nb,2\n", {}, "a,1\nb,2\n");
  expect_rows(mark + "\"a\n\",1\r\nb,2\r\n", {}, "\"a\n\",1\nb,2\n");
  expect_rows(mark + "\"the\nid\",v\r\n1,one\r\n", {"--header", "--key", "the\nid"}, "1,one\n");
  expect_rows(mark + "\"id\",v\n1,one\n", {"--header", "--key", "id", "--value", "v"}, "1,one\n");
  expect_rows(mark, {}, "");
  expect_rows(mark.substr(0, 2) + "a,1\n", {}, mark.substr(0, 2) + "a,1\n");
  expect_bad(mark + "\"the\nid\",v\r\nshort\r\n", {"--header"}, 3, ":3: too few columns");
}

TEST_CASE_METHOD(CsvTest, "CsvTest.ACrBehindAQuoteIsNeverLost", "[CsvTest]") {
  // It is text behind the quote where rows do not end so.
  expect_bad("a,1\nb,\"2\"\r", {}, 3, ":2: text after a closing quote");
  expect_bad("a,\"1\"\r\nb,2\n", {"--line-ends", "lf"}, 3, ":1: text after a closing quote");
  expect_bad("a,\"1\"\r,x\n", {}, 3, ":1: text after a closing quote");
  expect_bad("a,\"1\"\n\"b\",\"2\"\r\n", {}, 3, ":2: mixed line ends: this one is CRLF");
  expect_rows("a,\"1\"\r\nb,\"2\"\r", {}, "a,1\nb,2\n");
  expect_rows("a,\"1\"\nb,\"2\"\r", {"--line-ends", "any"}, "a,1\nb,2\n");
  // Rows that are compared as a whole are as they are.
  std::string rows = "\"a\",\"1\"\r\n\"a\",\"1\"\n\"a\",\"1\"\r\n\"b\",\"1\"\r";
  REQUIRE_MESSAGE(run({"dedup", file("rows.csv", rows)}) == 0, error_);
  CHECK(out_ == "\"a\",\"1\"\r\n\"a\",\"1\"\n\"b\",\"1\"\r\n");
}

TEST_CASE_METHOD(CsvTest, "CsvTest.ColumnsOfTheSameName", "[CsvTest]") {
  std::string rows = "id,v,id,v\n1,a,2,b\n";
  expect_bad(rows, {"--header", "--key", "id"}, 2,
             ":1: column 'id' is in the header more than once: give its number, 1 or 3");
  expect_bad(rows, {"--header", "--key", "1", "--value", "v"}, 2,
             ":1: column 'v' is in the header more than once: give its number, 2 or 4");
  expect_bad(rows, {"--header"}, 3, ": two columns are called 'v': choose columns with --value");
  expect_rows(rows, {"--header", "--key", "3", "--value", "2"}, "2,a\n");
  expect_rows(rows, {"--header", "--schema", "none"}, "1,a\t2\tb\n");
  std::string tsv = file("rows.tsv", "id\tid\n1\t2\n");
  expect_load_refused(tsv, {"--header", "--key", "id"}, 2, "give its number, 1 or 2");
}

TEST_CASE_METHOD(CsvTest, "CsvTest.AHeaderOfOneColumn", "[CsvTest]") {
  expect_rows("k\na\n", {"--header"}, "a,\n");
  expect_rows("k\na\n", {"--header", "--value", "k"}, "a,a\n");
}

// The first column is the first one, whatever the columns are called.
TEST_CASE_METHOD(CsvTest, "CsvTest.ColumnsWhoseNamesAreNumbers", "[CsvTest]") {
  expect_rows("id,1\na,b\n", {"--header"}, "a,b\n");
  expect_rows("id,1\na,b\n", {"--header", "--key", "1"}, "b,a\n");
}

}  // namespace
}  // namespace stride::cli

// scan --where and --top, and group --by: single cases, and what is refused.
#include <cstdint>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class WhereCasesTest : public CliFixture {
 protected:
  void load_rows(const std::string& json, const std::string& schema,
                 const std::string& key_type = "string") {
    REQUIRE_MESSAGE(load(file("rows.jsonl", json),
                         {"--key", "id", "--key-type", key_type, "--schema", schema}) == 0,
                    error_);
  }
  // The keys of the rows that hold, with a blank behind each.
  std::string keys_where(const std::vector<std::string>& conditions,
                         const std::vector<std::string>& options = {}) {
    std::vector<std::string> all = {"--keys-only"};
    for (const std::string& condition : conditions) all.insert(all.end(), {"--where", condition});
    all.insert(all.end(), options.begin(), options.end());
    std::string keys = scan(all);
    for (char& c : keys) c = c == '\n' ? ' ' : c;
    return keys;
  }
  std::string group(const std::vector<std::string>& options) {
    std::vector<std::string> all = {"group", database_, "t"};
    all.insert(all.end(), options.begin(), options.end());
    CHECK_MESSAGE(run(all) == 0, error_);
    return out_;
  }
  void expect_scan_refused(const std::vector<std::string>& options, const std::string& message) {
    std::vector<std::string> all = {"scan", database_, "t"};
    all.insert(all.end(), options.begin(), options.end());
    expect_refused(all, 2, message);
  }
  void expect_group_refused(const std::vector<std::string>& options, const std::string& message) {
    std::vector<std::string> all = {"group", database_, "t"};
    all.insert(all.end(), options.begin(), options.end());
    expect_refused(all, 2, message);
  }
};

TEST_CASE_METHOD(WhereCasesTest, "WhereCasesTest.FloatsHaveOneOrder", "[WhereCasesTest]") {
  load_rows(
      "{\"id\":\"a\",\"x\":-0.0,\"y\":1}\n{\"id\":\"b\",\"x\":\"nan\",\"y\":2}\n"
      "{\"id\":\"c\",\"x\":\"inf\",\"y\":3}\n{\"id\":\"d\",\"x\":0,\"y\":4}\n"
      "{\"id\":\"e\",\"x\":\"-nan\",\"y\":5}\n{\"id\":\"f\",\"y\":6}\n",
      "x f64?, y f32");
  CHECK(keys_where({"x=0"}) == "a d ");
  CHECK(keys_where({"x=-0"}) == "a d ");
  CHECK(keys_where({"x=nan"}) == "b e ");
  CHECK(keys_where({"x>inf"}) == "b e ");
  CHECK(keys_where({"x<nan"}) == "a c d ");
  CHECK(keys_where({"x!=nan"}) == "a c d f ");
  CHECK(keys_where({"x="}) == "f ");
  CHECK(keys_where({"x!="}) == "a b c d e ");
  CHECK(keys_where({"x!=", "y>1", "y <= 4"}) == "b c d ");
  CHECK(keys_where({}, {"--top", "4", "--of", "x"}) == "b e c a ");
  CHECK(keys_where({}, {"--top", "2", "--of", "x", "--reverse"}) == "a d ");
  CHECK(group({"--by", "x", "--sum-of", "y"}) == "\t6\n0\t5\ninf\t3\nnan\t7\n");
  CHECK(group({"--by", "x", "--top", "2", "--sum-of", "x"}) == "nan\tnan\ninf\tinf\n");
}

TEST_CASE_METHOD(WhereCasesTest, "WhereCasesTest.VectorsAndNamesOfAllKinds", "[WhereCasesTest]") {
  load_rows(
      "{\"id\":\"a\",\"v\":[1,-2],\"n\":1,\"n<2\":\"x\",\"a b\":\"\"}\n"
      "{\"id\":\"b\",\"v\":[1,3],\"n\":2,\"n<2\":\"y=1\",\"a b\":\" y\"}\n",
      "v i8[2], n i32, \"n<2\" string, \"a b\" string");
  CHECK(keys_where({"v=[1,-2]"}) == "a ");
  CHECK(keys_where({"v>[1,2]"}) == "b ");
  CHECK(keys_where({"n<2"}) == "a ");
  CHECK(keys_where({"n<2=x"}) == "a ");
  CHECK(keys_where({"n<2=y=1"}) == "b ");
  CHECK(keys_where({"n<20"}) == "a b ");
  CHECK(keys_where({"a b= y"}) == "b ");
  CHECK(keys_where({"a b=y"}) == "");
  CHECK(keys_where({"a b ="}) == "a ");
  CHECK(keys_where({"a b>"}) == "b ");
  CHECK(group({"--by", "v", "--json"}) ==
        "{\"v\":[1,-2],\"count\":1}\n{\"v\":[1,3],\"count\":1}\n");
  expect_group_refused({"--by", "n", "--sum-of", "v"}, "'v' is of type i8[2], which has no sum");
}

TEST_CASE_METHOD(WhereCasesTest, "WhereCasesTest.KeyColumns", "[WhereCasesTest]") {
  const std::string rows = file("k.csv",
                                "country,year,city,country_\n"
                                "nz,1999,Wellington,1\nat,-5,Graz,2\nat,2001,Wien,3\n");
  REQUIRE_MESSAGE(
      load(rows, {"--header", "--key", "country,year", "--key-type", "string,i16"}) == 0, error_);
  CHECK(scan({"--where", "country=at", "--where", "year>-6", "--columns", "city"}) ==
        "at\t-5\tGraz\nat\t2001\tWien\n");
  CHECK(scan({"--where", "year>=1999", "--limit", "1", "--columns", "city"}) == "at\t2001\tWien\n");
  CHECK(scan({"--top", "1", "--of", "year", "--columns", "city"}) == "at\t2001\tWien\n");
  CHECK(group({"--by", "country", "--min-of", "year", "--format", "csv"}) ==
        "country,min_year\nat,-5\nnz,1999\n");
  CHECK(group({"--by", "country", "--from", "b"}) == "nz\t1\n");
  // Keys that are shown in another way than their column says are no cells.
  REQUIRE(load(file("h.csv", "id,n\nab,1\n"), {"--header"}, "h") == 0);
  expect_refused({"scan", database_, "h", "--key-type", "hex", "--where", "id=ab"}, 2,
                 "--from, --to or --prefix");
  CHECK(scan({"--key-type", "hex", "--where", "n=1"}, "h") == "6162\t1\n");
}

TEST_CASE_METHOD(WhereCasesTest, "WhereCasesTest.SumsAreExact", "[WhereCasesTest]") {
  const std::string most = std::to_string(INT64_MAX), least = std::to_string(INT64_MIN);
  const std::string unsigned_most = std::to_string(UINT64_MAX);
  load_rows("{\"id\":\"a\",\"g\":\"x\",\"i\":" + most + ",\"u\":" + unsigned_most + "}\n" +
                "{\"id\":\"b\",\"g\":\"x\",\"i\":" + most + ",\"u\":0}\n" +
                "{\"id\":\"c\",\"g\":\"x\",\"i\":" + least + ",\"u\":0}\n" +
                "{\"id\":\"d\",\"g\":\"y\",\"i\":" + least + ",\"u\":1}\n" +
                "{\"id\":\"e\",\"g\":\"z\",\"u\":2}\n",
            "g string, i i64?, u u64");
  CHECK(group({"--by", "g", "--sum-of", "i,u", "--format", "csv"}) ==
        "g,sum_i,sum_u\nx,9223372036854775806,18446744073709551615\n"
        "y,-9223372036854775808,1\nz,,2\n");
  // A group without a sum comes behind all that have one.
  CHECK(group({"--by", "g", "--sum-of", "i", "--top", "3", "--json"}) ==
        "{\"g\":\"x\",\"sum_i\":9223372036854775806}\n"
        "{\"g\":\"y\",\"sum_i\":-9223372036854775808}\n{\"g\":\"z\",\"sum_i\":null}\n");
  CHECK(group({"--sum-of", "i", "--where", "g=y"}) == "-9223372036854775808\n");
  CHECK(group({"--by", "g", "--where", "u>5", "--count", "--max-of", "i", "--max-of", "g"}) ==
        "x\t1\t9223372036854775807\tx\n");
  CHECK(group({"--by", "g", "--where", "g>z"}) == "");
  expect_group_refused({"--sum-of", "u"}, "the sum of column 'u' does not fit into 64 bits: make");
  expect_group_refused({"--by", "g", "--sum-of", "i", "--where", "id!=c"},
                       "the sum of column 'i' in group 'x' does not fit into 64 bits");
  // What is not printed may be as large as it likes.
  CHECK(group({"--by", "g", "--where", "id!=c", "--top", "0", "--sum-of", "i"}) == "");
}

TEST_CASE_METHOD(WhereCasesTest, "WhereCasesTest.HeadersAndNames", "[WhereCasesTest]") {
  load_rows("{\"id\":\"a\",\"count\":1,\"s\":\"\\t,\"}\n", "count i32, s string");
  CHECK(group({"--by", "count", "--count", "--header"}) == "count\tcount_\n1\t1\n");
  CHECK(group({"--by", "s", "--format", "csv"}) == "s,count\n\"\t,\",1\n");
  CHECK(group({"--by", "s", "--format", "csv", "--no-header"}) == "\"\t,\",1\n");
  CHECK(scan({"--where", "s>", "--format", "csv", "--columns", "count"}) == "id,count\na,1\n");
}

TEST_CASE_METHOD(WhereCasesTest, "WhereCasesTest.MistakesSayWhatToDo", "[WhereCasesTest]") {
  load_rows("{\"id\":\"a\",\"score\":1,\"since\":\"2020-01-01\",\"name\":\"x\"}\n",
            "score i32, since date?, name string");
  expect_scan_refused({"--where", "scor=1"},
                      "--where 'scor=1': no column 'scor' in table 't', which has 'id', 'score', "
                      "'since' and 'name': did you mean 'score'?");
  expect_scan_refused({"--where", "=1"}, "no column ''");
  expect_scan_refused({"--where", "score"}, "compares nothing: give COLUMN=VALUE");
  expect_scan_refused({"--where", "score=1.5"}, "'1.5' is no i32: column 'score' is of type i32");
  expect_scan_refused({"--where", "score="}, "empty, which is no i32");
  expect_scan_refused({"--where", "since>2020-13-01"}, "'2020-13-01' is no date");
  expect_scan_refused({"--where", "since<="}, "nothing is less or more than a missing cell");
  expect_scan_refused({"--where", "name=\xFF"}, "is no UTF-8");
  expect_scan_refused({"--top", "1"}, "--of COLUMN");
  expect_scan_refused({"--of", "score"}, "--top N");
  expect_scan_refused({"--top", "1", "--of", "scoer"}, "did you mean 'score'?");
  expect_scan_refused({"--top", "1", "--of", "score", "--limit", "1"}, "leave --limit out");
  expect_group_refused({"--by", "nam"}, "--by: no column 'nam'");
  expect_group_refused({"--by", "name,name"}, "--by names column 'name' twice");
  expect_group_refused({"--by", "name", "--sum-of", "since"},
                       "--sum-of: column 'since' is of type date?, which has no sum");
  expect_group_refused({"--by", "name", "--min-of", "x"}, "--min-of: no column 'x'");
  expect_group_refused({"--by", "name", "--sum"}, "--sum-of");
  expect_group_refused({"--by", "name", "--type", "i64"}, "--type is for tables of numbers");
  expect_group_refused({"--by", "name", "--where", "score<x"}, "'x' is no i32");
  expect_group_refused({}, "group its rows with --by COLUMN");
  REQUIRE(load(file("plain.tsv", "a\t1\n"), {"--format", "tsv"}, "plain") == 0);
  for (const char* option : {"--where", "--top", "--by"}) {
    const std::string command = std::string(option) == "--by" ? "group" : "scan";
    std::vector<std::string> all = {command, database_, "plain", option, "1=1"};
    if (std::string(option) == "--top")
      all = {command, database_, "plain", "--top", "1", "--of", "x"};
    expect_refused(all, 2, "table 'plain' has no columns");
  }
}

// A program that knows no schema has put what it liked.
TEST_CASE_METHOD(WhereCasesTest, "WhereCasesTest.AValueThatIsNoRow", "[WhereCasesTest]") {
  load_rows("{\"id\":\"a\",\"n\":1,\"s\":\"x\"}\n{\"id\":\"c\",\"n\":3,\"s\":\"x\"}\n",
            "n i32, s string");
  {
    auto database = Database::open(database_);
    REQUIRE(database.ok());
    WriteTransaction transaction = (*database)->begin();
    REQUIRE(transaction.put(*(*database)->open_table("t"), "b", "x").ok());
    REQUIRE(transaction.commit().ok());
  }
  CHECK(run({"scan", database_, "t", "--where", "n>0"}) == 6);
  CHECK_MESSAGE(error_.find("the value of key 'b' is no row") != std::string::npos, error_);
  CHECK(run({"group", database_, "t", "--by", "n"}) == 6);
  CHECK(out_ == "");
  CHECK(run({"scan", database_, "t", "--top", "1", "--of", "n"}) == 6);
  CHECK(out_ == "");
  CHECK(keys_where({"n>0"}, {"--from", "c"}) == "c ");
}

}  // namespace
}  // namespace stride::cli

// stride put, delete and drop.
#include <string>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class EditTest : public CliFixture {};

TEST_CASE_METHOD(EditTest, "EditTest.PutsRows", "[EditTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "7\told\n-3\tc\n"), {"--key-type", "i64"}) == 0, error_);
  REQUIRE_MESSAGE(run({"put", database_, "t", "7", "seven", "9", ""}) == 0, error_);
  CHECK(error_ == "put 2 rows\n");
  REQUIRE_MESSAGE(run({"put", database_, "t", "--json", "--", "-40", "cold"}) == 0, error_);
  CHECK(out_ == "{\"put\":1}\n");
  const std::string rows = "-40\tcold\n-3\tc\n7\tseven\n9\t\n";
  CHECK(scan() == rows);
  expect_refused({"put", database_, "t", "1", "a", "x", "b"}, 2, "key 'x' is no number");
  expect_refused({"put", database_, "t", "1", "a", "01", "b"}, 2, "key '01' is given twice");
  expect_refused({"put", database_, "t", "1", "a", "2"}, 2, "key '2' has no value");
  expect_refused({"put", database_, "u", "1", "a"}, 4, "no table 'u'");
  expect_refused({"put", database_, ".stride", "table:t", "{}"}, 2, "remember key types");
  expect_refused({"put", database_ + "x", "t", "1", "a"}, 4, "no database");
  CHECK(scan() == rows);
}

// Such an argument is no list.
TEST_CASE_METHOD(EditTest, "EditTest.PutsTextInBrackets", "[EditTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "a\t1\n")) == 0, error_);
  const std::vector<std::string> texts = {"j",     "[1,2]", "[k,l]",   "[]",
                                          "[[x]]", "[",     "\x01[1]", "\x01"};
  std::vector<std::string> put = {"put", database_, "t"};
  put.insert(put.end(), texts.begin(), texts.end());
  REQUIRE_MESSAGE(run(put) == 0, error_);
  CHECK(scan() == "\x01[1]\t\x01\n[[x]]\t[\n[k,l]\t[]\na\t1\nj\t[1,2]\n");
  REQUIRE_MESSAGE(run({"get", database_, "t", "[k,l]"}) == 0, error_);
  CHECK(out_ == "[k,l]\t[]\n");
  REQUIRE_MESSAGE(run({"delete", database_, "t", "[k,l]", "[[x]]", "\x01[1]"}) == 0, error_);
  CHECK(scan() == "a\t1\nj\t[1,2]\n");
  expect_refused({"count", database_, "t", "[u]"}, 2, "count has no use for '[u]'");
}

TEST_CASE_METHOD(EditTest, "EditTest.PutsNumbersAndPrefixes", "[EditTest]") {
  REQUIRE_MESSAGE(load(file("n.tsv", "a\t1\n"), {"--numbers", "i32"}) == 0, error_);
  REQUIRE_MESSAGE(run({"put", database_, "t", "a", "-5", "b", "2147483647"}) == 0, error_);
  CHECK(scan() == "a\t-5\nb\t2147483647\n");
  expect_refused({"put", database_, "t", "a", "1.5"}, 2, "'1.5' is no number");
  const std::string other = directory_ + "/prefixes";
  REQUIRE(run({"load", other, "t", file("p.tsv", "10.0.0.0/8\tten\n"), "--key-type", "prefix"}) ==
          0);
  REQUIRE_MESSAGE(run({"put", other, "t", "10.1.0.0/16", "inner", "11.0.0.0/8", "eleven"}) == 0,
                  error_);
  expect_refused({"put", other, "t", "10.1.0.1/16", "x"}, 2, "10.1.0.1/16");
  REQUIRE(run({"match", other, "t", "10.1.2.3"}) == 0);
  CHECK(out_ == "10.1.2.3\t10.1.0.0/16\tinner\n");
  REQUIRE_MESSAGE(run({"delete", other, "t", "--prefix", "10.0.0.0/8"}) == 0, error_);
  CHECK(error_ == "deleted 2 keys\n");
  REQUIRE(run({"scan", other, "t"}) == 0);
  CHECK(out_ == "11.0.0.0/8\televen\n");
}

TEST_CASE_METHOD(EditTest, "EditTest.PutsNoBytesThatAreNoKeyOfTheColumns", "[EditTest]") {
  const std::string cities = file("c.csv", "country,year,name\nnz,1840,W\n");
  REQUIRE_MESSAGE(load(cities, {"--key", "country,year", "--key-type", "string,i16"}) == 0, error_);
  expect_refused({"put", database_, "t", "--key-type", "bytes", "nz", "x"}, 2,
                 "key 'nz' has bytes that are no key of type string,i16");
  expect_refused({"put", database_, "t", "--key-type", "hex", "6e7a", "x"}, 2, "no key of type");
  // What is a key is one, however it is written.
  REQUIRE_MESSAGE(run({"put", database_, "t", "--key-type", "hex", "6e7a00008731", "x"}) == 0,
                  error_);
  REQUIRE_MESSAGE(run({"put", database_, "t", "nz,1842", "y"}) == 0, error_);
  CHECK(scan() == "nz\t1840\tW\nnz\t1841\tx\nnz\t1842\ty\n");
}

TEST_CASE_METHOD(EditTest, "EditTest.DeletesKeysAndRanges", "[EditTest]") {
  REQUIRE_MESSAGE(load(file("a.txt", "a\nab\nabc\nb\n\xFF\n\xFFz\n")) == 0, error_);
  REQUIRE_MESSAGE(run({"delete", database_, "t", "ab", "missing"}) == 0, error_);
  CHECK(error_ == "deleted 1 key\n");
  REQUIRE_MESSAGE(run({"delete", database_, "t", "--prefix", "\xFF", "--json"}) == 0, error_);
  CHECK(out_ == "{\"deleted\":2}\n");
  CHECK(scan({"--keys-only"}) == "a\nabc\nb\n");
  REQUIRE_MESSAGE(run({"delete", database_, "t", "--prefix", "a", "--from", "aa"}) == 0, error_);
  CHECK(scan({"--keys-only"}) == "a\nb\n");
  REQUIRE_MESSAGE(run({"delete", database_, "t", "--from", "z", "--to", "c"}) == 0, error_);
  CHECK(error_ == "deleted 0 keys\n");
  expect_refused({"delete", database_, "t"}, 2, "give keys, or a range");
  expect_refused({"delete", database_, "t", "a", "--to", "b"}, 2, "give keys, or a range");
  expect_refused({"delete", database_, "t", "a", "a"}, 2, "key 'a' is given twice");
  expect_refused({"delete", database_, ".stride", "table:t"}, 2, "remember key types");
  CHECK(scan({"--keys-only"}) == "a\nb\n");
  REQUIRE_MESSAGE(run({"delete", database_, "t", "--to", "b"}) == 0, error_);
  CHECK(scan({"--keys-only"}) == "b\n");
}

TEST_CASE_METHOD(EditTest, "EditTest.RenamesTablesWithTheirNotes", "[EditTest]") {
  const std::string users = file("u.csv", "id,name,score\n7,Ada,1.5\n");
  REQUIRE_MESSAGE(load(users, {"--key-type", "u64"}, "users") == 0, error_);
  REQUIRE_MESSAGE(load(file("h.tsv", "00ff\ta\n"), {"--key-type", "hex"}, "h") == 0, error_);
  REQUIRE_MESSAGE(load(file("p.tsv", "10.0.0.0/8\tten\n"), {"--key-type", "prefix"}, "nets") == 0,
                  error_);
  REQUIRE_MESSAGE(run({"rename", database_, "users", "t"}) == 0, error_);
  CHECK(error_ == "renamed table 'users' to 't'\n");
  CHECK(out_.empty());
  CHECK(scan({"--format", "csv"}) == "id,name,score\n7,Ada,1.5\n");
  expect_refused({"scan", database_, "users"}, 4, "no table 'users'");
  REQUIRE_MESSAGE(run({"rename", database_, "h", "hex", "--json"}) == 0, error_);
  CHECK(out_ == "{\"renamed_to\":\"hex\",\"table\":\"h\"}\n");
  CHECK(scan({}, "hex") == "00ff\ta\n");
  REQUIRE_MESSAGE(run({"rename", database_, "nets", "routes"}) == 0, error_);
  REQUIRE_MESSAGE(run({"match", database_, "routes", "10.1.2.3"}) == 0, error_);
  CHECK(out_ == "10.1.2.3\t10.0.0.0/8\tten\n");
  // Nothing of the old one is left for another one of its name.
  REQUIRE_MESSAGE(load(file("c.tsv", "seven\ta\n"), {}, "h") == 0, error_);
  CHECK(scan({}, "h") == "seven\ta\n");
  REQUIRE_MESSAGE(load(users, {}) == 0, error_);
  CHECK(error_.find("loaded 1 row") != std::string::npos);
}

TEST_CASE_METHOD(EditTest, "EditTest.RefusesNamesThatTablesCannotGet", "[EditTest]") {
  REQUIRE(load(file("a.tsv", "x\ta\n")) == 0);
  REQUIRE(load(file("b.tsv", "x\ty\n"), {}, "kept") == 0);
  expect_refused({"rename", database_, "t", "kept"}, 2,
                 "there is a table 'kept' already (" + database_ +
                     "): give another name, or stride drop that table first");
  expect_refused({"rename", database_, "kep", "u"}, 4, "did you mean 'kept'?");
  expect_refused({"rename", database_, "t", "t"}, 2, "called 't' already");
  expect_refused({"rename", database_, "t", ".stride"}, 2, "remember key types");
  expect_refused({"rename", database_, ".stride", "u"}, 2, "remember key types");
  expect_refused({"rename", database_, "t", ""}, 2, "1 to 255 bytes");
  expect_refused({"rename", database_, "t", std::string(256, 'n')}, 2, "1 to 255 bytes");
  expect_refused({"rename", database_, "t"}, 2, "NEW_NAME");
  CHECK(scan() == "x\ta\n");
}

TEST_CASE_METHOD(EditTest, "EditTest.DropsTablesAndTheirNotes", "[EditTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "7\ta\n"), {"--key-type", "u64"}) == 0, error_);
  REQUIRE(run({"load", database_, "kept", file("b.tsv", "x\ty\n")}) == 0);
  expect_refused({"drop", database_, "t", "none"}, 4, "no table 'none'");
  expect_refused({"drop", database_, ".stride"}, 2, "remember key types");
  REQUIRE_MESSAGE(run({"drop", database_, "t"}) == 0, error_);
  CHECK(error_ == "dropped 1 table\n");
  expect_refused({"scan", database_, "t"}, 4, "no table 't'");
  // Another one of that name begins anew.
  REQUIRE_MESSAGE(load(file("c.tsv", "seven\ta\n")) == 0, error_);
  CHECK(scan() == "seven\ta\n");
  CHECK(scan({}, "kept") == "x\ty\n");
  REQUIRE_MESSAGE(run({"drop", database_, "t", "kept", "t"}) == 0, error_);
  REQUIRE(run({"tables", database_}) == 0);
  CHECK(out_.empty());
}

}  // namespace
}  // namespace stride::cli

// Keys of more types than plain ones, and of several columns.
#include <algorithm>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

class KeyTypesTest : public CliFixture {
 protected:
  int get(const std::vector<std::string>& keys) {
    std::vector<std::string> all = {"get", database_, "t"};
    all.insert(all.end(), keys.begin(), keys.end());
    return run(all);
  }
};

const char* const cities =
    "country,year,city,pop\n"
    "nz,1999,\"Auck,land\",5\n"
    "nz,-5,Rome,6\n"
    "de,2020,Bonn,7\n"
    "\"n\"\"z,\",1,x,8\n";

TEST_CASE_METHOD(KeyTypesTest, "KeyTypesTest.KeysOfTwoColumns", "[KeyTypesTest]") {
  REQUIRE_MESSAGE(load(file("k.csv", cities),
                       {"--header", "--key", "country,year", "--key-type", "string,i16"}) == 0,
                  error_);
  const std::string csv =
      "country,year,city,pop\nde,2020,Bonn,7\n\"n\"\"z,\",1,x,8\nnz,-5,Rome,6\n"
      "nz,1999,\"Auck,land\",5\n";
  CHECK(scan({"--format", "csv"}) == csv);
  CHECK(scan({"--limit", "1", "--columns", "pop"}) == "de\t2020\t7\n");
  CHECK(scan({"--keys-only", "--limit", "1"}) == "de\t2020\n");
  CHECK(scan({"--format", "jsonl", "--prefix", "nz", "--limit", "1"}) ==
        "{\"country\":\"nz\",\"year\":-5,\"city\":\"Rome\",\"pop\":6}\n");
  CHECK(scan({"--prefix", "nz", "--columns", "city"}) == "nz\t-5\tRome\nnz\t1999\tAuck,land\n");
  CHECK(scan({"--from", "nz,0", "--columns", "city"}) == "nz\t1999\tAuck,land\n");
  CHECK(scan({"--to", "nz", "--columns", "city"}) == "de\t2020\tBonn\nn\"z,\t1\tx\n");
  REQUIRE(get({"nz,1999", "\"n\"\"z,\",1", "nz,7"}) == 0);
  CHECK(out_ == "nz\t1999\tAuck,land\t5\nn\"z,\t1\tx\t8\n");
  CHECK(get({"nz"}) == 2);
  CHECK(error_.find("1 column of a key, and the table's have 2 (string,i16)") != std::string::npos);
  CHECK(get({"nz,x"}) == 2);
  CHECK(error_.find("'x' is no i16") != std::string::npos);
  REQUIRE(run({"join", database_, "t", "-", "--key", "3,1", "--columns", "city"},
              "-5\tx\tnz\n1\tx\tde\n") == 0);
  CHECK(out_ == "-5\tx\tnz\tRome\n1\tx\tde\t\n");
  REQUIRE(run({"get", database_, "t", "--keys", "-", "--columns", "pop"}, "nz\t-5\nde\t2020\n") ==
          0);
  CHECK(out_ == "nz\t-5\t6\nde\t2020\t7\n");
  REQUIRE(run({"delete", database_, "t", "nz,-5"}) == 0);
  REQUIRE(run({"put", database_, "t", "nz,-5", "Rome", "6"}) == 0);
  CHECK(scan({"--format", "csv"}) == csv);
  REQUIRE(run({"tables", database_}) == 0);
  CHECK(out_.find("t\tstring,i16\t0\t") == 0);
  CHECK(out_.find("\tcountry string key, year i16 key, city string, pop i64?\n") !=
        std::string::npos);
  // Files of other orders, JSON, and a dump.
  const std::string json = file("k.jsonl", scan({"--format", "jsonl"}));
  REQUIRE_MESSAGE(load(json, {"--key", "country,year", "--key-type", "string,i16"}, "u") == 0,
                  error_);
  CHECK(scan({"--format", "csv"}, "u") == csv);
  REQUIRE(run({"dump", database_, "t"}) == 0);
  const std::string dump = file("dump", out_);
  database_ = directory_ + "/again";
  REQUIRE_MESSAGE(run({"restore", database_, dump}) == 0, error_);
  CHECK(scan({"--format", "csv"}) == csv);
}

TEST_CASE_METHOD(KeyTypesTest, "KeyTypesTest.WhatIsNoKey", "[KeyTypesTest]") {
  const std::string path = file("k.csv", cities);
  expect_load_refused(path, {"--header", "--key-type", "strin"}, 2,
                      "'strin' is no type of keys: give bytes, u8 to u64");
  expect_load_refused(path, {"--header", "--key-type", "string,u64?"}, 2, "is no type of keys");
  expect_load_refused(path, {"--header", "--key", "country", "--key-type", "string,i16"}, 2,
                      "--key names 1 columns, and keys of type string,i16 have 2: give as many");
  expect_load_refused(path, {"--header", "--key", "year,year", "--key-type", "i16,i16"}, 2,
                      "--key names a column twice");
  expect_load_refused(path, {"--header", "--key", "year", "--key-type", "u16"}, 3,
                      "k.csv:3: '-5' is no u16");
  expect_load_refused(path, {"--header", "--key", "year,city", "--key-type", "i8,string"}, 3,
                      "k.csv:2: key: '1999' is no i8");
  expect_load_refused(file("j.jsonl", "{\"a\":1,\"b\":null}\n"),
                      {"--key", "a,b", "--key-type", "i8,i8"}, 3,
                      "the field 'b' is neither a string nor a number");
  REQUIRE(load(path, {"--header", "--key", "country,year", "--key-type", "string,i16"}) == 0);
  expect_load_refused(path, {"--header", "--key", "country", "--key-type", "bytes"}, 2,
                      "table 't' has keys of type string,i16, not bytes");
  expect_refused({"dedup", path, "--key", "1", "--key-type", "u8,u8"}, 2,
                 "dedup knows rows by one column");
}

TEST_CASE_METHOD(KeyTypesTest, "KeyTypesTest.EachTypeSortsAsItIs", "[KeyTypesTest]") {
  struct Case {
    const char* type;
    std::vector<std::string> sorted;
    uint32_t width;
  };
  const Case cases[] = {
      {"u8", {"0", "9", "10", "255"}, 1},
      {"i8", {"-128", "-1", "0", "127"}, 1},
      {"u16", {"0", "9", "10", "65535"}, 2},
      {"i32", {"-2147483648", "-7", "0", "2147483647"}, 4},
      {"f32", {"-inf", "-1.5", "-0", "0", "1e-10", "2", "inf", "nan"}, 4},
      {"f64", {"-1e+300", "-1", "0", "0.1", "1e+300"}, 8},
      {"bool", {"false", "true"}, 1},
      {"date", {"0001-01-01", "1969-12-31", "1970-01-01", "9999-12-31"}, 4},
      {"timestamp[ms]",
       {"1950-01-01 00:00:00", "1969-12-31 23:59:59.999", "2030-06-01 12:00:00"},
       8},
      {"uuid",
       {"00000000-0000-0000-0000-000000000001", "7fffffff-0000-0000-0000-000000000000",
        "f0000000-0000-0000-0000-000000000000"},
       16},
      {"string", {"", "a", "a b", "\xC3\xA4"}, 0},
      {"bytes[2]", {"aa", "ab", "b\xFF"}, 2}};
  std::mt19937_64 random(test::seed());
  int table = 0;
  for (const Case& c : cases) {
    INFO(c.type);
    std::vector<std::string> shuffled = c.sorted;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    std::string rows, expected;
    for (const std::string& key : shuffled) rows += key + "\tv\n";
    for (const std::string& key : c.sorted) expected += key + "\tv\n";
    const std::string name = "t" + std::to_string(++table);
    REQUIRE_MESSAGE(
        load(file("r.tsv", rows), {"--key-type", c.type, "--allow-empty-key"}, name) == 0, error_);
    CHECK(scan({}, name) == expected);
    REQUIRE(run({"tables", database_, "--json"}) == 0);
    CHECK(out_.find("\"key_width\":" + std::to_string(c.width)) != std::string::npos);
    REQUIRE_MESSAGE(run({"get", database_, name, "--", c.sorted.back()}) == 0, error_);
    CHECK(out_ == c.sorted.back() + "\tv\n");
  }
}

}  // namespace
}  // namespace stride::cli

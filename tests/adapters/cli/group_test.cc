// group, beside a map of groups.
#include <cstring>
#include <map>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

template <class T>
std::string bytes_of(T x) {
  return std::string(reinterpret_cast<const char*>(&x), sizeof x);
}

class GroupTest : public CliFixture {
 protected:
  // Records of a key and a number.
  template <class T>
  void load_numbers(const std::map<std::string, T>& rows, const std::string& table,
                    const std::vector<std::string>& options = {}) {
    std::string records;
    for (const auto& [key, value] : rows)
      records += bytes_of(static_cast<uint32_t>(key.size())) +
                 bytes_of(static_cast<uint32_t>(sizeof value)) + key + bytes_of(value);
    std::vector<std::string> all = {"--format", "raw"};
    all.insert(all.end(), options.begin(), options.end());
    REQUIRE_MESSAGE(load(file(table + ".raw", records), all, table) == 0, error_);
  }
  std::string group(const std::string& table, const std::vector<std::string>& options) {
    std::vector<std::string> all = {"group", database_, table};
    all.insert(all.end(), options.begin(), options.end());
    CHECK_MESSAGE(run(all) == 0, error_);
    return out_;
  }
};

TEST_CASE_METHOD(GroupTest, "GroupTest.EveryType", "[GroupTest]") {
  load_numbers<int64_t>({{"aa", 1}, {"ab", -5}, {"b", INT64_MAX}}, "t");
  CHECK(group("t", {"--type", "i64", "--prefix-bytes", "1"}) ==
        "a\t2\t-4\nb\t1\t9223372036854775807\n");
  CHECK(group("t", {"--type", "i64", "--prefix-bytes", "1", "--min", "--max", "--sum", "--count",
                    "--to", "b"}) == "a\t2\t-4\t-5\t1\n");
  CHECK(group("t", {"--type", "i64", "--max"}) == "9223372036854775807\n");
  CHECK(group("t", {"--type", "i64", "--from", "c"}) == "");
  CHECK(group("t", {"--type", "i64", "--prefix", "a", "--json"}) == "{\"count\":2,\"sum\":-4}\n");
  CHECK(group("t", {"--type", "i64", "--prefix-bytes", "9", "--count", "--format", "csv"}) ==
        "aa,1\nab,1\nb,1\n");
  load_numbers<int32_t>({{"a", INT32_MIN}, {"b", INT32_MIN}}, "i");
  CHECK(group("i", {"--type", "i32", "--sum", "--min"}) == "-4294967296\t-2147483648\n");
  load_numbers<float>({{"a", 0.1f}, {"b", 0.25f}}, "f");
  CHECK(group("f", {"--type", "f32", "--sum", "--max", "--min"}) ==
        "0.3500000014901161\t0.1\t0.25\n");
  load_numbers<double>({{"a", 1e300}, {"b", -1.0 / 0.0}, {"c", 0.0 / 0.0}}, "d");
  CHECK(group("d", {"--type", "f64", "--prefix-bytes", "1"}) ==
        "a\t1\t1e+300\nb\t1\t-inf\nc\t1\tnan\n");
  CHECK(group("d", {"--type", "f64", "--min", "--sum", "--prefix-bytes", "1", "--json"}) ==
        "{\"key\":\"a\",\"sum\":1e+300,\"min\":1e+300}\n"
        "{\"key\":\"b\",\"sum\":null,\"min\":null}\n"
        "{\"key\":\"c\",\"sum\":null,\"min\":null}\n");
}

TEST_CASE_METHOD(GroupTest, "GroupTest.TablesOfNumbersHaveTheirType", "[GroupTest]") {
  const std::string rows = file("rows.tsv", "a\t1\nb\t-3\n");
  REQUIRE_MESSAGE(load(rows, {"--format", "tsv", "--numbers", "i32"}, "n") == 0, error_);
  CHECK(group("n", {}) == "2\t-2\n");
  REQUIRE_MESSAGE(load(rows, {"--format", "tsv"}, "plain") == 0, error_);
  CHECK(run({"group", database_, "plain"}) == 2);
  CHECK_MESSAGE(error_.find("--type i32, i64, f32 or f64") != std::string::npos, error_);
}

TEST_CASE_METHOD(GroupTest, "GroupTest.KeysOfEveryType", "[GroupTest]") {
  std::string key(8, '\0');
  std::map<std::string, int32_t> numbers;
  for (int i = 0; i < 3; ++i) {
    key[6] = static_cast<char>(i / 2);
    key[7] = static_cast<char>(i);
    numbers[key] = 10 + i;
  }
  load_numbers(numbers, "n", {"--key-type", "u64"});
  CHECK(group("n", {"--type", "i32", "--prefix-bytes", "8", "--sum"}) == "0\t10\n1\t11\n258\t12\n");
  CHECK(group("n", {"--type", "i32", "--prefix-bytes", "7", "--sum"}) ==
        "00000000000000\t21\n00000000000001\t12\n");
  CHECK(group("n", {"--type", "i32", "--prefix-bytes", "8", "--sum", "--json", "--from", "2"}) ==
        "{\"key\":258,\"sum\":12}\n");
  load_numbers<int32_t>({{std::string("\xFF,", 2), 1}, {"\xFF\"x", 2}}, "b");
  CHECK(group("b", {"--type", "i32", "--prefix-bytes", "2", "--sum", "--json"}) ==
        "{\"key_hex\":\"ff22\",\"sum\":2}\n{\"key_hex\":\"ff2c\",\"sum\":1}\n");
  CHECK(group("b", {"--type", "i32", "--prefix-bytes", "2", "--sum", "--format", "csv"}) ==
        "\"\xFF\"\"\",2\n\"\xFF,\",1\n");
}

TEST_CASE_METHOD(GroupTest, "GroupTest.RandomGroupsAreThoseOfAMap", "[GroupTest]") {
  std::mt19937_64 random(test::seed());
  std::map<std::string, int64_t> rows;
  for (int i = 0; i < 20'000; ++i)
    rows[std::to_string(random() % 1'000'000)] = static_cast<int64_t>(random() >> 8);
  load_numbers(rows, "t");
  for (uint64_t bytes : {1, 3, 6}) {
    std::map<std::string, std::pair<int64_t, int64_t>> groups;
    for (const auto& [key, value] : rows) {
      auto& [count, least] = groups.try_emplace(key.substr(0, bytes), 0, INT64_MAX).first->second;
      ++count;
      least = std::min(least, value);
    }
    std::string expected;
    for (const auto& [key, group] : groups)
      expected +=
          key + "\t" + std::to_string(group.first) + "\t" + std::to_string(group.second) + "\n";
    CHECK(group("t", {"--type", "i64", "--prefix-bytes", std::to_string(bytes), "--count", "--min",
                      "--threads", "2"}) == expected);
  }
}

TEST_CASE_METHOD(GroupTest, "GroupTest.WhatIsRefused", "[GroupTest]") {
  load_numbers<int64_t>({{"a1", INT64_MAX}, {"a2", 1}}, "t");
  expect_refused({"group", database_, "t", "--type", "i32"}, 2,
                 "table 't', key 'a1': a value of 8 bytes, which is no i32");
  expect_refused({"group", database_, "t", "--type", "i64"}, 2, "does not fit into 64 bits");
  expect_refused({"group", database_, "t"}, 2, "--type");
  expect_refused({"group", database_, "t", "--type", "u64"}, 2, "--type");
  expect_refused({"group", database_, "t", "--type", "i64", "--prefix-bytes", "-1"}, 2,
                 "--prefix-bytes");
  expect_refused({"group", database_, "none", "--type", "i64"}, 4, "none");
  expect_refused({"group", database_, "t", "--type", "i64", "--key-type", "u64", "--from", "x"}, 2,
                 "--from");
  REQUIRE(load(file("z.csv", "id,name,n\n1,a,5\n"), {"--header"}, "columns") == 0);
  for (const char* type : {"i32", "i64"})
    expect_refused({"group", database_, "columns", "--type", type}, 2,
                   "table 'columns' has columns (name string, n i64?), and group adds up tables of "
                   "numbers: load the key and one of them into another table");
  CHECK(run({"group", "--help"}) == 0);
  for (const char* option : {"--type", "--prefix-bytes", "--count", "--sum", "--min", "--max",
                             "--from", "--to", "--prefix", "--format", "--json", "--threads"})
    CHECK_MESSAGE(out_.find(option) != std::string::npos, option);
}

}  // namespace
}  // namespace stride::cli

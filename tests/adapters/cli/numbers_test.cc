// Tables of numbers: loading, adding to them, and how they are shown.
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class NumbersTest : public CliFixture {
 protected:
  nlohmann::json json() const { return nlohmann::json::parse(out_); }
  std::string get(const std::vector<std::string>& options, const std::string& table = "t") {
    std::vector<std::string> all = {"get", database_, table};
    all.insert(all.end(), options.begin(), options.end());
    CHECK_MESSAGE(run(all) == 0, error_);
    return out_;
  }
  std::string line_of(const std::string& name) const {
    size_t at = out_.find(name);
    return at == std::string::npos ? "" : out_.substr(at, out_.find('\n', at) - at);
  }
};

TEST_CASE_METHOD(NumbersTest, "NumbersTest.LoadsAndShowsThem", "[NumbersTest]") {
  struct {
    const char *type, *rows, *shown;
  } tables[] = {
      {"i32", "a\t-2147483648\nb\t2147483647\nc\t0\n", nullptr},
      {"i64", "a\t-9223372036854775808\nb\t9223372036854775807\nc\t007\n",
       "a\t-9223372036854775808\nb\t9223372036854775807\nc\t7\n"},
      {"f32", "a\t0.1\nb\t-inf\nc\t1e10\nd\tnan\n", "a\t0.1\nb\t-inf\nc\t1e+10\nd\tnan\n"},
      {"f64", "a\t0.1\nb\t5e-324\nc\t-0\nd\t3\n", nullptr},
  };
  for (const auto& table : tables) {
    INFO(table.type);
    std::string rows = table.shown ? table.shown : table.rows;
    REQUIRE_MESSAGE(load(file("rows.tsv", table.rows), {"--numbers", table.type}, table.type) == 0,
                    error_);
    CHECK(scan({}, table.type) == rows);
    CHECK(get({"c", "a"}, table.type) ==
          rows.substr(rows.find("c\t"), rows.find('\n', rows.find("c\t")) + 1 - rows.find("c\t")) +
              rows.substr(0, rows.find('\n') + 1));
    // What is printed can be read back, in all formats.
    for (const char* format : {"tsv", "csv", "jsonl", "raw"}) {
      std::string text = scan({"--format", format}, table.type), copy = directory_ + "/x." + format;
      std::vector<std::string> options = {"--numbers", table.type, "--format", format};
      if (format == std::string("jsonl"))
        options.insert(options.end(), {"--key", "key", "--value", "value"});
      std::string name = std::string(table.type) + format;
      REQUIRE_MESSAGE(load(file("rows", text), options, name) == 0, format << error_);
      CHECK_MESSAGE(scan({}, name) == rows, format);
    }
  }
  CHECK(scan({"--format", "jsonl"}, "f32") ==
        "{\"key\":\"a\",\"value\":0.1}\n{\"key\":\"b\",\"value\":\"-inf\"}\n"
        "{\"key\":\"c\",\"value\":1e+10}\n{\"key\":\"d\",\"value\":\"nan\"}\n");
  CHECK(get({"a", "zz", "--missing", "empty", "--format", "jsonl"}, "i32") ==
        "{\"key\":\"a\",\"value\":-2147483648}\n{\"key\":\"zz\",\"value\":null}\n");
  CHECK(get({"a", "zz", "--missing", "empty"}, "i32") == "a\t-2147483648\nzz\t\n");
  REQUIRE_MESSAGE(run({"join", database_, "i64", "-"}, "b\tx\nq\ty\n") == 0, error_);
  CHECK(out_ == "b\tx\t9223372036854775807\nq\ty\t\n");
  REQUIRE_MESSAGE(
      run({"join", database_, "i64", "-", "--format", "jsonl"}, "{\"key\":\"c\"}\n") == 0, error_);
  CHECK(out_ == "{\"key\":\"c\",\"value\":7}\n");
}

TEST_CASE_METHOD(NumbersTest, "NumbersTest.Accumulates", "[NumbersTest]") {
  std::string day1 = file("day1.tsv", "home\t1\nabout\t2\nhome\t3\n");
  std::string day2 = file("day2.tsv", "home\t10\nnew\t-5\n");
  REQUIRE_MESSAGE(load(day1, {"--accumulate"}) == 0, error_);
  CHECK_MESSAGE(error_.find("loaded 3 rows") != std::string::npos, error_);
  CHECK(scan() == "about\t2\nhome\t4\n");
  REQUIRE_MESSAGE(run({"load", database_, "t", day1, day2, "--accumulate"}) == 0, error_);
  CHECK(scan() == "about\t4\nhome\t18\nnew\t-5\n");
  // Without the option rows are put.
  REQUIRE_MESSAGE(load(day2) == 0, error_);
  CHECK(scan() == "about\t4\nhome\t10\nnew\t-5\n");
  REQUIRE_MESSAGE(load(day2, {"--accumulate", "--commit-every", "1", "--numbers", "i64"}) == 0,
                  error_);
  CHECK(scan() == "about\t4\nhome\t20\nnew\t-10\n");
  REQUIRE_MESSAGE(run({"tables", database_}) == 0, error_);
  CHECK_MESSAGE(out_.substr(out_.size() - 4) == "i64\n", out_);

  REQUIRE_MESSAGE(
      load(file("f", "a\t0.5\na\t0.25\n"), {"--accumulate", "--numbers", "f32"}, "floats") == 0,
      error_);
  CHECK(scan({}, "floats") == "a\t0.75\n");
  REQUIRE_MESSAGE(load(file("p", "10.0.0.0/8\t1\n10.1.0.0/16\t2\n10.0.0.0/8\t5\n"),
                       {"--accumulate", "--key-type", "prefix"}, "nets") == 0,
                  error_);
  for (std::vector<std::string> options : {std::vector<std::string>{}, {"--keys", "-"}}) {
    std::vector<std::string> all = {"match", database_, "nets"};
    if (options.empty()) options = {"10.1.2.3", "10.2.3.4"};
    all.insert(all.end(), options.begin(), options.end());
    REQUIRE_MESSAGE(run(all, "10.1.2.3\n10.2.3.4\n") == 0, error_);
    CHECK(out_ == "10.1.2.3\t10.1.0.0/16\t2\n10.2.3.4\t10.0.0.0/8\t6\n");
  }
  REQUIRE_MESSAGE(run({"match", database_, "nets", "10.1.2.3", "--json"}) == 0, error_);
  CHECK(json()["value"] == 2);
}

TEST_CASE_METHOD(NumbersTest, "NumbersTest.SumsThatDoNotFit", "[NumbersTest]") {
  std::string much = file("much", "a\t2147483647\n"), one = file("one", "b\t1\na\t1\n");
  for (const char* table : {"error", "wrap"}) {
    std::vector<std::string> options = {"--accumulate", "--numbers", "i32"};
    if (table == std::string("wrap")) options.push_back("--wrap");
    REQUIRE_MESSAGE(load(much, options, table) == 0, error_);
  }
  code_ = load(one, {"--accumulate"}, "error");
  expect_error(code_, "table 'error', key 'a': the sum is 2147483648, which does not fit i32");
  CHECK(code_ != 0);
  CHECK(scan({}, "error") == "a\t2147483647\n");
  REQUIRE_MESSAGE(load(one, {"--accumulate"}, "wrap") == 0, error_);
  CHECK(scan({}, "wrap") == "a\t-2147483648\nb\t1\n");
  // Keys are told as they are written.
  const std::string typed = file("typed", "-5\t2147483647\n-5\t1\n");
  code_ = load(typed, {"--accumulate", "--numbers", "i32", "--key-type", "i64"}, "typed");
  expect_error(code_, "table 'typed', key '-5': the sum is 2147483648, which does not fit i32");
}

TEST_CASE_METHOD(NumbersTest, "NumbersTest.BadNumbersAreToldByTheirLine", "[NumbersTest]") {
  struct {
    const char *type, *value, *message;
  } bad[] = {
      {"i32", "2147483648", "is no number from -2147483648 to 2147483647"},
      {"i64", "9223372036854775808", "to 9223372036854775807"},
      {"i64", "1.5", "value '1.5' is no number"},
      {"i64", "", "value '' is no number"},
      {"i64", "+1", "value '+1' is no number"},
      {"i64", " 1", "value ' 1' is no number"},
      {"i64", "1\t2", "is no number"},
      {"f32", "1e39", "value '1e39' is no number that f32 can hold"},
      {"f64", "1,5", "value '1,5' is no number that f64 can hold"},
      {"f64", "x", "f64"},
  };
  for (const auto& b : bad) {
    std::string input = file("bad.tsv", "a\t1\nb\t" + std::string(b.value) + "\nc\t3\n");
    expect_load_refused(input, {"--numbers", b.type}, 3, input + ":2: ");
    CHECK_MESSAGE(error_.find(b.message) != std::string::npos, error_);
    REQUIRE_MESSAGE(load(input, {"--numbers", b.type, "--max-rejects", "1"}, b.type) == 0, error_);
    CHECK(scan({}, b.type) == "a\t1\nc\t3\n");
  }
  std::string raw("\x01\0\0\0\x03\0\0\0a123", 12);
  expect_load_refused(file("bad.raw", raw), {"--numbers", "i32", "--format", "raw"}, 3,
                      "the value has 3 bytes, and a number of type i32 has 4");
  std::string json = file("bad.jsonl", "{\"key\":\"a\",\"n\":\"1\"}\n{\"key\":\"b\",\"n\":true}\n");
  expect_load_refused(json, {"--numbers", "i32", "--value", "n"}, 3,
                      ":2: value 'true' is no number");
}

TEST_CASE_METHOD(NumbersTest, "NumbersTest.OptionsThatDoNotFit", "[NumbersTest]") {
  std::string input = file("a.tsv", "a\t1\n");
  REQUIRE_MESSAGE(load(input, {}, "plain") == 0, error_);
  REQUIRE_MESSAGE(load(input, {"--numbers", "i32"}) == 0, error_);
  REQUIRE_MESSAGE(load(input, {"--numbers", "i32"}) == 0, error_);
  for (const char* option : {"--accumulate", "--numbers=i64"})
    expect_refused({"load", database_, "plain", input, option}, 2,
                   "table 'plain' is no table of numbers");
  expect_load_refused(input, {"--numbers", "f32"}, 2, "has numbers of type i32, not f32");
  expect_load_refused(input, {"--wrap"}, 2, "was made without --wrap");
  expect_refused({"load", database_, "new", input, "--wrap"}, 2, "--wrap is for tables of");
  expect_refused({"load", database_, "new", input, "--wrap", "--numbers", "f64"}, 2,
                 "--wrap is for tables of");
  expect_refused({"load", database_, "new", input, "--numbers", "f16"}, 2, "f16");
  expect_load_refused(input, {"--accumulate", "--on-duplicate", "first"}, 2, "--on-duplicate");
  expect_load_refused(input, {"--accumulate", "--format", "jsonl"}, 2, "--value");
}

TEST_CASE_METHOD(NumbersTest, "NumbersTest.ADumpKeepsThem", "[NumbersTest]") {
  std::string input = file("a.tsv", "a\t1\nb\t-2\n"), nets = file("n.tsv", "10.0.0.0/8\t1.5\n");
  REQUIRE_MESSAGE(load(input, {"--accumulate", "--wrap"}) == 0, error_);
  REQUIRE_MESSAGE(load(input, {"--numbers", "i32", "--share-equal-values"}, "ints") == 0, error_);
  REQUIRE_MESSAGE(load(nets, {"--numbers", "f64", "--key-type", "prefix"}, "nets") == 0, error_);
  REQUIRE_MESSAGE(load(input, {}, "plain") == 0, error_);
  REQUIRE_MESSAGE(run({"dump", database_}) == 0, error_);
  std::string dump = out_;
  database_ = directory_ + "/copy";
  REQUIRE_MESSAGE(run({"restore", database_, "-"}, dump) == 0, error_);
  CHECK(scan() == "a\t1\nb\t-2\n");
  CHECK(scan({}, "nets") == "10.0.0.0/8\t1.5\n");
  REQUIRE_MESSAGE(run({"stats", database_}) == 0, error_);
  CHECK(line_of("t.numbers") == "t.numbers\ti64 wrap");
  CHECK(line_of("ints.numbers") == "ints.numbers\ti32");
  CHECK(line_of("nets.numbers") == "nets.numbers\tf64");
  CHECK(line_of("nets.address_bits") == "nets.address_bits\t32");
  CHECK(line_of("plain.numbers") == "");
  REQUIRE_MESSAGE(run({"tables", database_, "--json"}) == 0, error_);
  for (const auto& table : json()) {
    CHECK(table.contains("numbers") == (table["table"] != "plain"));
    CHECK(table.contains("overflow") == (table["table"] == "t"));
  }
  REQUIRE_MESSAGE(run({"explain", database_, "t"}) == 0, error_);
  CHECK_MESSAGE(out_.find("values are i64 wrap") != std::string::npos, out_);
  REQUIRE_MESSAGE(load(input, {"--accumulate"}) == 0, error_);
  CHECK(scan() == "a\t2\nb\t-4\n");
}

}  // namespace
}  // namespace stride::cli

// What load says of keys that come again, and loads of keys alone.
#include <map>
#include <random>
#include <set>

#include "adapters/cli/text/with_commas.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::cli {
namespace {

class DuplicatesTest : public CliFixture {
 public:
  bool says(const std::string& text) const { return error_.find(text) != std::string::npos; }
};

constexpr const char* remedy =
    " already: give --on-duplicate last or first to keep one row of each key, or another --key";

TEST_CASE_METHOD(DuplicatesTest, "DuplicatesTest.ANewTableRefusesThem", "[DuplicatesTest]") {
  const std::string path = file("zip.tsv", "NY\t00501\nMA\t01001\nNY\t00544\n");
  expect_load_refused(path, {}, 3,
                      path + ":3: key 'NY' of table 't' is in " + path + ":1" + remedy);
  REQUIRE_MESSAGE(load(path, {"--on-duplicate", "last"}) == 0, error_);
  CHECK_MESSAGE(says(": 2 new keys, 1 row replaced another one of the same key"), error_);
  CHECK(scan() == "MA\t01001\nNY\t00544\n");
}

TEST_CASE_METHOD(DuplicatesTest, "DuplicatesTest.ATableThatIsThereTakesThem", "[DuplicatesTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "a\t1\nb\t1\n")) == 0, error_);
  CHECK_MESSAGE(says(": 2 new keys"), error_);
  CHECK_FALSE(says("replaced"));
  REQUIRE_MESSAGE(load(file("b.tsv", "b\t2\nc\t2\nb\t3\n"), {"--json"}) == 0, error_);
  CHECK(out_.find("\"new_keys\":1") != std::string::npos);
  CHECK_MESSAGE(says(": 1 new key, 2 rows replaced another one of the same key"), error_);
  CHECK(scan() == "a\t1\nb\t3\nc\t2\n");
  REQUIRE_MESSAGE(load(file("c.tsv", "c\t4\nd\t4\nd\t5\n"), {"--on-duplicate", "first"}) == 0,
                  error_);
  CHECK_MESSAGE(says(": 1 new key, 1 row left out whose key came before, 1 left out whose keys "
                     "were there"),
                error_);
  CHECK(scan() == "a\t1\nb\t3\nc\t2\nd\t4\n");
}

// More rows than are looked at before the commit, which then says what it found.
TEST_CASE_METHOD(DuplicatesTest, "DuplicatesTest.ManyRows", "[DuplicatesTest]") {
  std::string rows;
  for (int i = 0; i < 70'000; ++i) rows += std::to_string(i * 7919 % 1'000'003) + "\tx\n";
  const std::string path = file("a.tsv", rows), again = file("b.tsv", rows + "63352\ty\n");
  REQUIRE_MESSAGE(load(file("one.tsv", "a\tb\n"), {}, "one") == 0, error_);
  expect_load_refused(again, {}, 3,
                      again + ":70001: key '63352' of table 't' is in " + again + ":9" + remedy);
  REQUIRE_MESSAGE(load(path) == 0, error_);
  CHECK_MESSAGE(says(": 70,000 new keys\n"), error_);
  REQUIRE_MESSAGE(load(again) == 0, error_);
  CHECK_MESSAGE(says(": 0 new keys, 70,001 rows replaced"), error_);
  CHECK(load(again, {"--on-duplicate", "last"}, "u") == 0);
  CHECK_MESSAGE(says(": 70,000 new keys, 1 row replaced"), error_);
  REQUIRE(run({"get", database_, "u", "63352"}) == 0);
  CHECK(out_ == "63352\ty\n");
}

// An interrupted load into a new table goes on refusing.
TEST_CASE_METHOD(DuplicatesTest, "DuplicatesTest.ResumedLoads", "[DuplicatesTest]") {
  const std::string path = file("a.tsv", "a\t1\nb\t1\nc\t1\na\t2\n");
  const std::vector<std::string> parts = {"--commit-every", "2", "--block-bytes", "4"};
  CHECK(load(path, parts) == 3);
  CHECK_MESSAGE(says("key 'a' is in table 't' already"), error_);
  CHECK(scan() == "a\t1\nb\t1\n");
  std::vector<std::string> resumed = parts;
  resumed.push_back("--resume");
  CHECK(load(path, resumed) == 3);
  CHECK_MESSAGE(says("key 'a' is in table 't' already"), error_);
  CHECK(scan() == "a\t1\nb\t1\n");
}

TEST_CASE_METHOD(DuplicatesTest, "DuplicatesTest.Replace", "[DuplicatesTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "a\t1\nb\t1\nc\t1\n")) == 0, error_);
  const std::string twice = file("t.tsv", "b\t1\nb\t2\n");
  expect_load_refused(twice, {"--replace"}, 3, "t.tsv:2: key 'b' of table 't' is in ");
  expect_load_refused(file("bad.tsv", "b\t1\nx\n"), {"--replace"}, 3, "bad.tsv:2: too few columns");
  REQUIRE_MESSAGE(load(file("b.tsv", "b\t2\nd\t2\n"), {"--replace"}) == 0, error_);
  CHECK_MESSAGE(says(": 2 new keys\n"), error_);
  CHECK(scan() == "b\t2\nd\t2\n");
  std::string rows;
  for (int i = 0; i < 5; ++i) rows += std::string(1, static_cast<char>('p' + i)) + "\tv\n";
  REQUIRE_MESSAGE(
      load(file("c.tsv", rows), {"--replace", "--commit-every", "2", "--block-bytes", "4"}) == 0,
      error_);
  CHECK(scan() == rows);
  REQUIRE_MESSAGE(load(file("d.tsv", "10.0.0.0/8\t1\n11.0.0.0/8\t1\n"),
                       {"--key-type", "prefix", "--replace"}, "p") == 0,
                  error_);
  REQUIRE_MESSAGE(load(file("e.tsv", "11.0.0.0/8\t2\n"), {"--replace"}, "p") == 0, error_);
  CHECK(scan({}, "p") == "11.0.0.0/8\t2\n");
}

TEST_CASE_METHOD(DuplicatesTest, "DuplicatesTest.FilesOfOneColumnAreKeys", "[DuplicatesTest]") {
  REQUIRE_MESSAGE(load(file("words.txt", "pear\napple\nfig")) == 0, error_);
  CHECK(scan() == "apple\t\nfig\t\npear\t\n");
  REQUIRE_MESSAGE(load(file("words.csv", "\"a,b\"\r\nc\r\n"), {}, "csv") == 0, error_);
  CHECK(scan({"--format", "csv"}, "csv") == "\"a,b\",\nc,\n");
  REQUIRE_MESSAGE(load(file("head.tsv", "word\nx\n"), {"--header"}, "head") == 0, error_);
  CHECK(scan({}, "head") == "x\t\n");
  expect_load_refused(file("ragged.txt", "a\nb\tc\n"), {}, 3,
                      "ragged.txt:2: too many columns: 2, and the first row has 1");
  expect_load_refused(file("short.txt", "b\tc\na\n"), {}, 3,
                      "short.txt:2: too few columns: 1, and 2 are needed");
}

TEST_CASE_METHOD(DuplicatesTest, "DuplicatesTest.CountsOfRows", "[DuplicatesTest]") {
  const std::string words = file("words.txt", "b\na\nb\nb\n");
  REQUIRE_MESSAGE(load(words, {"--count"}) == 0, error_);
  CHECK_MESSAGE(says(": 2 new keys, 2 rows added to keys that were there"), error_);
  CHECK(scan() == "a\t1\nb\t3\n");
  REQUIRE_MESSAGE(load(file("more.tsv", "b\tx\ty\nc\n"), {"--count"}) == 0, error_);
  CHECK(scan() == "a\t1\nb\t4\nc\t1\n");
  REQUIRE_MESSAGE(load(file("j.jsonl", "{\"w\":\"q\",\"v\":2}\n{\"w\":\"q\"}\n"),
                       {"--count", "--key", "w", "--numbers", "f64"}, "j") == 0,
                  error_);
  CHECK(scan({}, "j") == "q\t2\n");
  REQUIRE_MESSAGE(load(file("z.csv", "zip,state\n1,NY\n2,MA\n3,NY\n"),
                       {"--header", "--key", "state", "--count"}, "z") == 0,
                  error_);
  CHECK(scan({}, "z") == "MA\t1\nNY\t2\n");
  for (const char* other : {"--accumulate", "--value=2"})
    expect_load_refused(words, {"--count", other}, 2, "leave --value and --accumulate out");
  expect_load_refused(words, {"--count", "--on-duplicate", "first"}, 2,
                      "--count adds all rows: leave --on-duplicate out");
}

// Keys that come often, seldom, or only now and then often; rows that are refused between them; and
// a table that has some of the keys.
TEST_CASE_METHOD(DuplicatesTest, "DuplicatesTest.CountsOfManyRowsAreThoseOfAMap",
                 "[DuplicatesTest]") {
  std::mt19937_64 random(test::seed());
  for (const char* numbers : {"i32", "i64", "f32"}) {
    for (const uint64_t kinds : {3u, 5000u, 40'000u, 1'000'000u}) {
      if (test::under_sanitizer && random() % 2) continue;
      const bool fixed = random() % 2;
      const std::string table = std::string(numbers) + "-" + std::to_string(kinds);
      INFO(table << (fixed ? ", fixed" : ""));
      std::map<std::string, uint64_t> times;
      for (int round = 0; round < 2; ++round) {
        std::string text;
        uint64_t bad = 0;
        const uint64_t rows = 70'000 + random() % 40'000;
        for (uint64_t row = 0; row < rows; ++row) {
          const uint64_t kind = row > 60'000 && random() % 2 ? row : random() % kinds;
          std::string key = std::to_string(kind * 7919 % 1'000'003);
          if (fixed) key = std::string(8 - key.size(), '0') + key;
          if (random() % 1000 == 0) {
            key.clear();
            ++bad;
          } else {
            ++times[key];
          }
          text += key + (random() % 2 ? "\tx\n" : "\ty\n");
        }
        std::vector<std::string> options = {"--count", "--numbers", numbers, "--rejects",
                                            directory_ + "/rejects"};
        if (fixed) options.insert(options.end(), {"--key-width", "8"});
        if (random() % 2) options.insert(options.end(), {"--commit-every", "66000"});
        REQUIRE_MESSAGE(load(file("rows.tsv", text), options, table) == 0, error_);
        CHECK_MESSAGE(says("loaded " + with_commas(rows - bad) + " rows"), error_);
      }
      std::string expected;
      for (const auto& [key, n] : times) expected += key + "\t" + std::to_string(n) + "\n";
      REQUIRE(scan({}, table) == expected);
    }
  }
}

TEST_CASE_METHOD(DuplicatesTest, "DuplicatesTest.RandomLoadsAreThoseOfAMap", "[DuplicatesTest]") {
  std::mt19937_64 random(test::seed());
  std::map<std::string, std::string> map;
  for (int round = 0; round < 12; ++round) {
    const uint64_t count = round % 4 == 3 ? 66'000 : random() % 300;
    std::string rows;
    uint64_t fresh = 0;
    for (uint64_t i = 0; i < count; ++i) {
      std::string key = std::to_string(random() % (count * 2)), value = std::to_string(random());
      rows += key + "\t" + value + "\n";
      fresh += map.insert_or_assign(key, value).second;
    }
    REQUIRE_MESSAGE(load(file("a.tsv", rows), {"--on-duplicate", "last", "--json"}) == 0, error_);
    CHECK(out_.find("\"new_keys\":" + std::to_string(fresh) + ",") != std::string::npos);
  }
  std::string all;
  for (const auto& [key, value] : map) all += key + "\t" + value + "\n";
  CHECK((scan() == all));
}

}  // namespace
}  // namespace stride::cli

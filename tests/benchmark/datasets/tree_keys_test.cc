// Keys are distinct, queries are hits as often as asked, and misses are not there.
#include "benchmark/datasets/tree_keys.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::benchmark {
namespace {

std::vector<std::string> rows_of(const KeyColumn& column) {
  std::vector<std::string> rows;
  for (uint64_t i = 0; i < column.size; ++i) rows.emplace_back(as_text(column[i]));
  return rows;
}

TEST_CASE("ScrambleTest.DistinctNumbersStayDistinct", "[ScrambleTest]") {
  for (unsigned bits : {8u, 16u}) {
    Scramble scramble(bits, test::seed());
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < uint64_t{1} << bits; ++i) {
      CHECK(scramble(i) < uint64_t{1} << bits);
      CHECK_MESSAGE(seen.insert(scramble(i)).second, i);
    }
  }
}

TEST_CASE("ScrambleTest.SpreadsNumbersEvenly", "[ScrambleTest]") {
  for (unsigned bits : {24u, 32u, 64u}) {
    Scramble scramble(bits, test::seed());
    std::vector<int> buckets(256);
    for (uint64_t i = 0; i < 256'000; ++i) ++buckets[scramble(i) >> (bits - 8)];
    // Each has 1000 on average, with a standard deviation of 32.
    CHECK_MESSAGE(*std::min_element(buckets.begin(), buckets.end()) > 750, bits);
    CHECK_MESSAGE(*std::max_element(buckets.begin(), buckets.end()) < 1250, bits);
  }
}

TEST_CASE("ParseKeyKindTest.Kinds", "[ParseKeyKindTest]") {
  CHECK(parse_key_kind("u32")->width == 4u);
  CHECK(parse_key_kind("u64")->width == 8u);
  CHECK(parse_key_kind("fixed:17")->width == 17u);
  CHECK(parse_key_kind("words")->width == 0u);
  for (const char* text : {"", "u16", "fixed", "fixed:", "fixed:x", "fixed:-1", "absent.txt"}) {
    CHECK_MESSAGE(parse_key_kind(text).status().code() == StatusCode::invalid_argument, text);
  }
}

class TreeKeysTest {
 protected:
  ~TreeKeysTest() { std::remove(path_.c_str()); }

  KeyKind lines(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return *parse_key_kind(path_);
  }
  // Lines of one to four letters, many of them repeated, and every letter a key.
  KeyKind dense_lines() {
    std::mt19937_64 random(test::seed());
    std::string text;
    for (int i = 0; i < 256; ++i) {
      if (i != '\n' && i != '\r') text += std::string(1, static_cast<char>(i)) + "\n";
    }
    for (int i = 0; i < 20'000; ++i) {
      for (uint64_t n = random() % 4 + 1; n > 0; --n) text += static_cast<char>('a' + random() % 8);
      text += "\n";
    }
    return lines(text);
  }
  TreeKeys make(const KeyKind& kind, uint64_t keys) {
    Result<TreeKeys> made = TreeKeys::make(kind, keys, test::seed(), &*parallel_);
    CHECK_OK(made);
    return std::move(*made);
  }
  OwnedColumn draw(const TreeKeys& keys, double hit_rate, bool sorted) {
    Result<OwnedColumn> drawn = keys.draw_queries(
        {.queries = 40'000, .hit_rate = hit_rate, .sorted = sorted, .seed = test::seed()},
        &*parallel_);
    CHECK_OK(drawn);
    return std::move(*drawn);
  }

  std::optional<Parallel> parallel_{std::in_place, 3u};
  std::string path_ = std::filesystem::temp_directory_path().string() + "/stride-keys-" +
                      std::to_string(getpid()) + ".txt";
};

TEST_CASE_METHOD(TreeKeysTest, "TreeKeysTest.KeysAreDistinctAndSortedOnes", "[TreeKeysTest]") {
  for (const KeyKind& kind :
       {*parse_key_kind("u32"), *parse_key_kind("u64"), *parse_key_kind("fixed:3"),
        *parse_key_kind("fixed:7"), *parse_key_kind("fixed:8"), *parse_key_kind("fixed:21"),
        dense_lines()}) {
    TreeKeys keys = make(kind, kind.width ? 50'000 : 0);
    std::vector<std::string> shuffled = rows_of(keys.shuffled());
    CHECK_MESSAGE(!std::is_sorted(shuffled.begin(), shuffled.end()), kind.name);
    std::sort(shuffled.begin(), shuffled.end());
    CHECK_MESSAGE(std::adjacent_find(shuffled.begin(), shuffled.end()) == shuffled.end(),
                  kind.name);
    CHECK_MESSAGE(rows_of(keys.sorted().view()) == shuffled, kind.name);
    CHECK(keys.size() == shuffled.size());
    if (kind.width) CHECK(keys.size() == 50'000u);
  }
}

TEST_CASE_METHOD(TreeKeysTest, "TreeKeysTest.QueriesHitAsOftenAsAsked", "[TreeKeysTest]") {
  for (const KeyKind& kind :
       {*parse_key_kind("u32"), *parse_key_kind("u64"), *parse_key_kind("fixed:2"),
        *parse_key_kind("fixed:40"), dense_lines()}) {
    TreeKeys keys = make(kind, kind.width ? 30'000 : 0);
    for (double hit_rate : {0.0, 0.25, 1.0}) {
      std::vector<std::string> queries = rows_of(draw(keys, hit_rate, false).view());
      double hits = static_cast<double>(std::count_if(
          queries.begin(), queries.end(),
          [&](const std::string& query) { return keys.sorted().contains(as_bytes(query)); }));
      double tolerance = hit_rate == 0 || hit_rate == 1 ? 0 : 800;  // 9 standard deviations
      CHECK_MESSAGE(std::abs(hits - hit_rate * 40'000) <= tolerance, kind.name);
      std::set<std::string> different(queries.begin(), queries.end());
      CHECK_MESSAGE(different.size() > (keys.size() < 10'000 ? 1000u : 10'000u), kind.name);
      std::sort(queries.begin(), queries.end());
      CHECK_MESSAGE(rows_of(draw(keys, hit_rate, true).view()) == queries, kind.name);
    }
  }
}

TEST_CASE_METHOD(TreeKeysTest, "TreeKeysTest.ThreadsMakeNoDifference", "[TreeKeysTest]") {
  for (const KeyKind& kind : {*parse_key_kind("fixed:9"), dense_lines()}) {
    std::vector<std::string> keys[2], queries[2];
    for (unsigned one : {0u, 1u}) {
      parallel_.reset();  // TBB allows no more threads than the least of all limits
      parallel_.emplace(one ? 1 : 3);
      TreeKeys made = make(kind, 20'000);
      keys[one] = rows_of(made.shuffled());
      queries[one] = rows_of(draw(made, 0.5, false).view());
    }
    CHECK(keys[0] == keys[1]);
    CHECK(queries[0] == queries[1]);
  }
}

TEST_CASE_METHOD(TreeKeysTest, "TreeKeysTest.OtherSeedsGiveOtherKeys", "[TreeKeysTest]") {
  KeyKind u64 = *parse_key_kind("u64");
  CHECK(rows_of(TreeKeys::make(u64, 100, 1, &*parallel_)->shuffled()) !=
        rows_of(TreeKeys::make(u64, 100, 2, &*parallel_)->shuffled()));
}

TEST_CASE_METHOD(TreeKeysTest, "TreeKeysTest.TheFirstDistinctLines", "[TreeKeysTest]") {
  KeyKind kind = lines("b\n\na\r\nb\nccc\ndd\n");
  auto sorted = [&](uint64_t keys) { return rows_of(make(kind, keys).sorted().view()); };
  CHECK(sorted(0) == (std::vector<std::string>{"a", "b", "ccc", "dd"}));
  CHECK(sorted(3) == (std::vector<std::string>{"a", "b", "ccc"}));
  CHECK(sorted(9) == sorted(0));
  CHECK_MESSAGE(make(kind, 2).shuffled().width == 1u, "of one width");
  CHECK_FALSE(make(kind, 3).shuffled().is_fixed());
}

TEST_CASE_METHOD(TreeKeysTest, "TreeKeysTest.AllKeysOfAWidth", "[TreeKeysTest]") {
  KeyKind kind = *parse_key_kind("fixed:1");
  TreeKeys all = make(kind, 256);
  CHECK(rows_of(draw(all, 1, true).view()).front() == std::string(1, '\0'));
  CHECK(all.draw_queries({.queries = 10, .hit_rate = 0.9}, &*parallel_).status().code() ==
        StatusCode::invalid_argument);
  CHECK(TreeKeys::make(kind, 257, 1, &*parallel_).status().code() == StatusCode::invalid_argument);
  TreeKeys nearly = make(kind, 255);
  std::vector<std::string> misses = rows_of(draw(nearly, 0, false).view());
  CHECK(std::set<std::string>(misses.begin(), misses.end()).size() == 1u);
}

TEST_CASE_METHOD(TreeKeysTest, "TreeKeysTest.FilesThatHoldNoKeys", "[TreeKeysTest]") {
  KeyKind kind = lines("\n\n");
  Status empty = TreeKeys::make(kind, 0, 1, &*parallel_).status();
  CHECK(empty.code() == StatusCode::invalid_argument);
  CHECK(empty.file() == path_);
  lines("short\n" + std::string(70'000, 'x'));
  CHECK(TreeKeys::make(kind, 0, 1, &*parallel_).status().code() == StatusCode::invalid_argument);
  std::remove(path_.c_str());
  CHECK(TreeKeys::make(kind, 0, 1, &*parallel_).status().code() == StatusCode::not_found);
}

TEST_CASE_METHOD(TreeKeysTest, "TreeKeysTest.HalvesAreRoundedUp", "[TreeKeysTest]") {
  KeyKind kind = lines("abc\nd\nabcdef\n");
  TreeKeys keys = make(kind, 0);
  CHECK(rows_of(halves(keys.sorted().view(), false, &*parallel_).view()) ==
        (std::vector<std::string>{"ab", "abc", "d"}));
  const char fixed[] = "cdeab.";
  CHECK(rows_of(halves(KeyColumn::fixed(fixed, 3, 2), true, &*parallel_).view()) ==
        (std::vector<std::string>{"ab", "cd"}));
}

}  // namespace
}  // namespace stride::benchmark

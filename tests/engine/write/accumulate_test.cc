// Numbers that are added to what keys have.
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/prefixes.h"
#include "tests/engine/write/accumulate_numbers.h"
#include "tests/engine/write/write_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

class AccumulateTest : public WriteFixture {
 protected:
  Table make(const std::string& name, TableOptions options = {.numbers = NumberType::i64}) {
    auto table = db_->create_table(name, options);
    CHECK_OK(table);
    return *table;
  }
  std::map<std::string, int64_t> sums(const Table& table) {
    std::map<std::string, int64_t> result;
    for (auto& [key, value] : read_table(*db_, table)) result[key] = number_from<int64_t>(value);
    return result;
  }
  static Status add(WriteTransaction& t, const Table& table, const Keys& keys,
                    const std::vector<int64_t>& deltas) {
    return t.accumulate(table, Rows(keys).column(), deltas);
  }
};

using Sums = std::map<std::string, int64_t>;

TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.AddsToWhatIsThereAndToNothing",
                 "[AccumulateTest]") {
  Table table = make("t");
  for (int i = 1; i <= 3; ++i) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(add(t, table, {"a", "b", "a", "a"}, {1, -10, 2, 3}));
    REQUIRE_OK(t.accumulate(table, "c", 0));
    CHECK(t.staged_rows() == 5u);
    REQUIRE_OK(t.commit());
    CHECK(sums(table) == (Sums{{"a", 6 * i}, {"b", -10 * i}, {"c", 0}}));
    CHECK(db_->tables()[0].rows == 3u * i);
  }
  reopen();
  table = *db_->open_table("t");
  CHECK(table.numbers() == NumberType::i64);
  CHECK(table.overflow() == Overflow::error);
  REQUIRE_OK(db_->compact());
  CHECK(sums(table) == (Sums{{"a", 18}, {"b", -30}, {"c", 0}}));
}

TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.CallsCountInTheirOrder", "[AccumulateTest]") {
  Table table = make("t");
  WriteTransaction before = db_->begin();
  for (const char* key :
       {"added", "erased", "put", "ranged", "ranged then", "then erased", "untouched"})
    REQUIRE_OK(before.put(table, key, bytes_of(int64_t{100})));
  REQUIRE_OK(before.commit());
  WriteTransaction t = db_->begin();
  REQUIRE_OK(add(t, table, {"added", "put", "erased", "ranged", "then erased"},
                 {1, INT64_MAX, INT64_MAX, 1, 1}));
  REQUIRE_OK(add(t, table, {"new then put", "ranged new", "zz"}, {7, 7, 7}));
  REQUIRE_OK(t.put(table, "put", bytes_of(int64_t{5})));
  REQUIRE_OK(t.put(table, "new then put", bytes_of(int64_t{6})));
  REQUIRE_OK(t.erase(table, "erased"));
  REQUIRE_OK(t.erase_range(table, as_bytes("ranged"), as_bytes("s")));
  REQUIRE_OK(add(t, table, {"erased", "put", "ranged then", "erased"}, {1, 1, 1, 1}));
  REQUIRE_OK(t.erase(table, "then erased"));
  std::vector<uint64_t> was_new(1);
  Rows absent({"added", "then erased", "zz", "absent"});
  std::vector<int64_t> values = {-1, -2, -3, -4};
  REQUIRE_OK(t.put_if_absent(table, absent.column(), column_of(values), was_new));
  REQUIRE_OK(t.commit());
  CHECK(sums(table) == (Sums{{"absent", -4},
                             {"added", 101},
                             {"erased", 2},
                             {"new then put", 6},
                             {"put", 6},
                             {"ranged then", 1},
                             {"then erased", -2},
                             {"untouched", 100},
                             {"zz", 7}}));
  CHECK(was_new[0] == 0b1010u);
}

TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.AnyKeys", "[AccumulateTest]") {
  const Keys keys = keys_of_all_kinds();
  Table table = make("t");
  std::vector<int64_t> ones(keys.size(), 1);
  for (int64_t round = 1; round <= 3; ++round) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(add(t, table, keys, ones));
    REQUIRE_OK(add(t, table, keys, ones));
    REQUIRE_OK(t.commit());
    Sums expected;
    for (const std::string& key : keys) expected[key] = 2 * round;
    CHECK(sums(table) == expected);
    reopen();
    table = *db_->open_table("t");
  }
}

TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.WhatIsRefused", "[AccumulateTest]") {
  Table plain = make("plain", {}),
        ints = make("ints", {.key_width = 2, .numbers = NumberType::i32}),
        doubles = make("doubles", {.numbers = NumberType::f64});
  WriteTransaction t = db_->begin();
  auto refused = [&](Status s, std::initializer_list<const char*> mentions) {
    CHECK_MESSAGE(s.code() == StatusCode::invalid_argument, s.to_string());
    for (const char* m : mentions)
      CHECK_MESSAGE(s.to_string().find(m) != std::string::npos, m << " in " << s.to_string());
    CHECK_MESSAGE(!s.remedy().empty(), s.to_string());
  };
  Rows ab({"aa", "bb"});
  refused(add(t, plain, {"a"}, {1}), {"plain", "bytes", "TableOptions::numbers"});
  refused(t.accumulate(plain, "a", 1), {"plain", "TableOptions::numbers"});
  refused(t.put(ints, "aa", "12345"), {"ints", "5", "i32", "of 4"});
  refused(t.put(ints, ab.column(), Rows({"1234", "123"}).column()), {"row 1", "3", "ints", "of 4"});
  refused(t.put(ints, ab.column(), Rows({"", "1234"}).column()), {"row 0", "0 bytes"});
  std::vector<int64_t> wide = {1, 2};
  std::vector<uint64_t> was_new(1);
  refused(t.put(ints, ab.column(), column_of(wide)), {"8 bytes", "ints"});
  refused(t.put_view(ints, ab.column(), column_of(wide)), {"8 bytes", "ints"});
  refused(t.put_if_absent(ints, ab.column(), column_of(wide), was_new), {"8 bytes", "ints"});
  refused(t.accumulate(ints, ab.column(), column_of(wide)), {"8 bytes", "ints"});
  refused(t.accumulate(ints, ab.column(), wide), {"i64", "ints", "i32"});
  refused(t.accumulate(doubles, ab.column(), wide), {"i64", "doubles", "f64"});
  refused(t.accumulate(doubles, "a", 1), {"doubles", "f64"});
  refused(t.accumulate(ints, "aa", int64_t{1} << 31), {"ints", "i32", "2147483648"});
  CHECK(t.accumulate(ints, "a", 1).code() == StatusCode::invalid_argument);  // key's width
  CHECK(add(t, doubles, {"a"}, {1, 2}).code() == StatusCode::invalid_argument);
  CHECK(t.accumulate(Table(), "a", 1).code() == StatusCode::invalid_argument);
  CHECK(t.staged_rows() == 0u);
  REQUIRE_OK(t.accumulate(doubles, Column(), Column()));
  REQUIRE_OK(t.commit());
  CHECK(t.accumulate(ints, "aa", 1).code() == StatusCode::closed);

  for (NumberType type : {NumberType::f16, NumberType::bf16, static_cast<NumberType>(77)})
    refused(db_->create_table("bad", {.numbers = type}).status(), {"i32, i64, f32 or f64"});
  for (NumberType type : {NumberType::none, NumberType::f32})
    refused(db_->create_table("bad", {.numbers = type, .overflow = Overflow::wrap}).status(),
            {"wrap"});
  refused(db_->open_or_create_table("ints", {.key_width = 2}).status(), {"i32", "bytes"});
  refused(db_->open_or_create_table(
                 "ints", {.key_width = 2, .numbers = NumberType::i32, .overflow = Overflow::wrap})
              .status(),
          {"ints", "wrap"});
  CHECK_OK(db_->open_or_create_table("ints", {.key_width = 2, .numbers = NumberType::i32}));
}

TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.SumsThatDoNotFit", "[AccumulateTest]") {
  for_each_type([&](auto type, TableOptions options) {
    using T = decltype(type);
    if constexpr (std::is_integral_v<T>) {
      INFO(name_of(options));
      constexpr T min = std::numeric_limits<T>::min(), max = std::numeric_limits<T>::max();
      Table table = make(name_of(options), options);
      auto commit = [&](const Keys& keys, const std::vector<T>& deltas) {
        WriteTransaction t = db_->begin();
        Status s = t.put(table, "beside", bytes_of(T{1}));
        if (s.ok()) s = t.accumulate(table, Rows(keys).column(), deltas);
        return s.ok() ? t.commit() : s;
      };
      auto value = [&](const char* key) {
        auto found = db_->snapshot().get(table, key);
        return found->has_value() ? std::optional<T>(number_from<T>(**found)) : std::nullopt;
      };
      // Only the sum has to fit.
      REQUIRE_OK(commit({"a", "a", "a", "b", "b", "b", "b"}, {max, max, min, min, min, max, 1}));
      CHECK(value("a") == max - 1);
      CHECK(value("b") == min);
      REQUIRE_OK(commit({"a", "c"}, {1, min}));
      CHECK(value("a") == max);
      CHECK(value("c") == min);
      bool wraps = options.overflow == Overflow::wrap;
      Status s = commit({"d", "a"}, {1, 1});
      CHECK(s.ok() == wraps);
      CHECK(value("a") == (wraps ? min : max));
      CHECK(value("d") == (wraps ? std::optional<T>(1) : std::nullopt));
      if (!wraps) {
        CHECK(s.code() == StatusCode::invalid_argument);
        for (std::string m : {std::string("'a'"), name_of(options),
                              std::string(sizeof(T) == 4 ? "2147483648" : "9223372036854775808")})
          CHECK_MESSAGE(s.message().find(m) != std::string::npos, s.to_string());
        CHECK_FALSE(s.remedy().empty());
        std::string odd("\x01'\\\xFF", 4);
        s = commit({odd, odd}, {min, min});
        CHECK_MESSAGE(s.message().find("0x01275cff") != std::string::npos, s.to_string());
        CHECK_MESSAGE(s.message().find(sizeof(T) == 4 ? "-4294967296" : "-18446744073709551616") !=
                          std::string::npos,
                      s.to_string());
      } else {
        REQUIRE_OK(commit({"c", "c", "c"}, {min, min, -1}));
        CHECK(value("c") == max);
      }
    }
  });
}

TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.EqualRowsOnly", "[AccumulateTest]") {
  Table table = make("t", {.key_width = 3, .numbers = NumberType::i32});
  constexpr uint64_t rows = 150'000;
  std::string keys;
  for (uint64_t i = 0; i < rows; ++i) keys += "key";
  std::vector<int32_t> deltas(rows, 7);
  for (int32_t round = 1; round <= 2; ++round) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.accumulate(table, Column::fixed(keys.data(), 3, rows), deltas));
    REQUIRE_OK(t.commit());
    CHECK(read_table(*db_, table) == (Model{{"key", bytes_of(round * 7 * int32_t{rows})}}));
  }
}

TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.PrefixTables", "[AccumulateTest]") {
  Table table = make("t", {.address_bits = 32, .numbers = NumberType::i64});
  std::string net = {10, 0, 0, 0, 8}, inner = {10, 1, 0, 0, 16}, bad = {10, 1, 0, 0, 8};
  for (int64_t round = 1; round <= 2; ++round) {
    WriteTransaction t = db_->begin();
    CHECK(t.accumulate(table, bad, 1).code() == StatusCode::invalid_argument);
    REQUIRE_OK(add(t, table, {net, inner, net}, {1, 2, 3}));
    REQUIRE_OK(t.commit());
    auto found = db_->snapshot().match(table, as_bytes(std::string{10, 1, 2, 3}));
    REQUIRE((found.ok() && found->has_value()));
    CHECK(number_from<int64_t>((*found)->value) == 2 * round);
    CHECK(sums(table)[net] == 4 * round);
  }
}

TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.DroppedTablesAndClosedDatabases",
                 "[AccumulateTest]") {
  Table table = make("t"), other = make("u");
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.accumulate(table, "a", 1));
  REQUIRE_OK(t.accumulate(other, "a", 1));
  REQUIRE_OK(db_->drop_table("u"));
  CHECK(t.commit().code() == StatusCode::not_found);
  CHECK(sums(table) == Sums());
  WriteTransaction late = db_->begin();
  REQUIRE_OK(late.accumulate(table, "a", INT64_MAX));
  REQUIRE_OK(late.accumulate(table, "a", INT64_MAX));
  REQUIRE_OK(db_->close());
  CHECK(late.commit().code() == StatusCode::closed);
}

TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.ThreadsOfOneTransactionAddUp",
                 "[AccumulateTest]") {
  Table table = make("t");
  constexpr int threads = 4, calls = 30;
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(table, "0", bytes_of(int64_t{1000})));
  t.hand_over();
  TestThreads pool;
  for (int w = 0; w < threads; ++w)
    pool.start([&, w] {
      for (int c = 0; c < calls; ++c) {
        CHECK_OK(t.accumulate(table, std::to_string(c % 3), 1 + w));
        CHECK_OK(t.put(table, "own " + std::to_string(w), bytes_of(int64_t{c})));
        CHECK_OK(t.accumulate(table, "own " + std::to_string(w), 5));
      }
    });
  pool.join();
  REQUIRE_OK(t.commit());
  Sums expected = {{"0", 1100}, {"1", 100}, {"2", 100}};
  for (int w = 0; w < threads; ++w) expected["own " + std::to_string(w)] = calls + 4;
  CHECK(sums(table) == expected);
}

// Many rows of few and of many keys, in several commits, by reference to arrays.
TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.ManyRows", "[AccumulateTest]") {
  std::mt19937_64 random(seed());
  for (uint32_t width : {8u, 0u, 3u, 20u}) {
    for (uint64_t keys : {uint64_t{10}, uint64_t{100'000}}) {
      INFO(std::to_string(width) + " bytes, " + std::to_string(keys));
      Table table = make(std::to_string(width) + " " + std::to_string(keys),
                         {.key_width = width, .numbers = NumberType::i64});
      constexpr uint64_t rows = smaller_under_tsan(250'000, 100'000);
      std::vector<int64_t> model(keys);
      uint32_t key_bytes = width ? width : 5;
      std::vector<std::byte> all_keys(rows * key_bytes);
      std::vector<int64_t> deltas(rows);
      for (int commit = 0; commit < 3; ++commit) {
        // Small ones take one sum, large ones two.
        int shift = commit == 1 ? 16 : 50;
        for (uint64_t i = 0; i < rows; ++i) {
          uint64_t key = random() % keys;
          std::memcpy(&all_keys[i * key_bytes], &key, std::min(key_bytes, 8u));
          deltas[i] = static_cast<int64_t>(random()) >> shift;
          model[key] += deltas[i];
        }
        KeyColumn column = Column::fixed(all_keys.data(), key_bytes, rows);
        WriteTransaction t = db_->begin();
        for (uint64_t first = 0; first < rows;) {
          uint64_t n = std::min(random() % 2 ? random() % 100 : random() % 100'000, rows - first);
          const auto part = std::span<const int64_t>(deltas).subspan(first, n);
          if (random() % 2) {
            REQUIRE_OK(t.accumulate(table, column.slice(first, n), part));
          } else {
            REQUIRE_OK(t.accumulate_view(table, column.slice(first, n),
                                         Column::fixed(part.data(), sizeof(int64_t), n)));
          }
          first += n;
        }
        REQUIRE_OK(t.commit());
      }
      auto got = sums(table);
      for (uint64_t key = 0; key < keys; ++key) {
        auto found = got.find(bytes_of(key).substr(0, 3) + std::string(key_bytes - 3, '\0'));
        REQUIRE_MESSAGE((found == got.end() ? 0 : found->second) == model[key], key);
      }
      REQUIRE_OK(db_->verify());
    }
  }
}

// Views among other changes, which end what comes before them, and sums that do not fit.
TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.ViewsAmongOtherChanges", "[AccumulateTest]") {
  std::mt19937_64 random(seed());
  Table table = make("t", {.numbers = NumberType::i32});
  Table bytes = make("bytes", {});
  std::map<std::string, int64_t> model;
  for (int commit = 0; commit < 12; ++commit) {
    std::vector<Rows> kept;
    std::vector<std::vector<int32_t>> numbers;
    kept.reserve(8);
    auto after = model;
    WriteTransaction t = db_->begin();
    for (uint64_t part = commit == 0 ? 1 : random() % 6; part > 0; --part) {
      const std::string key = "k" + std::to_string(random() % 300);
      const int kind = commit == 0 ? 3 : static_cast<int>(random() % 6);
      if (kind == 0) {
        REQUIRE_OK(t.put(table, key, bytes_of(int32_t{7})));
        after[key] = 7;
      } else if (kind == 1) {
        REQUIRE_OK(t.erase(table, key));
        after.erase(key);
      } else if (kind == 2) {
        REQUIRE_OK(t.erase_range(table, as_bytes("k1"), as_bytes("k2")));
        after.erase(after.lower_bound("k1"), after.lower_bound("k2"));
      } else {
        kept.emplace_back();
        numbers.emplace_back(3000 + random() % 4000);
        for (int32_t& n : numbers.back()) {
          const std::string its_key = "k" + std::to_string(random() % 300);
          n = static_cast<int32_t>(random()) >> 12;
          kept.back().add(its_key);
          after[its_key] += n;
        }
        REQUIRE_OK(t.accumulate_view(table, kept.back().column(), column_of(numbers.back())));
      }
    }
    REQUIRE_OK(t.commit());
    model = std::move(after);
    std::map<std::string, int64_t> got;
    for (auto& [key, value] : read_table(*db_, table)) got[key] = number_from<int32_t>(value);
    REQUIRE(got == model);
  }
  Rows keys(Keys(5000, "large"));
  std::vector<int32_t> deltas(5000, 1 << 20);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.accumulate_view(table, keys.column(), column_of(deltas)));
  Status s = t.commit();
  CHECK(s.code() == StatusCode::invalid_argument);
  CHECK(s.message().find("large") != std::string::npos);
  WriteTransaction other = db_->begin();
  CHECK(other.accumulate_view(bytes, keys.column(), column_of(deltas)).code() ==
        StatusCode::invalid_argument);
}

// Whichever call fails, nothing of the commit is there.
TEST_CASE("AccumulateFailureTest.EveryCallMayFail", "[AccumulateFailureTest]") {
  const std::string one = bytes_of(int64_t{1}), two = bytes_of(int64_t{2}),
                    five = bytes_of(int64_t{5}), six = bytes_of(int64_t{6});
  FailingCommit{.options = {.numbers = NumberType::i64},
                .before = {{"t", {{"b", five}}}, {"u", {}}},
                .after = {{"t", {{"a", two}, {"b", six}}}, {"u", {{"x", one}}}},
                .change =
                    [](WriteTransaction& t, const Table& table, const Table& other) {
                      for (const char* key : {"a", "b", "a"})
                        STRIDE_TRY(t.accumulate(table, key, 1));
                      return t.accumulate(other, "x", 1);
                    }}
      .run();
}

}  // namespace
}  // namespace stride::test

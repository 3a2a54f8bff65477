// Tables of numbers, rows that are put where their key is absent, and what commits report.
#include <cstring>
#include <map>
#include <random>

#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class CNumbersTest : public CTest {
 protected:
  stride_table* create(const char* name, int numbers, int overflow = STRIDE_OVERFLOW_ERROR) {
    stride_table_options o;
    REQUIRE_C_OK(stride_table_options_init(&o, sizeof o));
    o.numbers = numbers;
    o.overflow = overflow;
    stride_table* table = nullptr;
    REQUIRE_C_OK(stride_table_create_with(db_, name, &o, &table));
    return table;
  }
  stride_transaction* begin() {
    stride_transaction* t = nullptr;
    REQUIRE_C_OK(stride_begin(db_, &t));
    return t;
  }
  void commit(stride_transaction* t) { REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT)); }
  template <class T>
  T number(stride_table* table, const std::string& key) {
    stride_bytes value{};
    T n{};
    REQUIRE_C_OK(stride_get_one(snapshot(), table, key.data(), key.size(), &value));
    REQUIRE(value.size == sizeof n);
    std::memcpy(&n, value.data, sizeof n);
    return n;
  }

  std::mt19937_64 random_{seed()};
};

// Sums of several commits, after reopening, beside a map.
template <class T>
void expect_sums(stride_table* table, stride_database* db, std::mt19937_64& random, int type,
                 std::map<std::string, T>* model) {
  for (int round = 0; round < 3; ++round) {
    Strings keys(500);
    std::vector<T> deltas(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = "k" + std::to_string(random() % 100);
      deltas[i] = static_cast<T>(static_cast<int64_t>(random() % 2001) - 1000);
      (*model)[keys[i]] += deltas[i];
    }
    CRows rows(keys);
    stride_column column = rows.column();
    stride_transaction* t;
    REQUIRE_C_OK(stride_begin(db, &t));
    REQUIRE_C_OK(stride_accumulate(t, table, &column, type, deltas.data()));
    REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  }
}

TEST_CASE_METHOD(CNumbersTest, "CNumbersTest.SumsAreThoseOfAMap", "[CNumbersTest]") {
  auto expect = [&](auto zero, const char* name, int type) {
    using T = decltype(zero);
    stride_table* table = create(name, type);
    std::map<std::string, T> model;
    expect_sums<T>(table, db_, random_, type, &model);
    CHECK_C_OK(stride_table_release(table));
    REQUIRE_C_OK(stride_table_open(db_, name, &table));
    int numbers = -1, overflow = -1;
    CHECK_C_OK(stride_table_numbers(table, &numbers, &overflow));
    CHECK(numbers == type);
    CHECK(overflow == STRIDE_OVERFLOW_ERROR);
    for (const auto& [key, sum] : model) CHECK(number<T>(table, key) == sum);
    CHECK(scan(table).size() == model.size());
    CHECK_C_OK(stride_table_release(table));
  };
  expect(int32_t{}, "i32", STRIDE_NUMBERS_I32);
  expect(int64_t{}, "i64", STRIDE_NUMBERS_I64);
  expect(float{}, "f32", STRIDE_NUMBERS_F32);
  expect(double{}, "f64", STRIDE_NUMBERS_F64);
}

TEST_CASE_METHOD(CNumbersTest, "CNumbersTest.SumsThatDoNotFit", "[CNumbersTest]") {
  stride_table* strict = create("strict", STRIDE_NUMBERS_I64);
  stride_table* wraps = create("wraps", STRIDE_NUMBERS_I64, STRIDE_OVERFLOW_WRAP);
  for (stride_table* table : {strict, wraps}) {
    stride_transaction* t = begin();
    REQUIRE_C_OK(stride_accumulate_one(t, table, "k", 1, INT64_MAX));
    commit(t);
  }
  stride_transaction* t = begin();
  REQUIRE_C_OK(stride_accumulate_one(t, strict, "k", 1, 1));
  CHECK_C_ERROR(stride_commit(t, STRIDE_DURABILITY_DEFAULT), invalid, "strict");
  CHECK(number<int64_t>(strict, "k") == INT64_MAX);
  t = begin();
  REQUIRE_C_OK(stride_accumulate_one(t, wraps, "k", 1, 1));
  commit(t);
  CHECK(number<int64_t>(wraps, "k") == INT64_MIN);
  CHECK_C_OK(stride_table_release(strict));
  CHECK_C_OK(stride_table_release(wraps));
}

TEST_CASE_METHOD(CNumbersTest, "CNumbersTest.WhatIsRefused", "[CNumbersTest]") {
  stride_table* table = create("n", STRIDE_NUMBERS_I32);
  stride_table* floats = create("f", STRIDE_NUMBERS_F64);
  stride_transaction* t = begin();
  stride_column key = {"k", nullptr, 1, 1}, none = {nullptr, nullptr, 0, 0};
  int32_t small = 1;
  double real = 1;
  CHECK_C_ERROR(stride_accumulate(t, table, &key, STRIDE_NUMBERS_F64, &real), invalid, "i32");
  CHECK_C_ERROR(stride_accumulate(t, table_, &key, STRIDE_NUMBERS_I32, &small), invalid, "'t'");
  CHECK_C_ERROR(stride_accumulate(t, table, &key, STRIDE_NUMBERS_I32, nullptr), invalid, "deltas");
  CHECK_C_ERROR(stride_accumulate(t, table, nullptr, STRIDE_NUMBERS_I32, &small), invalid, "keys");
  for (int type : {-1, int{STRIDE_NUMBERS_NONE}, 5})
    CHECK_C_ERROR(stride_accumulate(t, table, &key, type, &small), invalid, "STRIDE_NUMBERS_");
  CHECK_C_OK(stride_accumulate(t, table, &none, STRIDE_NUMBERS_I32, nullptr));
  CHECK_C_ERROR(stride_accumulate_one(t, table, "k", 1, int64_t{1} << 40), invalid, "i32");
  CHECK_C_ERROR(stride_accumulate_one(t, floats, "k", 1, 1), invalid, "f64");
  CHECK_C_ERROR(stride_accumulate_one(t, table, nullptr, 1, 1), invalid, "key is NULL");
  CHECK_C_ERROR(stride_put_one(t, table, "k", 1, "123", 3), invalid, "n");
  commit(t);
  CHECK(scan(table).empty());
  stride_table_options o;
  stride_table* other;
  for (auto member : {&stride_table_options::numbers, &stride_table_options::overflow}) {
    for (int wrong : {-1, 5}) {
      REQUIRE_C_OK(stride_table_options_init(&o, sizeof o));
      o.*member = wrong;
      CHECK_C_ERROR(stride_table_create_with(db_, "x", &o, &other), invalid, "possible");
    }
  }
  REQUIRE_C_OK(stride_table_options_init(&o, sizeof o));
  o.reserved = 1;
  CHECK_C_ERROR(stride_table_create_with(db_, "x", &o, &other), invalid, "reserved");
  o.reserved = 0;
  CHECK(stride_table_open_or_create_with(db_, "n", &o, &other) == invalid);
  CHECK(other == nullptr);
  CHECK_C_OK(stride_table_release(table));
  CHECK_C_OK(stride_table_release(floats));
}

// A program that was compiled before tables had numbers.
TEST_CASE_METHOD(CNumbersTest, "CNumbersTest.OlderOptions", "[CNumbersTest]") {
  struct {
    size_t size;
    uint32_t key_width, address_bits;
  } old = {sizeof old, 4, 0};
  stride_table* table;
  REQUIRE_C_OK(stride_table_create_with(
      db_, "old", reinterpret_cast<const stride_table_options*>(&old), &table));
  int numbers = -1;
  CHECK_C_OK(stride_table_numbers(table, &numbers, nullptr));
  CHECK(numbers == STRIDE_NUMBERS_NONE);
  CHECK_C_OK(stride_table_release(table));
  stride_table* sums = create("sums", STRIDE_NUMBERS_F32);
  stride_tables* list;
  stride_table_info info{sizeof info};
  REQUIRE_C_OK(stride_table_list(db_, &list));
  REQUIRE_C_OK(stride_tables_get(list, 2, &info));
  CHECK(std::string(info.name) == "sums");
  CHECK(info.numbers == STRIDE_NUMBERS_F32);
  CHECK(info.share_equal_values == 0);
  CHECK_C_OK(stride_tables_release(list));
  CHECK_C_OK(stride_table_release(sums));
}

TEST_CASE_METHOD(CNumbersTest, "CNumbersTest.PutIfAbsent", "[CNumbersTest]") {
  put(table_, {"there"}, {"old"});
  Strings keys(130);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = "k" + std::to_string(i % 100);
  keys[7] = "there";
  CRows rows(keys);
  stride_column column = rows.column(), one = {"x", nullptr, 1, 1};
  uint64_t was_new[3] = {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}};
  stride_transaction* t = begin();
  CHECK_C_ERROR(stride_put_if_absent(t, table_, nullptr, &column, was_new), invalid, "keys");
  CHECK_C_ERROR(stride_put_if_absent(t, table_, &column, nullptr, was_new), invalid, "values");
  CHECK(stride_put_if_absent(t, table_, &column, &one, was_new) == invalid);
  REQUIRE_C_OK(stride_put_if_absent(t, table_, &column, &column, was_new));
  CHECK((was_new[0] | was_new[1] | was_new[2]) == 0u);
  REQUIRE_C_OK(stride_put_if_absent(t, table_, &one, &one, nullptr));
  commit(t);
  std::map<std::string, int> seen{{"there", 1}};
  for (size_t i = 0; i < keys.size(); ++i)
    CHECK_MESSAGE(bit(was_new, i) == (seen[keys[i]]++ == 0), i);
  CHECK(was_new[2] >> 2 == 0u);
  stride_bytes value;
  CHECK_C_OK(stride_get_one(snapshot(), table_, "there", 5, &value));
  CHECK(std::string(static_cast<const char*>(value.data), value.size) == "old");
}

TEST_CASE_METHOD(CNumbersTest, "CNumbersTest.CommitReports", "[CNumbersTest]") {
  stride_table* sums = create("sums", STRIDE_NUMBERS_I64);
  stride_transaction* t = begin();
  Strings keys = {"a", "b", "a", "c"};
  CRows rows(keys);
  stride_column column = rows.column();
  const int64_t deltas[] = {1, 2, 3, 4};
  REQUIRE_C_OK(stride_put(t, table_, &column, &column));
  REQUIRE_C_OK(stride_accumulate(t, sums, &column, STRIDE_NUMBERS_I64, deltas));
  REQUIRE_C_OK(stride_accumulate_one(t, sums, "d", 1, 1));
  stride_commit_report* report;
  REQUIRE_C_OK(stride_commit_with(t, nullptr, &report));
  uint64_t n = 77;
  CHECK_C_OK(stride_commit_report_size(report, &n));
  CHECK(n == 2u);
  const char* name = nullptr;
  CHECK_C_OK(stride_commit_report_get(report, 1, &name, &n));
  CHECK(std::string(name) == "t");
  CHECK(n == 3u);
  CHECK_C_OK(stride_commit_report_get(report, 0, &name, nullptr));
  CHECK(std::string(name) == "sums");
  CHECK_C_ERROR(stride_commit_report_get(report, 2, &name, &n), invalid, "no table 2");
  CHECK_C_OK(stride_commit_report_keys(report, "sums", &n));
  CHECK(n == 4u);
  CHECK_C_OK(stride_commit_report_keys(report, "none", &n));
  CHECK(n == 0u);
  CHECK_C_ERROR(stride_commit_report_keys(report, nullptr, &n), invalid, "table is NULL");
  CHECK_C_ERROR(stride_commit_report_keys(report, "t", nullptr), invalid, "keys is NULL");
  CHECK_C_ERROR(stride_commit_report_size(report, nullptr), invalid, "size is NULL");
  CHECK_C_OK(stride_commit_report_release(report));
  CHECK(stride_commit_report_size(report, &n) == invalid);
  CHECK(number<int64_t>(sums, "a") == 4);
  CHECK_C_OK(stride_table_release(sums));
}

TEST_CASE_METHOD(CNumbersTest, "CNumbersTest.EqualKeysRefused", "[CNumbersTest]") {
  stride_commit_options o;
  CHECK_C_ERROR(stride_commit_options_init(nullptr, sizeof o), invalid, "NULL");
  CHECK_C_ERROR(stride_commit_options_init(&o, 8), invalid, "16");
  REQUIRE_C_OK(stride_commit_options_init(&o, sizeof o));
  CHECK(o.durability == STRIDE_DURABILITY_DEFAULT);
  o.refuse_equal_keys = 1;
  stride_commit_report* report = reinterpret_cast<stride_commit_report*>(1);
  for (bool twice : {true, false}) {
    stride_transaction* t = begin();
    REQUIRE_C_OK(stride_put_one(t, table_, "same", 4, "1", 1));
    REQUIRE_C_OK(stride_put_one(t, table_, twice ? "same" : "else", 4, "2", 1));
    if (twice) {
      CHECK_C_ERROR(stride_commit_with(t, &o, &report), STRIDE_ALREADY_EXISTS, "same");
      CHECK(report == nullptr);
      CHECK(scan(table_).empty());
    } else {
      o.durability = 3;  // the handle stays
      CHECK_C_ERROR(stride_commit_with(t, &o, nullptr), invalid, "durability 3");
      o.durability = STRIDE_DURABILITY_FLUSH;
      CHECK_C_OK(stride_commit_with(t, &o, nullptr));
      CHECK(scan(table_) == (Strings{"else", "same"}));
    }
    CHECK_C_ERROR(stride_commit_with(t, &o, nullptr), invalid, "released");
  }
}

// A commit with a report makes a run, however few its rows are, and so is watched.
TEST_CASE_METHOD(CNumbersTest, "CNumbersTest.ACommitIsWatchedAndEnded", "[CNumbersTest]") {
  struct Seen {
    int calls = 0, goes_on = 0;
    stride_commit_progress last{};
  } seen;
  stride_commit_options o;
  REQUIRE_C_OK(stride_commit_options_init(&o, sizeof o));
  CHECK(o.progress == nullptr);
  o.refuse_equal_keys = 1;
  o.progress = [](const stride_commit_progress* progress, void* context) {
    auto* s = static_cast<Seen*>(context);
    s->last = *progress;
    ++s->calls;
    return s->goes_on;
  };
  o.progress_context = &seen;
  const std::string value(1 << 20, 'v');
  for (int goes_on : {0, 1}) {
    seen.goes_on = goes_on;
    stride_transaction* t = begin();
    for (int i = 0; i < 32; ++i)
      REQUIRE_C_OK(stride_put_one(t, table_, &i, sizeof i, value.data(), value.size()));
    if (goes_on) {
      CHECK_C_OK(stride_commit_with(t, &o, nullptr));
      CHECK(scan(table_).size() == 32u);
    } else {
      CHECK_C_ERROR(stride_commit_with(t, &o, nullptr), STRIDE_CANCELLED, "cancelled");
      CHECK(seen.calls == 1);
      CHECK(scan(table_).empty());
    }
    CHECK(seen.last.size == sizeof seen.last);
    CHECK(seen.last.total_rows == 32u);
    CHECK(seen.last.total_bytes >= 32u << 20);
    CHECK(seen.last.share <= 1);
  }
  // A program that was compiled before there was a callback.
  constexpr size_t old_size = offsetof(stride_commit_options, progress);
  REQUIRE_C_OK(stride_commit_options_init(&o, old_size));
  const int calls = seen.calls;
  stride_transaction* t = begin();
  REQUIRE_C_OK(stride_put_one(t, table_, "a", 1, "b", 1));
  CHECK_C_OK(stride_commit_with(t, &o, nullptr));
  CHECK(seen.calls == calls);
}

}  // namespace
}  // namespace stride::test

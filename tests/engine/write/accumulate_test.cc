// Numbers that are added to what keys have, beside a map that does it one by one.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <optional>
#include <thread>

#include "engine/prefixes.h"
#include "gpu/backend.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_rows.h"
#include "tests/support/random_tables.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

__extension__ using Wide = __int128;
using Keys = std::vector<std::string>;

template <class T>
std::string bytes(T number) {
  std::string b(sizeof number, '\0');
  std::memcpy(b.data(), &number, sizeof number);
  return b;
}
template <class T>
T number(std::string_view b) {
  T n;
  CHECK(b.size() == sizeof n);
  std::memcpy(&n, b.data(), sizeof n);
  return n;
}
template <class T>
T number(Bytes b) {
  return number<T>(as_text(b));
}
template <class T>
Column column(const std::vector<T>& numbers) {
  return Column::fixed(numbers.data(), sizeof(T), numbers.size());
}

// Calls test with a number of each type that a table may have.
template <class Test>
void for_each_type(const Test& test) {
  for (bool wrap : {false, true}) {
    test(int32_t{}, TableOptions{.numbers = NumberType::i32,
                                 .overflow = wrap ? Overflow::wrap : Overflow::error});
    test(int64_t{}, TableOptions{.numbers = NumberType::i64,
                                 .overflow = wrap ? Overflow::wrap : Overflow::error});
  }
  test(float{}, TableOptions{.numbers = NumberType::f32});
  test(double{}, TableOptions{.numbers = NumberType::f64});
}

std::string name_of(const TableOptions& options) {
  return std::string(to_string(options.numbers)) +
         (options.overflow == Overflow::wrap ? " wrap" : "");
}

// What the calls of a transaction make of a table.
template <class T>
class Changes {
 public:
  Changes(const Model& before, const TableOptions& options) : before_(before), options_(options) {}

  void put(const std::string& key, T value) { keys_[key] = {Kind::put, value, {}}; }
  void erase(const std::string& key) { keys_[key] = {Kind::erased, T{}, {}}; }
  void erase_range(const std::string& from, const std::string& to) {
    if (from >= to) return;
    auto first = before_.lower_bound(from), last = before_.lower_bound(to);
    for (; first != last; ++first) erase(first->first);
    auto mine = keys_.lower_bound(from), end = keys_.lower_bound(to);
    for (; mine != end; ++mine) mine->second = {Kind::erased, T{}, {}};
  }
  void add(const std::string& key, T delta) { keys_[key].deltas.push_back(delta); }
  void put_if_absent(const std::string& key, T value) { absent_.emplace_back(key, value); }

  // Nothing where a sum does not fit.
  std::optional<Model> finish() {
    Model after = before_;
    std::vector<T> sources, sums;
    std::vector<uint32_t> targets;
    Keys of_sums;
    for (auto& [key, change] : keys_) {
      if (change.kind == Kind::put) after[key] = bytes(change.value);
      if (change.kind == Kind::erased) after.erase(key);
      if (change.deltas.empty()) continue;
      T base{};
      if (auto found = after.find(key); found != after.end()) base = number<T>(found->second);
      for (T delta : change.deltas) {
        sources.push_back(delta);
        targets.push_back(static_cast<uint32_t>(of_sums.size()));
      }
      of_sums.push_back(key);
      sums.push_back(base);
      if constexpr (std::is_integral_v<T>) {
        Wide sum = base;
        for (T delta : change.deltas) sum += delta;
        bool fits = sum >= std::numeric_limits<T>::min() && sum <= std::numeric_limits<T>::max();
        if (!fits && options_.overflow == Overflow::error) return std::nullopt;
        sums.back() = static_cast<T>(static_cast<unsigned long long>(sum));
      }
    }
    if constexpr (std::is_floating_point_v<T>) {
      auto backend = Backend::host(1);
      Status s = backend->scatter().apply(
          Numbers::of(std::span<const T>(sources)), Indexes::of(targets),
          MutableNumbers::of(std::span<T>(sums)), {.mode = ScatterMode::reproducible});
      CHECK_OK(s);
    }
    for (size_t i = 0; i < sums.size(); ++i) after[of_sums[i]] = bytes(sums[i]);
    for (auto& [key, value] : absent_) after.emplace(key, bytes(value));
    return after;
  }

 private:
  enum class Kind { stored, put, erased };
  struct Change {
    Kind kind = Kind::stored;
    T value{};
    std::vector<T> deltas;
  };
  const Model& before_;
  const TableOptions& options_;
  std::map<std::string, Change> keys_;
  std::vector<std::pair<std::string, T>> absent_;
};

Model read(const Database& db, const Table& table) {
  Model model;
  auto it = db.snapshot().iterate(table);
  for (; it->valid(); it->next()) model[text(it->key())] = text(it->value());
  return model;
}

class AccumulateTest {
 protected:
  AccumulateTest() { reopen(); }
  void reopen() {
    db_.reset();
    Options options;
    options.file_system = &files_;
    options.threads = 2;
    db_ = std::move(*Database::open("/db", options));
  }
  Table make(const std::string& name, TableOptions options = {.numbers = NumberType::i64}) {
    auto table = db_->create_table(name, options);
    CHECK_OK(table);
    return *table;
  }
  std::map<std::string, int64_t> sums(const Table& table) {
    std::map<std::string, int64_t> result;
    for (auto& [key, value] : read(*db_, table)) result[key] = number<int64_t>(value);
    return result;
  }
  static Status add(WriteTransaction& t, const Table& table, const Keys& keys,
                    const std::vector<int64_t>& deltas) {
    return t.accumulate(table, Rows(keys).column(), deltas);
  }

  MemoryFileSystem files_;
  std::unique_ptr<Database> db_;
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
    REQUIRE_OK(before.put(table, key, bytes(int64_t{100})));
  REQUIRE_OK(before.commit());
  WriteTransaction t = db_->begin();
  REQUIRE_OK(add(t, table, {"added", "put", "erased", "ranged", "then erased"},
                 {1, INT64_MAX, INT64_MAX, 1, 1}));
  REQUIRE_OK(add(t, table, {"new then put", "ranged new", "zz"}, {7, 7, 7}));
  REQUIRE_OK(t.put(table, "put", bytes(int64_t{5})));
  REQUIRE_OK(t.put(table, "new then put", bytes(int64_t{6})));
  REQUIRE_OK(t.erase(table, "erased"));
  REQUIRE_OK(t.erase_range(table, as_bytes("ranged"), as_bytes("s")));
  REQUIRE_OK(add(t, table, {"erased", "put", "ranged then", "erased"}, {1, 1, 1, 1}));
  REQUIRE_OK(t.erase(table, "then erased"));
  std::vector<uint64_t> was_new(1);
  Rows absent({"added", "then erased", "zz", "absent"});
  std::vector<int64_t> values = {-1, -2, -3, -4};
  REQUIRE_OK(t.put_if_absent(table, absent.column(), column(values), was_new));
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
  Keys keys = {"",
               std::string(1, '\0'),
               std::string(2, '\0'),
               "\xFF",
               "\xFF\xFF",
               "a",
               "ab",
               "abc",
               std::string("a\0", 2),
               "\xFF\x01"};
  std::string longest(max_key_bytes, 'k');
  keys.push_back(longest);
  longest.back() = 'l';
  keys.push_back(longest);
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
  refused(t.put(ints, ab.column(), column(wide)), {"8 bytes", "ints"});
  refused(t.put_view(ints, ab.column(), column(wide)), {"8 bytes", "ints"});
  refused(t.put_if_absent(ints, ab.column(), column(wide), was_new), {"8 bytes", "ints"});
  refused(t.accumulate(ints, ab.column(), column(wide)), {"8 bytes", "ints"});
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
      constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
      Table table = make(name_of(options), options);
      auto commit = [&](const Keys& keys, const std::vector<T>& deltas) {
        WriteTransaction t = db_->begin();
        Status s = t.put(table, "beside", bytes(T{1}));
        if (s.ok()) s = t.accumulate(table, Rows(keys).column(), deltas);
        return s.ok() ? t.commit() : s;
      };
      auto value = [&](const char* key) {
        auto found = db_->snapshot().get(table, key);
        return found->has_value() ? std::optional<T>(number<T>(**found)) : std::nullopt;
      };
      // Only the sum has to fit.
      REQUIRE_OK(
          commit({"a", "a", "a", "b", "b", "b", "b"}, {most, most, least, least, least, most, 1}));
      CHECK(value("a") == most - 1);
      CHECK(value("b") == least);
      REQUIRE_OK(commit({"a", "c"}, {1, least}));
      CHECK(value("a") == most);
      CHECK(value("c") == least);
      bool wraps = options.overflow == Overflow::wrap;
      Status s = commit({"d", "a"}, {1, 1});
      CHECK(s.ok() == wraps);
      CHECK(value("a") == (wraps ? least : most));
      CHECK(value("d") == (wraps ? std::optional<T>(1) : std::nullopt));
      if (!wraps) {
        CHECK(s.code() == StatusCode::invalid_argument);
        for (std::string m : {std::string("'a'"), name_of(options),
                              std::string(sizeof(T) == 4 ? "2147483648" : "9223372036854775808")})
          CHECK_MESSAGE(s.message().find(m) != std::string::npos, s.to_string());
        CHECK_FALSE(s.remedy().empty());
        std::string odd("\x01'\\\xFF", 4);
        s = commit({odd, odd}, {least, least});
        CHECK_MESSAGE(s.message().find("0x01275cff") != std::string::npos, s.to_string());
        CHECK_MESSAGE(s.message().find(sizeof(T) == 4 ? "-4294967296" : "-18446744073709551616") !=
                          std::string::npos,
                      s.to_string());
      } else {
        REQUIRE_OK(commit({"c", "c", "c"}, {least, least, -1}));
        CHECK(value("c") == most);
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
    CHECK(read(*db_, table) == (Model{{"key", bytes(round * 7 * int32_t{rows})}}));
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
    CHECK(number<int64_t>((*found)->value) == 2 * round);
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
  REQUIRE_OK(t.put(table, "0", bytes(int64_t{1000})));
  t.hand_over();
  TestThreads pool;
  for (int w = 0; w < threads; ++w)
    pool.start([&, w] {
      for (int c = 0; c < calls; ++c) {
        CHECK_OK(t.accumulate(table, std::to_string(c % 3), 1 + w));
        CHECK_OK(t.put(table, "own " + std::to_string(w), bytes(int64_t{c})));
        CHECK_OK(t.accumulate(table, "own " + std::to_string(w), 5));
      }
    });
  pool.join();
  REQUIRE_OK(t.commit());
  Sums expected = {{"0", 1100}, {"1", 100}, {"2", 100}};
  for (int w = 0; w < threads; ++w) expected["own " + std::to_string(w)] = calls + 4;
  CHECK(sums(table) == expected);
}

// The last bits of floats depend neither on the threads nor on the order of the rows nor on the
// backend, and are those of a reproducible sum.
TEST_CASE("AccumulateFloatsTest.TheSameBitsFromEveryDatabase", "[AccumulateFloatsTest]") {
  std::mt19937_64 random(seed());
  for_each_type([&](auto type, TableOptions options) {
    using T = decltype(type);
    if constexpr (std::is_floating_point_v<T>) {
      constexpr uint64_t rows = 300'000, keys = 5000;
      std::vector<uint64_t> targets(rows);
      std::vector<T> deltas(rows), sums(keys);
      for (uint64_t i = 0; i < rows; ++i) {
        targets[i] = random() % keys;
        deltas[i] = static_cast<T>(std::ldexp(static_cast<double>(random()) - 0x1p63,
                                              static_cast<int>(random() % 40) - 80));
      }
      auto oracle = Backend::host(1);
      for (int round = 0; round < 2; ++round)
        REQUIRE_OK(oracle->scatter().apply(
            Numbers::of(std::span<const T>(deltas)), Indexes::of(targets),
            MutableNumbers::of(std::span<T>(sums)), {.mode = ScatterMode::reproducible}));
      options.key_width = 8;
      for (unsigned threads : {1u, 2u, 3u, 0u}) {  // 0: a device
        MemoryFileSystem files;
        Options open;
        open.file_system = &files;
        open.threads = threads;
        auto device = std::make_shared<FakeDevice>(uint64_t{1} << 40);
        if (!threads) open.shared_backend = device;
        auto db = std::move(*Database::open("/db", open));
        Table table = *db->create_table("t", options);
        for (int round = 0; round < 2; ++round) {
          if (!threads && round == 1) device->fail_call(4, StatusCode::io_error);
          WriteTransaction t = db->begin();
          uint64_t step = rows / (threads + 1);
          TestThreads pool;
          for (uint64_t first = 0; first < rows; first += step)
            pool.start([&, first] {
              uint64_t n = std::min(step, rows - first);
              CHECK_OK(t.accumulate(table, Column::fixed(targets.data() + first, 8, n),
                                    std::span<const T>(deltas).subspan(first, n)));
            });
          pool.join();
          REQUIRE_OK(t.commit());
        }
        if (!threads) CHECK(device->scatters() >= 1u);
        auto got = read(*db, table);
        REQUIRE(got.size() == keys);
        for (uint64_t key = 0; key < keys; ++key)
          REQUIRE_MESSAGE(got[bytes(key)] == bytes(sums[key]), threads << " threads, key " << key);
      }
    }
  });
}

// Many rows of few and of many keys, in several commits, by reference to arrays.
TEST_CASE_METHOD(AccumulateTest, "AccumulateTest.ManyRows", "[AccumulateTest]") {
  std::mt19937_64 random(seed());
  for (uint32_t width : {8u, 0u, 3u, 20u}) {
    for (uint64_t keys : {uint64_t{10}, uint64_t{100'000}}) {
      INFO(std::to_string(width) + " bytes, " + std::to_string(keys));
      Table table = make(std::to_string(width) + " " + std::to_string(keys),
                         {.key_width = width, .numbers = NumberType::i64});
      constexpr uint64_t rows = 250'000;
      std::vector<int64_t> model(keys);
      uint32_t bytes_of = width ? width : 5;
      std::vector<std::byte> key_bytes(rows * bytes_of);
      std::vector<int64_t> deltas(rows);
      for (int commit = 0; commit < 3; ++commit) {
        // Small ones take one sum, large ones two.
        int shift = commit == 1 ? 16 : 50;
        for (uint64_t i = 0; i < rows; ++i) {
          uint64_t key = random() % keys;
          std::memcpy(&key_bytes[i * bytes_of], &key, std::min(bytes_of, 8u));
          deltas[i] = static_cast<int64_t>(random()) >> shift;
          model[key] += deltas[i];
        }
        KeyColumn column = Column::fixed(key_bytes.data(), bytes_of, rows);
        WriteTransaction t = db_->begin();
        for (uint64_t first = 0; first < rows;) {
          uint64_t n = std::min(random() % 2 ? random() % 100 : random() % 100'000, rows - first);
          REQUIRE_OK(t.accumulate(table, column.slice(first, n),
                                  std::span<const int64_t>(deltas).subspan(first, n)));
          first += n;
        }
        REQUIRE_OK(t.commit());
      }
      auto got = sums(table);
      for (uint64_t key = 0; key < keys; ++key) {
        auto found = got.find(bytes(key).substr(0, 3) + std::string(bytes_of - 3, '\0'));
        REQUIRE_MESSAGE((found == got.end() ? 0 : found->second) == model[key], key);
      }
      REQUIRE_OK(db_->verify());
    }
  }
}

class AccumulateGroupTest {
 protected:
  AccumulateGroupTest() : gate_(files_) {
    Options options;
    options.file_system = &gate_;
    options.threads = 2;
    db_ = std::move(*Database::open("/db", options));
    table_ = *db_->create_table("t", {.numbers = NumberType::i64});
    other_ = *db_->create_table("u", {.numbers = NumberType::i64});
  }
  using Change = std::function<Status(WriteTransaction&)>;
  // Commits each, one after the other, while the one before all holds the gate.
  std::vector<Status> commit_together(const std::vector<Change>& changes) {
    using namespace std::chrono_literals;
    gate_.shut();
    std::vector<WriteTransaction> transactions;
    transactions.push_back(db_->begin());
    CHECK_OK(transactions[0].put(table_, "gate", bytes(int64_t{0})));
    for (const Change& change : changes) {
      Status s = change(transactions.emplace_back(db_->begin()));
      CHECK_OK(s);
    }
    std::vector<std::future<Status>> commits;
    for (WriteTransaction& t : transactions) {
      commits.push_back(std::async(std::launch::async, [&t] { return t.commit(); }));
      std::this_thread::sleep_for(100ms);
    }
    gate_.open_gate();
    std::vector<Status> result;
    for (auto& commit : commits) result.push_back(commit.get());
    CHECK_OK(result[0]);
    result.erase(result.begin());
    return result;
  }
  std::string value(const Table& table, const char* key) {
    auto found = db_->snapshot().get(table, key);
    return found.ok() && found->has_value() ? std::to_string(number<int64_t>(**found)) : "none";
  }

  MemoryFileSystem files_;
  GatedFileSystem gate_;
  std::unique_ptr<Database> db_;
  Table table_, other_;
};

// One whose sums do not fit fails alone, whatever comes before and behind it.
TEST_CASE_METHOD(AccumulateGroupTest, "AccumulateGroupTest.OneThatOverflows",
                 "[AccumulateGroupTest]") {
  std::vector<Status> s = commit_together({
      [&](auto& t) { return t.accumulate(table_, "x", INT64_MAX - 5); },
      [&](auto& t) {
        Status first = t.accumulate(table_, "x", 3);
        return first.ok() ? t.accumulate(other_, "x", 1) : first;
      },
      [&](auto& t) {
        Status first = t.accumulate(other_, "x", 100);
        if (first.ok()) first = t.put(table_, "failed", bytes(int64_t{1}));
        return first.ok() ? t.accumulate(table_, "x", 3) : first;
      },
      [&](auto& t) { return t.accumulate(table_, "x", 2); },
      [&](auto& t) { return t.accumulate(table_, "x", 1); },
      [&](auto& t) { return t.accumulate(table_, "x", -7); },
      [&](auto& t) { return t.accumulate(other_, "x", 10); },
  });
  for (size_t i = 0; i < s.size(); ++i) {
    bool fails = i == 2 || i == 4;
    CHECK_MESSAGE(s[i].code() == (fails ? StatusCode::invalid_argument : StatusCode::ok), i);
    if (fails) CHECK_MESSAGE(s[i].message().find("'x'") != std::string::npos, s[i].to_string());
  }
  CHECK(value(table_, "x") == std::to_string(INT64_MAX - 7));
  CHECK(value(table_, "failed") == "none");
  CHECK(value(other_, "x") == "11");
  CHECK(db_->tables()[0].runs == 2u);  // the gate's, and one of all others
}

TEST_CASE_METHOD(AccumulateGroupTest, "AccumulateGroupTest.CommitsCountInTheirOrder",
                 "[AccumulateGroupTest]") {
  std::vector<uint64_t> was_new(1), again(1);
  int64_t one = 1;
  Rows xy({"x", "y"});
  std::vector<int64_t> values = {1000, 2000};
  std::vector<Status> s = commit_together({
      [&](auto& t) { return t.put(table_, "x", bytes(int64_t{10})); },
      [&](auto& t) { return t.accumulate(table_, "x", 1); },
      [&](auto& t) { return t.erase(table_, "x"); },
      [&](auto& t) { return t.accumulate(table_, "x", 2); },
      [&](auto& t) { return t.erase_range(table_, as_bytes("w"), as_bytes("y")); },
      [&](auto& t) {
        Status added = t.accumulate(table_, "x", 4);
        return added.ok() ? t.erase_range(table_, as_bytes("x"), as_bytes("x1")) : added;
      },
      [&](auto& t) { return t.accumulate(table_, "x", 8); },
      [&](auto& t) { return t.put_if_absent(table_, xy.column(), column(values), was_new); },
      [&](auto& t) {
        Status added = t.accumulate(table_, "y", one);
        return added.ok() ? t.put_if_absent(table_, xy.column(), column(values), again) : added;
      },
      [&](auto& t) { return t.accumulate(table_, "z", 5); },
  });
  for (const Status& each : s) CHECK_OK(each);
  CHECK(value(table_, "x") == "8");
  CHECK(value(table_, "y") == "2001");
  CHECK(value(table_, "z") == "5");
  CHECK(was_new[0] == 0b10u);
  CHECK(again[0] == 0u);
}

// Whatever groups commits make, no delta is lost and none counts twice.
TEST_CASE_METHOD(AccumulateGroupTest, "AccumulateGroupTest.ManyThreads", "[AccumulateGroupTest]") {
  std::mt19937_64 random(seed());
  constexpr int threads = 4, rounds = 25, keys = 20;
  Model start;
  WriteTransaction full = db_->begin();
  REQUIRE_OK(full.put(table_, "full", bytes(INT64_MAX)));
  REQUIRE_OK(full.commit());
  std::vector<std::atomic<int64_t>> sums(keys);
  std::vector<uint64_t> seeds;
  for (int w = 0; w < threads; ++w) seeds.push_back(random());
  TestThreads pool;
  for (int w = 0; w < threads; ++w)
    pool.start([&, w] {
      std::mt19937_64 mine(seeds[w]);
      for (int round = 0; round < rounds; ++round) {
        WriteTransaction t = db_->begin();
        std::vector<int64_t> added(keys);
        for (int i = 0; i < 30; ++i) {
          int key = static_cast<int>(mine() % keys);
          int64_t delta = static_cast<int64_t>(mine()) >> 20;
          added[key] += delta;
          CHECK_OK(t.accumulate(table_, "key " + std::to_string(key), delta));
        }
        bool overflows = mine() % 4 == 0;
        if (overflows) CHECK_OK(t.accumulate(table_, "full", 1));
        CHECK_MESSAGE(t.commit(Durability::flush).ok() == !overflows, "round " << round);
        for (int key = 0; key < keys && !overflows; ++key) sums[key] += added[key];
      }
    });
  pool.join();
  CHECK(value(table_, "full") == std::to_string(INT64_MAX));
  for (int key = 0; key < keys; ++key)
    CHECK(value(table_, ("key " + std::to_string(key)).c_str()) == std::to_string(sums[key]));
}

// Whichever call fails, nothing of the commit is there.
TEST_CASE("AccumulateFailureTest.EveryCallMayFail", "[AccumulateFailureTest]") {
  for (bool forever : {false, true}) {
    for (uint64_t n = 1;; ++n) {
      MemoryFileSystem files;
      Options options;
      options.file_system = &files;
      auto db = std::move(*Database::open("/db", options));
      TableOptions numbers = {.numbers = NumberType::i64};
      Table table = *db->create_table("t", numbers), other = *db->create_table("u", numbers);
      WriteTransaction before = db->begin();
      REQUIRE_OK(before.put(table, "b", bytes(int64_t{5})));
      REQUIRE_OK(before.commit());
      WriteTransaction t = db->begin();
      for (const char* key : {"a", "b", "a"}) REQUIRE_OK(t.accumulate(table, key, 1));
      REQUIRE_OK(t.accumulate(other, "x", 1));
      files.fail_call(n, StatusCode::io_error, forever);
      bool failed = !t.commit().ok();
      files.fail_call(0, StatusCode::ok);
      Tables found = *read_all(*db);
      std::string one = bytes(int64_t{1}), two = bytes(int64_t{2});
      Tables old = {{"t", {{"b", bytes(int64_t{5})}}}, {"u", {}}};
      Tables now = {{"t", {{"a", two}, {"b", bytes(int64_t{6})}}}, {"u", {{"x", one}}}};
      REQUIRE_MESSAGE(found == (failed ? old : now), "call " << n);
      db.reset();
      db = std::move(*Database::open("/db", options));
      found = *read_all(*db);
      // A failed sync of the manifest may have reached the disk all the same.
      REQUIRE_MESSAGE((found == now || (failed && found == old)), "call " << n);
      if (!failed) break;
      REQUIRE(n < 1000u);
    }
  }
}

// All kinds of changes in one transaction, several commits, snapshots, reopening, compactions.
template <class T>
class ModelRun {
 public:
  ModelRun(const Shape& shape, TableOptions options, std::mt19937_64& random)
      : options_(options), random_(random), rows_(shape, random) {
    options_.key_width = shape.key_width;
    options_.share_equal_values = random() % 4 == 0;
  }

  void run() {
    MemoryFileSystem files;
    Options options;
    options.file_system = &files;
    options.threads = 1 + random_() % 3;
    if (random_() % 2) options.memory_limit_bytes = 1;
    if (random_() % 4 == 0)
      options.shared_backend = std::make_shared<FakeDevice>(uint64_t{1} << 40);
    for (int reopen = 0; reopen < 2; ++reopen) {
      auto db = std::move(*Database::open("/db", options));
      auto table = db->open_or_create_table("t", options_);
      REQUIRE_OK(table);
      Snapshot held = db->snapshot();
      Model of_held = model_;
      for (int i = 0; i < 8; ++i) {
        commit(*db, *table);
        if (random_() % 6 == 0) REQUIRE_OK(db->compact());
        if (random_() % 4 == 0) {
          held = db->snapshot();
          of_held = model_;
        }
      }
      expect_equal(db->snapshot(), *table, model_, random_);
      expect_equal(held, *table, of_held, random_);
      REQUIRE_OK(db->verify());
      REQUIRE_OK(db->close());
    }
  }

 private:
  T any_number() {
    uint64_t r = random_();
    if constexpr (std::is_integral_v<T>) {
      T n = static_cast<T>(random_());
      return r % 200 == 0 ? n : static_cast<T>(n >> (sizeof(T) * 4));
    } else {
      if (r % 100 == 0) return std::numeric_limits<T>::infinity() * (r & 1024 ? 1 : -1);
      if (r % 100 == 1) return std::numeric_limits<T>::quiet_NaN();
      if (r % 100 == 2) return std::numeric_limits<T>::denorm_min();
      return static_cast<T>(
          std::ldexp(static_cast<double>(random_()) - 0x1p63, static_cast<int>(r % 100) - 110));
    }
  }
  std::string key() {
    if (model_.empty() || random_() % 2) return rows_.key();
    return std::next(model_.begin(), static_cast<ptrdiff_t>(random_() % model_.size()))->first;
  }
  Status accumulate(WriteTransaction& t, const Table& table, const Keys& keys,
                    const std::vector<T>& numbers) {
    Rows rows(keys), variable;
    for (T n : numbers) variable.add(bytes(n));
    switch (random_() % 3) {
      case 0:
        return t.accumulate(table, rows.column(), numbers);
      case 1:
        return t.accumulate(table, rows.column(), variable.column());
      default: {
        Status s;
        t.hand_over();
        std::thread([&] { s = t.accumulate(table, rows.column(), numbers); }).join();
        t.hand_over();
        return s;
      }
    }
  }

  void commit(Database& db, const Table& table) {
    Changes<T> changes(model_, options_);
    WriteTransaction t = db.begin();
    std::vector<std::pair<Rows, std::vector<T>>> viewed;
    viewed.reserve(8);
    for (uint64_t part = random_() % 7; part > 0; --part) {
      Keys keys;
      std::vector<T> numbers;
      for (uint64_t n = random_() % 60; n > 0; --n) {
        keys.push_back(key());
        numbers.push_back(any_number());
      }
      switch (random_() % 8) {
        case 0:
          REQUIRE_OK(t.put(table, Rows(keys).column(), column(numbers)));
          for (size_t i = 0; i < keys.size(); ++i) changes.put(keys[i], numbers[i]);
          break;
        case 1:
          REQUIRE_OK(t.erase(table, Rows(keys).column()));
          for (const std::string& k : keys) changes.erase(k);
          break;
        case 2: {
          std::string from = rows_.key(), to = rows_.key();
          REQUIRE_OK(t.erase_range(table, as_bytes(from), as_bytes(to)));
          changes.erase_range(from, to);
          break;
        }
        case 3:
          REQUIRE_OK(t.put_if_absent(table, Rows(keys).column(), column(numbers)));
          for (size_t i = 0; i < keys.size(); ++i) changes.put_if_absent(keys[i], numbers[i]);
          break;
        default:
          REQUIRE_OK(accumulate(t, table, keys, numbers));
          for (size_t i = 0; i < keys.size(); ++i) changes.add(keys[i], numbers[i]);
      }
    }
    std::optional<Model> after = changes.finish();
    Status s = t.commit(static_cast<Durability>(random_() % 3));
    if (after) {
      REQUIRE_OK(s);
      model_ = std::move(*after);
    } else {
      REQUIRE_MESSAGE(s.code() == StatusCode::invalid_argument, s.to_string());
      REQUIRE_MESSAGE(s.message().find("does not fit") != std::string::npos, s.to_string());
    }
    REQUIRE(read(db, table) == model_);
  }

  TableOptions options_;
  std::mt19937_64& random_;
  RandomRows rows_;
  Model model_;
};

TEST_CASE("AccumulateModelTest.AnswersAsAMapDoes", "[AccumulateModelTest]") {
  std::mt19937_64 random(seed());
  for (const Shape& shape :
       {Shape{"short", 0, 4, 4, 8}, Shape{"dense", 0, 2, 9, 8}, Shape{"long", 0, 3, 300, 8},
        Shape{"wide", 8, 3, 8, 8}, Shape{"narrow", 3, 26, 3, 8}, Shape{"fixed20", 20, 3, 20, 8}})
    for_each_type([&](auto type, const TableOptions& options) {
      INFO(std::string(shape.name) + ", " + name_of(options));
      ModelRun<decltype(type)>(shape, options, random).run();
    });
}

}  // namespace
}  // namespace stride::test

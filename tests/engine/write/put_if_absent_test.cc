// Rows that are put where their key is not there.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/prefixes.h"
#include "tests/engine/write/write_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

class PutIfAbsentTest : public WriteFixture {
 protected:
  void put(const Table& table, const Keys& keys) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table, Rows(keys).column(), Rows(keys).column()));
    REQUIRE_OK(t.commit());
  }
  // Their values are the keys with `mark` behind.
  Status put_if_absent(WriteTransaction& t, const Table& table, const Keys& keys,
                       const std::string& mark, Bits* bits) {
    Rows values;
    for (const std::string& key : keys) values.add(key + mark);
    *bits = bits_for(keys.size());
    return t.put_if_absent(table, Rows(keys).column(), values.column(), *bits);
  }
};

TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.KeepsWhatIsThereAndTheFirstOfEqualRows",
                 "[PutIfAbsentTest]") {
  Table table = *db_->create_table("t");
  put(table, {"b"});
  WriteTransaction t = db_->begin();
  Bits first, second;
  REQUIRE_OK(put_if_absent(t, table, {"c", "b", "a", "c", "a"}, "1", &first));
  REQUIRE_OK(put_if_absent(t, table, {"a", "d", "d"}, "2", &second));
  CHECK(t.staged_rows() == 8u);
  CHECK((none_set(first) && none_set(second)));
  REQUIRE_OK(t.commit());
  CHECK(first == Bits{0b00101});
  CHECK(second == Bits{0b010});
  CHECK(read_table(*db_, table) == (Model{{"a", "a1"}, {"b", "b"}, {"c", "c1"}, {"d", "d2"}}));
}

TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.ComesAfterAllOtherChanges",
                 "[PutIfAbsentTest]") {
  Table table = *db_->create_table("t");
  put(table, {"a", "b", "c", "d"});
  WriteTransaction t = db_->begin();
  Bits bits;
  REQUIRE_OK(put_if_absent(t, table, {"a", "b", "c", "d", "e", "f", "g"}, "!", &bits));
  REQUIRE_OK(t.erase(table, "a"));
  REQUIRE_OK(t.erase_range(table, as_bytes("c"), as_bytes("d")));
  REQUIRE_OK(t.put(table, "e", "put"));
  REQUIRE_OK(t.erase(table, "f"));
  REQUIRE_OK(t.put(table, "g", "put"));
  REQUIRE_OK(t.erase(table, "g"));
  Bits again;
  REQUIRE_OK(put_if_absent(t, table, {"g", "a", "e", "h"}, "?", &again));
  REQUIRE_OK(t.commit());
  CHECK(bits == Bits{0b1100101});
  CHECK(again == Bits{0b1000});
  CHECK(read_table(*db_, table) == (Model{{"a", "a!"},
                                          {"b", "b"},
                                          {"c", "c!"},
                                          {"d", "d"},
                                          {"e", "put"},
                                          {"f", "f!"},
                                          {"g", "g!"},
                                          {"h", "h?"}}));
}

TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.AnyKeys", "[PutIfAbsentTest]") {
  Table table = *db_->create_table("t");
  Keys keys = keys_of_all_kinds();
  keys.push_back("ab");
  for (int round = 0; round < 2; ++round) {
    WriteTransaction t = db_->begin();
    Bits bits;
    REQUIRE_OK(put_if_absent(t, table, keys, "", &bits));
    REQUIRE_OK(t.commit());
    CHECK(bits == Bits{round == 0 ? 0b0111111111111u : 0});
    reopen();
    table = *db_->open_table("t");
    Model model = read_table(*db_, table);
    CHECK(model.size() == 12u);
    for (const std::string& key : keys) CHECK(model[key] == key);
  }
}

TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.WithoutNewRowsNothingIsWritten",
                 "[PutIfAbsentTest]") {
  Table table = *db_->create_table("t");
  put(table, {"a", "b"});
  uint64_t bytes = db_->size_bytes();
  WriteTransaction t = db_->begin();
  Bits bits;
  REQUIRE_OK(put_if_absent(t, table, {"b", "a", "b"}, "!", &bits));
  REQUIRE_OK(t.commit());
  CHECK(none_set(bits));
  CHECK(db_->size_bytes() == bytes);
  CHECK(db_->tables()[0].runs == 1u);
}

TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.WhatIsRefused", "[PutIfAbsentTest]") {
  Table any = *db_->create_table("any"), wide = *db_->create_table("wide", {.key_width = 8});
  WriteTransaction t = db_->begin();
  Bits bits = {7};
  auto refused = [&](const Table& table, const Keys& keys, const Keys& values,
                     std::span<uint64_t> was_new, const std::string& mentions) {
    Status s = t.put_if_absent(table, Rows(keys).column(), Rows(values).column(), was_new);
    CHECK_MESSAGE(s.code() == StatusCode::invalid_argument, s.to_string());
    CHECK_MESSAGE(s.to_string().find(mentions) != std::string::npos, s.to_string());
  };
  refused(any, {"a", "b"}, {"v"}, bits, "2 rows");
  refused(wide, {"12345678", "short"}, {"", ""}, bits, "row 1");
  refused(any, {"a", std::string(max_key_bytes + 1, 'k')}, {"", ""}, bits, "row 1");
  refused(any, Keys(65, "a"), Keys(65, "v"), bits, "need 2");
  refused(any, {}, {}, bits, "need 0");
  refused(Table(), {"a"}, {"v"}, bits, "table");
  CHECK(bits == Bits{7});
  CHECK(t.staged_rows() == 0u);
  REQUIRE_OK(t.put_if_absent(any, Column(), Column()));
  REQUIRE_OK(t.commit());
  CHECK(t.put_if_absent(any, Column(), Column()).code() == StatusCode::closed);
}

TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.NoBitIsSetWithoutACommit", "[PutIfAbsentTest]") {
  Table table = *db_->create_table("t"), other = *db_->create_table("u");
  Bits aborted, gone, dropped, unaffected;
  {
    WriteTransaction t = db_->begin(), u = db_->begin();
    REQUIRE_OK(put_if_absent(t, table, {"a"}, "", &aborted));
    REQUIRE_OK(put_if_absent(u, table, {"a"}, "", &gone));
    t.abort();
  }
  WriteTransaction t = db_->begin();
  REQUIRE_OK(put_if_absent(t, table, {"a"}, "", &unaffected));
  REQUIRE_OK(put_if_absent(t, other, {"a"}, "", &dropped));
  REQUIRE_OK(db_->drop_table("u"));
  CHECK(t.commit().code() == StatusCode::not_found);
  CHECK((none_set(aborted) && none_set(gone) && none_set(dropped) && none_set(unaffected)));
  CHECK(read_table(*db_, table) == Model());
  WriteTransaction late = db_->begin();
  REQUIRE_OK(put_if_absent(late, table, {"a"}, "", &aborted));
  REQUIRE_OK(db_->close());
  CHECK(late.commit().code() == StatusCode::closed);
  CHECK(none_set(aborted));
}

// Chunks are cut at 65,536 rows, and calls need not begin at a word's first bit.
TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.ManyRowsInCallsOfAnySize", "[PutIfAbsentTest]") {
  std::mt19937_64 random(seed());
  for (bool fixed : {true, false}) {
    Table table = *db_->create_table(fixed ? "fixed" : "any", {.key_width = fixed ? 8u : 0u});
    constexpr uint64_t rows = smaller_under_sanitizers(300'000, 140'000);
    std::vector<uint64_t> numbers(rows);
    std::vector<uint8_t> seen(rows);
    for (int commit = 0; commit < 2; ++commit) {
      for (uint64_t& n : numbers) n = random() % rows;
      KeyColumn keys = Column::fixed(numbers.data(), 8, rows);
      WriteTransaction t = db_->begin();
      std::vector<std::pair<uint64_t, Bits>> calls;
      for (uint64_t first = 0; first < rows;) {
        uint64_t n = std::min(random() % 4 ? random() % 100 : random() % 100'000, rows - first);
        auto& [at, bits] = calls.emplace_back(first, bits_for(n));
        REQUIRE_OK(t.put_if_absent(table, keys.slice(first, n), keys.slice(first, n), bits));
        first += n;
      }
      REQUIRE_OK(t.commit());
      uint64_t row = 0;
      for (size_t c = 0; c < calls.size(); ++c) {
        uint64_t end = c + 1 < calls.size() ? calls[c + 1].first : rows;
        for (; row < end; ++row) {
          REQUIRE_MESSAGE(is_set(calls[c].second, row - calls[c].first) == !seen[numbers[row]],
                          row);
          seen[numbers[row]] = 1;
        }
      }
      uint64_t distinct = static_cast<uint64_t>(std::count(seen.begin(), seen.end(), 1));
      REQUIRE(*db_->snapshot().count(table) == distinct);
    }
    GetResult got;
    KeyColumn keys = Column::fixed(numbers.data(), 8, rows);
    REQUIRE_OK(db_->snapshot().get(table, keys, &got));
    for (uint64_t i = 0; i < rows; ++i) REQUIRE(compare(got.values[i], keys[i]) == 0);
    REQUIRE_OK(db_->verify());
  }
}

TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.EqualRowsOnly", "[PutIfAbsentTest]") {
  Table table = *db_->create_table("t", {.key_width = 3});
  constexpr uint64_t rows = 70'000;
  std::string keys;
  for (uint64_t i = 0; i < rows; ++i) keys += "key";
  std::vector<uint64_t> values(rows);
  for (uint64_t i = 0; i < rows; ++i) values[i] = i;
  Bits bits = bits_for(rows), expected((rows + 63) / 64);
  expected[0] = 1;
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put_if_absent(table, Column::fixed(keys.data(), 3, rows),
                             Column::fixed(values.data(), 8, rows), bits));
  REQUIRE_OK(t.commit());
  CHECK(bits == expected);
  CHECK(read_table(*db_, table) == (Model{{"key", std::string(8, '\0')}}));
}

TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.PrefixTables", "[PutIfAbsentTest]") {
  Table table = *db_->create_table("t", {.address_bits = 32});
  auto key = [](std::initializer_list<uint8_t> bytes) {
    return std::string(bytes.begin(), bytes.end());
  };
  Keys keys = {key({10, 0, 0, 0, 8}), key({10, 1, 0, 0, 16}), key({10, 0, 0, 0, 8})};
  WriteTransaction bad = db_->begin();
  Bits bits;
  CHECK(put_if_absent(bad, table, {key({10, 1, 0, 0, 8})}, "", &bits).code() ==
        StatusCode::invalid_argument);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(put_if_absent(t, table, keys, "", &bits));
  REQUIRE_OK(t.commit());
  CHECK(bits == Bits{0b011});
  auto found = db_->snapshot().match(table, as_bytes(key({10, 1, 2, 3})));
  REQUIRE((found.ok() && found->has_value()));
  CHECK((*found)->length == 16u);
  // A matcher that is there is kept up to date.
  WriteTransaction more = db_->begin();
  REQUIRE_OK(put_if_absent(more, table, {keys[0], key({10, 1, 2, 0, 24})}, "", &bits));
  REQUIRE_OK(more.commit());
  CHECK(bits == Bits{0b10});
  found = db_->snapshot().match(table, as_bytes(key({10, 1, 2, 3})));
  REQUIRE((found.ok() && found->has_value()));
  CHECK((*found)->length == 24u);
}

TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.HandOverOrdersThreads", "[PutIfAbsentTest]") {
  Table table = *db_->create_table("t");
  WriteTransaction t = db_->begin();
  Bits first, second;
  run_elsewhere([&] { CHECK_OK(put_if_absent(t, table, {"a", "b"}, "1", &first)); });
  t.hand_over();
  REQUIRE_OK(put_if_absent(t, table, {"b", "c"}, "2", &second));
  t.hand_over();
  run_elsewhere([&] {
    Bits third;
    CHECK_OK(put_if_absent(t, table, {"c"}, "3", &third));
    t.hand_over();
    REQUIRE_OK(t.commit());
    CHECK_MESSAGE(none_set(third), "the key is there");
  });
  CHECK(first == Bits{0b11});
  CHECK(second == Bits{0b10});
  CHECK(read_table(*db_, table) == (Model{{"a", "a1"}, {"b", "b1"}, {"c", "c2"}}));
}

// One row of a key, among those of all threads, is new, and its value is the one that is there.
TEST_CASE_METHOD(PutIfAbsentTest, "PutIfAbsentTest.OneOfAllThreadsIsTold", "[PutIfAbsentTest]") {
  std::mt19937_64 random(seed());
  for (bool one_transaction : {true, false}) {
    Table table = *db_->create_table(one_transaction ? "one" : "each");
    constexpr int threads = 4, rounds = 15, calls = 5, keys = 200;
    std::vector<std::atomic<int>> winners(keys), told(keys);
    for (auto& w : winners) w = -1;
    for (int round = 0; round < rounds; ++round) {
      auto shared = std::make_unique<WriteTransaction>(db_->begin());
      std::vector<std::vector<Bits>> bits(threads, std::vector<Bits>(calls));
      std::vector<std::vector<std::vector<int>>> numbers(threads,
                                                         std::vector<std::vector<int>>(calls));
      for (auto& of_thread : numbers)
        for (auto& of_call : of_thread)
          for (int i = 0; i < 40; ++i) of_call.push_back(static_cast<int>(random() % keys));
      TestThreads pool;
      for (int w = 0; w < threads; ++w)
        pool.start([&, w] {
          WriteTransaction own = db_->begin();
          WriteTransaction& t = one_transaction ? *shared : own;
          for (int c = 0; c < calls; ++c) {
            Keys texts;
            for (int n : numbers[w][c]) texts.push_back(std::to_string(n));
            std::string mark = " " + std::to_string((round * threads + w) * calls + c);
            CHECK_OK(put_if_absent(t, table, texts, mark, &bits[w][c]));
          }
          if (!one_transaction) CHECK_OK(own.commit(Durability::flush));
        });
      pool.join();
      if (one_transaction) REQUIRE_OK(shared->commit(Durability::flush));
      for (int w = 0; w < threads; ++w)
        for (int c = 0; c < calls; ++c)
          for (size_t i = 0; i < numbers[w][c].size(); ++i)
            if (is_set(bits[w][c], i)) {
              ++told[numbers[w][c][i]];
              winners[numbers[w][c][i]] = (round * threads + w) * calls + c;
            }
    }
    Model model = read_table(*db_, table);
    for (int n = 0; n < keys; ++n) {
      auto found = model.find(std::to_string(n));
      CHECK_MESSAGE(told[n] == (found != model.end()), n);
      if (found != model.end())
        CHECK(found->second == std::to_string(n) + " " + std::to_string(winners[n]));
    }
  }
}

// Whichever call fails, nothing of the commit is there and no bit is set.
TEST_CASE("PutIfAbsentFailureTest.EveryCallMayFail", "[PutIfAbsentFailureTest]") {
  Bits bits, others;
  FailingCommit{.before = {{"t", {{"b", "old"}}}, {"u", {}}},
                .after = {{"t", {{"a", "a"}, {"b", "old"}}}, {"u", {{"x", "y"}}}},
                .change =
                    [&](WriteTransaction& t, const Table& table, const Table& other) {
                      bits = bits_for(3);
                      others = bits_for(1);
                      Rows keys({"a", "b", "a"});
                      STRIDE_TRY(t.put_if_absent(table, keys.column(), keys.column(), bits));
                      return t.put_if_absent(other, Rows({"x"}).column(), Rows({"y"}).column(),
                                             others);
                    },
                .check =
                    [&](bool failed) {
                      REQUIRE(bits == Bits{failed ? 0 : 0b001u});
                      REQUIRE(others == Bits{failed ? 0 : 1u});
                    }}
      .run();
}

// A damaged table: the commit says where, and changes nothing.
TEST_CASE("PutIfAbsentFailureTest.DamagedBytes", "[PutIfAbsentFailureTest]") {
  TemporaryDirectory directory;
  std::string path = directory.file("db");
  Rows keys;
  for (int i = 0; i < 50'000; ++i) keys.add("key" + std::to_string(i));
  {
    auto db = std::move(*Database::open(path, {.memtable_bytes = 0}));
    Table table = *db->create_table("t");
    WriteTransaction t = db->begin();
    REQUIRE_OK(t.put(table, keys.column(), keys.column()));
    REQUIRE_OK(t.commit());
  }
  std::string segment;
  for (auto& f : std::filesystem::directory_iterator(path))
    if (f.path().extension() == ".seg") segment = f.path();
  std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(segment) / 3));
  file.write("damage", 6);
  file.close();
  auto db = std::move(*Database::open(path));
  Table table = *db->open_table("t");
  WriteTransaction t = db->begin();
  Bits bits = bits_for(50'001);
  keys.add("new");
  REQUIRE_OK(t.put_if_absent(table, keys.column(), keys.column(), bits));
  Status s = t.commit();
  CHECK_MESSAGE(s.code() == StatusCode::corruption, s.to_string());
  CHECK(s.file() == segment);
  CHECK(none_set(bits));
  CHECK(db->tables()[0].runs == 1u);
}

}  // namespace
}  // namespace stride::test

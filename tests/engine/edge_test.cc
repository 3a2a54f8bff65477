// The inputs at the edge of what a table may hold.

#include <set>
#include <string>

#include "engine/row_set.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

class EdgeTest {
 protected:
  EdgeTest() { reopen({}); }

  void reopen(Options options) {
    database_.reset();
    options.memtable_bytes = 0;  // each commit makes a segment
    options.background_work = false;
    auto db = Database::open(directory_.path(), options);
    REQUIRE_OK(db);
    database_ = std::move(*db);
    auto table = database_->open_or_create_table("t");
    REQUIRE_OK(table);
    table_ = *table;
  }

  void put(const Model& rows) {
    Rows keys, values;
    for (const auto& [k, v] : rows) {
      keys.add(k);
      values.add(v);
      model_[k] = v;
    }
    WriteTransaction t = database_->begin();
    REQUIRE_OK(t.put(table_, keys.column(), values.column()));
    REQUIRE_OK(t.commit());
  }

  // As it is, reopened through the page cache, compacted, and reopened again.
  void expect_everywhere() {
    expect_equal(database_->snapshot(), table_, model_, random_);
    reopen({.memory_limit_bytes = 1});
    expect_equal(database_->snapshot(), table_, model_, random_);
    REQUIRE_OK(database_->compact());
    expect_equal(database_->snapshot(), table_, model_, random_);
    reopen({});
    expect_equal(database_->snapshot(), table_, model_, random_);
    REQUIRE_OK(database_->verify());
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Database> database_;
  Table table_;
  Model model_;
  std::mt19937_64 random_{seed()};
};

TEST_CASE_METHOD(EdgeTest, "EdgeTest.EmptyTable", "[EdgeTest]") { expect_everywhere(); }

TEST_CASE_METHOD(EdgeTest, "EdgeTest.EmptyCommit", "[EdgeTest]") {
  WriteTransaction t = database_->begin();
  REQUIRE_OK(t.put(table_, Rows().column(), Rows().column()));
  REQUIRE_OK(t.commit());
  REQUIRE_OK(database_->begin().commit());
  expect_everywhere();
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.OneRecord", "[EdgeTest]") {
  put({{"key", "value"}});
  expect_everywhere();
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.EmptyKeyAndEmptyValue", "[EdgeTest]") {
  put({{"", ""}});
  expect_everywhere();
  put({{"", "not empty"}, {"a", ""}});
  expect_everywhere();
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.RowsOfOneWidth", "[EdgeTest]") {
  Model rows;
  for (int i = 0; i < 5000; ++i) rows[std::to_string(i)] = std::to_string(100'000 + i);
  put(rows);
  expect_everywhere();
  auto expect_one_width = [&](int first, int last, bool one_width) {
    Rows queries;
    for (int i = first; i < last; ++i) queries.add(std::to_string(i));
    GetResult got;
    got.row_width = 6;
    REQUIRE_OK(database_->snapshot().get(table_, queries.column(), &got));
    CHECK(got.values.is_fixed() == one_width);
  };
  expect_one_width(4000, 6000, true);
  expect_one_width(4998, 5001, true);
  expect_one_width(7000, 7100, true);
  put({{"4999", "another width"}});
  expect_everywhere();
  expect_one_width(4000, 4999, true);
  expect_one_width(4000, 6000, false);
  expect_one_width(4998, 5001, false);
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.KeysThatArePrefixesOfEachOther", "[EdgeTest]") {
  Model rows;
  for (int i = 0; i < 300; ++i) rows[std::string(i, 'x')] = std::to_string(i);
  for (int i = 0; i < 300; ++i) rows[std::string(i, '\0')] = std::to_string(-i);
  put(rows);
  expect_everywhere();
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.ZeroAndFullBytes", "[EdgeTest]") {
  Model rows;
  for (int n = 0; n < 9; ++n)
    for (int bits = 0; bits < 1 << n; ++bits) {
      std::string key;
      for (int i = 0; i < n; ++i) key += bits >> i & 1 ? '\xFF' : '\0';
      rows[key] = key + key;
    }
  put(rows);
  expect_everywhere();
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.LongestKeys", "[EdgeTest]") {
  Model rows;
  rows["short"] = "1";
  for (int i = 0; i < 8; ++i) {
    std::string key(max_key_bytes, 'k');
    key[max_key_bytes - 1 - i * 8000] = static_cast<char>('a' + i);
    rows[key] = "long " + std::to_string(i);
    rows[key.substr(0, key.size() - 1)] = "one less";
  }
  put(rows);
  expect_everywhere();
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.LargeValuesAmongSmall", "[EdgeTest]") {
  Model rows;
  for (int i = 0; i < 400; ++i)
    rows["k" + std::to_string(i)] = std::string(i % 100 == 7 ? 3'000'000 + i : i, char(i));
  put(rows);
  expect_everywhere();
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.AllKeysEqual", "[EdgeTest]") {
  Rows keys, values;
  for (int i = 0; i < 100'000; ++i) {
    keys.add("same key");
    values.add(std::to_string(i));
  }
  WriteTransaction t = database_->begin();
  REQUIRE_OK(t.put(table_, keys.column(), values.column()));
  REQUIRE_OK(t.commit());
  model_["same key"] = "99999";
  expect_everywhere();
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.LaterChangeWinsWithinATransaction", "[EdgeTest]") {
  WriteTransaction t = database_->begin();
  for (int i = 0; i < 1000; ++i) {
    REQUIRE_OK(t.put(table_, "k" + std::to_string(i % 10), std::to_string(i)));
    if (i % 7 == 0) REQUIRE_OK(t.erase(table_, "k" + std::to_string(i % 10)));
    if (i % 7 == 0) {
      model_.erase("k" + std::to_string(i % 10));
    } else {
      model_["k" + std::to_string(i % 10)] = std::to_string(i);
    }
  }
  REQUIRE_OK(t.commit());
  expect_everywhere();
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.TwoHundredRuns", "[EdgeTest]") {
  for (int run = 0; run < 200; ++run) {
    WriteTransaction t = database_->begin();
    for (int i = 0; i < 20; ++i) {
      std::string key = "k" + std::to_string(random_() % 500);
      if (random_() % 4 == 0) {
        REQUIRE_OK(t.erase(table_, key));
        model_.erase(key);
      } else {
        std::string value = std::to_string(run) + "." + std::to_string(i);
        REQUIRE_OK(t.put(table_, key, value));
        model_[key] = value;
      }
    }
    REQUIRE_OK(t.commit(Durability::flush));
  }
  REQUIRE(database_->tables()[0].runs == 200u);
  expect_everywhere();
  REQUIRE(database_->tables()[0].runs == 1u);
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.EverythingErased", "[EdgeTest]") {
  put({{"a", "1"}, {"b", "2"}, {"c", "3"}});
  WriteTransaction t = database_->begin();
  for (const char* k : {"a", "b", "c", "not there"}) REQUIRE_OK(t.erase(table_, k));
  REQUIRE_OK(t.commit());
  model_.clear();
  expect_everywhere();
  REQUIRE(database_->tables()[0].rows == 0u);
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.AbortedAndDroppedTransactionsLeaveNothing", "[EdgeTest]") {
  put({{"kept", "1"}});
  {
    WriteTransaction t = database_->begin();
    REQUIRE_OK(t.put(table_, "gone", "x"));
    t.abort();
    CHECK(t.put(table_, "gone", "x").code() == StatusCode::closed);
    CHECK(t.commit().code() == StatusCode::closed);
    WriteTransaction dropped = database_->begin();
    REQUIRE_OK(dropped.put(table_, "gone too", "x"));
  }
  expect_everywhere();
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.SnapshotOutlivesCompactionDropAndClose", "[EdgeTest]") {
  put({{"a", "1"}});
  put({{"b", "2"}});
  Snapshot snapshot = database_->snapshot();
  auto it = snapshot.iterate(table_);
  REQUIRE_OK(database_->compact());
  REQUIRE_OK(database_->drop_table("t"));
  REQUIRE_OK(database_->close());
  database_.reset();
  expect_equal(snapshot, table_, model_, random_);
  REQUIRE((it.ok() && it->valid()));
  CHECK(text(it->key()) == "a");
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.ObsoleteFilesGoWithTheLastPin", "[EdgeTest]") {
  auto segments = [&] {
    int n = 0;
    for (auto& f : std::filesystem::directory_iterator(directory_.path()))
      n += f.path().extension() == ".seg";
    return n;
  };
  put({{"a", "1"}});
  put({{"b", "2"}});
  auto snapshot = std::make_unique<Snapshot>(database_->snapshot());
  REQUIRE_OK(database_->compact());
  CHECK(segments() == 3);
  snapshot.reset();
  CHECK(segments() == 1);
  uint64_t on_disk = 0;
  for (auto& f : std::filesystem::directory_iterator(directory_.path()))
    if (!std::set<std::string>{"LOCK", "CURRENT", "LOG"}.contains(f.path().filename()))
      on_disk += f.file_size();
  CHECK(database_->size_bytes() == on_disk);
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.TransactionOverSeveralTables", "[EdgeTest]") {
  auto other = database_->create_table("numbers", {.key_width = 4});
  REQUIRE_OK(other);
  WriteTransaction t = database_->begin();
  REQUIRE_OK(t.put(table_, "k", "v"));
  REQUIRE_OK(t.put(*other, "1234", "w"));
  REQUIRE_OK(t.commit());
  model_["k"] = "v";
  Model numbers{{"1234", "w"}};
  expect_equal(database_->snapshot(), *other, numbers, random_);
  expect_everywhere();
  auto names = database_->tables();
  REQUIRE(names.size() == 2u);
  CHECK(names[1].name == "numbers");
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.FlowsThatCommitTogetherBecomeOneRun", "[EdgeTest]") {
  constexpr int flows = 4, rows = 50'000;
  TestThreads threads;
  for (int f = 0; f < flows; ++f)
    threads.start([&, f] {
      WriteTransaction t = database_->begin();
      for (int i = 0; i < rows; i += 100) {
        Rows keys, values;
        for (int j = i; j < i + 100; ++j) {
          keys.add(std::to_string(f) + "-" + std::to_string(j));
          values.add(std::to_string(j * f));
        }
        CHECK_OK(t.put(table_, keys.column(), values.column()));
      }
      CHECK_OK(t.commit());
    });
  threads.join();
  auto count = database_->snapshot().count(table_);
  REQUIRE_OK(count);
  CHECK(*count == uint64_t{flows} * rows);
  CHECK(database_->tables()[0].runs <= uint64_t{flows});
}

TEST_CASE_METHOD(EdgeTest, "EdgeTest.ManyThreadsStageIntoOneTransaction", "[EdgeTest]") {
  WriteTransaction t = database_->begin();
  TestThreads threads;
  for (int f = 0; f < 4; ++f) {
    for (int i = 0; i < 2000; ++i)
      model_[std::to_string(f) + "-" + std::to_string(i)] = std::to_string(i + 1);
    threads.start([&, f] {
      for (int i = 0; i < 2000; ++i) {
        std::string key = std::to_string(f) + "-" + std::to_string(i);
        CHECK_OK(t.put(table_, key, "old"));
        CHECK_OK(t.put(table_, key, std::to_string(i + 1)));
      }
    });
  }
  threads.join();
  REQUIRE_OK(t.commit());
  expect_everywhere();
}

TEST_CASE("EdgeTest.ARowSetRefusesOffsetsThatDescend", "[EdgeTest]") {
  auto set = RowSet::make(2);
  REQUIRE_OK(set);
  const uint64_t offsets[] = {0, 3, 1, 4};
  uint64_t was_new = 0;
  const Status s = set->put(Column::variable("abcd", offsets, 3), {&was_new, 1});
  CHECK(s.code() == StatusCode::invalid_argument);
  CHECK(s.message() == "row 1: the offsets descend");
  CHECK(set->size() == 0u);
}

}  // namespace
}  // namespace stride::test

// The inputs at the edge of what a table may hold.
#include <thread>

#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class EdgeTest : public ::testing::Test {
 protected:
  void SetUp() override { reopen({}); }

  void reopen(const Options& options) {
    database_.reset();
    auto db = Database::open(directory_.path(), options);
    ASSERT_TRUE(db.ok()) << db.status().to_string();
    database_ = std::move(*db);
    auto table = database_->open_or_create_table("t");
    ASSERT_TRUE(table.ok());
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
    STRIDE_ASSERT_OK(t.put(table_, keys.column(), values.column()));
    STRIDE_ASSERT_OK(t.commit());
  }

  // As it is, reopened through the page cache, compacted, and reopened again.
  void expect_everywhere() {
    expect_equal(database_->snapshot(), table_, model_, random_);
    reopen({.memory_limit_bytes = 1});
    expect_equal(database_->snapshot(), table_, model_, random_);
    STRIDE_ASSERT_OK(database_->compact());
    expect_equal(database_->snapshot(), table_, model_, random_);
    reopen({});
    expect_equal(database_->snapshot(), table_, model_, random_);
    STRIDE_ASSERT_OK(database_->verify());
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Database> database_;
  Table table_;
  Model model_;
  std::mt19937_64 random_{seed()};
};

TEST_F(EdgeTest, EmptyTable) { expect_everywhere(); }

TEST_F(EdgeTest, EmptyCommit) {
  WriteTransaction t = database_->begin();
  STRIDE_ASSERT_OK(t.put(table_, Rows().column(), Rows().column()));
  STRIDE_ASSERT_OK(t.commit());
  STRIDE_ASSERT_OK(database_->begin().commit());
  expect_everywhere();
}

TEST_F(EdgeTest, OneRecord) {
  put({{"key", "value"}});
  expect_everywhere();
}

TEST_F(EdgeTest, EmptyKeyAndEmptyValue) {
  put({{"", ""}});
  expect_everywhere();
  put({{"", "not empty"}, {"a", ""}});
  expect_everywhere();
}

TEST_F(EdgeTest, KeysThatArePrefixesOfEachOther) {
  Model rows;
  for (int i = 0; i < 300; ++i) rows[std::string(i, 'x')] = std::to_string(i);
  for (int i = 0; i < 300; ++i) rows[std::string(i, '\0')] = std::to_string(-i);
  put(rows);
  expect_everywhere();
}

TEST_F(EdgeTest, ZeroAndFullBytes) {
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

TEST_F(EdgeTest, LongestKeys) {
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

TEST_F(EdgeTest, LargeValuesAmongSmall) {
  Model rows;
  for (int i = 0; i < 400; ++i)
    rows["k" + std::to_string(i)] = std::string(i % 100 == 7 ? 3'000'000 + i : i, char(i));
  put(rows);
  expect_everywhere();
}

TEST_F(EdgeTest, AllKeysEqual) {
  Rows keys, values;
  for (int i = 0; i < 100'000; ++i) {
    keys.add("same key");
    values.add(std::to_string(i));
  }
  WriteTransaction t = database_->begin();
  STRIDE_ASSERT_OK(t.put(table_, keys.column(), values.column()));
  STRIDE_ASSERT_OK(t.commit());
  model_["same key"] = "99999";
  expect_everywhere();
}

TEST_F(EdgeTest, LaterChangeWinsWithinATransaction) {
  WriteTransaction t = database_->begin();
  for (int i = 0; i < 1000; ++i) {
    STRIDE_ASSERT_OK(t.put(table_, "k" + std::to_string(i % 10), std::to_string(i)));
    if (i % 7 == 0) STRIDE_ASSERT_OK(t.erase(table_, "k" + std::to_string(i % 10)));
    if (i % 7 == 0) {
      model_.erase("k" + std::to_string(i % 10));
    } else {
      model_["k" + std::to_string(i % 10)] = std::to_string(i);
    }
  }
  STRIDE_ASSERT_OK(t.commit());
  expect_everywhere();
}

TEST_F(EdgeTest, TwoHundredRuns) {
  for (int run = 0; run < 200; ++run) {
    WriteTransaction t = database_->begin();
    for (int i = 0; i < 20; ++i) {
      std::string key = "k" + std::to_string(random_() % 500);
      if (random_() % 4 == 0) {
        STRIDE_ASSERT_OK(t.erase(table_, key));
        model_.erase(key);
      } else {
        std::string value = std::to_string(run) + "." + std::to_string(i);
        STRIDE_ASSERT_OK(t.put(table_, key, value));
        model_[key] = value;
      }
    }
    STRIDE_ASSERT_OK(t.commit(Durability::flush));
  }
  ASSERT_EQ(database_->tables()[0].runs, 200u);
  expect_everywhere();
  ASSERT_EQ(database_->tables()[0].runs, 1u);
}

TEST_F(EdgeTest, EverythingErased) {
  put({{"a", "1"}, {"b", "2"}, {"c", "3"}});
  WriteTransaction t = database_->begin();
  for (const char* k : {"a", "b", "c", "not there"}) STRIDE_ASSERT_OK(t.erase(table_, k));
  STRIDE_ASSERT_OK(t.commit());
  model_.clear();
  expect_everywhere();
  ASSERT_EQ(database_->tables()[0].rows, 0u);
}

TEST_F(EdgeTest, AbortedAndDroppedTransactionsLeaveNothing) {
  put({{"kept", "1"}});
  {
    WriteTransaction t = database_->begin();
    STRIDE_ASSERT_OK(t.put(table_, "gone", "x"));
    t.abort();
    EXPECT_EQ(t.put(table_, "gone", "x").code(), StatusCode::closed);
    EXPECT_EQ(t.commit().code(), StatusCode::closed);
    WriteTransaction dropped = database_->begin();
    STRIDE_ASSERT_OK(dropped.put(table_, "gone too", "x"));
  }
  expect_everywhere();
}

TEST_F(EdgeTest, SnapshotOutlivesCompactionDropAndClose) {
  put({{"a", "1"}});
  put({{"b", "2"}});
  Snapshot snapshot = database_->snapshot();
  auto it = snapshot.iterate(table_);
  STRIDE_ASSERT_OK(database_->compact());
  STRIDE_ASSERT_OK(database_->drop_table("t"));
  STRIDE_ASSERT_OK(database_->close());
  database_.reset();
  expect_equal(snapshot, table_, model_, random_);
  ASSERT_TRUE(it.ok() && it->valid());
  EXPECT_EQ(text(it->key()), "a");
}

TEST_F(EdgeTest, ObsoleteFilesGoWithTheLastPin) {
  auto segments = [&] {
    int n = 0;
    for (auto& f : std::filesystem::directory_iterator(directory_.path()))
      n += f.path().extension() == ".seg";
    return n;
  };
  put({{"a", "1"}});
  put({{"b", "2"}});
  auto snapshot = std::make_unique<Snapshot>(database_->snapshot());
  STRIDE_ASSERT_OK(database_->compact());
  EXPECT_EQ(segments(), 3);
  snapshot.reset();
  EXPECT_EQ(segments(), 1);
  uint64_t on_disk = 0;
  for (auto& f : std::filesystem::directory_iterator(directory_.path()))
    if (f.path().filename() != "LOCK" && f.path().filename() != "CURRENT")
      on_disk += f.file_size();
  EXPECT_EQ(database_->size_bytes(), on_disk);
}

TEST_F(EdgeTest, TransactionOverSeveralTables) {
  auto other = database_->create_table("numbers", {.key_width = 4});
  ASSERT_TRUE(other.ok());
  WriteTransaction t = database_->begin();
  STRIDE_ASSERT_OK(t.put(table_, "k", "v"));
  STRIDE_ASSERT_OK(t.put(*other, "1234", "w"));
  STRIDE_ASSERT_OK(t.commit());
  model_["k"] = "v";
  Model numbers{{"1234", "w"}};
  expect_equal(database_->snapshot(), *other, numbers, random_);
  expect_everywhere();
  auto names = database_->tables();
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[1].name, "numbers");
}

TEST_F(EdgeTest, FlowsThatCommitTogetherBecomeOneRun) {
  constexpr int flows = 4, rows = 50'000;
  std::vector<std::thread> threads;
  for (int f = 0; f < flows; ++f)
    threads.emplace_back([&, f] {
      WriteTransaction t = database_->begin();
      for (int i = 0; i < rows; i += 100) {
        Rows keys, values;
        for (int j = i; j < i + 100; ++j) {
          keys.add(std::to_string(f) + "-" + std::to_string(j));
          values.add(std::to_string(j * f));
        }
        EXPECT_TRUE(t.put(table_, keys.column(), values.column()).ok());
      }
      EXPECT_TRUE(t.commit().ok());
    });
  for (auto& t : threads) t.join();
  auto count = database_->snapshot().count(table_);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, uint64_t{flows} * rows);
  EXPECT_LE(database_->tables()[0].runs, uint64_t{flows});
}

TEST_F(EdgeTest, ManyThreadsStageIntoOneTransaction) {
  WriteTransaction t = database_->begin();
  std::vector<std::thread> threads;
  for (int f = 0; f < 4; ++f) {
    for (int i = 0; i < 2000; ++i)
      model_[std::to_string(f) + "-" + std::to_string(i)] = std::to_string(i + 1);
    threads.emplace_back([&, f] {
      for (int i = 0; i < 2000; ++i) {
        std::string key = std::to_string(f) + "-" + std::to_string(i);
        EXPECT_TRUE(t.put(table_, key, "old").ok());
        EXPECT_TRUE(t.put(table_, key, std::to_string(i + 1)).ok());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  STRIDE_ASSERT_OK(t.commit());
  expect_everywhere();
}

}  // namespace
}  // namespace stride::test

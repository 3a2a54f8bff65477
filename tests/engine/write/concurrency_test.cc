// Writers, readers and compactions at once.
#include <atomic>
#include <thread>

#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

// Every commit sets all keys to one number, so that any snapshot must see equal numbers everywhere,
// and a later snapshot of the same reader no smaller ones.
TEST(ConcurrencyTest, ReadersSeeWholeCommits) {
  TemporaryDirectory directory;
  auto db = Database::open(directory.path());
  ASSERT_TRUE(db.ok());
  auto table = (*db)->create_table("t");
  ASSERT_TRUE(table.ok());
  constexpr int keys = 500, commits = 60;
  Rows key_rows;
  for (int i = 0; i < keys; ++i) key_rows.add("key" + std::to_string(i));
  auto write = [&](int number) {
    Rows values;
    for (int i = 0; i < keys; ++i) values.add(std::to_string(number));
    WriteTransaction t = (*db)->begin();
    STRIDE_ASSERT_OK(t.put(*table, key_rows.column(), values.column()));
    STRIDE_ASSERT_OK(t.commit(Durability::flush));
  };
  write(0);
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r)
    readers.emplace_back([&, r] {
      int last = 0;
      GetResult got;
      while (!stop) {
        Snapshot s = (*db)->snapshot();
        int seen = -1;
        auto check = [&](Bytes value) {
          int v = std::stoi(text(value));
          if (seen < 0) seen = v;
          EXPECT_EQ(v, seen);
        };
        if (r == 0) {
          Status status = s.get(*table, key_rows.column(), &got);
          EXPECT_TRUE(status.ok()) << status.to_string();
          for (int i = 0; i < keys; ++i) check(got.values[i]);
        } else if (r == 1) {
          auto it = s.iterate(*table);
          for (; it->valid(); it->next()) check(it->value());
        } else {
          for (int i = 0; i < keys; i += 50) {
            auto one = s.get(*table, std::string_view("key" + std::to_string(i)));
            EXPECT_TRUE(one.ok() && one->has_value());
            check(**one);
          }
        }
        EXPECT_GE(seen, last);
        last = seen;
      }
    });
  std::thread compactor([&] {
    while (!stop) EXPECT_TRUE((*db)->compact().ok());
  });
  for (int c = 1; c <= commits; ++c) write(c);
  stop = true;
  for (auto& t : readers) t.join();
  compactor.join();
  STRIDE_ASSERT_OK((*db)->verify());
}

TEST(ConcurrencyTest, ManyWritersOnSeveralTables) {
  TemporaryDirectory directory;
  constexpr int writers = 6, commits = 15;
  {
    auto db = Database::open(directory.path());
    ASSERT_TRUE(db.ok());
    std::vector<std::thread> threads;
    for (int w = 0; w < writers; ++w)
      threads.emplace_back([&, w] {
        auto own = (*db)->open_or_create_table("table" + std::to_string(w % 2));
        auto shared = (*db)->open_or_create_table("shared");
        ASSERT_TRUE(own.ok() && shared.ok());
        for (int c = 0; c < commits; ++c) {
          WriteTransaction t = (*db)->begin();
          std::string key = std::to_string(w) + ":" + std::to_string(c);
          EXPECT_TRUE(t.put(*own, key, "own").ok());
          EXPECT_TRUE(t.put(*shared, key, "shared").ok());
          Status s = t.commit(static_cast<Durability>(c % 3));
          EXPECT_TRUE(s.ok()) << s.to_string();
        }
      });
    for (auto& t : threads) t.join();
  }
  auto db = Database::open(directory.path());
  ASSERT_TRUE(db.ok());
  auto shared = (*db)->open_table("shared");
  auto count = (*db)->snapshot().count(*shared);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, uint64_t{writers} * commits);
  EXPECT_EQ((*db)->tables().size(), 3u);
}

// What lists, reports and checks holds on to the version that it looks at.
TEST(ConcurrencyTest, ListsReportsAndChecksBesideCommits) {
  TemporaryDirectory directory;
  auto db = Database::open(directory.path());
  ASSERT_TRUE(db.ok());
  Table table = *(*db)->create_table("t");
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  auto repeat = [&](auto call) {
    others.emplace_back([&stop, call] {
      while (!stop) call();
    });
  };
  repeat([&] {
    for (const TableStatistics& t : (*db)->tables())
      EXPECT_TRUE(t.name == "t" || t.name == "dropped") << t.name;
  });
  repeat([&] { EXPECT_TRUE((*db)->verify().ok()); });
  repeat([&] { EXPECT_TRUE((*db)->segments(table).ok()); });
  repeat([&] { EXPECT_EQ((*db)->open_table("t")->id(), table.id()); });
  for (int i = 0; i < 300; ++i) {
    WriteTransaction t = (*db)->begin();
    STRIDE_ASSERT_OK(t.put(table, std::to_string(i), "value"));
    STRIDE_ASSERT_OK(t.put(*t.create_table("dropped"), "key", "value"));
    STRIDE_ASSERT_OK(t.commit(Durability::none));
    STRIDE_ASSERT_OK((*db)->drop_table("dropped"));
    if (i % 10 == 0) STRIDE_ASSERT_OK((*db)->compact());
  }
  stop = true;
  for (std::thread& other : others) other.join();
}

}  // namespace
}  // namespace stride::test

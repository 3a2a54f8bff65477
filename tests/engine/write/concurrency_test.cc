// Writers, readers and compactions at once.
#include <atomic>

#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

// Every commit sets all keys to one number, so that any snapshot must see equal numbers everywhere,
// and a later snapshot of the same reader no smaller ones.
TEST_CASE("ConcurrencyTest.ReadersSeeWholeCommits", "[ConcurrencyTest]") {
  TemporaryDirectory directory;
  auto db = Database::open(directory.path());
  REQUIRE_OK(db);
  auto table = (*db)->create_table("t");
  REQUIRE_OK(table);
  constexpr int keys = 500, commits = smaller_under_sanitizers(60, 30);
  Rows key_rows;
  for (int i = 0; i < keys; ++i) key_rows.add("key" + std::to_string(i));
  auto write = [&](int number) {
    Rows values;
    for (int i = 0; i < keys; ++i) values.add(std::to_string(number));
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, key_rows.column(), values.column()));
    REQUIRE_OK(t.commit(Durability::flush));
  };
  write(0);
  TestThreads threads;
  for (int r = 0; r < 3; ++r)
    threads.start([&, r] {
      int last = 0;
      GetResult got;
      while (!threads.stopping()) {
        Snapshot s = (*db)->snapshot();
        int seen = -1;
        auto check = [&](Bytes value) {
          int v = std::stoi(text(value));
          if (seen < 0) seen = v;
          CHECK_MESSAGE(v == seen, "in one snapshot");
        };
        if (r == 0) {
          Status status = s.get(*table, key_rows.column(), &got);
          CHECK_OK(status);
          for (int i = 0; i < keys; ++i) check(got.values[i]);
        } else if (r == 1) {
          auto it = s.iterate(*table);
          for (; it->valid(); it->next()) check(it->value());
        } else {
          for (int i = 0; i < keys; i += 50) {
            auto one = s.get(*table, std::string_view("key" + std::to_string(i)));
            REQUIRE_OK(one);
            REQUIRE_MESSAGE(one->has_value(), "key" << i);
            check(**one);
          }
        }
        CHECK_MESSAGE(seen >= last, "a later snapshot");
        last = seen;
      }
    });
  threads.start([&] {
    while (!threads.stopping()) CHECK_OK((*db)->compact());
  });
  for (int c = 1; c <= commits; ++c) write(c);
  threads.join();
  REQUIRE_OK((*db)->verify());
}

TEST_CASE("ConcurrencyTest.ManyWritersOnSeveralTables", "[ConcurrencyTest]") {
  TemporaryDirectory directory;
  constexpr int writers = 6, commits = 15;
  {
    auto db = Database::open(directory.path());
    REQUIRE_OK(db);
    TestThreads threads;
    for (int w = 0; w < writers; ++w)
      threads.start([&, w] {
        auto own = (*db)->open_or_create_table("table" + std::to_string(w % 2));
        auto shared = (*db)->open_or_create_table("shared");
        REQUIRE_OK(own);
        REQUIRE_OK(shared);
        for (int c = 0; c < commits; ++c) {
          WriteTransaction t = (*db)->begin();
          std::string key = std::to_string(w) + ":" + std::to_string(c);
          CHECK_OK(t.put(*own, key, "own"));
          CHECK_OK(t.put(*shared, key, "shared"));
          Status s = t.commit(static_cast<Durability>(c % 3));
          CHECK_OK(s);
        }
      });
    threads.join();
  }
  auto db = Database::open(directory.path());
  REQUIRE_OK(db);
  auto shared = (*db)->open_table("shared");
  auto count = (*db)->snapshot().count(*shared);
  REQUIRE_OK(count);
  CHECK(*count == uint64_t{writers} * commits);
  CHECK((*db)->tables().size() == 3u);
}

// What lists, reports and checks holds on to the version that it looks at.
TEST_CASE("ConcurrencyTest.ListsReportsAndChecksBesideCommits", "[ConcurrencyTest]") {
  TemporaryDirectory directory;
  auto db = Database::open(directory.path());
  REQUIRE_OK(db);
  Table table = *(*db)->create_table("t");
  TestThreads others;
  auto repeat = [&](auto call) {
    others.start([&others, call] {
      while (!others.stopping()) call();
    });
  };
  repeat([&] {
    for (const TableStatistics& t : (*db)->tables())
      CHECK_MESSAGE((t.name == "t" || t.name == "dropped"), t.name);
  });
  repeat([&] { CHECK_OK((*db)->verify()); });
  repeat([&] { CHECK_OK((*db)->segments(table)); });
  repeat([&] { CHECK_MESSAGE((*db)->open_table("t")->id() == table.id(), "the id of t"); });
  for (int i = 0; i < smaller_under_sanitizers(300, 120); ++i) {
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(table, std::to_string(i), "value"));
    REQUIRE_OK(t.put(*t.create_table("dropped"), "key", "value"));
    REQUIRE_OK(t.commit(Durability::none));
    REQUIRE_OK((*db)->drop_table("dropped"));
    if (i % 10 == 0) REQUIRE_OK((*db)->compact());
  }
  others.join();
}

}  // namespace
}  // namespace stride::test

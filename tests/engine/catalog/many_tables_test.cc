// Databases of many tables: no call takes longer for each table because there are others.
#include <time.h>

#include <algorithm>

#include "engine/dedup_table.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

double processor_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What calls cost in seconds of processor time.
struct Seconds {
  double create = 0;  // n tables in one transaction
  double put = 0;     // a row into each
  double commit = 0;  // all of that
  double find = 0;    // each of them by its name
  double more = 0;    // some more tables, one by one
  double dedup = 0;   // a dedup table that is opened again and again
};

constexpr int more_tables = 200;

std::string table_name(int i) { return "table " + std::to_string(i); }

Options options_of(FileSystem& fs) {
  Options options{.durability = Durability::none, .threads = 1, .file_system = &fs};
  options.tree.strides = {8};  // planning a tree takes longer than all else
  return options;
}

Seconds measure(int tables) {
  MemoryFileSystem fs({.crashable = false});
  auto opened = Database::open("db", options_of(fs));
  CHECK_OK(opened);
  Database& db = **opened;
  Seconds taken;
  double start = processor_seconds();
  auto lap = [&](double* seconds) {
    double now = processor_seconds();
    *seconds = now - start;
    start = now;
  };
  WriteTransaction t = db.begin();
  std::vector<Table> created;
  for (int i = 0; i < tables; ++i) created.push_back(*t.create_table(table_name(i)));
  lap(&taken.create);
  for (const Table& table : created) CHECK_OK(t.put(table, "key", table.name()));
  lap(&taken.put);
  CHECK_OK(t.commit());
  lap(&taken.commit);
  for (int i = 0; i < tables; ++i) CHECK_OK(db.open_table(table_name(i)));
  lap(&taken.find);
  for (int i = 0; i < more_tables; ++i)
    CHECK_OK(db.create_table("more " + std::to_string(i), {.key_width = 8}));
  lap(&taken.more);
  for (int i = 0; i < more_tables; ++i)
    CHECK_OK(DedupTable::open(db, "more 0", {.words = 4, .threads = 1}));
  lap(&taken.dedup);
  Snapshot snapshot = db.snapshot();
  for (const Table& table : created) {
    auto row = snapshot.get(table, "key");
    CHECK_MESSAGE((row.ok() && row->has_value() && text(**row) == table.name()), table.name());
  }
  CHECK(db.tables().size() == created.size() + more_tables);
  return taken;
}

// The shortest times of some runs, for others may be busy on the machine.
Seconds fastest(int tables, int runs) {
  Seconds best = measure(tables);
  for (int run = 1; run < runs; ++run) {
    Seconds taken = measure(tables);
    for (auto part : {&Seconds::create, &Seconds::put, &Seconds::commit, &Seconds::find,
                      &Seconds::more, &Seconds::dedup})
      best.*part = std::min(best.*part, taken.*part);
  }
  return best;
}

TEST_CASE("ManyTablesTest.TakesAsLongForEachOfThem", "[ManyTablesTest]") {
  constexpr int factor = 16;
  Seconds few = fastest(500, 5), many = fastest(500 * factor, 5);
  CHECK(many.create < 3 * factor * few.create);
  CHECK(many.put < 3 * factor * few.put);
  CHECK(many.commit < 3 * factor * few.commit);
  CHECK(many.find < 3 * factor * few.find);
  CHECK(many.more < 2 * factor * few.more);  // pointers are copied
  CHECK(many.dedup < 3 * few.dedup);
}

TEST_CASE("ManyTablesTest.AreFoundByNameWhateverWasCreatedAndDropped", "[ManyTablesTest]") {
  MemoryFileSystem fs({.crashable = false});
  auto db = Database::open("db", options_of(fs));
  REQUIRE_OK(db.status());
  WriteTransaction t = (*db)->begin();
  for (int i = 0; i < 100; ++i) {
    auto table = t.create_table(table_name(i));
    REQUIRE_OK(table.status());
    REQUIRE_OK(t.put(*table, "key", table_name(i)));
  }
  CHECK(t.create_table(table_name(50)).status().code() == StatusCode::already_exists);
  REQUIRE_OK(t.open_or_create_table(table_name(50)).status());
  REQUIRE_OK(t.commit());
  for (int i = 0; i < 100; i += 3) REQUIRE_OK((*db)->drop_table(table_name(i)));
  // The last one to be created has the first name.
  REQUIRE_OK((*db)->create_table("a").status());
  auto expect_tables = [&] {
    for (int i = 0; i < 100; ++i) {
      auto table = (*db)->open_table(table_name(i));
      REQUIRE_MESSAGE(table.ok() == (i % 3 != 0), table_name(i));
      if (!table.ok()) continue;
      auto row = (*db)->snapshot().get(*table, "key");
      REQUIRE_MESSAGE((row.ok() && row->has_value()), table_name(i));
      CHECK(text(**row) == table_name(i));
    }
    CHECK_OK((*db)->open_table("a"));
    CHECK((*db)->tables().size() == 67u);
  };
  expect_tables();
  REQUIRE_OK((*db)->close());
  db = Database::open("db", options_of(fs));
  REQUIRE_OK(db.status());
  expect_tables();
}

// Whoever wants a table has it, however often others drop it meanwhile.
TEST_CASE("ManyTablesTest.ATableThatOthersDropIsMadeAgain", "[ManyTablesTest]") {
  MemoryFileSystem fs({.crashable = false});
  auto db = Database::open("db", options_of(fs));
  REQUIRE_OK(db.status());
  TestThreads threads;
  for (int t = 0; t < 8; ++t) {
    threads.start([&] {
      for (int i = 0; i < 2000; ++i) {
        CHECK_OK((*db)->open_or_create_table("shared").status());
        const StatusCode dropped = (*db)->drop_table("shared").code();
        CHECK_MESSAGE((dropped == StatusCode::ok || dropped == StatusCode::not_found), i);
      }
    });
  }
  threads.join();
  CHECK((*db)->tables().empty());
}

}  // namespace
}  // namespace stride::test

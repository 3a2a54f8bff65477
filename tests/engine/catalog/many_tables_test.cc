// Databases of many tables: no call takes longer for each table because there are others.
#include <time.h>

#include <algorithm>

#include "storage/memory_file_system.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

double cpu_seconds() {
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
};

constexpr int more_tables = 200;

std::string name_of(int i) { return "table " + std::to_string(i); }

Options options_of(FileSystem& fs) {
  Options options{.durability = Durability::none, .threads = 1, .file_system = &fs};
  options.tree.strides = {8};  // planning a tree takes longer than all else
  return options;
}

Seconds measure(int tables) {
  MemoryFileSystem fs({.crashable = false});
  auto opened = Database::open("db", options_of(fs));
  EXPECT_TRUE(opened.ok()) << opened.status().to_string();
  Database& db = **opened;
  Seconds taken;
  double start = cpu_seconds();
  auto lap = [&](double* seconds) {
    double now = cpu_seconds();
    *seconds = now - start;
    start = now;
  };
  WriteTransaction t = db.begin();
  std::vector<Table> created;
  for (int i = 0; i < tables; ++i) created.push_back(*t.create_table(name_of(i)));
  lap(&taken.create);
  for (const Table& table : created) EXPECT_TRUE(t.put(table, "key", table.name()).ok());
  lap(&taken.put);
  EXPECT_TRUE(t.commit().ok());
  lap(&taken.commit);
  for (int i = 0; i < tables; ++i) EXPECT_TRUE(db.open_table(name_of(i)).ok());
  lap(&taken.find);
  for (int i = 0; i < more_tables; ++i)
    EXPECT_TRUE(db.create_table("more " + std::to_string(i)).ok());
  lap(&taken.more);
  Snapshot snapshot = db.snapshot();
  for (const Table& table : created) {
    auto row = snapshot.get(table, "key");
    EXPECT_TRUE(row.ok() && row->has_value() && text(**row) == table.name()) << table.name();
  }
  EXPECT_EQ(db.tables().size(), created.size() + more_tables);
  return taken;
}

// The least of some runs, for others may be busy on the machine.
Seconds least(int tables, int runs) {
  Seconds least = measure(tables);
  for (int run = 1; run < runs; ++run) {
    Seconds taken = measure(tables);
    for (auto part :
         {&Seconds::create, &Seconds::put, &Seconds::commit, &Seconds::find, &Seconds::more})
      least.*part = std::min(least.*part, taken.*part);
  }
  return least;
}

TEST(ManyTablesTest, TakesAsLongForEachOfThem) {
  constexpr int factor = 16;
  Seconds few = least(500, 5), many = least(500 * factor, 2);
  EXPECT_LT(many.create, 3 * factor * few.create);
  EXPECT_LT(many.put, 3 * factor * few.put);
  EXPECT_LT(many.commit, 3 * factor * few.commit);
  EXPECT_LT(many.find, 3 * factor * few.find);
  EXPECT_LT(many.more, 2 * factor * few.more);  // pointers are copied
}

TEST(ManyTablesTest, AreFoundByNameWhateverWasCreatedAndDropped) {
  MemoryFileSystem fs({.crashable = false});
  auto db = Database::open("db", options_of(fs));
  STRIDE_ASSERT_OK(db.status());
  WriteTransaction t = (*db)->begin();
  for (int i = 0; i < 100; ++i) {
    auto table = t.create_table(name_of(i));
    STRIDE_ASSERT_OK(table.status());
    STRIDE_ASSERT_OK(t.put(*table, "key", name_of(i)));
  }
  EXPECT_EQ(t.create_table(name_of(50)).status().code(), StatusCode::already_exists);
  STRIDE_ASSERT_OK(t.open_or_create_table(name_of(50)).status());
  STRIDE_ASSERT_OK(t.commit());
  for (int i = 0; i < 100; i += 3) STRIDE_ASSERT_OK((*db)->drop_table(name_of(i)));
  // The last one to be created has the first name.
  STRIDE_ASSERT_OK((*db)->create_table("a").status());
  auto expect_tables = [&] {
    for (int i = 0; i < 100; ++i) {
      auto table = (*db)->open_table(name_of(i));
      ASSERT_EQ(table.ok(), i % 3 != 0) << name_of(i);
      if (!table.ok()) continue;
      auto row = (*db)->snapshot().get(*table, "key");
      ASSERT_TRUE(row.ok() && row->has_value()) << name_of(i);
      EXPECT_EQ(text(**row), name_of(i));
    }
    EXPECT_TRUE((*db)->open_table("a").ok());
    EXPECT_EQ((*db)->tables().size(), 67u);
  };
  expect_tables();
  STRIDE_ASSERT_OK((*db)->close());
  db = Database::open("db", options_of(fs));
  STRIDE_ASSERT_OK(db.status());
  expect_tables();
}

}  // namespace
}  // namespace stride::test

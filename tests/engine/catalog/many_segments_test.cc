// Databases of many segments: what is read stays right, and nothing takes longer for each of them.
#include <time.h>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class ManySegmentsTest {
 protected:
  void open(FileSystem* fs) {
    db_.reset();
    auto db =
        Database::open("db", {.durability = Durability::none, .threads = 1, .memtable_bytes = 0, .background_work = false, .file_system = fs});
    REQUIRE_OK(db);
    db_ = std::move(*db);
    auto table = db_->open_or_create_table("t");
    REQUIRE_OK(table);
    table_ = *table;
  }
  void put(const std::string& key, const std::string& value) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table_, key, value));
    REQUIRE_OK(t.commit());
  }

  std::unique_ptr<Database> db_;
  Table table_;
};

TEST_CASE_METHOD(ManySegmentsTest, "ManySegmentsTest.ReadsFindTheNewestAndSnapshotsTheirOwn",
                 "[ManySegmentsTest]") {
  MemoryFileSystem fs({.crashable = false});
  open(&fs);
  std::mt19937_64 random(seed());
  Model model;
  struct Earlier {
    Snapshot snapshot;
    Table table;
    Model rows;
  };
  std::vector<Earlier> earlier;
  for (int i = 0; i < 700; ++i) {
    std::string key = "key" + std::to_string(random() % 50), value = std::to_string(i);
    put(key, value);
    model[key] = value;
    if (i % 97 == 0) earlier.push_back({db_->snapshot(), table_, model});
    if (i == 400) REQUIRE_OK(db_->compact());
    if (i == 500) open(&fs);
  }
  earlier.push_back({db_->snapshot(), table_, model});
  for (const Earlier& e : earlier) expect_equal(e.snapshot, e.table, e.rows, random);
  CHECK(db_->tables()[0].segments == 300u);
  earlier.clear();
  REQUIRE_OK(db_->compact());
  CHECK(db_->tables()[0].segments == 1u);
  auto manifest = fs.open("db/MANIFEST-000001", OpenMode::read);
  REQUIRE_OK(manifest);
  CHECK(db_->size_bytes() == *(*manifest)->size() + db_->tables()[0].bytes_on_disk);
  open(&fs);
  expect_equal(db_->snapshot(), table_, model, random);
}

double cpu_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST_CASE_METHOD(ManySegmentsTest, "ManySegmentsTest.OpeningTakesAsLongForEachOfThem",
                 "[ManySegmentsTest]") {
  auto seconds_to_open = [&](int segments) {
    MemoryFileSystem fs({.crashable = false});
    open(&fs);
    for (int i = 0; i < segments; ++i) put("key" + std::to_string(i), "value");
    CHECK_OK(db_->close());
    double before = cpu_seconds();
    open(&fs);
    double seconds = cpu_seconds() - before;
    CHECK(db_->tables()[0].segments == static_cast<uint64_t>(segments));
    db_.reset();
    return seconds;
  };
  double few = seconds_to_open(250), many = seconds_to_open(4000);
  CHECK_MESSAGE(many < 48 * few, "16 times as many segments");
}

}  // namespace
}  // namespace stride::test

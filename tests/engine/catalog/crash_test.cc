// Power losses, failing calls and full disks: a commit is there whole or not at all, and one that
// was synced is there.
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_tables.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

class CrashTest {
 protected:
  Options options(MemoryFileSystem& fs) {
    Options o;
    o.file_system = &fs;
    o.threads = 2;
    o.memtable_bytes = memtable_bytes_;
    o.max_range_tombstones = max_range_tombstones_;
    return o;
  }
  // Every commit makes a segment; most do, or the memtable is soon full; or all stay in the log.
  void draw_memtable() {
    const uint64_t sizes[] = {0, 1 << 12, 1 << 15, 1 << 26};
    memtable_bytes_ = sizes[random_() % 4];
    max_range_tombstones_ = random_() % 3 ? 0 : 4096;
  }

  uint64_t memtable_bytes_ = 1 << 26;
  uint64_t max_range_tombstones_ = 0;
  std::mt19937_64 random_{seed()};
  RandomTables tables_{random_};
};

TEST_CASE_METHOD(CrashTest, "CrashTest.PowerLossLeavesAPrefixWithAllSyncedCommits", "[CrashTest]") {
  for (int round = 0; round < smaller_under_sanitizers(250, 100); ++round) {
    draw_memtable();
    MemoryFileSystem fs;
    std::vector<Tables> states(1);
    size_t synced = 0;  // states[synced] and all before it are safe
    {
      auto db = Database::open("/db", options(fs));
      REQUIRE_OK(db);
      fs.fail_call(1 + random_() % 150, StatusCode::io_error, /*forever=*/true);
      for (int i = 0; i < 25; ++i) {
        Durability durability = random_() % 2 ? Durability::sync : Durability::flush;
        Tables after = states.back();
        Status s = tables_.change(**db, durability, &after);
        bool changed = after != states.back();
        states.push_back(after);
        if (!s.ok()) break;
        // What changes nothing writes nothing, and so syncs nothing.
        if (changed && durability == Durability::sync) synced = states.size() - 1;
      }
      auto after = fs.crash(random_(), static_cast<CrashPolicy>(random_() % 3));
      auto again = Database::open("/db", options(*after));
      REQUIRE_OK(again);
      auto found = read_all(**again);
      REQUIRE(found.has_value());
      size_t i = synced;
      while (i < states.size() && states[i] != *found) ++i;
      REQUIRE_MESSAGE(i < states.size(),
                      "round " << round << ": no state from " << synced << " on");
      REQUIRE_OK((*again)->verify());
      Tables next = *found;
      REQUIRE_OK(tables_.create(**again, &next));
      REQUIRE_OK(tables_.commit(**again, Durability::sync, &next));
      auto read = read_all(**again);
      REQUIRE(read.has_value());
      REQUIRE(*read == next);
      again->reset();
      fs.fail_call(0, StatusCode::ok);
    }
  }
}

// Whichever call fails: the change fails whole, reads go on, and the database can be opened again.
TEST_CASE_METHOD(CrashTest, "CrashTest.EveryCallMayFail", "[CrashTest]") {
  for (bool forever : {false, true}) {
    draw_memtable();
    for (uint64_t n = 1;; ++n) {
      MemoryFileSystem fs;
      Tables before;
      bool failed = false;
      {
        auto db = Database::open("/db", options(fs));
        REQUIRE_OK(db);
        REQUIRE_OK(tables_.create(**db, &before));
        REQUIRE_OK(tables_.commit(**db, Durability::sync, &before));
        fs.fail_call(n, StatusCode::io_error, forever);
        Tables after = before;
        for (int i = 0; i < 3 && !failed; ++i) {
          before = after;
          failed =
              !(i == 2 ? (*db)->compact() : tables_.commit(**db, Durability::sync, &after)).ok();
        }
        auto seen = read_all(**db);
        REQUIRE(seen.has_value());
        REQUIRE_MESSAGE(*seen == (failed ? before : after), "call " << n);
        fs.fail_call(0, StatusCode::ok);
        if (!failed) before = after;
        db->reset();
        auto again = Database::open("/db", options(fs));
        REQUIRE_OK(again);
        seen = read_all(**again);
        REQUIRE(seen.has_value());
        // A failed sync of the manifest may have reached the disk all the same.
        REQUIRE_MESSAGE((*seen == before || *seen == after), "call " << n);
        again->reset();
      }
      if (!failed) break;
      REQUIRE(n < 1000u);
    }
  }
}

TEST_CASE_METHOD(CrashTest, "CrashTest.FailedSyncPoisonsTheHandle", "[CrashTest]") {
  MemoryFileSystem fs;
  auto db = Database::open("/db", options(fs));
  REQUIRE_OK(db);
  Tables tables;
  REQUIRE_OK((*db)->create_table("t").status());
  tables["t"];
  REQUIRE_OK(tables_.commit(**db, Durability::sync, &tables));
  fs.fail_sync(1, StatusCode::io_error);
  Tables lost = tables;
  auto table = (*db)->open_table("t");
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.put(*table, "k", "lost"));
  Status s = t.commit();
  CHECK_FALSE(s.ok());
  WriteTransaction next = (*db)->begin();
  REQUIRE_OK(next.put(*table, "k", "refused"));
  s = next.commit();
  CHECK_MESSAGE(to_string(s.code()) == to_string(StatusCode::poisoned), s.to_string());
  CHECK_FALSE(s.remedy().empty());
  CHECK((*db)->compact().code() == StatusCode::poisoned);
  CHECK((*db)->create_table("u").status().code() == StatusCode::poisoned);
  CHECK(*read_all(**db) == tables);
  db->reset();
  db = Database::open("/db", options(fs));
  REQUIRE_OK(db);
  CHECK(*read_all(**db) == tables);
  REQUIRE_OK(tables_.commit(**db, Durability::sync, &tables));
  CHECK(*read_all(**db) == tables);
}

TEST_CASE_METHOD(CrashTest, "CrashTest.FullDiskFailsTheCommitWholeAndRecovers", "[CrashTest]") {
  memtable_bytes_ = 0;  // a log has room that was reserved before
  MemoryFileSystem fs;
  auto db = Database::open("/db", options(fs));
  REQUIRE_OK(db);
  Tables tables;
  REQUIRE_OK((*db)->create_table("t").status());
  tables["t"];
  REQUIRE_OK(tables_.commit(**db, Durability::sync, &tables));
  auto table = (*db)->open_table("t");
  for (uint64_t room : {0, 100, 5000, 9000, 20000}) {
    fs.set_capacity(fs.used_bytes() + room);
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, "large", std::string(100'000, 'x')));
    Status s = t.commit();
    CHECK_MESSAGE(to_string(s.code()) == to_string(StatusCode::no_space), s.to_string());
    CHECK_FALSE(s.remedy().empty());
    CHECK((*read_all(**db) == tables));  // too long to be printed
  }
  fs.set_capacity(uint64_t{1} << 40);
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.put(*table, "large", std::string(100'000, 'x')));
  REQUIRE_OK(t.commit());
  tables["t"]["large"] = std::string(100'000, 'x');
  CHECK((*read_all(**db) == tables));  // too long to be printed
  db->reset();
  db = Database::open("/db", options(fs));
  REQUIRE_OK(db);
  CHECK(*read_all(**db) == tables);
}

TEST_CASE_METHOD(CrashTest, "CrashTest.CloseMakesUnsyncedCommitsDurable", "[CrashTest]") {
  MemoryFileSystem fs;
  Tables tables;
  {
    auto db = Database::open("/db", options(fs));
    REQUIRE_OK(db);
    REQUIRE_OK((*db)->create_table("t").status());
    tables["t"];
    for (int i = 0; i < 5; ++i) REQUIRE_OK(tables_.commit(**db, Durability::none, &tables));
    REQUIRE_OK((*db)->close());
  }
  auto after = fs.crash(random_(), CrashPolicy::lose_unsynced);
  auto db = Database::open("/db", options(*after));
  REQUIRE_OK(db);
  CHECK(*read_all(**db) == tables);
}

}  // namespace
}  // namespace stride::test

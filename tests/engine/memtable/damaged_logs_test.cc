// Logs that are damaged at their ends, and manifests that have lost their last edits: what is found
// is what some commits made, and never a later commit without an earlier one.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/log_format.h"
#include "storage/manifest.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test::damaged_log_tests {
namespace {

class DamagedLogsTest {
 protected:
  std::unique_ptr<Database> open(MemoryFileSystem& files) {
    auto db = Database::open(
        "/db", {.durability = Durability::flush, .memtable_bytes = 1 << 20, .file_system = &files});
    REQUIRE_OK(db.status());
    return std::move(*db);
  }
  static void put(Database& db, const Table& table, const std::string& key,
                  Durability durability = Durability::flush) {
    WriteTransaction t = db.begin();
    REQUIRE_OK(t.put(table, key, "value"));
    REQUIRE_OK(t.commit(durability));
  }
  // The rows are so many that they become a segment at once.
  static void put_many(Database& db, const Table& table, Durability durability) {
    Rows keys, values;
    for (int i = 0; i < 30'000; ++i) {
      keys.add("many" + std::to_string(i));
      values.add(std::to_string(i));
    }
    WriteTransaction t = db.begin();
    REQUIRE_OK(t.put(table, keys.column(), values.column()));
    REQUIRE_OK(t.commit(durability));
  }
  static std::unique_ptr<MemoryFileSystem> copy_of(MemoryFileSystem& files) {
    return files.crash(0, CrashPolicy::keep_unsynced);
  }
  static std::vector<std::string> logs_in(MemoryFileSystem& files) {
    auto names = files.list("/db");
    REQUIRE_OK(names);
    std::vector<std::string> logs;
    for (const std::string& name : *names)
      if (name.ends_with(".wal")) logs.push_back("/db/" + name);
    return logs;
  }
  static std::unique_ptr<File> file(MemoryFileSystem& files, const std::string& path) {
    auto opened = files.open(path, OpenMode::write);
    REQUIRE_OK(opened.status());
    return std::move(*opened);
  }
  static uint64_t size_of(MemoryFileSystem& files, const std::string& path) {
    auto bytes = file(files, path)->size();
    REQUIRE_OK(bytes);
    return *bytes;
  }
  static uint64_t count(Database& db, const std::string& table) {
    auto opened = db.open_table(table);
    REQUIRE_OK(opened.status());
    auto counted = db.snapshot().count(*opened);
    REQUIRE_OK(counted);
    return *counted;
  }
  const std::string manifest_ = "/db/MANIFEST-000001";
};

// Rows of a table are in the log, and a segment of another table is newer.
TEST_CASE_METHOD(DamagedLogsTest, "DamagedLogsTest.AShorterLogUnderANewerSegmentIsCorruption",
                 "[DamagedLogsTest]") {
  const auto durability = GENERATE(Durability::none, Durability::flush, Durability::sync);
  // Where the table is the same, the log is sealed, and may become a segment before the copy is
  // made.
  const bool same_table = GENERATE(false, true);
  MemoryFileSystem files;
  auto db = open(files);
  Table small = *db->create_table("small");
  Table large = same_table ? small : *db->create_table("large");
  for (int i = 0; i < 20; ++i) put(*db, small, "key" + std::to_string(i));
  put_many(*db, large, durability);
  const auto copy = copy_of(files);
  db.reset();
  const auto logs = logs_in(*copy);
  if (same_table && logs.empty()) return;
  REQUIRE(logs.size() == 1);
  const uint64_t rows = same_table ? 30'020 : 20;
  CHECK(count(*open(*copy_of(*copy)), "small") == rows);
  for (uint64_t end : {sizeof(LogHeader), sizeof(LogHeader) + 100, size_of(*copy, logs[0]) - 10}) {
    for (bool read_only : {true, false}) {
      const auto damaged = copy_of(*copy);
      REQUIRE_OK(file(*damaged, logs[0])->truncate(end));
      auto opened = Database::open("/db", {.read_only = read_only, .file_system = damaged.get()});
      if (opened.ok()) {  // the file had zeros behind its frames
        CHECK(end > sizeof(LogHeader) + 100);
        CHECK(count(**opened, "small") == rows);
        continue;
      }
      CHECK(opened.status().code() == StatusCode::corruption);
      CHECK(opened.status().file() == logs[0]);
      CHECK_FALSE(opened.status().remedy().empty());
    }
  }
}

// A reader that follows a writer sees the same.
TEST_CASE_METHOD(DamagedLogsTest, "DamagedLogsTest.AReaderDoesNotFollowThem", "[DamagedLogsTest]") {
  MemoryFileSystem files;
  auto db = open(files);
  Table small = *db->create_table("small");
  Table large = *db->create_table("large");
  put(*db, small, "before");
  auto reader = Database::open("/db", {.read_only = true, .file_system = &files});
  REQUIRE_OK(reader);
  CHECK(count(**reader, "small") == 1);
  const uint64_t end = size_of(files, logs_in(files).at(0));
  for (int i = 0; i < 20; ++i) put(*db, small, "key" + std::to_string(i));
  put_many(*db, large, Durability::flush);
  const auto log = file(files, logs_in(files).at(0));
  std::string bytes(*log->size(), '\0');
  REQUIRE_OK(log->read_at(0, std::as_writable_bytes(std::span(bytes))));
  REQUIRE_OK(log->truncate(end));
  CHECK((*reader)->refresh().code() == StatusCode::corruption);
  CHECK(count(**reader, "small") == 1);
  REQUIRE_OK(log->write_at(0, as_bytes(bytes)));
  REQUIRE_OK((*reader)->refresh());
  CHECK(count(**reader, "small") == 21);
  CHECK(count(**reader, "large") == 30'000);
}

// What the first log of a process takes over from the one before it may be much less.
TEST_CASE_METHOD(DamagedLogsTest, "DamagedLogsTest.LogsMayBeShorterThanThoseBeforeThem",
                 "[DamagedLogsTest]") {
  MemoryFileSystem files;
  for (uint64_t opening = 0; opening < 6; ++opening) {
    auto db = open(files);
    Table small = *db->open_or_create_table("small");
    Table large = *db->open_or_create_table("large");
    CHECK(count(*db, "small") == (opening > 0 ? 1 : 0));
    for (int i = 0; i < 200; ++i) put(*db, small, "key");
    if (opening % 2 == 0) REQUIRE_OK(db->create_table("table " + std::to_string(opening)));
    if (opening == 3) put_many(*db, large, Durability::none);
    if (opening == 4) REQUIRE_OK(db->compact());
    if (opening == 5) REQUIRE_OK(db->verify());
    CHECK(count(*db, "small") == 1);
    auto reader = Database::open("/db", {.read_only = true, .file_system = &files});
    REQUIRE_OK(reader);
    CHECK(count(**reader, "small") == 1);
  }
}

// Rows that were put after a table was dropped are not there where it is.
TEST_CASE_METHOD(DamagedLogsTest, "DamagedLogsTest.FramesAfterALostEditDoNotCount",
                 "[DamagedLogsTest]") {
  const int edit = GENERATE(range(0, 4));
  MemoryFileSystem files;
  auto db = open(files);
  Table table = *db->create_table("t");
  Table other = *db->create_table("other");
  put_many(*db, other, Durability::sync);
  put(*db, table, "before", Durability::sync);
  const uint64_t end = size_of(files, manifest_);
  if (edit == 0) REQUIRE_OK(db->drop_table("other"));
  if (edit == 1) REQUIRE_OK(db->rename_table("other", "another"));
  if (edit == 2) REQUIRE_OK(db->create_table("new"));
  if (edit == 3) {
    WriteTransaction t = db->begin();
    REQUIRE_OK(
        t.erase_range(other, as_bytes(std::string("many1")), as_bytes(std::string("many2"))));
    REQUIRE_OK(t.commit(Durability::sync));
  }
  put(*db, table, "after", Durability::sync);
  const auto damaged = copy_of(files);
  db.reset();
  CHECK(size_of(*damaged, manifest_) > end);
  REQUIRE_OK(file(*damaged, manifest_)->truncate(end));
  db = open(*damaged);
  CHECK(count(*db, "t") == 1);
  if (edit != 0) CHECK(count(*db, "other") == 30'000);  // the files of a dropped table are gone
}

// A manifest with right checksums that says more, or less, than there is.
TEST_CASE_METHOD(DamagedLogsTest, "DamagedLogsTest.AnyPositionInAManifestIsRefusedOrHarmless",
                 "[DamagedLogsTest]") {
  MemoryFileSystem files;
  {
    auto db = open(files);
    Table small = *db->create_table("small");
    for (int i = 0; i < 20; ++i) put(*db, small, "key" + std::to_string(i));
    put_many(*db, *db->create_table("large"), Durability::sync);
  }
  for (uint64_t position :
       {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, UINT64_MAX - 8, UINT64_MAX}) {
    INFO(position);
    const auto forged = copy_of(files);
    {
      auto recovered = Manifest::recover(*forged, "/db", /*read_only=*/false);
      REQUIRE_OK(recovered);
      REQUIRE(recovered->state.synced_logs > 0);
      VersionEdit edit;
      edit.synced_logs = position;
      REQUIRE_OK(recovered->manifest->append(edit, /*sync=*/true));
    }
    for (bool read_only : {true, false}) {
      auto db = Database::open("/db", {.read_only = read_only, .file_system = forged.get()});
      if (position > 1) {
        CHECK(db.status().code() == StatusCode::corruption);
        CHECK(db.status().file() == logs_in(*forged).at(0));
        continue;
      }
      REQUIRE_OK(db);
      CHECK(count(**db, "small") == 20);
      if (read_only) continue;
      put(**db, *(*db)->open_table("small"), "more", Durability::sync);
      put_many(**db, *(*db)->open_table("large"), Durability::none);
      REQUIRE_OK((*db)->close());
      CHECK(count(*open(*forged), "small") == 21);
    }
  }
}

}  // namespace
}  // namespace stride::test::damaged_log_tests

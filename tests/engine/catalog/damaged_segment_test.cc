// A segment that cannot be opened takes nothing else with it: its table's reads say which file it
// is, and all other tables go on.
#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "engine/prefixes.h"
#include "storage/segment_format.h"
#include "tests/support/catch.h"
#include "tests/support/forged_files.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

// Tables `first`, `second` and `routes` of two runs each.
class DamagedSegmentTest {
 protected:
  DamagedSegmentTest() {
    auto db = open();
    for (const char* name : {"first", "second"}) CHECK_OK((*db)->create_table(name));
    CHECK_OK((*db)->create_table("routes", {.address_bits = 32}));
    for (int run = 0; run < 2; ++run) {
      WriteTransaction t = (*db)->begin();
      for (const char* name : {"first", "second"})
        for (int i = run; i < 200; i += 2) CHECK_OK(t.put(*(*db)->open_table(name), key(i), name));
      std::string network = *parse_prefix(run ? "10.0.0.0/8" : "10.1.0.0/16", 32);
      CHECK_OK(t.put(*(*db)->open_table("routes"), network, "hop"));
      CHECK_OK(t.commit());
    }
  }
  static std::string key(int i) { return "key" + std::to_string(1000 + i); }
  Result<std::unique_ptr<Database>> open(Options options = {}) {
    options.memtable_bytes = 0;  // each commit makes a segment
    return Database::open(path(), options);
  }
  std::string path() const { return directory_.file("db"); }
  // Files, oldest first: of first, second and routes, and again.
  std::string file(size_t i) const {
    std::vector<std::string> files;
    for (auto& f : fs::directory_iterator(path()))
      if (f.path().extension() == ".seg") files.push_back(f.path());
    std::sort(files.begin(), files.end());
    return files.at(i);
  }
  void expect_damage(const Status& status, const std::string& file) const {
    CHECK_MESSAGE(to_string(status.code()) == "corruption", status.to_string());
    CHECK_MESSAGE(status.file() == file, status.to_string());
    CHECK_FALSE(status.remedy().empty());
  }
  // Belongs to the table whose segment is damaged.
  void expect_reads_fail(Database& db, const std::string& name, const std::string& file) {
    INFO(name);
    auto table = db.open_table(name);
    REQUIRE_OK(table);
    Snapshot snapshot = db.snapshot();
    Rows few({key(0), key(1)}), many;
    for (int i = 0; i < 100; ++i) many.add(key(i));
    expect_damage(snapshot.get(*table, std::string_view("no such key")).status(), file);
    for (const Column& keys : {few.column(), many.column()}) {
      GetResult got;
      FindResult found;
      LowerBoundResult bounds;
      expect_damage(snapshot.get(*table, keys, &got), file);
      expect_damage(snapshot.find(*table, keys, &found), file);
      expect_damage(snapshot.lower_bound(*table, keys, &bounds), file);
    }
    expect_damage(snapshot.scan(*table).status(), file);
    expect_damage(snapshot.scan(*table, {.reverse = true}).status(), file);
    expect_damage(snapshot.count(*table).status(), file);
    expect_damage(db.segments(*table).status(), file);
    expect_damage(db.verify(), file);
  }
  void expect_table_is_whole(Database& db, const std::string& name, int rows = 200) {
    auto table = db.open_table(name);
    REQUIRE_OK(table);
    Snapshot snapshot = db.snapshot();
    for (int i : {0, 1, 77, 199}) {
      auto value = snapshot.get(*table, std::string_view(key(i)));
      REQUIRE_OK(value);
      REQUIRE(value->has_value());
      CHECK(text(**value) == name);
    }
    auto count = snapshot.count(*table);
    REQUIRE_OK(count);
    CHECK(*count == static_cast<uint64_t>(rows));
    CHECK_OK(db.segments(*table));
  }

  // Damages a file so that it cannot be opened, and expects no more than what is said above.
  void expect_no_more_than_that(size_t number,
                                const std::function<void(const std::string&)>& damage) {
    const std::string damaged = file(number);
    const std::string name = number % 3 == 0 ? "first" : "second";
    const std::string other = number % 3 == 0 ? "second" : "first";
    damage(damaged);
    {
      auto reader = open({.read_only = true});
      REQUIRE_OK(reader);
      expect_reads_fail(**reader, name, damaged);
      expect_table_is_whole(**reader, other);
    }
    auto db = open();
    REQUIRE_OK(db);
    expect_reads_fail(**db, name, damaged);
    expect_table_is_whole(**db, other);
    for (const TableStatistics& s : (*db)->tables())
      CHECK_MESSAGE(s.rows == (s.name == "routes" ? 2u : 200u), s.name);
    // Commits to both tables.
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*(*db)->open_table(name), "new", "row"));
    REQUIRE_OK(t.put(*(*db)->open_table(other), "new", other));
    REQUIRE_OK(t.commit());
    expect_table_is_whole(**db, other, 201);
    expect_damage((*db)->snapshot().get(*(*db)->open_table(name), "another").status(), damaged);
    // The other tables are compacted; of this one nothing is gone.
    const bool was_there = fs::exists(damaged);
    expect_damage((*db)->compact(), damaged);
    for (const TableStatistics& s : (*db)->tables())
      CHECK(s.segments == (s.name == name ? 3u : 1u));
    CHECK(fs::exists(damaged) == was_there);
    expect_table_is_whole(**db, other, 201);
    REQUIRE_OK((*db)->close());
    db = open();
    REQUIRE_OK(db);
    expect_table_is_whole(**db, other, 201);
    REQUIRE_OK((*db)->drop_table(name));
    REQUIRE_OK((*db)->verify());
  }

  TemporaryDirectory directory_;
};

TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.ADamagedHeader", "[DamagedSegmentTest]") {
  expect_no_more_than_that(0, [](const std::string& file) {
    std::string bytes = read_bytes(file);
    bytes[20] ^= 1;
    write_bytes(file, bytes);
  });
}

TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.ADamagedFooterOfTheOldestRun",
                 "[DamagedSegmentTest]") {
  expect_no_more_than_that(1, [](const std::string& file) {
    std::string bytes = read_bytes(file);
    bytes[bytes.size() - 10] ^= 1;
    write_bytes(file, bytes);
  });
}

TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.AMissingFile", "[DamagedSegmentTest]") {
  expect_no_more_than_that(3, [](const std::string& file) { fs::remove(file); });
}

TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.AnEmptyFile", "[DamagedSegmentTest]") {
  expect_no_more_than_that(4, [](const std::string& file) { fs::resize_file(file, 0); });
}

// A directory, a FIFO that nobody writes, and a link that leads nowhere.
TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.WhatIsNoFile", "[DamagedSegmentTest]") {
  const std::string damaged = file(0);
  for (int kind = 0; kind < 3; ++kind) {
    fs::remove(damaged);
    if (kind == 0) {
      fs::create_directory(damaged);
    } else if (kind == 1) {
      REQUIRE(mkfifo(damaged.c_str(), 0644) == 0);
    } else {
      fs::create_symlink("/no such file", damaged);
    }
    auto db = open();
    REQUIRE_OK(db);
    expect_damage((*db)->snapshot().count(*(*db)->open_table("first")).status(), damaged);
    expect_damage((*db)->compact(), damaged);
    expect_table_is_whole(**db, "second");
  }
}

TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.FilesThatChangedPlaces",
                 "[DamagedSegmentTest]") {
  std::string one = read_bytes(file(0)), other = read_bytes(file(1));
  write_bytes(file(0), other);
  write_bytes(file(1), one);
  auto db = open();
  REQUIRE_OK(db);
  expect_reads_fail(**db, "first", file(0));
  Status status = (*db)->snapshot().count(*(*db)->open_table("second")).status();
  expect_damage(status, file(1));
}

// It names other segments: those that are there may be all that is left.
TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.AManifestOfAnotherDatabase",
                 "[DamagedSegmentTest]") {
  const std::string manifest = path() + "/MANIFEST-000001", good = read_bytes(manifest);
  {
    auto other = Database::open(directory_.file("other"), {.memtable_bytes = 0});
    auto table = (*other)->create_table("t");
    for (int i = 0; i < 20; ++i) {
      WriteTransaction t = (*other)->begin();
      REQUIRE_OK(t.put(*table, key(i), "value"));
      REQUIRE_OK(t.commit());
    }
  }
  write_bytes(manifest, read_bytes(directory_.file("other") + "/MANIFEST-000001"));
  {
    auto db = open();
    REQUIRE_OK(db);
    CHECK((*db)->verify().code() == StatusCode::corruption);
    CHECK((*db)->snapshot().count(*(*db)->open_table("t")).status().code() ==
          StatusCode::corruption);
  }
  write_bytes(manifest, good);
  auto db = open();
  REQUIRE_OK(db);
  expect_table_is_whole(**db, "first");
  expect_table_is_whole(**db, "second");
  REQUIRE_OK((*db)->verify());
}

TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.APrefixTable", "[DamagedSegmentTest]") {
  const std::string damaged = file(2);
  fs::remove(damaged);
  auto db = open();
  REQUIRE_OK(db);
  auto table = (*db)->open_table("routes");
  std::string address = *parse_address("10.1.2.3", 32);
  auto match = [&] { return (*db)->snapshot().match(*table, as_bytes(address)).status(); };
  expect_damage(match(), damaged);
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.put(*table, *parse_prefix("10.1.2.0/24", 32), "hop"));
  REQUIRE_OK(t.commit());
  expect_damage(match(), damaged);
  expect_damage((*db)->snapshot().match_all(*table, as_bytes(address)).status(), damaged);
}

// A read-only handle that was opened before goes on, whatever becomes of the files.
TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.AReaderBesideAWriterThatCompacts",
                 "[DamagedSegmentTest]") {
  auto reader = open({.read_only = true});
  REQUIRE_OK(reader);
  auto db = open();
  REQUIRE_OK(db);
  REQUIRE_OK((*db)->compact());
  expect_table_is_whole(**reader, "first");
  REQUIRE_OK((*reader)->verify());
  auto later = open({.read_only = true});
  REQUIRE_OK(later);
  expect_table_is_whole(**later, "second");
}

// What the writing process holds in memory is not what it has on the disk.
TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.VerifyReadsTheDiskInTheWritingProcessToo",
                 "[DamagedSegmentTest]") {
  for (Durability durability : {Durability::sync, Durability::none}) {
    auto db = open({.durability = durability});
    REQUIRE_OK(db);
    auto table = (*db)->open_or_create_table("third");
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, "key", "value"));
    REQUIRE_OK(t.commit());
    REQUIRE_OK((*db)->verify());
    const auto files = std::distance(fs::directory_iterator(path()), fs::directory_iterator());
    REQUIRE(files > 3);
    std::string written;
    for (auto& f : fs::directory_iterator(path()))
      if (f.path().extension() == ".seg") written = std::max(written, f.path().string());
    std::string good = read_bytes(written), bytes = good;
    bytes[segment_page_bytes] ^= 1;
    write_bytes(written, bytes);
    expect_damage((*db)->verify(), written);
    fs::remove(written);
    expect_damage((*db)->verify(), written);
    write_bytes(written, good);
    REQUIRE_OK((*db)->verify());
    CHECK(text(**(*db)->snapshot().get(*table, "key")) == "value");
  }
}

// What is gone from the file can't be read through a mapping: that would end the process.
TEST_CASE_METHOD(DamagedSegmentTest, "DamagedSegmentTest.VerifySurvivesAFileThatBecomesShorter",
                 "[DamagedSegmentTest]") {
  {
    auto db = open();
    Rows keys, values;
    for (int i = 0; i < 30'000; ++i) {
      keys.add(key(i));
      values.add(std::string(100, 'v'));
    }
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*(*db)->open_table("first"), keys.column(), values.column()));
    REQUIRE_OK(t.commit());
  }
  const bool read_only = GENERATE(true, false);
  const uint64_t bytes = fs::file_size(file(6));
  CHECK(bytes > 3'000'000u);
  for (uint64_t left : {bytes - 4096, bytes - 100'000, bytes / 2, uint64_t{4096}, uint64_t{0}}) {
    INFO(left);
    auto db = open({.read_only = read_only});
    REQUIRE_OK(db);
    REQUIRE_OK((*db)->verify());
    fs::copy_file(file(6), path() + "/kept");
    fs::resize_file(file(6), left);
    expect_damage((*db)->verify(), file(6));
    VerifyReport report;
    expect_damage((*db)->verify(&report), file(6));
    CHECK_FALSE(report.damage.empty());
    db->reset();
    fs::rename(path() + "/kept", file(6));
  }
}

}  // namespace
}  // namespace stride::test

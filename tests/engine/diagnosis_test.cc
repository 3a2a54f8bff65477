// What diagnose() says of databases that are well, and of others.
#include "engine/diagnosis.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

class DiagnosisTest {
 protected:
  std::unique_ptr<Database> open(Options options = {}) {
    options.threads = 1;
    options.backend = BackendKind::host;
    options.background_work = false;
    options.file_system = &files_;
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    return std::move(*db);
  }
  // The rows that a commit puts; each becomes a run where there are no memtables.
  static void put(Database& db, int first, int rows, Durability durability = Durability::sync) {
    auto table = db.open_or_create_table("t");
    REQUIRE_OK(table);
    WriteTransaction t = db.begin();
    for (int i = first; i < first + rows; ++i)
      REQUIRE_OK(t.put(*table, std::to_string(1000000 + i), std::string(100, 'v')));
    REQUIRE_OK(t.commit(durability));
  }
  // What is unusual, by name. Looking changes nothing.
  std::vector<std::string> unusual() {
    const uint64_t calls = files_.calls();
    auto findings = diagnose("/db", &files_);
    REQUIRE_OK(findings);
    CHECK(files_.calls() == calls);
    std::vector<std::string> names;
    findings_ = std::move(*findings);
    for (const Finding& f : findings_) {
      CHECK_FALSE(f.value.empty());
      if (!f.is_fine()) names.push_back(f.what);
    }
    return names;
  }
  void write(const std::string& name, const std::string& content) {
    auto file = files_.open("/db/" + name, OpenMode::create);
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->write_at(0, as_bytes(content)));
  }
  using Names = std::vector<std::string>;
  MemoryFileSystem files_;
  std::vector<Finding> findings_;
};

TEST_CASE_METHOD(DiagnosisTest, "DiagnosisTest.AHealthyDatabaseHasNothing", "[DiagnosisTest]") {
  auto db = open();
  CHECK(unusual() == Names{});
  put(*db, 0, 10);
  put(*db, 0, 50000);
  CHECK(unusual() == Names{});  // also beside its writer
  REQUIRE_OK(db->compact());
  REQUIRE_OK(db->close());
  CHECK(unusual() == Names{});
  CHECK(findings_.size() == 10u);
  CHECK(findings_[0].value.starts_with("1 table, 50000 rows, "));
}

TEST_CASE_METHOD(DiagnosisTest, "DiagnosisTest.FilesThatBelongToNothing", "[DiagnosisTest]") {
  auto db = open();
  put(*db, 0, 10);
  write("000777.seg", "left");
  write("000778.wal", "left");
  write("notes.txt", "of somebody");
  CHECK(unusual() == Names{"leftovers", "other files"});
  CHECK(findings_[2].value == "2 files: '000777.seg', '000778.wal'");
  CHECK(findings_[3].value == "1 file: 'notes.txt'");
  REQUIRE_OK(db->close());
  open();  // as the advice says
  CHECK(unusual() == Names{"other files"});
}

TEST_CASE_METHOD(DiagnosisTest, "DiagnosisTest.DamagedAndMissingSegments", "[DiagnosisTest]") {
  {
    auto db = open({.memtable_bytes = 0});
    put(*db, 0, 100);
    put(*db, 100, 100);
  }
  std::string segment;
  const auto names = files_.list("/db");
  for (const std::string& name : *names)
    if (name.ends_with(".seg")) segment = name;
  SECTION("damaged") {
    auto file = files_.open("/db/" + segment, OpenMode::write);
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->write_at(0, as_bytes(std::string_view("no header"))));
  }
  SECTION("missing") { REQUIRE_OK(files_.remove("/db/" + segment)); }
  CHECK(unusual() == Names{"segments"});
  CHECK(findings_[1].value == "1 damaged segment: '" + segment + "'");
  CHECK(findings_[1].code == StatusCode::corruption);
}

TEST_CASE_METHOD(DiagnosisTest, "DiagnosisTest.WhatCannotBeOpened", "[DiagnosisTest]") {
  CHECK(diagnose("/none", &files_).status().code() == StatusCode::not_found);
  REQUIRE_OK(files_.create_directory("/db"));
  CHECK(unusual() == Names{"opening"});
  CHECK(findings_.size() == 1u);
  CHECK(findings_[0].code == StatusCode::not_found);
  REQUIRE_OK(files_.remove_directory("/db"));
  open();
  auto current = files_.open("/db/CURRENT", OpenMode::write);
  REQUIRE_OK(current);
  REQUIRE_OK((*current)->write_at(0, as_bytes(std::string_view("MANIFEST-999999"))));
  CHECK(unusual() == Names{"opening"});
  CHECK(findings_[0].code == StatusCode::corruption);
}

TEST_CASE_METHOD(DiagnosisTest, "DiagnosisTest.ChangesThatWereNotSynced", "[DiagnosisTest]") {
  auto db = open({.memtable_bytes = 0});
  put(*db, 0, 100, Durability::flush);
  CHECK(unusual() == Names{"unsynced"});
  REQUIRE_OK(db->sync());
  CHECK(unusual() == Names{});
}

TEST_CASE_METHOD(DiagnosisTest, "DiagnosisTest.ManySmallRuns", "[DiagnosisTest]") {
  auto db = open({.memtable_bytes = 0});
  for (int i = 0; i < 30; ++i) put(*db, i, 1, Durability::flush);
  REQUIRE_OK(db->sync());
  CHECK(unusual() == Names{"runs"});
  for (int i = 30; i < 80; ++i) put(*db, i, 1, Durability::flush);
  REQUIRE_OK(db->sync());
  CHECK(unusual() == Names{"runs", "segment size"});
  REQUIRE_OK(db->compact());  // as the advice says
  CHECK(unusual() == Names{});
}

TEST_CASE_METHOD(DiagnosisTest, "DiagnosisTest.RowsThatWereErased", "[DiagnosisTest]") {
  auto db = open({.max_range_tombstones = 0});
  put(*db, 0, 50000);
  auto table = db->open_table("t");
  WriteTransaction t = db->begin();
  REQUIRE_OK(t.erase_range(*table, as_bytes(std::string_view("1001000")), std::nullopt));
  REQUIRE_OK(t.commit());
  CHECK(unusual() == Names{"erased rows"});
  REQUIRE_OK(db->compact());
  CHECK(unusual() == Names{});
}

}  // namespace
}  // namespace stride::test

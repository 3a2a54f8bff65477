// What stride_last_error() says.
#include <fstream>

#include "storage/file.h"
#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("CErrorTest.NothingHasFailedYet", "[CErrorTest]") {
  run_elsewhere([] {
    const stride_error* e = stride_last_error();
    CHECK_MESSAGE(e->status == STRIDE_OK, "of a thread that called nothing");
    CHECK_MESSAGE(std::string_view(e->message) == "", "of a thread that called nothing");
    CHECK_MESSAGE(std::string_view(e->file) == "", "of a thread that called nothing");
    CHECK_MESSAGE(std::string_view(e->remedy) == "", "of a thread that called nothing");
    CHECK_MESSAGE(std::string_view(e->text) == "ok", "of a thread that called nothing");
    CHECK_MESSAGE(e->has_offset == 0, "of a thread that called nothing");
  });
}

TEST_CASE("CErrorTest.StatusNames", "[CErrorTest]") {
  CHECK(std::string_view(stride_status_name(STRIDE_OK)) == "ok");
  CHECK(std::string_view(stride_status_name(STRIDE_UNAVAILABLE)) == "unavailable");
  CHECK(std::string_view(stride_status_name(STRIDE_CANCELLED)) == "cancelled");
  CHECK(std::string_view(stride_status_name(STRIDE_TOO_SMALL)) == "too_small");
  CHECK(std::string_view(stride_status_name(STRIDE_CONFLICT)) == "conflict");
  for (int none : {-1, STRIDE_CONFLICT + 1, 99, 101, 1 << 30})
    CHECK(std::string_view(stride_status_name(none)) == "unknown");
}

TEST_CASE("CErrorTest.BelongsToItsThread", "[CErrorTest]") {
  CHECK(stride_open(nullptr, nullptr, nullptr) == STRIDE_INVALID_ARGUMENT);
  std::string before = stride_last_error()->text;
  run_elsewhere([] {
    CHECK_MESSAGE(stride_last_error()->status == STRIDE_OK, "of a thread that called nothing");
    CHECK_MESSAGE(stride_values_create(nullptr) == STRIDE_INVALID_ARGUMENT,
                  "of a thread that called nothing");
  });
  stride_values* values;
  CHECK_C_OK(stride_values_create(&values));  // what succeeds leaves it alone
  CHECK(stride_last_error()->text == before);
  CHECK_C_OK(stride_values_release(values));
}

TEST_CASE_METHOD(CTest, "CTest.LockedDatabase", "[CTest]") {
  CHECK_C_OK(stride_table_release(table_));
  CHECK_C_OK(stride_close(db_));
  table_ = nullptr;
  db_ = nullptr;
  auto held = FileSystem::posix().lock(path() + "/LOCK");
  REQUIRE_OK(held);
  stride_database* second;
  CHECK_C_ERROR(stride_open(path().c_str(), nullptr, &second), STRIDE_LOCKED, path());
  CHECK(std::string(stride_last_error()->file).find(path()) != std::string::npos);
}

TEST_CASE_METHOD(CTest, "CTest.ASecondHandleIsOfTheSameDatabase", "[CTest]") {
  stride_database* second = nullptr;
  REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &second));
  put(table_, {"a"}, {"1"});
  stride_table* table = nullptr;
  REQUIRE_C_OK(stride_table_open(second, "t", &table));
  CHECK(scan(table) == Strings{"a"});
  CHECK_C_OK(stride_table_release(table));
  CHECK_C_OK(stride_close(second));
  put(table_, {"b"}, {"2"});
}

TEST_CASE_METHOD(CTest, "CTest.AReaderRefreshes", "[CTest]") {
  stride_options o;
  REQUIRE_C_OK(stride_options_init(&o, sizeof o));
  o.read_only = 1;
  stride_database* reader = nullptr;
  REQUIRE_C_OK(stride_open(path().c_str(), &o, &reader));
  put(table_, {"a"}, {"1"});
  auto count = [&] {
    stride_snapshot* now = nullptr;
    stride_table* table = nullptr;
    uint64_t keys = 0;
    CHECK_C_OK(stride_table_open(reader, "t", &table));
    CHECK_C_OK(stride_snapshot_take(reader, &now));
    CHECK_C_OK(stride_count(now, table, &keys));
    CHECK_C_OK(stride_snapshot_release(now));
    CHECK_C_OK(stride_table_release(table));
    return keys;
  };
  CHECK(count() == 0u);
  CHECK_C_OK(stride_refresh(reader));
  CHECK(count() == 1u);
  CHECK_C_OK(stride_refresh(db_));
  CHECK_C_ERROR(stride_refresh(nullptr), STRIDE_INVALID_ARGUMENT, "NULL");
  CHECK_C_OK(stride_close(reader));
}

TEST_CASE_METHOD(CTest, "CTest.ReadOnlyDatabase", "[CTest]") {
  put(table_, {"a"}, {"1"});
  stride_options o;
  REQUIRE_C_OK(stride_options_init(&o, sizeof o));
  o.read_only = 1;
  stride_database* reader;
  stride_table* table;
  stride_transaction* t;
  REQUIRE_C_OK(stride_open(path().c_str(), &o, &reader));
  REQUIRE_C_OK(stride_table_open(reader, "t", &table));
  REQUIRE_C_OK(stride_begin(reader, &t));
  REQUIRE_C_OK(stride_put_one(t, table, "a", 1, "2", 1));
  CHECK_C_ERROR(stride_commit(t, STRIDE_DURABILITY_DEFAULT), STRIDE_READ_ONLY, "read_only");
  CHECK(std::string_view(stride_last_error()->remedy) != "");
  CHECK_C_ERROR(stride_table_drop(reader, "t"), STRIDE_READ_ONLY, path());
  REQUIRE_C_OK(stride_table_release(table));
  REQUIRE_C_OK(stride_close(reader));
}

// Damage is found by every kind of read; the error names the file and where in it.
TEST_CASE_METHOD(CTest, "CTest.DamagedFile", "[CTest]") {
  Strings keys;
  for (int i = 0; i < 20'000; ++i) keys.push_back("key" + std::to_string(i));
  put(table_, keys, keys);
  REQUIRE_C_OK(stride_compact(db_));  // a small commit makes no segment
  REQUIRE_C_OK(stride_close(db_));
  std::string file;
  for (auto& entry : fs::directory_iterator(path()))
    if (entry.path().extension() == ".seg") file = entry.path();
  // In every block but the first and the last two, which opening looks at.
  uint64_t size = fs::file_size(file);
  {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    for (uint64_t at = 70'000; at + 140'000 < size; at += 4096) {
      f.seekp(static_cast<std::streamoff>(at));
      f.write("damage", 6);
    }
  }
  REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &db_));
  REQUIRE_C_OK(stride_table_release(table_));
  REQUIRE_C_OK(stride_table_open(db_, "t", &table_));
  auto expect_damage = [&](int status) {
    CHECK_C_ERROR(status, STRIDE_CORRUPTION, file);
    const stride_error* e = stride_last_error();
    CHECK(e->file == file);
    CHECK(e->has_offset == 1);
    CHECK(e->offset < size);
    CHECK(std::string_view(e->message) != "");
  };
  CRows rows(keys);
  stride_column queries = rows.column(), k, v;
  stride_values* values;
  stride_references* references;
  stride_bytes value;
  stride_scan* scan;
  stride_snapshot* s = snapshot();
  REQUIRE_C_OK(stride_values_create(&values));
  REQUIRE_C_OK(stride_references_create(&references));
  expect_damage(stride_verify(db_));
  expect_damage(stride_get_one(s, table_, "key5555", 7, &value));
  expect_damage(stride_get(s, table_, &queries, values));
  expect_damage(stride_find(s, table_, &queries, references));
  int opened = stride_scan_open(s, table_, nullptr, &scan);
  if (opened == STRIDE_OK) {
    expect_damage(stride_scan_next(scan, &k, &v));
    CHECK(k.size == 0u);
    expect_damage(stride_scan_next(scan, &k, &v));
  } else {
    expect_damage(opened);
  }
  stride_transaction* t;
  REQUIRE_C_OK(stride_begin(db_, &t));
  REQUIRE_C_OK(stride_erase_range(t, table_, nullptr, nullptr));
  // Many rows go without being read, and the damage with them.
  CHECK_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  CHECK_C_OK(stride_verify(db_));
  expect_damage(stride_get_one(s, table_, "key5555", 7, &value));
  s = snapshot();
  CHECK_C_OK(stride_get(s, table_, &queries, values));
  CHECK_C_OK(stride_scan_release(scan));
  CHECK_C_OK(stride_values_release(values));
  CHECK_C_OK(stride_references_release(references));
}

}  // namespace
}  // namespace stride::test

// What stride_last_error() says.
#include <fstream>
#include <thread>

#include "tests/support/c_fixture.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

TEST(CErrorTest, NothingHasFailedYet) {
  std::thread([] {
    const stride_error* e = stride_last_error();
    EXPECT_EQ(e->status, STRIDE_OK);
    EXPECT_STREQ(e->message, "");
    EXPECT_STREQ(e->file, "");
    EXPECT_STREQ(e->remedy, "");
    EXPECT_STREQ(e->text, "ok");
    EXPECT_EQ(e->has_offset, 0);
  }).join();
}

TEST(CErrorTest, StatusNames) {
  EXPECT_STREQ(stride_status_name(STRIDE_OK), "ok");
  EXPECT_STREQ(stride_status_name(STRIDE_UNAVAILABLE), "unavailable");
  EXPECT_STREQ(stride_status_name(STRIDE_TOO_SMALL), "too_small");
  for (int none : {-1, 15, 99, 101, 1 << 30}) EXPECT_STREQ(stride_status_name(none), "unknown");
}

TEST(CErrorTest, BelongsToItsThread) {
  EXPECT_EQ(stride_open(nullptr, nullptr, nullptr), STRIDE_INVALID_ARGUMENT);
  std::string before = stride_last_error()->text;
  std::thread([] {
    EXPECT_EQ(stride_last_error()->status, STRIDE_OK);
    EXPECT_EQ(stride_values_create(nullptr), STRIDE_INVALID_ARGUMENT);
  }).join();
  stride_values* values;
  EXPECT_C_OK(stride_values_create(&values));  // what succeeds leaves it alone
  EXPECT_EQ(stride_last_error()->text, before);
  EXPECT_C_OK(stride_values_release(values));
}

TEST_F(CTest, LockedDatabase) {
  stride_database* second;
  EXPECT_C_ERROR(stride_open(path().c_str(), nullptr, &second), STRIDE_LOCKED, path());
  EXPECT_NE(std::string(stride_last_error()->file).find(path()), std::string::npos);
}

TEST_F(CTest, ReadOnlyDatabase) {
  put(table_, {"a"}, {"1"});
  stride_options o;
  ASSERT_C_OK(stride_options_init(&o, sizeof o));
  o.read_only = 1;
  stride_database* reader;
  stride_table* table;
  stride_transaction* t;
  ASSERT_C_OK(stride_open(path().c_str(), &o, &reader));
  ASSERT_C_OK(stride_table_open(reader, "t", &table));
  ASSERT_C_OK(stride_begin(reader, &t));
  ASSERT_C_OK(stride_put_one(t, table, "a", 1, "2", 1));
  EXPECT_C_ERROR(stride_commit(t, STRIDE_DURABILITY_DEFAULT), STRIDE_READ_ONLY, "read_only");
  EXPECT_STRNE(stride_last_error()->remedy, "");
  EXPECT_C_ERROR(stride_table_drop(reader, "t"), STRIDE_READ_ONLY, path());
  ASSERT_C_OK(stride_table_release(table));
  ASSERT_C_OK(stride_close(reader));
}

// Damage is found by every kind of read; the error names the file and where in it.
TEST_F(CTest, DamagedFile) {
  Strings keys;
  for (int i = 0; i < 20'000; ++i) keys.push_back("key" + std::to_string(i));
  put(table_, keys, keys);
  ASSERT_C_OK(stride_close(db_));
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
  ASSERT_C_OK(stride_open(path().c_str(), nullptr, &db_));
  ASSERT_C_OK(stride_table_release(table_));
  ASSERT_C_OK(stride_table_open(db_, "t", &table_));
  auto expect_damage = [&](int status) {
    EXPECT_C_ERROR(status, STRIDE_CORRUPTION, file);
    const stride_error* e = stride_last_error();
    EXPECT_EQ(e->file, file);
    EXPECT_EQ(e->has_offset, 1);
    EXPECT_LT(e->offset, size);
    EXPECT_STRNE(e->message, "");
  };
  CRows rows(keys);
  stride_column queries = rows.column(), k, v;
  stride_values* values;
  stride_references* references;
  stride_bytes value;
  stride_scan* scan;
  stride_snapshot* s = snapshot();
  ASSERT_C_OK(stride_values_create(&values));
  ASSERT_C_OK(stride_references_create(&references));
  expect_damage(stride_verify(db_));
  expect_damage(stride_get_one(s, table_, "key5555", 7, &value));
  expect_damage(stride_get(s, table_, &queries, values));
  expect_damage(stride_find(s, table_, &queries, references));
  int opened = stride_scan_open(s, table_, nullptr, &scan);
  if (opened == STRIDE_OK) {
    expect_damage(stride_scan_next(scan, &k, &v));
    EXPECT_EQ(k.size, 0u);
    expect_damage(stride_scan_next(scan, &k, &v));
  } else {
    expect_damage(opened);
  }
  stride_transaction* t;
  ASSERT_C_OK(stride_begin(db_, &t));
  ASSERT_C_OK(stride_erase_range(t, table_, nullptr, nullptr));
  expect_damage(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  EXPECT_C_OK(stride_scan_release(scan));
  EXPECT_C_OK(stride_values_release(values));
  EXPECT_C_OK(stride_references_release(references));
}

}  // namespace
}  // namespace stride::test

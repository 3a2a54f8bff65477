#include "storage/memory_file_system.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>

#include "storage/current_file.h"
#include "tests/support/printed_seed.h"

namespace stride {
namespace {

class MemoryFileSystemTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fs_.create_directory("db").ok()); }
  std::unique_ptr<File> make(const std::string& path) {
    auto file = fs_.open(path, OpenMode::create);
    EXPECT_TRUE(file.ok()) << file.status().to_string();
    return std::move(*file);
  }
  static std::string content(FileSystem& fs, const std::string& path) {
    auto bytes = read_file(fs, path);
    return bytes.ok() ? *bytes : "(" + std::string(to_string(bytes.status().code())) + ")";
  }
  MemoryFileSystem fs_;
};

TEST_F(MemoryFileSystemTest, UnsyncedWritesAreLost) {
  auto file = make("db/a");
  ASSERT_TRUE(file->write_at(0, as_bytes("old")).ok());
  ASSERT_TRUE(file->sync().ok());
  ASSERT_TRUE(file->write_at(0, as_bytes("newer")).ok());
  EXPECT_EQ(content(*fs_.crash(1, CrashPolicy::lose_unsynced), "db/a"), "(not_found)");
  ASSERT_TRUE(fs_.sync_directory("db").ok());
  EXPECT_EQ(content(*fs_.crash(1, CrashPolicy::lose_unsynced), "db/a"), "old");
  EXPECT_EQ(content(*fs_.crash(1, CrashPolicy::keep_unsynced), "db/a"), "newer");
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(content(*fs_.crash(1, CrashPolicy::lose_unsynced), "db/a"), "newer");
  EXPECT_EQ(content(fs_, "db/a"), "newer");
}

TEST_F(MemoryFileSystemTest, RenamesLastOnceTheDirectoryIsSynced) {
  auto first = make("db/a");
  ASSERT_TRUE(first->write_at(0, as_bytes("1")).ok());
  ASSERT_TRUE(first->sync().ok());
  ASSERT_TRUE(fs_.sync_directory("db").ok());
  auto second = make("db/b");
  ASSERT_TRUE(second->write_at(0, as_bytes("2")).ok());
  ASSERT_TRUE(second->sync().ok());
  ASSERT_TRUE(fs_.rename("db/b", "db/a").ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    seen.insert(content(*fs_.crash(seed, CrashPolicy::random), "db/a"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"1", "2"}));
  ASSERT_TRUE(fs_.sync_directory("db").ok());
  EXPECT_EQ(content(*fs_.crash(1, CrashPolicy::lose_unsynced), "db/a"), "2");
}

TEST_F(MemoryFileSystemTest, RandomCrashesTearAndReorder) {
  auto file = make("db/a");
  ASSERT_TRUE(file->write_at(0, as_bytes(std::string(2048, '.'))).ok());
  ASSERT_TRUE(file->sync().ok());
  ASSERT_TRUE(fs_.sync_directory("db").ok());
  ASSERT_TRUE(file->write_at(0, as_bytes(std::string(1024, 'a'))).ok());
  ASSERT_TRUE(file->write_at(1024, as_bytes(std::string(1024, 'b'))).ok());
  bool reordered = false, sectors = false, prefix = false;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::string bytes = content(*fs_.crash(seed, CrashPolicy::random), "db/a");
    ASSERT_EQ(bytes.size(), 2048u);
    EXPECT_EQ(bytes, content(*fs_.crash(seed, CrashPolicy::random), "db/a"));
    reordered |= bytes[0] == '.' && bytes[2047] == 'b';
    sectors |= bytes[0] == '.' && bytes[512] == 'a' && bytes[1023] == 'a';
    prefix |= bytes[0] == 'a' && bytes[511] == '.';
  }
  EXPECT_TRUE(reordered && sectors && prefix);
}

TEST_F(MemoryFileSystemTest, FailsTheCallsThatItIsTold) {
  auto file = make("db/a");
  fs_.fail_call(2, StatusCode::io_error);
  EXPECT_TRUE(file->write_at(0, as_bytes("12")).ok());
  EXPECT_EQ(file->write_at(2, as_bytes("34")).code(), StatusCode::io_error);
  EXPECT_EQ(content(fs_, "db/a"), "123") << "half of it is written";
  EXPECT_TRUE(file->sync().ok());
  fs_.fail_sync(2, StatusCode::no_space, true);
  EXPECT_TRUE(file->truncate(1).ok());
  EXPECT_TRUE(file->sync().ok());
  EXPECT_EQ(file->sync().code(), StatusCode::no_space);
  EXPECT_EQ(fs_.sync_directory("db").code(), StatusCode::no_space);
  fs_.fail_sync(0, StatusCode::ok);
  EXPECT_TRUE(file->sync().ok());
  EXPECT_EQ(fs_.sync_calls(), 5u);
  EXPECT_EQ(fs_.calls(), 10u);
}

TEST_F(MemoryFileSystemTest, AFailedSyncLosesWritesForGood) {
  auto file = make("db/a");
  ASSERT_TRUE(fs_.sync_directory("db").ok());
  for (uint64_t i = 0; i < 64; ++i) ASSERT_TRUE(file->write_at(i, as_bytes("x")).ok());
  fs_.fail_sync(1, StatusCode::io_error);
  EXPECT_FALSE(file->sync().ok());
  EXPECT_TRUE(file->sync().ok()) << "as the kernel has it";
  EXPECT_EQ(content(fs_, "db/a"), std::string(64, 'x'));
  EXPECT_NE(content(*fs_.crash(1, CrashPolicy::keep_unsynced), "db/a"), std::string(64, 'x'));
}

TEST_F(MemoryFileSystemTest, FillsUp) {
  fs_.set_capacity(10);
  auto file = make("db/a");
  EXPECT_TRUE(file->write_at(0, as_bytes("12345678")).ok());
  EXPECT_EQ(file->write_at(8, as_bytes("abc")).code(), StatusCode::no_space);
  EXPECT_EQ(file->allocate(11).code(), StatusCode::no_space);
  EXPECT_TRUE(file->write_at(0, as_bytes("0123456789")).ok()) << "overwriting needs no space";
  EXPECT_EQ(fs_.used_bytes(), 10u);
  auto other = make("db/b");
  EXPECT_EQ(other->write_at(0, as_bytes("x")).code(), StatusCode::no_space);
  EXPECT_TRUE(fs_.remove("db/a").ok());
  EXPECT_TRUE(other->write_at(0, as_bytes("x")).ok());
}

TEST_F(MemoryFileSystemTest, MappingsDoNotChange) {
  auto file = make("db/a");
  ASSERT_TRUE(file->write_at(0, as_bytes("old")).ok());
  auto mapping = file->map();
  ASSERT_TRUE(file->write_at(0, as_bytes("new")).ok());
  EXPECT_EQ(as_text((*mapping)->bytes()), "old");
  EXPECT_EQ(content(fs_, "db/a"), "new");
}

}  // namespace
}  // namespace stride

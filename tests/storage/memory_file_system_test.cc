#include "storage/memory_file_system.h"

#include <memory>
#include <random>
#include <set>
#include <string>

#include "storage/current_file.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride {
namespace {

class MemoryFileSystemTest {
 protected:
  MemoryFileSystemTest() { REQUIRE_OK(fs_.create_directory("db")); }
  std::unique_ptr<File> make(const std::string& path) {
    auto file = fs_.open(path, OpenMode::create);
    CHECK_OK(file);
    return std::move(*file);
  }
  static std::string content(FileSystem& fs, const std::string& path) {
    auto bytes = read_file(fs, path);
    return bytes.ok() ? *bytes : "(" + std::string(to_string(bytes.status().code())) + ")";
  }
  MemoryFileSystem fs_;
};

TEST_CASE_METHOD(MemoryFileSystemTest, "MemoryFileSystemTest.UnsyncedWritesAreLost",
                 "[MemoryFileSystemTest]") {
  auto file = make("db/a");
  REQUIRE_OK(file->write_at(0, as_bytes("old")));
  REQUIRE_OK(file->sync());
  REQUIRE_OK(file->write_at(0, as_bytes("newer")));
  CHECK(content(*fs_.crash(1, CrashPolicy::lose_unsynced), "db/a") == "(not_found)");
  REQUIRE_OK(fs_.sync_directory("db"));
  CHECK(content(*fs_.crash(1, CrashPolicy::lose_unsynced), "db/a") == "old");
  CHECK(content(*fs_.crash(1, CrashPolicy::keep_unsynced), "db/a") == "newer");
  REQUIRE_OK(file->sync());
  CHECK(content(*fs_.crash(1, CrashPolicy::lose_unsynced), "db/a") == "newer");
  CHECK(content(fs_, "db/a") == "newer");
}

TEST_CASE_METHOD(MemoryFileSystemTest, "MemoryFileSystemTest.RenamesLastOnceTheDirectoryIsSynced",
                 "[MemoryFileSystemTest]") {
  auto first = make("db/a");
  REQUIRE_OK(first->write_at(0, as_bytes("1")));
  REQUIRE_OK(first->sync());
  REQUIRE_OK(fs_.sync_directory("db"));
  auto second = make("db/b");
  REQUIRE_OK(second->write_at(0, as_bytes("2")));
  REQUIRE_OK(second->sync());
  REQUIRE_OK(fs_.rename("db/b", "db/a"));
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    seen.insert(content(*fs_.crash(seed, CrashPolicy::random), "db/a"));
  }
  CHECK(seen == (std::set<std::string>{"1", "2"}));
  REQUIRE_OK(fs_.sync_directory("db"));
  CHECK(content(*fs_.crash(1, CrashPolicy::lose_unsynced), "db/a") == "2");
}

TEST_CASE_METHOD(MemoryFileSystemTest, "MemoryFileSystemTest.RandomCrashesTearAndReorder",
                 "[MemoryFileSystemTest]") {
  auto file = make("db/a");
  REQUIRE_OK(file->write_at(0, as_bytes(std::string(2048, '.'))));
  REQUIRE_OK(file->sync());
  REQUIRE_OK(fs_.sync_directory("db"));
  REQUIRE_OK(file->write_at(0, as_bytes(std::string(1024, 'a'))));
  REQUIRE_OK(file->write_at(1024, as_bytes(std::string(1024, 'b'))));
  bool reordered = false, sectors = false, prefix = false;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::string bytes = content(*fs_.crash(seed, CrashPolicy::random), "db/a");
    REQUIRE(bytes.size() == 2048u);
    CHECK(bytes == content(*fs_.crash(seed, CrashPolicy::random), "db/a"));
    reordered |= bytes[0] == '.' && bytes[2047] == 'b';
    sectors |= bytes[0] == '.' && bytes[512] == 'a' && bytes[1023] == 'a';
    prefix |= bytes[0] == 'a' && bytes[511] == '.';
  }
  CHECK((reordered && sectors && prefix));
}

TEST_CASE_METHOD(MemoryFileSystemTest, "MemoryFileSystemTest.FailsTheCallsThatItIsTold",
                 "[MemoryFileSystemTest]") {
  auto file = make("db/a");
  fs_.fail_call(2, StatusCode::io_error);
  CHECK_OK(file->write_at(0, as_bytes("12")));
  CHECK(file->write_at(2, as_bytes("34")).code() == StatusCode::io_error);
  CHECK_MESSAGE(content(fs_, "db/a") == "123", "half of it is written");
  CHECK_OK(file->sync());
  fs_.fail_sync(2, StatusCode::no_space, true);
  CHECK_OK(file->truncate(1));
  CHECK_OK(file->sync());
  CHECK(file->sync().code() == StatusCode::no_space);
  CHECK(fs_.sync_directory("db").code() == StatusCode::no_space);
  fs_.fail_sync(0, StatusCode::ok);
  CHECK_OK(file->sync());
  CHECK(fs_.sync_calls() == 5u);
  CHECK(fs_.calls() == 10u);
}

TEST_CASE_METHOD(MemoryFileSystemTest, "MemoryFileSystemTest.AFailedSyncLosesWritesForGood",
                 "[MemoryFileSystemTest]") {
  auto file = make("db/a");
  REQUIRE_OK(fs_.sync_directory("db"));
  for (uint64_t i = 0; i < 64; ++i) REQUIRE_OK(file->write_at(i, as_bytes("x")));
  fs_.fail_sync(1, StatusCode::io_error);
  CHECK_FALSE(file->sync().ok());
  CHECK_MESSAGE(file->sync().ok(), "as the kernel has it");
  CHECK(content(fs_, "db/a") == std::string(64, 'x'));
  CHECK(content(*fs_.crash(1, CrashPolicy::keep_unsynced), "db/a") != std::string(64, 'x'));
}

TEST_CASE_METHOD(MemoryFileSystemTest, "MemoryFileSystemTest.FillsUp", "[MemoryFileSystemTest]") {
  fs_.set_capacity(10);
  auto file = make("db/a");
  CHECK_OK(file->write_at(0, as_bytes("12345678")));
  CHECK(file->write_at(8, as_bytes("abc")).code() == StatusCode::no_space);
  CHECK(file->allocate(11).code() == StatusCode::no_space);
  CHECK_MESSAGE(file->write_at(0, as_bytes("0123456789")).ok(), "overwriting needs no space");
  CHECK(fs_.used_bytes() == 10u);
  auto other = make("db/b");
  CHECK(other->write_at(0, as_bytes("x")).code() == StatusCode::no_space);
  CHECK_OK(fs_.remove("db/a"));
  CHECK_OK(other->write_at(0, as_bytes("x")));
}

TEST_CASE_METHOD(MemoryFileSystemTest, "MemoryFileSystemTest.MappingsDoNotChange",
                 "[MemoryFileSystemTest]") {
  auto file = make("db/a");
  REQUIRE_OK(file->write_at(0, as_bytes("old")));
  auto mapping = file->map();
  REQUIRE_OK(file->write_at(0, as_bytes("new")));
  CHECK(as_text((*mapping)->bytes()) == "old");
  CHECK(content(fs_, "db/a") == "new");
}

}  // namespace
}  // namespace stride

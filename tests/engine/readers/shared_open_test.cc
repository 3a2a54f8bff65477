// A second opening of a path that this process has open gives another handle of the same database.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/test_threads.h"

namespace stride::test::shared_open_tests {
namespace {

class SharedOpenTest {
 protected:
  std::unique_ptr<Database> open(Options options = {}) { return open_at(path(), options); }
  static std::unique_ptr<Database> open_at(const std::string& path, Options options = {}) {
    options.threads = 1;
    auto db = Database::open(path, options);
    REQUIRE_OK(db);
    return std::move(*db);
  }
  StatusCode code(const Options& options) const {
    return Database::open(path(), options).status().code();
  }
  std::string path() const { return directory_.file("db"); }
  static Status put(Database& db, const Table& table, const std::string& value) {
    WriteTransaction t = db.begin();
    STRIDE_TRY(t.put(table, "key", value));
    return t.commit(Durability::flush);
  }
  static std::string get(Database& db, const Table& table) {
    auto value = db.snapshot().get(table, "key");
    REQUIRE_OK(value);
    return *value ? text(**value) : "-";
  }
  TemporaryDirectory directory_;
};

TEST_CASE_METHOD(SharedOpenTest, "SharedOpenTest.OneDatabaseOfTwoHandles", "[SharedOpenTest]") {
  auto first = open();
  auto second = open();
  const Table table = *first->create_table("t");
  REQUIRE_OK(put(*second, table, "1"));  // handles of tables are those of the database
  CHECK(get(*first, table) == "1");
  REQUIRE_OK(put(*first, *second->open_table("t"), "2"));
  CHECK(get(*second, table) == "2");
  REQUIRE_OK(first->close());
  CHECK(put(*first, table, "3").code() == StatusCode::closed);
  CHECK(first->create_table("u").status().code() == StatusCode::closed);
  for (const Status& s :
       {first->sync(), first->compact(), first->drop_table("t"), first->rename_table("t", "u"),
        first->refresh(), first->checkpoint(directory_.file("copy")),
        first->backup(directory_.file("copy"))})
    CHECK(s.code() == StatusCode::closed);
  CHECK_OK(first->close());
  CHECK(get(*second, table) == "2");
  REQUIRE_OK(put(*second, table, "3"));
  second.reset();
  second = open();
  CHECK(get(*second, *second->open_table("t")) == "3");
}

TEST_CASE_METHOD(SharedOpenTest, "SharedOpenTest.OtherWaysToTheSamePath", "[SharedOpenTest]") {
  auto first = open();
  const Table table = *first->create_table("t");
  std::filesystem::create_directory_symlink(path(), directory_.file("link"));
  for (const std::string& other : {path() + "/", directory_.path() + "/./db",
                                   directory_.path() + "/db/../db", directory_.file("link")}) {
    auto second = open_at(other);
    REQUIRE_OK(put(*second, table, other));
    CHECK(get(*first, table) == other);
  }
  auto elsewhere = open_at(directory_.file("other"));
  CHECK(elsewhere->tables().empty());
}

TEST_CASE_METHOD(SharedOpenTest, "SharedOpenTest.WhatDoesNotGoTogether", "[SharedOpenTest]") {
  auto first = open();
  const Table table = *first->create_table("t");
  REQUIRE_OK(put(*first, table, "1"));
  CHECK(code({.error_if_exists = true}) == StatusCode::already_exists);
  CHECK(code({.durability = Durability::none}) == StatusCode::invalid_argument);
  CHECK(code({.file_system = &FileSystem::posix()}) == StatusCode::ok);
  MemoryFileSystem memory;
  auto another = open({.file_system = &memory});
  CHECK(another->tables().empty());
  // A reader is a view of its own.
  auto reader = open({.read_only = true});
  const Table its = *reader->open_table("t");
  REQUIRE_OK(put(*first, table, "2"));
  CHECK(put(*reader, its, "3").code() == StatusCode::read_only);
  CHECK(get(*reader, its) == "1");
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, its) == "2");
  REQUIRE_OK(first->close());
  CHECK(get(*reader, its) == "2");
}

// Another directory of the same name is another database.
TEST_CASE_METHOD(SharedOpenTest, "SharedOpenTest.ADirectoryThatIsGone", "[SharedOpenTest]") {
  auto first = open();
  REQUIRE_OK(first->create_table("t"));
  std::filesystem::rename(path(), directory_.file("moved"));
  auto second = open();
  CHECK(second->tables().empty());
  CHECK(open()->tables().empty());
  second.reset();
  first.reset();
  CHECK(open()->tables().empty());
  CHECK(open_at(directory_.file("moved"))->tables().size() == 1u);
}

TEST_CASE_METHOD(SharedOpenTest, "SharedOpenTest.AForkedChildSharesNothing", "[SharedOpenTest]") {
#if defined(__SANITIZE_THREAD__)
  SKIP("ThreadSanitizer knows no forks of processes with threads");
#endif
  auto first = open();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const bool locked = code({}) == StatusCode::locked;
    first.reset();
    _exit(locked && code({}) == StatusCode::locked ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  REQUIRE_OK(first->create_table("t"));
}

TEST_CASE_METHOD(SharedOpenTest, "SharedOpenTest.ThreadsOpenAndClose", "[SharedOpenTest]") {
  std::atomic<int> committed{0};
  TestThreads threads;
  for (int i = 0; i < 3; ++i)
    threads.start([&] {
      for (int k = 0; k < 40; ++k) {
        auto db = Database::open(path(), {.threads = 1, .log_file = false});
        REQUIRE_OK(db);
        auto table = (*db)->open_or_create_table("t");
        REQUIRE_OK(table);
        WriteTransaction t = (*db)->begin();
        REQUIRE_OK(t.put(*table, std::to_string(committed++), "v"));
        REQUIRE_OK(t.commit(Durability::none));
        if (k % 2 == 0) REQUIRE_OK((*db)->close());
      }
    });
  threads.join();
  auto db = open();
  CHECK(*db->snapshot().count(*db->open_table("t")) == static_cast<uint64_t>(committed));
}

}  // namespace
}  // namespace stride::test::shared_open_tests

// Leases of readers: what they keep, what becomes of those of dead readers, and of files of others.
//
// A lease keeps all files that were given up behind its position, also those that came behind it: a
// reader that refreshes at the moment may just have read of them.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "engine/catalog/reader_lease.h"
#include "engine/database.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test::lease_tests {
namespace {

namespace files = std::filesystem;

class LeaseTest {
 protected:
  LeaseTest() : db_(open(false)) { table_ = *db_->create_table("t"); }
  std::unique_ptr<Database> open(bool read_only) {
    Options options{.read_only = read_only, .threads = 1, .log_file = false};
    options.memtable_bytes = 0;  // each commit makes a segment
    auto db = Database::open(path(), options);
    REQUIRE_OK(db);
    return std::move(*db);
  }
  std::string path() const { return directory_.file("db"); }
  void put(const std::string& value) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table_, "key", value));
    REQUIRE_OK(t.commit());
  }
  std::vector<std::string> names(const std::string& part) const {
    std::vector<std::string> found;
    for (const auto& f : files::directory_iterator(path()))
      if (f.path().filename().string().find(part) != std::string::npos) found.push_back(f.path());
    return found;
  }
  size_t segments() const { return names(".seg").size(); }
  size_t leases() const { return names("READER-").size(); }

  TemporaryDirectory directory_;
  std::unique_ptr<Database> db_;
  Table table_;
};

TEST_CASE_METHOD(LeaseTest, "LeaseTest.KeepsWhatIsRead", "[LeaseTest]") {
  put("1");
  put("2");
  auto reader = open(true);
  CHECK(leases() == 1u);
  const std::vector<std::string> read = names(".seg");
  REQUIRE_OK(db_->compact());
  for (const std::string& file : read) CHECK(files::exists(file));
  CHECK(segments() == 3u);
  {
    Snapshot old = reader->snapshot();
    REQUIRE_OK(reader->refresh());
    put("3");
    REQUIRE_OK(db_->compact());
    CHECK(segments() == 5u);  // of the snapshot, of the handle, and of the writer
    CHECK(text(**old.get(*reader->open_table("t"), "key")) == "2");
  }
  REQUIRE_OK(reader->refresh());
  put("4");
  REQUIRE_OK(db_->sync());
  CHECK(segments() == 2u);
  reader.reset();
  CHECK(leases() == 0u);
  REQUIRE_OK(db_->compact());
  CHECK(segments() == 1u);
}

TEST_CASE_METHOD(LeaseTest, "LeaseTest.LastsAsLongAsASnapshot", "[LeaseTest]") {
  put("1");
  auto reader = open(true);
  Table table = *reader->open_table("t");
  Snapshot snapshot = reader->snapshot();
  reader.reset();
  CHECK(leases() == 1u);
  put("2");
  REQUIRE_OK(db_->compact());
  CHECK(segments() == 3u);
  CHECK(text(**snapshot.get(table, "key")) == "1");
  snapshot = db_->snapshot();
  CHECK(leases() == 0u);
  REQUIRE_OK(db_->sync());
  CHECK(segments() == 1u);
}

// A writer that opens the database finds what the one before it has kept.
TEST_CASE_METHOD(LeaseTest, "LeaseTest.TheNextWriterKeepsThemToo", "[LeaseTest]") {
  put("1");
  auto reader = open(true);
  put("2");
  REQUIRE_OK(db_->compact());
  CHECK(segments() == 3u);
  db_.reset();
  db_ = open(false);
  table_ = *db_->open_table("t");
  CHECK(segments() == 3u);
  reader.reset();
  put("3");
  REQUIRE_OK(db_->compact());
  CHECK(segments() == 1u);
}

TEST_CASE_METHOD(LeaseTest, "LeaseTest.ADeadReaderLosesIt", "[LeaseTest]") {
#if defined(__SANITIZE_THREAD__)
  SKIP("ThreadSanitizer knows no forks of processes with threads");
#endif
  put("1");
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    auto reader = Database::open(path(), {.read_only = true, .threads = 1});
    if (!reader.ok() || write(ready[1], "r", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  put("2");
  REQUIRE_OK(db_->compact());
  CHECK(segments() == 3u);
  REQUIRE(kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(leases() == 1u);
  REQUIRE_OK(db_->sync());
  CHECK(leases() == 0u);
  CHECK(segments() == 1u);
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE_METHOD(LeaseTest, "LeaseTest.AForkedChildLeavesItAlone", "[LeaseTest]") {
#if defined(__SANITIZE_THREAD__)
  SKIP("ThreadSanitizer knows no forks of processes with threads");
#endif
  put("1");
  auto reader = open(true);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const bool refused = reader->refresh().code() == StatusCode::closed;
    reader.reset();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(leases() == 1u);
  put("2");
  REQUIRE_OK(db_->compact());
  CHECK(segments() == 3u);
  REQUIRE_OK(reader->refresh());
}

TEST_CASE_METHOD(LeaseTest, "LeaseTest.FilesOfStrangers", "[LeaseTest]") {
  auto name = [&](uint64_t n) { return path() + "/" + lease_name(n); };
  std::ofstream(name(1)) << "garbage";
  std::ofstream(name(2)) << "";
  files::create_directory(name(3));
  std::ofstream(directory_.file("outside")) << encode_lease({1, 32});
  files::create_symlink(directory_.file("outside"), name(4));
  files::create_symlink(path(), name(5));
  REQUIRE(mkfifo(name(6).c_str(), 0600) == 0);
  std::ofstream(name(7)) << "123\n" + encode_lease({1, 32}) + "more";
  std::ofstream(path() + "/READER-1") << encode_lease({1, 32});
  const size_t strangers = leases();
  put("1");
  put("2");
  REQUIRE_OK(db_->compact());
  CHECK(segments() == 1u);
  auto reader = open(true);
  put("3");
  REQUIRE_OK(reader->refresh());
  CHECK(text(**reader->snapshot().get(*reader->open_table("t"), "key")) == "3");
  reader.reset();
  db_.reset();
  db_ = open(false);
  CHECK(leases() == strangers);
  CHECK(files::exists(directory_.file("outside")));
  // What a dead reader has left is ours.
  std::ofstream(name(8)) << "123\n" + encode_lease({1, 32});
  table_ = *db_->open_table("t");
  REQUIRE_OK(db_->compact());
  CHECK(leases() == strangers);
}

TEST_CASE_METHOD(LeaseTest, "LeaseTest.ADirectoryThatCannotBeWritten", "[LeaseTest]") {
  if (geteuid() == 0) SKIP("root may write anywhere");
  put("1");
  chmod(path().c_str(), 0500);
  auto reader = open(true);
  CHECK(leases() == 0u);
  chmod(path().c_str(), 0700);
  Snapshot old = reader->snapshot();
  put("2");
  REQUIRE_OK(db_->compact());
  CHECK(segments() == 1u);
  REQUIRE_OK(reader->refresh());
  const Table table = *reader->open_table("t");
  CHECK(text(**old.get(table, "key")) == "1");
  CHECK(text(**reader->snapshot().get(table, "key")) == "2");
}

TEST_CASE("ReaderLeaseTest.WhatItsFileSays", "[ReaderLeaseTest]") {
  const ManifestPosition position{17, 12345};
  const std::string line = encode_lease(position);
  CHECK(decode_lease(line) == position);
  CHECK(decode_lease("4711\n" + line) == position);
  for (size_t i = 0; i < line.size(); ++i) {
    CHECK_FALSE(decode_lease(line.substr(0, i)));
    std::string other = line;
    other[i] = static_cast<char>(other[i] ^ 1);
    CHECK_FALSE(decode_lease(other));
  }
  CHECK(is_lease_name(lease_name(0)));
  CHECK(is_lease_name(lease_name(UINT64_MAX)));
  for (const char* name : {"READER-", "READER-0123456789ABCDEF", "READER-0123456789abcdef0",
                           "reader-0123456789abcdef", "READER-0123456789abcdeg", ""})
    CHECK_FALSE(is_lease_name(name));
}

}  // namespace
}  // namespace stride::test::lease_tests

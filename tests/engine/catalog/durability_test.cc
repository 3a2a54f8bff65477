// What a power loss leaves of commits of each durability.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/forwarding_file_system.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_tables.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

class DurabilityTest {
 protected:
  DurabilityTest() : db_(open(fs_)), table_(*db_->create_table("t")) { expected_["t"]; }
  static std::unique_ptr<Database> open(FileSystem& fs) {
    Options options;
    options.memtable_bytes = 0;  // each commit makes a segment
    options.file_system = &fs;
    auto db = Database::open("/db", options);
    CHECK_OK(db);
    return std::move(*db);
  }
  void put(const std::string& key, Durability durability) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table_, key, "value"));
    REQUIRE_OK(t.commit(durability));
    expected_["t"][key] = "value";
  }
  void expect_all_after_power_loss() {
    auto after = fs_.crash(seed(), CrashPolicy::lose_unsynced);
    auto db = open(*after);
    CHECK(read_all(*db) == expected_);
  }

  MemoryFileSystem fs_;
  std::unique_ptr<Database> db_;
  Table table_;
  Tables expected_;
};

// The caller is told that the key is there, so it must stay there.
TEST_CASE_METHOD(DurabilityTest, "DurabilityTest.ASyncedPutIfAbsentThatPutsNothingSyncsWhatIsThere",
                 "[DurabilityTest]") {
  put("key", Durability::none);
  WriteTransaction t = db_->begin();
  Rows rows({"key"});
  uint64_t was_new = 1;
  REQUIRE_OK(t.put_if_absent(table_, rows.column(), rows.column(), {&was_new, 1}));
  REQUIRE_OK(t.commit(Durability::sync));
  CHECK(was_new == 0u);
  expect_all_after_power_loss();
}

TEST_CASE_METHOD(DurabilityTest, "DurabilityTest.ASyncedCommitOfNothingSyncsAllBeforeIt",
                 "[DurabilityTest]") {
  put("flushed", Durability::flush);
  put("neither", Durability::none);
  REQUIRE_OK(db_->begin().commit(Durability::sync));
  expect_all_after_power_loss();
  put("more", Durability::none);
  WriteTransaction erases_nothing = db_->begin();
  REQUIRE_OK(erases_nothing.erase_range(table_, as_bytes("x"), as_bytes("y")));
  REQUIRE_OK(erases_nothing.commit(Durability::sync));
  expect_all_after_power_loss();
}

TEST_CASE_METHOD(DurabilityTest, "DurabilityTest.SyncMakesAllDurable", "[DurabilityTest]") {
  REQUIRE_OK(db_->sync());  // nothing to do
  put("flushed", Durability::flush);
  put("neither", Durability::none);
  REQUIRE_OK(db_->sync());
  expect_all_after_power_loss();
  REQUIRE_OK(db_->close());
  CHECK(db_->sync().code() == StatusCode::closed);
}

// A power loss may leave all of a segment but a sector in its midst, which nobody looks at when the
// file is opened.
TEST_CASE_METHOD(DurabilityTest, "DurabilityTest.AnUnsyncedEditWhoseSegmentIsTornDoesNotCount",
                 "[DurabilityTest]") {
  put("before", Durability::sync);
  const Tables before = expected_;
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(table_, "large", std::string(1 << 20, 'x')));
  REQUIRE_OK(t.commit(Durability::flush));
  expected_["t"]["large"] = std::string(1 << 20, 'x');
  auto names = *fs_.list("/db");
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".seg"); });
  REQUIRE(names.size() == 2);
  for (uint64_t offset : {0, 8192, 300'000, 900'000}) {
    auto after = fs_.crash(seed(), CrashPolicy::keep_unsynced);
    if (offset > 0) {
      auto file = after->open("/db/" + names[1], OpenMode::write);
      REQUIRE_OK(file);
      REQUIRE_OK((*file)->write_at(offset, std::vector<std::byte>(512)));
    }
    auto db = open(*after);
    const Tables& there = offset > 0 ? before : expected_;
    CHECK_MESSAGE((read_all(*db) == there), "torn at " << offset);  // too long to be printed
    CHECK_OK(db->verify());
  }
}

TEST_CASE_METHOD(DurabilityTest, "DurabilityTest.AFailedSyncPoisons", "[DurabilityTest]") {
  put("neither", Durability::none);
  fs_.fail_sync(1, StatusCode::io_error);
  CHECK(db_->sync().code() == StatusCode::io_error);
  CHECK(db_->sync().code() == StatusCode::poisoned);
}

// The files are synced, but their directory cannot be opened.
TEST_CASE_METHOD(DurabilityTest, "DurabilityTest.ASyncThatCannotOpenTheDirectoryCanBeTriedAgain",
                 "[DurabilityTest]") {
  put("neither", Durability::none);
  fs_.fail_sync(2, StatusCode::resource_exhausted);
  CHECK(db_->sync().code() == StatusCode::resource_exhausted);
  REQUIRE_OK(db_->sync());
  expect_all_after_power_loss();
}

TEST_CASE_METHOD(DurabilityTest, "DurabilityTest.ACommitThatCannotOpenTheDirectoryFailsAlone",
                 "[DurabilityTest]") {
  put("neither", Durability::none);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(table_, "failed", "value"));
  fs_.fail_sync(3, StatusCode::resource_exhausted);  // after the segments of both commits
  CHECK(t.commit(Durability::sync).code() == StatusCode::resource_exhausted);
  CHECK(read_all(*db_) == expected_);
  put("later", Durability::sync);
  CHECK(read_all(*db_) == expected_);
  expect_all_after_power_loss();
}

// What became of the file nobody knows.
TEST_CASE_METHOD(DurabilityTest, "DurabilityTest.AFileWhoseSyncRunsOutOfMemoryPoisons",
                 "[DurabilityTest]") {
  put("neither", Durability::none);
  fs_.fail_sync(1, StatusCode::resource_exhausted);
  CHECK(db_->sync().code() == StatusCode::resource_exhausted);
  CHECK(db_->sync().code() == StatusCode::poisoned);
}

// A sync that fails takes a while to say so.
class LateFailures final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  void wait_for_failure() { failed_.wait(); }

 private:
  class LateFile final : public ForwardingFile {
   public:
    LateFile(LateFailures& all, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), all_(all) {}
    Status sync() override {
      Status s = ForwardingFile::sync();
      if (s.ok()) return s;
      all_.failed_.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      return s;
    }

   private:
    LateFailures& all_;
  };
  std::unique_ptr<File> wrap(std::unique_ptr<File> file) override {
    return std::make_unique<LateFile>(*this, std::move(file));
  }

  std::latch failed_{1};
};

// Once a file's sync has failed, the next one says that all is well: it must come too late.
TEST_CASE("DurabilityTest.NoCommitIsSyncedBesideASyncThatFails", "[DurabilityTest]") {
  MemoryFileSystem fs;
  LateFailures late(fs);
  Options options;
  options.memtable_bytes = 0;  // each commit makes a segment
  options.background_work = false;
  options.file_system = &late;
  auto db = Database::open("/db", options);
  REQUIRE_OK(db);
  auto table = (*db)->create_table("t");
  REQUIRE_OK(table);
  auto put = [&](const std::string& key, Durability durability) {
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, key, "value"));
    return t.commit(durability);
  };
  REQUIRE_OK(put("flushed", Durability::flush));
  fs.fail_sync(1, StatusCode::io_error);
  Status copied;
  TestThreads threads;
  threads.start([&] { copied = (*db)->checkpoint("/copy"); });
  late.wait_for_failure();
  const Status synced = put("synced", Durability::sync);
  threads.join();
  CHECK_MESSAGE(synced.code() == StatusCode::poisoned, synced.to_string());
  CHECK_FALSE(copied.ok());
  db->reset();
  auto after = fs.crash(seed(), CrashPolicy::lose_unsynced);
  options.file_system = after.get();
  db = Database::open("/db", options);
  REQUIRE_OK(db);
  auto read = read_all(**db);
  REQUIRE(read.has_value());
  CHECK(*read == Tables{{"t", {}}});
}

TEST_CASE("DescriptorTest.ASyncWithoutDescriptorsCanBeTriedAgain", "[DescriptorTest]") {
  TemporaryDirectory directory;
  auto db = Database::open(directory.file("db"), {.threads = 1, .memtable_bytes = 0});
  REQUIRE_OK(db.status());
  Table table = *(*db)->create_table("t");
  for (const char* key : {"a", "b", "c"}) {
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(table, key, "value"));
    REQUIRE_OK(t.commit(Durability::flush));
  }
  struct rlimit before;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int next = ::open("/", O_RDONLY);
  REQUIRE(next >= 0);
  ::close(next);
  struct rlimit none = {static_cast<rlim_t>(next), before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  Status synced = (*db)->sync();
  WriteTransaction t = (*db)->begin();
  Status put = t.put(table, "d", "value");
  Status committed = t.commit(Durability::sync);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK_MESSAGE(synced.code() == StatusCode::resource_exhausted, synced.to_string());
  REQUIRE_OK(put);
  CHECK_MESSAGE(committed.code() == StatusCode::resource_exhausted, committed.to_string());
  REQUIRE_OK((*db)->sync());
  WriteTransaction later = (*db)->begin();
  REQUIRE_OK(later.put(table, "e", "value"));
  REQUIRE_OK(later.commit(Durability::sync));
  REQUIRE_OK((*db)->close());
  db = Database::open(directory.file("db"), {.threads = 1, .memtable_bytes = 0});
  REQUIRE_OK(db.status());
  Model rows;
  for (const char* key : {"a", "b", "c", "e"}) rows[key] = "value";
  CHECK(read_all(**db) == (Tables{{"t", rows}}));
}

}  // namespace
}  // namespace stride::test

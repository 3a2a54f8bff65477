// What a power loss leaves of commits of each durability.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "storage/memory_file_system.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_tables.h"

namespace stride::test {
namespace {

class DurabilityTest : public ::testing::Test {
 protected:
  DurabilityTest() : db_(open(fs_)), table_(*db_->create_table("t")) { expected_["t"]; }
  static std::unique_ptr<Database> open(FileSystem& fs) {
    Options options;
    options.file_system = &fs;
    auto db = Database::open("/db", options);
    EXPECT_TRUE(db.ok()) << db.status().to_string();
    return std::move(*db);
  }
  void put(const std::string& key, Durability durability) {
    WriteTransaction t = db_->begin();
    STRIDE_ASSERT_OK(t.put(table_, key, "value"));
    STRIDE_ASSERT_OK(t.commit(durability));
    expected_["t"][key] = "value";
  }
  void expect_all_after_power_loss() {
    auto after = fs_.crash(seed(), CrashPolicy::lose_unsynced);
    auto db = open(*after);
    EXPECT_EQ(read_all(*db), expected_);
  }

  MemoryFileSystem fs_;
  std::unique_ptr<Database> db_;
  Table table_;
  Tables expected_;
};

// The caller is told that the key is there, so it must stay there.
TEST_F(DurabilityTest, ASyncedPutIfAbsentThatPutsNothingSyncsWhatIsThere) {
  put("key", Durability::none);
  WriteTransaction t = db_->begin();
  Rows rows({"key"});
  uint64_t was_new = 1;
  STRIDE_ASSERT_OK(t.put_if_absent(table_, rows.column(), rows.column(), {&was_new, 1}));
  STRIDE_ASSERT_OK(t.commit(Durability::sync));
  EXPECT_EQ(was_new, 0u);
  expect_all_after_power_loss();
}

TEST_F(DurabilityTest, ASyncedCommitOfNothingSyncsAllBeforeIt) {
  put("flushed", Durability::flush);
  put("neither", Durability::none);
  STRIDE_ASSERT_OK(db_->begin().commit(Durability::sync));
  expect_all_after_power_loss();
  put("more", Durability::none);
  WriteTransaction erases_nothing = db_->begin();
  STRIDE_ASSERT_OK(erases_nothing.erase_range(table_, as_bytes("x"), as_bytes("y")));
  STRIDE_ASSERT_OK(erases_nothing.commit(Durability::sync));
  expect_all_after_power_loss();
}

TEST_F(DurabilityTest, SyncMakesAllDurable) {
  STRIDE_ASSERT_OK(db_->sync());  // nothing to do
  put("flushed", Durability::flush);
  put("neither", Durability::none);
  STRIDE_ASSERT_OK(db_->sync());
  expect_all_after_power_loss();
  STRIDE_ASSERT_OK(db_->close());
  EXPECT_EQ(db_->sync().code(), StatusCode::closed);
}

TEST_F(DurabilityTest, AFailedSyncPoisons) {
  put("neither", Durability::none);
  fs_.fail_sync(1, StatusCode::io_error);
  EXPECT_EQ(db_->sync().code(), StatusCode::io_error);
  EXPECT_EQ(db_->sync().code(), StatusCode::poisoned);
}

// The files are synced, but their directory cannot be opened.
TEST_F(DurabilityTest, ASyncThatCannotOpenTheDirectoryCanBeTriedAgain) {
  put("neither", Durability::none);
  fs_.fail_sync(2, StatusCode::resource_exhausted);
  EXPECT_EQ(db_->sync().code(), StatusCode::resource_exhausted);
  STRIDE_ASSERT_OK(db_->sync());
  expect_all_after_power_loss();
}

TEST_F(DurabilityTest, ACommitThatCannotOpenTheDirectoryFailsAlone) {
  put("neither", Durability::none);
  WriteTransaction t = db_->begin();
  STRIDE_ASSERT_OK(t.put(table_, "failed", "value"));
  fs_.fail_sync(3, StatusCode::resource_exhausted);  // after the segments of both commits
  EXPECT_EQ(t.commit(Durability::sync).code(), StatusCode::resource_exhausted);
  EXPECT_EQ(read_all(*db_), expected_);
  put("later", Durability::sync);
  EXPECT_EQ(read_all(*db_), expected_);
  expect_all_after_power_loss();
}

// What became of the file nobody knows.
TEST_F(DurabilityTest, AFileWhoseSyncRunsOutOfMemoryPoisons) {
  put("neither", Durability::none);
  fs_.fail_sync(1, StatusCode::resource_exhausted);
  EXPECT_EQ(db_->sync().code(), StatusCode::resource_exhausted);
  EXPECT_EQ(db_->sync().code(), StatusCode::poisoned);
}

TEST(DescriptorTest, ASyncWithoutDescriptorsCanBeTriedAgain) {
  TemporaryDirectory directory;
  auto db = Database::open(directory.file("db"), {.threads = 1});
  STRIDE_ASSERT_OK(db.status());
  Table table = *(*db)->create_table("t");
  for (const char* key : {"a", "b", "c"}) {
    WriteTransaction t = (*db)->begin();
    STRIDE_ASSERT_OK(t.put(table, key, "value"));
    STRIDE_ASSERT_OK(t.commit(Durability::flush));
  }
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::open("/", O_RDONLY);
  ASSERT_GE(next, 0);
  ::close(next);
  struct rlimit none = {static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Status synced = (*db)->sync();
  WriteTransaction t = (*db)->begin();
  Status put = t.put(table, "d", "value");
  Status committed = t.commit(Durability::sync);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(synced.code(), StatusCode::resource_exhausted) << synced.to_string();
  STRIDE_ASSERT_OK(put);
  EXPECT_EQ(committed.code(), StatusCode::resource_exhausted) << committed.to_string();
  STRIDE_ASSERT_OK((*db)->sync());
  WriteTransaction later = (*db)->begin();
  STRIDE_ASSERT_OK(later.put(table, "e", "value"));
  STRIDE_ASSERT_OK(later.commit(Durability::sync));
  STRIDE_ASSERT_OK((*db)->close());
  db = Database::open(directory.file("db"), {.threads = 1});
  STRIDE_ASSERT_OK(db.status());
  Model rows;
  for (const char* key : {"a", "b", "c", "e"}) rows[key] = "value";
  EXPECT_EQ(read_all(**db), (Tables{{"t", rows}}));
}

}  // namespace
}  // namespace stride::test

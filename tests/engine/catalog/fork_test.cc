// A process that forks while it has a database open: the child's copies do nothing, and say so.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "tests/support/model.h"

namespace stride::test {
namespace {

// Runs in a forked child, which must end by itself within a minute; returns what it returns.
int in_child(const std::function<int()>& body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class ForkTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer knows no forks of processes with threads";
#endif
  }
  ForkTest() : db_(open()), table_(*db_->create_table("t")) { put("key", "value"); }
  std::unique_ptr<Database> open() {
    auto db = Database::open(directory_.file("db"), {.threads = 2});
    EXPECT_TRUE(db.ok()) << db.status().to_string();
    return std::move(*db);
  }
  void put(const std::string& key, const std::string& value) {
    WriteTransaction t = db_->begin();
    STRIDE_ASSERT_OK(t.put(table_, key, value));
    STRIDE_ASSERT_OK(t.commit(Durability::none));
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Database> db_;
  Table table_;
};

TEST_F(ForkTest, EveryCallInTheChildIsRefused) {
  // A write in the background is pending meanwhile.
  put("large", std::string(20 << 20, 'l'));
  WriteTransaction before = db_->begin();
  STRIDE_ASSERT_OK(before.put(table_, "staged", "value"));
  Snapshot snapshot = db_->snapshot();
  EXPECT_EQ(
      in_child([&] {
        auto refused = [](const Status& s) { return s.code() == StatusCode::closed; };
        WriteTransaction t = db_->begin();
        int call = 1;
        for (const Status& s :
             {t.put(table_, "k", "v"), t.commit(), before.put(table_, "k", "v"), before.commit(),
              db_->create_table("new").status(), db_->drop_table("t"),
              db_->open_table("t").status(), db_->segments(table_).status(), db_->compact(),
              db_->calibrate(), db_->sync(), db_->verify(), db_->close(),
              snapshot.get(table_, "key").status(), db_->snapshot().get(table_, "key").status(),
              snapshot.count(table_).status(), snapshot.scan(table_).status()}) {
          if (!refused(s)) return call;
          ++call;
        }
        if (!db_->tables().empty()) return call;
        db_.reset();
        return 0;
      }),
      0);
  STRIDE_ASSERT_OK(before.commit());
  put("after", "value");
  EXPECT_EQ(*db_->snapshot().count(table_), 4u);
  db_.reset();
  db_ = open();
  STRIDE_ASSERT_OK(db_->verify());
  EXPECT_EQ(*db_->snapshot().count(*db_->open_table("t")), 4u);
}

TEST_F(ForkTest, TheParentKeepsItsLock) {
  auto locked = [&] { return Database::open(directory_.file("db")).status().code(); };
  EXPECT_EQ(in_child([&] {
              db_.reset();
              return locked() == StatusCode::locked ? 0 : 1;
            }),
            0);
  EXPECT_EQ(locked(), StatusCode::locked);
  EXPECT_EQ(in_child([&] {
              auto reader = Database::open(directory_.file("db"), {.read_only = true});
              if (!reader.ok()) return 1;
              auto table = (*reader)->open_table("t");
              return table.ok() && *(*reader)->snapshot().count(*table) == 1 ? 0 : 2;
            }),
            0);
}

// A child that lives on does not keep the database locked once its parent was killed.
TEST_F(ForkTest, AChildDoesNotInheritTheLock) {
  int ready[2], hold[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(hold), 0);
  char byte = 0;
  db_.reset();
  pid_t parent = fork();
  if (parent == 0) {
    alarm(60);
    close(hold[1]);
    close(ready[0]);
    auto db = Database::open(directory_.file("db"), {.threads = 1});
    if (db.ok() && fork() == 0) {
      if (write(ready[1], "r", 1) != 1) _exit(1);
      _exit(static_cast<int>(read(hold[0], &byte, 1)));
    }
    pause();
    _exit(1);
  }
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(Database::open(directory_.file("db")).status().code(), StatusCode::locked);
  EXPECT_EQ(kill(parent, SIGKILL), 0);
  int status = 0;
  EXPECT_EQ(waitpid(parent, &status, 0), parent);
  db_ = open();
  EXPECT_EQ(db_->tables().size(), 1u);
  close(hold[1]);
}

// What only the child's snapshot still pins must not go when the child drops it.
TEST_F(ForkTest, AChildRemovesNoFiles) {
  Snapshot old = db_->snapshot();
  put("key", "newer");
  STRIDE_ASSERT_OK(db_->compact());  // the old snapshot alone pins the first segments
  EXPECT_EQ(in_child([&] {
              old = db_->snapshot();
              db_.reset();
              return 0;
            }),
            0);
  EXPECT_EQ(text(**old.get(table_, "key")), "value");
  STRIDE_ASSERT_OK(db_->verify());
}

}  // namespace
}  // namespace stride::test

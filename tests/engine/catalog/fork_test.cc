// A process that forks while it has a database open: the child's copies do nothing, and say so.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "storage/file.h"
#include "tests/support/catch.h"
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
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_MESSAGE(WIFEXITED(status), "signal " << WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class ForkTest {
 protected:
  ForkTest() : db_(open()), table_(*db_->create_table("t")) {
#if defined(__SANITIZE_THREAD__)
    SKIP("ThreadSanitizer knows no forks of processes with threads");
#endif
    put("key", "value");
  }
  std::unique_ptr<Database> open() {
    auto db = Database::open(directory_.file("db"), {.threads = 2});
    CHECK_OK(db);
    return std::move(*db);
  }
  void put(const std::string& key, const std::string& value) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table_, key, value));
    REQUIRE_OK(t.commit(Durability::flush));
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Database> db_;
  Table table_;
};

TEST_CASE_METHOD(ForkTest, "ForkTest.EveryCallInTheChildIsRefused", "[ForkTest]") {
  // A write in the background is pending meanwhile.
  put("large", std::string(20 << 20, 'l'));
  WriteTransaction before = db_->begin();
  REQUIRE_OK(before.put(table_, "staged", "value"));
  Snapshot snapshot = db_->snapshot();
  CHECK(in_child([&] {
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
        }) == 0);
  REQUIRE_OK(before.commit());
  put("after", "value");
  CHECK(*db_->snapshot().count(table_) == 4u);
  db_.reset();
  db_ = open();
  REQUIRE_OK(db_->verify());
  CHECK(*db_->snapshot().count(*db_->open_table("t")) == 4u);
}

TEST_CASE_METHOD(ForkTest, "ForkTest.TheParentKeepsItsLock", "[ForkTest]") {
  auto locked = [&] { return Database::open(directory_.file("db")).status().code(); };
  CHECK(in_child([&] {
          db_.reset();
          return locked() == StatusCode::locked ? 0 : 1;
        }) == 0);
  CHECK(FileSystem::posix().is_locked(directory_.file("db") + "/LOCK").ok());
  CHECK(*FileSystem::posix().is_locked(directory_.file("db") + "/LOCK"));
  CHECK(in_child([&] {
          auto reader = Database::open(directory_.file("db"), {.read_only = true});
          if (!reader.ok()) return 1;
          auto table = (*reader)->open_table("t");
          return table.ok() && *(*reader)->snapshot().count(*table) == 1 ? 0 : 2;
        }) == 0);
}

// A child that lives on does not keep the database locked once its parent was killed.
TEST_CASE_METHOD(ForkTest, "ForkTest.AChildDoesNotInheritTheLock", "[ForkTest]") {
  int ready[2], hold[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(hold) == 0);
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
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK(Database::open(directory_.file("db")).status().code() == StatusCode::locked);
  CHECK(kill(parent, SIGKILL) == 0);
  int status = 0;
  CHECK(waitpid(parent, &status, 0) == parent);
  db_ = open();
  CHECK(db_->tables().size() == 1u);
  close(hold[1]);
}

// What only the child's snapshot still pins must not go when the child drops it.
TEST_CASE_METHOD(ForkTest, "ForkTest.AChildRemovesNoFiles", "[ForkTest]") {
  Snapshot old = db_->snapshot();
  put("key", "newer");
  REQUIRE_OK(db_->compact());  // the old snapshot alone pins the first segments
  CHECK(in_child([&] {
          old = db_->snapshot();
          db_.reset();
          return 0;
        }) == 0);
  CHECK(text(**old.get(table_, "key")) == "value");
  REQUIRE_OK(db_->verify());
}

}  // namespace
}  // namespace stride::test

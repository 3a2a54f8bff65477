// Commits of many rows, which make a run of their own while others go on committing.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/model.h"

namespace stride::test::large_commits_tests {
namespace {

constexpr int large_rows = 3000;

std::string key_of(int i) { return "key" + std::to_string(100'000 + i); }

class LargeCommitsTest {
 protected:
  explicit LargeCommitsTest(bool background_work = true) {
    options_.backend = BackendKind::host;
    options_.threads = 2;
    options_.memtable_bytes = 1 << 18;
    options_.background_work = background_work;
    options_.file_system = &gate_;
    open();
    table_ = *db_->create_table("t");
    other_ = *db_->create_table("other");
  }
  // What waits at the gate must not be waited for.
  ~LargeCommitsTest() { gate_.open_gate(); }

  void open() {
    auto db = Database::open("/db", options_);
    REQUIRE_OK(db);
    db_ = std::move(*db);
  }
  WriteTransaction large(const Table& table, const std::string& value) {
    WriteTransaction t = db_->begin();
    for (int i = 0; i < large_rows; ++i)
      REQUIRE_OK(t.put(table, key_of(i), value + std::string(100, 'v')));
    return t;
  }
  // Begins the commit and returns once its rows are being written.
  std::future<Status> begin_commit(WriteTransaction t, Durability durability) {
    gate_.shut();
    auto outcome = std::async(std::launch::async, [t = std::move(t), durability]() mutable {
      return t.commit(durability);
    });
    gate_.wait_for_waiting(1);
    return outcome;
  }
  Status finish(std::future<Status> outcome) {
    gate_.open_gate();
    return outcome.get();
  }
  Status put(const Table& table, const std::string& key, const std::string& value,
             Durability durability = Durability::none) {
    WriteTransaction t = db_->begin();
    STRIDE_TRY(t.put(table, key, value));
    return t.commit(durability);
  }
  std::string get(const Table& table, const std::string& key) const {
    const Snapshot snapshot = db_->snapshot();
    auto found = snapshot.get(table, key);
    REQUIRE_OK(found);
    return *found ? text(**found).substr(0, 5) : "none";
  }
  uint64_t segment_files() {
    uint64_t n = 0;
    auto names = files_.list("/db");
    REQUIRE_OK(names);
    for (const std::string& name : *names) n += name.ends_with(".seg");
    return n;
  }

  MemoryFileSystem files_;
  GatedFileSystem gate_{files_};
  Options options_;
  std::unique_ptr<Database> db_;
  Table table_, other_;
};

}  // namespace

TEST_CASE_METHOD(LargeCommitsTest, "LargeCommitsTest.SmallCommitsGoOnMeanwhile",
                 "[LargeCommitsTest]") {
  for (Durability durability : {Durability::sync, Durability::flush, Durability::none}) {
    REQUIRE_OK(put(table_, key_of(7), "small"));
    WriteTransaction t = large(table_, "large");
    REQUIRE_OK(t.erase(table_, key_of(1)));
    REQUIRE_OK(t.erase(table_, "erased"));
    auto outcome = begin_commit(std::move(t), durability);
    // Older than the large commit, which comes to be there later.
    REQUIRE_OK(put(table_, key_of(1), "small", durability));
    REQUIRE_OK(put(table_, key_of(2), "small", durability));
    REQUIRE_OK(put(table_, "erased", "small", durability));
    REQUIRE_OK(put(table_, "beside", "small", durability));
    REQUIRE_OK(put(other_, key_of(2), "other", durability));
    CHECK(get(table_, key_of(1)) == "small");
    CHECK(get(table_, key_of(7)) == "small");
    CHECK(get(table_, "erased") == "small");
    const Snapshot before = db_->snapshot();
    const Table before_table = table_;
    REQUIRE_OK(finish(std::move(outcome)));
    for (bool opened_again : {false, true}) {
      if (opened_again) {
        CHECK(text(**before.get(before_table, key_of(2))) == "small");
        REQUIRE_OK(db_->close());
        open();
        table_ = *db_->open_table("t");
        other_ = *db_->open_table("other");
      }
      CHECK(get(table_, key_of(0)) == "large");
      CHECK(get(table_, key_of(1)) == "none");
      CHECK(get(table_, key_of(2)) == "large");
      CHECK(get(table_, key_of(7)) == "large");
      CHECK(get(table_, "erased") == "none");
      CHECK(get(table_, "beside") == "small");
      CHECK(get(other_, key_of(2)) == "other");
    }
  }
}

TEST_CASE_METHOD(LargeCommitsTest, "LargeCommitsTest.TablesGoOnlyBehindThem",
                 "[LargeCommitsTest]") {
  auto outcome = begin_commit(large(table_, "large"), Durability::sync);
  auto dropped = std::async(std::launch::async, [&] { return db_->drop_table("t"); });
  REQUIRE_OK(put(other_, "beside", "small"));
  CHECK(dropped.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  REQUIRE_OK(finish(std::move(outcome)));
  REQUIRE_OK(dropped.get());
  CHECK(db_->open_table("t").status().code() == StatusCode::not_found);
  // A transaction that began before then fails as a whole.
  WriteTransaction late = large(other_, "late");
  REQUIRE_OK(late.put(*db_->create_table("gone"), "k", "v"));
  REQUIRE_OK(db_->drop_table("gone"));
  CHECK(late.commit().code() == StatusCode::not_found);
  CHECK(get(other_, key_of(0)) == "none");
}

TEST_CASE_METHOD(LargeCommitsTest, "LargeCommitsTest.AnotherCreatesTheTableMeanwhile",
                 "[LargeCommitsTest]") {
  const uint64_t files = segment_files();
  WriteTransaction t = db_->begin();
  const Table created = *t.create_table("new");
  for (int i = 0; i < large_rows; ++i) REQUIRE_OK(t.put(created, key_of(i), std::string(100, 'v')));
  auto outcome = begin_commit(std::move(t), Durability::sync);
  auto there = db_->create_table("new");
  REQUIRE_OK(there);
  const Status s = finish(std::move(outcome));
  CHECK_MESSAGE(s.code() == StatusCode::already_exists, s.to_string());
  CHECK(get(*there, key_of(0)) == "none");
  CHECK(segment_files() == files);

  WriteTransaction again = db_->begin();
  const Table second = *again.create_table("second");
  for (int i = 0; i < large_rows; ++i)
    REQUIRE_OK(again.put(second, key_of(i), "large" + std::string(100, 'v')));
  auto created_too = begin_commit(std::move(again), Durability::flush);
  REQUIRE_OK(put(table_, "beside", "small", Durability::sync));
  REQUIRE_OK(finish(std::move(created_too)));
  CHECK(get(*db_->open_table("second"), key_of(large_rows - 1)) == "large");
}

TEST_CASE_METHOD(LargeCommitsTest, "LargeCommitsTest.ClosingWaitsForThem", "[LargeCommitsTest]") {
  auto outcome = begin_commit(large(table_, "large"), Durability::sync);
  auto closed = std::async(std::launch::async, [&] { return db_->close(); });
  CHECK(closed.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  REQUIRE_OK(finish(std::move(outcome)));
  REQUIRE_OK(closed.get());
  open();
  CHECK(get(*db_->open_table("t"), key_of(5)) == "large");
  CHECK(segment_files() == 1);
}

TEST_CASE_METHOD(LargeCommitsTest, "LargeCommitsTest.OneThatFailsLeavesNothing",
                 "[LargeCommitsTest]") {
  for (Durability durability : {Durability::sync, Durability::flush, Durability::none}) {
    auto outcome = begin_commit(large(table_, "large"), durability);
    gate_.fail_writes(".seg", Status(StatusCode::no_space, "the disk is full"));
    REQUIRE_OK(put(table_, "beside", "small"));
    Status s = finish(std::move(outcome));
    CHECK_MESSAGE(s.code() == StatusCode::no_space, s.to_string());
    gate_.fail_writes("", Status());
    CHECK(get(table_, key_of(0)) == "none");
    CHECK(get(table_, "beside") == "small");
    CHECK(segment_files() == 0);
  }
  REQUIRE_OK(large(table_, "large").commit());
  CHECK(get(table_, key_of(0)) == "large");
}

}  // namespace stride::test::large_commits_tests

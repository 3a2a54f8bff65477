// With durability none a large commit returns before its file is written: what waits for the
// writes, and what becomes of the database where they fail or never end.
#include <chrono>
#include <functional>
#include <future>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_tables.h"

namespace stride::test {
namespace {

using namespace std::chrono_literals;

constexpr int pieces = 3;  // full ones, of each large commit

class WriteBehindTest {
 protected:
  std::unique_ptr<Database> open(FileSystem& fs, Durability durability = Durability::none) {
    Options o;
    o.memtable_bytes = 0;  // each commit makes a segment
    o.background_work = false;
    o.file_system = &fs;
    o.threads = 2;
    o.durability = durability;
    auto db = Database::open("/db", o);
    CHECK_OK(db);
    return std::move(*db);
  }
  // With the gate open: table "t" with one synced row.
  WriteBehindTest() { start(Durability::none); }
  void start(Durability durability) {
    db_ = open(gate_, durability);
    REQUIRE_OK(db_->open_or_create_table("t").status());
    table_ = *db_->open_table("t");
    REQUIRE_OK(put("first", "row", Durability::sync));
    before_["t"]["first"] = "row";
    expected_ = before_;
  }
  ~WriteBehindTest() { gate_.open_gate(); }

  Status put(const std::string& key, const std::string& value, Durability durability) {
    WriteTransaction t = db_->begin();
    STRIDE_TRY(t.put(table_, key, value));
    return t.commit(durability);
  }
  Status put_large(const std::string& key) {
    std::string value(pieces << 21, key[0]);
    Status s = put(key, value, Durability::none);
    if (s.ok()) expected_["t"][key] = std::move(value);
    return s;
  }
  // Starts the call, sees that it does not end, and opens the gate for it.
  template <class Call>
  Status expect_waits(const Call& call) {
    auto status = std::async(std::launch::async, call);
    CHECK(status.wait_for(50ms) == std::future_status::timeout);
    gate_.open_gate();
    return status.get();
  }
  // Names of the segments there are, oldest first.
  static std::vector<std::string> files(FileSystem& fs) {
    std::vector<std::string> names = *fs.list("/db");
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(".seg"); });
    return names;
  }
  // Orders that of the newest segment's writes those fail that wait.
  void fail_waiting() {
    gate_.fail_writes(files(fs_).back(), Status(StatusCode::io_error, "the disk is broken"));
  }
  void expect_after_crash(CrashPolicy policy, const Tables& tables) {
    auto after = fs_.crash(seed(), policy);
    auto db = open(*after);
    CHECK(read_all(*db) == tables);
    REQUIRE_OK(db->verify());
    uint64_t segments = 0;
    for (const TableStatistics& t : db->tables()) segments += t.runs;
    CHECK(files(*after).size() == segments);
  }

  MemoryFileSystem fs_;
  GatedFileSystem gate_{fs_};
  std::unique_ptr<Database> db_;
  Table table_;
  Tables before_, expected_;
};

TEST_CASE_METHOD(WriteBehindTest, "WriteBehindTest.CommitsAndReadsGoOnWhileTheDiskStalls",
                 "[WriteBehindTest]") {
  gate_.shut();
  for (int i = 0; i < 10; ++i) REQUIRE_OK(put_large(std::string(1, char('a' + i))));
  CHECK(read_all(*db_) == expected_);
  CHECK(db_->tables()[0].bytes_on_disk > uint64_t{10 * pieces} << 21);
  gate_.wait_for_waiting(1);
  CHECK(gate_.max_waiting() <= 4u);
  REQUIRE_OK(expect_waits([&] { return db_->verify(); }));
  REQUIRE_OK(db_->close());
  CHECK(read_all(*db_) == expected_);
  expect_after_crash(CrashPolicy::lose_unsynced, expected_);
}

TEST_CASE_METHOD(WriteBehindTest, "WriteBehindTest.CloseWaitsAndMakesDurable",
                 "[WriteBehindTest]") {
  gate_.shut();
  REQUIRE_OK(put_large("a"));
  Snapshot snapshot = db_->snapshot();
  REQUIRE_OK(expect_waits([&] { return db_->close(); }));
  expect_after_crash(CrashPolicy::lose_unsynced, expected_);
  db_.reset();
  auto value = snapshot.get(table_, "a");
  REQUIRE((value.ok() && *value));
  CHECK(text(**value) == expected_["t"]["a"]);
}

TEST_CASE_METHOD(WriteBehindTest, "WriteBehindTest.ALaterFlushOrSyncWaits", "[WriteBehindTest]") {
  for (Durability durability : {Durability::flush, Durability::sync}) {
    REQUIRE_OK(db_->close());
    start(durability);
    gate_.shut();
    REQUIRE_OK(put_large("a"));
    // Writes nothing but the log.
    REQUIRE_OK(expect_waits([&] { return db_->create_table("u").status(); }));
    expected_["u"];
    bool sync = durability == Durability::sync;
    expect_after_crash(sync ? CrashPolicy::lose_unsynced : CrashPolicy::keep_unsynced, expected_);
    REQUIRE_OK(db_->drop_table("u"));
    REQUIRE_OK(db_->drop_table("t"));
  }
}

TEST_CASE_METHOD(WriteBehindTest, "WriteBehindTest.WhatIsHalfWrittenIsCutOff",
                 "[WriteBehindTest]") {
  // Pieces that a power loss finds written: none, some, all, and all but the footer.
  for (uint64_t written = 0; written <= pieces; ++written) {
    gate_.shut(written);
    REQUIRE_OK(put_large("a"));
    REQUIRE_OK(db_->create_table("u").status());
    gate_.wait_for_waiting(1);
    expect_after_crash(CrashPolicy::keep_unsynced, before_);
    expect_after_crash(CrashPolicy::lose_unsynced, before_);
    expect_after_crash(CrashPolicy::random, before_);
    gate_.open_gate();
    REQUIRE_OK(db_->drop_table("u"));
    REQUIRE_OK(db_->drop_table("t"));
    REQUIRE_OK(db_->close());
    start(Durability::none);
  }
}

TEST_CASE_METHOD(WriteBehindTest, "WriteBehindTest.AFailedWritePoisonsTheHandleAtItsNextCall",
                 "[WriteBehindTest]") {
  gate_.shut();
  REQUIRE_OK(put_large("a"));
  fail_waiting();
  Status s = expect_waits([&] { return db_->verify(); });
  CHECK_MESSAGE(s.code() == StatusCode::io_error, s.to_string());
  s = put("b", "refused", Durability::none);
  CHECK_MESSAGE(s.code() == StatusCode::poisoned, s.to_string());
  CHECK_MESSAGE(s.file().ends_with(".seg"), s.to_string());
  CHECK_MESSAGE(s.to_string().find("the disk is broken") != std::string::npos, s.to_string());
  CHECK(read_all(*db_) == expected_);
  s = db_->close();
  CHECK_MESSAGE(s.to_string().find("the disk is broken") != std::string::npos, s.to_string());
  db_.reset();
  expect_after_crash(CrashPolicy::keep_unsynced, before_);
}

TEST_CASE_METHOD(WriteBehindTest, "WriteBehindTest.AFailedWriteFailsWhatWaitsForIt",
                 "[WriteBehindTest]") {
  std::vector<std::function<Status()>> calls = {
      [&] { return db_->close(); }, [&] { return db_->drop_table("t"); },
      [&] { return db_->compact(); }, [&] { return put("b", "c", Durability::sync); },
      [&] { return put("b", "c", Durability::flush); }};
  for (size_t i = 0; i < calls.size(); ++i) {
    gate_.shut();
    REQUIRE_OK(put_large("a"));
    fail_waiting();
    Status s = expect_waits(calls[i]);
    CHECK_MESSAGE(s.code() == StatusCode::io_error, i << s.to_string());
    CHECK_MESSAGE(s.to_string().find("the disk is broken") != std::string::npos, s.to_string());
    CHECK_MESSAGE(read_all(*db_) == expected_, i);
    CHECK(db_->create_table("u").status().code() ==
          (i == 0 ? StatusCode::closed : StatusCode::poisoned));
    db_.reset();
    gate_.fail_writes("", {});
    expect_after_crash(CrashPolicy::keep_unsynced, before_);
    start(Durability::none);
  }
}

TEST_CASE_METHOD(WriteBehindTest, "WriteBehindTest.DroppingATableOrCompactingWaitsAndLeavesNoFile",
                 "[WriteBehindTest]") {
  for (bool drop : {false, true}) {
    gate_.shut();
    REQUIRE_OK(put_large("a"));
    Snapshot snapshot = db_->snapshot();
    REQUIRE_OK(expect_waits([&] { return drop ? db_->drop_table("t") : db_->compact(); }));
    auto value = snapshot.get(table_, "a");
    REQUIRE((value.ok() && *value));
    CHECK(text(**value) == expected_["t"]["a"]);
    snapshot = db_->snapshot();
    if (drop) expected_.clear();
    CHECK(read_all(*db_) == expected_);
    REQUIRE_OK(fs_.sync_directory("/db"));
    expect_after_crash(CrashPolicy::lose_unsynced, expected_);
  }
}

TEST_CASE_METHOD(WriteBehindTest, "WriteBehindTest.AFullDiskFailsTheCommitWhole",
                 "[WriteBehindTest]") {
  for (uint64_t room : {uint64_t{0}, uint64_t{4096}, uint64_t{3} << 20, uint64_t{pieces} << 21}) {
    fs_.set_capacity(fs_.used_bytes() + room);
    CHECK(put_large("a").code() == StatusCode::no_space);
    CHECK(read_all(*db_) == before_);
  }
  fs_.set_capacity(~uint64_t{0});
  gate_.shut();
  REQUIRE_OK(put_large("a"));
  // The rest of the write has its space already.
  fs_.set_capacity(fs_.used_bytes());
  gate_.open_gate();
  REQUIRE_OK(db_->verify());
  fs_.set_capacity(~uint64_t{0});
  REQUIRE_OK(db_->close());
  expect_after_crash(CrashPolicy::lose_unsynced, expected_);
}

TEST_CASE_METHOD(WriteBehindTest, "WriteBehindTest.ACommitThatIsNotLoggedLeavesNoFile",
                 "[WriteBehindTest]") {
  gate_.fail_writes("MANIFEST", Status(StatusCode::no_space, "full"));
  CHECK(put_large("a").code() == StatusCode::no_space);
  CHECK(read_all(*db_) == before_);
  gate_.fail_writes("", {});
  expect_after_crash(CrashPolicy::keep_unsynced, before_);
  CHECK(files(fs_).size() == 1u);
  REQUIRE_OK(put_large("a"));
  REQUIRE_OK(db_->close());
  expect_after_crash(CrashPolicy::lose_unsynced, expected_);
}

}  // namespace
}  // namespace stride::test

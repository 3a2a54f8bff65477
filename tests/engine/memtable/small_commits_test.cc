// Small commits, which go through the log into the memtable: what is seen of them is what would be
// seen if each made a segment.

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/log_format.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test::small_commit_tests {
namespace {

class SmallCommitsTest {
 protected:
  std::unique_ptr<Database> open(Options options = {}) {
    auto db = Database::open(path(), options);
    REQUIRE_OK(db.status());
    return std::move(*db);
  }
  std::string path() const { return directory_.file("db"); }
  static void put(Database& db, const Table& table, const std::string& key,
                  const std::string& value, Durability durability = Durability::flush) {
    WriteTransaction t = db.begin();
    REQUIRE_OK(t.put(table, key, value));
    REQUIRE_OK(t.commit(durability));
  }
  std::vector<std::string> files_with(const std::string& ending) const {
    std::vector<std::string> found;
    for (const auto& f : std::filesystem::directory_iterator(path()))
      if (f.path().string().ends_with(ending)) found.push_back(f.path());
    return found;
  }
  TemporaryDirectory directory_;
};

TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.NeedNoSegments", "[SmallCommitsTest]") {
  auto db = open();
  Table table = *db->create_table("t");
  for (int i = 0; i < 1000; ++i) put(*db, table, "key" + std::to_string(i), "value");
  CHECK(files_with(".seg").empty());
  CHECK(files_with(".wal").size() == 1);
  CHECK(db->tables()[0].memtable_rows == 1000);
  CHECK(db->tables()[0].rows == 1000);
  REQUIRE_OK(db->compact());
  CHECK(files_with(".seg").size() == 1);
  CHECK(files_with(".wal").empty());
  CHECK(db->tables()[0].memtable_rows == 0);
  CHECK(*db->snapshot().count(table) == 1000);
}

TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.BecomeASegmentWhereThereAreMany",
                 "[SmallCommitsTest]") {
  auto db = open({.memtable_bytes = 1 << 15, .background_work = false});
  Table table = *db->create_table("t");
  Model model;
  for (int i = 0; i < 3000; ++i) {
    std::string key = "key" + std::to_string(i * 7919 % 1000);
    put(*db, table, key, std::to_string(i));
    model[key] = std::to_string(i);
  }
  CHECK(db->tables()[0].segments > 1);
  CHECK(files_with(".wal").size() <= 1);
  std::mt19937_64 random(seed());
  expect_equal(db->snapshot(), table, model, random);
  db.reset();
  db = open();
  expect_equal(db->snapshot(), *db->open_table("t"), model, random);
}

// Logs of processes that wrote little don't pile up, and neither do segments.
TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.OfManyProcessesHaveOneLog",
                 "[SmallCommitsTest]") {
  for (int i = 0; i < 30; ++i) {
    auto db = open();
    Table table = *db->open_or_create_table("t");
    put(*db, table, "key" + std::to_string(i), "value", static_cast<Durability>(i % 3));
    CHECK(files_with(".wal").size() <= 2);
    CHECK(*db->snapshot().count(table) == static_cast<uint64_t>(i) + 1);
  }
  CHECK(files_with(".seg").empty());
}

TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.AReaderInAnotherHandleSeesThem",
                 "[SmallCommitsTest]") {
  auto db = open();
  Table table = *db->create_table("t");
  for (int i = 0; i < 20; ++i) {
    put(*db, table, "key" + std::to_string(i), "value");
    auto reader = open({.read_only = true});
    CHECK(*reader->snapshot().count(*reader->open_table("t")) == static_cast<uint64_t>(i) + 1);
  }
  REQUIRE_OK(db->compact());
  auto reader = open({.read_only = true});
  CHECK(*reader->snapshot().count(*reader->open_table("t")) == 20);
}

// What a snapshot has handed out stays, whatever happens to the memtable.
TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.ASnapshotKeepsItsRows", "[SmallCommitsTest]") {
  auto db = open({.memtable_bytes = 1 << 14});
  Table table = *db->create_table("t");
  for (int i = 0; i < 50; ++i) put(*db, table, "key" + std::to_string(i), "old");
  Snapshot before = db->snapshot();
  Rows queries;
  for (int i = 0; i < 60; ++i) queries.add("key" + std::to_string(i));
  FindResult found;
  REQUIRE_OK(before.find(table, queries.column(), &found));
  auto iterator = before.iterate(table);
  auto one = before.get(table, "key7");
  for (int i = 0; i < 3000; ++i) put(*db, table, "key" + std::to_string(i % 60), "new");
  REQUIRE_OK(db->compact());
  for (uint64_t i = 0; i < 60; ++i) {
    CHECK(found.found[i] == (i < 50));
    if (i < 50) CHECK(text(found.value(i)) == "old");
  }
  CHECK(text(**one) == "old");
  CHECK(text(**before.get(table, "key8")) == "old");  // which nobody has read so far
  CHECK_FALSE(before.get(table, "key55")->has_value());
  CHECK(text(**db->snapshot().get(table, "key55")) == "new");
  uint64_t rows = 0;
  for (; iterator->valid(); iterator->next(), ++rows) CHECK(text(iterator->value()) == "old");
  CHECK(rows == 50);
  CHECK(*before.count(table) == 50);
  CHECK(*db->snapshot().count(table) == 60);
}

TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.ADroppedTablesRowsGoWithIt",
                 "[SmallCommitsTest]") {
  for (bool compacts : {false, true}) {
    auto db = open();
    Table table = *db->open_or_create_table("t"), other = *db->open_or_create_table("u");
    put(*db, table, "key", "value");
    put(*db, other, "key", "value");
    REQUIRE_OK(db->drop_table("t"));
    table = *db->create_table("t");
    CHECK(*db->snapshot().count(table) == 0);
    if (compacts) REQUIRE_OK(db->compact());
    db.reset();
    db = open();
    CHECK(*db->snapshot().count(*db->open_table("t")) == 0);
    CHECK(*db->snapshot().count(*db->open_table("u")) == 1);
  }
}

// So that a commit fits a disk that was full before a table was dropped.
TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.ADroppedTablesRowsAreNotWrittenAgain",
                 "[SmallCommitsTest]") {
  for (const bool has_others : {false, true}) {
    auto db = open();
    Table table = *db->open_or_create_table("t");
    for (int i = 0; i < 100; ++i) put(*db, table, std::to_string(i), std::string(2000, 'v'));
    if (has_others) put(*db, *db->open_or_create_table("u"), "key", "value");
    db.reset();
    db = open();
    REQUIRE_OK(db->drop_table("t"));
    put(*db, *db->open_or_create_table("u"), "other", "value");
    db.reset();
    uint64_t bytes = 0;
    for (const std::string& log : files_with(".wal")) bytes += std::filesystem::file_size(log);
    CHECK(bytes < 100'000);
    db = open();
    CHECK(*db->snapshot().count(*db->open_table("u")) == (has_others ? 2 : 1));
    REQUIRE_OK(db->drop_table("u"));
  }
}

TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.AMissingOrDamagedLogIsCorruption",
                 "[SmallCommitsTest]") {
  {
    auto db = open();
    Table table = *db->create_table("t");
    for (int i = 0; i < 20; ++i)
      put(*db, table, "key" + std::to_string(i), std::string(200, 'v'), Durability::sync);
  }
  const std::string log = files_with(".wal").at(0);
  std::ifstream in(log, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  auto status_with = [&](const std::string& bytes, bool read_only) {
    std::ofstream(log, std::ios::binary) << bytes;
    return Database::open(path(), {.read_only = read_only}).status();
  };
  auto expect_corruption = [&](const Status& s) {
    CHECK_MESSAGE(s.code() == StatusCode::corruption, s.to_string());
    CHECK(s.file() == log);
    CHECK_FALSE(s.remedy().empty());
  };
  for (bool read_only : {true, false}) {
    std::string flipped = good;
    flipped[sizeof(LogHeader) + 300] ^= 1;
    expect_corruption(status_with(flipped, read_only));
    flipped = good;
    flipped[30] ^= 1;
    expect_corruption(status_with(flipped, read_only));
    expect_corruption(status_with(good.substr(0, 10), read_only));
    std::filesystem::remove(log);
    Status s = Database::open(path(), {.read_only = read_only}).status();
    CHECK_MESSAGE(s.code() == StatusCode::corruption, s.to_string());
    CHECK(s.file() == log);
    CHECK_FALSE(s.remedy().empty());
    REQUIRE_OK(status_with(good, /*read_only=*/true));
  }
  auto db = open();
  CHECK(*db->snapshot().count(*db->open_table("t")) == 20);
}

// A process that only opens the database must not remove a log that a power loss can bring back.
// verify() reads the logs of the database that is open, which nobody else would before it is opened
// again; compact() still has their rows in memory.
TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.VerifyReadsTheLogs", "[SmallCommitsTest]") {
  std::mt19937_64 random(seed());
  const bool reopened = GENERATE(false, true);
  const bool missing = GENERATE(false, true);
  auto db = open();
  Table table = *db->create_table("t");
  // Frames without padding, which has no checksum.
  for (int i = 0; i < 300; ++i)
    put(*db, table, "key-" + std::to_string(1000 + i), "four", Durability::none);
  REQUIRE_OK(db->verify());
  if (reopened) {
    REQUIRE_OK(db->close());
    db = open();
    table = *db->open_table("t");
    REQUIRE_OK(db->verify());
  }
  const auto logs = files_with(".wal");
  REQUIRE(logs.size() == 1);
  if (missing) {
    std::filesystem::remove(logs[0]);
  } else {
    std::fstream file(logs[0], std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(sizeof(LogHeader) + random() % 20'000);
    file.seekg(at);
    const char byte = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(byte ^ (1 << random() % 8)));
  }
  const Status s = db->verify();
  CHECK(s.code() == StatusCode::corruption);
  CHECK(s.file() == logs[0]);
  REQUIRE_OK(db->compact());
  REQUIRE_OK(db->verify());
  REQUIRE_OK(db->close());
  db = open();
  CHECK(*db->snapshot().count(*db->open_table("t")) == 300);
}

TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.VerifyGoesOnBesideWriters",
                 "[SmallCommitsTest]") {
  auto db = open({.memtable_bytes = 1 << 15});
  Table table = *db->create_table("t");
  std::atomic<bool> done{false};
  TestThreads threads;
  threads.start([&] {
    for (int i = 0; i < smaller_under_sanitizers(10'000, 2000); ++i)
      put(*db, table, "key" + std::to_string(i % 700), std::to_string(i), Durability::none);
    done = true;
  });
  int verified = 0;
  for (; !done; ++verified) CHECK_OK(db->verify());
  threads.join();
  CHECK(verified > 0);
}

TEST_CASE("SmallCommitsTest.ALogStaysUntilTheEditThatGivesItUpIsSynced", "[SmallCommitsTest]") {
  for (auto log_level : {Durability::sync, Durability::flush})
    for (uint64_t loss = 0; loss < 20; ++loss) {
      MemoryFileSystem fs;
      Options options;
      options.file_system = &fs;
      options.memtable_bytes = 1 << 12;
      auto db = std::move(*Database::open("/db", options));
      Table table = *db->create_table("t");
      auto put_row = [&](Database& to, const std::string& key, size_t bytes, Durability level) {
        WriteTransaction t = to.begin();
        REQUIRE_OK(t.put(table, key, std::string(bytes, 'v')));
        REQUIRE_OK(t.commit(level));
      };
      put_row(*db, "small", 10, log_level);
      put_row(*db, "large", 10'000, Durability::flush);
      // Killed twice.
      auto second_fs = fs.crash(loss, CrashPolicy::keep_unsynced);
      options.file_system = second_fs.get();
      auto second = std::move(*Database::open("/db", options));
      CHECK(*second->snapshot().count(*second->open_table("t")) == 2);
      auto third_fs =
          second_fs->crash(loss, loss % 2 ? CrashPolicy::random : CrashPolicy::keep_unsynced);
      options.file_system = third_fs.get();
      auto third = Database::open("/db", options);
      REQUIRE_OK(third.status());
      const uint64_t rows = *(*third)->snapshot().count(*(*third)->open_table("t"));
      CHECK(rows >= (log_level == Durability::sync ? 1 : 0));
      if (loss % 2 == 0) CHECK(rows == 2);
    }
}

// A large commit looks for a memtable to flush first.
TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.ALargeCommitIsRefusedWhereNothingIsWritten",
                 "[SmallCommitsTest]") {
  auto db = open();
  Table table = *db->create_table("t");
  put(*db, table, "small", "value");
  auto reader = open({.read_only = true});
  WriteTransaction read_only = reader->begin(), closed = db->begin();
  const std::string large(5 << 20, 'v');
  REQUIRE_OK(read_only.put(*reader->open_table("t"), "large", large));
  REQUIRE_OK(closed.put(table, "large", large));
  CHECK(read_only.commit().code() == StatusCode::read_only);
  REQUIRE_OK(db->close());
  CHECK(closed.commit().code() == StatusCode::closed);
}

// Logs that are given up go with the next sync: those of memtables that have become runs by then.
TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.LogsThatAreGivenUpGo", "[SmallCommitsTest]") {
  auto db = open({.durability = Durability::flush, .memtable_bytes = 1 << 12});
  Table table = *db->create_table("t");
  for (int i = 0; i < 20; ++i) {
    put(*db, table, "small", "value");
    put(*db, table, "large", std::string(10'000, 'v'));
  }
  REQUIRE_OK(db->sync());
  for (int i = 0; i < 10'000 && files_with(".wal").size() > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE_OK(db->sync());
  }
  CHECK(files_with(".wal").size() <= 1);
}

// The number of a table whose creation a power loss has taken is given again; rows of the old one
// don't come back.
TEST_CASE("SmallCommitsTest.RowsOfALostTableStayLost", "[SmallCommitsTest]") {
  for (uint64_t loss = 0; loss < 60; ++loss) {
    MemoryFileSystem fs;
    Options options;
    options.file_system = &fs;
    options.durability = Durability::flush;
    auto put_row = [](Database& db, const Table& table, Durability level) {
      WriteTransaction t = db.begin();
      REQUIRE_OK(t.put(table, "ghost", "boo"));
      REQUIRE_OK(t.commit(level));
    };
    auto db = std::move(*Database::open("/db", options));
    put_row(*db, *db->create_table("a"), Durability::sync);
    put_row(*db, *db->create_table("lost"), Durability::flush);
    auto after = fs.crash(loss, CrashPolicy::random);
    options.file_system = after.get();
    for (int open = 0; open < 2; ++open) {
      db = std::move(*Database::open("/db", options));
      auto made = db->open_or_create_table("new");
      REQUIRE_OK(made.status());
      CHECK(*db->snapshot().count(*made) == 0);
      CHECK(*db->snapshot().count(*db->open_table("a")) == 1);
      db.reset();
    }
  }
}

// A table that is there after a power loss comes after all that was committed before it.
// Later frames say truly that earlier ones were on stable storage; but the manifest has lost edits
// that came before both.
TEST_CASE("SmallCommitsTest.FramesAfterLostEditsAreNoDamage", "[SmallCommitsTest]") {
  MemoryFileSystem files;
  const Options options{.durability = Durability::flush, .file_system = &files};
  auto db = std::move(*Database::open("/db", options));
  Table table = *db->create_table("t");
  auto put_one = [&](const std::string& key, Durability durability) {
    WriteTransaction t = db->begin();
    REQUIRE_OK(t.put(table, key, "value"));
    REQUIRE_OK(t.commit(durability));
  };
  put_one("a", Durability::sync);
  REQUIRE_OK(db->create_table("x"));
  put_one("b", Durability::flush);
  REQUIRE_OK(db->create_table("y"));  // for it the log is synced, and the manifest is not
  put_one("c", Durability::flush);
  REQUIRE_OK(db->create_table("z"));
  std::unique_ptr<MemoryFileSystem> after = files.crash(seed(), CrashPolicy::lose_unsynced);
  for (int opening = 0; opening < 3; ++opening) {
    auto again = Database::open("/db", {.file_system = after.get()});
    REQUIRE_OK(again);
    CHECK((*again)->tables().size() == 1u);
    CHECK(*(*again)->snapshot().count(*(*again)->open_table("t")) == 1u);
  }
}

TEST_CASE("SmallCommitsTest.ATableIsNotThereWithoutTheCommitsBeforeIt", "[SmallCommitsTest]") {
  for (auto level : {Durability::flush, Durability::none})
    for (uint64_t loss = 0; loss < 40; ++loss) {
      MemoryFileSystem fs;
      Options options;
      options.file_system = &fs;
      options.durability = level;
      auto db = std::move(*Database::open("/db", options));
      Table table = *db->create_table("t");
      WriteTransaction t = db->begin();
      REQUIRE_OK(t.put(table, "before", "value"));
      REQUIRE_OK(t.commit());
      REQUIRE_OK(db->create_table("after").status());
      auto after = fs.crash(loss, CrashPolicy::random);
      options.file_system = after.get();
      db = std::move(*Database::open("/db", options));
      if (!db->open_table("after").ok()) continue;
      CHECK(*db->snapshot().count(*db->open_table("t")) == 1);
    }
}

TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.EmptyKeysAndValuesAreRows",
                 "[SmallCommitsTest]") {
  for (uint64_t memtable : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 20, UINT64_MAX}) {
    auto db = open({.memtable_bytes = memtable});
    Table table = *db->open_or_create_table("t" + std::to_string(memtable));
    put(*db, table, "", "");
    CHECK(*db->snapshot().count(table) == 1);
    db.reset();
    db = open({.memtable_bytes = memtable});
    table = *db->open_table("t" + std::to_string(memtable));
    CHECK((*db->snapshot().get(table, "")).has_value());
    WriteTransaction t = db->begin();
    REQUIRE_OK(t.erase_range(table, std::nullopt, std::nullopt));
    REQUIRE_OK(t.commit());
    CHECK(*db->snapshot().count(table) == 0);
    WriteTransaction absent = db->begin();
    Rows none({""});
    REQUIRE_OK(absent.put_if_absent(table, none.column(), none.column()));
    REQUIRE_OK(absent.commit());
    CHECK(*db->snapshot().count(table) == 1);
  }
}

// Readers see whole commits, in order, while writers go on, memtables fill and segments are merged.
TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.ReadersSeeWholeCommits",
                 "[SmallCommitsTest]") {
  auto db = open({.threads = 1, .memtable_bytes = 1 << 15});
  Table table = *db->create_table("t");
  put(*db, table, "a", "0");
  put(*db, table, "b", "0");
  const int commits = smaller_under_sanitizers(4000, 500);
  TestThreads threads;
  std::atomic<bool> done{false};
  for (int r = 0; r < 2; ++r)
    threads.start([&, r] {
      uint64_t last = 0;
      for (int n = 0; !done && !threads.stopping(); ++n) {
        Snapshot snapshot = db->snapshot();
        std::string a, b;
        if (r == 0 || n % 8) {
          a = text(**snapshot.get(table, "a"));
          b = text(**snapshot.get(table, "b"));
        } else {
          auto it = snapshot.iterate(table);
          CHECK_OK(it.status());
          a = text(it->value());
          it->next();
          b = text(it->value());
        }
        CHECK_MESSAGE(a == b, a << " and " << b);
        CHECK_MESSAGE(std::stoull(a) >= last, a << " after " << last);
        last = std::stoull(a);
      }
    });
  for (int i = 1; i <= commits; ++i) {
    WriteTransaction t = db->begin();
    REQUIRE_OK(t.put(table, "a", std::to_string(i)));
    REQUIRE_OK(t.put(table, "b", std::to_string(i)));
    REQUIRE_OK(t.commit(Durability::none));
    if (i % 200 == 0) REQUIRE_OK(db->compact());
  }
  done = true;
  threads.join();
}

// Threads that commit together: every row is there, and of one key that of the last commit.
TEST_CASE_METHOD(SmallCommitsTest, "SmallCommitsTest.ManyWritersLoseNothing",
                 "[SmallCommitsTest]") {
  auto db = open({.threads = 1, .memtable_bytes = 1 << 16});
  Table table = *db->create_table("t"), sums = *db->create_table("s", {.numbers = NumberType::i64});
  const int writers = 4, commits = smaller_under_sanitizers(600, 120);
  TestThreads threads;
  for (int w = 0; w < writers; ++w)
    threads.start([&, w] {
      for (int i = 0; i < commits; ++i) {
        WriteTransaction t = db->begin();
        REQUIRE_OK(t.put(table, std::to_string(w) + "/" + std::to_string(i), "value"));
        REQUIRE_OK(t.accumulate(sums, "all", 1));
        REQUIRE_OK(t.commit(static_cast<Durability>(1 + i % 2)));
      }
    });
  threads.join();
  auto expect_all = [&] {
    table = *db->open_table("t");
    CHECK(*db->snapshot().count(table) == static_cast<uint64_t>(writers * commits));
    int64_t sum = 0;
    auto value = db->snapshot().get(*db->open_table("s"), "all");
    std::memcpy(&sum, (*value)->data(), sizeof sum);
    CHECK(sum == writers * commits);
  };
  expect_all();
  db.reset();
  db = open();
  expect_all();
}

}  // namespace
}  // namespace stride::test::small_commit_tests

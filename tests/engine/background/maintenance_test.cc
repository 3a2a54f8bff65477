// Memtables that become runs, and runs that are merged, behind the commits.
#include "engine/background/maintenance.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/becomes_true.h"
#include "tests/support/catch.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test::maintenance_tests {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t small_memtable = 1 << 16;

class MaintenanceTest {
 protected:
  void open(Options options = {}) {
    options.backend = BackendKind::host;
    options.threads = 2;
    options.file_system = &files_;
    database_.reset();
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    database_ = std::move(*db);
    auto table = database_->open_or_create_table("t");
    REQUIRE_OK(table);
    table_ = *table;
  }
  Status put(const std::string& key, const std::string& value,
             Durability durability = Durability::none) {
    WriteTransaction t = database_->begin();
    STRIDE_TRY(t.put(table_, key, value));
    STRIDE_TRY(t.commit(durability));
    model_[key] = value;
    return {};
  }
  void put_bulk(const std::string& prefix, int rows, size_t bytes) {
    WriteTransaction t = database_->begin();
    for (int i = 0; i < rows; ++i) {
      std::string key = prefix + std::to_string(i), value(bytes, static_cast<char>('a' + i % 26));
      REQUIRE_OK(t.put(table_, key, value));
      model_[key] = value;
    }
    REQUIRE_OK(t.commit(Durability::none));
  }
  // Rows of so many bytes in all, with keys from a few.
  void fill(uint64_t bytes, int keys = 200) {
    for (uint64_t at = 0; at < bytes; at += 120)
      REQUIRE_OK(put("k" + std::to_string(random_() % static_cast<uint64_t>(keys)),
                     std::string(60 + random_() % 60, static_cast<char>('a' + random_() % 26))));
  }
  uint64_t files_with(const std::string& ending) {
    uint64_t n = 0;
    auto names = memory_.list("/db");
    REQUIRE_OK(names);
    for (const std::string& name : *names) n += name.ends_with(ending);
    return n;
  }
  TableStatistics statistics() { return database_->tables()[0]; }
  void expect_model() { expect_equal(database_->snapshot(), table_, model_, random_); }

  MemoryFileSystem memory_;
  GatedFileSystem files_{memory_};
  std::mt19937_64 random_{seed()};
  std::unique_ptr<Database> database_;
  Table table_;
  Model model_;
};

TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.MemtablesBecomeRunsAndRunsAreMerged",
                 "[MaintenanceTest]") {
  open({.memtable_bytes = small_memtable});
  fill(40 * small_memtable);
  expect_model();
  // The rows are some 200, so the bottom is small, and each flush is reason to merge all.
  CHECK(becomes_true([&] {
    return statistics().runs <= 2 && files_with(".wal") <= 1 && files_with(".seg") <= 2;
  }));
  expect_model();
  open({.memtable_bytes = small_memtable});
  expect_model();
  REQUIRE_OK(database_->verify());
}

TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.RunsOfBulkCommitsAreMergedOnceTheyPause",
                 "[MaintenanceTest]") {
  open({.memtable_bytes = 0});
  for (int i = 0; i < 9; ++i) put_bulk("b" + std::to_string(i % 4), 50, 10);
  expect_model();
  CHECK(becomes_true([&] { return statistics().runs == 1; }));
  expect_model();
}

TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.WithoutItNothingHappensBehind",
                 "[MaintenanceTest]") {
  open({.memtable_bytes = small_memtable, .background_work = false});
  fill(10 * small_memtable);
  const uint64_t runs = statistics().runs;
  CHECK(runs >= 10u);
  CHECK(files_with(".wal") <= 1u);
  std::this_thread::sleep_for(20ms);
  CHECK(statistics().runs == runs);
  expect_model();
  REQUIRE_OK(database_->compact());
  CHECK(statistics().runs == 1u);
  expect_model();
}

// A bulk commit that comes between the sealing of a memtable and its run is the newer of the two.
TEST_CASE_METHOD(MaintenanceTest,
                 "MaintenanceTest.BulkCommitsAreNewerThanMemtablesSealedBeforeThem",
                 "[MaintenanceTest]") {
  open({.memtable_bytes = 1 << 20});
  REQUIRE_OK(put("oldest", "1"));
  REQUIRE_OK(database_->compact());
  files_.shut_for_others();
  REQUIRE_OK(put("both0", "small"));
  REQUIRE_OK(put("both1", "small"));
  REQUIRE_OK(put("small", "small"));
  const Snapshot before = database_->snapshot();
  const Model model_before = model_;
  put_bulk("both", 1, 1 << 18);
  REQUIRE_OK(put("small", "newest"));
  REQUIRE_OK(put("both1", "newest"));
  CHECK(statistics().memtable_rows == 5u);
  expect_model();
  expect_equal(before, table_, model_before, random_);
  files_.open_gate();
  CHECK(becomes_true([&] { return statistics().memtable_rows == 2; }));
  expect_model();
  expect_equal(before, table_, model_before, random_);
  database_.reset();
  open({.memtable_bytes = 1 << 20});
  expect_model();
}

TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.SealedMemtablesAreThereAfterReopening",
                 "[MaintenanceTest]") {
  const bool torn = GENERATE(false, true);
  open({.memtable_bytes = 1 << 20});
  files_.fail_writes(".seg", Status(StatusCode::no_space, "there is no space"));
  REQUIRE_OK(put("k", "1", Durability::sync));
  fill(700 << 10);
  REQUIRE_OK(put("k", "2", Durability::sync));
  CHECK(files_with(".wal") == 2u);
  CHECK(files_with(".seg") == 0u);
  expect_model();
  if (torn) {
    // What was not synced after that.
    const Model synced = model_;
    REQUIRE_OK(put("k", "3"));
    auto after = memory_.crash(seed(), CrashPolicy::lose_unsynced);
    database_.reset();
    auto db = Database::open("/db", {.file_system = after.get()});
    REQUIRE_OK(db);
    expect_equal((*db)->snapshot(), *(*db)->open_table("t"), synced, random_);
    return;
  }
  database_.reset();
  files_.fail_writes(".seg", {});
  open({.memtable_bytes = 1 << 20});
  expect_model();
  REQUIRE_OK(put("k", "3"));
  CHECK(becomes_true([&] { return files_with(".wal") == 1; }));
  expect_model();
}

// Also where nothing has been committed since.
TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.ChangesDependOnRowsOfSealedMemtables",
                 "[MaintenanceTest]") {
  open();
  Table sums = *database_->create_table("sums", {.numbers = NumberType::i64});
  auto add = [&](int64_t delta) {
    WriteTransaction t = database_->begin();
    REQUIRE_OK(t.accumulate(sums, "k", delta));
    REQUIRE_OK(t.commit());
  };
  auto sum = [&] {
    int64_t number = 0;
    auto value = database_->snapshot().get(sums, "k");
    REQUIRE((value.ok() && *value && (*value)->size() == sizeof number));
    std::memcpy(&number, (*value)->data(), sizeof number);
    return number;
  };
  files_.fail_writes(".seg", Status(StatusCode::no_space, "there is no space"));
  add(5);
  CHECK(database_->compact().code() == StatusCode::no_space);
  add(7);
  CHECK(sum() == 12);
  REQUIRE_OK(put("k", "1"));
  CHECK(database_->compact().code() == StatusCode::no_space);
  WriteTransaction t = database_->begin();
  uint64_t was_new = 1;
  const Rows key({"k"}), value({"2"});
  REQUIRE_OK(t.put_if_absent(table_, key.column(), value.column(), {&was_new, 1}));
  REQUIRE_OK(t.commit());
  CHECK(was_new == 0);
  expect_model();
  files_.fail_writes(".seg", {});
  REQUIRE_OK(database_->compact());
  add(1);
  CHECK(sum() == 13);
  expect_model();
}

// Commits fail once memory is full, lose nothing, and go on when there is space.
TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.WithoutSpaceForRunsCommitsFailInTheEnd",
                 "[MaintenanceTest]") {
  const bool background = GENERATE(true, false);
  open({.memtable_bytes = small_memtable, .background_work = background});
  files_.fail_writes(".seg", Status(StatusCode::no_space, "there is no space"));
  Status s;
  int commits = 0;
  for (; s.ok() && commits < 100'000; ++commits)
    s = put("k" + std::to_string(random_() % 100), std::string(100, 'x'));
  CHECK(s.code() == StatusCode::no_space);
  CHECK(commits > 500);
  expect_model();
  files_.fail_writes(".seg", {});
  REQUIRE_OK(put("now", "there is space"));
  expect_model();
  fill(4 * small_memtable);
  open({.memtable_bytes = small_memtable});
  expect_model();
}

// The same where the disk is full for logs as well, so that commits fail that have reserved memory.
TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.CommitsGoOnOnceThereIsSpace",
                 "[MaintenanceTest]") {
  const bool background = GENERATE(true, false);
  auto put_any = [&] {
    return put("k" + std::to_string(random_() % 300),
               std::string(random_() % 100, static_cast<char>('a' + random_() % 26)),
               static_cast<Durability>(random_() % 3));
  };
  for (int round = 0; round < smaller_under_sanitizers(30, 5); ++round) {
    open({.memtable_bytes = 1 << 14, .background_work = background});
    for (int i = 0; i < 200; ++i) REQUIRE_OK(put_any());
    // A merge that ends meanwhile gives space back, so what is left is made small again and again.
    int failed = 0;
    for (int i = 0; failed < 50 && i < 100'000; ++i) {
      if (i % 50 == 0) memory_.set_capacity(memory_.used_bytes() + random_() % 6000);
      failed += !put_any().ok();
    }
    CHECK(failed == 50);
    expect_model();
    memory_.set_capacity(~uint64_t{0});
    REQUIRE_OK(put_any());
    expect_model();
  }
}

TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.ClosesInTheMidstOfIt", "[MaintenanceTest]") {
  for (int round = 0; round < smaller_under_sanitizers(20, 8); ++round) {
    open({.memtable_bytes = small_memtable});
    fill(random_() % (3 * small_memtable));
    if (random_() % 2) expect_model();
  }
  open({});
  expect_model();
}

// Readers, writers and compact() at once, with what each thread wrote read back by it.
TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.GoesOnBesideReadersAndWriters",
                 "[MaintenanceTest]") {
  open({.memtable_bytes = small_memtable});
  constexpr int writers = 3, rows = 3000;
  std::atomic<int> writing{writers};
  auto work = [&](int thread) {
    const std::string mine = "w" + std::to_string(thread) + "-";
    if (thread < writers) {
      for (int i = 0; i < rows; ++i) {
        WriteTransaction t = database_->begin();
        const std::string key = mine + std::to_string(i % 500), value = std::to_string(i);
        CHECK_OK(t.put(table_, key, value));
        if (i % 7 == 0) CHECK_OK(t.erase(table_, mine + std::to_string((i + 250) % 500)));
        CHECK_OK(t.commit(Durability::none));
        auto got = database_->snapshot().get(table_, as_bytes(key));
        CHECK_MESSAGE((got.ok() && *got && as_text(**got) == value), key);
      }
      --writing;
    } else if (thread == writers) {
      while (writing > 0) {
        Snapshot snapshot = database_->snapshot();
        auto count = snapshot.count(table_);
        auto again = snapshot.count(table_);
        CHECK_MESSAGE((count.ok() && again.ok() && *count == *again), "counts of one snapshot");
      }
    } else {
      while (writing > 0) {
        CHECK_OK(database_->compact());
        std::this_thread::sleep_for(2ms);
      }
    }
  };
  TestThreads threads;
  for (int thread = 0; thread < writers + 2; ++thread)
    threads.start([&work, thread] { work(thread); });
  threads.join();
  // The last 500 rounds of each writer, less what they erased: the same for all of them.
  std::map<std::string, std::string> last;
  for (int i = 0; i < rows; ++i) {
    last[std::to_string(i % 500)] = std::to_string(i);
    if (i % 7 == 0) last.erase(std::to_string((i + 250) % 500));
  }
  for (int w = 0; w < writers; ++w)
    for (const auto& [key, value] : last) model_["w" + std::to_string(w) + "-" + key] = value;
  expect_model();
  open({});
  expect_model();
}

// Each bulk commit seals a memtable of one row.
TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.SealedMemtablesAreFew", "[MaintenanceTest]") {
  open({.memtable_bytes = small_memtable});
  for (int i = 0; i < 100; ++i) {
    REQUIRE_OK(put("one" + std::to_string(i % 3), std::to_string(i)));
    put_bulk("bulk" + std::to_string(i % 2), 1, small_memtable / 4);
    CHECK(files_with(".wal") <= 10u);
  }
  expect_model();
}

TEST_CASE_METHOD(MaintenanceTest, "MaintenanceTest.CompactingEndsBesideWriters",
                 "[MaintenanceTest]") {
  open({.memtable_bytes = small_memtable});
  std::atomic<bool> stop{false};
  TestThreads threads;
  threads.start([&] {
    for (int i = 0; !stop; ++i) {
      WriteTransaction t = database_->begin();
      CHECK_OK(t.put(table_, "other" + std::to_string(i % 1000), std::string(100, 'x')));
      CHECK_OK(t.commit(Durability::none));
    }
  });
  for (int i = 0; i < 5; ++i) CHECK_OK(database_->compact());
  stop = true;
  threads.join();
  REQUIRE_OK(database_->verify());
}

TEST_CASE("MaintenanceTest.SpaceStaysNearTheLiveData", "[MaintenanceTest]") {
  TemporaryDirectory directory;
  auto opened = Database::open(directory.file("db"), {.memtable_bytes = 1 << 18});
  REQUIRE_OK(opened);
  Database& db = **opened;
  Table table = *db.create_table("t");
  constexpr int keys = smaller_under_sanitizers(10'000, 5'000), rounds = 6;
  std::mt19937_64 random(seed());
  for (int i = 0; i < rounds * keys; ++i) {
    WriteTransaction t = db.begin();
    REQUIRE_OK(t.put(table, "key" + std::to_string(random() % keys), std::string(100, 'v')));
    REQUIRE_OK(t.commit(Durability::none));
  }
  uint64_t live = 0;
  {
    auto scan = db.snapshot().iterate(table);
    REQUIRE_OK(scan);
    for (Iterator& it = *scan; it.valid(); it.next()) live += it.key().size() + it.value().size();
  }
  CHECK(live > keys * 50);
  CHECK(becomes_true([&] {
    return static_cast<double>(db.size_bytes()) < 1.5 * static_cast<double>(live) + (1 << 18);
  }));
}

}  // namespace
}  // namespace stride::test::maintenance_tests

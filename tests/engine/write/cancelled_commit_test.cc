// Commits that are watched and ended by their caller: at every call that they make, and beside
// others.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/write/write_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/stopping_point.h"

namespace stride::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> sorted_names(FileSystem& files) {
  std::vector<std::string> names = *files.list("/db");
  std::sort(names.begin(), names.end());
  return names;
}

// A table of bytes, one of prefixes of byte strings and one of numbers, with commits that are held
// at their calls.
class CancelledCommitTest {
 protected:
  CancelledCommitTest() { reopen(files_); }
  void reopen(FileSystem& below) {
    db_.reset();
    point_.hold_at(0);
    held_ = std::make_unique<StoppableFiles>(below, point_);
    Options options;
    options.memtable_bytes = 0;  // each commit makes a segment
    options.background_work = false;
    options.memory_limit_bytes = 16 << 20;
    options.file_system = held_.get();
    options.shared_backend = std::make_shared<StoppableBackend>(2, point_);
    db_ = std::move(*Database::open("/db", options));
    bytes_ = *db_->open_or_create_table("bytes");
    prefixes_ = *db_->open_or_create_table("prefixes", {.address_bits = byte_strings});
    sums_ = *db_->open_or_create_table("sums", {.numbers = NumberType::i64});
  }

  std::string random_key() { return "k" + std::to_string(random_() % 300); }
  static std::string number(int64_t n) { return {reinterpret_cast<const char*>(&n), sizeof n}; }

  // What the tables are if it is committed.
  Tables change(WriteTransaction* t, Tables after) {
    const Table& plain = random_() % 3 == 0 ? prefixes_ : bytes_;
    Model& model = after[plain.name()];
    for (uint64_t i = random_() % 200; i > 0; --i) {
      const std::string key = random_key(), value(random_() % 40, 'v');
      if (random_() % 4 == 0) {
        REQUIRE_OK(t->erase(plain, key));
        model.erase(key);
      } else {
        REQUIRE_OK(t->put(plain, key, value));
        model[key] = value;
      }
    }
    if (random_() % 4 == 0) {
      const std::string from = random_key(), to = random_key();
      REQUIRE_OK(t->erase_range(plain, as_bytes(from), as_bytes(to)));
      if (from < to) model.erase(model.lower_bound(from), model.lower_bound(to));
    }
    if (random_() % 3 == 0) add_if_absent(t, &after["bytes"]);
    if (random_() % 3 == 0) {
      for (uint64_t i = random_() % 50; i > 0; --i) {
        const std::string key = random_key();
        int64_t sum = 1;
        REQUIRE_OK(t->accumulate(sums_, key, 1));
        if (const std::string& before = after["sums"][key]; !before.empty())
          sum += *reinterpret_cast<const int64_t*>(before.data());
        after["sums"][key] = number(sum);
      }
    }
    if (random_() % 4 == 0) add_many(t, &after["sums"]);
    return after;
  }
  // They are so many that they are added up without a hash table.
  void add_many(WriteTransaction* t, Model* model) {
    Rows keys;
    std::map<std::string, int64_t> times;
    for (int i = 0; i < 5000; ++i) {
      const std::string key = random_key();
      keys.add(key);
      ++times[key];
    }
    const std::vector<int64_t> ones(5000, 1);
    REQUIRE_OK(t->accumulate(sums_, keys.column(), ones));
    for (auto [key, sum] : times) {
      std::string& value = (*model)[key];
      if (!value.empty()) sum += *reinterpret_cast<const int64_t*>(value.data());
      value = number(sum);
    }
  }
  void add_if_absent(WriteTransaction* t, Model* model) {
    Rows keys, values;
    for (uint64_t i = random_() % 50; i > 0; --i) {
      const std::string key = random_key();
      keys.add(key);
      values.add("absent");
      model->try_emplace(key, "absent");
    }
    REQUIRE_OK(t->put_if_absent(bytes_, keys.column(), values.column()));
  }
  Tables found() { return *read_all(*db_); }

  std::mt19937_64 random_{seed()};
  MemoryFileSystem files_;
  StoppingPoint point_;
  std::unique_ptr<StoppableFiles> held_;
  std::unique_ptr<Database> db_;
  Table bytes_, prefixes_, sums_;
};

// Each change is ended at its first call, then at its second one, and so on, and at last done.
TEST_CASE_METHOD(CancelledCommitTest, "CancelledCommitTest.LeavesNothingWhereverItIsEnded",
                 "[CancelledCommitTest]") {
  constexpr Durability durabilities[] = {Durability::sync, Durability::flush, Durability::none};
  Tables now = found();
  uint64_t cancelled = 0, late = 0;
  for (int round = 0; round < 12; ++round) {
    const Durability durability = durabilities[round % 3];
    if (durability == Durability::sync) REQUIRE_OK(db_->sync());
    bool reached = true;
    for (uint64_t call = 1; reached; ++call) {
      REQUIRE(call < 500u);
      const auto names = sorted_names(files_);
      WriteTransaction t = db_->begin();
      Tables after = change(&t, now);
      point_.hold_at(call);
      Status s = t.commit({.durability = durability, .progress = [&](const CommitProgress&) {
                             return !point_.is_reached();
                           }});
      reached = point_.is_reached();
      point_.hold_at(0);
      CHECK(t.commit().code() == StatusCode::closed);
      if (s.ok()) {
        late += reached;
        now = std::move(after);
      } else {
        REQUIRE_MESSAGE(s.code() == StatusCode::cancelled, s.to_string());
        REQUIRE(reached);
        REQUIRE(sorted_names(files_) == names);
        ++cancelled;
      }
      REQUIRE_MESSAGE(found() == now, "round " << round << ", call " << call);
      if (call % 5 != 0) continue;
      if (durability == Durability::sync) {
        auto after_crash = files_.crash(random_(), CrashPolicy::random);
        reopen(*after_crash);
        const Tables left = found();
        reopen(files_);
        REQUIRE_MESSAGE(left == now, "after a crash, round " << round << ", call " << call);
      }
      reopen(files_);
      REQUIRE_MESSAGE(found() == now, "reopened, round " << round << ", call " << call);
    }
  }
  INFO(cancelled << " ended, " << late << " too late");
  CHECK(cancelled > 50);
  CHECK(late > 0);  // held at the manifest
}

// A run that is cut into segments: those that are finished go, too.
TEST_CASE_METHOD(CancelledCommitTest, "CancelledCommitTest.RemovesFinishedSegments",
                 "[CancelledCommitTest]") {
  const std::string value(100'000, 'v');
  const auto names = sorted_names(files_);
  for (uint64_t call : {10, 25, 40}) {
    uint64_t rows = 0;
    auto put_all = [&](WriteTransaction* t) {
      for (int i = 0; i < 400; ++i)
        REQUIRE_OK(t->put(bytes_, "key" + std::to_string(1000 + i), value));
    };
    WriteTransaction t = db_->begin();
    put_all(&t);
    double share = 0;
    point_.hold_at(call);
    Status s = t.commit({.progress = [&](const CommitProgress& p) {
      CHECK(p.share >= share);
      CHECK(p.share <= 1);
      CHECK(p.rows >= rows);
      CHECK(p.rows <= p.total_rows);
      CHECK(p.total_rows == 400u);
      CHECK(p.bytes <= p.total_bytes);
      share = p.share;
      rows = p.rows;
      return !point_.is_reached();
    }});
    REQUIRE_MESSAGE(s.code() == StatusCode::cancelled, s.to_string());
    CHECK(share > 0);
    CHECK(sorted_names(files_) == names);
    CHECK(found()["bytes"].empty());
  }
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(bytes_, "a", "b"));
  REQUIRE_OK(t.commit());
  CHECK(found()["bytes"].size() == 1u);
}

// Some commits do not wait for their writes: this is still to be written when it is too late.
class LateCancelTest : public CancelledCommitTest {
 protected:
  // Stops a commit at each of its calls, when the progress function has seen so often that it is
  // reached, and returns how many of them were there nevertheless.
  uint64_t stop_each_call(int patience) {
    uint64_t late = 0;
    bool reached = true;
    for (uint64_t call = 1; reached; ++call) {
      REQUIRE(call < 200u);
      const Tables before = found();
      Tables after = before;
      WriteTransaction t = db_->begin();
      for (int i = 0; i < 8; ++i) {
        const std::string key = std::to_string(call) + "/" + std::to_string(i);
        const std::string value(1 << 20, static_cast<char>('a' + i));
        REQUIRE_OK(t.put(bytes_, key, value));
        after["bytes"][key] = value;
      }
      point_.hold_at(call);
      int seen = 0;
      Status s = t.commit({.durability = Durability::none, .progress = [&](const CommitProgress&) {
                             return !point_.is_reached() || seen++ < patience;
                           }});
      reached = point_.is_reached();
      point_.hold_at(0);
      late += reached && s.ok();
      REQUIRE_MESSAGE((s.ok() || s.code() == StatusCode::cancelled), s.to_string());
      reopen(files_);
      REQUIRE_MESSAGE((found() == (s.ok() ? after : before)), "call " << call);
      REQUIRE_OK(db_->verify());
      REQUIRE_OK(db_->drop_table("bytes"));
      bytes_ = *db_->create_table("bytes");
    }
    return late;
  }
};

TEST_CASE_METHOD(LateCancelTest, "CancelledCommitTest.TooLateLosesNothing",
                 "[CancelledCommitTest]") {
  // Where all were stopped in time the next round asks a little later.
  uint64_t late = 0;
  for (int patience = 0; late == 0 && patience < 20; ++patience) late = stop_each_call(patience);
  CHECK(late > 0u);
}

TEST_CASE_METHOD(CancelledCommitTest, "CancelledCommitTest.AnExceptionEndsItToo",
                 "[CancelledCommitTest]") {
  for (bool known : {true, false}) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(bytes_, "a", "b"));
    point_.hold_at(1);
    Status s = t.commit({.progress = [&](const CommitProgress&) -> bool {
      if (!point_.is_reached()) return true;
      if (known) throw std::runtime_error("no more");
      throw 7;
    }});
    CHECK(s.code() == StatusCode::cancelled);
    CHECK_MESSAGE(
        s.message().find(known ? "threw: no more" : "threw something") != std::string::npos,
        s.to_string());
    CHECK(found()["bytes"].empty());
  }
}

// A table that the transaction has created is not there, and may be created again.
TEST_CASE_METHOD(CancelledCommitTest, "CancelledCommitTest.ItsTablesAreNotThere",
                 "[CancelledCommitTest]") {
  for (uint64_t call : {1, 0}) {
    WriteTransaction t = db_->begin();
    auto table = t.create_table("new");
    REQUIRE_OK(table);
    REQUIRE_OK(t.put(*table, "a", "b"));
    point_.hold_at(call);
    CommitReport report;
    Status s = t.commit({.progress = [&](const CommitProgress&) { return !point_.is_reached(); }},
                        &report);
    CHECK(s.code() == (call ? StatusCode::cancelled : StatusCode::ok));
    CHECK(report.keys.size() == (call ? 0u : 1u));
    CHECK(db_->open_table("new").ok() == (call == 0));
  }
}

// Small commits go through the log and are never watched.
TEST_CASE("WatchedCommitTest.SmallCommitsAreNotWatched", "[WatchedCommitTest]") {
  MemoryFileSystem files;
  Options options;
  options.file_system = &files;
  auto db = std::move(*Database::open("/db", options));
  Table table = *db->create_table("t");
  uint64_t calls = 0;
  auto progress = [&](const CommitProgress&) {
    ++calls;
    return true;
  };
  WriteTransaction t = db->begin();
  REQUIRE_OK(t.put(table, "a", "b"));
  REQUIRE_OK(t.commit({.progress = progress}));
  CHECK(calls == 0u);
  t = db->begin();
  for (int i = 0; i < 20; ++i)
    REQUIRE_OK(t.put(table, "big" + std::to_string(i), std::string(1 << 20, 'v')));
  REQUIRE_OK(t.commit({.progress = progress}));
  CHECK(calls > 0u);
  CHECK(read_table(*db, table).size() == 21u);
}

// One that waits for another commit is ended at once, and does not take that one with it.
TEST_CASE_METHOD(GroupFixture, "WatchedCommitTest.IsEndedWhileItWaits", "[WatchedCommitTest]") {
  gate_.shut();
  WriteTransaction first = db_->begin(), second = db_->begin(), third = db_->begin();
  REQUIRE_OK(first.put(table_, "first", "1"));
  REQUIRE_OK(second.put(table_, "second", "2"));
  REQUIRE_OK(third.put(table_, "third", "3"));
  auto committed = std::async(std::launch::async, [&] { return first.commit(); });
  gate_.wait_for_waiting(1);
  auto beside = std::async(std::launch::async, [&] { return third.commit(); });
  const auto begin = std::chrono::steady_clock::now();
  int calls = 0;
  Status s = second.commit({.progress = [&](const CommitProgress& p) {
    CHECK(p.share == 0);
    return ++calls < 5;
  }});
  CHECK(s.code() == StatusCode::cancelled);
  CHECK(std::chrono::steady_clock::now() - begin < 2s);
  CHECK(committed.wait_for(0s) == std::future_status::timeout);
  gate_.open_gate();
  CHECK_OK(committed.get());
  CHECK_OK(beside.get());
  CHECK((read_table(*db_, table_) == Model{{"first", "1"}, {"third", "3"}}));
}

// Writes that are under way are waited for, and those that have not begun are left out.
TEST_CASE_METHOD(GroupFixture, "WatchedCommitTest.IsEndedWhileItsFileIsWritten",
                 "[WatchedCommitTest]") {
  gate_.shut(2);
  WriteTransaction t = db_->begin();
  for (int i = 0; i < 40; ++i)
    REQUIRE_OK(t.put(table_, "key" + std::to_string(i), std::string(1 << 20, 'v')));
  std::future<void> opened;
  Status s = t.commit({.progress = [&](const CommitProgress&) {
    if (gate_.max_waiting() < 2) return true;
    opened = std::async(std::launch::async, [&] {
      std::this_thread::sleep_for(50ms);
      gate_.open_gate();
    });
    return false;
  }});
  opened.get();
  CHECK(s.code() == StatusCode::cancelled);
  CHECK(read_table(*db_, table_).empty());
}

// Several threads commit, small and large, while others of theirs are ended.
TEST_CASE("WatchedCommitTest.OthersGoOn", "[WatchedCommitTest]") {
  MemoryFileSystem files;
  Options options;
  options.file_system = &files;
  options.memtable_bytes = 1 << 20;
  options.threads = 2;
  auto db = std::move(*Database::open("/db", options));
  Table table = *db->create_table("t");
  constexpr int threads = 4;
  std::vector<Model> models(threads);
  std::atomic<uint64_t> cancelled{0};
  const uint64_t seed_of_all = seed();
  auto run = [&](int thread) {
    std::mt19937_64 random(seed_of_all + static_cast<uint64_t>(thread));
    for (int round = 0; round < smaller_under_sanitizers(40, 15); ++round) {
      WriteTransaction t = db->begin();
      Model after = models[thread];
      const uint64_t rows = random() % 2 == 0 ? 10 : 20'000;
      for (uint64_t i = 0; i < rows; ++i) {
        std::string key = std::to_string(thread) + "/" + std::to_string(random() % 30'000);
        std::string value = std::to_string(random());
        if (!t.put(table, key, value).ok()) return;
        after[key] = value;
      }
      CommitOptions commit;
      uint64_t calls = random() % 3;
      if (random() % 3 != 0) commit.progress = [&](const CommitProgress&) { return calls-- != 0; };
      Status s = t.commit(commit);
      cancelled += s.code() == StatusCode::cancelled;
      if (s.ok()) models[thread] = std::move(after);
      if (!s.ok() && s.code() != StatusCode::cancelled) return;
    }
  };
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) all.emplace_back(run, thread);
  for (std::thread& thread : all) thread.join();
  Model expected;
  for (const Model& model : models) expected.insert(model.begin(), model.end());
  CHECK(cancelled > 0u);
  CHECK(read_table(*db, table) == expected);
  REQUIRE_OK(db->verify());
  db.reset();
  db = std::move(*Database::open("/db", options));
  CHECK(read_table(*db, *db->open_table("t")) == expected);
}

}  // namespace
}  // namespace stride::test

// Calls that are ended by their caller: at every call that they make of files and of the backend.
#include "engine/watched_call.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/group_by.h"
#include "engine/scatter_plan.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_tables.h"
#include "tests/support/stopping_point.h"

namespace stride::test {
namespace {

// Tables of several runs each, in files and backends whose calls can be held.
class WatchedCallTest {
 protected:
  WatchedCallTest() {
    reopen();
    for (int run = 0; run < 3; ++run) {
      put(*db_->open_or_create_table("bytes"), run);
      put(*db_->open_or_create_table("more"), run);
    }
    before_ = *read_all(*db_);
  }
  void reopen() {
    db_.reset();
    point_.hold_at(0);
    held_ = std::make_unique<StoppableFiles>(files_, point_);
    Options options;
    options.memtable_bytes = 0;  // each commit makes a segment
    options.background_work = false;
    options.file_system = held_.get();
    options.shared_backend = std::make_shared<StoppableBackend>(2, point_);
    db_ = std::move(*Database::open("/db", options));
  }
  void put(const Table& table, int run) {
    WriteTransaction t = db_->begin();
    for (int i = 0; i < 200; ++i) {
      const std::string key = "k" + std::to_string(random_() % 500);
      if (run > 0 && random_() % 4 == 0)
        REQUIRE_OK(t.erase(table, key));
      else
        REQUIRE_OK(t.put(table, key, std::string(random_() % 30, 'v')));
    }
    REQUIRE_OK(t.commit());
  }
  std::vector<std::string> names() {
    std::vector<std::string> names = *files_.list("/db");
    std::sort(names.begin(), names.end());
    return names;
  }
  uint64_t runs(const std::string& name) {
    for (const TableStatistics& s : db_->tables())
      if (s.name == name) return s.runs;
    return 0;
  }
  // Makes the call, which is held at its n-th call and ended then.
  Status end_at(uint64_t n, const std::function<Status()>& call) {
    point_.hold_at(n);
    Status s = call_watched(call, [&] { return !point_.is_reached(); });
    reached_ = point_.is_reached();
    point_.hold_at(0);
    return s;
  }
  // The same, begun only when its end has been asked for.
  Status end_before(const std::function<Status()>& call) {
    return call_watched(
        [&] {
          while (!WorkWatch::offered()->is_stopped())
            std::this_thread::sleep_for(std::chrono::microseconds(100));
          return call();
        },
        [] { return false; });
  }

  std::mt19937_64 random_{seed()};
  MemoryFileSystem files_;
  StoppingPoint point_;
  std::unique_ptr<StoppableFiles> held_;
  std::unique_ptr<Database> db_;
  Tables before_;
  bool reached_ = false;
};

TEST_CASE_METHOD(WatchedCallTest, "WatchedCallTest.ACompactionLeavesNothingHalf",
                 "[WatchedCallTest]") {
  uint64_t cancelled = 0;
  reached_ = true;
  for (uint64_t n = 1; reached_; ++n) {
    REQUIRE(n < 500u);
    const auto files = names();
    const uint64_t runs_before = runs("bytes") + runs("more");
    Status s = end_at(n, [&] { return db_->compact(); });
    REQUIRE_MESSAGE((s.ok() || s.code() == StatusCode::cancelled), s.to_string());
    REQUIRE(*read_all(*db_) == before_);
    if (!s.ok()) {
      ++cancelled;
      // One of the two may have been merged before it.
      if (runs("bytes") + runs("more") == runs_before) REQUIRE(names() == files);
    }
    if (n % 5 == 0) {
      reopen();
      REQUIRE(*read_all(*db_) == before_);
      REQUIRE_OK(db_->verify());
    }
  }
  CHECK(cancelled > 10u);
  CHECK(runs("bytes") == 1u);
  CHECK(runs("more") == 1u);
}

TEST_CASE_METHOD(WatchedCallTest, "WatchedCallTest.VerifyEndsAtEachOfItsCalls",
                 "[WatchedCallTest]") {
  uint64_t cancelled = 0;
  reached_ = true;
  for (uint64_t n = 1; reached_; ++n) {
    REQUIRE(n < 500u);
    Status s = end_at(n, [&] { return db_->verify(); });
    REQUIRE_MESSAGE((s.ok() || s.code() == StatusCode::cancelled), s.to_string());
    cancelled += !s.ok();
  }
  CHECK(cancelled > 10u);
}

// What a call has begun to make for later ones is made by them.
TEST_CASE_METHOD(WatchedCallTest, "WatchedCallTest.ReadsEndAndLaterOnesAreWhole",
                 "[WatchedCallTest]") {
  const Table table = *db_->open_table("bytes");
  const Model& model = before_["bytes"];
  auto prefixes = *db_->create_table("prefixes", {.address_bits = byte_strings});
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(prefixes, "a", "1"));
  REQUIRE_OK(t.commit());
  Rows keys, address;
  for (const auto& [key, value] : model) keys.add(key);
  address.add("ab");
  GetResult got;
  FindResult found;
  LowerBoundResult bounds;
  MatchResult matches;
  uint64_t rows = 0, groups = 0, sources = 0;
  const std::function<Status()> calls[] = {
      [&] { return db_->snapshot().get(table, keys.column(), &got); },
      [&] { return db_->snapshot().find(table, keys.column(), &found); },
      [&] { return db_->snapshot().lower_bound(table, keys.column(), &bounds); },
      [&] { return db_->snapshot().match(prefixes, address.column(), &matches); },
      [&] {
        Result<uint64_t> n = db_->snapshot().count(table);
        rows = n.ok() ? *n : 0;
        return n.status();
      },
      [&] {
        // Counts look at no value, so that any width will do.
        auto grouped = group_by(db_->snapshot(), prefixes, {}, {.type = NumberType::i64});
        if (grouped.ok()) groups = grouped->size();
        return grouped.status();
      },
      [&] {
        auto plan = ScatterPlan::make(db_->snapshot(), table, keys.column(),
                                      {.values = ScatterPlanTargets::keys});
        if (plan.ok()) sources = plan->sources();
        return plan.status();
      }};
  for (const auto& call : calls) {
    reached_ = true;
    for (uint64_t n = 1; reached_; ++n) {
      Status s = end_at(n, call);
      REQUIRE_MESSAGE(
          (s.ok() || s.code() == StatusCode::cancelled || s.code() == StatusCode::invalid_argument),
          s.to_string());
    }
  }
  CHECK(got.found.count() == model.size());
  uint64_t row = 0;
  for (const auto& [key, value] : model) CHECK(text(got.values[row++]) == value);
  CHECK(found.found.count() == model.size());
  CHECK(bounds.found.count() == model.size());
  CHECK(matches.found[0]);
  CHECK(rows == model.size());
  CHECK(sources == model.size());
}

TEST_CASE_METHOD(WatchedCallTest, "WatchedCallTest.CallsThatCannotBeEndedAreCarriedOut",
                 "[WatchedCallTest]") {
  const Table table = *db_->open_table("bytes");
  CHECK(end_before([&] { return db_->compact(); }).code() == StatusCode::cancelled);
  CHECK(end_before([&] { return db_->calibrate(); }).code() == StatusCode::cancelled);
  CHECK(end_before([&] { return db_->verify(); }).code() == StatusCode::cancelled);
  CHECK(runs("bytes") == 3u);
  REQUIRE_OK(end_before([&] {
    WriteTransaction t = db_->begin();
    STRIDE_TRY(t.put(table, "new", "value"));
    STRIDE_TRY(t.commit());
    return db_->create_table("other").status();
  }));
  before_["bytes"]["new"] = "value";
  before_["other"];
  CHECK(*read_all(*db_) == before_);
  REQUIRE_OK(call_watched([&] { return db_->compact(); }, [] { return true; }));
  CHECK(runs("bytes") == 1u);
  CHECK(*read_all(*db_) == before_);
}

// Rows that are in memory become runs, and later commits are not told of a flush that was ended.
TEST_CASE("WatchedCompactionTest.OfRowsInMemory", "[WatchedCompactionTest]") {
  MemoryFileSystem files;
  Options options;
  options.file_system = &files;
  options.threads = 2;
  auto db = std::move(*Database::open("/db", options));
  Table table = *db->create_table("t");
  for (int i = 0; i < 20; ++i) {
    WriteTransaction t = db->begin();
    REQUIRE_OK(t.put(table, "key" + std::to_string(i), "value"));
    REQUIRE_OK(t.commit());
    std::atomic<int> asked = 0;
    Status s = call_watched([&] { return db->compact(); }, [&] { return ++asked < i % 4; });
    CHECK_MESSAGE((s.ok() || s.code() == StatusCode::cancelled), s.to_string());
    CHECK(*db->snapshot().count(table) == static_cast<uint64_t>(i) + 1);
  }
  REQUIRE_OK(db->compact());
  REQUIRE_OK(db->verify());
  CHECK(*db->snapshot().count(table) == 20u);
}

TEST_CASE("WatchedCallTest.WhatIsThrownBecomesAStatus", "[WatchedCallTest]") {
  const auto ok = [] { return Status(); };
  REQUIRE_OK(call_watched(ok, [] { return true; }));
  REQUIRE_OK(call_watched(ok, [] { return false; }));
  Status s = call_watched([]() -> Status { throw std::runtime_error("no such thing"); },
                          [] { return true; });
  CHECK(s.code() == StatusCode::resource_exhausted);
  CHECK(s.message().find("no such thing") != std::string::npos);
  s = call_watched([]() -> Status { throw std::bad_alloc(); }, [] { return true; });
  CHECK(s.code() == StatusCode::resource_exhausted);
  const auto until_stopped = [] {
    while (WorkWatch::check().ok() && !WorkWatch::offered()->is_stopped())
      std::this_thread::yield();
    return WorkWatch::cancelled();
  };
  s = call_watched(until_stopped, []() -> bool { throw std::runtime_error("no more"); });
  CHECK(s.code() == StatusCode::cancelled);
  CHECK(s.message().find("threw: no more") != std::string::npos);
  CHECK(WorkWatch::offered() == nullptr);
}

}  // namespace
}  // namespace stride::test

// What a listener is told of a database, and what it may do.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/database.h"
#include "engine/event_listener.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"

namespace stride::test {
namespace {

class Listener : public EventListener {
 public:
  void on_event(const Event& event) override {
    std::unique_lock lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void set_open(bool open) {
    std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void wait_for(EventKind kind) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count(kind) > 0; });
  }
  std::vector<Event> of(EventKind kind) {
    std::lock_guard lock(mutex_);
    std::vector<Event> found;
    for (const Event& event : events_)
      if (event.kind == kind) found.push_back(event);
    return found;
  }
  std::vector<Event> all() {
    std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  size_t count(EventKind kind) const {
    size_t n = 0;
    for (const Event& event : events_) n += event.kind == kind;
    return n;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  std::vector<Event> events_;
};

class ListenerTest {
 protected:
  std::unique_ptr<Database> open(std::shared_ptr<EventListener> listener, Options options = {}) {
    options.threads = 2;
    options.memtable_bytes = 1 << 20;
    options.file_system = &files_;
    options.event_listener = std::move(listener);
    if (!options.shared_backend) options.backend = BackendKind::host;
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    return std::move(*db);
  }
  static void put(Database& db, int first, int rows) {
    auto table = db.open_or_create_table("t");
    REQUIRE_OK(table);
    WriteTransaction t = db.begin();
    for (int i = first; i < first + rows; ++i)
      REQUIRE_OK(t.put(*table, std::to_string(i), std::string(100, 'v')));
    REQUIRE_OK(t.commit(Durability::none));
  }
  MemoryFileSystem files_;
};

TEST_CASE_METHOD(ListenerTest, "ListenerTest.IsToldOfFlushesAndCompactions", "[ListenerTest]") {
  auto listener = std::make_shared<Listener>();
  auto db = open(listener);
  put(*db, 0, 100);
  REQUIRE_OK(db->compact());
  put(*db, 50, 100);
  REQUIRE_OK(db->compact());
  const WorkMetrics work = db->metrics().work;
  REQUIRE_OK(db->close());
  const auto flushes = listener->of(EventKind::flush_ended);
  REQUIRE(flushes.size() == 2u);
  CHECK(work.flushes == 2u);
  CHECK(flushes[0].rows == 100u);
  CHECK(flushes[0].bytes_out + flushes[1].bytes_out == work.flush_bytes);
  CHECK(flushes[0].bytes_in + flushes[1].bytes_in == work.flush_memory_bytes);
  CHECK_OK(flushes[0].status);
  const auto compactions = listener->of(EventKind::compaction_ended);
  REQUIRE(compactions.size() == 1u);
  CHECK(compactions[0].table == "t");
  CHECK(compactions[0].inputs == 2u);
  CHECK(compactions[0].rows == 200u);
  CHECK(compactions[0].bytes_in == work.compaction_read_bytes);
  CHECK(compactions[0].bytes_out == work.compaction_bytes);
  const std::vector<Event> all = listener->all();
  CHECK(all.front().kind == EventKind::opened);
  CHECK(all.back().kind == EventKind::closed);
  // Each has begun before it has ended, and none was lost.
  int going_on = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].number == i + 1);
    going_on += all[i].kind == EventKind::flush_begun || all[i].kind == EventKind::compaction_begun;
    going_on -= all[i].kind == EventKind::flush_ended || all[i].kind == EventKind::compaction_ended;
    CHECK(going_on >= 0);
  }
  CHECK(going_on == 0);
}

TEST_CASE_METHOD(ListenerTest, "ListenerTest.IsToldWhatFailsAndWhatPoisons", "[ListenerTest]") {
  auto listener = std::make_shared<Listener>();
  auto db = open(listener);
  put(*db, 0, 10);
  files_.fail_sync(1, StatusCode::io_error, /*forever=*/true);
  CHECK_FALSE(db->compact().ok());
  CHECK_FALSE(db->sync().ok());
  const WorkMetrics work = db->metrics().work;
  Status ignored = db->close();
  CHECK(work.failed_flushes == 1u);
  CHECK(work.flushes == 0u);
  REQUIRE(listener->of(EventKind::flush_ended).size() == 1u);
  CHECK_FALSE(listener->of(EventKind::flush_ended)[0].status.ok());
  const auto poisoned = listener->of(EventKind::poisoned);
  REQUIRE(poisoned.size() == 1u);
  CHECK(poisoned[0].status.code() == StatusCode::poisoned);
}

// Commits, flushes and merges go on; only closing waits for the call that goes on.
TEST_CASE_METHOD(ListenerTest, "ListenerTest.ABlockedOneHoldsNothingUp", "[ListenerTest]") {
  auto listener = std::make_shared<Listener>();
  listener->set_open(false);
  auto db = open(listener);
  listener->wait_for(EventKind::opened);
  for (int i = 0; i < 20; ++i) {
    put(*db, 10 * i, 30);
    REQUIRE_OK(db->compact());
  }
  CHECK(listener->all().size() == 1u);
  CHECK(db->metrics().state.rows == 220u);
  std::thread closing([&] { CHECK_OK(db->close()); });
  listener->set_open(true);
  closing.join();
  CHECK(listener->all().back().kind == EventKind::closed);
}

// It reads and writes the database of which it is told, and closes it in the end.
TEST_CASE_METHOD(ListenerTest, "ListenerTest.MayCallTheDatabase", "[ListenerTest]") {
  struct Caller final : EventListener {
    void on_event(const Event& event) override {
      if (event.kind != EventKind::flush_ended || done) return;
      Database& db = *database.load();
      metrics = db.metrics();
      auto table = db.open_table("t");
      found = table.ok() && db.snapshot().get(*table, "1").ok();
      WriteTransaction t = db.begin();
      written = t.put(*table, "from the listener", "value").ok() && t.commit().ok();
      compacted = db.compact().ok();
      closed = db.close().ok();
      done = true;
      done.notify_all();
    }
    std::atomic<Database*> database{nullptr};
    Metrics metrics;
    bool found = false, written = false, compacted = false, closed = false;
    std::atomic<bool> done{false};
  };
  auto listener = std::make_shared<Caller>();
  auto db = open(listener);
  listener->database = db.get();
  put(*db, 0, 100);
  Status s = db->compact();  // may be ended by the listener's close()
  listener->done.wait(false);
  CHECK(listener->found);
  CHECK(listener->written);
  CHECK(listener->compacted);
  CHECK(listener->closed);
  CHECK(listener->metrics.work.flushes == 1u);
  CHECK(db->sync().code() == StatusCode::closed);
  db.reset();
  db = open(nullptr);
  CHECK(db->snapshot().get(*db->open_table("t"), "from the listener")->has_value());
}

// The events of commits of many threads, with a memtable so small that it is flushed all the time.
TEST_CASE_METHOD(ListenerTest, "ListenerTest.IsRefusedWhatWaitsForIt", "[ListenerTest]") {
  struct Opener final : EventListener {
    void on_event(const Event& event) override {
      if (event.kind == EventKind::closed)
        again = Database::open("/db", {.file_system = files}).status();
    }
    FileSystem* files = nullptr;
    Status again;
  };
  auto opener = std::make_shared<Opener>();
  opener->files = &files_;
  auto db = open(opener);
  put(*db, 0, 10);
  REQUIRE_OK(db->close());
  CHECK(to_string(opener->again.code()) == to_string(StatusCode::locked));
  db = open(nullptr);
  CHECK(*db->snapshot().count(*db->open_table("t")) == 10u);
}

TEST_CASE_METHOD(ListenerTest, "ListenerTest.OrderHoldsUnderConcurrentCommits", "[ListenerTest]") {
  auto listener = std::make_shared<Listener>();
  auto db = open(listener);
  auto table = db->create_table("t");
  REQUIRE_OK(table);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int n = 0; n < 3; ++n)
    threads.emplace_back([&, n] {
      for (int i = 0; i < 60; ++i) {
        WriteTransaction t = db->begin();
        for (int row = 0; row < 100; ++row)
          failed += !t.put(*table, std::to_string(n) + "." + std::to_string(i * 100 + row),
                           std::string(100, 'v'))
                         .ok();
        failed += !t.commit(Durability::none).ok();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  REQUIRE_OK(db->compact());
  const Metrics metrics = db->metrics();
  REQUIRE_OK(db->close());
  uint64_t number = 0, run = 0;
  for (const Event& event : listener->all()) {
    CHECK_MESSAGE(event.number == number + 1 + event.dropped, event.number);
    number = event.number;
    if (event.kind != EventKind::flush_begun) continue;
    CHECK_MESSAGE(event.run >= run, event.run);  // oldest first
    run = event.run;
  }
  CHECK(metrics.work.flushes >= 2u);
  CHECK(metrics.state.rows == 18000u);
}

TEST_CASE_METHOD(ListenerTest, "ListenerTest.IsToldOfTheDevice", "[ListenerTest]") {
  auto listener = std::make_shared<Listener>();
  auto device = std::make_shared<FakeDevice>(/*memory=*/64 << 20);
  auto db = open(listener, {.shared_backend = device});
  put(*db, 0, 4000);  // too few to measure where batches are faster: they go to the device
  REQUIRE_OK(db->compact());
  std::string keys(8 * 5000, '1');
  GetResult result;
  auto table = db->open_table("t");
  REQUIRE_OK(db->snapshot().get(*table, Column::fixed(keys.data(), 8, 5000), &result));
  CHECK(db->metrics().work.device_copies == 1u);
  device->fail_call(1, StatusCode::io_error);
  REQUIRE_OK(db->snapshot().get(*table, Column::fixed(keys.data(), 8, 5000), &result));
  REQUIRE_OK(db->close());
  REQUIRE(listener->of(EventKind::device_copied).size() == 1u);
  CHECK(listener->of(EventKind::device_copied)[0].rows == 4000u);
  CHECK(listener->of(EventKind::device_lost).size() == 1u);
  CHECK(listener->of(EventKind::device_evicted).size() == 1u);
}

}  // namespace
}  // namespace stride::test

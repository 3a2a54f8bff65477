// Events in order, from one thread, whatever those do who are told.
#include "engine/monitoring/event_queue.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "engine/monitoring/monitor.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

// Keeps what it is told, and stops at a gate while that is shut.
class Recorder final : public EventListener {
 public:
  void on_event(const Event& event) override {
    std::unique_lock lock(mutex_);
    ++entered_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    events_.push_back(event);
    threads_.insert(std::this_thread::get_id());
  }
  void shut() {
    std::lock_guard lock(mutex_);
    open_ = false;
  }
  void open_gate() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for_calls(size_t calls) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_ >= calls; });
  }
  std::vector<Event> events() {
    std::lock_guard lock(mutex_);
    return events_;
  }
  size_t threads() {
    std::lock_guard lock(mutex_);
    return threads_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  size_t entered_ = 0;
  std::vector<Event> events_;
  std::set<std::thread::id> threads_;
};

TEST_CASE("EventQueueTest.OrderHoldsUnderConcurrency", "[EventQueueTest]") {
  auto recorder = std::make_shared<Recorder>();
  EventQueue queue({.listener = recorder});
  constexpr uint64_t pushers = 4, each = 500;
  std::vector<std::thread> threads;
  for (uint64_t p = 0; p < pushers; ++p)
    threads.emplace_back([&, p] {
      for (uint64_t i = 0; i < each; ++i)
        queue.push({.kind = EventKind::flush_begun, .run = p, .rows = i});
    });
  for (std::thread& thread : threads) thread.join();
  queue.stop();
  CHECK(queue.pushed() == pushers * each);
  const std::vector<Event> events = recorder->events();
  CHECK(events.size() + queue.dropped() == pushers * each);
  CHECK(recorder->threads() == 1u);
  std::vector<int64_t> last(pushers, -1);
  uint64_t number = 0, dropped = 0;
  for (const Event& event : events) {
    CHECK_MESSAGE(event.number == number + 1 + event.dropped, event.number);
    number = event.number;
    dropped += event.dropped;
    CHECK_MESSAGE(static_cast<int64_t>(event.rows) > last[event.run], event.rows);
    last[event.run] = static_cast<int64_t>(event.rows);
    CHECK_MESSAGE(event.time.time_since_epoch().count() > 0, event.number);
  }
  CHECK(dropped <= queue.dropped());  // the last ones may have had no event behind them
}

TEST_CASE("EventQueueTest.ABlockedListenerHoldsNothingUp", "[EventQueueTest]") {
  auto recorder = std::make_shared<Recorder>();
  recorder->shut();
  EventQueue queue({.listener = recorder});
  queue.push({.run = 1});
  recorder->wait_for_calls(1);  // it has left the queue
  constexpr uint64_t more = EventQueue::max_waiting + 40;
  for (uint64_t i = 0; i < more; ++i) queue.push({.run = 2 + i});
  CHECK(queue.dropped() == 40u);
  recorder->open_gate();
  recorder->wait_for_calls(1 + EventQueue::max_waiting);
  queue.push({.run = 0});
  queue.stop();
  const std::vector<Event> events = recorder->events();
  REQUIRE(events.size() == EventQueue::max_waiting + 2);
  for (size_t i = 0; i <= EventQueue::max_waiting; ++i)
    CHECK_MESSAGE(events[i].run == i + 1, events[i].run);
  CHECK(events.back().run == 0u);
  CHECK(events.back().dropped == 40u);
  CHECK(events.back().number == more + 2);
}

TEST_CASE("EventQueueTest.WhatIsThrownIsIgnored", "[EventQueueTest]") {
  struct Throws final : EventListener {
    void on_event(const Event& event) override {
      ++calls;
      if (event.run % 2) throw std::runtime_error("no");
      throw 7;
    }
    std::atomic<int> calls{0};
  };
  struct ThrowingLogger final : Logger {
    void log(LogLevel, std::string_view) override {
      ++calls;
      throw std::bad_alloc();
    }
    std::atomic<int> calls{0};
  };
  auto listener = std::make_shared<Throws>();
  auto logger = std::make_shared<ThrowingLogger>();
  EventQueue queue({.listener = listener, .logger = logger});
  for (uint64_t i = 0; i < 10; ++i) queue.push({.run = i});
  queue.stop();
  CHECK(listener->calls == 10);
  CHECK(logger->calls == 10);
}

TEST_CASE("EventQueueTest.NothingIsToldAfterTheEnd", "[EventQueueTest]") {
  auto recorder = std::make_shared<Recorder>();
  EventQueue queue({.listener = recorder});
  queue.push({.run = 1});
  queue.stop();
  queue.push({.run = 2});
  queue.stop();
  CHECK(recorder->events().size() == 1u);
  CHECK(queue.pushed() == 1u);
  EventQueue nobody;
  CHECK_FALSE(nobody.is_heard());
  nobody.push({.run = 3});
  CHECK(nobody.pushed() == 0u);
}

// The thread that tells ends by itself then.
TEST_CASE("EventQueueTest.AListenerMayEndTheQueue", "[EventQueueTest]") {
  struct Ends final : EventListener {
    void on_event(const Event&) override {
      queue.reset();
      ended = true;
      ended.notify_all();
    }
    std::unique_ptr<EventQueue> queue;
    std::atomic<bool> ended{false};
  };
  auto listener = std::make_shared<Ends>();
  EventQueue* queue = new EventQueue({.listener = listener});
  listener->queue.reset(queue);
  queue->push({.run = 1});
  listener->ended.wait(false);
  CHECK(listener->queue == nullptr);
}

TEST_CASE("EventQueueTest.LevelsAndLinesFollowTheEvent", "[EventQueueTest]") {
  struct Lines final : Logger {
    void log(LogLevel level, std::string_view line) override {
      lines.emplace_back(level, std::string(line));
    }
    std::vector<std::pair<LogLevel, std::string>> lines;
  };
  auto logger = std::make_shared<Lines>();
  EventQueue queue({.logger = logger});
  queue.push({.kind = EventKind::opened, .rows = 3, .bytes_in = 1234567});
  queue.push({.kind = EventKind::compaction_ended,
              .table = "a\nb",
              .run = 7,
              .inputs = 2,
              .bytes_in = 2000,
              .bytes_out = 999,
              .seconds = 0.25});
  queue.push({.kind = EventKind::flush_ended, .run = 8, .status = Status::invalid("why")});
  queue.push({.kind = EventKind::poisoned, .status = Status(StatusCode::poisoned, "a sync")});
  queue.push({.kind = EventKind::closed});
  queue.stop();
  REQUIRE(logger->lines.size() == 5u);
  using Line = std::pair<LogLevel, std::string>;
  CHECK(logger->lines[0] == Line(LogLevel::info, "opened: 1.2 MB of segments, and 3 rows of logs"));
  CHECK(logger->lines[1] == Line(LogLevel::info,
                                 "compaction of table 'a\\x0ab' to run 7, of 2 segments, has ended "
                                 "after 0.250 s: 2.0 kB to 999 bytes"));
  CHECK(logger->lines[2].first == LogLevel::warning);
  CHECK(logger->lines[3] == Line(LogLevel::error, "poisoned: a sync"));
  CHECK(logger->lines[4] == Line(LogLevel::info, "closed"));
}

TEST_CASE("EventQueueTest.WaitsAreToldOnceASecond", "[EventQueueTest]") {
  auto recorder = std::make_shared<Recorder>();
  Monitor monitor({.listener = recorder});
  const auto now = Monitor::Clock::now();
  monitor.waited_since(now + std::chrono::hours(1));  // not a millisecond
  monitor.waited_since(now - std::chrono::milliseconds(50));
  monitor.waited_since(now - std::chrono::milliseconds(20));
  monitor.waited_since(now - std::chrono::milliseconds(30));
  monitor.end(Status());
  const WorkMetrics work = monitor.work_metrics();
  CHECK(work.stalls == 3u);
  CHECK(work.stall_s >= 0.1);
  uint64_t waits = 0;
  double seconds = 0;
  std::vector<Event> events = recorder->events();
  CHECK(events.back().kind == EventKind::closed);
  events.pop_back();
  for (const Event& event : events) {
    CHECK(event.kind == EventKind::stalled);
    waits += event.inputs;
    seconds += event.seconds;
  }
  CHECK(waits == 3u);
  CHECK(seconds == Approx(work.stall_s));
}

}  // namespace
}  // namespace stride::test

#include "engine/write/watched_work.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "storage/no_throw.h"

namespace stride {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_interval{1}, last_interval{50};

// What the caller's thread and the one that works share.
struct Outcome {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool done = false;
  Status status;
};

// The status that goes_on() stands for: ok as long as it is true.
Status ask(const std::function<bool(const WorkWatch&)>& goes_on, const WorkWatch& watch) {
  try {
    return goes_on(watch) ? Status() : WorkWatch::cancelled();
  } catch (const std::exception& e) {
    return no_throw([&] {
      return Status(StatusCode::cancelled, std::string("the progress callback threw: ") + e.what());
    });
  } catch (...) {
    return no_throw(
        [] { return Status(StatusCode::cancelled, "the progress callback threw something"); });
  }
}

}  // namespace

Status run_watched(const std::function<Status(WorkWatch*)>& work,
                   const std::function<bool(const WorkWatch&)>& goes_on) {
  auto watch = std::make_shared<WorkWatch>();
  Outcome outcome;
  std::thread thread([&] {
    Status s = no_throw([&] { return work(watch.get()); });
    std::lock_guard lock(outcome.mutex);
    outcome.status = std::move(s);
    outcome.done = true;
    outcome.changed.notify_one();
  });
  Status asked;
  std::unique_lock lock(outcome.mutex);
  auto is_done = [&] { return outcome.done; };
  for (milliseconds interval = first_interval; asked.ok() && !outcome.done;) {
    lock.unlock();
    asked = ask(goes_on, *watch);
    if (!asked.ok()) watch->stop();
    lock.lock();
    if (asked.ok()) outcome.changed.wait_for(lock, interval, is_done);
    interval = std::min(2 * interval, last_interval);
  }
  outcome.changed.wait(lock, is_done);
  lock.unlock();
  thread.join();
  return outcome.status.code() == StatusCode::cancelled ? asked : std::move(outcome.status);
}

}  // namespace stride

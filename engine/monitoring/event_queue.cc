#include "engine/monitoring/event_queue.h"

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace stride {
namespace {

constexpr std::chrono::seconds max_wait{1};  // for a slow listener, when the queue is stopped

LogLevel level_of(const Event& event) {
  switch (event.kind) {
    case EventKind::poisoned:
    case EventKind::device_lost:
      return LogLevel::error;
    case EventKind::stalled:
      return LogLevel::warning;
    default:
      break;
  }
  const StatusCode code = event.status.code();
  const bool is_usual = event.status.ok() || code == StatusCode::closed ||
                        code == StatusCode::cancelled;  // the database's end, or gone inputs
  return is_usual ? LogLevel::info : LogLevel::warning;
}

thread_local bool is_telling = false;

// What a listener or a logger throws is its own business.
template <class Call>
void call_safely(const Call& call) noexcept {
  try {
    call();
  } catch (...) {
  }
}

}  // namespace

struct EventQueue::State {
  EventTargets targets;

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::array<Event, max_waiting> ring;
  size_t first = 0, waiting = 0;
  uint64_t pushed = 0, dropped = 0, dropped_before_next = 0;
  bool stopping = false;
  std::chrono::steady_clock::time_point deadline{};
  std::thread thread;

  void run() noexcept;
  void tell(const Event& event) noexcept;
  void write(const Event& event);
};

EventQueue::EventQueue(EventTargets targets) {
  if (!targets.listener && !targets.logger && !targets.file) return;
  state_ = std::make_shared<State>();
  state_->targets = std::move(targets);
}

void EventQueue::State::write(const Event& event) {
  const std::string line = to_string(event);
  if (targets.logger) return targets.logger->log(level_of(event), line);
  if (event.kind == EventKind::opened) return targets.file->hold(line);
  if (event.kind == EventKind::closed && event.status.ok() && event.number == 2) return;
  if (event.dropped > 0)
    targets.file->log(LogLevel::warning, std::to_string(event.dropped) + " events were dropped");
  targets.file->log(level_of(event), line);
}

void EventQueue::State::tell(const Event& event) noexcept {
  if (targets.logger || targets.file) call_safely([&] { write(event); });
  if (targets.listener) call_safely([&] { targets.listener->on_event(event); });
}

bool EventQueue::is_telling_here() noexcept { return is_telling; }

void EventQueue::State::run() noexcept {
  is_telling = true;
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return stopping || waiting > 0; });
    if (waiting == 0 || (stopping && std::chrono::steady_clock::now() > deadline)) return;
    const Event event = std::move(ring[first]);
    ring[first] = {};
    first = (first + 1) % max_waiting;
    --waiting;
    lock.unlock();
    tell(event);
    lock.lock();
  }
}

void EventQueue::push(Event event) noexcept {
  if (!state_) return;
  State& s = *state_;
  std::lock_guard lock(s.mutex);
  if (s.stopping) return;
  event.number = ++s.pushed;
  if (s.waiting == max_waiting) {
    ++s.dropped;
    ++s.dropped_before_next;
    return;
  }
  event.time = std::chrono::system_clock::now();
  event.dropped = std::exchange(s.dropped_before_next, 0);
  s.ring[(s.first + s.waiting++) % max_waiting] = std::move(event);
  // Where the system has no thread the next event asks again.
  if (!s.thread.joinable())
    call_safely([&] { s.thread = std::thread([state = state_] { state->run(); }); });
  s.changed.notify_one();
}

void EventQueue::stop() noexcept {
  if (!state_) return;
  std::thread thread;
  {
    std::lock_guard lock(state_->mutex);
    if (state_->stopping) return;
    state_->stopping = true;
    state_->deadline = std::chrono::steady_clock::now() + max_wait;
    thread.swap(state_->thread);
    state_->changed.notify_one();
  }
  if (thread.get_id() == std::this_thread::get_id())
    thread.detach();
  else if (thread.joinable())
    thread.join();
}

uint64_t EventQueue::pushed() const noexcept {
  if (!state_) return 0;
  std::lock_guard lock(state_->mutex);
  return state_->pushed;
}

uint64_t EventQueue::dropped() const noexcept {
  if (!state_) return 0;
  std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

}  // namespace stride

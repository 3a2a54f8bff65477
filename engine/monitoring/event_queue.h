// Tells a listener and a logger what happens, from a thread of its own, so that nobody who reports
// an event waits, whatever locks are held.
//
//   EventQueue events({.listener = options.event_listener, .file = std::move(file)});
//   events.push({.kind = EventKind::flush_begun, .run = 12});   // any thread, any lock
//   events.stop();                                              // no lock
#pragma once

#include <memory>

#include "engine/event_listener.h"
#include "engine/logger.h"
#include "engine/monitoring/log_file.h"

namespace stride {

// Who is told. All may be null.
struct EventTargets {
  std::shared_ptr<EventListener> listener = nullptr;
  std::shared_ptr<Logger> logger = nullptr;
  // In place of a logger: says nothing of a database that was only opened and closed.
  std::unique_ptr<LogFile> file = nullptr;
};

// Thread-safe.
class EventQueue {
 public:
  static constexpr size_t max_waiting = 256;

  EventQueue() = default;  // tells nobody
  // Throws std::bad_alloc.
  explicit EventQueue(EventTargets targets);
  ~EventQueue() { stop(); }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  bool is_heard() const noexcept { return state_ != nullptr; }
  // Sets time, number and dropped. Starts the thread, the first time. Nothing after stop().
  void push(Event event) noexcept;
  // Ends the thread: waits for the call that goes on, and for those that would follow up to
  // max_wait, unless this is called by it. Once is enough.
  void stop() noexcept;
  // Whether this is called by a listener or logger of any queue, for which stop() may wait.
  static bool is_telling_here() noexcept;
  uint64_t pushed() const noexcept;
  uint64_t dropped() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;  // with the thread, which may outlive this
};

}  // namespace stride

// What a database does by itself, told as it happens: to an application's own listener.
//
//   struct Alarm : EventListener {
//     void on_event(const Event& event) override {
//       if (event.kind == EventKind::poisoned) page_somebody(to_string(event));
//     }
//   };
//   Options options{.event_listener = std::make_shared<Alarm>()};
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "storage/export.h"
#include "storage/status.h"

namespace stride {

enum class EventKind : uint8_t {
  opened,  // rows: that were read from logs; bytes_in: of the segments
  closed,  // status: what closing failed with
  // A sealed memtable becomes a run. run, rows, bytes_in: of memory; at its end bytes_out, seconds
  // and status, too.
  flush_begun,
  flush_ended,
  // Runs of a table are merged. table, run: that they become, inputs: segments, rows and bytes_in:
  // of these; at its end bytes_out, seconds and status, too. cancelled: the inputs had gone.
  compaction_begun,
  compaction_ended,
  // Commits had to wait for flushes or merges, or for space. inputs: how many waits, since the last
  // such event, which comes once a second at most; seconds: all of them together.
  stalled,
  poisoned,  // nothing more is written through the handle; status: why
  // A segment was copied to the device, or has left it. run, rows; bytes_out: of its copy.
  device_copied,
  device_evicted,
  // A device has failed, and others or the host do its work from now on; status: which, and why.
  device_lost,
};

// "flush_ended", ...
STRIDE_API const char* to_string(EventKind kind);

// Members that a kind does not name are as they are here.
struct Event {
  EventKind kind = EventKind::opened;
  std::chrono::system_clock::time_point time{};
  uint64_t number = 0;   // of the events of this opening, from 1; those that were dropped count
  uint64_t dropped = 0;  // right before this one, because the queue was full
  std::string table;
  uint64_t run = 0;
  uint64_t inputs = 0;
  uint64_t rows = 0;
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  double seconds = 0;
  Status status;
};

// A line for people: "flush of run 12 has ended: 40,000 rows, 3.1 MB of memory to 1.2 MB, 0.02 s".
STRIDE_API std::string to_string(const Event& event);

// All calls come from one thread of the database, in the order of Event::number, and no lock is
// held meanwhile: a listener may use the database, and close it. While another thread closes it, to
// open it again here is `locked`. What it throws is ignored. Where it is slower than what happens,
// up to 256 events wait, and more are dropped: nothing else waits for a listener, but for
// Database::close(), which waits for the call that goes on, and up to a second for those that would
// follow; after it has returned there are no more calls, unless the listener itself was what called
// it.
class EventListener {
 public:
  virtual ~EventListener() = default;
  virtual void on_event(const Event& event) = 0;
};

}  // namespace stride

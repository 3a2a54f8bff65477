#include <cstdio>
#include <iterator>

#include "engine/event_listener.h"
#include "storage/quoted.h"

namespace stride {
namespace {

// "3.1 MB"
std::string text_of_bytes(uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  auto number = static_cast<double>(bytes) / 1000;
  const char* unit = "kB";
  for (const char* larger : {"MB", "GB", "TB"}) {
    if (number < 1000) break;
    number /= 1000;
    unit = larger;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", number, unit);
  return text;
}

std::string text_of_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s", seconds);
  return text;
}

std::string ending(const Event& event) {
  if (!event.status.ok())
    return " has failed after " + text_of_seconds(event.seconds) + ": " + event.status.to_string();
  return " has ended after " + text_of_seconds(event.seconds) + ": " +
         text_of_bytes(event.bytes_in) + " to " + text_of_bytes(event.bytes_out);
}

std::string beginning(const Event& event) {
  return " has begun: " + std::to_string(event.rows) + " rows, " + text_of_bytes(event.bytes_in);
}

std::string segment_text(const Event& event) {
  return "segment of run " + std::to_string(event.run) + ", " + std::to_string(event.rows) +
         " rows";
}

}  // namespace

std::string to_string(const Event& event) {
  const std::string flush = "flush of run " + std::to_string(event.run);
  const std::string compaction = "compaction of table " + in_quotes(event.table) + " to run " +
                                 std::to_string(event.run) + ", of " +
                                 std::to_string(event.inputs) + " segments,";
  switch (event.kind) {
    case EventKind::opened:
      return "opened: " + text_of_bytes(event.bytes_in) + " of segments, and " +
             std::to_string(event.rows) + " rows of logs";
    case EventKind::closed:
      return event.status.ok() ? "closed" : "closing has failed: " + event.status.to_string();
    case EventKind::flush_begun:
      return flush + beginning(event);
    case EventKind::flush_ended:
      return flush + ending(event);
    case EventKind::compaction_begun:
      return compaction + beginning(event);
    case EventKind::compaction_ended:
      return compaction + ending(event);
    case EventKind::stalled:
      return "commits have waited " + std::to_string(event.inputs) + " times, " +
             text_of_seconds(event.seconds) + " in all, for flushes and merges";
    case EventKind::poisoned:
      return event.status.to_string();
    case EventKind::device_copied:
      return segment_text(event) + ": copied to the device, " + text_of_bytes(event.bytes_out);
    case EventKind::device_evicted:
      return segment_text(event) + ": has left the device";
    case EventKind::device_lost:
      return "a device is not used any more: " + event.status.to_string();
  }
  return "an unknown event";
}

const char* to_string(EventKind kind) {
  constexpr const char* names[] = {"opened",         "closed",           "flush_begun",
                                   "flush_ended",    "compaction_begun", "compaction_ended",
                                   "stalled",        "poisoned",         "device_copied",
                                   "device_evicted", "device_lost"};
  const auto i = static_cast<size_t>(kind);
  return i < std::size(names) ? names[i] : "unknown";
}

}  // namespace stride

// Where a database writes what it does, a line for each event (engine/event_listener.h).
//
//   struct ToSyslog : Logger {
//     void log(LogLevel level, std::string_view line) override { syslog(priority(level), ...); }
//   };
//   Options options{.logger = std::make_shared<ToSyslog>()};
//
// Without one, a database on a disk keeps the file `LOG` in its directory, unless it is read-only
// or Options::log_file is false.
#pragma once

#include <cstdint>
#include <string_view>

namespace stride {

enum class LogLevel : uint8_t {
  info,
  warning,  // commits waited, work failed and will be tried again, events were dropped
  error,    // a person should look: the handle is poisoned, or a device is lost
};

// Called as an EventListener is: from one thread, in order, and under no lock. What it throws is
// ignored.
class Logger {
 public:
  virtual ~Logger() = default;
  // line: valid during the call; one line, without its end, time or level.
  virtual void log(LogLevel level, std::string_view line) = 0;
};

}  // namespace stride

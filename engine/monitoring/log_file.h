// The file `LOG` of a database's directory: what the database did, a line for each event.
//
//   2026-11-25T10:16:13.123Z info flush of run 12 has begun: ...
//
// Once it has max_bytes it becomes `LOG.old`, in the place of the one before, so that both have
// twice as many at most. It is never synced, nothing is read from it, and who removes it harms
// nothing. Where it cannot be written its lines are lost, and the next one that can be says how
// many.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/logger.h"
#include "storage/file.h"

namespace stride {

// One thread at a time. The file is made, or gone on with, by the first line.
class LogFile final : public Logger {
 public:
  static constexpr uint64_t default_max_bytes = 1 << 20;
  static constexpr size_t max_line_bytes = 4096;  // of longer ones the end is cut

  // fs: has to outlive it.
  LogFile(FileSystem& fs, const std::string& directory, uint64_t max_bytes = default_max_bytes)
      : fs_(fs),
        path_(directory + "/LOG"),
        old_path_(directory + "/LOG.old"),
        max_bytes_(max_bytes) {}

  void log(LogLevel level, std::string_view line) override;
  // A line that is written before the next one, if there is one.
  void hold(std::string_view line);

 private:
  Status append(LogLevel level, std::string_view line);
  Status write(std::string_view text);
  Status open();
  Status rotate();

  FileSystem& fs_;
  const std::string path_, old_path_;
  const uint64_t max_bytes_;
  std::unique_ptr<File> file_;
  uint64_t end_ = 0;  // of the file
  uint64_t lost_ = 0;
  std::string held_;
};

// "2026-11-25T10:16:13.123Z"
std::string time_text(std::chrono::system_clock::time_point time);

}  // namespace stride

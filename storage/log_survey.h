// What a write-ahead log still has, whatever its bytes are: every frame that is whole, also behind
// one that is not.
//
//   Result<LogSurvey> log = survey_log(fs, "db/000012.wal", 12, id);
//   for (const SurveyedFrame& frame : log->frames) use(frame.payload);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/column.h"
#include "storage/file.h"
#include "storage/log_format.h"
#include "storage/status.h"

namespace stride {

struct SurveyedFrame {
  uint64_t offset = 0;  // in the file
  LogFrameHeader header{};
  Bytes payload;
};

struct LogSurvey {
  std::string bytes;  // of the file, which the frames refer to
  // Nothing: the header is damaged, and what it said is not known but for what frames tell.
  std::optional<uint64_t> position;  // of the first frame
  std::vector<SurveyedFrame> frames;
  std::vector<FileRange> damage;  // before and between frames
  // Where the frames end. What follows is no frame: zeros, or what a power loss has left, or damage
  // which nothing tells from that.
  uint64_t end = sizeof(LogHeader);
  bool ends_with_zeros = true;

  // The same as position.
  std::optional<uint64_t> end_position() const {
    if (!position) return std::nullopt;
    return *position + (end - sizeof(LogHeader));
  }
};

// id: LogRecord::id; nothing: that of the header. corruption: it is another log, or nothing can be
// read from it. unsupported_version, not_found.
Result<LogSurvey> survey_log(FileSystem& fs, const std::string& path, uint64_t number,
                             std::optional<uint64_t> id);

}  // namespace stride

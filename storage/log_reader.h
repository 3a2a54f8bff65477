// Reads a write-ahead log as far as its frames are whole.
//
//   Result<LogReader> log = LogReader::open(fs, "db/000012.wal", {12, id});
//   while (std::optional<LogFrame> frame = log->next()) use(frame->payload);
//   if (log->knows_synced_beyond(log->position())) ... damaged, not torn
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "storage/file.h"
#include "storage/log_format.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// Reads the header of the log's file, which begins with these bytes. Fails as LogReader::open().
Status check_log_header(const std::string& path, const LogRecord& record, Bytes bytes,
                        LogHeader* header);

class LogReader {
 public:
  // corruption: it has no whole header, or that of another log. unsupported_version. not_found.
  static Result<LogReader> open(FileSystem& fs, const std::string& path, const LogRecord& record);

  // The next frame, valid as long as the reader; nothing at the end.
  std::optional<LogFrame> next();
  // Where the next frame is, or where reading has ended.
  uint64_t position() const { return header_.position + at_ - sizeof(LogHeader); }
  uint64_t offset() const { return at_; }  // the same, in the file
  const std::string& path() const { return path_; }
  // Whether a frame behind the end says that the bytes at `position` were on stable storage. Then
  // what the end is in is damaged; else it may be what a power loss has left of writes that were
  // not synced.
  bool knows_synced_beyond(uint64_t position) const;

  // Takes the last frame back: it and what follows does not count.
  void end_before(uint64_t offset) { at_ = offset; }
  // Writes the whole frames again and syncs the file: a sync that failed in an earlier process can
  // have left the kernel with a copy that it shows to readers, takes for written and will never
  // write.
  Status make_durable(FileSystem& fs) const;

 private:
  LogReader(std::string path, std::string bytes, const LogHeader& header)
      : path_(std::move(path)), bytes_(std::move(bytes)), header_(header) {}

  std::string path_;
  std::string bytes_;
  LogHeader header_;
  uint64_t at_ = sizeof(LogHeader);
};

}  // namespace stride

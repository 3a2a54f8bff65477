// Reads a write-ahead log that another process may be writing, frame by frame as they come.
//
//   Result<std::unique_ptr<LogFollower>> log = LogFollower::open(fs, "db/000012.wal", {12, id}, 0);
//   Status s = (*log)->read();
//   for (size_t i = 0; i < (*log)->frames(); ++i) use((*log)->frame(i).payload);
//   (*log)->take((*log)->frames());   // the next read() goes on behind them
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/file.h"
#include "storage/log_format.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// One thread at a time. The file stays open, so that it can be read to its end when it was removed.
class LogFollower {
 public:
  // offset: in the file, where the first frame is to be read; 0: of the log's first. Fails as
  // LogReader::open().
  static Result<std::unique_ptr<LogFollower>> open(FileSystem& fs, const std::string& path,
                                                   const LogRecord& record, uint64_t offset);

  // Reads the frames that are whole, from the first on that was not taken. What another process
  // writes meanwhile is copied first and then looked at: a frame is there or not.
  Status read();
  // The frames that the last read() has found.
  size_t frames() const { return frames_.size(); }
  // Valid until the next call of read() or take().
  LogFrame frame(size_t i) const;
  // So many are not read again.
  void take(size_t frames);

  uint64_t begin() const { return header_.position; }  // the position of the first frame of all
  // Where the frames end that were taken, and where frame i ends.
  uint64_t position() const { return position_of(offset_); }
  uint64_t position_behind(size_t i) const { return position_of(offset_ + frames_[i].end); }
  uint64_t offset() const { return offset_; }  // the same as position(), in the file
  uint64_t offset_behind(size_t i) const { return offset_ + frames_[i].end; }
  uint64_t offset_of(size_t i) const { return offset_ + frames_[i].begin; }
  // Whether something follows the frames of the last read(): one that is being written, what a
  // writer has left that was killed, or a damaged one.
  bool has_rest() const { return has_rest_; }
  const std::string& path() const { return file_->path(); }

 private:
  struct Extent {
    uint64_t begin, end;  // in bytes_
  };
  LogFollower(std::unique_ptr<File> file, const LogHeader& header, uint64_t offset)
      : file_(std::move(file)), header_(header), offset_(offset) {}
  uint64_t position_of(uint64_t offset) const {
    return header_.position + offset - sizeof(LogHeader);
  }
  // Appends the frames that the bytes have from `at` on, and moves it behind them. Returns how many
  // bytes are needed to tell whether there is another one; 0: there is none.
  uint64_t find_frames(uint64_t* at);

  std::unique_ptr<File> file_;
  const LogHeader header_;
  uint64_t offset_;               // of the file, where bytes_ begin
  std::vector<std::byte> bytes_;  // that the last read() has read
  std::vector<Extent> frames_;
  bool has_rest_ = false;
};

}  // namespace stride

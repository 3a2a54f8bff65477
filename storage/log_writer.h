// Writes a write-ahead log: frames, one behind the other.
//
//   auto log = LogWriter::create(fs, "db/000012.wal", 12, /*position=*/0);
//   std::vector<std::byte>& payload = (*log)->begin_frame();
//   ... append the payload (storage/log_rows.h) ...
//   Status s = (*log)->end_frame(LogWriter::Reach::disk, next_id);   // durable when it returns
//
// The file is written with zeros ahead of the frames, in growing steps, once it is synced: where
// the disk has the blocks and the file its size already, a sync writes the frames alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/file.h"
#include "storage/log_format.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// What has been written to logs. Thread-safe.
struct LogCounts {
  std::atomic<uint64_t> bytes{0};  // of frames
  std::atomic<uint64_t> syncs{0};
};

// One thread at a time.
class LogWriter {
 public:
  // How far a frame has come when end_frame() returns.
  enum class Reach : uint8_t {
    memory,  // of this process, as far as it is not much
    system,  // it survives the process
    disk,    // it is on stable storage (the directory's entry is the caller's business)
  };

  // Makes the file, with its header, which is written but not synced. position: of the first frame.
  static Result<std::unique_ptr<LogWriter>> create(FileSystem& fs, const std::string& path,
                                                   uint64_t number, uint64_t position);

  // Counts there what is written from now on.
  void count_in(std::shared_ptr<LogCounts> counts) { counts_ = std::move(counts); }
  // What the manifest has of it.
  LogRecord record() const { return {header_.number, header_.id[0]}; }
  const std::string& path() const { return file_->path(); }
  // Counts what has been written so far, in the file.
  uint64_t bytes() const { return buffer_offset_ + buffer_.size(); }
  // The next frame's.
  uint64_t position() const { return header_.position + bytes() - sizeof(LogHeader); }

  // Append the payload, at most max_log_payload_bytes, and call end_frame() or drop_frame().
  std::vector<std::byte>& begin_frame();
  void drop_frame();
  // No zeros ahead of the frames from now on: nothing will be appended once it is synced.
  void fill_no_more() { fills_ahead_ = false; }
  // Where it fails the frame is not there, and those before it are, unless poisoned(). May throw
  // std::bad_alloc, with the same effect; drop_frame() is called for it.
  // next_id: LogFrameHeader::next_id.
  Status end_frame(Reach reach, uint64_t next_id);
  // Brings the header and all frames so far there.
  Status reach(Reach reach);

  bool has_unsynced() const { return synced_ < bytes(); }
  // A sync has failed, or what a failed write has left could not be undone: nobody knows what the
  // file holds. All later calls fail.
  bool poisoned() const { return poisoned_; }

 private:
  LogWriter(std::unique_ptr<File> file, const LogHeader& header);
  Status write_out();
  Status sync();
  Status fill_ahead();
  // Makes sure that nothing between two positions in the file passes for a frame that begins at
  // the first.
  bool hide_frame(uint64_t offset, uint64_t end) noexcept;

  std::unique_ptr<File> file_;
  LogHeader header_;
  std::vector<std::byte> buffer_;  // not written yet; a frame that has begun is its end
  size_t frame_begin_ = 0;         // in the buffer
  uint64_t buffer_offset_;         // in the file
  uint64_t filled_;                // so much of the file is written, with frames or zeros
  uint64_t synced_ = 0;            // so much of the file is on stable storage
  bool fills_ahead_ = true;
  bool poisoned_ = false;
  std::shared_ptr<LogCounts> counts_;  // null: nobody asks
};

}  // namespace stride

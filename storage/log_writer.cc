#include "storage/log_writer.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "storage/no_throw.h"

namespace stride {
namespace {

// What no sync has to wait for is handed to the system once it is so much.
constexpr size_t max_buffered_bytes = 256 << 10;
constexpr uint64_t min_fill_bytes = 64 << 10;
constexpr uint64_t max_fill_bytes = 4 << 20;

Status draw_id(uint64_t (&id)[2]) {
  if (getrandom(id, sizeof id, 0) == static_cast<ssize_t>(sizeof id)) return {};
  return Status(StatusCode::io_error,
                std::string("the system gives no random numbers: ") + std::strerror(errno));
}

}  // namespace

LogWriter::LogWriter(std::unique_ptr<File> file, const LogHeader& header)
    : file_(std::move(file)),
      header_(header),
      buffer_offset_(sizeof header),
      filled_(sizeof header) {}

Result<std::unique_ptr<LogWriter>> LogWriter::create(FileSystem& fs, const std::string& path,
                                                     uint64_t number, uint64_t position) {
  uint64_t id[2];
  STRIDE_TRY(draw_id(id));
  LogHeader header = make_log_header(number, id, position);
  Result<std::unique_ptr<File>> file = fs.open(path, OpenMode::create);
  if (!file.ok()) return file.status();
  Status s = (*file)->write_at(0, {reinterpret_cast<const std::byte*>(&header), sizeof header});
  if (!s.ok()) {
    file->reset();
    Status ignored = fs.remove(path);  // no manifest names it, so opening removes it
    return s;
  }
  return std::unique_ptr<LogWriter>(new LogWriter(std::move(*file), header));
}

std::vector<std::byte>& LogWriter::begin_frame() {
  frame_begin_ = buffer_.size();
  buffer_.resize(frame_begin_ + sizeof(LogFrameHeader));
  return buffer_;
}

void LogWriter::drop_frame() { buffer_.resize(frame_begin_); }

Status LogWriter::end_frame(Reach wanted, uint64_t next_id) {
  const uint64_t frame_bytes = buffer_.size() - frame_begin_;
  const uint64_t offset = buffer_offset_ + frame_begin_;  // in the file
  const uint64_t at = header_.position + offset - sizeof(LogHeader);
  LogFrameHeader head{};
  head.log = header_.id[0];
  // As long as only the header is, nobody has looked at the logs before this one.
  if (synced_ > sizeof(LogHeader)) head.synced = header_.position + synced_ - sizeof(LogHeader);
  head.next_id = next_id;
  head.payload_bytes = static_cast<uint32_t>(frame_bytes - sizeof head);
  head.kind = log_rows;
  std::memcpy(buffer_.data() + frame_begin_, &head, sizeof head);
  head.checksum = frame_checksum(header_, at, {buffer_.data() + frame_begin_, frame_bytes});
  std::memcpy(buffer_.data() + frame_begin_, &head, sizeof head);
  Status s = no_throw([&] {
    buffer_.resize(frame_begin_ + log_frame_bytes(head.payload_bytes));
    return reach(wanted);
  });
  if (!s.ok() && !poisoned_) drop_frame();
  if (!s.ok() && poisoned_) hide_frame(offset, offset + frame_bytes);
  if (s.ok() && counts_) counts_->bytes += log_frame_bytes(head.payload_bytes);
  return s;
}

// Nobody knows what the disk has. Whoever opens the database from the system's copy does not find
// the frame, if this succeeds.
bool LogWriter::hide_frame(uint64_t offset, uint64_t end) noexcept {
  static constexpr std::byte zeros[sizeof(LogFrameHeader)] = {};
  if (offset >= end) return true;
  const Bytes hidden = Bytes(zeros).first(std::min(sizeof zeros, end - offset));
  return no_throw([&] { return file_->write_at(offset, hidden); }).ok();
}

Status LogWriter::reach(Reach wanted) {
  if (poisoned_)
    return Status(StatusCode::poisoned, "an earlier failure left the log in an unknown state")
        .with_file(path())
        .with_remedy("close the database, see to the disk, and open it again");
  if (wanted != Reach::memory || buffer_.size() > max_buffered_bytes) STRIDE_TRY(write_out());
  return wanted == Reach::disk ? sync() : Status();
}

// A write that fails may leave any part of a frame, which the next one is written over. As long as
// there is none, what is left must not pass for a frame.
Status LogWriter::write_out() {
  if (buffer_.empty()) return {};
  Status s = no_throw([&] { return file_->write_at(buffer_offset_, buffer_); });
  if (!s.ok()) {
    const uint64_t frame = buffer_offset_ + frame_begin_;
    // Behind what was filled before there is nothing whole if there was no room for it.
    const bool is_full = s.code() == StatusCode::no_space;
    poisoned_ = !hide_frame(frame, is_full ? filled_ : buffer_offset_ + buffer_.size());
    return s;
  }
  buffer_offset_ += buffer_.size();
  filled_ = std::max(filled_, buffer_offset_);
  buffer_.clear();
  frame_begin_ = 0;
  return {};
}

Status LogWriter::sync() {
  if (synced_ >= buffer_offset_) return {};
  STRIDE_TRY(fill_ahead());
  Status s = no_throw([&] { return file_->sync(); });
  if (s.ok()) {
    if (counts_) ++counts_->syncs;
    synced_ = buffer_offset_;
    return s;
  }
  poisoned_ = true;
  return Status(StatusCode::io_error, "what was committed last may be lost: " + s.message())
      .with_file(path())
      .with_remedy("close the database, see to the disk, and open it again");
}

// A disk that is too full for zeros may have room for frames.
Status LogWriter::fill_ahead() {
  if (!fills_ahead_ || buffer_offset_ + min_fill_bytes / 4 <= filled_) return {};
  const uint64_t bytes = std::clamp(buffer_offset_, min_fill_bytes, max_fill_bytes);
  Status s = no_throw([&] {
    const std::vector<std::byte> zeros(bytes);
    return file_->write_at(buffer_offset_, zeros);
  });
  if (s.ok()) filled_ = buffer_offset_ + bytes;
  return {};
}

}  // namespace stride

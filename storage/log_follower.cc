#include "storage/log_follower.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/log_reader.h"

namespace stride {

Result<std::unique_ptr<LogFollower>> LogFollower::open(FileSystem& fs, const std::string& path,
                                                       const LogRecord& record, uint64_t offset) {
  Result<std::unique_ptr<File>> file = fs.open(path, OpenMode::read);
  if (!file.ok()) return file.status();
  auto size = (*file)->size();
  if (!size.ok()) return size.status();
  std::byte head[sizeof(LogHeader)];
  const std::span<std::byte> there = std::span(head).first(std::min(*size, sizeof head));
  STRIDE_TRY((*file)->read_at(0, there));
  LogHeader header{};
  STRIDE_TRY(check_log_header(path, record, there, &header));
  return std::unique_ptr<LogFollower>(
      new LogFollower(std::move(*file), header, std::max<uint64_t>(offset, sizeof header)));
}

Status LogFollower::read() {
  constexpr uint64_t first_bytes = 4096, max_step = 4 << 20;
  bytes_.clear();
  frames_.clear();
  has_rest_ = false;
  auto size = file_->size();
  if (!size.ok()) return size.status();
  const uint64_t left = *size > offset_ ? *size - offset_ : 0;
  uint64_t at = 0, wanted = first_bytes;
  while (bytes_.size() < left && bytes_.size() < wanted) {
    const uint64_t had = bytes_.size();
    bytes_.resize(std::min({left, std::max(wanted, 4 * had), had + max_step}));
    STRIDE_TRY(file_->read_at(offset_ + had, std::span(bytes_).subspan(had)));
    if (bytes_.size() == left || bytes_.size() >= wanted) wanted = find_frames(&at);
  }
  const Bytes rest =
      Bytes(bytes_).subspan(at).first(std::min(sizeof(LogFrameHeader), bytes_.size() - at));
  has_rest_ = std::any_of(rest.begin(), rest.end(), [](std::byte b) { return b != std::byte{0}; });
  return {};
}

uint64_t LogFollower::find_frames(uint64_t* at) {
  const Bytes bytes = bytes_;
  while (auto found = find_frame(header_, position_of(offset_ + *at), bytes.subspan(*at))) {
    const uint64_t end = *at + log_frame_bytes(found->header.payload_bytes);
    frames_.push_back({*at, end});
    *at = end;
  }
  LogFrameHeader head;
  if (bytes.size() - *at < sizeof head) return *at + sizeof head;
  std::memcpy(&head, bytes.data() + *at, sizeof head);
  if (head.log != header_.id[0]) return 0;
  const uint64_t end = *at + log_frame_bytes(head.payload_bytes);
  return end > bytes.size() ? end : 0;
}

LogFrame LogFollower::frame(size_t i) const {
  const Bytes bytes = Bytes(bytes_).subspan(frames_[i].begin, frames_[i].end - frames_[i].begin);
  LogFrame frame{};
  std::memcpy(&frame.header, bytes.data(), sizeof frame.header);
  frame.payload = bytes.subspan(sizeof frame.header, frame.header.payload_bytes);
  return frame;
}

void LogFollower::take(size_t frames) {
  if (frames == 0) return;
  offset_ += frames_[frames - 1].end;
  bytes_.clear();
  frames_.clear();
}

}  // namespace stride

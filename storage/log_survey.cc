#include "storage/log_survey.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "storage/checksum.h"
#include "storage/partial_file.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

// What is damaged may hold the heads of frames that are not whole, but not so many, of such sizes,
// that checking them all would take long.
constexpr uint64_t max_reads = 16;  // of each byte

class LogScan {
 public:
  LogScan(const std::string& path, uint64_t number, std::optional<uint64_t> id)
      : path_(path), number_(number), id_(id) {}

  Status run(LogSurvey* log) {
    bytes_ = as_bytes(log->bytes);
    budget_ = max_reads * bytes_.size();
    STRIDE_TRY(read_header(log));
    while (at_ + sizeof(LogFrameHeader) <= bytes_.size()) {
      if (at_ % (1 << 20) == 0) STRIDE_TRY(WorkWatch::check());
      if (!take_frame(log)) at_ += 8;
    }
    const Bytes rest = bytes_.subspan(std::min<uint64_t>(log->end, bytes_.size()));
    log->ends_with_zeros =
        std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; });
    return {};
  }

 private:
  Status lost(const char* what) const {
    return Status::corruption(path_, 0, what).with_remedy("restore the database from a backup");
  }

  Status read_header(LogSurvey* log) {
    LogHeader& header = header_;
    std::memcpy(&header, bytes_.data(), std::min(sizeof header, bytes_.size()));
    const bool is_whole = bytes_.size() >= sizeof header && holds();
    if (is_whole || repair()) {
      if (header.magic != log_magic) return lost("the file is no log");
      if (header.format_version > log_format_version)
        return Status(StatusCode::unsupported_version, "log format version " +
                                                           std::to_string(header.format_version) +
                                                           " is newer than this library")
            .with_file(path_)
            .with_remedy("use a newer StrideDB");
      if (header.number != number_ || (id_ && header.id[0] != *id_))
        return lost("the file holds another log");
      log->position = header.position;
    } else if (!find_id()) {
      return lost("the log's header is damaged");
    }
    if (!is_whole) log->damage.push_back({0, sizeof header});
    return {};
  }
  bool holds() const {
    return checksum(std::as_bytes(std::span(&header_, 1)).first(offsetof(LogHeader, checksum))) ==
           header_.checksum;
  }
  // Where one byte is damaged it is found by trying all others.
  bool repair() {
    if (bytes_.size() < sizeof header_) return false;
    for (std::byte& byte : std::as_writable_bytes(std::span(&header_, 1))) {
      const std::byte before = byte;
      for (unsigned change = 1; change < 256; ++change) {
        byte = before ^ std::byte{static_cast<uint8_t>(change)};
        if (holds()) return true;
      }
      byte = before;
    }
    return false;
  }

  // The second half of the id stands in no frame, but all frames agree on it: two of them tell it.
  bool find_id() {
    std::map<uint64_t, int> seen;
    LogFrameHeader head;
    const uint64_t before = budget_;
    for (uint64_t at = sizeof(LogHeader); at + sizeof head <= bytes_.size(); at += 8) {
      std::memcpy(&head, bytes_.data() + at, sizeof head);
      if (head.log == 0 || (id_ && head.log != *id_) || !fits(head, at)) continue;
      header_ = {};
      header_.id[0] = head.log;
      const Bytes frame = bytes_.subspan(at, sizeof head + head.payload_bytes);
      const uint64_t second = frame_checksum(header_, 0, frame) ^ head.checksum;
      // As if the file began at position 0: see frame_checksum().
      const uint64_t first = second - at * position_factor();
      if (++seen[first] < 2) continue;
      header_.id[1] = first;
      header_.position = sizeof(LogHeader);
      budget_ = before;
      return true;
    }
    return false;
  }
  // What a position counts in a frame's checksum.
  uint64_t position_factor() const {
    const LogHeader none{};
    return frame_checksum(none, 1, bytes_.first(sizeof(LogFrameHeader))) ^
           frame_checksum(none, 0, bytes_.first(sizeof(LogFrameHeader)));
  }

  bool fits(const LogFrameHeader& head, uint64_t at) {
    const uint64_t frame_bytes = log_frame_bytes(head.payload_bytes);
    if (head.kind != log_rows || frame_bytes > bytes_.size() - at || frame_bytes > budget_)
      return false;
    budget_ -= frame_bytes;
    return true;
  }

  bool take_frame(LogSurvey* log) {
    LogFrameHeader head;
    std::memcpy(&head, bytes_.data() + at_, sizeof head);
    if (head.log != header_.id[0] || !fits(head, at_)) return false;
    const uint64_t position = header_.position + at_ - sizeof(LogHeader);
    auto frame = find_frame(header_, position, bytes_.subspan(at_));
    if (!frame) return false;
    if (log->end < at_) log->damage.push_back({log->end, at_ - log->end});
    log->frames.push_back({at_, frame->header, frame->payload});
    budget_ += log_frame_bytes(head.payload_bytes);
    at_ += log_frame_bytes(head.payload_bytes);
    log->end = at_;
    return true;
  }

  const std::string& path_;
  const uint64_t number_;
  const std::optional<uint64_t> id_;
  Bytes bytes_;
  LogHeader header_{};
  uint64_t at_ = sizeof(LogHeader), budget_ = 0;
};

}  // namespace

Result<LogSurvey> survey_log(FileSystem& fs, const std::string& path, uint64_t number,
                             std::optional<uint64_t> id) {
  auto bytes = read_what_can_be_read(fs, path);
  if (!bytes.ok()) return bytes.status();
  LogSurvey log;
  log.bytes = std::move(*bytes);
  STRIDE_TRY(LogScan(path, number, id).run(&log));
  return log;
}

}  // namespace stride

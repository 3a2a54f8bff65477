#include "storage/log_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/checksum.h"
#include "storage/current_file.h"

namespace stride {

Status check_log_header(const std::string& path, const LogRecord& record, Bytes bytes,
                        LogHeader* header) {
  constexpr const char* remedy = "restore the database from a backup";
  if (bytes.size() < sizeof *header)
    return Status::corruption(path, bytes.size(), "the log is cut off within its header")
        .with_remedy(remedy);
  std::memcpy(header, bytes.data(), sizeof *header);
  if (header->magic != log_magic ||
      checksum(bytes.first(offsetof(LogHeader, checksum))) != header->checksum)
    return Status::corruption(path, 0, "the log's header is damaged").with_remedy(remedy);
  if (header->format_version > log_format_version)
    return Status(StatusCode::unsupported_version,
                  "log format version " + std::to_string(header->format_version) +
                      " is newer than " + std::to_string(log_format_version))
        .with_file(path)
        .with_remedy("open the database with a newer StrideDB");
  if (header->number != record.number || header->id[0] != record.id)
    return Status::corruption(path, 0, "the file holds another log").with_remedy(remedy);
  return {};
}

Result<LogReader> LogReader::open(FileSystem& fs, const std::string& path,
                                  const LogRecord& record) {
  Result<std::string> bytes = read_file(fs, path);
  if (!bytes.ok()) return bytes.status();
  LogHeader header{};
  STRIDE_TRY(check_log_header(path, record, as_bytes(*bytes), &header));
  return LogReader(path, std::move(*bytes), header);
}

std::optional<LogFrame> LogReader::next() {
  std::optional<LogFrame> frame = find_frame(header_, position(), as_bytes(bytes_).subspan(at_));
  if (frame) at_ += log_frame_bytes(frame->header.payload_bytes);
  return frame;
}

Status LogReader::make_durable(FileSystem& fs) const {
  Result<std::unique_ptr<File>> file = fs.open(path_, OpenMode::write);
  if (!file.ok()) return file.status();
  STRIDE_TRY((*file)->write_at(0, as_bytes(bytes_).first(at_)));
  // No frame that does not count is found there another time. Nothing is written behind it.
  const Bytes rest = as_bytes(bytes_).subspan(at_);
  const bool is_filled =
      std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; });
  if (!is_filled) STRIDE_TRY((*file)->truncate(at_));
  return (*file)->sync();
}

// What is left may hold the heads of frames that are not whole, but not so many, of such sizes,
// that checking them all would take long.
bool LogReader::knows_synced_beyond(uint64_t position) const {
  const Bytes bytes = as_bytes(bytes_);
  constexpr uint64_t max_reads = 16;  // of each byte
  uint64_t budget = max_reads * (bytes.size() - at_);
  LogFrameHeader head;
  for (uint64_t at = at_; at + sizeof head <= bytes.size(); at += 8) {
    std::memcpy(&head, bytes.data() + at, sizeof head);
    const uint64_t here = header_.position + at - sizeof(LogHeader);
    const uint64_t frame_bytes = log_frame_bytes(head.payload_bytes);
    // No frame knows what comes after it.
    if (head.log != header_.id[0] || head.synced <= position || head.synced > here ||
        frame_bytes > bytes.size() - at)
      continue;
    if (frame_bytes > budget || find_frame(header_, here, bytes.subspan(at))) return true;
    budget -= frame_bytes;
  }
  return false;
}

}  // namespace stride

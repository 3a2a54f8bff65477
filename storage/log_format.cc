#include "storage/log_format.h"

#include <cstring>

#include "storage/checksum.h"
#include "storage/file_number.h"

namespace stride {
namespace {

constexpr std::string_view log_suffix = ".wal";

}  // namespace

std::string log_name(uint64_t number) { return file_number_text(number) + std::string(log_suffix); }

std::optional<uint64_t> log_number(std::string_view name) {
  if (!name.ends_with(log_suffix)) return std::nullopt;
  return parse_file_number(name.substr(0, name.size() - log_suffix.size()));
}

LogHeader make_log_header(uint64_t number, const uint64_t (&id)[2], uint64_t position) {
  LogHeader header{};
  header.magic = log_magic;
  header.format_version = log_format_version;
  header.number = number;
  header.id[0] = id[0];
  header.id[1] = id[1];
  header.position = position;
  std::byte bytes[sizeof header];
  std::memcpy(bytes, &header, sizeof header);
  header.checksum = checksum({bytes, offsetof(LogHeader, checksum)});
  return header;
}

uint64_t frame_checksum(const LogHeader& log, uint64_t position, Bytes frame) {
  constexpr uint64_t spread = 0x9E3779B97F4A7C15;
  uint64_t content = checksum(frame.subspan(sizeof(LogFrameHeader::checksum)));
  return content ^ (log.id[1] + position * spread);
}

std::optional<LogFrame> find_frame(const LogHeader& log, uint64_t position, Bytes bytes) {
  LogFrame frame{};
  constexpr size_t head = sizeof frame.header;
  if (bytes.size() < head) return std::nullopt;
  std::memcpy(&frame.header, bytes.data(), head);
  const uint64_t payload_bytes = frame.header.payload_bytes;
  if (frame.header.log != log.id[0] || log_frame_bytes(payload_bytes) > bytes.size())
    return std::nullopt;
  if (frame_checksum(log, position, bytes.first(head + payload_bytes)) != frame.header.checksum)
    return std::nullopt;
  frame.payload = bytes.subspan(head, payload_bytes);
  return frame;
}

}  // namespace stride

// The bytes of a write-ahead log, shared by writer and reader. docs/format-log.md describes them.
//
//   0          64
//   +--------+------------------------------+------------------------------+----
//   | header | frame header | payload | 0..7 | frame header | payload | 0..7 | ... zeros
//   +--------+------------------------------+------------------------------+----
//
// A frame is what one group of commits has written (storage/log_rows.h), and is there whole or not
// at all. Frames start at multiples of 8. All integers are little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/column.h"

namespace stride {

static_assert(std::endian::native == std::endian::little, "files are written as structs lie");

inline constexpr uint64_t log_magic = 0x0A474F4C44525453;  // "STRDLOG\n"
inline constexpr uint32_t log_format_version = 1;

struct LogHeader {
  uint64_t magic;
  uint32_t format_version;
  uint32_t zero;
  uint64_t number;  // of the file's name
  // Random, so that no frame of another log, which the file may have held before, is taken for one
  // of this. The first half stands in each frame; the second goes into the checksums alone.
  uint64_t id[2];
  // Where the first frame is: positions go on from the log before.
  uint64_t position;
  uint64_t unused;
  uint64_t checksum;  // of the bytes before it
};
static_assert(sizeof(LogHeader) == 64 && alignof(LogHeader) == 8);

struct LogFrameHeader {
  uint64_t checksum;  // of the rest of the header and the payload: frame_checksum()
  uint64_t log;       // LogHeader::id[0]
  // Everything before this position was on stable storage when the frame was written. It tells the
  // torn tail that a power loss leaves from damage to what was synced.
  uint64_t synced;
  // The manifest's next id (ManifestState) when the frame was written: what comes before the frame.
  // Where a power loss has taken edits of the manifest, the frames after them count no more.
  uint64_t next_id;
  uint32_t payload_bytes;  // without padding
  uint32_t kind;           // log_rows
};
static_assert(sizeof(LogFrameHeader) == 40 && alignof(LogFrameHeader) == 8);
inline constexpr uint32_t log_rows = 1;

inline constexpr uint64_t max_log_payload_bytes = 0xFFFFFFF0;
inline constexpr uint64_t log_frame_bytes(uint64_t payload_bytes) {
  return sizeof(LogFrameHeader) + (payload_bytes + 7) / 8 * 8;
}

// "000012.wal".
std::string log_name(uint64_t number);
// The number in such a name. Nothing for another spelling of it.
std::optional<uint64_t> log_number(std::string_view name);

// A header with its checksum. position: of the first frame.
LogHeader make_log_header(uint64_t number, const uint64_t (&id)[2], uint64_t position);
// frame: header and payload, without the padding. position: of the frame.
uint64_t frame_checksum(const LogHeader& log, uint64_t position, Bytes frame);

// The frame at the start of `bytes`, where there is one of this log at this position.
struct LogFrame {
  LogFrameHeader header;
  Bytes payload;
};
std::optional<LogFrame> find_frame(const LogHeader& log, uint64_t position, Bytes bytes);

}  // namespace stride

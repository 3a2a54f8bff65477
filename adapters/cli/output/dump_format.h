// A dump: tables as one stream, for a backup or another machine.
//
//   0                8
//   +----------------+--------------+---------+--------------+---------+----
//   | "STRDUMP1"     | frame header | payload | frame header | payload | ...
//   +----------------+--------------+---------+--------------+---------+----
//
//   table    {"table":"users","key_width":8,"notes":{"key_type":"u64"}}    begins a table
//   prefixes {"table":"routes","key_width":5,"address_bits":32,...}        begins a prefix table;
//            address_bits "bytes" for prefixes of byte strings. Programs that know none of these
//            refuse such a dump
//   numbers  {"table":"hits","key_width":8,"numbers":"i64",...}            begins a table of
//   numbers:
//            i32, i64, f32 or f64, with "overflow":"wrap" where sums wrap, or of prefixes with
//            address_bits. Programs that know none of these refuse such a dump
//   schema   {"table":"users","key_width":8,"schema":"id u64 key, name string",...}    begins a
//            table with a schema, of prefixes with address_bits. Programs that know none of these
//            refuse such a dump
//   expiring {"table":"sessions","schema":"user string, until timestamp?","expires":"until",...}
//            begins one whose rows end, with "time_to_live" in microseconds where there is one.
//            Programs that know none of these refuse such a dump
//            All may have "share_equal_values":true, which programs that do not know it pass over
//   rows     records of that table as `stride load --format raw` reads them, keys ascending
//   end      {"tables":1,"rows":3}    nothing follows; without it the dump is cut short
//
// All integers are little-endian. The whole may be packed with gzip or zstd.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace stride::cli {

static_assert(std::endian::native == std::endian::little, "frames are written as structs lie");

inline constexpr std::string_view dump_magic = "STRDUMP1";

enum class FrameKind : uint32_t {
  table = 1,
  rows = 2,
  end = 3,
  prefixes = 4,
  numbers = 5,
  schema = 6,
  expiring = 7
};

struct FrameHeader {
  uint32_t kind;
  uint32_t bytes;     // of the payload
  uint64_t checksum;  // XXH3, 64 bits, of the payload, seeded with kind
};
static_assert(sizeof(FrameHeader) == 16 && alignof(FrameHeader) == 8);

// A frame has about so many bytes of rows; a record that is longer has a frame of its own.
inline constexpr uint32_t dump_frame_bytes = 1 << 20;

}  // namespace stride::cli

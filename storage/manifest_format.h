// The bytes of a manifest and of CURRENT, shared by writer and reader. docs/format.md describes
// them.
//
//   0          32
//   +--------+--------------------------------+--------------------------------+----
//   | header | record header | payload | 0..7 | record header | payload | 0..7 | ...
//   +--------+--------------------------------+--------------------------------+----
//
// A record is one VersionEdit: fields of a tag, a size and that many bytes, one after the other.
// Records start at multiples of 8. All integers are little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/column.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

static_assert(std::endian::native == std::endian::little, "files are written as structs lie");

inline constexpr uint64_t manifest_magic = 0x0A4E414D44525453;  // "STRDMAN\n"

// The same in every format version.
struct ManifestHeader {
  uint64_t magic;
  uint32_t database_format_version;
  uint32_t identity;  // of the database: 0, not known (it was made by an older version)
  uint64_t number;    // of the file's name
  uint64_t checksum;  // of the bytes before it
};
static_assert(sizeof(ManifestHeader) == 32 && alignof(ManifestHeader) == 8);

struct ManifestRecordHeader {
  uint64_t checksum;       // of the rest of this header, the payload and its padding
  uint32_t payload_bytes;  // without padding
  uint32_t kind;           // manifest_edit or manifest_unsynced_edit
  // This much of the file was on stable storage when the record was written. It tells a torn tail,
  // where later records may have reached the disk before earlier ones, from damage to what was
  // synced.
  uint64_t synced_bytes;
};
static_assert(sizeof(ManifestRecordHeader) == 24 && alignof(ManifestRecordHeader) == 8);
// The files that this edit and all before it name were on stable storage when it was written.
inline constexpr uint32_t manifest_edit = 1;
// They may not have been: after a power loss they may be missing or torn.
inline constexpr uint32_t manifest_unsynced_edit = 2;

enum class EditTag : uint32_t {
  next_id = 1,                      // uint64_t
  created_table = 2,                // CreatedTable, then the name
  dropped_table = 3,                // uint32_t
  added_segment = 4,                // AddedSegment
  removed_segment = 5,              // uint64_t
  created_table_with_flags = 6,     // CreatedTable, flags in a uint32_t, then the name
  created_log = 7,                  // CreatedLog
  removed_log = 8,                  // uint64_t
  sealed_log = 9,                   // SealedLogField
  erased_rows = 10,                 // ErasedRowsField
  renamed_table = 11,               // uint32_t, then the name
  created_table_that_expires = 12,  // CreatedTableThatExpires, then the name
  added_segment_that_expires = 13,  // AddedSegmentThatExpires
  synced_logs = 14,                 // uint64_t
};
struct EditField {
  uint32_t tag;
  uint32_t bytes;  // that follow
};
static_assert(sizeof(EditField) == 8);

struct CreatedTable {
  uint32_t id;
  uint32_t key_width;
  uint32_t address_bits;
};
static_assert(sizeof(CreatedTable) == 12);

struct CreatedTableWithFlags {
  static constexpr uint32_t share_equal_values = 1;  // bits of `flags`
  static constexpr uint32_t sums_wrap = 2;           // only where values are integers
  static constexpr uint32_t number_shift = 8;        // the second byte is a NumberType
  CreatedTable table;
  uint32_t flags;
};
static_assert(sizeof(CreatedTableWithFlags) == 16);

// One whose rows end: ExpiryCell.
struct CreatedTableThatExpires {
  CreatedTableWithFlags table;
  uint32_t offset;
  uint32_t valid_bit;  // UINT32_MAX: there is none
  uint32_t unit;       // 0: seconds, 1: milliseconds, 2: microseconds, 3: nanoseconds
  uint32_t zero;
  int64_t time_to_live;
};
static_assert(sizeof(CreatedTableThatExpires) == 40);

struct AddedSegment {
  uint64_t segment;
  uint64_t run;
  uint64_t rows;
  uint64_t tombstones;
  uint64_t bytes;
  uint32_t table;
  uint32_t zero;
};
static_assert(sizeof(AddedSegment) == 48 && alignof(AddedSegment) == 8);

struct AddedSegmentThatExpires {
  AddedSegment segment;
  int64_t first_end;
  int64_t last_end;
};
static_assert(sizeof(AddedSegmentThatExpires) == 64);

struct CreatedLog {
  uint64_t number;
  uint64_t id;
};
static_assert(sizeof(CreatedLog) == 16);

struct SealedLogField {
  uint64_t number;
  uint64_t run;
};
static_assert(sizeof(SealedLogField) == 16);

struct ErasedRowsField {
  uint64_t segment;
  uint64_t first;
  uint64_t end;
  uint32_t table;
  uint32_t zero;
};
static_assert(sizeof(ErasedRowsField) == 32 && alignof(ErasedRowsField) == 8);

// "MANIFEST-000001".
std::string manifest_name(uint64_t number);
// The number in such a name.
std::optional<uint64_t> manifest_number(std::string_view name);

// "000012.seg".
std::string segment_name(uint64_t id);
// The id in such a name. Nothing for another spelling of it: no database wrote that file.
std::optional<uint64_t> segment_number(std::string_view name);

// The text of CURRENT: the name of a manifest, and the checksum of that line in 16 hex digits.
std::string encode_current(uint64_t number);
std::optional<uint64_t> decode_current(std::string_view text);

std::vector<std::byte> encode_manifest_header(uint64_t number, uint32_t identity = 0);
// A whole record. invalid_argument: a name that is no name, or more than 4 GiB.
Result<std::vector<std::byte>> encode_record(const VersionEdit& edit, uint64_t synced_bytes,
                                             uint32_t kind = manifest_edit);

// The record at the start of `bytes`, where there is one whose checksum matches.
struct ManifestRecord {
  ManifestRecordHeader header;
  Bytes payload;
  uint64_t record_bytes;  // with header and padding
};
std::optional<ManifestRecord> find_record(Bytes bytes);
// `file` and `offset`, of the record, are for the error: corruption or unsupported_version.
Result<VersionEdit> decode_edit(const ManifestRecord& record, const std::string& file,
                                uint64_t offset);

}  // namespace stride

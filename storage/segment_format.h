// The bytes of a segment file, shared by writer and reader. docs/format-segment.md describes them.
//
//   0            4096                                   tables_offset            file_bytes
//   +------------+---------+-----+---------+------------+---------+-----------+--+--------+
//   | header     | section |     | section | statistics | section | checksum  |  | footer |
//   | and zeros  |         | ... |         |            | table   | table     |00|        |
//   +------------+---------+-----+---------+------------+---------+-----------+--+--------+
//   |<-- in blocks of 64 KiB, one checksum each ------->|<-- footer.tables_checksum -->|
//
// Sections start at multiples of 64, with zeros between them; all integers are little-endian. The
// file is padded with zeros before the footer, so that its size is a multiple of 4096 and all of it
// can be written past the page cache.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stride {

static_assert(std::endian::native == std::endian::little, "files are written as structs lie");

enum class SectionType : uint32_t {
  key_data = 1,
  key_bases = 2,  // PackedOffsets of the key column, where variable
  key_deltas = 3,
  value_data = 4,
  value_bases = 5,  // PackedOffsets of the value column, where variable
  value_deltas = 6,
  kinds = 7,  // one EntryKind a row; absent where all are puts
  tree = 8,
  statistics = 9,
  value_numbers = 10,   // where rows share values: which row of the value column each row has
  key_sample = 11,      // what trees are planned from (gpu/key_statistics.h); of large segments
  key_filter = 12,      // says which keys are not there (storage/key_filter.h)
  page_checksums = 13,  // of each page before this section; of large segments
};
inline constexpr uint32_t section_types = 13;

// "key_data", ...
std::string_view to_string(SectionType type);

enum class EntryKind : uint8_t { put = 0, tombstone = 1, delta = 2 };

inline constexpr uint64_t segment_magic = 0x0A47455344525453;         // "STRDSEG\n"
inline constexpr uint64_t segment_footer_magic = 0x0A444E4544525453;  // "STRDEND\n"
inline constexpr uint32_t segment_format_version = 5;                 // the newest that is read
// Writers use the oldest version that can express the content.
inline constexpr uint32_t segment_version_plain = 1;
inline constexpr uint32_t segment_version_shared = 2;      // rows share values
inline constexpr uint32_t segment_version_sampled = 3;     // there is a sample of the keys
inline constexpr uint32_t segment_version_filtered = 4;    // there is a filter of the keys
inline constexpr uint32_t segment_version_paged = 5;       // there are checksums of pages
inline constexpr uint64_t segment_page_bytes = 4096;       // of the header; the file is whole pages
inline constexpr uint64_t segment_block_bytes = 64 << 10;  // one checksum for each
// Segments whose other sections end before this have no checksums of pages.
inline constexpr uint64_t least_paged_bytes = 4 << 20;
inline constexpr uint64_t section_alignment = 64;
inline constexpr uint64_t max_segment_rows = 0xFFFFFFFE;  // ranks have 32 bits; one is for "none"

// At offset 0. What precedes `checksum` is the same in every format version up to `id`, and the
// checksum stays in its place, so that a newer file is told from a damaged one.
struct SegmentHeader {
  static constexpr uint32_t fixed_keys = 1;  // bits of `flags`
  static constexpr uint32_t fixed_values = 2;
  static constexpr uint32_t shared_values = 4;

  uint64_t magic;
  uint32_t format_version;
  uint32_t flags;
  uint64_t id;
  uint64_t rows;
  uint64_t tombstones;
  uint32_t key_width;  // 0 where variable
  uint32_t value_width;
  uint32_t key_delta_width;  // 2, 4 or 8; 0 where fixed
  uint32_t value_delta_width;
  uint64_t distinct_values;  // rows of the value column, where shared_values; else 0
  uint64_t unshared_bytes;   // what the columns of values would have if each row had its own
  uint64_t zeros[6];
  uint64_t checksum;  // of the bytes before it
};
static_assert(sizeof(SegmentHeader) == 128 && alignof(SegmentHeader) == 8);
static_assert(offsetof(SegmentHeader, rows) == 24 && offsetof(SegmentHeader, checksum) == 120);

struct SectionEntry {
  uint32_t type;
  uint32_t zero;
  uint64_t offset;  // in the file
  uint64_t bytes;
};
static_assert(sizeof(SectionEntry) == 24 && alignof(SectionEntry) == 8);

// The statistics section starts so; the bytes of the first key and of the last one follow.
struct SegmentStatistics {
  uint32_t first_key_bytes;
  uint32_t last_key_bytes;
};
static_assert(sizeof(SegmentStatistics) == 8 && alignof(SegmentStatistics) == 4);

// The last bytes of the file.
struct SegmentFooter {
  uint64_t magic;
  uint32_t format_version;
  uint32_t sections;  // entries of the section table
  uint64_t id;
  uint64_t tables_offset;  // of the section table; what precedes it is in the checksum table
  uint64_t blocks;         // entries of the checksum table
  uint64_t file_bytes;
  uint64_t tables_checksum;  // of the bytes from tables_offset up to the footer
  uint64_t checksum;         // of the bytes of the footer before it
};
static_assert(sizeof(SegmentFooter) == 64 && alignof(SegmentFooter) == 8);

inline constexpr uint64_t align_up(uint64_t n, uint64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}
inline constexpr uint64_t blocks_of(uint64_t bytes) {
  return (bytes + segment_block_bytes - 1) / segment_block_bytes;
}

inline constexpr uint64_t pages_of(uint64_t bytes) {
  return (bytes + segment_page_bytes - 1) / segment_page_bytes;
}

}  // namespace stride

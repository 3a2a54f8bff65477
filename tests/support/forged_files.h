// Edits files of a database and makes all their checksums match again, as a foe or a broken writer
// would.
//
//   std::string bytes = read("db/000002.seg");
//   put(&bytes, section_of(bytes, SectionType::key_data).offset, 'x');
//   seal("000002.seg", &bytes);
#pragma once

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "storage/checksum.h"
#include "storage/log_format.h"
#include "storage/manifest_format.h"
#include "storage/segment_format.h"

namespace stride::test {

template <class T>
void put(std::string* bytes, uint64_t offset, T value) {
  std::memcpy(bytes->data() + offset, &value, sizeof value);
}
template <class T>
T get(const std::string& bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline uint64_t sum(const std::string& bytes, uint64_t offset, uint64_t size) {
  return checksum(as_bytes(std::string_view(bytes).substr(offset, size)));
}

inline SegmentFooter footer_of(const std::string& bytes) {
  return get<SegmentFooter>(bytes, bytes.size() - sizeof(SegmentFooter));
}

// Where a section's entry is in the section table; 0: there is none.
inline uint64_t entry_of(const std::string& bytes, SectionType type) {
  SegmentFooter footer = footer_of(bytes);
  for (uint32_t i = 0; i < footer.sections; ++i) {
    uint64_t at = footer.tables_offset + i * sizeof(SectionEntry);
    if (get<SectionEntry>(bytes, at).type == static_cast<uint32_t>(type)) return at;
  }
  return 0;
}
inline SectionEntry section_of(const std::string& bytes, SectionType type) {
  uint64_t at = entry_of(bytes, type);
  return at ? get<SectionEntry>(bytes, at) : SectionEntry{};
}

// Makes the checksums of pages match, as far as they lie in the file.
inline void seal_pages(std::string* bytes) {
  if (bytes->size() < sizeof(SegmentHeader) + sizeof(SegmentFooter)) return;
  const SegmentFooter footer = footer_of(*bytes);
  if (footer.sections > 2 * section_types || footer.tables_offset > bytes->size() ||
      footer.sections * sizeof(SectionEntry) > bytes->size() - footer.tables_offset)
    return;
  const SectionEntry sums = section_of(*bytes, SectionType::page_checksums);
  if (sums.offset > bytes->size() || sums.bytes > bytes->size() - sums.offset) return;
  for (uint64_t page = 0; page < sums.bytes / 4; ++page) {
    const uint64_t offset = page * segment_page_bytes;
    if (offset >= sums.offset) return;
    const uint64_t size = std::min(segment_page_bytes, sums.offset - offset);
    put(bytes, sums.offset + page * 4,
        page == 0 ? 0 : static_cast<uint32_t>(sum(*bytes, offset, size)));
  }
}

inline void seal_segment(std::string* bytes) {
  if (bytes->size() < sizeof(SegmentHeader) + sizeof(SegmentFooter)) return;
  put(bytes, offsetof(SegmentHeader, checksum), sum(*bytes, 0, offsetof(SegmentHeader, checksum)));
  uint64_t at = bytes->size() - sizeof(SegmentFooter);
  SegmentFooter footer = footer_of(*bytes);
  uint64_t start = footer.tables_offset;
  uint64_t table = uint64_t{footer.sections} * sizeof(SectionEntry);
  if (start <= at && footer.blocks == blocks_of(start) && table <= at - start &&
      footer.blocks * 8 <= at - start - table) {
    for (uint64_t block = 0; block < footer.blocks; ++block) {
      uint64_t offset = block * segment_block_bytes;
      put(bytes, start + table + block * 8,
          sum(*bytes, offset, std::min(segment_block_bytes, start - offset)));
    }
    put(bytes, at + offsetof(SegmentFooter, tables_checksum), sum(*bytes, start, at - start));
  }
  put(bytes, at + offsetof(SegmentFooter, checksum),
      sum(*bytes, at, offsetof(SegmentFooter, checksum)));
}

// Gives a segment, which is whole, checksums of pages behind its other sections, as only large ones
// have them.
inline void add_page_checksums(std::string* bytes) {
  SegmentFooter footer = footer_of(*bytes);
  const std::string table =
      bytes->substr(footer.tables_offset, footer.sections * sizeof(SectionEntry));
  bytes->resize(align_up(footer.tables_offset, section_alignment));
  const SectionEntry sums{static_cast<uint32_t>(SectionType::page_checksums), 0, bytes->size(),
                          pages_of(bytes->size()) * 4};
  bytes->resize(align_up(sums.offset + sums.bytes, section_alignment));
  footer.tables_offset = bytes->size();
  *bytes += table;
  bytes->append(reinterpret_cast<const char*>(&sums), sizeof sums);
  footer.blocks = blocks_of(footer.tables_offset);
  footer.sections += 1;
  footer.format_version = segment_version_paged;
  const uint64_t end = bytes->size() + footer.blocks * 8 + sizeof footer;
  bytes->resize(align_up(end, segment_page_bytes));
  footer.file_bytes = bytes->size();
  put(bytes, bytes->size() - sizeof footer, footer);
  put(bytes, offsetof(SegmentHeader, format_version), segment_version_paged);
  seal_pages(bytes);
  seal_segment(bytes);
}

// Records follow one another as their sizes say, up to the first that does not fit the file.
inline void seal_manifest(std::string* bytes) {
  if (bytes->size() < sizeof(ManifestHeader)) return;
  put(bytes, offsetof(ManifestHeader, checksum),
      sum(*bytes, 0, offsetof(ManifestHeader, checksum)));
  constexpr uint64_t head = sizeof(ManifestRecordHeader);
  for (uint64_t at = sizeof(ManifestHeader); bytes->size() - at >= head;) {
    uint64_t payload = get<ManifestRecordHeader>(*bytes, at).payload_bytes;
    uint64_t record = head + (payload + 7) / 8 * 8;
    if (record > bytes->size() - at) return;
    put(bytes, at, sum(*bytes, at + 8, record - 8));
    at += record;
  }
}

// Its first line stays as it is.
inline void seal_current(std::string* bytes) {
  std::string line = bytes->substr(0, bytes->find('\n')) + "\n";
  char hex[18];
  std::snprintf(hex, sizeof hex, "%016llx\n",
                static_cast<unsigned long long>(checksum(as_bytes(line))));
  *bytes = line + hex;
}

// Frames follow one another as their sizes say, up to the first that does not fit the file.
inline void seal_log(std::string* bytes) {
  if (bytes->size() < sizeof(LogHeader)) return;
  put(bytes, offsetof(LogHeader, checksum), sum(*bytes, 0, offsetof(LogHeader, checksum)));
  const auto header = get<LogHeader>(*bytes, 0);
  for (uint64_t at = sizeof header; bytes->size() - at >= sizeof(LogFrameHeader);) {
    const uint64_t payload = get<LogFrameHeader>(*bytes, at).payload_bytes;
    if (log_frame_bytes(payload) > bytes->size() - at || payload == 0) return;
    put(bytes, at + offsetof(LogFrameHeader, log), header.id[0]);
    const Bytes frame = as_bytes(*bytes).subspan(at, sizeof(LogFrameHeader) + payload);
    put(bytes, at, frame_checksum(header, header.position + at - sizeof header, frame));
    at += log_frame_bytes(payload);
  }
}

// name: of the file in its database.
inline void seal(std::string_view name, std::string* bytes) {
  if (name.ends_with(".seg")) return seal_segment(bytes);
  if (name.starts_with("MANIFEST-")) return seal_manifest(bytes);
  if (name.ends_with(".wal")) return seal_log(bytes);
  if (name == "CURRENT") return seal_current(bytes);
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
// In place of the file: a process that has mapped it keeps what it had.
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::remove(path.c_str());
  std::ofstream(path, std::ios::binary) << bytes;
}
// change: takes a std::string* of the file's bytes.
template <class Change>
void forge(const std::string& path, const Change& change) {
  std::string bytes = read_bytes(path);
  change(&bytes);
  seal(std::string_view(path).substr(path.rfind('/') + 1), &bytes);
  write_bytes(path, bytes);
}

}  // namespace stride::test

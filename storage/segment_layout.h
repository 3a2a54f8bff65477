// Where the parts of a segment file are, found and checked before any of them is used.
//
//   Result<SegmentLayout> layout = SegmentLayout::parse("db/000007.seg", 7, bytes);
//   Bytes keys = layout->section(SectionType::key_data);
//
// Internal to storage. Whatever the bytes are, parse() reads none outside them and accepts only
// sections inside them, so that columns made from a layout never leave the file.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "storage/column.h"
#include "storage/segment_format.h"
#include "storage/status.h"

namespace stride {

// A part of a file, which must lie in it as a whole.
template <class T>
T load(Bytes file, uint64_t offset) {
  T part;
  std::memcpy(&part, file.data() + offset, sizeof part);
  return part;
}

struct SegmentLayout {
  Bytes file;
  SegmentHeader header{};
  SegmentFooter footer{};
  std::array<SectionEntry, section_types + 1> sections{};  // by type; type 0 where absent
  const uint64_t* checksums = nullptr;                     // footer.blocks of them
  // One for each page before the section that they lie in; empty: there are none.
  std::span<const uint32_t> page_checksums;
  PackedColumn keys;
  ValueRows values;

  // Checks header, footer and tables, and that sections fit rows and widths; the bytes of the
  // sections themselves are not read. corruption or unsupported_version.
  static Result<SegmentLayout> parse(const std::string& path, uint64_t id, Bytes file);
  // The same of a file in which these parts are damaged, and with what they were in their place. No
  // checksum is looked at, so that each block has to be checked before it is believed.
  // Precondition: the tables that the footer tells of lie in the file.
  static Result<SegmentLayout> assemble(const std::string& path, Bytes file,
                                        const SegmentHeader& header, const SegmentFooter& footer,
                                        std::span<const SectionEntry> entries);

  Bytes section(SectionType type) const;
  // Names the section that holds this byte of the file: "section key_data", or "the header".
  std::string section_name_at(uint64_t offset) const;
  // A block's bytes; the last one is shorter.
  Bytes block(uint64_t index) const;
  // Likewise of a page that has a checksum.
  Bytes page(uint64_t index) const;
};

}  // namespace stride

#include "storage/segment_layout.h"

#include <algorithm>
#include <cstring>

#include "storage/checksum.h"
#include "storage/key_filter.h"

namespace stride {

namespace {

constexpr const char* restore = "restore the file from a backup";

// All checks of one file; each step relies on those before it.
class Parser {
 public:
  Parser(const std::string& path, uint64_t id, Bytes file) : path_(path), id_(id) {
    layout_.file = file;
  }
  Status run();
  Status run(const SegmentHeader& header, const SegmentFooter& footer,
             std::span<const SectionEntry> entries);
  SegmentLayout& layout() { return layout_; }

 private:
  Status damaged(uint64_t offset, std::string message) const {
    return Status::corruption(path_, offset, std::move(message)).with_remedy(restore);
  }
  Status damaged(const char* what, SectionType type) const;
  Status newer(uint32_t version) const;
  Status check_header();
  Status check_footer();
  Status check_tables();
  Status check_section(const SectionEntry& entry, uint64_t entry_offset, uint64_t* end);
  Status check_columns();
  Status check_values();
  Status check_filter() const;
  Status check_pages();
  Status make_fixed(SectionType data, uint64_t rows, uint32_t width, PackedColumn* column) const;
  Status make_variable(SectionType data, SectionType bases, SectionType deltas, uint64_t rows,
                       uint32_t delta_width, PackedColumn* column) const;
  bool present(SectionType type) const {
    return layout_.sections[static_cast<uint32_t>(type)].type != 0;
  }

  const std::string& path_;
  const uint64_t id_;
  SegmentLayout layout_;
};

Status Parser::damaged(const char* what, SectionType type) const {
  uint64_t offset = layout_.sections[static_cast<uint32_t>(type)].offset;
  return damaged(offset, "section " + std::string(to_string(type)) + " " + what);
}

Status Parser::newer(uint32_t version) const {
  return Status(StatusCode::unsupported_version, "segment format version " +
                                                     std::to_string(version) + " is newer than " +
                                                     std::to_string(segment_format_version))
      .with_file(path_)
      .with_remedy("open the database with a newer StrideDB");
}

Status Parser::run() {
  STRIDE_TRY(check_header());
  STRIDE_TRY(check_footer());
  STRIDE_TRY(check_tables());
  return check_columns();
}

Status Parser::run(const SegmentHeader& header, const SegmentFooter& footer,
                   std::span<const SectionEntry> entries) {
  layout_.header = header;
  layout_.footer = footer;
  uint64_t end = segment_page_bytes;
  for (const SectionEntry& entry : entries)
    STRIDE_TRY(check_section(entry, footer.tables_offset, &end));
  const uint64_t table = footer.tables_offset + entries.size_bytes();
  layout_.checksums = reinterpret_cast<const uint64_t*>(layout_.file.data() + table);
  return check_columns();
}

Status Parser::check_header() {
  Bytes file = layout_.file;
  if (file.size() < sizeof(SegmentHeader)) {
    return damaged(file.size(), "the file is cut off within its header");
  }
  SegmentHeader& header = layout_.header;
  header = load<SegmentHeader>(file, 0);
  if (header.magic != segment_magic) return damaged(0, "not a segment file");
  if (checksum(file.first(offsetof(SegmentHeader, checksum))) != header.checksum) {
    return damaged(0, "the header's checksum differs");
  }
  if (header.format_version > segment_format_version) return newer(header.format_version);
  if (header.id != id_) {
    return damaged(0, "the file holds segment " + std::to_string(header.id) + ", not segment " +
                          std::to_string(id_));
  }
  return {};
}

Status Parser::check_footer() {
  Bytes file = layout_.file;
  if (file.size() < 2 * segment_page_bytes || file.size() % segment_page_bytes != 0) {
    return damaged(file.size(), "the file is cut off");
  }
  uint64_t offset = file.size() - sizeof(SegmentFooter);
  SegmentFooter& footer = layout_.footer;
  footer = load<SegmentFooter>(file, offset);
  if (footer.magic != segment_footer_magic) {
    return damaged(offset, "the footer is missing: the file is cut off or was not finished");
  }
  if (checksum(file.subspan(offset, offsetof(SegmentFooter, checksum))) != footer.checksum) {
    return damaged(offset, "the footer's checksum differs");
  }
  if (footer.id != id_ || footer.format_version != layout_.header.format_version ||
      footer.file_bytes != file.size()) {
    return damaged(offset, "the footer does not belong to this file");
  }
  return {};
}

Status Parser::check_tables() {
  Bytes file = layout_.file;
  const SegmentFooter& footer = layout_.footer;
  uint64_t footer_offset = file.size() - sizeof(SegmentFooter);
  uint64_t start = footer.tables_offset;
  // Sizes first, each bounded by the file, so that no sum below can overflow.
  if (start < segment_page_bytes || start > footer_offset || start % section_alignment != 0 ||
      footer.sections > section_types || footer.blocks != blocks_of(start) ||
      footer.sections * sizeof(SectionEntry) + footer.blocks * 8 > footer_offset - start) {
    return damaged(footer_offset, "the footer's offsets do not hold");
  }
  if (checksum(file.subspan(start, footer_offset - start)) != footer.tables_checksum) {
    return damaged(start, "the checksum of the section and checksum tables differs");
  }
  uint64_t end = segment_page_bytes;
  for (uint32_t i = 0; i < footer.sections; ++i) {
    uint64_t entry_offset = start + i * sizeof(SectionEntry);
    STRIDE_TRY(check_section(load<SectionEntry>(file, entry_offset), entry_offset, &end));
  }
  uint64_t table = start + footer.sections * sizeof(SectionEntry);
  layout_.checksums = reinterpret_cast<const uint64_t*>(file.data() + table);
  return {};
}

Status Parser::check_section(const SectionEntry& entry, uint64_t entry_offset, uint64_t* end) {
  uint32_t version = layout_.header.format_version;
  SectionType last = version == segment_version_plain      ? SectionType::statistics
                     : version == segment_version_shared   ? SectionType::value_numbers
                     : version == segment_version_sampled  ? SectionType::key_sample
                     : version == segment_version_filtered ? SectionType::key_filter
                                                           : SectionType::page_checksums;
  if (entry.type == 0 || entry.type > static_cast<uint32_t>(last) || entry.zero != 0) {
    return damaged(entry_offset, "unknown section type " + std::to_string(entry.type));
  }
  SectionEntry& slot = layout_.sections[entry.type];
  uint64_t limit = layout_.footer.tables_offset;
  if (slot.type != 0 || entry.offset % section_alignment != 0 || entry.offset < *end ||
      entry.offset > limit || entry.bytes > limit - entry.offset) {
    return damaged(entry_offset, "the section table does not hold");
  }
  *end = entry.offset + entry.bytes;
  slot = entry;
  return {};
}

Status Parser::check_columns() {
  const SegmentHeader& header = layout_.header;
  uint64_t rows = header.rows;
  bool fixed_keys = header.flags & SegmentHeader::fixed_keys;
  // Keys differ from each other, so that only one of them can be empty. This bounds rows by the
  // size of the file.
  if (fixed_keys && header.key_width == 0 && rows > 1) return damaged(0, "too many empty keys");
  if (rows > max_segment_rows) return damaged(0, "more rows than a segment can have");
  if (fixed_keys && header.key_width > max_key_bytes) return damaged(0, "the keys are too wide");
  if (header.tombstones > rows) return damaged(0, "more tombstones than rows");
  using enum SectionType;
  STRIDE_TRY(fixed_keys ? make_fixed(key_data, rows, header.key_width, &layout_.keys)
                        : make_variable(key_data, key_bases, key_deltas, rows,
                                        header.key_delta_width, &layout_.keys));
  STRIDE_TRY(check_values());
  STRIDE_TRY(check_filter());
  STRIDE_TRY(check_pages());
  if (present(kinds) && layout_.section(kinds).size() != rows) {
    return damaged("has not one entry for each row", kinds);
  }
  if (!present(kinds) && header.tombstones != 0) return damaged(0, "the section kinds is missing");
  if (!present(statistics)) return damaged(0, "the section statistics is missing");
  return {};
}

// After the keys, which bound the rows by the size of the file.
Status Parser::check_values() {
  const SegmentHeader& header = layout_.header;
  ValueRows& values = layout_.values;
  using enum SectionType;
  bool shared = header.format_version >= segment_version_shared &&
                (header.flags & SegmentHeader::shared_values) != 0;
  if (shared != present(value_numbers))
    return damaged(0, "the section value_numbers and the header's flags do not fit");
  uint64_t count = shared ? header.distinct_values : header.rows;
  if (count > header.rows || (count == 0) != (header.rows == 0))
    return damaged(
        0, std::to_string(count) + " distinct values of " + std::to_string(header.rows) + " rows");
  STRIDE_TRY((header.flags & SegmentHeader::fixed_values) != 0
                 ? make_fixed(value_data, count, header.value_width, &values.column)
                 : make_variable(value_data, value_bases, value_deltas, count,
                                 header.value_delta_width, &values.column));
  if (!shared) return {};
  Bytes numbers = layout_.section(value_numbers);
  values.number_width = ValueRows::width_for(count);
  if (numbers.size() != header.rows * values.number_width)
    return damaged("has not one entry for each row", value_numbers);
  values.numbers = numbers.data();
  return {};
}

// Which bits are set is for verify() to say: a probe reads none outside the section.
Status Parser::check_filter() const {
  constexpr SectionType filter = SectionType::key_filter;
  if (!present(filter) ||
      layout_.section(filter).size() == KeyFilter::bytes_for(layout_.header.rows))
    return {};
  return damaged("does not have the size of its rows", filter);
}

// Its own place says how many pages there are before it.
Status Parser::check_pages() {
  constexpr SectionType pages = SectionType::page_checksums;
  if (!present(pages)) return {};
  const Bytes bytes = layout_.section(pages);
  const auto offset = static_cast<uint64_t>(bytes.data() - layout_.file.data());
  if (bytes.size() != pages_of(offset) * sizeof(uint32_t))
    return damaged("has not one entry for each page before it", pages);
  layout_.page_checksums = {reinterpret_cast<const uint32_t*>(bytes.data()), pages_of(offset)};
  return {};
}

Status Parser::make_fixed(SectionType data, uint64_t rows, uint32_t width,
                          PackedColumn* column) const {
  Bytes bytes = layout_.section(data);
  uint64_t need = 0;
  if (__builtin_mul_overflow(rows, uint64_t{width}, &need) || bytes.size() != need) {
    return damaged("does not have the size of its rows", data);
  }
  *column = {.data = bytes.data(), .data_bytes = bytes.size(), .size = rows, .width = width};
  return {};
}

Status Parser::make_variable(SectionType data, SectionType bases, SectionType deltas, uint64_t rows,
                             uint32_t delta_width, PackedColumn* column) const {
  if (delta_width != 2 && delta_width != 4 && delta_width != 8) {
    return damaged(0, "offsets of " + std::to_string(delta_width) + " bytes");
  }
  if (rows >= layout_.file.size()) return damaged(0, "more rows than the file can hold");
  if (layout_.section(deltas).size() != (rows + 1) * delta_width) {
    return damaged("does not have one entry for each row", deltas);
  }
  if (layout_.section(bases).size() != ((rows >> PackedOffsets::group_bits) + 1) * 8) {
    return damaged("does not have one entry for each group", bases);
  }
  Bytes bytes = layout_.section(data);
  *column = {.data = bytes.data(), .data_bytes = bytes.size(), .size = rows, .fixed = false};
  column->offsets.bases = reinterpret_cast<const uint64_t*>(layout_.section(bases).data());
  column->offsets.deltas = layout_.section(deltas).data();
  column->offsets.delta_width = delta_width;
  return {};
}

}  // namespace

std::string_view to_string(SectionType type) {
  switch (type) {
    case SectionType::key_data:
      return "key_data";
    case SectionType::key_bases:
      return "key_bases";
    case SectionType::key_deltas:
      return "key_deltas";
    case SectionType::value_data:
      return "value_data";
    case SectionType::value_bases:
      return "value_bases";
    case SectionType::value_deltas:
      return "value_deltas";
    case SectionType::kinds:
      return "kinds";
    case SectionType::tree:
      return "tree";
    case SectionType::statistics:
      return "statistics";
    case SectionType::value_numbers:
      return "value_numbers";
    case SectionType::key_sample:
      return "key_sample";
    case SectionType::key_filter:
      return "key_filter";
    case SectionType::page_checksums:
      return "page_checksums";
  }
  return "unknown";
}

Result<SegmentLayout> SegmentLayout::parse(const std::string& path, uint64_t id, Bytes file) {
  Parser parser(path, id, file);
  STRIDE_TRY(parser.run());
  return std::move(parser.layout());
}

Result<SegmentLayout> SegmentLayout::assemble(const std::string& path, Bytes file,
                                              const SegmentHeader& header,
                                              const SegmentFooter& footer,
                                              std::span<const SectionEntry> entries) {
  Parser parser(path, header.id, file);
  STRIDE_TRY(parser.run(header, footer, entries));
  return std::move(parser.layout());
}

Bytes SegmentLayout::section(SectionType type) const {
  const SectionEntry& entry = sections[static_cast<uint32_t>(type)];
  return entry.type ? file.subspan(entry.offset, entry.bytes) : Bytes{};
}

std::string SegmentLayout::section_name_at(uint64_t offset) const {
  for (const SectionEntry& entry : sections) {
    if (entry.type && offset >= entry.offset && offset - entry.offset < entry.bytes) {
      return "section " + std::string(to_string(SectionType{entry.type}));
    }
  }
  return offset < segment_page_bytes ? "the header" : "the padding between sections";
}

Bytes SegmentLayout::block(uint64_t index) const {
  uint64_t offset = index * segment_block_bytes;
  uint64_t left = footer.tables_offset - offset;
  return file.subspan(offset, left < segment_block_bytes ? left : segment_block_bytes);
}

Bytes SegmentLayout::page(uint64_t index) const {
  const uint64_t offset = index * segment_page_bytes;
  const uint64_t end = sections[static_cast<uint32_t>(SectionType::page_checksums)].offset;
  return file.subspan(offset, std::min(segment_page_bytes, end - offset));
}

}  // namespace stride

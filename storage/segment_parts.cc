#include "storage/segment_parts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "storage/checksum.h"

namespace stride {
namespace {

constexpr const char* remedy = "restore the file from a backup";

// A struct that ends with the checksum of what stands before it.
template <class T>
bool has_checksum(const T& part) {
  return checksum(std::as_bytes(std::span(&part, 1)).first(offsetof(T, checksum))) == part.checksum;
}

// Calls holds() after each change of one byte, until it is true. Else all is as it was.
template <class Holds>
bool repair_byte(std::span<std::byte> bytes, const Holds& holds) {
  for (std::byte& byte : bytes) {
    const std::byte before = byte;
    for (unsigned change = 1; change < 256; ++change) {
      byte = before ^ std::byte{static_cast<uint8_t>(change)};
      if (holds()) return true;
    }
    byte = before;
  }
  return false;
}

template <class T>
bool repair_part(T* part) {
  auto bytes = std::as_writable_bytes(std::span(part, 1)).first(offsetof(T, checksum));
  return repair_byte(bytes, [&] { return has_checksum(*part); });
}

// What the sections tell of the rows, for a header that is lost.
class HeaderOfSections {
 public:
  explicit HeaderOfSections(std::span<const SectionEntry> entries) {
    for (const SectionEntry& entry : entries)
      if (entry.type <= section_types) bytes_[entry.type] = entry.bytes;
  }

  // Nothing where it is not certain. first_key_bytes: of the section statistics.
  std::optional<SegmentHeader> find(uint64_t id, uint32_t version,
                                    std::optional<uint32_t> first_key_bytes) const {
    using enum SectionType;
    SegmentHeader header{};
    header.magic = segment_magic;
    header.format_version = version;
    header.id = id;
    const bool fixed_keys = !has(key_bases), fixed_values = !has(value_bases);
    const bool shared = has(value_numbers);
    header.flags = (fixed_keys ? SegmentHeader::fixed_keys : 0) |
                   (fixed_values ? SegmentHeader::fixed_values : 0) |
                   (shared ? SegmentHeader::shared_values : 0);
    if (shared && fixed_values) return std::nullopt;
    uint64_t stored_values = 0;
    if (!fixed_keys && !find_offsets(key_bases, key_deltas, &header.rows, &header.key_delta_width))
      return std::nullopt;
    if (!fixed_values &&
        !find_offsets(value_bases, value_deltas, &stored_values, &header.value_delta_width))
      return std::nullopt;
    if (has(kinds)) {
      header.rows = bytes(kinds);
    } else if (shared) {
      header.rows = bytes(value_numbers) / ValueRows::width_for(stored_values);
    } else if (!fixed_values) {
      header.rows = stored_values;
    } else if (fixed_keys && first_key_bytes && *first_key_bytes > 0) {
      header.rows = bytes(key_data) / *first_key_bytes;
    }
    if (header.rows == 0) return std::nullopt;
    if (fixed_keys) header.key_width = static_cast<uint32_t>(bytes(key_data) / header.rows);
    if (fixed_values) header.value_width = static_cast<uint32_t>(bytes(value_data) / header.rows);
    if (shared) header.distinct_values = stored_values;
    return header;
  }

 private:
  bool has(SectionType type) const { return bytes_[static_cast<uint32_t>(type)] != 0; }
  uint64_t bytes(SectionType type) const { return bytes_[static_cast<uint32_t>(type)]; }

  // The rows of a column that varies: there is one width of offsets that fits both sections.
  bool find_offsets(SectionType bases, SectionType deltas, uint64_t* rows, uint32_t* width) const {
    int fitting = 0;
    for (uint32_t w : {2, 4, 8}) {
      if (bytes(deltas) % w != 0 || bytes(deltas) < 2 * w) continue;
      const uint64_t n = bytes(deltas) / w - 1;
      if (((n >> PackedOffsets::group_bits) + 1) * 8 != bytes(bases)) continue;
      *rows = n;
      *width = w;
      ++fitting;
    }
    return fitting == 1;
  }

  std::array<uint64_t, section_types + 1> bytes_{};
};

class PartsFinder {
 public:
  PartsFinder(const std::string& path, uint64_t id, Bytes file)
      : path_(path), id_(id), file_(file) {}

  Result<SegmentParts> run() {
    if (file_.size() < 2 * segment_page_bytes || file_.size() % segment_page_bytes != 0)
      return lost("the file is cut off");
    STRIDE_TRY(read_header());
    const uint64_t footer_offset = file_.size() - sizeof(SegmentFooter);
    auto footer = load<SegmentFooter>(file_, footer_offset);
    parts_.has_footer = footer.magic == segment_footer_magic && has_checksum(footer);
    if (!parts_.has_footer) {
      if (repair_part(&footer) && try_footer(footer)) return take();
      return search_footer() ? take() : lost("the footer is damaged, and the tables with it");
    }
    if (footer.id != id_ || footer.file_bytes != file_.size())
      return lost("the footer does not belong to this file");
    return try_footer(footer) ? take() : lost("the section table is damaged");
  }

 private:
  Result<SegmentParts> take() { return std::move(parts_); }
  Status lost(const char* what) const {
    return Status::corruption(path_, 0, what).with_remedy(remedy);
  }

  Status read_header() {
    auto header = load<SegmentHeader>(file_, 0);
    parts_.has_header = header.magic == segment_magic && has_checksum(header);
    if (!parts_.has_header && !repair_part(&header)) {
      // The bytes of the checksum itself may be the damaged ones.
      if (header.magic == segment_magic && header.id == id_) unproven_ = header;
      return {};
    }
    if (header.format_version > segment_format_version)
      return Status(StatusCode::unsupported_version,
                    "segment format version " + std::to_string(header.format_version) +
                        " is newer than " + std::to_string(segment_format_version))
          .with_file(path_)
          .with_remedy("use a newer StrideDB");
    if (header.id != id_)
      return Status::corruption(path_, 0,
                                "the file holds segment " + std::to_string(header.id) +
                                    ", not segment " + std::to_string(id_))
          .with_remedy(remedy);
    header_ = header;
    return {};
  }

  bool footer_holds(const SegmentFooter& footer) const {
    const uint64_t start = footer.tables_offset, limit = file_.size() - sizeof footer;
    return start >= segment_page_bytes && start <= limit && start % section_alignment == 0 &&
           footer.sections <= section_types && footer.blocks == blocks_of(start) &&
           footer.sections * sizeof(SectionEntry) + footer.blocks * 8 <= limit - start;
  }

  // With the tables that it tells of.
  bool try_footer(const SegmentFooter& footer) {
    if (!footer_holds(footer)) return false;
    std::vector<std::byte> tables(file_.size() - sizeof footer - footer.tables_offset);
    std::memcpy(tables.data(), file_.data() + footer.tables_offset, tables.size());
    const auto list = std::span(tables).first(footer.sections * sizeof(SectionEntry));
    const auto sums = std::span(tables).subspan(list.size(), footer.blocks * 8);
    auto holds = [&] { return checksum(tables) == footer.tables_checksum; };
    parts_.has_tables = holds();
    bool is_proven = parts_.has_tables;
    if (!is_proven) {
      const auto padding = std::span(tables).subspan(list.size() + sums.size());
      std::fill(padding.begin(), padding.end(), std::byte{0});
      is_proven = holds() || repair_byte(list, holds);
    }
    std::vector<SectionEntry> entries(footer.sections);
    if (!list.empty()) std::memcpy(entries.data(), list.data(), list.size());
    set_checksums(sums);
    if (!assemble(footer, entries)) return false;
    if (!is_proven) is_proven = repair_checksums(sums, holds);
    // What no checksum vouches for is believed where blocks match theirs.
    return is_proven || matches_any_block();
  }

  void set_checksums(Bytes sums) {
    parts_.checksums.resize(sums.size() / 8);
    std::memcpy(parts_.checksums.data(), sums.data(), sums.size());
  }

  // Checksums that differ from those of their blocks are the damaged ones, where with these the
  // tables' own checksum holds.
  template <class Holds>
  bool repair_checksums(std::span<std::byte> sums, const Holds& holds) {
    const std::vector<std::byte> before(sums.begin(), sums.end());
    for (uint64_t block = 0; block < parts_.checksums.size(); ++block) {
      const uint64_t sum = checksum(parts_.layout.block(block));
      std::memcpy(sums.data() + block * 8, &sum, sizeof sum);
    }
    const bool is_proven = holds();
    if (!is_proven) std::copy(before.begin(), before.end(), sums.begin());
    set_checksums(sums);
    return is_proven;
  }

  // The tables begin so that they and the footer end in the file's last page.
  bool search_footer() {
    const uint64_t end = file_.size() - sizeof(SegmentFooter);
    for (uint64_t start = end / section_alignment * section_alignment; start >= segment_page_bytes;
         start -= section_alignment) {
      if (blocks_of(start) * 8 + section_types * sizeof(SectionEntry) + segment_page_bytes <
          end - start)
        break;
      SegmentFooter footer{};
      footer.tables_offset = start;
      footer.blocks = blocks_of(start);
      for (footer.sections = 1; footer.sections <= section_types; ++footer.sections) {
        if (!footer_holds(footer)) break;
        std::vector<SectionEntry> entries(footer.sections);
        std::memcpy(entries.data(), file_.data() + start, sizeof(SectionEntry) * footer.sections);
        if (entries[0].offset != segment_page_bytes) break;
        set_checksums(
            file_.subspan(start + sizeof(SectionEntry) * footer.sections, footer.blocks * 8));
        if (assemble(footer, entries) && matches_any_block()) return true;
      }
    }
    return false;
  }

  bool assemble(const SegmentFooter& footer, const std::vector<SectionEntry>& entries) {
    if (header_) return assemble(*header_, footer, entries);
    if (unproven_ && assemble(*unproven_, footer, entries) && is_block_whole(parts_, 0))
      return true;
    for (uint32_t version = segment_version_plain; version <= segment_format_version; ++version) {
      if (footer.format_version != 0 && version != footer.format_version) continue;
      auto header = HeaderOfSections(entries).find(id_, version, first_key_bytes(footer, entries));
      if (header && assemble(*header, footer, entries)) return true;
    }
    return false;
  }
  bool assemble(const SegmentHeader& header, const SegmentFooter& footer,
                const std::vector<SectionEntry>& entries) {
    SegmentHeader written = header;
    written.checksum =
        checksum(std::as_bytes(std::span(&written, 1)).first(offsetof(SegmentHeader, checksum)));
    auto layout = SegmentLayout::assemble(path_, file_, written, footer, entries);
    if (layout.ok()) parts_.layout = std::move(*layout);
    return layout.ok();
  }

  // Nothing where a checksum does not vouch for it.
  std::optional<uint32_t> first_key_bytes(const SegmentFooter& footer,
                                          const std::vector<SectionEntry>& entries) const {
    for (const SectionEntry& entry : entries) {
      const uint64_t block = entry.offset / segment_block_bytes * segment_block_bytes;
      if (entry.type != static_cast<uint32_t>(SectionType::statistics) ||
          entry.offset >= footer.tables_offset ||
          footer.tables_offset - entry.offset < sizeof(SegmentStatistics))
        continue;
      const uint64_t sums = footer.tables_offset + entries.size() * sizeof(SectionEntry);
      const uint64_t bytes = std::min(segment_block_bytes, footer.tables_offset - block);
      if (checksum(file_.subspan(block, bytes)) ==
          load<uint64_t>(file_, sums + block / segment_block_bytes * 8))
        return load<SegmentStatistics>(file_, entry.offset).first_key_bytes;
    }
    return std::nullopt;
  }

  bool matches_any_block() const {
    for (uint64_t block = 0; block < parts_.checksums.size(); ++block)
      if (is_block_whole(parts_, block)) return true;
    return false;
  }

  const std::string& path_;
  const uint64_t id_;
  const Bytes file_;
  std::optional<SegmentHeader> header_;    // as it was written
  std::optional<SegmentHeader> unproven_;  // as it stands in the file, which may be damaged
  SegmentParts parts_;
};

// With the header as it was written, and zeros between the sections.
std::vector<std::byte> block_as_written(const SegmentLayout& layout, uint64_t block) {
  const Bytes bytes = layout.block(block);
  const uint64_t begin = block * segment_block_bytes, end = begin + bytes.size();
  std::vector<std::byte> written(bytes.size());
  if (block == 0) std::memcpy(written.data(), &layout.header, sizeof layout.header);
  for (const SectionEntry& entry : layout.sections) {
    const uint64_t first = std::max(begin, entry.offset);
    const uint64_t last = std::min(end, entry.offset + entry.bytes);
    if (entry.type != 0 && first < last)
      std::memcpy(written.data() + (first - begin), bytes.data() + (first - begin), last - first);
  }
  return written;
}

}  // namespace

bool is_block_whole(const SegmentParts& parts, uint64_t block) {
  const uint64_t sum = parts.checksums[block];
  return checksum(parts.layout.block(block)) == sum ||
         checksum(block_as_written(parts.layout, block)) == sum;
}

Result<SegmentParts> find_segment_parts(const std::string& path, uint64_t id, Bytes file) {
  return PartsFinder(path, id, file).run();
}

}  // namespace stride

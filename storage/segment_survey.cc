#include "storage/segment_survey.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "storage/block_check.h"
#include "storage/checksum.h"
#include "storage/partial_file.h"
#include "storage/segment_parts.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

constexpr uint64_t read_bytes = 256 << 10;  // at a time, which a core's cache holds

RowInterval united(RowInterval a, RowInterval b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.first, b.first), std::max(a.end, b.end)};
}

// Whether it is there as a whole: touching a page of a mapping that the disk cannot read would end
// the process. It is in memory then.
Result<bool> can_be_read(File& file, uint64_t bytes) {
  std::vector<std::byte> piece(std::min(read_bytes, bytes));
  for (uint64_t at = 0; at < bytes; at += read_bytes) {
    STRIDE_TRY(WorkWatch::check());
    const auto part = std::span(piece).first(std::min(read_bytes, bytes - at));
    if (!file.read_at(at, part).ok()) return false;
  }
  return true;
}

}  // namespace

Result<SegmentSurvey> SegmentSurvey::read(FileSystem& fs, const std::string& path, uint64_t id) {
  SegmentSurvey survey(path);
  STRIDE_TRY(survey.load(fs, id));
  return survey;
}

Status SegmentSurvey::load(FileSystem& fs, uint64_t id) {
  auto file = fs.open(path_, OpenMode::read);
  if (!file.ok()) return file.status();
  auto mapped = (*file)->map();
  if (!mapped.ok()) return mapped.status();
  mapping_ = std::move(*mapped);
  auto readable = can_be_read(**file, mapping_->bytes().size());
  if (!readable.ok()) return readable.status();
  Bytes bytes = mapping_->bytes();
  if (!*readable) {
    auto copy = read_what_can_be_read(**file);
    if (!copy.ok()) return copy.status();
    copy_ = std::move(*copy);
    bytes = as_bytes(copy_);
  }
  auto parts = find_segment_parts(path_, id, bytes);
  if (!parts.ok()) return parts.status();
  layout_ = parts->layout;
  is_unreadable_ = !parts->has_header || !parts->has_tables || !parts->has_footer;
  if (!parts->has_header) add({"header", 0, sizeof(SegmentHeader), "is damaged", {0, rows()}});
  check_blocks(*parts);
  const uint64_t tables = layout_.footer.tables_offset;
  const uint64_t footer = layout_.file.size() - sizeof(SegmentFooter);
  if (!parts->has_tables)
    add({"tables", tables, footer - tables, "do not match their checksum", {0, rows()}});
  if (!parts->has_footer) add({"footer", footer, sizeof(SegmentFooter), "is damaged", {0, rows()}});
  return {};
}

void SegmentSurvey::add(DamagedBytes damaged) {
  if (!damage_.empty()) {
    DamagedBytes& last = damage_.back();
    if (last.section == damaged.section && last.what == damaged.what &&
        last.offset + last.bytes == damaged.offset) {
      last.bytes += damaged.bytes;
      last.rows = united(last.rows, damaged.rows);
      return;
    }
  }
  damage_.push_back(std::move(damaged));
}

void SegmentSurvey::check_blocks(const SegmentParts& parts) {
  const uint64_t blocks = layout_.footer.blocks;
  damaged_.resize(blocks);
  told_.resize(blocks);
  block_faults_.resize(blocks);
  for (uint64_t block = 0; block < blocks; ++block) {
    if (block % 64 == 0 && !WorkWatch::check().ok()) throw StopRequested();
    block_faults_[block] = "the checksum of a block differs";
    damaged_[block] = !is_block_whole(parts, block);
    // Where the header alone is damaged, that has been told.
    told_[block] = damaged_[block] || ((block > 0 || parts.has_header) &&
                                       checksum(layout_.block(block)) != parts.checksums[block]);
  }
  // What a checksum vouches for may still be no column: then somebody has made the file so.
  std::vector<bool> faulty(blocks);
  for (uint64_t block = 0; block < blocks; ++block) {
    const BytesBeside beside = bytes_beside(layout_, block);
    if (damaged_[block] || !is_whole(beside.key_bases) || !is_whole(beside.value_bases)) continue;
    if (auto fault = fault_in_block(layout_, block)) {
      block_faults_[block] = std::move(fault->what);
      faulty[block] = true;
    }
  }
  for (uint64_t block = 0; block < blocks; ++block)
    if (faulty[block]) damaged_[block] = told_[block] = true;
  find_rows();
}

void SegmentSurvey::find_rows() {
  const uint64_t blocks = layout_.footer.blocks;
  if (std::find(told_.begin(), told_.end(), true) == told_.end()) return;
  std::vector<RowInterval> rows_of_blocks(blocks);
  find_row_bytes(&rows_of_blocks);
  const SectionEntry& statistics = layout_.sections[static_cast<uint32_t>(SectionType::statistics)];
  for (uint64_t block = 0; block < blocks; ++block) {
    if (!told_[block]) continue;
    const uint64_t offset = block * segment_block_bytes, bytes = layout_.block(block).size();
    add({damaged_[block] ? section_name(offset, bytes) : "padding", offset, bytes,
         block_faults_[block], united(rows_of_blocks[block], rows_of_block(block))});
    if (statistics.offset < offset + bytes && statistics.offset + statistics.bytes > offset)
      is_unreadable_ = true;
  }
}

// One pass over the rows says which of them have keys or values in damaged blocks.
void SegmentSurvey::find_row_bytes(std::vector<RowInterval>* rows_of_blocks) const {
  // As Segment::ensure() checks them: by the page, if they are few.
  auto note = [&](Bytes bytes, uint64_t row) {
    if (bytes.empty()) return;
    const auto offset = static_cast<uint64_t>(bytes.data() - layout_.file.data());
    const uint64_t last = (offset + bytes.size() - 1) / segment_page_bytes;
    for (uint64_t page = offset / segment_page_bytes; page <= last; ++page) {
      const uint64_t block = page * segment_page_bytes / segment_block_bytes;
      if (!told_[block] || (bytes.size() <= segment_page_bytes && is_page_whole(page))) continue;
      (*rows_of_blocks)[block] = united((*rows_of_blocks)[block], {row, row + 1});
    }
  };
  auto column_bytes = [&](const PackedColumn& column, uint64_t row, uint64_t max_bytes) -> Bytes {
    uint64_t begin = 0, end = 0;
    if (!find_offsets(column, row, &begin, &end) || begin > end || end > column.data_bytes ||
        end - begin > max_bytes)
      return {};
    return {column.data + begin, end - begin};
  };
  for (uint64_t row = 0; row < rows(); ++row) {
    note(column_bytes(layout_.keys, row, max_key_bytes), row);
    uint64_t position = 0;
    if (find_position(row, &position))
      note(column_bytes(layout_.values.column, position, max_value_bytes), row);
  }
}

// Rows whose reads need what else is in the block.
RowInterval SegmentSurvey::rows_of_block(uint64_t block) const {
  const uint64_t begin = block * segment_block_bytes, end = begin + layout_.block(block).size();
  RowInterval rows;
  const RowInterval all{0, this->rows()};
  auto add_entries = [&](SectionType type, uint64_t width, uint64_t rows_of_entry) {
    const SectionEntry& section = layout_.sections[static_cast<uint32_t>(type)];
    const uint64_t first = std::max(begin, section.offset);
    const uint64_t last = std::min(end, section.offset + section.bytes);
    if (section.type == 0 || width == 0 || first >= last) return;
    const uint64_t entry = (first - section.offset) / width;
    const uint64_t entries = (last - section.offset + width - 1) / width;
    // An offset is the end of the row before it, too.
    const uint64_t from = std::max<uint64_t>(entry * rows_of_entry, 1) - 1;
    rows = united(rows, {from, std::min(all.end, entries * rows_of_entry)});
  };
  constexpr uint64_t group = uint64_t{1} << PackedOffsets::group_bits;
  const PackedColumn& keys = layout_.keys;
  const PackedColumn& values = layout_.values.column;
  add_entries(SectionType::key_bases, 8, group);
  add_entries(SectionType::key_deltas, keys.offsets.delta_width, 1);
  if (layout_.values.shared()) {
    add_entries(SectionType::value_numbers, layout_.values.number_width, 1);
  } else {
    add_entries(SectionType::value_bases, 8, group);
    add_entries(SectionType::value_deltas, values.offsets.delta_width, 1);
  }
  add_entries(SectionType::kinds, 1, 1);
  // The offsets of shared values are those of any row.
  const bool of_all[] = {true, true, true, layout_.values.shared(), layout_.values.shared()};
  const SectionType types[] = {SectionType::tree, SectionType::statistics, SectionType::key_filter,
                               SectionType::value_bases, SectionType::value_deltas};
  for (size_t i = 0; i < std::size(types); ++i) {
    const SectionEntry& section = layout_.sections[static_cast<uint32_t>(types[i])];
    if (of_all[i] && section.type != 0 && section.offset < end &&
        section.offset + section.bytes > begin)
      rows = all;
  }
  return rows;
}

std::string SegmentSurvey::section_name(uint64_t offset, uint64_t bytes) const {
  std::string first, last;
  auto name = [&](const std::string& section) {
    if (first.empty()) first = section;
    last = section;
  };
  if (offset < segment_page_bytes) name("header");
  std::vector<const SectionEntry*> entries;
  for (const SectionEntry& entry : layout_.sections)
    if (entry.type != 0 && entry.bytes != 0) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (const SectionEntry* entry : entries)
    if (entry->offset < offset + bytes && entry->offset + entry->bytes > offset)
      name(std::string(to_string(SectionType{entry->type})));
  if (first.empty()) return "padding";
  return first == last ? first : first + " to " + last;
}

bool SegmentSurvey::is_whole(Bytes bytes) const {
  if (bytes.empty()) return true;
  const auto offset = static_cast<uint64_t>(bytes.data() - layout_.file.data());
  const uint64_t last = (offset + bytes.size() - 1) / segment_block_bytes;
  for (uint64_t block = offset / segment_block_bytes; block <= last; ++block)
    if (damaged_[block]) return false;
  return true;
}

// What keys and values are nothing but their checksum tells.
bool SegmentSurvey::is_row_whole(Bytes bytes) const {
  if (is_whole(bytes)) return true;
  const auto offset = static_cast<uint64_t>(bytes.data() - layout_.file.data());
  const uint64_t last = (offset + bytes.size() - 1) / segment_page_bytes;
  for (uint64_t page = offset / segment_page_bytes; page <= last; ++page)
    if (damaged_[page * segment_page_bytes / segment_block_bytes] && !is_page_whole(page))
      return false;
  return true;
}

bool SegmentSurvey::is_page_whole(uint64_t page) const {
  const std::span<const uint32_t> sums = layout_.page_checksums;
  return page < sums.size() && is_whole(std::as_bytes(sums.subspan(page, 1))) &&
         page_checksum(layout_.page(page)) == sums[page];
}

bool SegmentSurvey::find_offsets(const PackedColumn& column, uint64_t row, uint64_t* begin,
                                 uint64_t* end) const {
  if (column.fixed) {
    *begin = row * column.width;
    *end = *begin + column.width;
    return true;
  }
  const PackedOffsets& offsets = column.offsets;
  const uint64_t first = row >> PackedOffsets::group_bits;
  const uint64_t last = (row + 1) >> PackedOffsets::group_bits;
  const uint64_t width = offsets.delta_width;
  const auto* deltas = static_cast<const std::byte*>(offsets.deltas);
  if (!is_whole({reinterpret_cast<const std::byte*>(offsets.bases + first),
                 (last - first + 1) * sizeof(uint64_t)}) ||
      !is_whole({deltas + row * width, 2 * width}))
    return false;
  *begin = offsets[row];
  *end = offsets[row + 1];
  return true;
}

bool SegmentSurvey::find_row(const PackedColumn& column, uint64_t row, uint64_t max_bytes,
                             Bytes* bytes) const {
  uint64_t begin = 0, end = 0;
  if (!find_offsets(column, row, &begin, &end) || begin > end || end > column.data_bytes ||
      end - begin > max_bytes)
    return false;
  *bytes = {column.data + begin, end - begin};
  return is_row_whole(*bytes);
}

bool SegmentSurvey::find_position(uint64_t row, uint64_t* position) const {
  const ValueRows& values = layout_.values;
  *position = row;
  if (!values.shared()) return true;
  const uint64_t width = values.number_width;
  if (!is_whole({static_cast<const std::byte*>(values.numbers) + row * width, width})) return false;
  *position = values.position(row);
  return *position < values.column.size;
}

bool SegmentSurvey::find_key(uint64_t row, Bytes* key) const {
  return find_row(layout_.keys, row, max_key_bytes, key);
}

bool SegmentSurvey::find_value(uint64_t row, Bytes* value) const {
  uint64_t position = 0;
  return find_position(row, &position) &&
         find_row(layout_.values.column, position, max_value_bytes, value);
}

bool SegmentSurvey::find_kind(uint64_t row, EntryKind* kind) const {
  const Bytes kinds = layout_.section(SectionType::kinds);
  *kind = EntryKind::put;
  if (kinds.empty()) return true;
  if (!is_whole(kinds.subspan(row, 1))) return false;
  *kind = static_cast<EntryKind>(kinds[row]);
  return *kind == EntryKind::put || *kind == EntryKind::tombstone;
}

bool SegmentSurvey::find_ends(Bytes* first, Bytes* last) const {
  const Bytes section = layout_.section(SectionType::statistics);
  SegmentStatistics head{};
  if (section.size() < sizeof head || !is_whole(section)) return false;
  std::memcpy(&head, section.data(), sizeof head);
  if (sizeof head + uint64_t{head.first_key_bytes} + head.last_key_bytes != section.size())
    return false;
  *first = section.subspan(sizeof head, head.first_key_bytes);
  *last = section.last(head.last_key_bytes);
  return true;
}

void SegmentSurvey::find_bounds(RowInterval rows, std::optional<Bytes>* from,
                                std::optional<Bytes>* to) const {
  from->reset();
  to->reset();
  if (rows.empty()) return;
  Bytes first, last, key;
  if (find_ends(&first, &last)) {
    *from = first;
    *to = last;
  }
  for (uint64_t row = rows.first + 1; row-- > 0;)
    if (find_key(row, &key)) {
      *from = key;
      break;
    }
  for (uint64_t row = rows.end - 1; row < this->rows(); ++row)
    if (find_key(row, &key)) {
      *to = key;
      break;
    }
}

}  // namespace stride

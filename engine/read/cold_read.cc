#include "engine/read/cold_read.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "storage/segment_format.h"
#include "storage/system_memory.h"

namespace stride {
namespace {

// The unit of what is marked and prefetched: one of the machine's pages, or a part of one.
constexpr uint64_t page_bytes = segment_page_bytes;
constexpr uint64_t pages_per_block = segment_block_bytes / page_bytes;
constexpr uint32_t no_file = 0xFFFFFFFF;

// Measured on a disk of 80,000 random reads a second, many in flight, and 1.7 GB/s: as long as a
// page takes, about five do in large reads; and twenty as long as one takes that is waited for.
constexpr uint64_t many_to_whole = 4;
constexpr uint64_t alone_to_whole = 8;

// What readers copy at least, whatever the length of a value.
constexpr uint64_t copied_bytes = 64;

uint64_t machine_memory_bytes() {
  static const uint64_t bytes = system_memory_bytes();
  return bytes;
}

uint64_t offset_in(const Mapping& mapping, Bytes bytes) {
  return static_cast<uint64_t>(bytes.data() - mapping.bytes().data());
}

// Counts the pages of a sample of the bytes that are not in memory.
struct ColdSample {
  uint64_t pages = 0, cold = 0;
};
ColdSample sample(const Mapping& mapping, Bytes bytes, uint64_t max_pages = 32) {
  ColdSample s;
  uint64_t step = std::max<uint64_t>(page_bytes, bytes.size() / max_pages);
  for (uint64_t at = 0; at < bytes.size(); at += step, ++s.pages)
    s.cold += !mapping.in_memory(offset_in(mapping, bytes) + at);
  return s;
}

// What need not fail a batch is dropped.
Status only_if_unreadable(Status s) {
  bool unreadable = s.code() == StatusCode::io_error || s.code() == StatusCode::corruption;
  return unreadable ? std::move(s) : Status();
}

constexpr uint32_t bit(SectionType type) { return uint32_t{1} << static_cast<uint32_t>(type); }

Bytes bytes_of(const void* p, uint64_t bytes) { return {static_cast<const std::byte*>(p), bytes}; }

Bytes base_of(const PackedOffsets& o, uint64_t row) {
  return bytes_of(o.bases + (row >> PackedOffsets::group_bits), sizeof(uint64_t));
}
Bytes number_of(const ValueRows& values, uint64_t row) {
  return bytes_of(static_cast<const std::byte*>(values.numbers) + row * values.number_width,
                  values.number_width);
}
Bytes delta_of(const PackedOffsets& o, uint64_t row) {
  return bytes_of(static_cast<const std::byte*>(o.deltas) + row * o.delta_width, o.delta_width);
}

}  // namespace

ColdReader::ColdReader(std::vector<const Segment*> segments, const ColdReadOptions& options)
    : options_(options), segments_(std::move(segments)) {
  for (uint32_t index = 0; index < segments_.size(); ++index) {
    const Segment* segment = segments_[index];
    const Mapping* mapping = segment->mapping();
    if (!mapping || mapping->bytes().empty() || segment->was_in_memory_lately(options.queries))
      continue;
    Bytes bytes = mapping->bytes();
    uint64_t pages = (bytes.size() + page_bytes - 1) / page_bytes;
    files_.push_back({segment, mapping, bytes.data(), pages, segment->intact(), index});
  }
  if (files_.empty()) return;
  uint64_t memory = machine_memory_bytes();
  if (!options_.window_bytes) {
    options_.window_bytes = std::clamp<uint64_t>(memory / 16, 1 << 20, 64 << 20);
  }
  whole_bytes_left_ = options_.whole_bytes ? options_.whole_bytes : memory / 4;
  options_.grain_rows = std::max<uint64_t>(options_.grain_rows, 1);
  std::sort(files_.begin(), files_.end(),
            [](const ColdFile& a, const ColdFile& b) { return a.base < b.base; });
  file_of_index_.assign(segments_.size(), no_file);
  for (uint32_t f = 0; f < files_.size(); ++f) file_of_index_[files_[f].index] = f;
}

ColdReader::~ColdReader() {
  for (const ColdFile& file : files_) {
    if (file.random) file.mapping->end_random();
    if (file.looked_at && !file.cold) file.segment->note_in_memory(options_.queries);
  }
}

void ColdReader::expect_random(ColdFile* file) {
  const bool by_page = file->segment->is_paged() && file->segment->keys().fixed;
  if (file->random || !(file->intact || by_page)) return;
  file->mapping->begin_random();
  file->random = true;
}

ColdReader::ColdFile* ColdReader::file_of(Location row) {
  if (!row.found() || row.index >= file_of_index_.size()) return nullptr;
  uint32_t file = file_of_index_[row.index];
  if (file == no_file || row.rank >= files_[file].segment->rows()) return nullptr;
  return &files_[file];
}

ColdReader::ColdFile* ColdReader::file_of(const std::byte* p) {
  auto after = std::upper_bound(files_.begin(), files_.end(), p,
                                [](const std::byte* at, const ColdFile& f) { return at < f.base; });
  if (after == files_.begin()) return nullptr;
  ColdFile& file = *--after;
  return p < file.base + file.mapping->bytes().size() ? &file : nullptr;
}

bool ColdReader::in_memory(const ColdFile& file, Bytes bytes) {
  return bytes.empty() || file.mapping->in_memory(static_cast<uint64_t>(bytes.data() - file.base));
}

ColdReader::ColdFile* ColdReader::missing_value(Bytes value) {
  if (value.empty()) return nullptr;
  ColdFile* file = file_of(value.data());
  return !file || file->whole & bit(SectionType::value_data) || in_memory(*file, value) ? nullptr
                                                                                        : file;
}

ColdReader::ColdFile* ColdReader::missing_position(Location row) {
  ColdFile* file = file_of(row);
  if (!file || file->whole & bit(SectionType::value_deltas)) return nullptr;
  const uint8_t* kinds = file->segment->kinds();
  if (kinds && !in_memory(*file, bytes_of(kinds + row.rank, 1))) return file;
  ValueRows values = file->segment->values();
  if (values.shared() && !in_memory(*file, number_of(values, row.rank))) return file;
  const PackedColumn& column = values.column;
  uint64_t position = values.position(row.rank);
  if (column.fixed || position >= column.size) return nullptr;
  for (uint64_t end : {position, position + 1}) {
    if (!in_memory(*file, base_of(column.offsets, end)) ||
        !in_memory(*file, delta_of(column.offsets, end)))
      return file;
  }
  return nullptr;
}

// Touches nothing that is not in memory.
ColdReader::ColdFile* ColdReader::missing_row(Location row) {
  if (ColdFile* file = missing_position(row)) return file;
  ColdFile* file = file_of(row);
  return file ? missing_value(file->segment->values()[row.rank]) : nullptr;
}

void ColdReader::mark_pages(ColdFile* file, uint64_t first, uint64_t last) {
  if (file->marks.empty()) file->marks.resize((file->pages + 63) / 64);
  file->first_word = std::min(file->first_word, first / 64);
  file->last_word = std::max(file->last_word, last / 64);
  for (uint64_t page = first; page <= last;) {
    uint64_t bit = page % 64, n = std::min(64 - bit, last - page + 1);
    uint64_t bits = (~uint64_t{0} >> (64 - n)) << bit;
    uint64_t& word = file->marks[page / 64];
    marked_bytes_ += static_cast<uint64_t>(std::popcount(bits & ~word)) * page_bytes;
    word |= bits;
    page += n;
  }
}

void ColdReader::mark(ColdFile* file, Bytes bytes) {
  if (bytes.empty()) return;
  auto offset = static_cast<uint64_t>(bytes.data() - file->base);
  uint64_t first = offset / page_bytes;
  uint64_t last = std::min((offset + bytes.size() - 1) / page_bytes, file->pages - 1);
  if (file->intact) return mark_pages(file, first, last);
  // A block is read whole when it is checked, and where that of a page's checksum is not.
  while (first <= last) {
    uint64_t block_first = first / pages_per_block * pages_per_block;
    uint64_t block_last = std::min(block_first + pages_per_block - 1, file->pages - 1);
    FileRange sum{};
    if (file->segment->is_verified(first * page_bytes)) {
      mark_pages(file, first, std::min(last, block_last));
    } else if (bytes.size() <= page_bytes && file->segment->checks_page(first * page_bytes, &sum)) {
      mark_pages(file, first, std::min(last, block_last));
      const uint64_t block = sum.offset / segment_block_bytes * pages_per_block;
      if (!file->segment->is_verified(sum.offset))
        mark_pages(file, block, std::min(block + pages_per_block, file->pages) - 1);
    } else {
      mark_pages(file, block_first, block_last);
    }
    first = block_last + 1;
  }
}

void ColdReader::mark_position(Location row) {
  ColdFile* file = file_of(row);
  if (!file || file->whole & bit(SectionType::value_deltas)) return;
  if (const uint8_t* kinds = file->segment->kinds()) mark(file, bytes_of(kinds + row.rank, 1));
  ValueRows values = file->segment->values();
  if (values.shared()) return mark(file, number_of(values, row.rank));
  mark_offsets(file, row.rank);
}

// position: in the column of values. One out of range is left to the checks.
void ColdReader::mark_offsets(ColdFile* file, uint64_t position) {
  PackedColumn column = file->segment->values().column;
  if (column.fixed || position >= column.size) return;
  for (uint64_t end : {position, position + 1}) {
    mark(file, base_of(column.offsets, end));
    mark(file, delta_of(column.offsets, end));
  }
}

// Where a shared value lies, of rows whose numbers have been prefetched; may make the window
// smaller.
Status ColdReader::prefetch_shared_offsets(std::span<const Location> rows, uint64_t begin,
                                           uint64_t* end) {
  bool none = std::none_of(files_.begin(), files_.end(), [](const ColdFile& f) {
    ValueRows values = f.segment->values();
    return values.shared() && !values.column.fixed;
  });
  if (none) return {};
  STRIDE_TRY(prefetch_dense(offset_sections));
  return prefetch_window(begin, *end, options_.window_bytes / 4, end, [&](uint64_t i) {
    ColdFile* file = file_of(rows[i]);
    if (!file || file->whole & bit(SectionType::value_deltas)) return;
    ValueRows values = file->segment->values();
    if (values.shared()) mark_offsets(file, values.position(rows[i].rank));
  });
}

void ColdReader::mark_value(Bytes value) {
  if (!value.empty()) mark_value(file_of(value.data()), value);
}

void ColdReader::mark_value(ColdFile* file, Bytes value) {
  if (!file || value.empty() || file->whole & bit(SectionType::value_data)) return;
  mark(file, value);
  // A short value is copied together with what follows it.
  auto offset = static_cast<uint64_t>(value.data() - file->base);
  uint64_t page = std::min((offset + copied_bytes - 1) / page_bytes, file->pages - 1);
  if (value.size() < copied_bytes) mark_pages(file, page, page);
}

std::vector<FileRange> ColdReader::marked_ranges(const ColdFile& file, uint64_t gap_bytes) const {
  std::vector<FileRange> ranges;
  for (uint64_t w = file.first_word; w <= file.last_word; ++w) {
    for (uint64_t word = file.marks[w]; word;) {
      auto first = static_cast<uint64_t>(std::countr_zero(word));
      auto n = static_cast<uint64_t>(std::countr_one(word >> first));
      word = first + n == 64 ? 0 : word >> (first + n) << (first + n);
      FileRange range{(w * 64 + first) * page_bytes, n * page_bytes};
      uint64_t end = ranges.empty() ? 0 : ranges.back().offset + ranges.back().bytes;
      if (!ranges.empty() && range.offset - end <= gap_bytes) {
        ranges.back().bytes = range.offset + range.bytes - ranges.back().offset;
      } else {
        ranges.push_back(range);
      }
    }
  }
  return ranges;
}

Status ColdReader::prefetch_marked(const ColdFile& file) const {
  Status s = only_if_unreadable(file.mapping->fetch(marked_ranges(file, options_.gap_bytes)));
  // The fault may lie in a gap, which nobody needs.
  return s.ok() ? s : only_if_unreadable(file.mapping->fetch(marked_ranges(file, 0)));
}

// What is checked by the page now is checked by the block once a good part of it has been read.
void ColdReader::fill_blocks(ColdFile* file) {
  constexpr uint64_t of_block = (uint64_t{1} << pages_per_block) - 1;
  constexpr int good_part = 4;
  if (file->intact || !file->segment->is_paged()) return;
  for (uint64_t w = file->first_word; w <= file->last_word; ++w)
    for (uint64_t at = 0; at < 64 && w * 64 + at + pages_per_block <= file->pages;
         at += pages_per_block)
      if (std::popcount(file->marks[w] >> at & of_block) >= good_part)
        file->marks[w] |= of_block << at;
}

Status ColdReader::prefetch_marked() {
  Status failure;
  for (ColdFile& file : files_) {
    if (file.first_word > file.last_word) continue;
    fill_blocks(&file);
    if (failure.ok()) failure = prefetch_marked(file);
    std::fill(file.marks.begin() + static_cast<ptrdiff_t>(file.first_word),
              file.marks.begin() + static_cast<ptrdiff_t>(file.last_word) + 1, 0);
    file.first_word = ~uint64_t{0};
    file.last_word = 0;
  }
  marked_bytes_ = 0;
  return failure;
}

// Whether sections may be prefetched whole and are not larger than so many bytes.
bool ColdReader::fits(const ColdFile& file, Sections sections, uint64_t worth_bytes) const {
  uint64_t bytes = 0;
  for (SectionType type : sections) bytes += file.segment->section(type).size();
  return bytes <= std::min(whole_bytes_left_, worth_bytes);
}

Status ColdReader::prefetch_sections(ColdFile* file, Sections sections) {
  for (SectionType type : sections) {
    Bytes bytes = file->segment->section(type);
    if (sample(*file->mapping, bytes, samples_).cold == 0) {
      file->whole |= bit(type);
      continue;
    }
    file->cold = true;
    STRIDE_TRY(prefetch_whole(*file->segment, bytes));
    // This process may have less memory than the machine: what does not stay is no use.
    ColdSample after = sample(*file->mapping, bytes);
    if (after.cold * 4 > after.pages) {
      whole_bytes_left_ = 0;
      return {};
    }
    whole_bytes_left_ -= bytes.size();
    file->whole |= bit(type);
  }
  return {};
}

Status ColdReader::prefetch_search(uint64_t queries) {
  static constexpr SectionType tree[] = {SectionType::key_filter, SectionType::tree};
  static constexpr SectionType keys[] = {SectionType::key_bases, SectionType::key_deltas,
                                         SectionType::key_data};
  uint64_t worth_bytes = queries * alone_to_whole * page_bytes;
  samples_ = std::clamp<uint64_t>(queries / 16, 1, max_samples);
  for (ColdFile& file : files_) {
    file.looked_at = true;
    for (Sections sections : {Sections(tree), Sections(keys)}) {
      if (fits(file, sections, worth_bytes)) {
        STRIDE_TRY(prefetch_sections(&file, sections));
      } else if (sample(*file.mapping, file.segment->section(sections.back()),
                        std::min<uint64_t>(samples_, 4))
                     .cold > 0) {
        file.cold = true;
        expect_random(&file);
      }
    }
  }
  return {};
}

// Sections of which so much is needed that it is best to read all of them.
Status ColdReader::prefetch_dense(Sections sections) {
  for (ColdFile& file : files_) {
    if (file.cold_rows == 0 || file.whole & bit(sections.back())) continue;
    const bool by_page =
        file.intact || (file.segment->is_paged() && sections.back() == SectionType::value_data);
    uint64_t unit = by_page ? page_bytes : segment_block_bytes;
    uint64_t worth_bytes = file.cold_rows * unit * many_to_whole;
    if (fits(file, sections, worth_bytes)) STRIDE_TRY(prefetch_sections(&file, sections));
  }
  return {};
}

Status ColdReader::prefetch_rows(std::span<const Location> rows, uint64_t begin, uint64_t* end) {
  *end = rows.size();
  if (idle() || begin >= rows.size()) return {};
  auto missing = [&](uint64_t i) { return missing_row(rows[begin + i]); };
  if (!is_cold(rows.size() - begin, missing)) return {};
  uint64_t n;
  STRIDE_TRY(prefetch_dense(position_sections));
  STRIDE_TRY(prefetch_window(begin, rows.size(), options_.window_bytes / 4, &n,
                             [&](uint64_t i) { mark_position(rows[i]); }));
  STRIDE_TRY(prefetch_shared_offsets(rows, begin, &n));
  STRIDE_TRY(prefetch_dense(value_sections));
  return prefetch_window(begin, n, options_.window_bytes, end, [&](uint64_t i) {
    if (ColdFile* file = file_of(rows[i])) mark_value(file, file->segment->values()[rows[i].rank]);
  });
}

Status ColdReader::prefetch_positions(std::span<const Location> rows, uint64_t begin,
                                      uint64_t* end) {
  bool intact = std::all_of(files_.begin(), files_.end(), [](const auto& f) { return f.intact; });
  if (!intact) return prefetch_rows(rows, begin, end);
  *end = rows.size();
  bool all_known = std::all_of(files_.begin(), files_.end(), [](const ColdFile& f) {
    ValueRows values = f.segment->values();
    return values.column.fixed && !values.shared() && !f.segment->kinds();
  });
  if (all_known || begin >= rows.size()) return {};
  auto missing = [&](uint64_t i) { return missing_position(rows[begin + i]); };
  if (!is_cold(rows.size() - begin, missing)) return {};
  STRIDE_TRY(prefetch_dense(position_sections));
  STRIDE_TRY(prefetch_window(begin, rows.size(), options_.window_bytes, end,
                             [&](uint64_t i) { mark_position(rows[i]); }));
  return prefetch_shared_offsets(rows, begin, end);
}

Status prefetch_whole(const Segment& segment, Bytes bytes) {
  const Mapping* mapping = segment.mapping();
  if (!mapping || bytes.empty()) return {};
  if (sample(*mapping, bytes).cold == 0) return {};
  uint64_t offset = offset_in(*mapping, bytes);
  FileRange range{offset / page_bytes * page_bytes, 0};
  range.bytes = offset + bytes.size() - range.offset;
  return only_if_unreadable(mapping->fetch({&range, 1}));
}

}  // namespace stride

// Reads what a batch is going to touch ahead of it, where it lies in mapped files that are not in
// memory: in file order and with many reads in flight, instead of a page fault at a time.
//
//   STRIDE_TRY(prefetch_whole(segment, segment.tree()));   // before its first use:
//   IndexedSegment::prepare
//
//   ColdReader cold(segments);                          // newest first, as Location::index counts
//   STRIDE_TRY(cold.prefetch_search(queries.size));
//   ... find: locations[n] ...
//   for (uint64_t begin = 0, end; begin < n; begin = end) {
//     STRIDE_TRY(cold.prefetch_rows({locations, n}, begin, &end));
//     ... read rows [begin, end) through the mapping, on all threads ...
//   }
//
// The mapping stays the one way in which rows are read. These calls only see to it that the page
// cache holds what it will be asked for, so leaving one out costs time and changes no answer. Each
// looks at a sample of the pages first (one of 128 rows, 64 at most, about a microsecond each) and
// does nothing else where nearly all are in memory, and nothing at all where no segment is mapped.
//
// Windows. A pass over many rows is cut into windows of about `window_bytes` of pages, so that
// those of one are not pushed out by the next before they are used: hence begin and *end. Where the
// sample says that a good part of a section will be needed, and it fits `whole_bytes`, it is read
// from one end to the other instead.
//
// Where a reader has found that pages are missing, its mappings read single pages until it ends:
// else the read-ahead around each stray fault (megabytes, on some machines) would push out what has
// been prefetched. Segments that are not known to be intact are left out, for their checks read 64
// KiB at a time, but for those with checksums of pages and keys of one width.
//
// Errors. io_error and corruption (the file ends early) mean that bytes which the rows need cannot
// be read: the batch must fail with that, for reading them through the mapping ends the process
// (SIGBUS). Bytes that are read only because they lie between needed ones fail nothing. Where
// memory or another limit runs out nothing is reported, and the mapping reads what was not
// prefetched. Damaged bytes are prefetched like others; the checks that follow find them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/backend.h"
#include "storage/column.h"
#include "storage/segment.h"
#include "storage/segment_format.h"
#include "storage/status.h"

namespace stride {

struct ColdReadOptions {
  // The keys of the batch. A segment in which one of much the same size found nothing missing is
  // not looked at again for some milliseconds. 0: not known.
  uint64_t queries = 0;
  // Most bytes of needed pages in a window. 0: 64 MiB, or a sixteenth of the machine's memory
  // where that is less.
  uint64_t window_bytes = 0;
  // Needed pages with fewer bytes between them are one read.
  uint64_t gap_bytes = 16 << 10;
  // Windows end at multiples of this many rows, so that a reader's tasks stay whole.
  uint64_t grain_rows = 2048;
  // Sections that are larger together are not prefetched whole. 0: a quarter of the machine's
  // memory.
  uint64_t whole_bytes = 0;
};

// For one thread and one batch; the segments must outlive it. Calls may throw std::bad_alloc.
class ColdReader {
 public:
  explicit ColdReader(std::vector<const Segment*> segments, const ColdReadOptions& options = {});
  ~ColdReader();
  ColdReader(const ColdReader&) = delete;
  ColdReader& operator=(const ColdReader&) = delete;

  // No segment is mapped: every call returns at once, with all rows in one window.
  bool idle() const { return files_.empty(); }

  // For a search of so many keys in every segment: prefetches each tree with its filter, and each
  // key column, that has fewer than 8 pages for each of those keys, for reading it whole takes no
  // longer than reading the pages that they need one by one. Of others nothing tells which pages a
  // search is going to touch, and the mapping reads them.
  Status prefetch_search(uint64_t queries);

  // For reading rows [begin, *end) of `rows`: their packed offsets and kinds, then their values.
  // *end is rows.size() or a multiple of grain_rows, and larger than begin where begin is less than
  // rows.size(). Rows that were not found are passed over. Precondition: a search has read the
  // rows' keys.
  Status prefetch_rows(std::span<const Location> rows, uint64_t begin, uint64_t* end);

  // As prefetch_rows, for finding out where values lie and how long they are. The values of
  // segments that are not known to be intact are prefetched too, as IndexedSegment::ensure_rows()
  // reads those.
  Status prefetch_positions(std::span<const Location> rows, uint64_t begin, uint64_t* end);

  // As prefetch_rows, for the bytes value(i) of rows i in [begin, *end) of n, wherever they lie:
  // what is not in a mapped segment is passed over.
  template <class Value>
  Status prefetch_values(uint64_t begin, uint64_t n, const Value& value, uint64_t* end) {
    *end = n;
    if (idle() || begin >= n) return {};
    if (!is_cold(n - begin, [&](uint64_t i) { return missing_value(value(begin + i)); })) return {};
    STRIDE_TRY(prefetch_dense(value_sections));
    return prefetch_window(begin, n, options_.window_bytes, end,
                           [&](uint64_t i) { mark_value(value(i)); });
  }

 private:
  // Needed pages of a mapped file, a bit each.
  struct ColdFile {
    const Segment* segment;
    const Mapping* mapping;
    const std::byte* base;
    uint64_t pages;
    bool intact;
    uint32_t index;       // of the segment
    bool random = false;  // begin_random() was called
    bool looked_at = false;
    bool cold = false;              // something was not in memory
    uint32_t whole = 0;             // sections that were prefetched whole: a bit each, by type
    uint64_t cold_rows = 0;         // about so many rows need a page that is not in memory
    std::vector<uint64_t> marks{};  // empty until one is set
    uint64_t first_word = ~uint64_t{0}, last_word = 0;  // of the marks that are set
  };

  // Where more than this share of a sample is not in memory, the rest is worth a look.
  static constexpr uint64_t warm_share = 32;
  static constexpr uint64_t rows_a_sample = 128;
  static constexpr uint64_t max_samples = 64;

  using Sections = std::span<const SectionType>;
  static constexpr SectionType value_sections[] = {SectionType::value_data};
  static constexpr SectionType position_sections[] = {
      SectionType::kinds, SectionType::value_numbers, SectionType::value_bases,
      SectionType::value_deltas};
  static constexpr SectionType offset_sections[] = {SectionType::value_bases,
                                                    SectionType::value_deltas};

  // missing(i): the file that holds a page which row i of n needs and which is not in memory, or
  // null. Sets cold_rows of each file.
  template <class Missing>
  bool is_cold(uint64_t n, const Missing& missing) {
    uint64_t samples =
        std::clamp<uint64_t>(n / rows_a_sample, std::min<uint64_t>(n, 2), max_samples);
    uint64_t cold = 0;
    for (ColdFile& file : files_) file.cold_rows = 0;
    for (uint64_t s = 0; s < samples; ++s) {
      ColdFile* file = missing((2 * s + 1) * n / (2 * samples));
      if (!file) continue;
      file->cold_rows += n / samples;
      file->cold = true;
      ++cold;
    }
    return cold * warm_share > samples;
  }
  // Marks rows from `begin` on until the window is full, and prefetches the marked pages.
  template <class Mark>
  Status prefetch_window(uint64_t begin, uint64_t n, uint64_t bytes, uint64_t* end,
                         const Mark& mark) {
    for (ColdFile& file : files_) expect_random(&file);
    uint64_t i = begin;
    while (i < n && (marked_bytes_ < bytes || i % options_.grain_rows != 0 || i == begin))
      mark(i++);
    *end = i;
    return prefetch_marked();
  }

  ColdFile* file_of(Location row);
  ColdFile* file_of(const std::byte* p);
  static bool in_memory(const ColdFile& file, Bytes bytes);
  ColdFile* missing_value(Bytes value);
  ColdFile* missing_position(Location row);
  ColdFile* missing_row(Location row);
  void mark(ColdFile* file, Bytes bytes);
  void mark_pages(ColdFile* file, uint64_t first, uint64_t last);
  void mark_position(Location row);
  void mark_offsets(ColdFile* file, uint64_t position);
  Status prefetch_shared_offsets(std::span<const Location> rows, uint64_t begin, uint64_t* end);
  void mark_value(Bytes value);
  void mark_value(ColdFile* file, Bytes value);
  bool fits(const ColdFile& file, Sections sections, uint64_t worth_bytes) const;
  static void expect_random(ColdFile* file);
  Status prefetch_sections(ColdFile* file, Sections sections);
  Status prefetch_dense(Sections sections);
  static void fill_blocks(ColdFile* file);
  Status prefetch_marked();
  Status prefetch_marked(const ColdFile& file) const;
  std::vector<FileRange> marked_ranges(const ColdFile& file, uint64_t gap_bytes) const;

  ColdReadOptions options_;
  std::vector<const Segment*> segments_;
  std::vector<ColdFile> files_;          // of the segments that are mapped, by address
  std::vector<uint32_t> file_of_index_;  // of a segment; none: it is resident
  uint64_t samples_ = max_samples;       // of a section
  uint64_t marked_bytes_ = 0;
  uint64_t whole_bytes_left_ = 0;
};

// Prefetches bytes of a segment that are going to be read from one end to the other. Does nothing
// where the segment is resident, or a sample of them (32 pages) in memory. Errors as above.
Status prefetch_whole(const Segment& segment, Bytes bytes);

}  // namespace stride

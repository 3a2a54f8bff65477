// What a segment's file still has, whatever its bytes are: which blocks are damaged, what rows need
// them, and which rows can be read all the same.
//
//   Result<SegmentSurvey> survey = SegmentSurvey::read(fs, "db/000007.seg", 7);
//   for (const DamagedBytes& d : survey->damage()) tell(d.section, d.offset, d.rows);
//   Bytes key;
//   for (uint64_t row = 0; row < survey->rows(); ++row) if (survey->find_key(row, &key)) use(key);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/file.h"
#include "storage/row_intervals.h"
#include "storage/segment_layout.h"
#include "storage/status.h"

namespace stride {

struct SegmentParts;

// Damaged blocks that lie together, or a part of the file that is in no block.
struct DamagedBytes {
  std::string section;  // "key_data", "key_data to tree", "header", "tables" or "footer"
  uint64_t offset = 0, bytes = 0;
  std::string what;
  // What reads of these rows need them; empty: reads need none of them.
  RowInterval rows{};
};

// Reads every byte once. Thread-compatible; what it hands out is valid as long as it lives.
class SegmentSurvey {
 public:
  // corruption: nothing can be read from the file, since its header, its tables or too much of both
  // are damaged, or since it is another segment's. unsupported_version, not_found, io_error.
  static Result<SegmentSurvey> read(FileSystem& fs, const std::string& path, uint64_t id);

  const std::string& path() const { return path_; }
  uint64_t rows() const { return layout_.header.rows; }
  const SegmentLayout& layout() const { return layout_; }
  // In the order of their offsets. Empty: every byte is as it was written.
  const std::vector<DamagedBytes>& damage() const { return damage_; }
  // The names of the sections in which these bytes of the file lie.
  std::string section_name(uint64_t offset, uint64_t bytes) const;
  // Whether opening the file fails: its header, tables, footer or statistics are damaged.
  bool is_unreadable() const { return is_unreadable_; }

  // False where bytes are damaged that it needs: a block or, of the keys and values themselves, a
  // page where these have checksums. find_value(): of a tombstone, anything.
  bool find_key(uint64_t row, Bytes* key) const;
  bool find_value(uint64_t row, Bytes* value) const;
  bool find_kind(uint64_t row, EntryKind* kind) const;
  // No key of the rows is less than *from or greater than *to: the keys of the first and the last
  // of them or, where those are damaged, of the nearest rows that are not. Nothing: not known.
  void find_bounds(RowInterval rows, std::optional<Bytes>* from, std::optional<Bytes>* to) const;

 private:
  explicit SegmentSurvey(std::string path) : path_(std::move(path)) {}
  Status load(FileSystem& fs, uint64_t id);
  void check_blocks(const SegmentParts& parts);
  void find_rows();
  void find_row_bytes(std::vector<RowInterval>* rows_of_blocks) const;
  RowInterval rows_of_block(uint64_t block) const;
  void add(DamagedBytes damaged);
  bool is_whole(Bytes bytes) const;
  // The same of bytes of a key or a value.
  bool is_row_whole(Bytes bytes) const;
  bool is_page_whole(uint64_t page) const;
  // The first and the last key of all, as the section statistics has them.
  bool find_ends(Bytes* first, Bytes* last) const;
  bool find_offsets(const PackedColumn& column, uint64_t row, uint64_t* begin, uint64_t* end) const;
  bool find_row(const PackedColumn& column, uint64_t row, uint64_t max_bytes, Bytes* bytes) const;
  bool find_position(uint64_t row, uint64_t* position) const;

  std::string path_;
  std::shared_ptr<const Mapping> mapping_;
  std::string copy_;  // of a file that can't be read as a whole
  SegmentLayout layout_;
  std::vector<std::string> block_faults_;  // by block; empty: it is whole
  std::vector<bool> damaged_;              // by block: its sections are not as they were written
  std::vector<bool> told_;                 // by block: those, and blocks of damaged padding
  std::vector<DamagedBytes> damage_;
  bool is_unreadable_ = false;
};

}  // namespace stride

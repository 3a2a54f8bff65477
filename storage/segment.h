// A segment: one immutable file that holds a sorted key column, values and a tree image.
//
//   Result<std::shared_ptr<Segment>> segment = Segment::open(fs, "db/000007.seg", 7);
//   PackedColumn keys = (*segment)->keys();
//   ValueRows values = (*segment)->values();
//   Status s = (*segment)->ensure(&keys.data[0], 64);   // checked against its checksum, once
//
// docs/format-segment.md has every byte; storage/segment_format.h has the structs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "storage/block_guard.h"
#include "storage/column.h"
#include "storage/file.h"
#include "storage/segment_format.h"
#include "storage/status.h"

namespace stride {

class PieceWriter;

// Thread-safe: all members may be called from any number of threads.
class Segment final : public BlockGuard {
 public:
  // Reads header, section table and checksum table, and checks those; the sections' own blocks are
  // checked as they are read (ensure), each once. Costs no more than a few pages of the file.
  // corruption, unsupported_version, not_found or io_error, naming file and offset.
  static Result<std::shared_ptr<Segment>> open(FileSystem& fs, const std::string& path,
                                               uint64_t id);
  // In place of one that cannot be opened: it has no rows, and whatever is asked of it fails so.
  static std::shared_ptr<Segment> unreadable(const std::string& path, uint64_t id, Status why);
  // Drops what is still to be written.
  ~Segment() override;

  uint64_t id() const;
  uint64_t rows() const;
  uint64_t tombstones() const;
  const std::string& path() const;
  uint64_t bytes_on_disk() const;
  // What sharing values has saved of the file; 0 where they are not shared.
  uint64_t saved_bytes() const;
  uint64_t resident_bytes() const;  // of memory that is held besides the page cache
  // The file that the bytes below are mapped from; null where they are resident.
  const Mapping* mapping() const;
  // Readers' notes: a batch of so many queries found nothing of the mapped file missing in memory.
  // Nothing is known of a batch that is much larger than one noted some milliseconds ago.
  void note_in_memory(uint64_t queries) const;
  bool was_in_memory_lately(uint64_t queries) const;

  PackedColumn keys() const;
  // A tombstone has an empty value or, where rows share values, any.
  ValueRows values() const;
  const uint8_t* kinds() const;           // EntryKind of each row; null: all are puts
  Bytes tree() const;                     // the tree image; empty: none
  Bytes section(SectionType type) const;  // empty where absent
  Bytes first_key() const;                // kept in the statistics section, checked at open
  Bytes last_key() const;

  // Where the writer has left the file to threads in the background: whether they are still at it;
  // and their result, once they are not. io_error: the file is not whole and never will be.
  bool being_written() const;
  Status finish_write() const;

  // Whether this object was made by the writer of the file, which needs no more checks.
  bool was_written_here() const;
  // True once every block that rows are read from is known to be intact (at once for a segment that
  // was just written).
  bool intact() const { return intact_.load(std::memory_order_acquire); }
  // This, or null where intact(): what an IndexView wants.
  BlockGuard* guard() const { return intact() ? nullptr : const_cast<Segment*>(this); }
  // Also checks that offsets ascend and lead to no place outside the column, that numbers of shared
  // values are in range, and that entry kinds are known. A few keys or values may be checked by the
  // page, until a good part of their block has been read.
  bool ensure(const void* p, uint64_t bytes) override;
  // All of a section, also of those that intact() says nothing of: key_sample and page_checksums.
  bool ensure_section(SectionType type);
  // Whether it would read no more than this page of the file, and where its checksum lies.
  bool checks_page(uint64_t offset, FileRange* checksum) const;
  // Whether there are checksums of pages.
  bool is_paged() const;
  // Whether ensure() has checked the block of segment_block_bytes that holds this byte of the file.
  bool is_verified(uint64_t offset) const;
  Status failure() const override;
  Status open_failure() const;  // not ok: unreadable()
  // Corruption of a section, for what others find in it. at: an offset in the section.
  Status damage(SectionType type, const std::string& what, uint64_t at = 0) const;
  // Reads and checks every byte that this object holds: of the mapped file, or of the resident
  // image (open the file anew to check what is on the disk). Waits for finish_write().
  Status verify();

 private:
  friend class SegmentWriter;
  struct State;
  explicit Segment(std::unique_ptr<State> state);
  // A segment over the bytes of a whole file, which `owner` keeps alive, and `writing` too.
  static Result<std::shared_ptr<Segment>> adopt(const std::string& path, uint64_t id, Bytes file,
                                                std::shared_ptr<const void> owner,
                                                uint64_t resident_bytes, bool intact,
                                                PieceWriter* writing = nullptr);
  bool check_blocks(uint64_t first, uint64_t last);
  Status read_statistics();

  std::unique_ptr<State> state_;
  std::atomic<bool> intact_{false};
};

}  // namespace stride

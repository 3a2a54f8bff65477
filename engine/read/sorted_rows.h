// The rows of one source of a table in key order: of a run of segments, or of a sorted run of a
// memtable. A row's number is its rank. A gap lies between two ranks: gap 3 has 3 rows below it.
//
//   uint64_t gap;
//   SortedRow row;
//   STRIDE_TRY(rows.rank(key, /*past_equal=*/false, &gap));
//   STRIDE_TRY(rows.above(gap, &row));              // the first row that is not below the key
//   if (row.is_there && !row.is_tombstone) STRIDE_TRY(rows.value(row, &value));
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/memtable/tail_merger.h"
#include "gpu/backend.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// A view of a row.
struct SortedRow {
  bool is_there = false;
  bool is_tombstone = false;
  uint64_t rank = 0;
  Bytes key;
  const TailRow* tail_row = nullptr;  // null: it is a segment's
};

// Immutable, so that any threads may use it at once. The version must outlive it.
class SortedRows {
 public:
  // segments: of one run, prepared, with rows, in any order.
  explicit SortedRows(std::vector<const IndexedSegment*> segments);
  // run: of the tail. Rows of later commits do not count.
  SortedRows(std::shared_ptr<const SortedRun> run, const OrderedTail& tail);

  uint64_t size() const { return size_; }
  // There are no tombstones, and above() and below() pass over none but erased rows.
  bool has_only_puts() const { return has_only_puts_; }
  // The only segment; null: there are several, or none.
  const IndexedSegment* only_segment() const {
    return parts_.size() == 1 ? parts_[0].segment : nullptr;
  }

  // How many keys are smaller than `key` (or, if past_equal, not larger).
  Status rank(Bytes key, bool past_equal, uint64_t* rank) const;
  // Memory that ranks() reuses.
  struct Scratch {
    std::vector<uint32_t> ranks;
    std::vector<uint32_t> parts, rows;  // of the queries
    std::vector<std::byte> bytes;
    std::vector<uint64_t> offsets;
  };
  // The same for a batch of few thousand queries. `ranks` has room for queries.size of them.
  Status ranks(TreeIndex& trees, const KeyColumn& queries, bool past_equal, Scratch* scratch,
               uint64_t* ranks) const;

  // The first row from the gap on, and the last one below it, that is there. The bytes of key and
  // kind have been checked.
  Status above(uint64_t gap, SortedRow* row) const;
  Status below(uint64_t gap, SortedRow* row) const;
  // For a call of these that is about to come.
  void prefetch(uint64_t rank) const;
  // How many rows between two gaps are not erased. Precondition: has_only_puts().
  uint64_t rows_between(uint64_t first, uint64_t end) const;
  Status value(const SortedRow& row, Bytes* value) const;

 private:
  // A segment, and the ranks [begin, end) of its rows.
  struct Part {
    const IndexedSegment* segment;
    uint64_t begin, end;
  };

  // Precondition: rank < size().
  const Part& part_of(uint64_t rank) const;
  // The part that a key belongs to: the first one that does not end below it, or the last one.
  size_t part_for(Bytes key) const;
  // False: the snapshot does not see the run's row.
  bool set_run_row(uint64_t rank, SortedRow* row) const;
  Status set_row(const Part& part, uint64_t rank, SortedRow* row) const;
  Status ranks_in_part(TreeIndex& trees, const Part& part, const KeyColumn& queries,
                       bool past_equal, Scratch* scratch) const;

  std::vector<Part> parts_;  // in key order
  std::shared_ptr<const SortedRun> run_;
  OrderedTail tail_{};  // of the run
  uint64_t size_ = 0;
  bool has_only_puts_ = true;
};

// All sources of the table, newest first. tails: newer than its segments, newest first.
// corruption, io_error: a segment cannot be searched.
Status sorted_rows_of(const TableVersion& table, std::span<const OrderedTail> tails,
                      std::vector<SortedRows>* sources);

}  // namespace stride

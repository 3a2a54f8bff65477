// The newest rows of a table in key order: those of the memtable and of sealed ones before it.
//
//   TailMerger rows(tails, options);      // the tails' runs, newest first
//   for (; const TailRow* row = rows.row(); rows.next()) use(*row);   // tombstones, too
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/memtable/tail_order.h"
#include "engine/scan.h"
#include "storage/expiry.h"

namespace stride {

// A tail as a snapshot sees it.
struct OrderedTail {
  const TableTail* tail;
  uint32_t commit;
  std::shared_ptr<const TailOrder::Runs> runs;  // up to the commit
  ExpiryCheck expiry{};

  // Whether the row is no entry, but says that there is none.
  bool hides(const TailRow& row) const {
    return row.kind == EntryKind::tombstone || expiry.hides(row.value());
  }
};

// Not thread-safe. The memtables must outlive it. Runs are few: their next rows are kept in order
// by insertion.
class TailMerger {
 public:
  // tails: newest first. Goes over the keys within the options' bounds, in their direction.
  TailMerger(const std::vector<OrderedTail>& tails, const ScanOptions& options);

  // The newest row of the key that comes next; null: there is none.
  const TailRow* row() const { return row_; }
  // Whether it says that there is no entry. Precondition: row() is not null.
  bool is_tombstone() const {
    return row_->kind == EntryKind::tombstone || expiry_.hides(row_->value());
  }
  // Precondition: row() is not null.
  void next();

 private:
  struct Source {
    std::shared_ptr<const SortedRun> run;
    const TableTail* tail;
    uint32_t commit;
    uint32_t age;          // smaller: newer
    uint64_t first, last;  // what is left of the run
    uint64_t ahead;        // so many of these rows have been prefetched
    const TailRow* row;    // the next one
  };

  // Prefetches some rows more.
  void prefetch_ahead(Source* source, uint64_t rows) const;
  // Sets the source's row to its next one that the snapshot sees. False: there is none.
  bool load(Source* source) const;
  bool is_before(const Source& a, const Source& b) const;
  // Moves the first source on, and to where it belongs then.
  void advance_first();

  const bool reverse_;
  const ExpiryCheck expiry_;     // the same of all tails, which are of one table
  std::vector<Source> sources_;  // by key, and those of equal keys by age
  const TailRow* row_ = nullptr;
};

}  // namespace stride

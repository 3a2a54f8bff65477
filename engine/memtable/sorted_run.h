// Rows of a table's tail in key order, the newest of each key: where they lie, for rows never move.
//
//   auto run = SortedRun::make(executor, rows);              // in the order in which they came
//   auto both = SortedRun::merge(newer, older);
//   for (uint64_t i = run->rank(from, false); i < run->size(); ++i) use(*(*run)[i]);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/executor.h"
#include "engine/memtable/table_tail.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// Immutable. The tail must outlive it.
class SortedRun {
 public:
  using Rows = std::vector<const TailRow*>;

  // rows: not empty, in the order in which they were inserted.
  static Result<std::shared_ptr<const SortedRun>> make(Executor& executor, Rows rows);
  // newer: all its rows were inserted after those of `older`.
  static std::shared_ptr<const SortedRun> merge(const SortedRun& newer, const SortedRun& older);

  uint64_t size() const { return rows_.size(); }
  const TailRow* operator[](uint64_t i) const { return rows_[i]; }
  const Rows& rows() const { return rows_; }
  // How many keys are smaller than `key` (or, if past_equal, not larger).
  uint64_t rank(Bytes key, bool past_equal) const;

 private:
  // Sorts few rows.
  void sort(Rows rows);
  // Takes rows that have been sorted.
  void set(Rows rows);
  // Rows that are still to be merged.
  struct Span {
    const TailRow* const* rows;
    const uint64_t* words;
    size_t size;
    void skip(size_t n) {
      rows += n;
      words += n;
      size -= n;
    }
  };
  // All rows, with the words behind so many bytes, which are in *memory if they are others.
  Span span_after(uint64_t shared, std::vector<uint64_t>* memory) const;

  Rows rows_;
  uint64_t shared_ = 0;          // bytes that all keys begin with
  std::vector<uint64_t> words_;  // of each key: the 8 bytes after those as a number, zeros at its end
};

}  // namespace stride

// Rows of a table's tail in key order, the newest of each key: where they lie, for rows never move.
//
//   auto run = SortedRun::make(executor, rows);              // in the order in which they came
//   auto both = SortedRun::merge(newer, older);
//   for (uint64_t i = run->rank(from, false); i < run->size(); ++i) use(*(*run)[i]);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
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

  uint64_t size() const { return entries_.size(); }
  const TailRow* operator[](uint64_t i) const { return entries_[i].row; }
  Rows rows() const;
  // How many keys are smaller than `key` (or, if past_equal, not larger).
  uint64_t rank(Bytes key, bool past_equal) const;

 private:
  // Side by side, so that whoever has found a row's place has its address.
  struct Entry {
    uint64_t word;  // 8 bytes of the key, after those that all share; zeros at its end
    const TailRow* row;
  };

  // Sorts few rows.
  void sort(const Rows& rows);
  // Takes rows that have been sorted.
  void set(const Rows& rows);
  // All entries with the words behind so many bytes, which are in *memory if they are others.
  std::span<const Entry> entries_after(uint64_t shared, std::vector<Entry>* memory) const;

  std::vector<Entry> entries_;
  uint64_t shared_ = 0;  // bytes that all keys begin with
};

}  // namespace stride

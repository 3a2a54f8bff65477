// The rows of small commits that are in the write-ahead log and in no segment yet, by table.
//
//   MemtableRows rows = ...;                  // engine/memtable/memtable_rows.h
//   rows.reserve(&memtable);                  // may throw
//   rows.insert(memtable.next_commit());
//   rows.keep();
//   memtable.publish(memtable.next_commit()); // readers see all of it, or nothing
//
// A snapshot is a version and the number of the last commit that was published when it was taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/executor.h"
#include "engine/memtable/growing_table.h"
#include "engine/memtable/table_tail.h"

namespace stride {

// One thread writes, or has others insert rows for which it has made room; any number read.
class Memtable {
 public:
  // Null: the table has no rows here.
  const TableTail* find(uint32_t table) const noexcept;
  // The last commit that readers may see; 0: there is none.
  uint32_t visible() const noexcept { return visible_.load(std::memory_order_acquire); }
  // Sorts the rows of tables that have many unsorted ones, for those who will scan them.
  Status sort(Executor& executor) const;

  // The rest is the writer's.

  // Makes the table's tail where there is none. Throws std::bad_alloc.
  TableTail& tail(const std::shared_ptr<const TableRecord>& table);
  uint32_t next_commit() const { return visible_.load(std::memory_order_relaxed) + 1; }
  void publish(uint32_t commit) noexcept { visible_.store(commit, std::memory_order_release); }
  bool empty() const { return visible() == 0; }
  // Counts all rows, hash tables included.
  uint64_t bytes() const;
  const std::vector<std::unique_ptr<TableTail>>& tails() const { return tails_; }

 private:
  std::vector<std::unique_ptr<TableTail>> tails_;
  GrowingArray<TableTail> by_number_;  // the same
  GrowingTable numbers_;               // in that, from 1 on, by a hash of the table's id
  std::atomic<uint32_t> visible_{0};
};

}  // namespace stride

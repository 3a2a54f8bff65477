// Rows of a table's tail in key order, the newest of each key: a source of rows
// (engine/build/row_source.h).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/executor.h"
#include "engine/memtable/table_tail.h"
#include "gpu/bulk_vector.h"
#include "gpu/sorter.h"
#include "storage/column.h"
#include "storage/prefetch.h"
#include "storage/status.h"

namespace stride {

class TailRows {
 public:
  void add(const TailRow* row) {
    rows_.push_back(row);
    bytes_ += row->key_bytes + uint64_t{row->value_bytes};
  }
  uint64_t added() const { return rows_.size(); }
  // Once all are added, in the order in which they were inserted.
  Status sort(Executor& executor);
  // Where nothing lies below, a tombstone hides nothing.
  void drop_tombstones();

  uint64_t size() const { return sorted_.order.size(); }
  const TailRow* row(uint64_t i) const { return rows_[sorted_.order[i]]; }
  Bytes key(uint64_t i) const { return rows_[sorted_.order[i]]->key(); }
  Bytes value(uint64_t i) const { return rows_[sorted_.order[i]]->value(); }
  EntryKind kind(uint64_t i) const { return rows_[sorted_.order[i]]->kind; }
  void prefetch_offsets(uint64_t i) const { prefetch(rows_[sorted_.order[i]]); }
  const uint64_t* keys8() const { return sorted_.keys8.empty() ? nullptr : sorted_.keys8.data(); }
  uint64_t max_bytes() const { return bytes_; }

  struct Sizes {
    explicit Sizes(const TailRows&) {}
    void begin() {}
    uint64_t add(const TailRows& rows, uint64_t i) {
      return rows.key(i).size() + rows.value(i).size();
    }
  };

 private:
  std::vector<const TailRow*> rows_;
  uint64_t bytes_ = 0;
  Sorted sorted_;  // a row's id is its number in rows_
};

}  // namespace stride

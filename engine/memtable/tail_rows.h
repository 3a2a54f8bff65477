// Rows of a table's tail in key order, the newest of each key: a source of rows
// (engine/build/row_source.h).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/executor.h"
#include "engine/memtable/table_tail.h"
#include "storage/column.h"
#include "storage/prefetch.h"
#include "storage/status.h"

namespace stride {

// Brings rows that are in the order in which they were inserted into the order of their keys, and
// leaves the newest of each.
Status sort_rows(Executor& executor, std::vector<const TailRow*>* rows);

class TailRows {
 public:
  // rows: in key order, one of each key.
  explicit TailRows(std::vector<const TailRow*> rows);
  // Where nothing lies below, a tombstone hides nothing.
  void drop_tombstones();

  uint64_t size() const { return rows_.size(); }
  Bytes key(uint64_t i) const { return rows_[i]->key(); }
  Bytes value(uint64_t i) const { return rows_[i]->value(); }
  EntryKind kind(uint64_t i) const { return rows_[i]->kind; }
  void prefetch_offsets(uint64_t i) const { prefetch(rows_[i]); }
  const uint64_t* keys8() const { return nullptr; }
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
};

}  // namespace stride

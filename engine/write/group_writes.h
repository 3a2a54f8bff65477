// The rows of commits that are to be carried out together and are in no memtable yet, for the check
// of what a commit behind them has read.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/memtable/memtable_rows.h"
#include "storage/checksum.h"
#include "storage/column.h"
#include "storage/log_rows.h"

namespace stride {

// Not thread-safe.
class GroupWrites {
 public:
  struct Row {
    uint32_t table;
    uint64_t key_checksum;
    Bytes key;
  };

  // The rows must stay as they are until clear(). Throws std::bad_alloc: rows that are here twice
  // do no harm.
  void add(const MemtableRows& rows) {
    LogRowsDecoder in(rows.payload());
    for (LogRows of_table; in.next(&of_table);)
      for (uint32_t i = 0; i < of_table.count; ++i) {
        const Bytes key = of_table.key(i);
        rows_.push_back({of_table.table, checksum(key), key});
      }
    index_rows();
  }
  void clear() {
    if (rows_.empty()) return;
    rows_.clear();
    slots_.assign(slots_.size(), 0);
    indexed_ = 0;
  }
  bool contains(uint32_t table, uint64_t key_checksum, Bytes key) const {
    if (rows_.empty()) return false;
    for (size_t i = home(key_checksum); slots_[i] != 0; i = (i + 1) & (slots_.size() - 1)) {
      const Row& row = rows_[slots_[i] - 1];
      if (row.key_checksum == key_checksum && row.table == table && compare(row.key, key) == 0)
        return true;
    }
    return false;
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  size_t home(uint64_t key_checksum) const { return key_checksum & (slots_.size() - 1); }
  void index_rows() {
    if (rows_.size() * 2 > slots_.size()) {
      size_t size = 64;
      while (size < rows_.size() * 4) size *= 2;
      slots_.assign(size, 0);
      indexed_ = 0;
    }
    for (; indexed_ < rows_.size(); ++indexed_) {
      size_t i = home(rows_[indexed_].key_checksum);
      while (slots_[i] != 0) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = static_cast<uint32_t>(indexed_ + 1);
    }
  }

  std::vector<Row> rows_;
  std::vector<uint32_t> slots_;  // a row's number from 1 on; at least half of them are 0
  size_t indexed_ = 0;           // of the rows
};

}  // namespace stride

// The rows of one table in a memtable: those of its newest commits, in the order in which they
// came.
//
//   tail.reserve_row(key.size(), value.size());             // may throw
//   tail.insert(commit, EntryKind::put, key, value);        // can't fail
//   const TailRow* row = tail.find(key, commit);            // from any thread
//
// A row never moves or changes. Each has the number of the commit that it came with, so that a
// reader who knows a number sees what was committed up to it and nothing after. A hash table leads
// to the newest row of each key, and from row to row to its older ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/memtable/growing_array.h"
#include "engine/memtable/growing_table.h"
#include "storage/column.h"
#include "storage/manifest.h"
#include "storage/segment_format.h"

namespace stride {

// The key and the value follow.
struct TailRow {
  std::atomic<uint32_t> commit;  // 0: there is no row here yet
  uint32_t older;                // a row of the same key; 0: none
  uint32_t value_bytes;
  uint16_t key_bytes;
  EntryKind kind;

  Bytes key() const { return {bytes(), key_bytes}; }
  Bytes value() const { return {bytes() + key_bytes, value_bytes}; }

 private:
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(this + 1); }
};
static_assert(sizeof(TailRow) == 16);

class Pieces;
class TailOrder;

// One thread writes, any number read.
class TableTail {
 public:
  static constexpr uint64_t row_unit = 16;  // rows begin at multiples of so many bytes

  explicit TableTail(std::shared_ptr<const TableRecord> table);
  ~TableTail();
  TableTail(const TableTail&) = delete;
  TableTail& operator=(const TableTail&) = delete;

  const std::shared_ptr<const TableRecord>& table() const { return table_; }

  // Makes room for one row more than insert() has taken and reserve_row() been asked for. May throw
  // std::bad_alloc; what was reserved before stays.
  void reserve_row(uint64_t key_bytes, uint64_t value_bytes);
  // Gives back what was reserved and not taken.
  void drop_reserved() noexcept;
  // commit: at least that of the row before. Precondition: rows of these sizes were reserved, in
  // this order.
  void insert(uint32_t commit, EntryKind kind, Bytes key, Bytes value) noexcept;
  // Memory of all rows, the hash table included; the writer's, as rows().
  uint64_t bytes() const { return bytes_ + newest_.memory_bytes(); }
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  uint32_t last_commit() const { return last_commit_.load(std::memory_order_relaxed); }

  // The newest row of the key among commits up to `commit`. Null: there is none.
  const TailRow* find(Bytes key, uint32_t commit) const noexcept;

  // The row, if its commit is no later than `commit`; else the newest one of its key that is. Null:
  // there is none.
  const TailRow* row_at(const TailRow* row, uint32_t commit) const noexcept {
    while (row && row->commit.load(std::memory_order_relaxed) > commit)
      row = row->older ? this->row(row->older) : nullptr;
    return row;
  }

  // Goes over the rows in the order in which they were inserted. A copy goes on from where it was
  // made.
  class Cursor {
   public:
    explicit Cursor(const TableTail& tail) : tail_(&tail) {}
    // Null: no more rows up to the commit.
    const TailRow* next(uint32_t commit) noexcept;

   private:
    const TableTail* tail_;
    uint32_t block_ = 0;
    uint64_t offset_ = row_unit;
  };

  // Segments in memory that have been made of the rows, for those who read them in bulk.
  Pieces& pieces() const { return *pieces_; }
  // What has been sorted of the rows.
  TailOrder& order() const { return *order_; }

 private:
  struct Block {
    uint64_t bytes;  // of `rows`
    uint64_t unused;
    std::byte* rows() { return reinterpret_cast<std::byte*>(this + 1); }
  };
  static_assert(sizeof(Block) == 16);
  // Where a row can go.
  struct Place {
    uint32_t block = 0;
    uint64_t offset = row_unit;  // there is no row 0
  };
  static constexpr uint64_t max_block_bytes = row_unit << 16;  // of rows that begin in it

  static uint64_t row_bytes(uint64_t key_bytes, uint64_t value_bytes) {
    return (sizeof(TailRow) + key_bytes + value_bytes + row_unit - 1) / row_unit * row_unit;
  }
  // Where a row of so many bytes goes that comes behind `place`, which it moves behind the row. New
  // blocks are made if `grow`; else they are there.
  Place take(uint64_t bytes, Place* place, bool grow);
  void add_block(uint64_t bytes);
  TailRow* row(uint32_t id) const noexcept;

  const std::shared_ptr<const TableRecord> table_;
  GrowingArray<Block> blocks_;
  uint32_t block_count_ = 0;
  Place end_, reserved_end_;
  uint64_t reserved_rows_ = 0;
  uint64_t bytes_ = 0;
  std::atomic<uint64_t> rows_{0};
  std::atomic<uint32_t> last_commit_{0};
  GrowingTable newest_;  // of each key: its hash, and the row
  const std::unique_ptr<Pieces> pieces_;
  const std::unique_ptr<TailOrder> order_;
};

}  // namespace stride

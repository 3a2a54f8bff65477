// The rows of one table in a memtable: those of its newest commits, in the order in which they
// came.
//
//   TableTail::Place place = tail.reserve(1, TableTail::row_bytes(key.size(), value.size()));
//   bool is_new = tail.insert(&place, commit, EntryKind::put, key, value);   // can't fail
//   tail.keep_reserved(is_new, commit);
//   const TailRow* row = tail.find(key, commit);                             // from any thread
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
  std::atomic<uint32_t> older;   // a row of the same key; 0: none
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

// One thread writes: it reserves places. Then any number insert rows at them, and it keeps what
// they have inserted. Any number read all the while.
class TableTail {
 public:
  static constexpr uint64_t row_unit = 16;  // rows begin at multiples of so many bytes

  explicit TableTail(std::shared_ptr<const TableRecord> table);
  ~TableTail();
  TableTail(const TableTail&) = delete;
  TableTail& operator=(const TableTail&) = delete;

  const std::shared_ptr<const TableRecord>& table() const { return table_; }

  // Where rows go, one behind the other.
  struct Place {
    uint32_t block = 0;
    uint64_t offset = row_unit;  // there is no row 0
  };
  static uint64_t row_bytes(uint64_t key_bytes, uint64_t value_bytes) {
    return (sizeof(TailRow) + key_bytes + value_bytes + row_unit - 1) / row_unit * row_unit;
  }
  // Several rows that lie together take no more.
  static constexpr uint64_t max_together_bytes = 16 << 10;

  // Makes room for rows that take so many bytes together, behind those that have been reserved.
  // bytes: the sum of their row_bytes(). Throws std::bad_alloc; what was reserved before stays.
  Place reserve(uint64_t rows, uint64_t bytes);
  // Gives back what was reserved since the last keep_reserved(). Precondition: nothing was inserted
  // there.
  void drop_reserved() noexcept;
  // All that was reserved has been inserted, `new_keys` of them by insert() calls that returned
  // true, and `commit` is the last of their commits.
  void keep_reserved(uint64_t new_keys, uint32_t commit) noexcept;

  // Inserts a row at the place, which moves behind it. Rows of different commits may be inserted in
  // any order, those of one commit and one key in that of the changes. Returns whether the key was
  // not there before. From any thread, between reserve() and keep_reserved().
  bool insert(Place* place, uint32_t commit, EntryKind kind, Bytes key, Bytes value) noexcept;
  // Memory of all rows, the hash table included; the writer's, as rows().
  uint64_t bytes() const { return bytes_ + newest_.memory_bytes(); }
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  uint32_t last_commit() const { return last_commit_.load(std::memory_order_relaxed); }

  // The newest row of the key among commits up to `commit`. Null: there is none.
  const TailRow* find(Bytes key, uint32_t commit) const noexcept;
  // The same for a key whose checksum() (storage/checksum.h) the caller knows.
  const TailRow* find(uint64_t key_checksum, Bytes key, uint32_t commit) const noexcept;
  // For a find() that is about to come.
  void prefetch_find(uint64_t key_checksum) const noexcept;

  // The row, if its commit is no later than `commit`; else the newest one of its key that is. Null:
  // there is none.
  const TailRow* row_at(const TailRow* row, uint32_t commit) const noexcept {
    while (row && row->commit.load(std::memory_order_relaxed) > commit) row = older(row);
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
    friend class TableTail;
    const TableTail* tail_;
    uint32_t block_ = 0;
    uint64_t offset_ = row_unit;
  };
  // A cursor behind rows of commits that had been published by the time of the call, which need not
  // be all of them. Who then asks which commit is the last that is published
  // (Memtable::visible()) finds all rows of later ones behind the cursor. Any thread.
  Cursor recent() const noexcept;

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
  static constexpr uint64_t max_block_bytes = row_unit << 16;  // of rows that begin in it

  void add_block(uint64_t bytes);
  TailRow* row(uint32_t id) const noexcept;
  TailRow* older(const TailRow* row) const noexcept {
    const uint32_t id = row->older.load(std::memory_order_acquire);
    return id ? this->row(id) : nullptr;
  }
  // Puts the row into the chain of rows of its key, the newest of which is `newer` and belongs to a
  // later commit.
  void insert_behind(TailRow* newer, TailRow* made, uint32_t id) noexcept;

  const std::shared_ptr<const TableRecord> table_;
  GrowingArray<Block> blocks_;
  uint32_t block_count_ = 0;
  Place end_, reserved_end_;
  uint64_t reserved_rows_ = 0;
  uint64_t bytes_ = 0;
  std::atomic<uint64_t> rows_{0};
  std::atomic<uint32_t> last_commit_{0};
  // Where the rows end of the commits before the last ones that were kept: its block, and the
  // offset there in 48 bits.
  std::atomic<uint64_t> recent_{row_unit};
  GrowingTable newest_;  // of each key: its hash, and the row
  const std::unique_ptr<Pieces> pieces_;
  const std::unique_ptr<TailOrder> order_;
};

}  // namespace stride

// A transaction's own changes, as its reads see them: rows in a memtable of its own, which lies
// above all that its snapshot has.
//
//   OwnWrites own(moment);
//   STRIDE_TRY(own.update(&staging));               // what was staged since
//   if (const TailRow* row = own.find(table, key)) ...
//   own.view().scan(table, ...);                    // the snapshot with these rows
//
// Nothing is copied before a transaction reads after it has written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "engine/memtable/memtable.h"
#include "engine/snapshot.h"
#include "engine/write/read_check.h"
#include "engine/write/staging.h"
#include "storage/status.h"

namespace stride {

// Not thread-safe. Calls throw std::bad_alloc.
class OwnWrites {
 public:
  // What the transaction reads apart from them.
  explicit OwnWrites(const Moment& base);

  // Adds what was staged since the last call. A range that is erased is looked through, and its keys
  // get tombstones. What fails goes on with the next call.
  Status update(Staging* staging);
  // The newest row of the key; null: it is not changed.
  const TailRow* find(uint32_t table, Bytes key) const noexcept;
  bool has_rows_of(uint32_t table) const noexcept { return rows_->find(table) != nullptr; }
  const Snapshot& view();

 private:
  // How much of a table's chunks is there.
  struct Position {
    size_t chunk = 0;
    uint64_t row = 0;  // or range
  };
  Status add_table(const StagedTable& table);
  void add_rows(const StagedChunk& chunk, Position* at, TableTail* tail);
  Status add_ranges(const StagedChunk& chunk, const std::shared_ptr<const TableRecord>& table,
                    Position* at, TableTail* tail);
  void add_row(EntryKind kind, Bytes key, Bytes value, TableTail* tail);
  void publish() noexcept;

  const Moment base_;
  std::shared_ptr<Memtable> rows_;
  std::shared_ptr<const Version> version_;  // the base's, with these rows on top
  bool has_unpublished_ = false;
  uint64_t staged_rows_ = 0;  // that are here
  std::map<uint32_t, Position> positions_;  // by table
  uint32_t view_commit_ = 0;                // of view_
  Snapshot view_;
};

}  // namespace stride

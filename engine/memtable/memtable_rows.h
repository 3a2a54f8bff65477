// The rows of one commit on their way into the log and into a memtable.
//
//   MemtableRows rows;                               // by the thread that commits
//   rows.add(&table, keys, values, kinds);           // may throw
//   ... rows.payload() goes into the log ...
//   rows.reserve(&memtable);                         // by the memtable's writer; may throw
//   rows.insert(memtable.next_commit());             // by any thread
//   rows.keep(memtable.next_commit());               // by the writer
//
// The thread that commits copies its rows once, so that who writes the log for many commits reads
// little of what other processors have in their caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/memtable/memtable.h"
#include "storage/column.h"
#include "storage/log_rows.h"
#include "storage/manifest.h"
#include "storage/owned_list.h"

namespace stride {

class MemtableRows {
 public:
  // Rows of a table, behind those that are there. *table must stay where it is. kinds: one for each
  // row; null: all are puts. Throws std::bad_alloc; this is of no use then.
  void add(const std::shared_ptr<const TableRecord>* table, const KeyColumn& keys,
           const ValueColumn& values, const uint8_t* kinds);
  uint64_t rows() const { return rows_; }
  // Memory in a memtable, without hash tables.
  uint64_t bytes() const { return bytes_; }
  // As storage/log_rows.h has them.
  Bytes payload() const { return payload_; }
  // Calls use(table) for each table, some more than once.
  template <class Use>
  void for_each_table(const Use& use) const {
    sections_.for_each([&](const Section& section) { use(**section.table); });
  }

  // Makes room. Throws std::bad_alloc: TableTail::drop_reserved() has to be called for all tails.
  void reserve(Memtable* memtable);
  // Inserts them there. Other rows may be inserted at the same time.
  void insert(uint32_t commit) noexcept;
  // Calls TableTail::keep_reserved(). Precondition: insert() has returned.
  void keep(uint32_t commit) noexcept;

 private:
  // Rows that lie together in the memtable.
  struct Stretch {
    uint32_t rows;
    uint64_t bytes;
    TableTail::Place place = {};
  };
  // Rows of a table that lie together in the payload.
  struct Section {
    const std::shared_ptr<const TableRecord>* table;
    size_t begin;  // in the payload
    TableTail* tail = nullptr;
    uint64_t new_keys = 0;
    OwnedList<Stretch> stretches = {};
  };
  std::vector<std::byte> payload_;
  OwnedList<Section> sections_;
  uint64_t rows_ = 0, bytes_ = 0;
};

// All of that for rows that the log has. The tail's writer. Throws std::bad_alloc.
void insert_rows(const LogRows& rows, uint32_t commit, TableTail* tail);

}  // namespace stride

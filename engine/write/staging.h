// Where a transaction's rows wait for the commit: chunks of columns, each filled by one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/catalog/table_renaming.h"
#include "engine/table.h"
#include "engine/write/adopted_segments.h"
#include "engine/write/small_index.h"
#include "gpu/backend.h"
#include "storage/column.h"
#include "storage/manifest.h"
#include "storage/owned_list.h"
#include "storage/reserved_memory.h"
#include "storage/segment_format.h"
#include "storage/status.h"

namespace stride {

// A sort of one table takes so many, because a row is named by 32 bits.
inline constexpr uint64_t max_staged_chunks = uint64_t{1} << (32 - row_bits);

// Keys to be erased: `from` and what follows, up to `to` exclusively or, without, to the last.
struct KeyRange {
  std::string from;
  std::optional<std::string> to;
};

// Up to 65,536 rows in one allocation; a large one is touched only as far as it is filled. Not
// thread-safe.
class StagedChunk {
 public:
  static constexpr uint64_t max_rows = uint64_t{1} << row_bits;
  static constexpr uint64_t target_bytes = 8 << 20;

  struct Capacity {
    uint64_t rows, key_bytes, value_bytes;
  };
  // key_width 0: keys of any length.
  StagedChunk(uint32_t key_width, Capacity capacity);
  // Views of at most max_rows rows, puts or deltas; nothing can be appended. owner: keeps their
  // memory; null: the caller does.
  StagedChunk(const KeyColumn& keys, const ValueColumn& values, EntryKind kind = EntryKind::put,
              std::shared_ptr<const void> owner = nullptr);
  // No rows, but ranges whose keys are erased as far as chunks before this one, or the table, have
  // them (engine/write/range_erase.h).
  explicit StagedChunk(std::vector<KeyRange> ranges);

  uint64_t rows() const { return rows_; }
  const Capacity& capacity() const { return capacity_; }
  // An empty chunk that follows `last` (or null), for rows from `first` on. A thread's first chunk
  // is small and each next one twice as large, so that small transactions touch little memory; a
  // put that brings many rows gets a large one at once. Throws std::bad_alloc.
  static std::unique_ptr<StagedChunk> make_next(const StagedChunk* last, uint32_t key_width,
                                                const KeyColumn& keys, const ValueColumn* values,
                                                uint64_t first);

  // Copies rows [first, first + n) where n is as many as fit, and returns n. values: null where
  // they are tombstones.
  uint64_t append(const KeyColumn& keys, const ValueColumn* values, uint64_t first, EntryKind kind);

  KeyColumn keys() const;
  ValueColumn values() const;
  EntryKind kind(uint64_t row) const {
    return kinds_.empty() ? EntryKind::put : static_cast<EntryKind>(kinds_[row]);
  }
  bool has_tombstones() const { return !kinds_.empty(); }  // or may have some
  const uint8_t* kinds() const { return kinds_.empty() ? nullptr : kinds_.data(); }
  // Rows whose value is to be added to what the key has (engine/write/accumulate.h).
  uint64_t deltas() const { return deltas_; }
  const std::vector<KeyRange>& ranges() const { return ranges_; }
  // Precondition: there are ranges already.
  void add_ranges(std::vector<KeyRange> ranges);
  // The rows are views, or there are only ranges: nothing can be appended or dropped.
  bool is_borrowed() const { return borrowed_; }
  // Drops the rows whose bit is 0. Precondition: append() has copied them.
  void keep(std::span<const uint64_t> bits);
  // Drops the rows from `rows` on. The same precondition.
  void truncate(uint64_t rows) noexcept;

 private:
  uint64_t fitting_rows(const KeyColumn& keys, const ValueColumn* values, uint64_t first) const;

  bool borrowed_ = false;  // or ranges: no room for rows
  KeyColumn borrowed_keys_;
  ValueColumn borrowed_values_;
  std::shared_ptr<const void> owner_;  // of what is borrowed
  uint32_t key_width_ = 0;
  Capacity capacity_{};
  uint64_t rows_ = 0;
  std::unique_ptr<std::byte[]> small_memory_;
  ReservedMemory memory_;  // where it is large
  uint64_t* value_offsets_ = nullptr;
  uint64_t* key_offsets_ = nullptr;  // null where keys have one width
  std::byte* keys_ = nullptr;
  std::byte* values_ = nullptr;
  std::vector<uint8_t> kinds_;  // empty: all puts
  uint64_t deltas_ = 0;
  std::vector<KeyRange> ranges_;
};

// Rows that are put where their key is not there (engine/write/put_if_absent.h), and whom to tell.
struct AbsentChunk {
  // What was new of `count` rows from `first` on: bits of `words`, from bit `bit` on.
  struct Answer {
    uint64_t first, count;
    uint64_t* words;
    uint64_t bit;
  };
  std::unique_ptr<StagedChunk> rows;
  std::vector<Answer> answers;  // calls that did not ask have none
};

// All that a transaction has staged for one table, in the order of its calls (for each thread).
struct StagedTable {
  std::shared_ptr<const TableRecord> table;
  std::vector<std::unique_ptr<StagedChunk>> chunks;
  std::vector<std::unique_ptr<AbsentChunk>> absent;  // after all of `chunks`
  // Rows of segments that ranges erase in place, before all of `chunks`
  // (engine/write/range_erase.h).
  std::vector<ErasedRows> erased = {};
  // All of its rows are these, in the order of their keys: there are no chunks then.
  std::vector<AdoptedSegment> adopted = {};

  uint64_t chunk_count() const { return chunks.size() + absent.size(); }
  uint64_t rows() const;  // of `chunks`, or adopted
  uint64_t adopted_bytes() const;
  bool has_deltas() const;
  bool has_ranges() const;
  bool has_rows_alone() const { return absent.empty() && !has_deltas() && !has_ranges(); }
};

// Copies rows together where a table has more chunks than a sort takes. Neither ranges nor rows
// that are put if absent are left by then. invalid_argument: there are more rows than that.
Status join_small_chunks(StagedTable* table);

// Thread-safe: each thread fills chunks of its own.
class Staging {
 public:
  // Where staging fails, nothing of that call is staged.
  //
  // values null: erases. Validates before it copies anything.
  Status stage(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
               const ValueColumn* values) {
    return stage_rows(table, keys, values, values ? EntryKind::put : EntryKind::tombstone);
  }
  // WriteTransaction::accumulate().
  Status stage_deltas(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                      const ValueColumn& deltas);
  // As stage() and stage_deltas(), without a copy: the columns must stay as they are until the
  // commit has returned.
  Status stage_view(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                    const ValueColumn& values) {
    return view_rows(table, keys, values, EntryKind::put);
  }
  Status stage_delta_view(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                          const ValueColumn& deltas);
  Status stage_ranges(const std::shared_ptr<const TableRecord>& table,
                      std::vector<KeyRange> ranges);
  // WriteTransaction::put_if_absent().
  Status stage_absent(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                      const ValueColumn& values, std::span<uint64_t> was_new);
  // WriteTransaction::adopt(), of segments without tombstones.
  Status adopt(const std::shared_ptr<const TableRecord>& table,
               std::vector<AdoptedSegment> segments);
  // Whether it has adopted any rows, which consume() does not change.
  bool adopts() const { return adopts_.load(std::memory_order_relaxed); }
  // invalid_argument: the table's rows are adopted, and so are no other rows staged for it.
  Status check_takes_rows(const TableRecord& table);
  // A table that the transaction creates. already_exists: it has created one of that name, or given
  // another one the name.
  Status create(std::shared_ptr<const TableRecord> table);
  // Null: the transaction has created no table of this name.
  std::shared_ptr<const TableRecord> find_created(const std::string& name);
  // Call when no create() is under way.
  const std::vector<std::shared_ptr<const TableRecord>>& created() const { return created_; }
  // A table that the transaction gives another name. already_exists: as check_renaming().
  Status rename(TableRenaming renaming);
  // Takes the last rename() back.
  void undo_rename() noexcept;
  // already_exists: as create(), or the transaction has given the table another name before.
  Status check_renaming(uint32_t table, const std::string& name, const std::string& new_name) const;
  // Null: the transaction has given no table this name.
  const TableRenaming* find_renamed_to(const std::string& name) const;
  // Whether the transaction gives the table another name.
  bool renames(uint32_t table) const;
  // These three: call when no rename() is under way.
  const std::vector<TableRenaming>& renamed() const { return renamed_; }
  bool changes_tables() const { return !created_.empty() || !renamed_.empty(); }
  // Rows that come from now on come after all that are there, whichever thread brings them. Call
  // when no stage() is under way.
  void hand_over();
  // A range counts as one.
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Whether it puts and erases rows, in no prefix table, or adopts some, and does nothing else but
  // to create tables: then it does not matter what is stored. Call when no stage() is under way.
  bool has_rows_alone();
  // Calls use(table) for each StagedTable. Call when no stage() is under way.
  template <class Use>
  void for_each_table(const Use& use) {
    std::lock_guard lock(mutex_);
    tables_.for_each([&](const StagedTable& table) { use(table); });
  }
  // Call when no stage() is under way.
  std::vector<StagedTable> consume();

 private:
  // Where a thread stages rows of a table.
  struct Slot {
    StagedTable* table;
    StagedChunk* chunk;
    AbsentChunk* absent;
  };
  struct SlotKey {
    std::thread::id thread;
    uint32_t table;
    bool operator==(const SlotKey&) const = default;
  };
  struct SlotHash {
    size_t operator()(const SlotKey& key) const {
      return std::hash<std::thread::id>()(key.thread) ^ key.table * size_t{0x9E3779B97F4A7C15};
    }
  };
  Status stage_rows(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                    const ValueColumn* values, EntryKind kind);
  Status view_rows(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                   const ValueColumn& values, EntryKind kind);
  Slot* slot_of_this_thread(const std::shared_ptr<const TableRecord>& table);
  // Requires the mutex.
  StagedTable* staged_table(const std::shared_ptr<const TableRecord>& table);
  // All or, where this throws, none of them.
  void add_chunks(Slot* slot, std::vector<std::unique_ptr<StagedChunk>> chunks);
  void add_absent(Slot* slot, std::vector<std::unique_ptr<AbsentChunk>> chunks);
  void count(const KeyColumn& keys, const ValueColumn* values);

  std::mutex mutex_;  // guards the lists, not the chunks' content
  OwnedList<StagedTable> tables_;
  OwnedList<Slot> slots_;
  std::vector<std::shared_ptr<const TableRecord>> created_;
  std::vector<TableRenaming> renamed_;  // few
  SmallIndex<uint32_t, StagedTable*> tables_by_id_;
  SmallIndex<SlotKey, Slot*, SlotHash> slots_by_key_;
  SmallIndex<std::string_view, std::shared_ptr<const TableRecord>> created_by_name_;
  std::atomic<uint64_t> rows_{0}, bytes_{0};
  std::atomic<bool> adopts_{false};
};

}  // namespace stride

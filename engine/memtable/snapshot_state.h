// What a snapshot holds: a version, and how much of its memtable.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/memtable/memtable.h"
#include "engine/memtable/tail_merger.h"
#include "storage/status.h"

namespace stride {

// Thread-safe.
class SnapshotState {
 public:
  // commit: of the version's memtable; 0: it has no rows.
  // now: as ExpiryClock::now(), by which rows have ended.
  SnapshotState(std::shared_ptr<const Version> version, uint32_t commit, int64_t now) noexcept
      : version_(std::move(version)), commit_(commit), now_(now) {}
  ~SnapshotState();

  const std::shared_ptr<const Version>& version() const { return version_; }
  // The newest row of the key in the memtables, which must be newer than the table's segments
  // (has_newest_rows()); null: they have none. It may have ended.
  const TailRow* find(uint32_t table, Bytes key) const noexcept {
    const TableTail* tail = commit_ == 0 ? nullptr : version_->memtable->find(table);
    const TailRow* row = tail ? tail->find(key, commit_) : nullptr;
    return row || version_->sealed.empty() ? row : find_sealed(table, key);
  }
  // Whether no segment of the table is newer than rows of a sealed memtable.
  static bool has_newest_rows(const Version& version, const TableVersion& table) {
    return version.sealed.empty() || table.segments.empty() ||
           table.segments[0]->record().run < version.sealed.back().run;
  }
  uint32_t commit() const { return commit_; }
  int64_t now() const { return now_; }
  // The table with all that the snapshot has of it, the memtables' rows as segments, and rows that
  // have ended as tombstones. Lives as long as this. Fails as Version::find() does;
  // resource_exhausted.
  Result<const TableVersion*> table(const Table& table) const;
  // The same for those who read in order, without rows of memtables that are newer than all
  // segments: *newest becomes these, newest first.
  Result<const TableVersion*> ordered_table(const Table& table,
                                            std::vector<OrderedTail>* newest) const;

 private:
  using Tables = std::map<uint32_t, std::shared_ptr<const TableVersion>>;
  // What was asked for so far.
  struct Made {
    Tables whole, without_tails;
  };

  const TailRow* find_sealed(uint32_t table, Bytes key) const noexcept;
  // The table in `tables`, which make() makes there at first; null from it: the found one serves.
  template <class Make>
  Result<const TableVersion*> kept(Tables Made::*tables, const TableVersion& found,
                                   const Make& make) const;

  const std::shared_ptr<const Version> version_;
  const uint32_t commit_;
  const int64_t now_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Made> made_;  // null: nothing was asked for
};

// The version with the memtables' rows of these tables as segments, up to the last commit, and rows
// that have ended by now as tombstones.
Result<std::shared_ptr<const Version>> with_newest_rows(std::shared_ptr<const Version> version,
                                                        std::span<const uint32_t> tables);

}  // namespace stride

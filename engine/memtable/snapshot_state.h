// What a snapshot holds: a version, and how much of its memtable.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "engine/catalog/version.h"
#include "engine/memtable/memtable.h"
#include "storage/status.h"

namespace stride {

// Thread-safe.
class SnapshotState {
 public:
  // commit: of the version's memtable; 0: it has no rows.
  SnapshotState(std::shared_ptr<const Version> version, uint32_t commit) noexcept
      : version_(std::move(version)), commit_(commit) {}
  ~SnapshotState();

  const std::shared_ptr<const Version>& version() const { return version_; }
  // The newest row of the key in the memtable; null: it has none.
  const TailRow* find(uint32_t table, Bytes key) const noexcept {
    if (commit_ == 0) return nullptr;
    const TableTail* tail = version_->memtable->find(table);
    return tail ? tail->find(key, commit_) : nullptr;
  }
  // The table with all that the snapshot has of it, the memtable's rows as segments. Lives as long
  // as this. Fails as Version::find() does; resource_exhausted.
  Result<const TableVersion*> table(const Table& table) const;

 private:
  const std::shared_ptr<const Version> version_;
  const uint32_t commit_;
  mutable std::mutex mutex_;
  using Tables = std::map<uint32_t, std::shared_ptr<const TableVersion>>;
  mutable std::unique_ptr<Tables> tables_;  // null: none was asked for
};

// The version with the memtable's rows of these tables as segments, up to the last commit.
Result<std::shared_ptr<const Version>> with_newest_rows(std::shared_ptr<const Version> version,
                                                        std::span<const uint32_t> tables);

}  // namespace stride

// Commits of few rows: through the write-ahead log into the memtable, which becomes segments once
// it is large.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/build/run_builder.h"
#include "engine/catalog/database_context.h"
#include "engine/catalog/poison.h"
#include "engine/catalog/unsynced_files.h"
#include "engine/catalog/version_set.h"
#include "engine/memtable/memtable.h"
#include "engine/write/staging.h"
#include "storage/log_rows.h"
#include "storage/log_writer.h"
#include "storage/status.h"

namespace stride {

// All calls require the commit lock.
class SmallCommits {
 public:
  SmallCommits(const DatabaseContext& context, VersionSet& versions, UnsyncedFiles& unsynced,
               RunBuilder& builder, Poison& poison);
  ~SmallCommits();

  // Whether such a commit goes this way. What else it changes than rows (deltas, ranges) may be
  // turned into rows first, and looked at again.
  bool takes(const Staging& staging, std::span<const StagedTable> tables) const;
  // Commits whose bytes are together no more than this can go together.
  uint64_t max_group_bytes() const { return max_commit_bytes_; }

  // Makes the rows part of the database, all or none. Precondition: they are plain rows of tables
  // that are there, in the order of the changes.
  Status commit(std::span<StagedTable* const> tables, Durability durability);

  // Makes segments of the memtable's rows, in an edit of its own; nothing where there are none.
  Status flush(Durability durability);

 private:
  Memtable& memtable() const { return *versions_.current()->memtable; }
  // The log to which the rows of the memtable were written, or a new one that has them too.
  Status open_log(Durability durability);
  Status carry_over(const Memtable& memtable, LogWriter* log);
  Status write_frame(std::span<StagedTable* const> tables, Durability durability);
  Status build_runs(const Version& version, Durability durability, PendingEdit* pending);

  const DatabaseContext& context_;
  VersionSet& versions_;
  UnsyncedFiles& unsynced_;
  RunBuilder& builder_;
  Poison& poison_;
  const uint64_t max_commit_bytes_;
  uint64_t flush_above_bytes_;
  std::unique_ptr<LogWriter> log_;  // null before the first commit
};

// What the rows that are staged take in a memtable, without the hash table.
uint64_t staged_bytes(std::span<const StagedTable> tables);

}  // namespace stride

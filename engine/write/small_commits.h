// Commits of few rows: through the write-ahead log into the memtable. Once that is large it is
// sealed, and becomes segments behind (engine/write/memtable_flush.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/catalog/database_context.h"
#include "engine/catalog/poison.h"
#include "engine/catalog/unsynced_files.h"
#include "engine/catalog/version_set.h"
#include "engine/memtable/memtable.h"
#include "engine/write/commit_queue.h"
#include "engine/write/staging.h"
#include "storage/log_rows.h"
#include "storage/log_writer.h"
#include "storage/status.h"

namespace stride {

// Calls require the commit lock, but for those that any thread may make.
class SmallCommits {
 public:
  // flush_failure: why the last sealed memtable could not be made a run.
  SmallCommits(const DatabaseContext& context, VersionSet& versions, UnsyncedFiles& unsynced,
               Poison& poison, std::function<Status()> flush_failure);
  ~SmallCommits();

  // Whether such a commit goes this way. What else it changes than rows (deltas, ranges) may be
  // turned into rows first, and looked at again.
  bool takes(const Staging& staging, std::span<const StagedTable> tables) const;
  // Whether there are certainly too many rows, or files of them. Any thread.
  bool is_too_large(const Staging& staging) const {
    return staging.adopts() || staging.bytes() > max_commit_bytes_;
  }
  // Copies the request's rows into `rows` if such a commit goes this way as it is. Throws
  // std::bad_alloc. Any thread.
  void prepare(CommitRequest* request) const;
  // Commits whose bytes are together no more than this can go together.
  uint64_t max_group_bytes() const { return max_commit_bytes_; }

  // Makes the requests' `rows` part of the database, all or none: later ones are newer.
  // Precondition: their tables are there.
  Status commit(std::span<CommitRequest* const> requests, Durability durability);

  // Begins another memtable, older than whatever is committed from now on; nothing where the
  // memtable is empty.
  Status seal();
  // The same, where the memtable has rows of one of these tables: before a run of theirs is added.
  Status seal_before(std::span<const StagedTable> tables) {
    return has_rows_of(tables) ? seal() : Status();
  }
  bool has_rows_of(std::span<const StagedTable> tables) const;

  // Where the last log ends that has been written.
  uint64_t log_end() const {
    return log_ ? log_->position() : log_end_.value_or(versions_.recovered_logs().end);
  }

  // A memtable of more bytes is sealed as soon as the one before it is a run: half of
  // Options::memtable_bytes. Any thread.
  uint64_t seal_above_bytes() const { return seal_above_bytes_; }
  // As of the last commit. Any thread.
  uint64_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }
  // Whether memtables, as of the last commit, take all the memory that they may. Any thread.
  bool is_full() const {
    return memory_bytes() + sealed_bytes(*versions_.current()) >
           2 * context_.options.memtable_bytes;
  }
  // The same of all memtables that there have been. Any thread.
  uint64_t total_bytes() const {
    return sealed_total_.load(std::memory_order_relaxed) + memory_bytes();
  }
  // How many rows were committed, and how many memtables sealed. Any thread.
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  uint64_t seals() const { return seals_.load(std::memory_order_relaxed); }

 private:
  Memtable& memtable() const { return *versions_.current()->memtable; }
  static uint64_t sealed_bytes(const Version& version);
  // Where the database is small a memtable is sealed earlier, unless another one is, so that logs
  // are not many times larger than segments.
  uint64_t seal_early_above_bytes() const;
  // Fails where memory is used up by rows that could not be made a run.
  Status make_room();
  // The log to which the rows of the memtable were written, or a new one that has them too.
  Status open_log(Durability durability);
  bool has_rows_to_carry() const;
  Status carry_over(LogWriter* log);
  Status write_frame(std::span<CommitRequest* const> requests, Durability durability);

  const DatabaseContext& context_;
  VersionSet& versions_;
  UnsyncedFiles& unsynced_;
  Poison& poison_;
  const std::function<Status()> flush_failure_;
  const uint64_t max_commit_bytes_;
  const uint64_t seal_above_bytes_;
  std::atomic<uint64_t> memory_bytes_{0}, seals_{0}, rows_{0};
  std::atomic<uint64_t> sealed_total_{0};  // what memory_bytes_ was when each was sealed
  std::shared_ptr<LogWriter> log_;         // null before the first commit to a memtable
  std::optional<uint64_t> log_end_;        // the position at which the last sealed log ends
};

// Precondition: the table stays where it is, and has rows alone.
void add_rows(const StagedTable& table, MemtableRows* rows);
// What the rows that are staged take in a memtable, about, without the hash table.
uint64_t staged_bytes(std::span<const StagedTable> tables);

}  // namespace stride

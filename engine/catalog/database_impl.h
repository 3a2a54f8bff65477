// The state behind a Database: the current version, the manifest, and the one committer.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/build/row_source.h"
#include "engine/catalog/version.h"
#include "engine/database.h"
#include "engine/write/commit_queue.h"
#include "engine/write/staging.h"
#include "gpu/backend.h"
#include "storage/io_threads.h"
#include "storage/manifest.h"

namespace stride {

class ManifestReplay;
struct DatabaseImpl;

// An edit on its way into the manifest, with the files of the segments that it adds. What does not
// get there is removed again.
struct PendingEdit {
  explicit PendingEdit(DatabaseImpl& owner) : database(owner) {}
  ~PendingEdit();
  PendingEdit(const PendingEdit&) = delete;

  DatabaseImpl& database;
  VersionEdit edit;
  std::vector<std::shared_ptr<Segment>> segments;  // of edit.added
};

struct DatabaseImpl {
  // Routes come and go one by one, and what answers a match is made of all changes since a base.
  static constexpr uint64_t most_prefix_runs = 64;

  std::string path;
  std::shared_ptr<const DatabaseIdentity> identity;
  Options options;
  FileSystem* fs = nullptr;
  std::shared_ptr<Residency> residency;
  std::shared_ptr<Backend> backend;  // the host's
  std::unique_ptr<FileLock> lock;  // null where read_only
  std::shared_ptr<IoThreads> io = std::make_shared<IoThreads>();

  CommitQueue queue;

  // Guards everything below; held for the whole of a commit, a compaction or a table's creation.
  std::mutex commit_mutex;
  std::unique_ptr<Manifest> manifest;  // null where read_only
  ManifestState state;  // while the database is being opened; then the version has it
  bool unsynced_edits = false;  // the log ends with some
  std::vector<std::string> unsynced_files;  // that they name
  std::vector<std::shared_ptr<Segment>> being_written;  // of these files
  Status poison;  // not ok: an earlier sync failed, or a write in the background
  // The same for want of memory to say more.
  const Status plain_poison{StatusCode::poisoned,
                            "an earlier write or sync failed: open the database again"};
  bool closed = false;
  std::vector<uint64_t> missing_segments;  // that the manifest names, ascending

  // Of tables, runs and files; those of failed commits stay unused.
  std::atomic<uint64_t> next_id{1};
  std::atomic<uint64_t> size_bytes{0};

  std::shared_ptr<const Version> current() const noexcept {
    if (!identity->opened_in.is_here()) return left_in_parent_;
    std::lock_guard guard(version_mutex_);
    return version_;
  }

  static Result<std::shared_ptr<DatabaseImpl>> open(const std::string& path,
                                                    const Options& options);
  static Status check_table_options(const std::string& name, const TableOptions& options);
  // A table that is in no version yet. already_exists, invalid_argument.
  Result<std::shared_ptr<const TableRecord>> new_table(const std::string& name,
                                                       const TableOptions& options);
  Result<Table> create_table(const std::string& name, const TableOptions& options);
  Result<Table> open_table(const std::string& name) const;
  Status drop_table(const std::string& name);
  // Carries out each request and answers it.
  void commit_group(const std::vector<CommitRequest*>& group);
  Status sync();
  Status calibrate();
  Status compact();
  Status close();
  Status writable();  // closed, read_only or poisoned

  Table handle(std::shared_ptr<const TableRecord> record) const {
    return TableParts::make(std::move(record), identity);
  }

 private:
  friend struct PendingEdit;
  // Of the rest all but recovery need commit_mutex to be held.
  Status recover();
  Status apply_unsynced(const std::vector<UnsyncedEdit>& edits);
  Status check_whole(const VersionEdit& edit, const ManifestReplay& before) const;
  Status open_segments();
  Status remove_orphans();
  // not_found: there is no such file.
  Result<std::shared_ptr<Segment>> open_segment(const SegmentRecord& record,
                                                const TableRecord& table) const;
  Status writable_locked();
  std::string segment_path(uint64_t id) const;
  // Makes a run of the rows: one segment, or, where that would need more memory than there is, or
  // more rows than a segment can have, several, one after the other.
  template <class Rows>
  Status build(const Rows& rows, const TableRecord& table, Durability durability,
               PendingEdit* pending);
  template <class Rows>
  Status build_one(const RowRange<Rows>& rows, const TableRecord& table, Durability durability,
                   uint64_t resident_budget, PendingEdit* pending);
  // Makes the edit part of the database: its files, then the manifest, then the version that follows
  // `before` (the current one, to which tables may have been added that the edit creates). Where it
  // fails or throws, the edit is not there, now or after reopening, unless the handle is poisoned.
  Status apply(const Version& before, PendingEdit* pending, Durability durability);
  std::shared_ptr<Version> make_version() const;
  // An entry for each table that the edit leaves; removed: segments that it takes away.
  std::shared_ptr<const Version> follow(
      const Version& before, const PendingEdit& pending, uint64_t* segment_bytes,
      std::vector<std::shared_ptr<IndexedSegment>>* removed) const;
  // The current version with tables that are being created.
  std::shared_ptr<const Version> current_with(
      const std::vector<std::shared_ptr<const TableRecord>>& created) const;
  Status log(const VersionEdit& edit, bool new_files, Durability durability);
  Status sync_files();
  Status sync_locked();
  // Forgets the files of `being_written` that are whole; with `wait` that is all of them. Poisons
  // the handle and returns why where one never will be.
  Status settle_writes(bool wait);
  void publish(std::shared_ptr<const Version> version) noexcept;
  void discard(const Segment& segment) noexcept;
  Status poison_with(Status s) noexcept;
  struct Round;
  void carry_out(Round* round);
  Status commit_rows(Round* round);
  Status compact_table(const TableVersion& table);
  // Compacts it where it is a prefix table of more than most_prefix_runs.
  void fold_if_due(uint32_t table) noexcept;

  mutable std::mutex version_mutex_;  // held only to copy or swap the pointer
  std::shared_ptr<const Version> version_;
  std::shared_ptr<const Version> left_in_parent_;  // no tables: what a forked child sees
};

// The table, unless it was made with other options.
Result<Table> check_options(const Table& table, const TableOptions& options);
// The current state of a table without rows.
TableVersion empty_table(std::shared_ptr<const TableRecord> record);

}  // namespace stride

// The state behind a Database: the current version, the manifest, and the one committer.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/commit_queue.h"
#include "engine/database.h"
#include "engine/row_source.h"
#include "engine/staging.h"
#include "engine/version.h"
#include "gpu/backend.h"
#include "storage/io_threads.h"
#include "storage/manifest.h"

namespace stride {

struct DatabaseImpl {
  // Routes come and go one by one, and what answers a match is made of all changes since a base.
  static constexpr uint64_t most_prefix_runs = 64;

  std::string path;
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
  ManifestState state;
  bool unsynced_edits = false;  // the log ends with some
  std::vector<std::string> unsynced_files;  // that they name
  std::vector<std::shared_ptr<Segment>> being_written;  // of these files
  uint64_t next_id = 1;  // of tables, runs and files; those of failed commits stay unused
  Status poison;  // not ok: an earlier sync failed, or a write in the background
  bool closed = false;
  bool manifest_was_read = false;

  std::atomic<uint64_t> size_bytes{0};

  std::shared_ptr<const Version> current() const {
    std::lock_guard guard(version_mutex_);
    return version_;
  }

  static Result<std::shared_ptr<DatabaseImpl>> open(const std::string& path,
                                                    const Options& options);
  static Status check_table_options(const std::string& name, const TableOptions& options);
  Result<Table> create_table(const std::string& name, const TableOptions& options);
  Status drop_table(const std::string& name);
  // Carries out each request and answers it.
  void commit_group(const std::vector<CommitRequest*>& group);
  Status calibrate();
  Status compact();
  Status close();
  Status writable();  // closed, read_only or poisoned

  static const std::shared_ptr<const TableRecord>& record(const Table& table) {
    return table.record_;
  }
  static Table handle(std::shared_ptr<const TableRecord> record) {
    return Table(std::move(record));
  }

 private:
  // Of the rest all but recovery need commit_mutex to be held.
  Status recover();
  Status apply_unsynced(const std::vector<UnsyncedEdit>& edits);
  Status open_segments();
  Status remove_orphans();
  Result<std::shared_ptr<Segment>> open_segment(const SegmentRecord& record) const;
  Status writable_locked();
  std::string segment_path(uint64_t id) const;
  // Makes a run of the rows: one segment, or, where that would need more memory than there is,
  // several, one after the other.
  template <class Rows>
  Status build(const Rows& rows, uint32_t table, Durability durability, VersionEdit* edit,
               std::vector<std::shared_ptr<Segment>>* built);
  template <class Rows>
  Status build_one(const RowRange<Rows>& rows, uint32_t table, Durability durability,
                   uint64_t resident_budget, VersionEdit* edit,
                   std::vector<std::shared_ptr<Segment>>* built);
  // Makes the edit part of the database: its files, then the manifest, then the version. Removes
  // the built files if that fails.
  Status apply(VersionEdit edit, const std::vector<std::shared_ptr<Segment>>& built,
               Durability durability);
  Status log(const VersionEdit& edit, bool new_files, Durability durability);
  Status sync_files();
  // Forgets the files of `being_written` that are whole; with `wait` that is all of them. Poisons
  // the handle and returns why where one never will be.
  Status settle_writes(bool wait);
  void publish_edit(const VersionEdit& edit, const std::vector<std::shared_ptr<Segment>>& built);
  void publish(std::shared_ptr<const Version> version);
  void discard(const std::vector<std::shared_ptr<Segment>>& built);
  Status poison_with(Status s);
  Status commit_rows(std::vector<StagedTable> tables, Durability durability);
  Status compact_table(const TableVersion& table);
  // Compacts it where it is a prefix table of more than most_prefix_runs.
  void fold_if_due(uint32_t table);

  mutable std::mutex version_mutex_;  // held only to copy or swap the pointer
  std::shared_ptr<const Version> version_;
};

}  // namespace stride

// The versions of a database: the current one, and the manifest that makes each durable.
//
//   std::shared_ptr<const Version> before = versions.current();
//   PendingEdit pending(unsynced);
//   ... write files, and name them in pending.edit ...
//   Status s = versions.apply(*before, &pending, Durability::sync);
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/catalog/database_context.h"
#include "engine/catalog/follower.h"
#include "engine/catalog/obsolete_files.h"
#include "engine/catalog/pending_edit.h"
#include "engine/catalog/poison.h"
#include "engine/catalog/published_version.h"
#include "engine/catalog/reader_lease.h"
#include "engine/catalog/unsynced_files.h"
#include "engine/catalog/version.h"
#include "engine/memtable/log_replay.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// Calls that change anything, and writable(), require the database's commit lock; the others may be
// called from any thread.
class VersionSet {
 public:
  VersionSet(const DatabaseContext& context, UnsyncedFiles& unsynced, Poison& poison);

  // Reads what is there, or makes it. Once, before all other calls.
  Status open();
  // Makes all edits durable, as far as the handle is not poisoned, and lets go of the manifest.
  // Every write fails from then on.
  Status close();
  bool is_closed() const { return closed_; }

  // Reads what another process has committed since the handle was opened, or refreshed the last
  // time. read_only handles alone; others have nothing to do. Fails as Follower::read_on().
  Status refresh();

  std::shared_ptr<const Version> current() const noexcept;
  // The same, and the last commit of its memtable that readers may see; 0: there is none. What that
  // commit says of tables that the version does not have came after it.
  std::shared_ptr<const Version> current(uint32_t* commit) const noexcept;
  // Names a table, a run or a file. That of a failed commit stays unused.
  uint64_t new_id() { return next_id_.fetch_add(1); }
  uint64_t next_id() const { return next_id_; }
  // Of the database (Manifest::Recovered), under the commit lock. 0: not known.
  uint32_t identity() const { return manifest_ ? manifest_->identity() : identity_; }
  uint64_t segment_bytes() const { return segment_bytes_.load(std::memory_order_relaxed); }
  // The bytes of all files.
  uint64_t size_bytes() const { return size_bytes_.load(std::memory_order_relaxed) + log_bytes(); }
  // The logs of the memtable that is not sealed.
  void set_log_bytes(uint64_t bytes) { log_bytes_.store(bytes, std::memory_order_relaxed); }
  uint64_t log_bytes() const { return log_bytes_.load(std::memory_order_relaxed); }
  // The logs that the manifest names: what they hold is in the memtables.
  const std::vector<LogRecord>& logs() const { return logs_; }
  // What an earlier process has left in logs.
  const ReplayedLogs& recovered_logs() const { return recovered_logs_; }
  bool has(const LogRecord& log) const {
    return std::any_of(logs_.begin(), logs_.end(),
                       [&](const LogRecord& other) { return other.number == log.number; });
  }
  // Whether its rows came after others that a power loss has taken.
  bool has_lost(const LogRecord& log) const {
    const auto& lost = recovered_logs_.lost;
    return std::find(lost.begin(), lost.end(), log.number) != lost.end();
  }
  // As the last edit of the manifest has it: a frame of the log that is written now comes after it.
  uint64_t logged_next_id() const { return logged_next_id_; }
  // How far the manifest knows the logs as synced: a position.
  uint64_t synced_logs() const { return synced_logs_; }
  // Whether the manifest ends with edits that were not synced.
  bool has_unsynced_edits() const { return has_unsynced_edits_; }

  // closed, read_only or poisoned, also by what was written in the background and has failed by
  // now.
  Status writable();
  // The same without a look at what is written in the background.
  Status still_writable() const;
  // Makes the edit part of the database: its files, then the manifest, then the version that
  // follows `before` (the current one, with the tables that the edit creates and the names that it
  // gives). Where it fails or throws, the edit is not there, now or after reopening, unless the
  // handle is poisoned.
  Status apply(const Version& before, PendingEdit* pending, Durability durability);
  // Makes every edit so far durable.
  Status sync();

 private:
  void give_up_lost_logs(VersionEdit* edit) const;
  Status log(PendingEdit* pending, bool new_files, Durability durability);
  void change_logs(const VersionEdit& edit) noexcept;
  // Puts the state into a new manifest where the old one has grown far past it. Precondition: all
  // edits are synced.
  void rewrite_grown_manifest(const Version& version) noexcept;
  // Removes the logs that synced edits have given up.
  void remove_log_files() noexcept;
  // Sees which of the files that edits have given up, with the segments that this one does, readers
  // still need; where the directory has many files, only once enough of them may go.
  void look_at_readers(const PendingEdit& pending, Durability durability) noexcept;
  // The same, however few they are.
  void look_behind() noexcept;
  Status open_reader(RecoveredDatabase* recovered);
  void close_reader();
  // Lets files go that no snapshot of the handle needs any more.
  void move_lease();
  void count_bytes(const Version& version) noexcept;

  const DatabaseContext& context_;
  UnsyncedFiles& unsynced_;
  Poison& poison_;
  std::unique_ptr<Manifest> manifest_;  // null where read_only or closed
  uint32_t identity_ = 0;
  bool has_unsynced_edits_ = false;  // the manifest ends with some
  std::vector<LogRecord> logs_;
  ReplayedLogs recovered_logs_;
  uint64_t synced_logs_ = 0;  // ManifestState::synced_logs
  uint64_t logged_next_id_ = 1;
  std::vector<uint64_t> removed_logs_;  // by edits that may not be synced: their files stay so long
  const std::shared_ptr<ObsoleteFiles> obsolete_;
  // Of a read-only handle.
  std::unique_ptr<Follower> follower_;
  std::shared_ptr<ReaderLease> lease_;  // null: there is none
  struct Seen {
    std::weak_ptr<const Version> version;
    ManifestPosition position;  // of the version
  };
  std::vector<Seen> seen_;  // that may be held by snapshots, oldest first
  bool closed_ = false;
  std::atomic<uint64_t> next_id_{1};
  std::atomic<uint64_t> size_bytes_{0};  // of segments, manifest and sealed logs
  std::atomic<uint64_t> segment_bytes_{0};
  std::atomic<uint64_t> log_bytes_{0};

  const std::shared_ptr<const Version> left_in_parent_;  // no tables: what a forked child sees
  PublishedVersion published_;
};

// What the manifest's edits say together that make such a version.
ManifestState manifest_state(const Version& version, std::vector<LogRecord> logs,
                             uint64_t synced_logs, uint64_t next_id);

}  // namespace stride

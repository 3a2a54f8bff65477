// The parts behind a Database, and the lock under which it is changed.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/background/maintenance.h"
#include "engine/backup/frozen_database.h"
#include "engine/build/run_builder.h"
#include "engine/catalog/database_context.h"
#include "engine/catalog/poison.h"
#include "engine/catalog/unsynced_files.h"
#include "engine/catalog/version_set.h"
#include "engine/damage.h"
#include "engine/merge/compaction.h"
#include "engine/metrics.h"
#include "engine/write/commit_queue.h"
#include "engine/write/committer.h"
#include "engine/write/memtable_flush.h"
#include "engine/write/read_check.h"
#include "engine/write/small_commits.h"
#include "engine/write/turn_mutex.h"
#include "storage/work_watch.h"

namespace stride {

// Thread-safe.
class DatabaseImpl {
 public:
  // takes_lease: of a handle that is read_only; one that changes nothing takes none.
  static Result<std::shared_ptr<DatabaseImpl>> open(const std::string& path, const Options& options,
                                                    bool takes_lease = true);
  explicit DatabaseImpl(DatabaseContext context);
  ~DatabaseImpl() { context_.fs->release(); }

  const DatabaseContext& context() const { return context_; }
  std::shared_ptr<const Version> current() const noexcept { return versions_.current(); }
  std::shared_ptr<const Version> current(uint32_t* commit) const noexcept {
    return versions_.current(commit);
  }
  Moment now() const noexcept {
    Moment moment;
    moment.version = current(&moment.commit);
    moment.now = context_.identity->clock.now();
    return moment;
  }
  // By which rows end that are put now: microseconds since 1970-01-01.
  int64_t now_is() const { return context_.identity->clock.look(); }
  uint64_t size_bytes() const { return versions_.size_bytes(); }
  Metrics metrics() const;
  // The logs that the manifest names, and whether its last edits were synced. Of a handle that is
  // read_only.
  const std::vector<LogRecord>& logs() const { return versions_.logs(); }
  bool has_unsynced_edits() const { return versions_.has_unsynced_edits(); }
  // closed: this process is a forked child of the one that opened the database.
  Status check_process() const { return context_.identity->check_process(); }

  // A table that is in no version yet. already_exists, invalid_argument. staging: null, or what the
  // transaction renames that makes it.
  Result<std::shared_ptr<const TableRecord>> new_table(const std::string& name,
                                                       const TableOptions& options,
                                                       const Staging* staging);
  // Makes tables without a schema: a transaction makes the others.
  Result<Table> create_table(const std::string& name, const TableOptions& options);
  Result<Table> open_table(const std::string& name) const;
  Status drop_table(const std::string& name);
  Table handle(std::shared_ptr<const TableRecord> record,
               std::shared_ptr<const Schema> schema = nullptr) const {
    return TableParts::make(std::move(record), context_.identity, std::move(schema));
  }

  // Knows of the large transactions that are staging.
  CommitQueue& large_commits() { return large_commits_; }
  // Goes through a queue, together with others that arrive meanwhile.
  Status commit(CommitRequest* request);
  // Whether it is too large to go through the log.
  bool is_large(const CommitRequest& request) const {
    return request.put_keys || small_commits_.is_too_large(*request.staging);
  }
  // Carries out a large one alone. cancelled, soon after the watch was stopped, unless it has been
  // committed by then. Precondition: request->watched, and the queue knows of no `open`.
  Status commit_watched(CommitRequest* request, WorkWatch* watch);
  Status writable();  // closed, read_only or poisoned
  Status refresh();
  Status sync();
  Status compact();
  Status calibrate();
  Status verify();
  Status verify(VerifyReport* report);
  // Makes all that was committed so far durable, as a writer can, and holds its files. closed,
  // poisoned.
  Result<FrozenDatabase> freeze();
  Status close();

 private:
  void tell_of_opening();
  // report: null, or where all damage is told.
  Status verify_logs(VerifyReport* report);
  void carry_out(const std::vector<CommitRequest*>& group);
  void carry_out_large(const std::vector<CommitRequest*>& group);
  // Requires large_mutex_.
  void make_runs(const std::vector<CommitRequest*>& group);

  const DatabaseContext context_;
  // Held while large commits make runs, so that no table goes that they belong to. Comes before the
  // commit lock.
  TurnMutex large_mutex_;
  // Held for the whole of a small commit or a table's creation, and to install what was made
  // without it. The parts say what needs it.
  std::mutex commit_mutex_;
  Poison poison_;
  UnsyncedFiles unsynced_;
  VersionSet versions_;
  RunBuilder builder_;
  Compactor compactor_;
  SmallCommits small_commits_;
  MemtableFlush flush_;
  Committer committer_;
  CommitQueue commits_, large_commits_;
  Maintenance maintenance_;  // the last one: its threads use the others
};

}  // namespace stride

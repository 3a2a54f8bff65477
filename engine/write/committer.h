// Carries out groups of commits: one sort and one run for each table, one edit for all.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "engine/build/run_builder.h"
#include "engine/catalog/database_context.h"
#include "engine/catalog/unsynced_files.h"
#include "engine/catalog/version_set.h"
#include "engine/write/commit_queue.h"
#include "engine/write/put_if_absent.h"
#include "engine/write/small_commits.h"
#include "storage/status.h"

namespace stride {

class Committer {
 public:
  // What commits have made besides rows in the log.
  struct Made {
    bool runs = false;         // bulk loads, which may go on
    bool erased_rows = false;  // in place, so that there may be space to be freed
  };
  // after_change: called for each table that a commit has changed, under the commit lock. What it
  // does fails no commit.
  using AfterChange = std::function<void(uint32_t table)>;
  Committer(const DatabaseContext& context, VersionSet& versions, UnsyncedFiles& unsynced,
            RunBuilder& builder, SmallCommits& small, AfterChange after_change)
      : context_(context),
        versions_(versions),
        unsynced_(unsynced),
        builder_(builder),
        small_(small),
        after_change_(std::move(after_change)) {}

  // Commits each request, or says why not, and answers it. Requires the commit lock.
  Made commit(const std::vector<CommitRequest*>& group);
  // The same for requests that have rows alone (Staging::has_rows_alone()), each of which becomes a
  // part of a run. Takes the commit lock only to make it a part of the database. Meanwhile no table
  // may be dropped. None of them renames one.
  bool commit_rows_alone(const std::vector<CommitRequest*>& group, std::mutex& commit_lock);

 private:
  struct Round;
  struct SmallRound;
  // Adds the request to one of the rounds, or answers it. A round that it does not fit into, and
  // the other one, is carried out first.
  void add(CommitRequest* request, Round* round, SmallRound* small);
  // A request whose rows are in CommitRequest::rows.
  void add_prepared(CommitRequest* request, Round* round, SmallRound* small);
  Status check_prepared(const CommitRequest& request, SmallRound* small);
  // Answers a request of which it is not so that what it has read is as it was. Precondition: those
  // before it are carried out, but for the small round.
  bool check_reads(CommitRequest* request, SmallRound* small);
  void add_small(CommitRequest* request, std::vector<StagedTable> staged, SmallRound* small,
                 Round* round);
  // Makes plain rows of what depends on what is stored. version: before the request.
  Status make_plain(const std::shared_ptr<const Version>& version, std::vector<StagedTable>* staged,
                    AbsentAnswers* answers);
  void carry_out(SmallRound* small);
  void carry_out_large(CommitRequest* request, std::vector<StagedTable> staged,
                       AbsentAnswers answers, Round* round);
  // Turns the deltas among the rows into sums, if there are any.
  Status resolve_deltas(Round* round, std::vector<StagedTable>* staged);
  // Answers all requests of the round, which is empty then.
  void carry_out(Round* round);
  Status commit_rows(Round* round);
  Status make_run(Round* round, std::mutex& commit_lock);
  void count_bytes(const PendingEdit& installed) noexcept;
  // Sorts the rows of a table and builds its part of the run. tombstones: whether it is to have
  // them. put_keys: null, or what asks about its keys.
  Status build_table(StagedTable* table, bool tombstones, Durability durability, PutKeys* put_keys,
                     PendingEdit* pending);
  // The same of a table whose rows are segments of other databases, which are copied.
  Status adopt(const StagedTable& table, Durability durability, PutKeys* put_keys,
               PendingEdit* pending);

  const DatabaseContext& context_;
  VersionSet& versions_;
  UnsyncedFiles& unsynced_;
  RunBuilder& builder_;
  SmallCommits& small_;
  const AfterChange after_change_;
  Made made_;
};

}  // namespace stride

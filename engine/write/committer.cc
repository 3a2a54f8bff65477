#include "engine/write/committer.h"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/build/run_builder_body.h"
#include "engine/catalog/next_version.h"
#include "engine/device/executor.h"
#include "engine/memtable/memtable.h"
#include "engine/memtable/snapshot_state.h"
#include "engine/write/adopted_segments.h"
#include "engine/write/group_writes.h"
#include "engine/write/put_if_absent.h"
#include "engine/write/range_erase.h"
#include "engine/write/read_check.h"
#include "engine/write/round_sums.h"
#include "engine/write/rows_of_commit.h"
#include "engine/write/table_checks.h"
#include "storage/no_throw.h"
#include "storage/work_watch.h"

namespace stride {

template Status RunBuilder::build(const StagedRows&, const TableRecord&, RunFilters, Durability,
                                  PendingEdit*);

namespace {

// What it takes to sort, index and write a row (engine/build/segment_builder_body.h).
constexpr uint64_t sort_units = 4;
constexpr uint64_t row_units =
    sort_units + segment_building::index_units + segment_building::write_units;
constexpr uint64_t sort_passes = 5;

Durability strongest(std::span<CommitRequest* const> group) {
  Durability d = Durability::none;
  for (const CommitRequest* r : group) d = std::min(d, r->durability);  // sync is the smallest
  return d;
}

// Whether a request's rows of a table may come behind those of the requests before it, in one
// round. Rows that are put if absent look at what is there, so they share one only among
// themselves. Deltas look at the rows before them, which must be known, and not be many more than
// they are.
bool fits_behind(const StagedTable& round, const StagedTable& added) {
  if (added.has_deltas() &&
      (round.has_ranges() || !round.erased.empty() || round.rows() > 65'536 + 4 * added.rows()))
    return false;
  bool alike = round.absent.empty() == added.absent.empty() &&
               (round.absent.empty() || (round.chunks.empty() && added.chunks.empty()));
  return alike && round.chunk_count() + added.chunk_count() <= max_staged_chunks;
}

uint64_t absent_rows(const StagedTable& table) {
  uint64_t rows = 0;
  for (const auto& chunk : table.absent) rows += chunk->rows->rows();
  return rows;
}

// To look up rows that are put if absent, or to sum deltas up, takes as long as all that follows.
void expect_work(const StagedTables& tables) {
  WorkWatch* watch = WorkWatch::current();
  if (!watch) return;
  uint64_t rows = 0;
  for (const auto& [id, table] : tables) rows += table.rows() + 2 * absent_rows(table);
  watch->expect(row_units * rows);
}

void begin_sums(const std::vector<StagedTable>& tables) {
  WorkWatch* watch = WorkWatch::current();
  if (!watch) return;
  uint64_t rows = 0;
  for (const StagedTable& table : tables) rows += table.rows();
  watch->begin_step(row_units * rows, rows);
  watch->expect(row_units * rows);
}

bool has_deltas(const StagedTable& table) { return table.has_deltas(); }

bool is_plain(const StagedTable& table) { return table.has_rows_alone(); }

// Turns ranges, and rows that are put if absent, into plain rows. version: before the commit.
Status decide(const std::shared_ptr<const Version>& version, uint64_t max_tombstones,
              AbsentAnswers* answers, StagedTable* table) {
  if (is_plain(*table)) return {};
  const uint32_t id = table->table->id;
  auto view = with_newest_rows(version, {&id, 1});
  if (!view.ok()) return view.status();
  STRIDE_TRY(expand_ranges(*view, nullptr, max_tombstones, table));
  if (table->absent.empty()) return {};
  if (WorkWatch* watch = WorkWatch::current())
    watch->begin_step(row_units * absent_rows(*table), absent_rows(*table));
  return answers->decide(*with_erased_rows(*view, *table), table);
}

bool erases_rows(const StagedTable& table) { return !table.erased.empty(); }

// Whether the version has rows of the table, which tombstones may hide.
bool has_rows(const Version& version, uint32_t table) {
  return !version.find(table)->segments.empty() ||
         std::any_of(version.sealed.begin(), version.sealed.end(),
                     [&](const SealedMemtable& s) { return s.rows->find(table) != nullptr; });
}

}  // namespace

// Requests that are carried out together.
struct Committer::Round {
  std::vector<CommitRequest*> requests;
  // Its only request has created them, if there are any.
  std::vector<std::shared_ptr<const TableRecord>> created;
  std::vector<TableRenaming> renamed;
  std::shared_ptr<const Version> version;  // before it, with these tables and names
  StagedTables tables;
  std::optional<RoundSums> sums;
  AbsentAnswers answers;
  PutKeys* put_keys = nullptr;  // of its only request
  bool is_alone = false;        // there is one request, and no other comes behind it
  ReadCheck* reads = nullptr;   // the same, of a run that is made without the commit lock

  bool empty() const { return requests.empty(); }
  static bool has_to_be_alone(const CommitRequest& request) {
    return request.put_keys || request.watched || request.reads || request.staging->adopts();
  }
  // Whether rows may come behind those that are there. A request that creates or renames tables has
  // a round of its own, and so has one that asks about its keys, may be stopped, or adopts rows.
  bool has_room_for(const CommitRequest& request, const std::vector<StagedTable>& staged) const {
    if (request.staging->changes_tables() || !created.empty() || !renamed.empty()) return false;
    if (!empty() && (is_alone || has_to_be_alone(request))) return false;
    return std::all_of(staged.begin(), staged.end(), [&](const StagedTable& t) {
      auto found = tables.find(t.table->id);
      return found == tables.end() || fits_behind(found->second, t);
    });
  }
  void add(CommitRequest* request, std::vector<StagedTable> staged) {
    for (StagedTable& t : staged) {
      StagedTable& to = tables[t.table->id];
      to.table = t.table;
      std::move(t.chunks.begin(), t.chunks.end(), std::back_inserter(to.chunks));
      std::move(t.absent.begin(), t.absent.end(), std::back_inserter(to.absent));
      to.erased.insert(to.erased.end(), t.erased.begin(), t.erased.end());
      std::move(t.adopted.begin(), t.adopted.end(), std::back_inserter(to.adopted));
    }
    requests.push_back(request);
    put_keys = request->put_keys;
    is_alone = has_to_be_alone(*request);
    reads = request->reads;
  }
};

// Requests that go through the log together. Their rows are in CommitRequest::rows.
struct Committer::SmallRound {
  std::vector<CommitRequest*> requests;
  // What the last one has staged, if it depended on what is stored, and what that was.
  std::vector<StagedTable> staged;
  AbsentAnswers answers;
  uint64_t bytes = 0;
  std::optional<uint32_t> found;  // a table that is there, as long as the commit lock is held
  GroupWrites writes;             // of the first `noted` requests, for those that have read
  size_t noted = 0;

  void clear() {
    writes.clear();
    noted = 0;
    requests.clear();
    staged.clear();
    answers = {};
    bytes = 0;
  }
};

// Collects the group's rows by table. A request that names a dropped table, or whose sums do not
// fit, fails alone; one whose rows do not fit behind those that are there begins the next round.
Committer::Made Committer::commit(const std::vector<CommitRequest*>& group) {
  made_ = {};
  Round round;
  SmallRound small;
  for (CommitRequest* request : group) add(request, &round, &small);
  carry_out(&round);
  carry_out(&small);
  return made_;
}

bool Committer::commit_rows_alone(const std::vector<CommitRequest*>& group,
                                  std::mutex& commit_lock) {
  bool made_runs = false;
  Round round;
  auto carry_out = [&] {
    if (round.empty()) return;
    Status s = no_throw([&] { return make_run(&round, commit_lock); });
    for (CommitRequest* r : round.requests) r->answer(s);
    made_runs |= s.ok();
    round = {};
  };
  for (CommitRequest* request : group) {
    Staging& staging = *request->staging;
    std::vector<StagedTable> staged = staging.consume();
    if (!round.has_room_for(*request, staged)) carry_out();
    if (Status s = check_tables(*versions_.current(), staging, staged); !s.ok()) {
      request->answer(std::move(s));
      continue;
    }
    if (round.empty()) round.created = staging.created();
    round.add(request, std::move(staged));
  }
  carry_out();
  return made_runs;
}

// Rows that come meanwhile are older than the run, so that none of its tombstones may be left out.
Status Committer::make_run(Round* round, std::mutex& commit_lock) {
  {
    std::lock_guard guard(commit_lock);
    STRIDE_TRY(versions_.writable());
  }
  const Durability durability = strongest(round->requests);
  PendingEdit pending(unsynced_);
  expect_work(round->tables);
  for (auto& [id, table] : round->tables) {
    STRIDE_TRY(join_small_chunks(&table));
    STRIDE_TRY(build_table(&table, /*tombstones=*/true, durability, round->put_keys, &pending));
  }
  if (durability == Durability::sync) STRIDE_TRY(unsynced_.sync_ahead());
  auto now = [&] {
    Moment moment;
    moment.version = versions_.current(&moment.commit);
    return moment;
  };
  if (round->reads) STRIDE_TRY(round->reads->look_ahead(now));
  std::lock_guard guard(commit_lock);
  // A write that has failed since is a failure of this call.
  STRIDE_TRY(unsynced_.finish_writes(/*wait=*/false, /*logs=*/false));
  STRIDE_TRY(versions_.still_writable());
  if (round->reads) STRIDE_TRY(round->reads->check(versions_.current()));
  for (const auto& table : round->created) {
    STRIDE_TRY(check_not_there(*versions_.current(), *table));
    pending.edit.created.push_back(*table);
  }
  for (const auto& [id, table] : round->tables) STRIDE_TRY(small_.seal_before({&table, 1}));
  const uint64_t run = versions_.new_id();
  for (SegmentRecord& added : pending.edit.added) added.run = run;
  STRIDE_TRY(
      versions_.apply(*with_tables(versions_.current(), round->created), &pending, durability));
  count_bytes(pending);
  WorkWatch::Scope unwatched(nullptr);  // it has been committed
  for (const auto& [id, table] : round->tables) after_change_(id);
  return {};
}

void Committer::count_bytes(const PendingEdit& installed) noexcept {
  context_.identity->monitor->work().bulk_bytes += installed.added_bytes();
}

Status Committer::check_prepared(const CommitRequest& request, SmallRound* small) {
  Status s;
  request.rows.for_each_table([&](const TableRecord& table) {
    if (!s.ok() || table.id == small->found) return;
    s = check_there(*versions_.current(), table);
    if (s.ok()) small->found = table.id;
  });
  return s;
}

void Committer::add_prepared(CommitRequest* request, Round* round, SmallRound* small) {
  carry_out(round);
  if (small->bytes > small_.max_group_bytes()) carry_out(small);
  if (Status s = check_prepared(*request, small); !s.ok()) return request->answer(std::move(s));
  if (request->reads && !check_reads(request, small)) return;
  small->bytes += request->rows.bytes();
  small->requests.push_back(request);
}

bool Committer::check_reads(CommitRequest* request, SmallRound* small) {
  Status s = no_throw([&] {
    STRIDE_TRY(request->reads->check_unless_stale(versions_.current(), &request->stale));
    for (; small->noted < small->requests.size(); ++small->noted)
      small->writes.add(small->requests[small->noted]->rows);
    return small->noted == 0 ? Status() : request->reads->check_group(small->writes);
  });
  if (s.ok() && !request->stale) return true;
  request->answer(std::move(s));
  return false;
}

void Committer::add(CommitRequest* request, Round* round, SmallRound* small) {
  if (request->rows.rows() > 0) return add_prepared(request, round, small);
  if (request->reads) {
    carry_out(small);
    carry_out(round);
    if (!check_reads(request, small)) return;
  }
  Staging& staging = *request->staging;
  std::vector<StagedTable> staged = staging.consume();
  const bool is_small = !request->put_keys && small_.takes(staging, staged);
  if (is_small || !round->has_room_for(*request, staged) || small_.has_rows_of(staged))
    carry_out(round);
  if (!is_small) carry_out(small);
  if (Status s = check_tables(*versions_.current(), staging, staged); !s.ok()) {
    request->answer(std::move(s));
    return;
  }
  if (is_small) return add_small(request, std::move(staged), small, round);
  if (round->empty()) {
    if (Status s = no_throw([&] { return small_.seal_before(staged); }); !s.ok()) {
      request->answer(std::move(s));
      return;
    }
    round->created = staging.created();
    round->renamed = staging.renamed();
    round->version = with_tables(with_renamed(versions_.current(), round->renamed), round->created);
  }
  if (Status s = resolve_deltas(round, &staged); !s.ok()) {
    request->answer(std::move(s));
    if (round->empty()) *round = {};
    return;
  }
  round->add(request, std::move(staged));
}

void Committer::add_small(CommitRequest* request, std::vector<StagedTable> staged,
                          SmallRound* small, Round* round) {
  carry_out(small);
  Status s = no_throw([&] {
    STRIDE_TRY(versions_.writable());
    STRIDE_TRY(make_plain(versions_.current(), &staged, &small->answers));
    // A range can erase many keys.
    if (staged_bytes(staged) > small_.max_group_bytes() ||
        std::any_of(staged.begin(), staged.end(), erases_rows))
      return Status();
    small->staged = std::move(staged);
    for (const StagedTable& table : small->staged) add_rows(table, &request->rows);
    small->requests.push_back(request);
    return Status();
  });
  if (!s.ok()) {
    request->answer(std::move(s));
    return small->clear();
  }
  if (small->requests.empty())
    return carry_out_large(request, std::move(staged), std::move(small->answers), round);
  carry_out(small);
}

Status Committer::make_plain(const std::shared_ptr<const Version>& version,
                             std::vector<StagedTable>* staged, AbsentAnswers* answers) {
  const uint64_t max_tombstones = context_.options.max_range_tombstones;
  STRIDE_TRY(RoundSums(version, max_tombstones).resolve({}, staged));
  for (StagedTable& table : *staged) STRIDE_TRY(decide(version, max_tombstones, answers, &table));
  return {};
}

void Committer::carry_out_large(CommitRequest* request, std::vector<StagedTable> staged,
                                AbsentAnswers answers, Round* round) {
  // A table of which only stored rows are erased gets no run.
  Status s = no_throw([&] {
    for (const StagedTable& table : staged)
      if (table.rows() > 0) STRIDE_TRY(small_.seal_before({&table, 1}));
    return Status();
  });
  if (!s.ok()) {
    request->answer(std::move(s));
    return;
  }
  round->version = versions_.current();
  round->answers = std::move(answers);
  round->add(request, std::move(staged));
  carry_out(round);
}

void Committer::carry_out(SmallRound* small) {
  if (small->requests.empty()) return;
  Status s = no_throw([&] { return small_.commit(small->requests, strongest(small->requests)); });
  if (s.ok()) small->answers.give();
  for (CommitRequest* request : small->requests) {
    request->logged = true;
    request->answer(s);
  }
  small->clear();
}

Status Committer::resolve_deltas(Round* round, std::vector<StagedTable>* staged) {
  if (std::none_of(staged->begin(), staged->end(), has_deltas)) return {};
  begin_sums(*staged);
  return no_throw([&] {
    STRIDE_TRY(versions_.writable());
    if (!round->sums) round->sums.emplace(round->version, context_.options.max_range_tombstones);
    return round->sums->resolve(round->tables, staged);
  });
}

void Committer::carry_out(Round* round) {
  if (round->empty()) return;
  Status s = no_throw([&] { return commit_rows(round); });
  for (CommitRequest* r : round->requests) r->answer(s);
  *round = {};
}

Status Committer::commit_rows(Round* round) {
  STRIDE_TRY(versions_.writable());
  const Durability durability = strongest(round->requests);
  PendingEdit pending(unsynced_);
  AbsentAnswers& answers = round->answers;
  for (const auto& table : round->created) pending.edit.created.push_back(*table);
  for (const TableRenaming& table : round->renamed)
    pending.edit.renamed.push_back({table.to->id, table.to->name});
  // It is of no use where there are no rows, but frames of the log tell by it which edits they
  // follow.
  const uint64_t run = versions_.new_id();
  expect_work(round->tables);
  for (auto& [id, table] : round->tables) {
    STRIDE_TRY(decide(round->version, context_.options.max_range_tombstones, &answers, &table));
    STRIDE_TRY(join_small_chunks(&table));
    STRIDE_TRY(
        build_table(&table, has_rows(*round->version, id), durability, round->put_keys, &pending));
    enter_erased_rows(*round->version->find(id), table.erased,
                      /*may_remove=*/durability == Durability::sync, &pending);
  }
  for (SegmentRecord& added : pending.edit.added) added.run = run;
  const VersionEdit& edit = pending.edit;
  if (!edit.added.empty() || !edit.created.empty() || !edit.renamed.empty() ||
      !edit.removed.empty() || !edit.erased.empty()) {
    STRIDE_TRY(versions_.apply(*round->version, &pending, durability));
    count_bytes(pending);
    for (const auto& segment : pending.obsolete) segment->file().set_erased();
    const bool erased = !edit.erased.empty() || !edit.removed.empty();
    (erased ? made_.erased_rows : made_.runs) = true;
  } else if (durability == Durability::sync) {
    // What it found to be there, and so did not write again, must be there for good.
    STRIDE_TRY(versions_.sync());
  }
  answers.give();
  WorkWatch::Scope unwatched(nullptr);  // it has been committed
  for (const auto& [id, table] : round->tables) after_change_(id);
  return {};
}

Status Committer::build_table(StagedTable* table, bool tombstones, Durability durability,
                              PutKeys* put_keys, PendingEdit* pending) {
  if (!table->adopted.empty()) return adopt(*table, durability, put_keys, pending);
  StagedRows rows = rows_of(*table);
  if (WorkWatch* watch = WorkWatch::current()) {
    const uint64_t n = staged_rows(rows);
    watch->begin_step(sort_units * n, sort_passes * n);
  }
  STRIDE_TRY(context_.executor->run_bulk(staged_rows(rows), [&](Backend& bulk) {
    return bulk.sorter().sort(rows.keys, &rows.sorted);
  }));
  if (put_keys) {
    const KeptPuts puts(rows);
    if (put_keys->refuse_equal) STRIDE_TRY(puts.check_all(*table->table));
    put_keys->keys[table->table->name] += puts.kept();
  }
  if (!tombstones && any_tombstones(rows)) drop_tombstones(&rows);
  // A filter would make a bulk load some percent slower.
  if (rows.size() > 0)
    STRIDE_TRY(builder_.build(rows, *table->table, RunFilters::none, durability, pending));
  table->chunks.clear();
  return {};
}

Status Committer::adopt(const StagedTable& table, Durability durability, PutKeys* put_keys,
                        PendingEdit* pending) {
  WorkWatch* watch = WorkWatch::current();
  if (watch) watch->begin_step(row_units * table.rows(), table.adopted_bytes(), table.rows());
  if (put_keys) put_keys->keys[table.table->name] += table.rows();
  Status s = copy_adopted(context_, versions_, *table.table, table.adopted, durability, pending);
  if (watch) watch->end_step();
  return s;
}

}  // namespace stride

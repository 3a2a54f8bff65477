// Carrying out a group of commits: one sort and one segment for each table, one edit for all.
#include <algorithm>
#include <map>
#include <optional>

#include "engine/build/segment_builder.h"
#include "engine/catalog/database_impl.h"
#include "engine/device/residency.h"
#include "engine/write/accumulate.h"
#include "engine/write/put_if_absent.h"
#include "engine/write/range_erase.h"
#include "storage/no_throw.h"

namespace stride {
namespace {

StagedRows rows_of(const StagedTable& table) {
  StagedRows rows;
  for (const auto& chunk : table.chunks) {
    if (chunk->rows() == 0) continue;
    rows.chunks.push_back(chunk.get());
    rows.keys.push_back(chunk->keys());
    rows.values.push_back(chunk->values());
  }
  return rows;
}

uint64_t staged_rows(const StagedRows& rows) {
  uint64_t n = 0;
  for (const KeyColumn& chunk : rows.keys) n += chunk.size;
  return n;
}

// Where nothing lies below, a tombstone hides nothing.
void drop_tombstones(StagedRows* rows) {
  Sorted& sorted = rows->sorted;
  uint64_t kept = 0;
  for (uint64_t i = 0; i < sorted.order.size(); ++i) {
    if (rows->kind(i) == EntryKind::tombstone) continue;
    sorted.order[kept] = sorted.order[i];
    if (!sorted.keys8.empty()) sorted.keys8[kept] = sorted.keys8[i];
    ++kept;
  }
  sorted.order.resize(kept);
  if (!sorted.keys8.empty()) sorted.keys8.resize(kept);
}

bool any_tombstones(const StagedRows& rows) {
  return std::any_of(rows.chunks.begin(), rows.chunks.end(),
                     [](const StagedChunk* c) { return c->has_tombstones(); });
}

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
  if (added.has_deltas() && (round.has_ranges() || round.rows() > 65'536 + 4 * added.rows()))
    return false;
  bool alike = round.absent.empty() == added.absent.empty() &&
               (round.absent.empty() || (round.chunks.empty() && added.chunks.empty()));
  return alike && round.chunk_count() + added.chunk_count() <= max_staged_chunks;
}

using StagedTables = std::map<uint32_t, StagedTable>;  // by id

// What turns deltas into sums, in the order of a round's requests.
class RoundSums {
 public:
  explicit RoundSums(std::shared_ptr<const Version> version) : version_(std::move(version)) {}

  // before: of the round so far, without ranges where deltas follow.
  Status settle(const StagedTables& before, std::vector<StagedTable>* staged) {
    for (StagedTable& table : *staged) {
      if (!table.has_deltas()) continue;
      auto found = before.find(table.table->id);
      const StagedTable* earlier = found == before.end() ? nullptr : &found->second;
      STRIDE_TRY(expand_ranges(version_, earlier, &table));
      DeltaSums& sums = sums_.try_emplace(table.table->id, *version_).first->second;
      STRIDE_TRY(sums.settle(earlier, &table));
    }
    return {};
  }

 private:
  std::shared_ptr<const Version> version_;
  std::map<uint32_t, DeltaSums> sums_;  // by table
};

}  // namespace

// Requests that are carried out together.
struct DatabaseImpl::Round {
  std::vector<CommitRequest*> requests;
  std::vector<std::shared_ptr<const TableRecord>> created;  // tables, by one of them
  std::shared_ptr<const Version> version;                   // before it, with these tables
  StagedTables tables;
  std::optional<RoundSums> sums;

  bool empty() const { return requests.empty(); }
  void add(CommitRequest* request, std::vector<StagedTable> staged) {
    for (StagedTable& t : staged) {
      StagedTable& to = tables[t.table->id];
      to.table = t.table;
      std::move(t.chunks.begin(), t.chunks.end(), std::back_inserter(to.chunks));
      std::move(t.absent.begin(), t.absent.end(), std::back_inserter(to.absent));
    }
    requests.push_back(request);
  }
};

void DatabaseImpl::carry_out(Round* round) {
  if (!round->empty()) {
    Status s = no_throw([&] { return commit_rows(round); });
    for (CommitRequest* r : round->requests) r->answer(s);
  }
  *round = {};
}

namespace {

// The tables of a request are there, and those that it creates are not.
Status check_tables(const Version& version, const Staging& staging,
                    const std::vector<StagedTable>& staged) {
  for (const auto& created : staging.created())
    for (const TableVersion& t : version.tables)
      if (t.table->name == created->name)
        return Status(StatusCode::already_exists,
                      "there is a table '" + created->name + "' by now, which another one created")
            .with_file(version.database->path)
            .with_remedy("begin again, with open_table()");
  for (const StagedTable& t : staged) {
    bool is_new = std::any_of(staging.created().begin(), staging.created().end(),
                              [&](const auto& created) { return created->id == t.table->id; });
    if (!is_new && !version.find(t.table->id))
      return Status(StatusCode::not_found,
                    "table '" + t.table->name +
                        "' was dropped before the commit, or its creation was not committed")
          .with_file(version.database->path);
  }
  return {};
}

}  // namespace

// Collects the group's rows by table. A request that names a dropped table, or whose sums do not
// fit, fails alone; one whose rows do not fit behind those that are there begins the next round.
// One that creates tables has a round of its own.
void DatabaseImpl::commit_group(const std::vector<CommitRequest*>& group) {
  std::lock_guard guard(commit_mutex);
  Round round;
  for (CommitRequest* request : group) {
    Staging& staging = *request->staging;
    std::vector<StagedTable> staged = staging.take();
    bool fits = staging.created().empty() && round.created.empty();
    for (const StagedTable& t : staged) {
      auto found = round.tables.find(t.table->id);
      fits &= found == round.tables.end() || fits_behind(found->second, t);
    }
    if (!fits) carry_out(&round);
    if (Status s = check_tables(*current(), staging, staged); !s.ok()) {
      request->answer(std::move(s));
      continue;
    }
    if (round.empty()) {
      round.created = staging.created();
      round.version = current_with(round.created);
    }
    if (std::any_of(staged.begin(), staged.end(), [](auto& t) { return t.has_deltas(); })) {
      Status s = no_throw([&] {
        STRIDE_TRY(writable_locked());
        if (!round.sums) round.sums.emplace(round.version);
        return round.sums->settle(round.tables, &staged);
      });
      if (!s.ok()) {
        request->answer(std::move(s));
        if (round.empty()) round = {};
        continue;
      }
    }
    round.add(request, std::move(staged));
  }
  carry_out(&round);
}

Status DatabaseImpl::commit_rows(Round* round) {
  STRIDE_TRY(writable_locked());
  const std::shared_ptr<const Version>& version = round->version;
  const Durability durability = strongest(round->requests);
  PendingEdit pending(*this);
  AbsentAnswers answers;
  for (const auto& table : round->created) pending.edit.created.push_back(*table);
  const uint64_t run = next_id++;
  for (auto& [id, table] : round->tables) {
    STRIDE_TRY(expand_ranges(version, nullptr, &table));
    STRIDE_TRY(answers.settle(*version, &table));
    STRIDE_TRY(join_small_chunks(&table));
    StagedRows rows = rows_of(table);
    STRIDE_TRY(residency->run_bulk(staged_rows(rows), [&](Backend& bulk) {
      return bulk.sorter().sort(rows.keys, &rows.sorted);
    }));
    if (version->find(id)->segments.empty() && any_tombstones(rows)) drop_tombstones(&rows);
    if (rows.size() > 0) STRIDE_TRY(build(rows, *table.table, durability, &pending));
    table.chunks.clear();
  }
  for (SegmentRecord& added : pending.edit.added) added.run = run;
  if (!pending.segments.empty() || !pending.edit.created.empty()) {
    STRIDE_TRY(apply(*version, &pending, durability));
  } else if (durability == Durability::sync) {
    // What it found to be there, and so did not write again, must be there for good.
    STRIDE_TRY(sync_locked());
  }
  answers.give();
  for (const auto& [id, table] : round->tables) fold_if_due(id);
  return {};
}

}  // namespace stride

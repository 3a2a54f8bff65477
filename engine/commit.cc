// Carrying out a group of commits: one sort and one segment for each table, one edit for all.
#include <algorithm>
#include <map>
#include <optional>

#include "engine/absent_rows.h"
#include "engine/database_impl.h"
#include "engine/delta_sums.h"
#include "engine/erase_ranges.h"
#include "engine/no_throw.h"
#include "engine/residency.h"
#include "engine/segment_builder.h"

namespace stride {
namespace {

constexpr uint64_t max_chunks = uint64_t{1} << (32 - row_bits);

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
  return alike && round.chunk_count() + added.chunk_count() <= max_chunks;
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

// Collects the group's rows by table. A request that names a dropped table, or whose sums do not
// fit, fails alone; one whose rows do not fit behind those that are there begins the next round.
void DatabaseImpl::commit_group(const std::vector<CommitRequest*>& group) {
  std::lock_guard guard(commit_mutex);
  StagedTables tables;
  std::vector<CommitRequest*> round;
  std::optional<RoundSums> sums;
  auto carry_out = [&] {
    if (round.empty()) return;
    std::vector<StagedTable> rows;
    for (auto& [id, table] : tables) rows.push_back(std::move(table));
    Status s = no_throw([&] { return commit_rows(std::move(rows), strongest(round)); });
    for (CommitRequest* r : round) r->status = s;
    tables.clear();
    round.clear();
    sums.reset();
  };
  for (CommitRequest* request : group) {
    std::vector<StagedTable> staged = request->staging->take();
    bool fits = true;
    for (const StagedTable& t : staged) {
      if (!current()->find(t.table->id))
        request->status = Status(StatusCode::not_found,
                                 "table '" + t.table->name + "' was dropped before the commit");
      auto found = tables.find(t.table->id);
      fits &= found == tables.end() || fits_behind(found->second, t);
    }
    if (!request->status.ok()) continue;
    if (!fits) carry_out();
    if (std::any_of(staged.begin(), staged.end(), [](auto& t) { return t.has_deltas(); })) {
      request->status = no_throw([&] {
        STRIDE_TRY(writable_locked());
        if (!sums) sums.emplace(current());
        return sums->settle(tables, &staged);
      });
      if (!request->status.ok()) continue;
    }
    for (StagedTable& t : staged) {
      StagedTable& to = tables[t.table->id];
      to.table = t.table;
      std::move(t.chunks.begin(), t.chunks.end(), std::back_inserter(to.chunks));
      std::move(t.absent.begin(), t.absent.end(), std::back_inserter(to.absent));
    }
    round.push_back(request);
  }
  carry_out();
}

Status DatabaseImpl::commit_rows(std::vector<StagedTable> tables, Durability durability) {
  STRIDE_TRY(writable_locked());
  VersionEdit edit;
  std::vector<std::shared_ptr<Segment>> built;
  AbsentAnswers answers;
  uint64_t run = next_id++;
  auto version = current();
  for (StagedTable& table : tables) {
    Status s = expand_ranges(version, nullptr, &table);
    if (s.ok()) s = answers.settle(*version, &table);
    StagedRows rows = rows_of(table);
    if (s.ok())
      s = residency->run_bulk(staged_rows(rows),
                              [&](Backend& bulk) { return bulk.sort(rows.keys, &rows.sorted); });
    if (s.ok() && version->find(table.table->id)->segments.empty() && any_tombstones(rows))
      drop_tombstones(&rows);
    if (s.ok() && rows.size() > 0) s = build(rows, table.table->id, durability, &edit, &built);
    if (!s.ok()) {
      discard(built);
      return s;
    }
    table.chunks.clear();
  }
  for (SegmentRecord& added : edit.added) added.run = run;
  if (built.empty()) return {};
  STRIDE_TRY(apply(std::move(edit), built, durability));
  answers.give();
  for (const StagedTable& table : tables) fold_if_due(table.table->id);
  return {};
}

}  // namespace stride

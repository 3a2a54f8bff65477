#include "engine/merge/compaction.h"

#include <algorithm>
#include <vector>

#include "engine/build/run_builder_body.h"
#include "engine/catalog/segment_check.h"
#include "engine/merge/merger.h"
#include "storage/no_throw.h"

namespace stride {

template Status RunBuilder::build(const MergedRows&, const TableRecord&, RunFilters, Durability,
                                  PendingEdit*);

namespace {

// Routes come and go one by one, and what answers a match is made of all changes since a base.
constexpr uint64_t max_prefix_runs = 64;

// Whether a table has come to have so many runs that it should be compacted at once.
bool is_compaction_due(const TableVersion& table) {
  return table.matcher && count_runs(table.segments) > max_prefix_runs;
}

// Whether the segments of `inputs` are the oldest ones of the table.
bool are_oldest(const SegmentList& inputs, const TableVersion* table) {
  return table && inputs.size() <= table->segments.size() &&
         std::equal(inputs.rbegin(), inputs.rend(), table->segments.rbegin());
}

}  // namespace

std::optional<Compaction> choose_compaction(const TableVersion& table) {
  const SegmentList& segments = table.segments;
  if (segments.empty()) return std::nullopt;
  const uint64_t run = segments[0]->record().run;
  bool is_compact = std::all_of(segments.begin(), segments.end(), [&](const auto& s) {
    return s->record().run == run && s->record().tombstones == 0 && s->open_failure().ok();
  });
  if (is_compact) return std::nullopt;
  return Compaction{table.table, segments, run};
}

Status Compactor::merge(const Compaction& choice, PendingEdit* merged) {
  for (const auto& s : choice.inputs) STRIDE_TRY(s->open_failure());
  // What another process wrote is looked at before it is written again.
  for (const auto& s : choice.inputs)
    if (!s->segment().was_written_here())
      STRIDE_TRY(check_rows(*context_.backend, *s, *choice.table));
  MergedRows rows;
  STRIDE_TRY(merge_all(*context_.backend, choice.inputs, &rows));
  for (const auto& s : choice.inputs) {
    merged->edit.removed.push_back(s->record().segment);
    merged->obsolete.push_back(s);
  }
  if (rows.size() > 0)
    STRIDE_TRY(builder_.build(rows, *choice.table, RunFilters::none, Durability::sync, merged));
  for (SegmentRecord& added : merged->edit.added) added.run = choice.run;
  return {};
}

Result<bool> Compactor::install(const Compaction& choice, PendingEdit* merged) {
  auto version = versions_.current();
  if (!are_oldest(choice.inputs, version->find(choice.table->id))) return false;
  STRIDE_TRY(versions_.apply(*version, merged, Durability::sync));
  return true;
}

Status Compactor::compact(const Compaction& choice) {
  PendingEdit merged(unsynced_);
  STRIDE_TRY(merge(choice, &merged));
  return install(choice, &merged).status();
}

Status Compactor::compact_all() {
  // A version pins the files of all its tables, so none is held while they are compacted: those of
  // a table go before the next one needs room.
  std::vector<uint32_t> tables;
  for (const auto& table : versions_.current()->tables.all()) tables.push_back(table->table->id);
  Status damage;
  for (uint32_t table : tables) {
    auto choice = choose_compaction(*versions_.current()->find(table));
    if (!choice) continue;
    Status s = compact(*choice);
    if (!s.ok() && (!is_damage(s) || !versions_.writable().ok())) return s;
    if (damage.ok()) damage = std::move(s);
  }
  return damage;
}

void Compactor::compact_if_due(uint32_t table) noexcept {
  Status ignored = no_throw([&] {
    auto version = versions_.current();
    const TableVersion* found = version->find(table);
    if (!found || !is_compaction_due(*found)) return Status();
    auto choice = choose_compaction(*found);
    return choice ? compact(*choice) : Status();
  });
}

}  // namespace stride

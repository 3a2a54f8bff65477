#include "engine/merge/compaction.h"

#include <algorithm>
#include <vector>

#include "engine/build/run_builder_body.h"
#include "engine/catalog/segment_check.h"
#include "engine/merge/merger.h"
#include "engine/merge/tiers.h"
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

Status closing(const std::string& path) {
  return Status(StatusCode::closed, "the database is being closed").with_file(path);
}

// The segments that are older than all sealed memtables.
SegmentList below_sealed(const Version& version, const TableVersion& table) {
  if (version.sealed.empty() || table.matcher) return table.segments;
  auto older = std::find_if(table.segments.begin(), table.segments.end(), [&](const auto& s) {
    return s->record().run < version.sealed.back().run;
  });
  return older == table.segments.begin() ? table.segments
                                         : SegmentList(older, table.segments.end());
}

// Whether the table has all inputs, one after the other, and nothing below them where nothing was.
bool are_there(const Compaction& choice, const TableVersion* table) {
  if (!table) return false;
  const SegmentList& segments = table->segments;
  auto found =
      std::search(segments.begin(), segments.end(), choice.inputs.begin(), choice.inputs.end());
  if (found == segments.end()) return false;
  return !choice.to_bottom || static_cast<size_t>(segments.end() - found) == choice.inputs.size();
}

}  // namespace

std::optional<Compaction> choose_compaction(const Version& version, const TableVersion& table) {
  const SegmentList segments = below_sealed(version, table);
  if (segments.empty()) return std::nullopt;
  const uint64_t run = segments[0]->record().run;
  bool is_compact = std::all_of(segments.begin(), segments.end(), [&](const auto& s) {
    return s->record().run == run && s->record().tombstones == 0 && s->open_failure().ok();
  });
  if (is_compact) return std::nullopt;
  return Compaction{table.table, segments, run, /*to_bottom=*/true};
}

namespace {

// has_bottom: the last of the segments is the table's oldest one.
std::optional<Compaction> choose_among(const SegmentList& segments, const TableVersion& table,
                                       uint64_t written, bool has_bottom) {
  std::vector<size_t> firsts;  // of each run
  std::vector<uint64_t> bytes;
  for (size_t i = 0; i < segments.size(); ++i) {
    const SegmentRecord& record = segments[i]->record();
    if (i == 0 || segments[i - 1]->record().run != record.run) {
      firsts.push_back(i);
      bytes.push_back(0);
    }
    bytes.back() += record.bytes;
  }
  auto can_be_read = [](const auto& s) { return s->open_failure().ok(); };
  if (!std::all_of(segments.begin(), segments.end(), can_be_read)) written = 0;
  std::optional<RunRange> runs = choose_tier(bytes, written);
  if (!runs) return std::nullopt;
  const size_t end_run = runs->first + runs->count;
  const bool to_end = end_run == firsts.size();
  const size_t end = to_end ? segments.size() : firsts[end_run];
  const SegmentList inputs(segments.begin() + static_cast<ptrdiff_t>(firsts[runs->first]),
                           segments.begin() + static_cast<ptrdiff_t>(end));
  if (!std::all_of(inputs.begin(), inputs.end(), can_be_read)) return std::nullopt;
  return Compaction{table.table, inputs, inputs[0]->record().run, to_end && has_bottom};
}

}  // namespace

std::optional<Compaction> choose_runs(const Version& version, const TableVersion& table,
                                      uint64_t written) {
  if (table.matcher) return std::nullopt;
  return choose_among(below_sealed(version, table), table, written, /*has_bottom=*/true);
}

std::optional<Compaction> choose_newer_runs(const Version& version, const TableVersion& table,
                                            uint64_t run) {
  if (table.matcher) return std::nullopt;
  const SegmentList segments = below_sealed(version, table);
  auto end = std::find_if(segments.begin(), segments.end(),
                          [&](const auto& s) { return s->record().run <= run; });
  return choose_among(SegmentList(segments.begin(), end), table, /*written=*/0,
                      /*has_bottom=*/false);
}

Status Compactor::merge(const Compaction& choice, PendingEdit* merged) {
  for (const auto& s : choice.inputs) STRIDE_TRY(s->open_failure());
  // What another process wrote is looked at before it is written again.
  for (const auto& s : choice.inputs) {
    if (s->segment().was_written_here()) continue;
    if (merged->stop && *merged->stop) return closing(context_.path);
    STRIDE_TRY(check_rows(*context_.backend, *s, *choice.table));
  }
  MergedRows rows;
  STRIDE_TRY(merge_all(*context_.backend, choice.inputs, &rows,
                       choice.to_bottom ? Tombstones::drop : Tombstones::keep, merged->stop));
  for (const auto& s : choice.inputs) {
    merged->edit.removed.push_back(s->record().segment);
    merged->obsolete.push_back(s);
  }
  const RunFilters filters = choice.to_bottom ? RunFilters::none : RunFilters::build;
  if (rows.size() > 0)
    STRIDE_TRY(builder_.build(rows, *choice.table, filters, Durability::sync, merged));
  for (SegmentRecord& added : merged->edit.added) added.run = choice.run;
  return {};
}

Result<bool> Compactor::install(const Compaction& choice, PendingEdit* merged) {
  auto version = versions_.current();
  if (!are_there(choice, version->find(choice.table->id))) return false;
  merged->only_moves_rows = true;
  STRIDE_TRY(versions_.apply(*version, merged, Durability::sync));
  return true;
}

// A version pins the files of all its tables, so none is held while they are compacted: those of a
// table go before the next one needs room.
Status Compactor::compact_all(std::mutex& commit_lock, const std::atomic<bool>* stop) {
  std::vector<uint32_t> tables;
  for (const auto& table : versions_.current()->tables.all()) tables.push_back(table->table->id);
  Status damage;
  for (uint32_t table : tables) {
    Status s = compact_table(table, commit_lock, stop);
    if (s.ok()) continue;
    std::lock_guard guard(commit_lock);
    if (!is_damage(s) || !versions_.writable().ok()) return s;
    if (damage.ok()) damage = std::move(s);
  }
  return damage;
}

// Where commits have compacted the table meanwhile, it is looked at again.
Status Compactor::compact_table(uint32_t table, std::mutex& commit_lock,
                                const std::atomic<bool>* stop) {
  for (;;) {
    std::optional<Compaction> choice;
    {
      auto version = versions_.current();
      const TableVersion* found = version->find(table);
      if (found) choice = choose_compaction(*version, *found);
    }
    if (!choice) return {};
    PendingEdit merged(unsynced_);
    merged.stop = stop;
    STRIDE_TRY(merge(*choice, &merged));
    STRIDE_TRY(unsynced_.sync_ahead());
    std::lock_guard guard(commit_lock);
    if (versions_.is_closed()) return versions_.writable();
    auto done = install(*choice, &merged);
    if (!done.ok() || *done) return done.status();
  }
}

void Compactor::compact_if_due(uint32_t table) noexcept {
  Status ignored = no_throw([&] {
    auto version = versions_.current();
    const TableVersion* found = version->find(table);
    if (!found || !is_compaction_due(*found)) return Status();
    auto choice = choose_compaction(*version, *found);
    if (!choice) return Status();
    PendingEdit merged(unsynced_);
    STRIDE_TRY(merge(*choice, &merged));
    return install(*choice, &merged).status();
  });
}

}  // namespace stride

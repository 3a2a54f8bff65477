#include "engine/merge/compaction.h"

#include <algorithm>
#include <unordered_map>
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

// What has become of the inputs of a merge.
struct CurrentInputs {
  bool are_there = false;                                 // as far as ranges have not erased them
  std::vector<std::shared_ptr<IndexedSegment>> segments;  // what is there of them
  std::vector<RowIntervals> erased;                       // of each input, if `any_erased`
  bool any_erased = false;                                // since they were chosen
};

// What is added meanwhile is newer than all inputs, as these are older than all sealed memtables, or
// has the place of other segments.
CurrentInputs find_inputs(const Compaction& choice, const SegmentList& segments) {
  CurrentInputs current;
  std::unordered_map<uint64_t, size_t> positions;
  for (size_t i = 0; i < segments.size(); ++i) positions[segments[i]->record().segment] = i;
  size_t next = segments.size();
  for (const auto& chosen : choice.inputs) {
    auto found = positions.find(chosen->record().segment);
    if (found == positions.end()) {
      if (!chosen->file().is_erased()) return {};
      current.any_erased = true;
      current.erased.emplace_back().add({0, chosen->rows()});
      continue;
    }
    const auto& segment = segments[found->second];
    if (!current.segments.empty() && found->second != next) return {};
    next = found->second + 1;
    current.any_erased |= segment != chosen;
    current.erased.push_back(segment->erased());
    current.segments.push_back(segment);
  }
  current.are_there = !current.segments.empty() && (!choice.to_bottom || next == segments.size());
  return current;
}

// The rows of the result that were erased while it was made: those whose origin is. Each range
// erased the rows of all inputs alike, so none that it takes has come from elsewhere.
void erase_from_result(const CurrentInputs& inputs, PendingEdit* merged) {
  if (!inputs.any_erased) return;
  std::vector<size_t> at(inputs.erased.size());  // the interval that is next, of each input
  auto is_erased = [&](Location origin) {
    const std::vector<RowInterval>& list = inputs.erased[origin.index].list();
    size_t& i = at[origin.index];  // ranks ascend
    while (i < list.size() && list[i].end <= origin.rank) ++i;
    return i < list.size() && list[i].first <= origin.rank;
  };
  auto origin = merged->origins.begin();
  for (const SegmentRecord& added : merged->edit.added) {
    RowInterval erased;
    auto enter = [&] {
      if (!erased.empty()) merged->edit.erased.push_back({added.segment, added.table, erased});
    };
    for (uint64_t row = 0; row < added.rows; ++row, ++origin) {
      if (!is_erased(*origin)) continue;
      if (erased.end != row || erased.empty()) {
        enter();
        erased.first = row;
      }
      erased.end = row + 1;
    }
    enter();
  }
}

}  // namespace

std::optional<Compaction> choose_compaction(const Version& version, const TableVersion& table) {
  const SegmentList segments = below_sealed(version, table);
  if (segments.empty()) return std::nullopt;
  const uint64_t run = segments[0]->record().run;
  bool is_compact = std::all_of(segments.begin(), segments.end(), [&](const auto& s) {
    return s->record().run == run && s->record().tombstones == 0 && s->erased().empty() &&
           s->open_failure().ok();
  });
  if (is_compact) return std::nullopt;
  return Compaction{table.table, segments, run, /*to_bottom=*/true};
}

namespace {

// Where all rows of a segment are erased it goes; where half of them are, a new one takes its place
// if that frees some space.
bool is_worth_rewriting(const IndexedSegment& segment) {
  constexpr uint64_t min_bytes = 1 << 20;
  if (segment.erased().empty() || !segment.open_failure().ok()) return false;
  if (segment.live_rows() == 0) return true;
  const uint64_t freed = segment.record().bytes - segment.live_bytes();
  return freed >= std::max(min_bytes, segment.live_bytes());
}

// Such segments of one run that lie together.
std::optional<Compaction> choose_erased(const TableVersion& table, const SegmentList& segments) {
  for (size_t first = 0; first < segments.size(); ++first) {
    if (!is_worth_rewriting(*segments[first])) continue;
    const uint64_t run = segments[first]->record().run;
    size_t end = first + 1;
    while (end < segments.size() && segments[end]->record().run == run &&
           is_worth_rewriting(*segments[end]))
      ++end;
    const SegmentList inputs(segments.begin() + static_cast<ptrdiff_t>(first),
                             segments.begin() + static_cast<ptrdiff_t>(end));
    return Compaction{table.table, inputs, run, /*to_bottom=*/end == segments.size(),
                      /*of_erased=*/true};
  }
  return std::nullopt;
}

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
    bytes.back() += segments[i]->live_bytes();
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
  const SegmentList segments = below_sealed(version, table);
  if (auto erased = choose_erased(table, segments)) return erased;
  return choose_among(segments, table, written, /*has_bottom=*/true);
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
    if (s->segment().was_written_here() || s->live_rows() == 0) continue;
    if (merged->stop && *merged->stop) return closing(context_.path);
    STRIDE_TRY(check_rows(*context_.backend, *s, *choice.table));
  }
  MergedRows rows;
  STRIDE_TRY(merge_all(*context_.backend, choice.inputs, &rows,
                       choice.to_bottom ? Tombstones::drop : Tombstones::keep, merged->stop));
  const RunFilters filters = choice.to_bottom ? RunFilters::none : RunFilters::build;
  if (rows.size() > 0)
    STRIDE_TRY(builder_.build(rows, *choice.table, filters, Durability::sync, merged));
  for (SegmentRecord& added : merged->edit.added) added.run = choice.run;
  merged->origins = std::move(rows.order);
  return {};
}

Result<bool> Compactor::install(const Compaction& choice, PendingEdit* merged) {
  auto version = versions_.current();
  const TableVersion* table = version->find(choice.table->id);
  if (!table) return false;
  CurrentInputs current = find_inputs(choice, table->segments);
  if (!current.are_there) return false;
  erase_from_result(current, merged);
  for (const auto& segment : current.segments)
    merged->edit.removed.push_back(segment->record().segment);
  merged->obsolete = std::move(current.segments);
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

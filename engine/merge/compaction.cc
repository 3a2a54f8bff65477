#include "engine/merge/compaction.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "engine/build/run_builder_body.h"
#include "engine/catalog/expired_rows.h"
#include "engine/catalog/segment_check.h"
#include "engine/merge/parallel_merge.h"
#include "engine/merge/tiers.h"
#include "storage/first_failure.h"
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

Event event_of(const Compaction& choice) {
  Event event{.table = choice.table->name, .run = choice.run, .inputs = choice.inputs.size()};
  for (const auto& input : choice.inputs) {
    event.rows += input->live_rows();
    event.bytes_in += input->record().bytes;
  }
  return event;
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

// By which its rows have ended, in their unit.
int64_t time_of(const Version& version, const TableVersion& table) {
  return expiry_at(*table.table, version.database->clock.now()).now;
}

// What has become of the inputs of a merge.
struct CurrentInputs {
  bool are_there = false;                                 // as far as ranges have not erased them
  std::vector<std::shared_ptr<IndexedSegment>> segments;  // what is there of them
  std::vector<RowIntervals> erased;                       // of each input
};

// What is added meanwhile is newer than all inputs, as these are older than all sealed memtables,
// or has the place of other segments.
CurrentInputs find_inputs(const Compaction& choice, const SegmentList& segments) {
  CurrentInputs current;
  std::unordered_map<uint64_t, size_t> positions;
  for (size_t i = 0; i < segments.size(); ++i) positions[segments[i]->record().segment] = i;
  size_t next = segments.size();
  for (const auto& chosen : choice.inputs) {
    auto found = positions.find(chosen->record().segment);
    if (found == positions.end()) {
      if (!chosen->file().is_erased()) return {};
      current.erased.emplace_back().add({0, chosen->rows()});
      continue;
    }
    const auto& segment = segments[found->second];
    if (!current.segments.empty() && found->second != next) return {};
    next = found->second + 1;
    current.erased.push_back(segment->erased());
    current.segments.push_back(segment);
  }
  const bool is_bottom = next == segments.size() ||
                         (next > 0 && segments[segments.size() - 1]->record().run == choice.run);
  current.are_there = !current.segments.empty() && (!choice.to_bottom || is_bottom);
  return current;
}

// Parts of the merge of whose inputs rows have been erased since that was last looked at.
std::vector<size_t> changed_parts(const CurrentInputs& inputs, const MergedRun& merged) {
  std::vector<size_t> changed;  // inputs
  for (size_t s = 0; s < inputs.erased.size(); ++s)
    if (inputs.erased[s].rows() != merged.erased_of_inputs[s].rows()) changed.push_back(s);
  std::vector<size_t> parts;
  if (changed.empty() || !merged.merge) return parts;
  for (size_t part = 0; part < merged.merge->parts(); ++part) {
    const auto& first = merged.merge->ranks(part);
    const auto& end = merged.merge->ranks(part + 1);
    if (std::any_of(changed.begin(), changed.end(), [&](size_t s) {
          const RowInterval rows{first[s], end[s]};
          return inputs.erased[s].rows_in(rows) != merged.erased_of_inputs[s].rows_in(rows);
        }))
      parts.push_back(part);
  }
  return parts;
}

// Finds the rows of the result in these parts that were erased: those whose origin was. Where they
// came from was known while they were merged, and is found again by merging them once more. Each
// range erased the rows of all inputs alike, so none that it takes has come from elsewhere.
Status find_erased(Backend& backend, const std::vector<size_t>& parts,
                   std::vector<RowIntervals> erased_of_inputs, MergedRun* merged) {
  std::vector<uint64_t> first_rows(1);  // of each part, in the result
  for (uint64_t rows : merged->part_rows) first_rows.push_back(first_rows.back() + rows);
  std::vector<std::vector<RowInterval>> found(parts.size());
  FirstFailure failure;
  backend.parallel_for(parts.size(), 1, [&](uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      std::vector<Location> origins;
      if (Status s = merged->merge->run_part(parts[i], &origins); !s.ok())
        return failure.report(std::move(s));
      uint64_t row = first_rows[parts[i]];
      for (const Location& origin : origins) {
        if (erased_of_inputs[origin.index].contains(origin.rank)) {
          if (found[i].empty() || found[i].back().end != row) found[i].push_back({row, row});
          found[i].back().end = row + 1;
        }
        ++row;
      }
    }
  });
  STRIDE_TRY(failure.status());
  for (const auto& intervals : found)
    for (const RowInterval& rows : intervals) merged->erased.add(rows);
  merged->erased_of_inputs = std::move(erased_of_inputs);
  return {};
}

// Enters the erased rows of the result by segment.
void enter_erased(MergedRun* merged) {
  VersionEdit& edit = merged->pending.edit;
  const std::vector<RowInterval>& erased = merged->erased.list();
  size_t i = 0;
  uint64_t first = 0;  // row of the segment
  for (const SegmentRecord& segment : edit.added) {
    const uint64_t end = first + segment.rows;
    for (; i < erased.size() && erased[i].first < end; ++i) {
      const RowInterval rows{std::max(erased[i].first, first) - first,
                             std::min(erased[i].end, end) - first};
      if (!rows.empty()) edit.erased.push_back({segment.segment, segment.table, rows});
      if (erased[i].end > end) break;
    }
    first = end;
  }
}

}  // namespace

std::optional<Compaction> choose_compaction(const Version& version, const TableVersion& table) {
  const SegmentList segments = below_sealed(version, table);
  if (segments.empty()) return std::nullopt;
  const uint64_t run = segments[0]->record().run;
  const int64_t time = time_of(version, table);
  bool is_compact = std::all_of(segments.begin(), segments.end(), [&](const auto& s) {
    return s->record().run == run && s->record().tombstones == 0 && s->erased().empty() &&
           s->open_failure().ok() && s->record().expiry.first > time;
  });
  if (is_compact) return std::nullopt;
  return Compaction{table.table, segments, run, /*to_bottom=*/true};
}

namespace {

// About which part of a segment's rows has ended by then, as if they did one after the other from
// the first end to the last. Tombstones do not end.
double share_that_ended(const ExpiryRange& ends, int64_t time) {
  if (ends.is_of_no_rows() || time == before_all_time) return 0;
  if (ends.last <= time) return 1;
  if (ends.first > time || ends.last == never_ends) return 0;
  const double first = static_cast<double>(ends.first), last = static_cast<double>(ends.last);
  return std::clamp((static_cast<double>(time) - first) / std::max(last - first, 1.0), 0.0, 0.99);
}

// Where all rows of a segment are gone it goes; where half of them are, a new one takes its place
// if that frees some space. time: by which rows have ended that may go.
bool is_worth_rewriting(const IndexedSegment& segment, int64_t time) {
  constexpr uint64_t min_bytes = 1 << 20;
  const double ended = share_that_ended(segment.record().expiry, time);
  if ((segment.erased().empty() && ended == 0) || !segment.open_failure().ok()) return false;
  if (segment.live_rows() == 0 || ended == 1) return true;
  const auto live = static_cast<uint64_t>(static_cast<double>(segment.live_bytes()) * (1 - ended));
  return segment.record().bytes - live >= std::max(min_bytes, live);
}

// Such segments of one run that lie together. Rows that have ended may go from the oldest run
// alone: of others a tombstone would stay.
std::optional<Compaction> choose_erased(const TableVersion& table, const SegmentList& segments,
                                        int64_t time) {
  const uint64_t oldest = segments.empty() ? 0 : segments[segments.size() - 1]->record().run;
  for (size_t first = 0; first < segments.size(); ++first) {
    const uint64_t run = segments[first]->record().run;
    const int64_t time_here = run == oldest ? time : before_all_time;
    if (!is_worth_rewriting(*segments[first], time_here)) continue;
    size_t end = first + 1;
    while (end < segments.size() && segments[end]->record().run == run &&
           is_worth_rewriting(*segments[end], time_here))
      ++end;
    const SegmentList inputs(segments.begin() + static_cast<ptrdiff_t>(first),
                             segments.begin() + static_cast<ptrdiff_t>(end));
    return Compaction{table.table, inputs, run, /*to_bottom=*/run == oldest, /*of_erased=*/true};
  }
  return std::nullopt;
}

bool overlap(const IndexedSegment& a, const IndexedSegment& b) {
  return compare(a.first_key(), b.last_key()) <= 0 && compare(b.first_key(), a.last_key()) <= 0;
}

// Segments, neighbours in the list, all of whose rows have ended, where nothing older has keys
// among theirs that could come to light: the oldest such ones.
std::optional<Compaction> choose_ended(const TableVersion& table, const SegmentList& segments,
                                       int64_t time) {
  auto may_go = [&](size_t i) {
    const IndexedSegment& segment = *segments[i];
    if (!segment.open_failure().ok() || segment.record().expiry.last > time) return false;
    for (size_t older = i + 1; older < segments.size(); ++older)
      if (!segments[older]->open_failure().ok() || overlap(segment, *segments[older])) return false;
    return true;
  };
  if (time == before_all_time) return std::nullopt;
  for (size_t end = segments.size(); end > 0; --end) {
    if (!may_go(end - 1)) continue;
    size_t first = end - 1;
    while (first > 0 && may_go(first - 1)) --first;
    const SegmentList inputs(segments.begin() + static_cast<ptrdiff_t>(first),
                             segments.begin() + static_cast<ptrdiff_t>(end));
    return Compaction{table.table,         inputs,           inputs[0]->record().run,
                      /*to_bottom=*/false,
                      /*of_erased=*/true,  /*of_ended=*/true};
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
  const int64_t time = time_of(version, table);
  if (auto ended = choose_ended(table, segments, time)) return ended;
  if (auto erased = choose_erased(table, segments, time)) return erased;
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

// While a step is merged its rows take 16 bytes each.
uint64_t Compactor::max_rows_of_step() const {
  constexpr uint64_t min_rows = 1 << 16;
  return std::max(context_.options.memory_limit_bytes / 8 / 16, min_rows);
}

Status Compactor::merge(const Compaction& choice, MergedRun* merged) {
  PendingEdit& pending = merged->pending;
  for (const auto& s : choice.inputs) {
    STRIDE_TRY(s->open_failure());
    merged->erased_of_inputs.push_back(s->erased());
  }
  if (choice.of_ended) return {};
  // What another process wrote is looked at before it is written again.
  for (const auto& s : choice.inputs) {
    if (s->segment().was_written_here() || s->live_rows() == 0) continue;
    if (pending.stop && *pending.stop) return closing(context_.path);
    STRIDE_TRY(check_rows(*context_.backend, *s, *choice.table));
  }
  const SegmentList inputs =
      segments_at(*choice.table, choice.inputs, context_.identity->clock.now());
  auto made = ParallelMerge::make(inputs, choice.to_bottom ? Tombstones::drop : Tombstones::keep);
  if (!made.ok()) return made.status();
  const ParallelMerge& merge = merged->merge.emplace(std::move(*made));
  const RunFilters filters = choice.to_bottom ? RunFilters::none : RunFilters::build;
  MergedRows rows;
  rows.segments.assign(inputs.begin(), inputs.end());
  for (size_t part = 0, end; part < merge.parts(); part = end) {
    end = merge.end_of_step(part, max_rows_of_step());
    rows.bytes = merge.max_bytes(part, end);
    STRIDE_TRY(
        merge.run(*context_.backend, part, end, pending.stop, &rows.order, &merged->part_rows));
    if (rows.size() > 0)
      STRIDE_TRY(builder_.build(rows, *choice.table, filters, Durability::sync, &pending));
  }
  for (SegmentRecord& added : pending.edit.added) added.run = choice.run;
  return {};
}

// What ranges have erased meanwhile is found without the lock, unless it is little: they go on.
Result<bool> Compactor::install(const Compaction& choice, MergedRun* merged,
                                std::mutex& commit_lock) {
  constexpr size_t max_parts_under_lock = 4;
  constexpr int max_attempts = 10;
  for (int attempt = 1;; ++attempt) {
    CurrentInputs inputs;
    std::vector<size_t> parts;
    {
      std::lock_guard guard(commit_lock);
      if (versions_.is_closed()) return versions_.writable();
      auto version = versions_.current();
      const TableVersion* table = version->find(choice.table->id);
      if (!table) return false;
      inputs = find_inputs(choice, table->segments);
      if (!inputs.are_there) return false;
      parts = changed_parts(inputs, *merged);
      if (parts.size() <= max_parts_under_lock || attempt == max_attempts) {
        STRIDE_TRY(find_erased(*context_.backend, parts, std::move(inputs.erased), merged));
        enter_erased(merged);
        STRIDE_TRY(apply(std::move(inputs.segments), merged));
        return true;
      }
    }
    STRIDE_TRY(find_erased(*context_.backend, parts, std::move(inputs.erased), merged));
  }
}

Status Compactor::apply(std::vector<std::shared_ptr<IndexedSegment>> inputs, MergedRun* merged) {
  PendingEdit& pending = merged->pending;
  for (const auto& segment : inputs) pending.edit.removed.push_back(segment->record().segment);
  pending.obsolete = std::move(inputs);
  pending.only_moves_rows = true;
  STRIDE_TRY(versions_.apply(*versions_.current(), &pending, Durability::sync));
  merged->merge.reset();  // it pins the inputs
  return {};
}

Result<bool> Compactor::run(const Compaction& choice, std::mutex& commit_lock,
                            const std::atomic<bool>* stop, const Merged& merged) {
  WatchedTask task(*context_.identity->monitor, /*flush=*/false);
  task.begin(event_of(choice));
  MergedRun made(unsynced_);
  made.pending.stop = stop;
  Result<bool> done = no_throw([&]() -> Result<bool> {
    const auto begin = std::chrono::steady_clock::now();
    STRIDE_TRY(merge(choice, &made));
    STRIDE_TRY(unsynced_.sync_ahead());
    if (merged) merged(std::chrono::steady_clock::now() - begin);
    return install(choice, &made, commit_lock);
  });
  const bool is_gone = done.ok() && !*done;
  task.end(is_gone ? Status(StatusCode::cancelled, "its inputs are not there any longer")
                   : done.status(),
           made.pending.added_bytes());
  return done;
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
    auto done = run(*choice, commit_lock, stop, /*merged=*/nullptr);
    if (!done.ok() || *done) return done.status();
  }
}

// Rows of a table of prefixes are not erased in place.
void Compactor::compact_if_due(uint32_t table) noexcept {
  Status ignored = no_throw([&] {
    auto version = versions_.current();
    const TableVersion* found = version->find(table);
    if (!found || !is_compaction_due(*found)) return Status();
    auto choice = choose_compaction(*version, *found);
    if (!choice) return Status();
    MergedRun merged(unsynced_);
    WatchedTask task(*context_.identity->monitor, /*flush=*/false);
    task.begin(event_of(*choice));
    Status s = no_throw([&] {
      STRIDE_TRY(merge(*choice, &merged));
      return apply({choice->inputs.begin(), choice->inputs.end()}, &merged);
    });
    task.end(s, merged.pending.added_bytes());
    return s;
  });
}

}  // namespace stride

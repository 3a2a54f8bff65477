// Compaction: several runs of a table become one. Choosing what to compact, merging it and
// installing the result are three things, so that merging can go on beside commits.
//
//   if (std::optional<Compaction> choice = choose_compaction(*version, *table)) {   // no lock
//     MergedRun merged(unsynced);
//     STRIDE_TRY(compactor.merge(*choice, &merged));                                // no lock
//     Result<bool> done = compactor.install(*choice, &merged, commit_lock);
//   }
//
// run() is both, watched.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/build/run_builder.h"
#include "engine/catalog/database_context.h"
#include "engine/catalog/pending_edit.h"
#include "engine/catalog/version_set.h"
#include "engine/merge/parallel_merge.h"
#include "storage/status.h"

namespace stride {

// A choice. It pins its inputs.
struct Compaction {
  std::shared_ptr<const TableRecord> table;
  SegmentList inputs;      // newest first: whole runs, or segments of one, that lie together
  uint64_t run = 0;        // that the result becomes: the newest of the inputs'
  bool to_bottom = false;  // down to the table's oldest segment, so that tombstones may go
  // To free what ranges have erased or what has ended, and not to merge runs.
  bool of_erased = false;
  // All rows of the inputs have ended, and nothing older has their keys: all goes.
  bool of_ended = false;
};

// All leave runs alone that are newer than a sealed memtable, whose run will be older.

// All of the table, unless it is one run without tombstones that can be read.
std::optional<Compaction> choose_compaction(const Version& version, const TableVersion& table);
// Segments of which ranges have erased much, or whose rows have ended, by themselves; else runs of
// the table that tiers ask for (engine/merge/tiers.h), if they can be read. written: bytes of its
// runs that small commits made since all was merged. Nothing for a table of prefixes.
std::optional<Compaction> choose_runs(const Version& version, const TableVersion& table,
                                      uint64_t written);

// The same among runs that are newer than this one, which is being merged to the bottom.
std::optional<Compaction> choose_newer_runs(const Version& version, const TableVersion& table,
                                            uint64_t run);

// What the merge of a compaction has made.
struct MergedRun {
  explicit MergedRun(UnsyncedFiles& unsynced) : pending(unsynced) {}

  PendingEdit pending;
  std::optional<ParallelMerge> merge;
  std::vector<uint64_t> part_rows;  // of the result, by part of the merge
  RowIntervals erased;              // rows of the result, all segments one behind the other
  // The rows of each input that were erased when `erased` was found out.
  std::vector<RowIntervals> erased_of_inputs;
};

class Compactor {
 public:
  Compactor(const DatabaseContext& context, VersionSet& versions, UnsyncedFiles& unsynced,
            RunBuilder& builder)
      : context_(context), versions_(versions), unsynced_(unsynced), builder_(builder) {}

  // Writes and syncs the segments of the result, and makes the edit that puts them in their inputs'
  // place. Besides what segments that are built need it takes an eighth of the memory limit. Reads
  // the choice only and needs no lock. corruption and io_error: of an input.
  Status merge(const Compaction& choice, MergedRun* merged);
  // Applies the edit, synced whatever Options::durability is: files may go only when no log that
  // could come back after a power loss names them. Takes the commit lock. False, and nothing is
  // changed: the inputs are not there any longer. Newer runs that came meanwhile stay newer, and
  // rows that ranges have erased of the inputs meanwhile are erased of the result: for these the
  // merge is run again where they are.
  Result<bool> install(const Compaction& choice, MergedRun* merged, std::mutex& commit_lock);

  // merge() and install(), as metrics and listeners are told. merged: null, or called once the
  // merge is done, with how long it took.
  using Merged = std::function<void(std::chrono::steady_clock::duration)>;
  Result<bool> run(const Compaction& choice, std::mutex& commit_lock, const std::atomic<bool>* stop,
                   const Merged& merged);

  // The three in one for every table; takes the commit lock to install. What one damaged table
  // fails with is no reason not to compact the others.
  // stop: PendingEdit::stop.
  Status compact_all(std::mutex& commit_lock, const std::atomic<bool>* stop);
  // The same for a table of prefixes that is due, under the commit lock. The commit that made it so
  // stands whatever becomes of this, and the next one tries again.
  void compact_if_due(uint32_t table) noexcept;

 private:
  uint64_t max_rows_of_step() const;
  // Requires the commit lock. inputs: what there is of them.
  Status apply(std::vector<std::shared_ptr<IndexedSegment>> inputs, MergedRun* merged);
  Status compact_table(uint32_t table, std::mutex& commit_lock, const std::atomic<bool>* stop);

  const DatabaseContext& context_;
  VersionSet& versions_;
  UnsyncedFiles& unsynced_;
  RunBuilder& builder_;
};

}  // namespace stride

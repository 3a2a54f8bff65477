// A gap between the entries of a table, which moves over them in either direction.
//
//   GapMerger merger(sources);                            // newest first
//   for (size_t s = 0; s < sources.size(); ++s) merger.set_gap(s, rank_of_key_in(s));
//   MergedEntry entry;
//   STRIDE_TRY(merger.next(&entry));                      // the first entry from the key on
//   if (entry.is_there()) STRIDE_TRY(entry.value(&value));
//
// The gap is a rank in each source. A step compares the row above (or below) it of each source,
// which it has loaded, and loads one row of those that move; it allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/merge/merger.h"
#include "engine/read/sorted_rows.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// A view.
struct MergedEntry {
  const SortedRows* source = nullptr;  // null: there is no entry
  SortedRow row;

  bool is_there() const { return source != nullptr; }
  Status value(Bytes* value) const { return source->value(row, value); }
};

// Not thread-safe. The sources must outlive it.
class GapMerger {
 public:
  // sources: newest first.
  explicit GapMerger(std::span<const SortedRows> sources, Tombstones tombstones = Tombstones::drop);

  size_t sources() const { return states_.size(); }
  uint64_t gap(size_t source) const { return states_[source].gap; }
  // The ranks of all sources have to be those of one key.
  void set_gap(size_t source, uint64_t rank) {
    State& state = states_[source];
    state.gap = rank;
    state.is_above_known = state.is_below_known = false;
  }

  // Rows of other ranks than [first, end) of the source do not count from now on. Call set_gap()
  // then.
  void set_limits(size_t source, uint64_t first, uint64_t end) {
    states_[source].first = first;
    states_[source].end = end;
  }

  // Finds the first entry above the gap (or tombstone, where these are kept), and moves the gap
  // behind it; or the last entry below, and moves it before that. Where there is none it passes
  // over what is hidden there.
  Status next(MergedEntry* entry);
  Status previous(MergedEntry* entry);
  // The sources that have a row of the entry that the last step has found; none: it found none.
  std::span<const uint32_t> last_moved() const { return equal_; }

 private:
  struct State {
    uint64_t gap = 0;
    uint64_t first = 0, end = UINT64_MAX;
    bool is_above_known = false, is_below_known = false;
    SortedRow above, below;
  };

  Status load_above(size_t source);
  Status load_below(size_t source);

  const std::span<const SortedRows> sources_;
  const Tombstones tombstones_;
  std::vector<State> states_;
  std::vector<uint32_t> equal_;  // the sources whose row has the key that comes next
};

}  // namespace stride

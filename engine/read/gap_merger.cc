#include "engine/read/gap_merger.h"

#include <utility>

namespace stride {

GapMerger::GapMerger(std::span<const SortedRows> sources, Tombstones tombstones)
    : sources_(sources), tombstones_(tombstones), states_(sources.size()) {
  equal_.reserve(sources.size());
}

Status GapMerger::load_above(size_t source) {
  State& state = states_[source];
  STRIDE_TRY(sources_[source].above(state.gap, &state.above));
  state.above.is_there &= state.above.rank < state.end;
  state.is_above_known = true;
  return {};
}

Status GapMerger::load_below(size_t source) {
  State& state = states_[source];
  STRIDE_TRY(sources_[source].below(state.gap, &state.below));
  state.below.is_there &= state.below.rank >= state.first;
  state.is_below_known = true;
  return {};
}

Status GapMerger::next(MergedEntry* entry) {
  for (;;) {
    equal_.clear();
    Bytes smallest;
    for (uint32_t s = 0; s < states_.size(); ++s) {
      if (!states_[s].is_above_known) STRIDE_TRY(load_above(s));
      if (!states_[s].above.is_there) continue;
      const Bytes key = states_[s].above.key;
      const int order = equal_.empty() ? -1 : compare(key, smallest);
      if (order > 0) continue;
      if (order < 0) equal_.clear();
      smallest = key;
      equal_.push_back(s);
    }
    entry->source = nullptr;
    if (equal_.empty()) return {};
    for (uint32_t s : equal_) {
      State& state = states_[s];
      state.gap = state.above.rank + 1;
      state.below = state.above;
      state.is_below_known = true;
      state.is_above_known = false;
    }
    const SortedRow& newest = states_[equal_[0]].below;
    if (newest.is_tombstone && tombstones_ == Tombstones::drop) continue;
    entry->source = &sources_[equal_[0]];
    entry->row = newest;
    return {};
  }
}

Status GapMerger::previous(MergedEntry* entry) {
  for (;;) {
    equal_.clear();
    Bytes largest;
    for (uint32_t s = 0; s < states_.size(); ++s) {
      if (!states_[s].is_below_known) STRIDE_TRY(load_below(s));
      if (!states_[s].below.is_there) continue;
      const Bytes key = states_[s].below.key;
      const int order = equal_.empty() ? 1 : compare(key, largest);
      if (order < 0) continue;
      if (order > 0) equal_.clear();
      largest = key;
      equal_.push_back(s);
    }
    entry->source = nullptr;
    if (equal_.empty()) return {};
    for (uint32_t s : equal_) {
      State& state = states_[s];
      state.gap = state.below.rank;
      state.above = state.below;
      state.is_above_known = true;
      state.is_below_known = false;
    }
    const SortedRow& newest = states_[equal_[0]].above;
    if (newest.is_tombstone && tombstones_ == Tombstones::drop) continue;
    entry->source = &sources_[equal_[0]];
    entry->row = newest;
    return {};
  }
}

}  // namespace stride

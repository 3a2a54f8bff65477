// Which runs of a table to merge: tiers over one bottom run.
//
// Runs of like size are a tier. Where a tier has `fanout` runs that lie together they become one of
// the next tier, so that a row is written once a tier. Whatever small commits have written since
// all was merged into the bottom run may be rows that hide others; where it reaches a share of the
// bottom run, all is merged again, which bounds the space.
//
// With flushed runs of B bytes, data of N, fanout T and share f, and M = ceil(log_T(f N / B)): a
// row is written M - 1 times within tiers and 1 + 1/f times into the bottom run; a table has T M +
// 1 runs at most, and (1 + f) N bytes. (Size-tiered and leveled compaction together: Dayan and
// Idreos, "Dostoevsky", SIGMOD 2018, call it lazy leveling.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace stride {

struct TierOptions {
  uint64_t fanout = 8;          // T, at least 2
  double bottom_share = 0.25;   // f
  uint64_t smallest = 1 << 20;  // bytes: smaller runs count as of this size
};

// Runs that lie together: the first of them, counted from the newest, and how many.
struct RunRange {
  size_t first = 0;
  size_t count = 0;
  friend bool operator==(const RunRange&, const RunRange&) = default;
};

// What to merge next. bytes: of each run, newest first. written: bytes of runs that small commits
// made since all was merged. Nothing where nothing is due.
std::optional<RunRange> choose_tier(std::span<const uint64_t> bytes, uint64_t written,
                                    const TierOptions& options = {});

}  // namespace stride

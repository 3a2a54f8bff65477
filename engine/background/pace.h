// How fast commits may fill memtables, where flushes or merges do not keep up with them.
//
// The time that each byte takes rises with what is owed, so that nothing stops all at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace stride {

// Bytes a second; infinity: as fast as they come.
inline constexpr double unpaced = std::numeric_limits<double>::infinity();

// For a memtable of so many bytes, beside one that is being flushed: from the middle on slower, so
// that it fills about when the other one is a run. flush_rate: bytes of memtables that become runs
// in a second.
double memtable_pace(uint64_t bytes, uint64_t seal_above_bytes, double flush_rate);

// What a table's merge into its bottom run has before it.
struct MergeDebt {
  uint64_t bottom = 0;   // bytes of that run
  uint64_t written = 0;  // bytes of small commits' runs since it was made
};

// From twice the share of the bottom run at which it is merged on, up to as much as the bottom run:
// there the merges gain on what is written. Merges of less than a second are not waited for.
// merge_rate: bytes that are merged in a second; 0: not known yet.
double merge_pace(const MergeDebt& debt, double merge_rate, double flush_rate);

// Not thread-safe.
class Pacer {
 public:
  // Sleeps for as long as what came since the last call should have taken, for 20 ms at most, and
  // takes the rest into account the next time. total: counts all bytes.
  void pace(uint64_t total, double bytes_per_s);

 private:
  using Clock = std::chrono::steady_clock;
  uint64_t total_ = 0;
  double owed_s_ = 0;
  Clock::time_point at_{};
};

}  // namespace stride

// How host threads share the work of a scatter: by the sizes and a sample of the targets.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "gpu/host/task_pool.h"
#include "gpu/scatter/scatter_partition.h"
#include "gpu/scatter_add.h"

namespace stride {

// What ranges of rows are reduced to, on a pool's threads or a backend's.
using RunRanges = std::function<void(uint64_t n, uint64_t grain,
                                     const std::function<void(uint64_t, uint64_t)>& body)>;
inline constexpr uint64_t reduce_grain = 1 << 16;

// How threads share the work.
struct ScatterShares {
  enum Kind : uint8_t {
    privatized,  // each has a copy of T, the first T itself, and a part of the sources
    sorted,      // targets nearly ascend: each has the targets of its part of the sources
    partition,   // scatter_partition.h
  };
  Kind kind = privatized;
  uint64_t copies = 1;
};

template <class Index>
bool is_sorted(TaskPool& pool, const Index* targets, uint64_t n) {
  std::atomic<bool> sorted{true};
  pool.run(n - 1, reduce_grain, [&](uint64_t begin, uint64_t end) {
    for (uint64_t first = begin; first < end && sorted; first += 4096) {
      uint32_t falls = 0;
      for (uint64_t i = first; i < std::min(end, first + 4096); ++i)
        falls += targets[i] > targets[i + 1];
      if (falls > 0) sorted = false;
    }
  });
  return sorted;
}

// Some targets, from all places.
struct TargetSample {
  uint64_t falls = 0;        // how many are below the one before
  double most_frequent = 0;  // the share of the most frequent one
  double repeated = 0;       // the share of those that were met more than once
  double wide_bytes = 0;     // of the pieces of T that it met
};

// Targets nearly ascend where no more of a sample are below the one before.
inline constexpr uint64_t few_falls = 16;

// Cells of so many bytes are as good as in a core's own cache.
inline constexpr uint64_t cached_bytes = 8 << 20;

template <class Index>
TargetSample sample_of(const Index* targets, uint64_t n, uint64_t cell_bytes) {
  constexpr uint64_t size = 1024, piece_bytes = 1 << 18;
  std::vector<uint64_t> sample(size);
  for (uint64_t k = 0; k < size; ++k)
    sample[k] = targets[n / size * k + k % std::min(n / size, size)];
  TargetSample found;
  for (uint64_t k = 1; k < size; ++k) found.falls += sample[k] < sample[k - 1];
  std::sort(sample.begin(), sample.end());
  uint64_t run = 0, longest = 0, repeated = 0, pieces = 1;
  for (uint64_t k = 0; k < size; ++k) {
    run = k > 0 && sample[k] == sample[k - 1] ? run + 1 : 1;
    longest = std::max(longest, run);
    repeated += run == 2 ? 2 : run > 2 ? 1 : 0;
    pieces += k > 0 &&
              sample[k] / (piece_bytes / cell_bytes) != sample[k - 1] / (piece_bytes / cell_bytes);
  }
  found.most_frequent = static_cast<double>(longest) / size;
  found.repeated = static_cast<double>(repeated) / size;
  found.wide_bytes = static_cast<double>(pieces * piece_bytes);
  return found;
}

// has_cells: sums need cells of their own beside T.
template <class Index>
ScatterShares plan_of(TaskPool& pool, const Index* targets, uint64_t n, uint64_t limit,
                      uint64_t cell_bytes, bool has_cells, ScatterMethod method) {
  constexpr uint64_t least_of_a_thread = 1 << 16;
  const uint64_t threads = std::min<uint64_t>(pool.threads(), n / least_of_a_thread + 1);
  switch (method) {
    case ScatterMethod::direct:
      return {};
    case ScatterMethod::privatized:
      return {.copies = std::min<uint64_t>(pool.threads(), n)};
    case ScatterMethod::partition:
      return {.kind = ScatterShares::partition};
    default:
      break;
  }
  // Cells of all targets would be cleared and looked at.
  const bool few_sources = has_cells && n < limit / 4;
  if (n < 2 * least_of_a_thread)
    return {.kind = few_sources ? ScatterShares::partition : ScatterShares::privatized};
  const TargetSample sample = sample_of(targets, n, cell_bytes);
  // Sums with cells need that all ascend.
  const uint64_t most_falls = has_cells ? 0 : few_falls;
  if (sample.falls <= most_falls && limit >= 64 * threads && sample.most_frequent < 0.5)
    return {.kind = ScatterShares::sorted};
  // A copy is cleared and added up, in order, which takes far less than as many sources.
  const uint64_t copies = std::min(threads, 1 + 2 * n / limit);
  const bool is_narrow =
      sample.most_frequent > 0.25 || sample.repeated > 0.25 || sample.wide_bytes <= cached_bytes;
  if (limit * cell_bytes <= cached_bytes || (is_narrow && !few_sources)) {
    // Bringing sources together takes a thread three times as long as adding them in the cache.
    if (copies == threads || threads <= 3) return {.copies = copies};
  }
  return {.kind = ScatterShares::partition};
}

}  // namespace stride

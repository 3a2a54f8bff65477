#include "engine/read/range_count.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "engine/read/gap_merger.h"
#include "storage/first_failure.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

constexpr uint64_t ranges_per_block = 1024;
// Rows that have to be looked at which are worth a task.
constexpr uint64_t rows_per_piece = 1 << 15;
// To look for a key in a source takes about as long as to merge so many rows.
constexpr uint64_t merged_rows_per_search = 3;

// The gaps of each source at both ends of a range.
struct RangeGaps {
  explicit RangeGaps(size_t sources) : first(sources), end(sources) {}
  std::vector<uint64_t> first, end;
};

Status find_gaps(std::span<const SortedRows> sources, Bytes key, std::vector<uint64_t>* gaps) {
  for (size_t s = 0; s < sources.size(); ++s)
    STRIDE_TRY(sources[s].rank(key, /*past_equal=*/false, &(*gaps)[s]));
  return {};
}

// Not thread-safe. Memory is taken once for all ranges.
class RangeCounter {
 public:
  explicit RangeCounter(std::span<const SortedRows> sources)
      : sources_(sources),
        merger_(sources, Tombstones::drop),
        newer_merger_(sources, Tombstones::keep) {}

  Status count(const RangeGaps& gaps, uint64_t* rows) {
    *rows = 0;
    size_t oldest = 0;
    uint64_t newer_rows = 0, oldest_rows = 0;
    for (size_t s = 0; s < sources_.size(); ++s) {
      if (gaps.first[s] >= gaps.end[s]) continue;
      newer_rows += oldest_rows;
      oldest_rows = gaps.end[s] - gaps.first[s];
      oldest = s;
    }
    if (oldest_rows == 0) return {};
    if (!sources_[oldest].has_only_puts()) return merge_all(gaps, rows);
    if (newer_rows == 0) {
      *rows = sources_[oldest].rows_between(gaps.first[oldest], gaps.end[oldest]);
      return {};
    }
    if (newer_rows * merged_rows_per_search > newer_rows + oldest_rows)
      return merge_all(gaps, rows);
    return look_for_newer(gaps, oldest, rows);
  }

 private:
  Status merge_all(const RangeGaps& gaps, uint64_t* rows) {
    for (size_t s = 0; s < sources_.size(); ++s) {
      merger_.set_limits(s, gaps.first[s], gaps.end[s]);
      merger_.set_gap(s, gaps.first[s]);
    }
    MergedEntry entry;
    for (;;) {
      STRIDE_TRY(merger_.next(&entry));
      if (!entry.is_there()) return {};
      ++*rows;
    }
  }

  // A newer row counts where the oldest source has none of its key, and a tombstone hides one.
  Status look_for_newer(const RangeGaps& gaps, size_t oldest, uint64_t* rows) {
    const SortedRows& base = sources_[oldest];
    *rows = base.rows_between(gaps.first[oldest], gaps.end[oldest]);
    for (size_t s = 0; s < sources_.size(); ++s) {
      newer_merger_.set_limits(s, gaps.first[s], s < oldest ? gaps.end[s] : 0);
      newer_merger_.set_gap(s, gaps.first[s]);
    }
    MergedEntry entry;
    for (;;) {
      STRIDE_TRY(newer_merger_.next(&entry));
      if (!entry.is_there()) return {};
      uint64_t rank;
      SortedRow older;
      STRIDE_TRY(base.rank(entry.row.key, /*past_equal=*/false, &rank));
      STRIDE_TRY(base.above(rank, &older));
      const bool is_older = older.is_there && compare(older.key, entry.row.key) == 0;
      if (entry.row.is_tombstone)
        *rows -= is_older;
      else
        *rows += !is_older;
    }
  }

  const std::span<const SortedRows> sources_;
  GapMerger merger_;
  GapMerger newer_merger_;  // of the sources before the oldest one
};

// Cuts a range at keys of the source that has most rows there, and returns the gaps at the cuts,
// both ends included.
Status cut_range(std::span<const SortedRows> sources, const RangeGaps& range,
                 std::vector<std::vector<uint64_t>>* cuts) {
  uint64_t rows = 0, most = 0;
  size_t largest = 0;
  for (size_t s = 0; s < sources.size(); ++s) {
    const uint64_t of_source = range.end[s] - std::min(range.first[s], range.end[s]);
    rows += of_source;
    if (of_source > most) largest = s;
    most = std::max(most, of_source);
  }
  cuts->push_back(range.first);
  const uint64_t pieces =
      rows - most == 0 && sources[largest].has_only_puts() ? 1 : rows / rows_per_piece + 1;
  for (uint64_t piece = 1; piece < pieces; ++piece) {
    SortedRow row;
    STRIDE_TRY(sources[largest].above(range.first[largest] + most / pieces * piece, &row));
    if (!row.is_there || row.rank >= range.end[largest]) break;
    cuts->emplace_back(sources.size());
    STRIDE_TRY(find_gaps(sources, row.key, &cuts->back()));
  }
  cuts->push_back(range.end);
  return {};
}

}  // namespace

Status count_range(Backend& host, std::span<const SortedRows> sources, std::optional<Bytes> from,
                   std::optional<Bytes> to, uint64_t* rows) {
  *rows = 0;
  if (sources.empty() || (from && to && compare(*from, *to) >= 0)) return {};
  RangeGaps range(sources.size());
  if (from) STRIDE_TRY(find_gaps(sources, *from, &range.first));
  for (size_t s = 0; s < sources.size(); ++s) range.end[s] = sources[s].size();
  if (to) STRIDE_TRY(find_gaps(sources, *to, &range.end));
  std::vector<std::vector<uint64_t>> cuts;
  STRIDE_TRY(cut_range(sources, range, &cuts));
  std::atomic<uint64_t> total{0};
  FirstFailure failure;
  host.parallel_for(cuts.size() - 1, 1, [&](uint64_t begin, uint64_t end) {
    RangeCounter counter(sources);
    RangeGaps piece(sources.size());
    for (uint64_t i = begin; i < end && !failure.failed(); ++i) {
      piece.first = cuts[i];
      piece.end = cuts[i + 1];
      uint64_t of_piece = 0;
      failure.report(counter.count(piece, &of_piece));
      total.fetch_add(of_piece, std::memory_order_relaxed);
    }
  });
  *rows = total;
  return failure.status();
}

namespace {

// A block of ranges, each of which may be as long as the table: `watch` may end it after each.
Status count_block(TreeIndex& trees, std::span<const SortedRows> sources, const KeyColumn& from,
                   const KeyColumn& to, const WorkWatch* watch, RangeCounter* counter,
                   std::span<uint64_t> rows) {
  const uint64_t n = from.size;
  std::vector<uint64_t> first(sources.size() * n), end(sources.size() * n);
  SortedRows::Scratch scratch;
  for (size_t s = 0; s < sources.size(); ++s) {
    STRIDE_TRY(sources[s].ranks(trees, from, /*past_equal=*/false, &scratch, &first[s * n]));
    STRIDE_TRY(sources[s].ranks(trees, to, /*past_equal=*/false, &scratch, &end[s * n]));
  }
  RangeGaps range(sources.size());
  for (uint64_t i = 0; i < n; ++i) {
    if (watch && watch->is_stopped()) return WorkWatch::cancelled();
    for (size_t s = 0; s < sources.size(); ++s) {
      range.first[s] = first[s * n + i];
      range.end[s] = end[s * n + i];
    }
    STRIDE_TRY(counter->count(range, &rows[i]));
  }
  return {};
}

}  // namespace

Status count_ranges(Backend& host, std::span<const SortedRows> sources, const KeyColumn& from,
                    const KeyColumn& to, std::span<uint64_t> rows) {
  if (from.size != to.size || from.size != rows.size())
    return Status::invalid(std::to_string(from.size) + " ranges end at " + std::to_string(to.size) +
                           " keys, with room for " + std::to_string(rows.size()) + " counts");
  FirstFailure failure;
  const WorkWatch* watch = WorkWatch::current();
  const uint64_t blocks = (from.size + ranges_per_block - 1) / ranges_per_block;
  host.parallel_for(blocks, 1, [&](uint64_t begin, uint64_t end) {
    RangeCounter counter(sources);
    for (uint64_t block = begin; block < end && !failure.failed(); ++block) {
      const uint64_t first = block * ranges_per_block;
      const uint64_t n = std::min(ranges_per_block, from.size - first);
      failure.report(count_block(host.tree_index(), sources, from.slice(first, n),
                                 to.slice(first, n), watch, &counter, rows.subspan(first, n)));
    }
  });
  return failure.status();
}

}  // namespace stride

#include "engine/read/key_bounds.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/read/gap_merger.h"
#include "storage/first_failure.h"
#include "storage/prefetch.h"

namespace stride {
namespace {

// Queries of a block: few enough that what the search has read of it is still in the second-level
// cache when its entries are made; whole words of the bitmap, so that each belongs to one thread.
constexpr uint64_t block_queries = 1024;
// Blocks that are worth another thread.
constexpr uint64_t blocks_per_task = 2;
// Queries between a prefetch and the use of what it fetches.
constexpr uint64_t prefetched_queries = 16;

// A source that is one segment whose bytes are known to be intact.
struct WholeSegment {
  const IndexedSegment* segment;
  PackedColumn keys;
  ValueRows values;
  const uint8_t* kinds;        // as they are stored; null: all are puts
  const RowIntervals* erased;  // null: none

  explicit WholeSegment(const IndexedSegment& whole)
      : segment(&whole),
        keys(whole.keys()),
        values(whole.values()),
        kinds(whole.kinds()),
        erased(whole.erased().empty() ? nullptr : &whole.erased()) {}

  // The first 8 bytes of a key as a number, zeros where it is shorter.
  static uint64_t word_of(Bytes key) {
    uint64_t word = 0;
    if (key.size() >= 8)
      std::memcpy(&word, key.data(), 8);
    else if (!key.empty())
      std::memcpy(&word, key.data(), key.size());
    return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
  }
  // What tells where a row's value is.
  void prefetch_value(uint64_t rank) const {
    const PackedColumn& column = values.column;
    if (values.shared())
      prefetch(static_cast<const std::byte*>(values.numbers) + rank * values.number_width);
    else if (!column.fixed)
      prefetch(static_cast<const std::byte*>(column.offsets.deltas) +
               rank * column.offsets.delta_width);
  }
};

// What one thread needs for its blocks.
class BoundSearch {
 public:
  BoundSearch(TreeIndex& trees, std::span<const SortedRows> sources, KeyBound bound,
              LowerBoundResult* result)
      : trees_(trees),
        sources_(sources),
        bound_(bound),
        back_(bound == KeyBound::previous),
        result_(result),
        ranks_(sources.size() * block_queries),
        picked_(block_queries),
        merger_(sources),
        start_(sources.size()),
        end_(sources.size()) {
    segments_.reserve(sources.size());
    for (const SortedRows& source : sources)
      if (const IndexedSegment* only = source.only_segment(); only && only->segment().intact())
        segments_.emplace_back(*only);
    if (segments_.size() < sources.size()) segments_.clear();
  }

  // queries: a block, the first of which is query `first` of the batch.
  Status run(const KeyColumn& queries, uint64_t first) {
    for (size_t s = 0; s < sources_.size(); ++s)
      STRIDE_TRY(sources_[s].ranks(trees_, queries, bound_ != KeyBound::lower, &scratch_,
                                   &ranks_[s * block_queries]));
    const uint64_t n = queries.size;
    if (segments_.empty()) {
      std::fill_n(picked_.begin(), n, hidden);
    } else {
      for (uint64_t i = 0; i < n; ++i) {
        if (i + prefetched_queries < n) prefetch_rows(i + prefetched_queries);
        picked_[i] = pick(i);
        if (picked_[i].found()) segments_[picked_[i].index].prefetch_value(picked_[i].rank);
      }
    }
    for (uint64_t i = 0; i < n; ++i) {
      const Location row = picked_[i];
      if (row.found())
        set(first + i, segments_[row.index].keys[row.rank], segments_[row.index].values[row.rank]);
      else if (row.rank == nothing.rank)
        set_absent(first + i);
      else
        STRIDE_TRY(merge(i, first + i));
    }
    return {};
  }

 private:
  static constexpr Location nothing{Location::absent, 0};
  static constexpr Location hidden{Location::absent, 1};  // only a merge tells

  void set(uint64_t query, Bytes key, Bytes value) {
    result_->keys[query] = key;
    result_->values[query] = value;
    result_->found.set(query);
  }
  void set_absent(uint64_t query) { result_->keys[query] = result_->values[query] = {}; }

  uint64_t rank_of(size_t source, uint64_t i) const {
    return ranks_[source * block_queries + i] - back_;  // below rank 0 it is larger than all
  }

  // The row that comes next among those of all segments, the newest of equal keys.
  Location pick(uint64_t i) const {
    Location best = nothing;
    uint64_t best_word = 0;
    const uint64_t flip = back_ ? ~uint64_t{0} : 0;
    for (uint32_t s = 0; s < segments_.size(); ++s) {
      const WholeSegment& segment = segments_[s];
      const uint64_t rank = rank_of(s, i);
      if (rank >= segment.keys.size) continue;
      if (segment.erased && segment.erased->contains(rank)) return hidden;
      const Location row{s, static_cast<uint32_t>(rank)};
      if (segments_.size() == 1) {
        best = row;
        break;
      }
      const Bytes key = segment.keys[rank];
      const uint64_t word = WholeSegment::word_of(key) ^ flip;
      bool is_next = word < best_word || !best.found();
      if (word == best_word && best.found()) [[unlikely]] {
        const int order = compare(key, segments_[best.index].keys[best.rank]);
        is_next = order != 0 && (order < 0) != back_;
      }
      best = is_next ? row : best;
      best_word = is_next ? word : best_word;
    }
    if (best.found() && segments_[best.index].segment->has_tombstones() &&
        segments_[best.index].segment->kind(best.rank) == EntryKind::tombstone)
      return hidden;
    return best;
  }

  void prefetch_rows(uint64_t i) const {
    for (uint32_t s = 0; s < segments_.size(); ++s) {
      const WholeSegment& segment = segments_[s];
      const uint64_t rank = rank_of(s, i);
      if (segment.kinds) prefetch(segment.kinds + (rank < segment.keys.size ? rank : 0));
    }
  }

  // Between the gap of the last query and the entry that it has found there is no other: a query
  // whose gap lies there, in all sources, finds the same. So stretches of tombstones are walked
  // through once for neighbouring queries.
  bool is_in_last_step(uint64_t i) const {
    if (!has_last_) return false;
    for (size_t s = 0; s < sources_.size(); ++s) {
      const uint64_t gap = ranks_[s * block_queries + i];
      if (gap < start_[s] || gap > end_[s]) return false;
    }
    return true;
  }

  // i: of the block.
  Status merge(uint64_t i, uint64_t query) {
    if (!is_in_last_step(i)) STRIDE_TRY(step(i));
    if (last_.is_there())
      set(query, last_.row.key, last_value_);
    else
      set_absent(query);
    return {};
  }

  Status step(uint64_t i) {
    has_last_ = false;
    for (size_t s = 0; s < sources_.size(); ++s) merger_.set_gap(s, ranks_[s * block_queries + i]);
    STRIDE_TRY(back_ ? merger_.previous(&last_) : merger_.next(&last_));
    if (last_.is_there()) STRIDE_TRY(last_.value(&last_value_));
    for (size_t s = 0; s < sources_.size(); ++s) {
      start_[s] = ranks_[s * block_queries + i];
      end_[s] = merger_.gap(s);
      if (back_) std::swap(start_[s], end_[s]);
    }
    // The gap has moved past the entry, too: a query beyond that finds another one.
    for (uint32_t s : merger_.last_moved()) back_ ? ++start_[s] : --end_[s];
    has_last_ = true;
    return {};
  }

  TreeIndex& trees_;
  const std::span<const SortedRows> sources_;
  const KeyBound bound_;
  const bool back_;
  LowerBoundResult* const result_;
  std::vector<WholeSegment> segments_;  // of all sources; empty: not all are such
  std::vector<uint64_t> ranks_;         // of each source, block_queries of them
  std::vector<Location> picked_;        // of each query of the block
  SortedRows::Scratch scratch_;
  GapMerger merger_;
  bool has_last_ = false;
  MergedEntry last_;
  Bytes last_value_;
  std::vector<uint64_t> start_, end_;  // gaps of each source from which last_ is found
};

}  // namespace

Status find_key_bounds(Backend& host, std::span<const SortedRows> sources, const KeyColumn& queries,
                       KeyBound bound, LowerBoundResult* result) {
  result->found.reset(queries.size);
  result->keys.reset(queries.size);
  result->values.reset(queries.size);
  FirstFailure failure;
  const uint64_t blocks = (queries.size + block_queries - 1) / block_queries;
  host.parallel_for(blocks, blocks_per_task, [&](uint64_t begin, uint64_t end) {
    BoundSearch search(host.tree_index(), sources, bound, result);
    for (uint64_t block = begin; block < end && !failure.failed(); ++block) {
      const uint64_t first = block * block_queries;
      const uint64_t n = std::min(block_queries, queries.size - first);
      failure.report(search.run(queries.slice(first, n), first));
    }
  });
  return failure.status();
}

}  // namespace stride

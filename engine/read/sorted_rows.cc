#include "engine/read/sorted_rows.h"

#include <algorithm>
#include <utility>

#include "storage/prefetch.h"

namespace stride {

SortedRows::SortedRows(std::vector<const IndexedSegment*> segments) {
  std::sort(segments.begin(), segments.end(), [](const auto* a, const auto* b) {
    return compare(a->first_key(), b->first_key()) < 0;
  });
  parts_.reserve(segments.size());
  for (const IndexedSegment* segment : segments) {
    parts_.push_back({segment, size_, size_ + segment->rows()});
    size_ += segment->rows();
    has_only_puts_ &= !segment->has_tombstones();
  }
}

SortedRows::SortedRows(std::shared_ptr<const SortedRun> run, const OrderedTail& tail)
    : run_(std::move(run)), tail_(tail), size_(run_->size()), has_only_puts_(false) {}

const SortedRows::Part& SortedRows::part_of(uint64_t rank) const {
  if (parts_.size() == 1) return parts_[0];
  return *std::upper_bound(parts_.begin(), parts_.end(), rank,
                           [](uint64_t r, const Part& part) { return r < part.end; });
}

size_t SortedRows::part_for(Bytes key) const {
  auto at = std::partition_point(parts_.begin(), parts_.end() - 1, [&](const Part& part) {
    return compare(part.segment->last_key(), key) < 0;
  });
  return static_cast<size_t>(at - parts_.begin());
}

Status SortedRows::rank(Bytes key, bool past_equal, uint64_t* rank) const {
  if (run_) {
    *rank = run_->rank(key, past_equal);
    return {};
  }
  *rank = 0;
  if (parts_.empty()) return {};
  const Part& part = parts_[part_for(key)];
  uint32_t smaller;
  STRIDE_TRY(lower_bound_one(part.segment->index(), key, &smaller));
  *rank = part.begin + smaller;
  if (past_equal && *rank < part.end) {
    Bytes at;
    STRIDE_TRY(part.segment->key(smaller, &at));
    if (at.size() == key.size() && compare(at, key) == 0) ++*rank;
  }
  return {};
}

Status SortedRows::ranks_in_part(TreeIndex& trees, const Part& part, const KeyColumn& queries,
                                 bool past_equal, Scratch* scratch) const {
  scratch->ranks.resize(queries.size);
  return past_equal ? trees.upper_bound(part.segment->index(), queries, scratch->ranks)
                    : trees.lower_bound(part.segment->index(), queries, scratch->ranks);
}

// Where there are several segments, the queries of each are copied together and searched there.
Status SortedRows::ranks(TreeIndex& trees, const KeyColumn& queries, bool past_equal,
                         Scratch* scratch, uint64_t* ranks) const {
  const uint64_t n = queries.size;
  if (run_) {
    for (uint64_t i = 0; i < n; ++i) ranks[i] = run_->rank(queries[i], past_equal);
    return {};
  }
  if (parts_.size() <= 1) {
    if (parts_.empty()) std::fill_n(ranks, n, 0);
    if (parts_.empty()) return {};
    STRIDE_TRY(ranks_in_part(trees, parts_[0], queries, past_equal, scratch));
    std::copy_n(scratch->ranks.begin(), n, ranks);
    return {};
  }
  scratch->parts.resize(n);
  scratch->rows.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    scratch->parts[i] = static_cast<uint32_t>(part_for(queries[i]));
    scratch->rows[i] = i;
  }
  const auto& part_of_row = scratch->parts;
  if (!std::is_sorted(part_of_row.begin(), part_of_row.end()))
    std::sort(scratch->rows.begin(), scratch->rows.end(),
              [&](uint32_t a, uint32_t b) { return part_of_row[a] < part_of_row[b]; });
  for (uint64_t begin = 0, end; begin < n; begin = end) {
    const uint32_t number = part_of_row[scratch->rows[begin]];
    scratch->bytes.clear();
    scratch->offsets.assign(1, 0);
    for (end = begin; end < n && part_of_row[scratch->rows[end]] == number; ++end) {
      const Bytes query = queries[scratch->rows[end]];
      scratch->bytes.insert(scratch->bytes.end(), query.begin(), query.end());
      scratch->offsets.push_back(scratch->bytes.size());
    }
    const KeyColumn gathered =
        queries.is_fixed()
            ? KeyColumn::fixed(scratch->bytes.data(), queries.width, end - begin)
            : KeyColumn::variable(scratch->bytes.data(), scratch->offsets.data(), end - begin);
    STRIDE_TRY(ranks_in_part(trees, parts_[number], gathered, past_equal, scratch));
    for (uint64_t i = begin; i < end; ++i)
      ranks[scratch->rows[i]] = parts_[number].begin + scratch->ranks[i - begin];
  }
  return {};
}

Status SortedRows::set_row(const Part& part, uint64_t rank, SortedRow* row) const {
  const uint64_t in_segment = rank - part.begin;
  row->is_there = true;
  row->rank = rank;
  row->tail_row = nullptr;
  if (part.segment->segment().intact()) {
    row->key = part.segment->keys()[in_segment];
    row->is_tombstone = part.segment->kind(in_segment) == EntryKind::tombstone;
    return {};
  }
  STRIDE_TRY(part.segment->key(in_segment, &row->key));
  return part.segment->is_tombstone(in_segment, &row->is_tombstone);
}

bool SortedRows::set_run_row(uint64_t rank, SortedRow* row) const {
  const TailRow* at = tail_.tail->row_at((*run_)[rank], tail_.commit);
  if (at) *row = {true, tail_.hides(*at), rank, at->key(), at};
  return at;
}

Status SortedRows::above(uint64_t gap, SortedRow* row) const {
  row->is_there = false;
  if (run_) {
    for (; gap < size_; ++gap)
      if (set_run_row(gap, row)) return {};
    return {};
  }
  while (gap < size_) {
    const Part& part = part_of(gap);
    const RowIntervals& erased = part.segment->erased();
    if (!erased.empty()) gap = std::min(part.begin + erased.skip(gap - part.begin), part.end);
    if (gap < part.end) return set_row(part, gap, row);
  }
  return {};
}

Status SortedRows::below(uint64_t gap, SortedRow* row) const {
  row->is_there = false;
  if (run_) {
    for (; gap > 0; --gap)
      if (set_run_row(gap - 1, row)) return {};
    return {};
  }
  while (gap > 0) {
    const Part& part = part_of(gap - 1);
    const RowIntervals& erased = part.segment->erased();
    if (!erased.empty()) gap = part.begin + erased.skip_back(gap - part.begin);
    if (gap > part.begin) return set_row(part, gap - 1, row);
  }
  return {};
}

void SortedRows::prefetch(uint64_t rank) const {
  if (rank >= size_) return;
  if (run_) return stride::prefetch((*run_)[rank]);
  const Part& part = part_of(rank);
  const PackedColumn& keys = part.segment->keys();
  rank -= part.begin;
  if (keys.fixed) stride::prefetch(keys.data + rank * keys.width);
  if (part.segment->kinds()) stride::prefetch(part.segment->kinds() + rank);
}

uint64_t SortedRows::rows_between(uint64_t first, uint64_t end) const {
  uint64_t rows = end - first;
  for (const Part& part : parts_) {
    const uint64_t from = std::max(first, part.begin), to = std::min(end, part.end);
    if (from < to && !part.segment->erased().empty())
      rows -= part.segment->erased().rows_in({from - part.begin, to - part.begin});
  }
  return rows;
}

Status SortedRows::value(const SortedRow& row, Bytes* value) const {
  if (row.tail_row) {
    *value = row.tail_row->value();
    return {};
  }
  const Part& part = part_of(row.rank);
  const uint64_t in_segment = row.rank - part.begin;
  if (!part.segment->segment().intact()) return part.segment->value(in_segment, value);
  *value = part.segment->values()[in_segment];
  return {};
}

Status sorted_rows_of(const TableVersion& table, std::span<const OrderedTail> tails,
                      std::vector<SortedRows>* sources) {
  for (const OrderedTail& tail : tails)
    for (const auto& run : tail.runs->newest_first) sources->emplace_back(run, tail);
  std::vector<const IndexedSegment*> of_run;
  for (size_t i = 0; i < table.segments.size(); ++i) {
    const IndexedSegment& segment = *table.segments[i];
    STRIDE_TRY(segment.prepare());
    if (segment.rows() > 0) of_run.push_back(&segment);
    // Segments in memory overlap, whatever their run is.
    const bool goes_on = i + 1 < table.segments.size() && segment.is_stored() &&
                         table.segments[i + 1]->record().run == segment.record().run;
    if (goes_on || of_run.empty()) continue;
    sources->emplace_back(std::exchange(of_run, {}));
  }
  return {};
}

}  // namespace stride

#include "engine/merge/parallel_merge.h"

#include <algorithm>
#include <string>
#include <utility>

#include "storage/first_failure.h"

namespace stride {

namespace {

constexpr uint64_t min_rows_of_part = 1 << 16;
constexpr uint64_t max_ranks = 2 << 20;         // of all parts, in all segments
constexpr uint64_t max_counted_rows = 8 << 20;  // at a time

}  // namespace

Result<ParallelMerge> ParallelMerge::make(const SegmentList& segments, Tombstones tombstones) {
  ParallelMerge merge(segments, tombstones);
  for (const auto& s : segments) STRIDE_TRY(s->prepare());
  STRIDE_TRY(merge.cut());
  return merge;
}

// At the keys of rows that are so far apart, one segment behind the other.
Status ParallelMerge::cut() {
  uint64_t rows = 0;
  for (const auto& s : segments_) rows += s->rows();
  const uint64_t max_parts = max_ranks / (segments_.size() + 1) + 1;
  const uint64_t apart = std::max(min_rows_of_part, rows / max_parts);
  std::vector<std::string> cuts;
  uint64_t next = apart;  // in the segment
  for (const auto& s : segments_) {
    for (; next < s->rows(); next += apart) {
      Bytes key;
      STRIDE_TRY(s->key(next, &key));
      cuts.emplace_back(as_text(key));
    }
    next -= s->rows();
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  ranks_.reserve(cuts.size() + 2);
  ranks_.emplace_back(segments_.size(), 0);
  for (const std::string& key : cuts) STRIDE_TRY(cut_at(as_bytes(key)));
  ranks_.emplace_back();
  for (const auto& s : segments_) ranks_.back().push_back(s->rows());
  return {};
}

Status ParallelMerge::cut_at(Bytes key) {
  const std::vector<uint64_t>& before = ranks_.back();
  std::vector<uint64_t> ranks(segments_.size());
  for (size_t s = 0; s < segments_.size(); ++s) {
    const IndexedSegment& segment = *segments_[s];
    uint32_t rank = 0;
    if (compare(key, segment.last_key()) > 0)
      rank = static_cast<uint32_t>(segment.rows());
    else if (compare(key, segment.first_key()) > 0)
      STRIDE_TRY(lower_bound_one(segment.index(), key, &rank));
    if (rank < before[s]) return segment.segment().damage(SectionType::key_data, "does not ascend");
    ranks[s] = rank;
  }
  ranks_.push_back(std::move(ranks));
  return {};
}

size_t ParallelMerge::end_of_step(size_t first, uint64_t max_rows) const {
  uint64_t rows = 0;
  for (size_t part = first; part < parts(); ++part) {
    for (size_t s = 0; s < segments_.size(); ++s) rows += ranks_[part + 1][s] - ranks_[part][s];
    if (rows > max_rows) return std::max(part, first + 1);
  }
  return parts();
}

uint64_t ParallelMerge::max_bytes(size_t first, size_t end) const {
  uint64_t bytes = 0;
  for (size_t s = 0; s < segments_.size(); ++s) {
    const IndexedSegment& segment = *segments_[s];
    const uint64_t from = ranks_[first][s], to = ranks_[end][s];
    if (from == to) continue;
    if (to - from == segment.rows()) {
      bytes += segment.record().bytes;
      continue;
    }
    auto add = [&](const PackedColumn& column) {
      bytes +=
          column.fixed ? (to - from) * column.width : column.offsets[to] - column.offsets[from];
    };
    add(segment.keys());
    const ValueRows& values = segment.values();
    if (values.shared())
      bytes += values.column.row_bytes() + (to - from) * values.number_width;
    else
      add(values.column);
  }
  return bytes;
}

Status ParallelMerge::run(Backend& backend, size_t first, size_t end, const std::atomic<bool>* stop,
                          std::vector<Location>* order, std::vector<uint64_t>* part_rows) const {
  order->clear();
  std::vector<std::vector<Location>> merged(end - first);
  FirstFailure failure;
  backend.parallel_for(merged.size(), 1, [&](uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      if (stop && *stop) {
        failure.report(Status(StatusCode::closed, "the database is being closed"));
        return;
      }
      failure.report(run_part(first + i, &merged[i]));
    }
  });
  STRIDE_TRY(failure.status());
  uint64_t total = 0;
  for (const auto& part : merged) total += part.size();
  order->reserve(total);
  for (auto& part : merged) {
    if (part_rows) part_rows->push_back(part.size());
    order->insert(order->end(), part.begin(), part.end());
    part = {};
  }
  return {};
}

Status ParallelMerge::run_part(size_t part, std::vector<Location>* order) const {
  std::vector<RunMerger::Input> inputs;
  for (uint32_t s = 0; s < segments_.size(); ++s) {
    const uint64_t first = ranks_[part][s], last = ranks_[part + 1][s];
    if (first < last) inputs.push_back({segments_[s].get(), s, first, last});
  }
  RunMerger merger(inputs, /*reverse=*/false, /*shared_bytes=*/0, tombstones_);
  Location rows[1024];
  while (uint64_t n = merger.next_rows(rows)) order->insert(order->end(), rows, rows + n);
  return merger.status();
}

Status merge_all(Backend& backend, const SegmentList& segments, MergedRows* merged,
                 Tombstones tombstones) {
  auto merge = ParallelMerge::make(segments, tombstones);
  if (!merge.ok()) return merge.status();
  merged->segments.assign(segments.begin(), segments.end());
  merged->bytes = merge->max_bytes(0, merge->parts());
  return merge->run(backend, 0, merge->parts(), /*stop=*/nullptr, &merged->order);
}

Result<uint64_t> count_merged(Backend& backend, const SegmentList& segments) {
  auto merge = ParallelMerge::make(segments, Tombstones::drop);
  if (!merge.ok()) return merge.status();
  uint64_t rows = 0;
  std::vector<Location> order;
  for (size_t part = 0, end; part < merge->parts(); part = end) {
    end = merge->end_of_step(part, max_counted_rows);
    STRIDE_TRY(merge->run(backend, part, end, /*stop=*/nullptr, &order));
    rows += order.size();
  }
  return rows;
}

}  // namespace stride

#include "engine/memtable/pieces.h"

#include <utility>

#include "engine/build/segment_builder_body.h"
#include "engine/memtable/tail_rows.h"

namespace stride {
namespace {

// A tree of fewer rows is not worth its building: a search is a few comparisons either way.
constexpr uint64_t min_tree_rows = 1 << 16;

// No run of the manifest has such a number.
constexpr uint64_t first_piece_run = uint64_t{1} << 63;

Result<std::shared_ptr<IndexedSegment>> build_piece(Executor& executor, const TableRecord& table,
                                                    uint32_t last_commit, const TailRows& rows) {
  SegmentBuildOptions options;
  options.executor = &executor;
  const TreeOptions automatic;
  if (rows.size() >= min_tree_rows) options.tree = &automatic;
  options.key_filter = true;  // whatever is older is searched after it
  auto segment = build_segment(RowRange<TailRows>{rows, 0, rows.size()}, options);
  if (!segment.ok()) return segment.status();
  SegmentRecord record;
  record.table = table.id;
  record.run = first_piece_run + last_commit;
  record.rows = (*segment)->rows();
  record.tombstones = (*segment)->tombstones();
  return std::make_shared<IndexedSegment>(nullptr, std::move(*segment), record);
}

}  // namespace

Status Pieces::get(Executor& executor, const TableTail& tail, uint32_t commit,
                   std::vector<std::shared_ptr<IndexedSegment>>* newest_first) {
  std::lock_guard lock(mutex_);
  size_t kept = pieces_.size();
  while (kept > 0 && pieces_[kept - 1].last_commit > commit) --kept;
  const bool newest = kept == pieces_.size();  // else an old snapshot is read
  TableTail::Cursor end = kept ? pieces_[kept - 1].end : TableTail::Cursor(tail);
  std::vector<const TailRow*> added;
  uint32_t last_commit = 0;
  while (const TailRow* row = end.next(commit)) {
    added.push_back(row);
    last_commit = row->commit.load(std::memory_order_relaxed);
  }
  std::shared_ptr<IndexedSegment> made;
  if (!added.empty()) {
    TableTail::Cursor begin = kept ? pieces_[kept - 1].end : TableTail::Cursor(tail);
    uint64_t n = added.size();
    for (; kept > 0 && pieces_[kept - 1].rows < 2 * n; --kept) {
      n += pieces_[kept - 1].rows;
      begin = pieces_[kept - 1].begin;
    }
    std::vector<const TailRow*> rows;
    TableTail::Cursor at = begin;
    while (const TailRow* row = at.next(commit)) rows.push_back(row);
    STRIDE_TRY(sort_rows(executor, &rows));
    auto built = build_piece(executor, *tail.table(), last_commit, TailRows(std::move(rows)));
    if (!built.ok()) return built.status();
    made = std::move(*built);
    if (newest) {
      pieces_.reserve(kept + 1);
      pieces_.erase(pieces_.begin() + static_cast<ptrdiff_t>(kept), pieces_.end());
      pieces_.push_back({begin, at, last_commit, n, made});
    }
  }
  if (made) newest_first->push_back(std::move(made));
  for (; kept > 0; --kept) newest_first->push_back(pieces_[kept - 1].segment);
  return {};
}

}  // namespace stride

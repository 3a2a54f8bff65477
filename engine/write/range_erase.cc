#include "engine/write/range_erase.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "engine/catalog/rows_between.h"
#include "engine/read/scan_impl.h"
#include "engine/write/key_ranges.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

// A range with fewer stored keys gets tombstones, whatever else the commit erases, unless all do
// without: it bounds how many intervals of rows a segment comes to have.
constexpr uint64_t min_interval_keys = 256;

// Chunks of tombstones.
class TombstoneChunks {
 public:
  explicit TombstoneChunks(uint32_t key_width) : key_width_(key_width) {}

  void add(const KeyColumn& keys) {
    for (uint64_t done = 0; done < keys.size;) {
      StagedChunk* last = chunks_.empty() ? nullptr : chunks_.back().get();
      uint64_t n = last ? last->append(keys, nullptr, done, EntryKind::tombstone) : 0;
      done += n;
      if (n == 0) chunks_.push_back(StagedChunk::make_next(last, key_width_, keys, nullptr, done));
    }
  }
  void move_to(std::vector<std::unique_ptr<StagedChunk>>* chunks) {
    std::move(chunks_.begin(), chunks_.end(), std::back_inserter(*chunks));
    chunks_.clear();
  }

 private:
  uint32_t key_width_;
  std::vector<std::unique_ptr<StagedChunk>> chunks_;
};

using Range = std::map<std::string, std::optional<std::string>, std::less<>>::value_type;

Status add_keys(const std::shared_ptr<const Version>& version, const TableVersion& table,
                const Range& range, TombstoneChunks* tombstones) {
  if (table.segments.empty()) return {};
  auto scan = make_scan(version, table, {.from = range.first, .to = range.second});
  if (!scan.ok()) return scan.status();
  ScanBatch batch;
  while (scan->next(&batch)) {
    STRIDE_TRY(WorkWatch::check());
    tombstones->add(batch.keys);
  }
  return scan->status();
}

// What a range covers in the segments that are stored: rows that are not erased, tombstones and
// superseded ones among them.
struct Covered {
  const Range* range;
  std::vector<ErasedRows> rows;
  uint64_t live = 0;
};

Status find_covered(const TableVersion& table, Covered* covered) {
  const auto& [from, to] = *covered->range;
  std::optional<Bytes> end;
  if (to) end = as_bytes(*to);
  for (const auto& segment : table.segments) {
    if (!segment->is_stored()) continue;
    RowInterval rows;
    STRIDE_TRY(find_rows_between(*segment, as_bytes(from), end, &rows));
    if (rows.empty()) continue;
    const uint64_t live = rows.end - rows.first - segment->erased().rows_in(rows);
    if (live == 0) continue;
    covered->live += live;
    covered->rows.push_back({segment->record().segment, segment->record().table, rows});
  }
  return {};
}

// The ranges whose stored rows are erased in place, in their order. None of a table of prefixes:
// what matches addresses follows tombstones.
Status find_large(const TableVersion& table, const RangeSet& set, uint64_t max_tombstones,
                  std::vector<Covered>* large) {
  if (table.table->address_bits != 0) return {};
  uint64_t live = 0;
  for (const Range& range : set.ranges()) {
    Covered covered{&range, {}};
    STRIDE_TRY(find_covered(table, &covered));
    live += covered.live;
    if (covered.live > std::min(max_tombstones, min_interval_keys))
      large->push_back(std::move(covered));
  }
  if (live <= max_tombstones) large->clear();
  return {};
}

TableVersion without_stored(const TableVersion& table) {
  std::vector<std::shared_ptr<IndexedSegment>> pieces;
  for (const auto& segment : table.segments)
    if (!segment->is_stored()) pieces.push_back(segment);
  TableVersion result(table);
  result.segments = SegmentList(pieces);
  return result;
}

// What memtables have of large ranges becomes tombstones, and nothing else of them.
Status erase_what_is_there(const std::shared_ptr<const Version>& version, const RangeSet& set,
                           uint64_t max_tombstones, TombstoneChunks* tombstones,
                           StagedTable* staged) {
  if (set.empty()) return {};
  const TableVersion& table = *version->find(staged->table->id);
  std::vector<Covered> large;
  STRIDE_TRY(find_large(table, set, max_tombstones, &large));
  const TableVersion pieces = without_stored(table);
  auto next_large = large.begin();
  for (const Range& range : set.ranges()) {
    const bool is_large = next_large != large.end() && next_large->range == &range;
    STRIDE_TRY(add_keys(version, is_large ? pieces : table, range, tombstones));
    if (!is_large) continue;
    staged->erased.insert(staged->erased.end(), next_large->rows.begin(), next_large->rows.end());
    ++next_large;
  }
  return {};
}

// Calls erase(row) for each row in the set that is no tombstone.
template <class Erase>
void for_each_covered(const StagedChunk& chunk, const RangeSet& set, const Erase& erase) {
  KeyColumn keys = chunk.keys();
  for (uint64_t row = 0; row < chunk.rows(); ++row)
    if (chunk.kind(row) != EntryKind::tombstone && set.contains(keys[row])) erase(row);
}

void add_covered_keys(const StagedChunk& chunk, const RangeSet& set, TombstoneChunks* tombstones) {
  for_each_covered(chunk, set, [&](uint64_t row) { tombstones->add(chunk.keys().slice(row, 1)); });
}

void drop_covered_rows(StagedChunk* chunk, const RangeSet& set) {
  std::vector<uint64_t> kept((chunk->rows() + 63) / 64, ~uint64_t{0});
  bool any = false;
  for_each_covered(*chunk, set, [&](uint64_t row) {
    kept[row / 64] &= ~(uint64_t{1} << row % 64);
    any = true;
  });
  if (any) chunk->keep(kept);
}

}  // namespace

// From the last chunk back to the first, so that one set says which rows a later range erases.
Status expand_ranges(const std::shared_ptr<const Version>& version, const StagedTable* before,
                     uint64_t max_tombstones, StagedTable* table) {
  if (!table->has_ranges()) return {};
  const uint32_t key_width = table->table->key_width;
  RangeSet erased;
  std::vector<std::unique_ptr<StagedChunk>> backwards;
  for (auto chunk = table->chunks.rbegin(); chunk != table->chunks.rend(); ++chunk) {
    for (const KeyRange& range : (*chunk)->ranges()) erased.add(range);
    if ((*chunk)->rows() == 0) continue;
    STRIDE_TRY(WorkWatch::check());
    if (!erased.empty() && (*chunk)->is_borrowed()) {
      TombstoneChunks tombstones(key_width);
      add_covered_keys(**chunk, erased, &tombstones);
      tombstones.move_to(&backwards);
    } else if (!erased.empty()) {
      drop_covered_rows(chunk->get(), erased);
    }
    backwards.push_back(std::move(*chunk));
  }
  TombstoneChunks tombstones(key_width);
  STRIDE_TRY(erase_what_is_there(version, erased, max_tombstones, &tombstones, table));
  if (before)
    for (const auto& chunk : before->chunks) add_covered_keys(*chunk, erased, &tombstones);
  tombstones.move_to(&backwards);
  std::reverse(backwards.begin(), backwards.end());
  table->chunks = std::move(backwards);
  return {};
}

std::shared_ptr<const Version> with_erased_rows(std::shared_ptr<const Version> version,
                                                const StagedTable& table) {
  if (table.erased.empty()) return version;
  const size_t at = version->index->position(table.table->id);
  auto changed = std::make_shared<TableVersion>(*version->tables[at]);
  changed->segments = with_erased_rows(changed->segments, table.erased);
  const TableList::Replacement replaced(at, std::move(changed));
  auto next = make_shared_here<Version>(*version);
  next->tables = version->tables.with_replaced({&replaced, 1});
  return next;
}

void enter_erased_rows(const TableVersion& table, const std::vector<ErasedRows>& erased,
                       bool may_remove, PendingEdit* pending) {
  if (erased.empty()) return;
  std::unordered_map<uint64_t, RowIntervals> by_segment;
  for (const ErasedRows& e : erased) by_segment[e.segment].add(e.rows);
  for (const auto& segment : table.segments) {
    auto found = by_segment.find(segment->record().segment);
    if (found == by_segment.end()) continue;
    RowIntervals all = segment->erased();
    all.add(found->second);
    if (may_remove && all.rows() == segment->rows()) {
      pending->edit.removed.push_back(segment->record().segment);
      pending->obsolete.push_back(segment);
      continue;
    }
    for (const RowInterval& rows : found->second.list())
      pending->edit.erased.push_back({segment->record().segment, segment->record().table, rows});
  }
}

}  // namespace stride

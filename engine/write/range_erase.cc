#include "engine/write/range_erase.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "engine/read/scan_impl.h"

namespace stride {
namespace {

// Disjoint ranges in ascending order: what several ranges cover together.
class RangeSet {
 public:
  bool empty() const { return ranges_.empty(); }
  // To (null: no end) by from.
  const std::map<std::string, std::optional<std::string>, std::less<>>& ranges() const {
    return ranges_;
  }

  void add(KeyRange range) {
    if (range.to && *range.to <= range.from) return;
    auto at = ranges_.upper_bound(range.from);
    if (at != ranges_.begin()) {
      auto before = std::prev(at);
      if (!before->second || *before->second >= range.from) {
        range.from = before->first;
        at = before;
      }
    }
    // Those that begin within it, or where it ends, become a part of it.
    while (at != ranges_.end() && (!range.to || at->first <= *range.to)) {
      if (range.to && (!at->second || *at->second > *range.to)) range.to = std::move(at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace_hint(at, std::move(range.from), std::move(range.to));
  }

  bool contains(Bytes key) const {
    auto above = ranges_.upper_bound(as_text(key));
    if (above == ranges_.begin()) return false;
    const auto& [from, to] = *--above;
    return !to || as_text(key) < *to;
  }

 private:
  std::map<std::string, std::optional<std::string>, std::less<>> ranges_;
};

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

Status add_stored_keys(const std::shared_ptr<const Version>& version, uint32_t table,
                       const RangeSet& set, TombstoneChunks* tombstones) {
  for (const auto& [from, to] : set.ranges()) {
    auto scan = make_scan(version, *version->find(table), {.from = from, .to = to});
    if (!scan.ok()) return scan.status();
    ScanBatch batch;
    while (scan->next(&batch)) tombstones->add(batch.keys);
    STRIDE_TRY(scan->status());
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
                     StagedTable* table) {
  if (!table->has_ranges()) return {};
  const uint32_t key_width = table->table->key_width;
  RangeSet erased;
  std::vector<std::unique_ptr<StagedChunk>> backwards;
  for (auto chunk = table->chunks.rbegin(); chunk != table->chunks.rend(); ++chunk) {
    for (const KeyRange& range : (*chunk)->ranges()) erased.add(range);
    if ((*chunk)->rows() == 0) continue;
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
  STRIDE_TRY(add_stored_keys(version, table->table->id, erased, &tombstones));
  if (before)
    for (const auto& chunk : before->chunks) add_covered_keys(*chunk, erased, &tombstones);
  tombstones.move_to(&backwards);
  std::reverse(backwards.begin(), backwards.end());
  table->chunks = std::move(backwards);
  return {};
}

}  // namespace stride

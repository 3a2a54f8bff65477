#include "engine/erase_ranges.h"

#include <algorithm>

#include "engine/scan_impl.h"

namespace stride {
namespace {

// Disjoint ranges in ascending order.
class RangeSet {
 public:
  explicit RangeSet(std::vector<KeyRange> ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const KeyRange& a, const KeyRange& b) { return a.from < b.from; });
    for (KeyRange& range : ranges) {
      if (range.to && *range.to <= range.from) continue;
      if (ranges_.empty() || (ranges_.back().to && *ranges_.back().to < range.from)) {
        ranges_.push_back(std::move(range));
      } else if (KeyRange& last = ranges_.back(); last.to && (!range.to || *last.to < *range.to)) {
        last.to = std::move(range.to);
      }
    }
  }
  const std::vector<KeyRange>& ranges() const { return ranges_; }

  bool contains(Bytes key) const {
    auto above =
        std::upper_bound(ranges_.begin(), ranges_.end(), as_text(key),
                         [](std::string_view k, const KeyRange& range) { return k < range.from; });
    if (above == ranges_.begin()) return false;
    const KeyRange& range = *--above;
    return !range.to || as_text(key) < *range.to;
  }

 private:
  std::vector<KeyRange> ranges_;
};

// Chunks of tombstones.
class Tombstones {
 public:
  explicit Tombstones(uint32_t key_width) : key_width_(key_width) {}

  void add(const KeyColumn& keys) {
    for (uint64_t done = 0; done < keys.size;) {
      uint64_t n =
          chunks_.empty() ? 0 : chunks_.back()->append(keys, nullptr, done, EntryKind::tombstone);
      done += n;
      if (n > 0) continue;
      StagedChunk::Capacity capacity{StagedChunk::max_rows, StagedChunk::target_bytes, 0};
      chunks_.push_back(std::make_unique<StagedChunk>(key_width_, capacity));
    }
  }
  std::vector<std::unique_ptr<StagedChunk>> take() { return std::move(chunks_); }

 private:
  uint32_t key_width_;
  std::vector<std::unique_ptr<StagedChunk>> chunks_;
};

Status add_stored_keys(const std::shared_ptr<const Version>& version, uint32_t table,
                       const RangeSet& set, Tombstones* tombstones) {
  for (const KeyRange& range : set.ranges()) {
    auto scan = make_scan(version, *version->find(table), {.from = range.from, .to = range.to});
    if (!scan.ok()) return scan.status();
    ScanBatch batch;
    while (scan->next(&batch)) tombstones->add(batch.keys);
    STRIDE_TRY(scan->status());
  }
  return {};
}

void add_staged_keys(const std::vector<std::unique_ptr<StagedChunk>>& chunks, const RangeSet& set,
                     Tombstones* tombstones) {
  for (const auto& chunk : chunks) {
    KeyColumn keys = chunk->keys();
    for (uint64_t i = 0; i < chunk->rows(); ++i)
      if (chunk->kind(i) != EntryKind::tombstone && set.contains(keys[i]))
        tombstones->add(keys.slice(i, 1));
  }
}

}  // namespace

Status expand_ranges(const std::shared_ptr<const Version>& version, const StagedTable* before,
                     StagedTable* table) {
  auto has_ranges = [](const auto& chunk) { return !chunk->ranges().empty(); };
  if (std::none_of(table->chunks.begin(), table->chunks.end(), has_ranges)) return {};
  std::vector<std::unique_ptr<StagedChunk>> expanded;
  for (auto& chunk : table->chunks) {
    if (!has_ranges(chunk)) {
      expanded.push_back(std::move(chunk));
      continue;
    }
    RangeSet set(chunk->ranges());
    Tombstones tombstones(table->table->key_width);
    STRIDE_TRY(add_stored_keys(version, table->table->id, set, &tombstones));
    if (before) add_staged_keys(before->chunks, set, &tombstones);
    add_staged_keys(expanded, set, &tombstones);
    for (auto& erased : tombstones.take()) expanded.push_back(std::move(erased));
  }
  table->chunks = std::move(expanded);
  return {};
}

}  // namespace stride

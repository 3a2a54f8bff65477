#include "engine/memtable/tail_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/bulk_vector.h"
#include "gpu/sorter.h"

namespace stride {

// Only keys are copied.
Status sort_rows(Executor& executor, std::vector<const TailRow*>* rows) {
  const std::vector<const TailRow*>& from = *rows;
  std::vector<uint64_t> ends(from.size() + 1);
  uint64_t width = from.empty() ? 0 : from[0]->key_bytes;
  for (size_t i = 0; i < from.size(); ++i) {
    ends[i + 1] = ends[i] + from[i]->key_bytes;
    if (from[i]->key_bytes != width) width = UINT64_MAX;
  }
  BulkVector<std::byte> keys;
  keys.resize(ends.back());
  for (size_t i = 0; i < from.size(); ++i)
    if (Bytes key = from[i]->key(); !key.empty())
      std::memcpy(keys.data() + ends[i], key.data(), key.size());
  const KeyColumn all = width == UINT64_MAX
                            ? Column::variable(keys.data(), ends.data(), from.size())
                            : Column::fixed(keys.data(), static_cast<uint32_t>(width), from.size());
  constexpr uint64_t chunk_rows = uint64_t{1} << row_bits;
  std::vector<KeyColumn> chunks;
  for (uint64_t first = 0; first < all.size; first += chunk_rows)
    chunks.push_back(all.slice(first, std::min(chunk_rows, all.size - first)));
  Sorted sorted;  // a row's id is its number
  STRIDE_TRY(executor.run_bulk(all.size,
                               [&](Backend& bulk) { return bulk.sorter().sort(chunks, &sorted); }));
  std::vector<const TailRow*> in_order(sorted.order.size());
  for (size_t i = 0; i < in_order.size(); ++i) in_order[i] = from[sorted.order[i]];
  *rows = std::move(in_order);
  return {};
}

TailRows::TailRows(std::vector<const TailRow*> rows) : rows_(std::move(rows)) {
  constexpr size_t prefetch_distance = 16;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (i + prefetch_distance < rows_.size()) prefetch(rows_[i + prefetch_distance]);
    bytes_ += rows_[i]->key_bytes + uint64_t{rows_[i]->value_bytes};
  }
}

void TailRows::drop_tombstones() {
  std::erase_if(rows_, [](const TailRow* row) { return row->kind == EntryKind::tombstone; });
}

}  // namespace stride

#include "engine/memtable/tail_rows.h"

#include <algorithm>
#include <cstring>

namespace stride {

// Only keys are copied.
Status TailRows::sort(Executor& executor) {
  std::vector<uint64_t> ends(rows_.size() + 1);
  uint64_t width = rows_.empty() ? 0 : rows_[0]->key_bytes;
  for (size_t i = 0; i < rows_.size(); ++i) {
    ends[i + 1] = ends[i] + rows_[i]->key_bytes;
    if (rows_[i]->key_bytes != width) width = UINT64_MAX;
  }
  BulkVector<std::byte> keys;
  keys.resize(ends.back());
  for (size_t i = 0; i < rows_.size(); ++i)
    if (Bytes key = rows_[i]->key(); !key.empty())
      std::memcpy(keys.data() + ends[i], key.data(), key.size());
  const KeyColumn all =
      width == UINT64_MAX ? Column::variable(keys.data(), ends.data(), rows_.size())
                          : Column::fixed(keys.data(), static_cast<uint32_t>(width), rows_.size());
  constexpr uint64_t chunk_rows = uint64_t{1} << row_bits;
  std::vector<KeyColumn> chunks;
  for (uint64_t first = 0; first < all.size; first += chunk_rows)
    chunks.push_back(all.slice(first, std::min(chunk_rows, all.size - first)));
  return executor.run_bulk(all.size,
                           [&](Backend& bulk) { return bulk.sorter().sort(chunks, &sorted_); });
}

void TailRows::drop_tombstones() {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < size(); ++i) {
    if (kind(i) == EntryKind::tombstone) continue;
    sorted_.order[kept] = sorted_.order[i];
    if (!sorted_.keys8.empty()) sorted_.keys8[kept] = sorted_.keys8[i];
    ++kept;
  }
  sorted_.order.resize(kept);
  if (!sorted_.keys8.empty()) sorted_.keys8.resize(kept);
}

}  // namespace stride

#include "engine/write/rows_of_commit.h"

#include <algorithm>
#include <vector>

#include "storage/quoted.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

// For loops over all rows, which take long.
void stop_if_asked(uint64_t row) {
  if (row % 65'536 != 0) return;
  if (const WorkWatch* watch = WorkWatch::current()) watch->throw_if_stopped();
}

}  // namespace

StagedRows rows_of(const StagedTable& table) {
  StagedRows rows;
  for (const auto& chunk : table.chunks) {
    if (chunk->rows() == 0) continue;
    rows.chunks.push_back(chunk.get());
    rows.keys.push_back(chunk->keys());
    rows.values.push_back(chunk->values());
  }
  return rows;
}

uint64_t staged_rows(const StagedRows& rows) {
  uint64_t n = 0;
  for (const KeyColumn& chunk : rows.keys) n += chunk.size;
  return n;
}

void drop_tombstones(StagedRows* rows) {
  Sorted& sorted = rows->sorted;
  uint64_t kept = 0;
  for (uint64_t i = 0; i < sorted.order.size(); ++i) {
    stop_if_asked(i);
    if (rows->kind(i) == EntryKind::tombstone) continue;
    sorted.order[kept] = sorted.order[i];
    if (!sorted.keys8.empty()) sorted.keys8[kept] = sorted.keys8[i];
    ++kept;
  }
  sorted.order.resize(kept);
  if (!sorted.keys8.empty()) sorted.keys8.resize(kept);
}

bool any_tombstones(const StagedRows& rows) {
  return std::any_of(rows.chunks.begin(), rows.chunks.end(),
                     [](const StagedChunk* c) { return c->has_tombstones(); });
}

KeptPuts::KeptPuts(const StagedRows& rows) : rows_(rows) {
  for (const StagedChunk* chunk : rows.chunks) {
    uint64_t puts = chunk->rows();
    if (chunk->has_tombstones())
      puts = static_cast<uint64_t>(std::count(chunk->kinds(), chunk->kinds() + chunk->rows(),
                                              static_cast<uint8_t>(EntryKind::put)));
    staged_ += puts;
  }
  kept_ = rows.size();
  if (!any_tombstones(rows)) return;
  for (uint64_t i = 0; i < rows.size(); ++i) {
    stop_if_asked(i);
    kept_ -= rows.kind(i) != EntryKind::put;
  }
}

Status KeptPuts::check_all(const TableRecord& table) const {
  if (kept_ == staged_) return {};
  std::vector<Bitmap> kept(rows_.chunks.size());
  for (size_t c = 0; c < kept.size(); ++c) kept[c].reset(rows_.chunks[c]->rows());
  for (uint64_t i = 0; i < rows_.size(); ++i) {
    stop_if_asked(i);
    kept[rows_.chunk_of(i)].set(rows_.row_of(i));
  }
  for (size_t c = 0; c < kept.size(); ++c)
    for (uint64_t i = 0; i < rows_.chunks[c]->rows(); ++i)
      if (!kept[c][i] && rows_.chunks[c]->kind(i) == EntryKind::put)
        return Status(StatusCode::already_exists, "two rows that are put into table '" +
                                                      table.name + "' have the key " +
                                                      in_quotes(rows_.keys[c][i]))
            .with_key(std::string(as_text(rows_.keys[c][i])))
            .with_remedy("put one of them, or let the last one count");
  return {};
}

}  // namespace stride

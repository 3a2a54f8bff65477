#include "engine/own_writes.h"

#include <utility>

#include "engine/catalog/version.h"
#include "engine/scan.h"
#include "engine/snapshot_version.h"
#include "storage/process.h"

namespace stride {

OwnWrites::OwnWrites(const Moment& base)
    : base_(base), view_(SnapshotVersion::make(base.version, base.commit, base.now)) {
  rows_ = make_shared_here<Memtable>();
  auto version = make_shared_here<Version>(*base.version);
  version->memtable = rows_;
  if (base.commit > 0) {
    SealedMemtable sealed;
    sealed.run = UINT64_MAX;
    sealed.rows = base.version->memtable;
    sealed.last_commit = base.commit;
    version->sealed.insert(version->sealed.begin(), std::move(sealed));
  }
  version_ = std::move(version);
}

const TailRow* OwnWrites::find(uint32_t table, Bytes key) const noexcept {
  const TableTail* tail = rows_->find(table);
  return tail ? tail->find(key, rows_->visible()) : nullptr;
}

void OwnWrites::publish() noexcept {
  if (has_unpublished_) rows_->publish(rows_->next_commit());
  has_unpublished_ = false;
}

const Snapshot& OwnWrites::view() {
  if (view_commit_ != rows_->visible()) {
    view_commit_ = rows_->visible();
    view_ = SnapshotVersion::make(version_, view_commit_, base_.now);
  }
  return view_;
}

Status OwnWrites::update(Staging* staging) {
  if (staging->rows() == staged_rows_) return {};
  Status s;
  staging->for_each_table([&](const StagedTable& table) {
    if (s.ok()) s = add_table(table);
  });
  publish();
  STRIDE_TRY(s);
  staged_rows_ = staging->rows();
  return {};
}

// A table that has come since is not in the snapshot, and all reads of it say so.
Status OwnWrites::add_table(const StagedTable& table) {
  if (table.chunks.empty() || !base_.version->find(table.table->id)) return {};
  TableTail& tail = rows_->tail(table.table);
  Position& at = positions_[table.table->id];
  for (;;) {
    const StagedChunk& chunk = *table.chunks[at.chunk];
    if (chunk.ranges().empty())
      add_rows(chunk, &at, &tail);
    else
      STRIDE_TRY(add_ranges(chunk, table.table, &at, &tail));
    if (at.chunk + 1 == table.chunks.size()) return {};  // this one may grow
    at = {at.chunk + 1, 0};
  }
}

void OwnWrites::add_rows(const StagedChunk& chunk, Position* at, TableTail* tail) {
  const KeyColumn keys = chunk.keys();
  const ValueColumn values = chunk.values();
  for (; at->row < chunk.rows(); ++at->row)
    add_row(chunk.kind(at->row), keys[at->row], values[at->row], tail);
}

Status OwnWrites::add_ranges(const StagedChunk& chunk,
                             const std::shared_ptr<const TableRecord>& table, Position* at,
                             TableTail* tail) {
  const Table handle = TableParts::make(table, base_.version->database, nullptr);
  for (; at->row < chunk.ranges().size(); ++at->row) {
    const KeyRange& range = chunk.ranges()[at->row];
    publish();
    ScanOptions bounds;
    bounds.from = range.from;
    bounds.to = range.to;
    auto scan = view().scan(handle, bounds);
    if (!scan.ok()) return scan.status();
    for (ScanBatch batch; scan->next(&batch);)
      for (uint64_t i = 0; i < batch.keys.size; ++i)
        add_row(EntryKind::tombstone, batch.keys[i], {}, tail);
    STRIDE_TRY(scan->status());
  }
  return {};
}

void OwnWrites::add_row(EntryKind kind, Bytes key, Bytes value, TableTail* tail) {
  const uint32_t commit = rows_->next_commit();
  TableTail::Place place = tail->reserve(1, TableTail::row_bytes(key.size(), value.size()));
  const bool is_new = tail->insert(&place, commit, kind, key, value);
  tail->keep_reserved(is_new, commit);
  has_unpublished_ = true;
}

}  // namespace stride

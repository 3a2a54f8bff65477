#include "engine/memtable/snapshot_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/memtable/pieces.h"

namespace stride {
namespace {

// Null: the memtable has no rows of it.
Result<std::shared_ptr<const TableVersion>> with_pieces(const Version& version,
                                                        const TableVersion& table,
                                                        uint32_t commit) {
  using Made = std::shared_ptr<const TableVersion>;
  const TableTail* tail = commit ? version.memtable->find(table.table->id) : nullptr;
  if (!tail) return Made();
  std::vector<std::shared_ptr<IndexedSegment>> pieces;
  STRIDE_TRY(tail->pieces().get(*version.executor, *tail, commit, &pieces));
  if (pieces.empty()) return Made();
  auto made = std::make_shared<TableVersion>(table);
  made->segments = table.segments.with_newer(pieces);
  return Made(std::move(made));
}

}  // namespace

// A forked child leaves alone what it has a copy of.
SnapshotState::~SnapshotState() {
  if (tables_ && !version_->database->opened_in.is_here()) (void)tables_.release();
}

Result<const TableVersion*> SnapshotState::table(const Table& table) const {
  auto found = version_->find(table);
  if (!found.ok() || commit_ == 0) return found;
  std::lock_guard lock(mutex_);
  if (!tables_) tables_ = std::make_unique<Tables>();
  auto [at, is_new] = tables_->try_emplace((*found)->table->id);
  if (is_new) {
    auto made = with_pieces(*version_, **found, commit_);
    if (!made.ok()) {
      tables_->erase(at);
      return made.status();
    }
    at->second = std::move(*made);
  }
  return at->second ? at->second.get() : *found;
}

Result<std::shared_ptr<const Version>> with_newest_rows(std::shared_ptr<const Version> version,
                                                        std::span<const uint32_t> tables) {
  const uint32_t commit = version->memtable ? version->memtable->visible() : 0;
  if (commit == 0) return version;
  std::vector<TableList::Replacement> replaced;
  for (uint32_t table : tables) {
    const size_t at = version->index->position(table);
    if (at == TableIndex::none) continue;
    auto made = with_pieces(*version, *version->tables[at], commit);
    if (!made.ok()) return made.status();
    if (*made) replaced.emplace_back(at, std::move(*made));
  }
  if (replaced.empty()) return version;
  std::sort(replaced.begin(), replaced.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  auto next = make_shared_here<Version>(*version);
  next->tables = version->tables.with_replaced(replaced);
  return std::shared_ptr<const Version>(std::move(next));
}

}  // namespace stride

#include "engine/memtable/snapshot_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/memtable/pieces.h"
#include "engine/prefix/matcher.h"

namespace stride {
namespace {

using Segments = std::vector<std::shared_ptr<IndexedSegment>>;

uint32_t last_commit(const SealedMemtable& sealed) {
  return std::min(sealed.last_commit, sealed.rows->visible());
}

// Appends what the memtable has of the table up to the commit.
Status add_pieces(Executor& executor, const Memtable& memtable, uint32_t table, uint32_t commit,
                  Segments* newest_first) {
  const TableTail* tail = commit == 0 ? nullptr : memtable.find(table);
  return tail ? tail->pieces().get(executor, *tail, commit, newest_first) : Status();
}

// Null: the memtables have no rows of it.
Result<std::shared_ptr<const TableVersion>> with_pieces(const Version& version,
                                                        const TableVersion& table,
                                                        uint32_t commit) {
  const uint32_t id = table.table->id;
  const SegmentList& segments = table.segments;
  Segments newer;
  size_t used = 0;  // of the segments
  size_t pieces = 0;
  if (version.memtable)
    STRIDE_TRY(add_pieces(*version.executor, *version.memtable, id, commit, &newer));
  pieces = newer.size();
  for (const SealedMemtable& sealed : version.sealed) {
    Segments made;
    STRIDE_TRY(add_pieces(*version.executor, *sealed.rows, id, last_commit(sealed), &made));
    if (made.empty()) continue;
    for (; used < segments.size() && segments[used]->record().run > sealed.run; ++used)
      newer.push_back(segments[used]);
    newer.insert(newer.end(), made.begin(), made.end());
    pieces += made.size();
  }
  if (pieces == 0) return std::shared_ptr<const TableVersion>();
  auto made = std::make_shared<TableVersion>(table);
  const SegmentList older =
      used == 0 ? segments
                : SegmentList(segments.begin() + static_cast<ptrdiff_t>(used), segments.end());
  made->segments = older.with_newer(newer);
  // Rows of a prefix table that are in no run yet: a transaction's own.
  if (made->matcher) made->matcher = made->matcher->follow(*version.executor, *made);
  return std::shared_ptr<const TableVersion>(std::move(made));
}

}  // namespace

// A forked child leaves alone what it has a copy of.
SnapshotState::~SnapshotState() {
  if (tables_ && !version_->database->opened_in.is_here()) (void)tables_.release();
}

const TailRow* SnapshotState::find_sealed(uint32_t table, Bytes key) const noexcept {
  for (const SealedMemtable& sealed : version_->sealed) {
    const TableTail* tail = sealed.rows->find(table);
    if (const TailRow* row = tail ? tail->find(key, last_commit(sealed)) : nullptr) return row;
  }
  return nullptr;
}

Result<const TableVersion*> SnapshotState::table(const Table& table) const {
  auto found = version_->find(table);
  if (!found.ok() || (commit_ == 0 && version_->sealed.empty())) return found;
  std::lock_guard lock(mutex_);
  if (!tables_) tables_ = std::make_unique<Tables>();
  const uint32_t id = (*found)->table->id;
  auto at = tables_->find(id);
  if (at == tables_->end()) {
    // An entry without rows says that the memtables have none: there is one only once that is known,
    // also where memory runs out.
    auto made = with_pieces(*version_, **found, commit_);
    if (!made.ok()) return made.status();
    at = tables_->emplace(id, std::move(*made)).first;
  }
  return at->second ? at->second.get() : *found;
}

Result<const TableVersion*> SnapshotState::ordered_table(const Table& table,
                                                         std::vector<OrderedTail>* newest) const {
  auto found = version_->find(table);
  if (!found.ok()) return found;
  if (!has_newest_rows(*version_, **found)) return this->table(table);
  auto add = [&](const Memtable& memtable, uint32_t commit) {
    const TableTail* tail = commit == 0 ? nullptr : memtable.find((*found)->table->id);
    if (!tail) return Status();
    auto runs = tail->order().get(*version_->executor, *tail, commit);
    if (!runs.ok()) return runs.status();
    newest->push_back({tail, commit, std::move(*runs)});
    return Status();
  };
  if (version_->memtable) STRIDE_TRY(add(*version_->memtable, commit_));
  for (const SealedMemtable& sealed : version_->sealed)
    STRIDE_TRY(add(*sealed.rows, last_commit(sealed)));
  return found;
}

Result<std::shared_ptr<const Version>> with_newest_rows(std::shared_ptr<const Version> version,
                                                        std::span<const uint32_t> tables) {
  const uint32_t commit = version->memtable ? version->memtable->visible() : 0;
  if (commit == 0 && version->sealed.empty()) return version;
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

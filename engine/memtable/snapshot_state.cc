#include "engine/memtable/snapshot_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/catalog/expired_rows.h"
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

// The same as of a time. Null: the table serves as it is.
Result<std::shared_ptr<const TableVersion>> whole_at(const Version& version,
                                                     const TableVersion& table, uint32_t commit,
                                                     int64_t now) {
  std::shared_ptr<const TableVersion> whole;
  if (commit != 0 || !version.sealed.empty()) {
    auto made = with_pieces(version, table, commit);
    if (!made.ok()) return made;
    whole = std::move(*made);
  }
  auto aged = table_at(whole ? *whole : table, now);
  return aged ? aged : whole;
}

}  // namespace

// A forked child leaves alone what it has a copy of.
SnapshotState::~SnapshotState() {
  if (made_ && !version_->database->opened_in.is_here()) (void)made_.release();
}

const TailRow* SnapshotState::find_sealed(uint32_t table, Bytes key) const noexcept {
  for (const SealedMemtable& sealed : version_->sealed) {
    const TableTail* tail = sealed.rows->find(table);
    if (const TailRow* row = tail ? tail->find(key, last_commit(sealed)) : nullptr) return row;
  }
  return nullptr;
}

template <class Make>
Result<const TableVersion*> SnapshotState::kept(Tables Made::*tables, const TableVersion& found,
                                                const Make& make) const {
  std::lock_guard lock(mutex_);
  if (!made_) made_ = std::make_unique<Made>();
  Tables& there = made_.get()->*tables;
  const uint32_t id = found.table->id;
  auto at = there.find(id);
  if (at == there.end()) {
    // An entry without a table says that the found one serves: there is one only once that is
    // known, also where memory runs out.
    Result<std::shared_ptr<const TableVersion>> made = make();
    if (!made.ok()) return made.status();
    at = there.emplace(id, std::move(*made)).first;
  }
  return at->second ? at->second.get() : &found;
}

Result<const TableVersion*> SnapshotState::table(const Table& table) const {
  auto found = version_->find(table);
  if (!found.ok()) return found;
  const bool has_tails = commit_ != 0 || !version_->sealed.empty();
  if (!has_tails && !expiry_at(*(*found)->table, now_).is_there()) return found;
  return kept(&Made::whole, **found, [&] { return whole_at(*version_, **found, commit_, now_); });
}

Result<const TableVersion*> SnapshotState::ordered_table(const Table& table,
                                                         std::vector<OrderedTail>* newest) const {
  auto found = version_->find(table);
  if (!found.ok()) return found;
  if (!has_newest_rows(*version_, **found)) return this->table(table);
  const ExpiryCheck expiry = expiry_at(*(*found)->table, now_);
  auto add = [&](const Memtable& memtable, uint32_t commit) {
    const TableTail* tail = commit == 0 ? nullptr : memtable.find((*found)->table->id);
    if (!tail) return Status();
    auto runs = tail->order().get(*version_->executor, *tail, commit);
    if (!runs.ok()) return runs.status();
    newest->push_back({tail, commit, std::move(*runs), expiry});
    return Status();
  };
  if (version_->memtable) STRIDE_TRY(add(*version_->memtable, commit_));
  for (const SealedMemtable& sealed : version_->sealed)
    STRIDE_TRY(add(*sealed.rows, last_commit(sealed)));
  if (!expiry.is_there()) return found;
  return kept(&Made::without_tails, **found, [&]() -> Result<std::shared_ptr<const TableVersion>> {
    return table_at(**found, now_);
  });
}

Result<std::shared_ptr<const Version>> with_newest_rows(std::shared_ptr<const Version> version,
                                                        std::span<const uint32_t> tables) {
  const uint32_t commit = version->memtable ? version->memtable->visible() : 0;
  const int64_t now = version->database->clock.now();
  if (commit == 0 && version->sealed.empty() && now == before_all_time) return version;
  std::vector<TableList::Replacement> replaced;
  for (uint32_t table : tables) {
    const size_t at = version->index->position(table);
    if (at == TableIndex::none) continue;
    auto made = whole_at(*version, *version->tables[at], commit, now);
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

#include "engine/write/read_check.h"

#include <algorithm>
#include <string>

#include "engine/memtable/memtable.h"
#include "engine/memtable/tail_merger.h"
#include "engine/memtable/tail_order.h"
#include "engine/write/read_values.h"
#include "engine/write/table_checks.h"

namespace stride {
namespace {

// So many keys are looked for in the memtable one by one while others wait for the commit; of more
// the rows that came since are looked for among the keys.
constexpr uint64_t max_few_keys = 64;
constexpr uint64_t prefetched_keys = 16;
// What an interval's search takes, in rows of the memtable that could be looked at instead.
constexpr uint64_t rows_per_interval = 32;
constexpr unsigned max_stale_checks = 3;

bool starts_before(const KeyInterval& a, const KeyInterval& b) {
  return compare(a.from, b.from) < 0;
}

bool ends_before(const std::optional<Bytes>& a, const std::optional<Bytes>& b) {
  return a && (!b || compare(*a, *b) < 0);
}

const TableTail* tail_of(const Version& version, uint32_t table) {
  return version.memtable ? version.memtable->find(table) : nullptr;
}

std::shared_ptr<const SnapshotState> state_at(const Moment& moment, int64_t time) {
  return std::make_shared<const SnapshotState>(moment.version, moment.commit, time);
}

bool has_same_segments(const TableVersion& a, const TableVersion& b) {
  if (&a == &b) return true;
  return a.segments.size() == b.segments.size() &&
         std::equal(a.segments.begin(), a.segments.end(), b.segments.begin());
}

}  // namespace

bool ReadCheck::Intervals::contain(Bytes key) const {
  auto above = std::upper_bound(
      ascending.begin(), ascending.end(), key,
      [](Bytes k, const KeyInterval& interval) { return compare(k, interval.from) < 0; });
  if (above == ascending.begin()) return false;
  const KeyInterval& interval = *--above;
  return !interval.to || compare(key, *interval.to) < 0;
}

bool ReadCheck::is_worth_a_look() const {
  uint64_t keys = 0;
  for (const TableReads& reads : reads_.tables()) {
    keys += reads.keys().size();
    if (reads.intervals() > 0 || !reads.addresses().empty()) return true;
  }
  return keys > max_few_keys;
}

void ReadCheck::prepare() {
  if (!prepared_.empty()) return;
  std::vector<Prepared> prepared(reads_.tables().size());
  for (size_t t = 0; t < prepared.size(); ++t) {
    const TableReads& reads = reads_.tables()[t];
    std::vector<KeyInterval> all(reads.intervals());
    for (uint64_t i = 0; i < all.size(); ++i) all[i] = reads.interval(i);
    std::sort(all.begin(), all.end(), starts_before);
    auto& ascending = prepared[t].intervals.ascending;
    for (const KeyInterval& next : all) {
      if (ascending.empty() || ends_before(ascending.back().to, next.from)) {
        ascending.push_back(next);
      } else if (ends_before(ascending.back().to, next.to)) {
        ascending.back().to = next.to;
      }
    }
    if (reads.keys().size() <= max_few_keys) continue;
    auto& keys = prepared[t].keys;
    keys.resize(reads.keys().size());
    for (uint64_t i = 0; i < keys.size(); ++i)
      keys[i] = {reads.key_checksum(i), static_cast<uint32_t>(i)};
    std::sort(keys.begin(), keys.end());
  }
  prepared_ = std::move(prepared);
}

// The cursors first: what is published after that lies behind them.
Moment ReadCheck::mark_now(const Now& now) {
  for (;;) {
    const Moment before = now();
    for (size_t t = 0; t < prepared_.size(); ++t) {
      Prepared& table = prepared_[t];
      table.tail = tail_of(*before.version, reads_.tables()[t].table()->id);
      table.recent.reset();
      if (table.tail) table.recent = table.tail->recent();
    }
    Moment marked = now();
    if (marked.version->memtable == before.version->memtable) return marked;
  }
}

Status ReadCheck::look_ahead(const Now& now) {
  ++looks_;
  prepare();
  Moment marked = mark_now(now);
  for (size_t t = 0; t < reads_.tables().size(); ++t)
    STRIDE_TRY(check_table(t, marked, /*ahead=*/true));
  good_at_ = std::move(marked);
  return {};
}

Status ReadCheck::check(const std::shared_ptr<const Version>& current) {
  const Moment now{current, current->memtable ? current->memtable->visible() : 0};
  for (size_t t = 0; t < reads_.tables().size(); ++t)
    STRIDE_TRY(check_table(t, now, /*ahead=*/false));
  return {};
}

Status ReadCheck::check_unless_stale(const std::shared_ptr<const Version>& current, bool* stale) {
  *stale = looks_ > 0 && looks_ <= max_stale_checks &&
           std::any_of(reads_.tables().begin(), reads_.tables().end(),
                       [&](const TableReads& reads) { return has_moved(reads, *current); });
  return *stale ? Status() : check(current);
}

// A table that is gone is told of by the check.
bool ReadCheck::has_moved(const TableReads& reads, const Version& current) const {
  const uint32_t id = reads.table()->id;
  const TableVersion* before = good_at_.version->find(id);
  const TableVersion* now = current.find(id);
  return before && now &&
         (good_at_.version->memtable != current.memtable || !has_same_segments(*before, *now));
}

Status ReadCheck::check_table(size_t t, const Moment& now, bool ahead) {
  const TableReads& reads = reads_.tables()[t];
  STRIDE_TRY(check_there(*now.version, *reads.table()));
  if (has_moved(reads, *now.version)) {
    prepare();
    return compare_reads(reads, prepared_[t].intervals.ascending, state_at(good_at_, time_),
                         state_at(now, time_));
  }
  const TableTail* tail = tail_of(*now.version, reads.table()->id);
  if (!tail || tail->last_commit() <= good_at_.commit) return {};
  if (prepared_.empty()) return check_keys(reads, *tail, now.commit);
  const Prepared& prepared = prepared_[t];
  if (!ahead) return check_recent(reads, prepared, *tail, now.commit);
  STRIDE_TRY(check_keys(reads, *tail, now.commit));
  return check_intervals(reads, prepared.intervals, *tail, now);
}

Status ReadCheck::check_keys(const TableReads& reads, const TableTail& tail,
                             uint32_t commit) const {
  const uint64_t n = reads.keys().size();
  for (uint64_t begin = 0; begin < n; begin += prefetched_keys) {
    const uint64_t end = std::min(n, begin + prefetched_keys);
    for (uint64_t i = begin; i < end; ++i) tail.prefetch_find(reads.key_checksum(i));
    for (uint64_t i = begin; i < end; ++i) {
      const Bytes key = reads.keys()[i];
      const TailRow* row = tail.find(reads.key_checksum(i), key, commit);
      if (row && row->commit.load(std::memory_order_relaxed) > good_at_.commit)
        return changed_key(*reads.table(), key);
    }
  }
  return {};
}

Status ReadCheck::check_recent(const TableReads& reads, const Prepared& prepared,
                               const TableTail& tail, uint32_t commit) const {
  if (prepared.keys.empty()) STRIDE_TRY(check_keys(reads, tail, commit));
  if (prepared.keys.empty() && prepared.intervals.ascending.empty()) return {};
  TableTail::Cursor cursor = prepared.tail == &tail ? *prepared.recent : TableTail::Cursor(tail);
  while (const TailRow* row = cursor.next(commit)) {
    if (row->commit.load(std::memory_order_relaxed) <= good_at_.commit) continue;
    const Bytes key = row->key();
    if (prepared.intervals.contain(key)) return changed_interval(*reads.table(), key);
    if (prepared.keys.empty()) continue;
    const uint64_t sum = checksum(key);
    auto at = std::lower_bound(prepared.keys.begin(), prepared.keys.end(), std::pair(sum, 0U));
    for (; at != prepared.keys.end() && at->first == sum; ++at)
      if (compare(reads.keys()[at->second], key) == 0) return changed_key(*reads.table(), key);
  }
  return {};
}

// Intervals that are few are looked up in the memtable's order, which scans have made in part; else
// all rows of the memtable are looked at.
Status ReadCheck::check_intervals(const TableReads& reads, const Intervals& intervals,
                                  const TableTail& tail, const Moment& now) const {
  auto is_later = [&](const TailRow* row) {
    return row->commit.load(std::memory_order_relaxed) > good_at_.commit;
  };
  if (intervals.ascending.empty()) return {};
  if (intervals.ascending.size() * rows_per_interval > tail.rows()) {
    TableTail::Cursor cursor(tail);
    while (const TailRow* row = cursor.next(now.commit))
      if (is_later(row) && intervals.contain(row->key()))
        return changed_interval(*reads.table(), row->key());
    return {};
  }
  auto runs = tail.order().get(*now.version->executor, tail, now.commit);
  if (!runs.ok()) return runs.status();
  for (const KeyInterval& interval : intervals.ascending) {
    ScanOptions bounds;
    bounds.from = std::string(as_text(interval.from));
    if (interval.to) bounds.to = std::string(as_text(*interval.to));
    TailMerger rows({{&tail, now.commit, *runs}}, bounds);
    for (; const TailRow* row = rows.row(); rows.next())
      if (is_later(row)) return changed_interval(*reads.table(), row->key());
  }
  return {};
}

Status ReadCheck::check_group(const GroupWrites& writes) const {
  for (size_t t = 0; t < reads_.tables().size(); ++t) {
    const TableReads& reads = reads_.tables()[t];
    const uint32_t id = reads.table()->id;
    for (uint64_t i = 0; i < reads.keys().size(); ++i)
      if (writes.contains(id, reads.key_checksum(i), reads.keys()[i]))
        return changed_key(*reads.table(), reads.keys()[i]);
    if (reads.intervals() == 0) continue;
    for (const GroupWrites::Row& row : writes.rows())
      if (row.table == id && prepared_[t].intervals.contain(row.key))
        return changed_interval(*reads.table(), row.key);
  }
  return {};
}

}  // namespace stride

// Whether what a transaction has read is as it was when its commit comes to its turn.
//
//   ReadCheck check(reads, version, commit);     // what they were read from
//   Status s = check.look_ahead(now);            // by the thread that commits; holds nothing up
//   ... the commit takes its turn ...
//   s = check.check(current);                    // under the commit lock: what came since
//
// While the table has the same segments and the same memtable, what has changed are rows of the
// memtable with later commits: the hash table leads to the newest row of each key that was read,
// and rows that came since are compared with the intervals. Otherwise what is read now is compared
// with what was read, so that a merge or a flush, which moves rows, is no conflict, and nobody has
// to keep old rows for the check.
//
// This is optimistic concurrency control by validation at the commit (H. T. Kung and J. T.
// Robinson, "On Optimistic Methods for Concurrency Control", 1981), where the commit's turn is the
// order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/memtable/table_tail.h"
#include "engine/write/group_writes.h"
#include "engine/write/read_set.h"
#include "storage/status.h"

namespace stride {

// What is visible at one moment: a version, the last commit of its memtable, and the time by which
// rows have ended (ExpiryClock::now()).
struct Moment {
  std::shared_ptr<const Version> version;
  uint32_t commit = 0;
  int64_t now = before_all_time;
};

// For one thread at a time. Its calls return `conflict`, naming table and key, where what was read
// is not as it was, not_found for a table that is gone, and what reads return. They throw
// std::bad_alloc.
class ReadCheck {
 public:
  using Now = std::function<Moment()>;

  // reads: outlives this.
  // What has only ended since is no change, unless a compaction has left it out: the reads stay
  // those of their time.
  ReadCheck(const ReadSet& reads, Moment read_at)
      : reads_(reads), time_(read_at.now), good_at_(std::move(read_at)) {}

  // Whether look_ahead() takes more than a few lookups off the check.
  bool is_worth_a_look() const;
  // Checks up to now() and leaves the rest to check(). Needs no lock.
  Status look_ahead(const Now& now);
  // Checks up to the version's last commit. Requires the commit lock.
  Status check(const std::shared_ptr<const Version>& current);
  // The same; but where that would take long, because rows have moved since the last look ahead,
  // *stale becomes true, nothing is said, and the caller is to look ahead again. It becomes so a
  // few times at most.
  Status check_unless_stale(const std::shared_ptr<const Version>& current, bool* stale);
  // Whether commits that come before in the same group leave alone what was read.
  Status check_group(const GroupWrites& writes) const;

 private:
  // The intervals in ascending order, without those that meet or overlap.
  struct Intervals {
    std::vector<KeyInterval> ascending;
    bool contain(Bytes key) const;
  };
  // Of a table's reads, made by the first look ahead.
  struct Prepared {
    Intervals intervals;
    std::vector<std::pair<uint64_t, uint32_t>> keys;  // checksums and numbers; of many keys only
    // Rows from here on, at least, came after good_at_.
    const TableTail* tail = nullptr;
    std::optional<TableTail::Cursor> recent;
  };

  void prepare();
  Moment mark_now(const Now& now);
  Status check_table(size_t i, const Moment& now, bool ahead);
  Status check_keys(const TableReads& reads, const TableTail& tail, uint32_t commit) const;
  // Rows that came since, from the last look ahead on.
  Status check_recent(const TableReads& reads, const Prepared& prepared, const TableTail& tail,
                      uint32_t commit) const;
  Status check_intervals(const TableReads& reads, const Intervals& intervals, const TableTail& tail,
                         const Moment& now) const;
  bool has_moved(const TableReads& reads, const Version& current) const;

  const ReadSet& reads_;
  const int64_t time_;              // of the reads
  Moment good_at_;                  // all is as it was up to then
  std::vector<Prepared> prepared_;  // of each table; empty: not made
  unsigned looks_ = 0;
};

}  // namespace stride

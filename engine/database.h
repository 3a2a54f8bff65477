// StrideDB: an embeddable, ordered, durable key-value store for bulk work.
//
//   Result<std::unique_ptr<Database>> db = Database::open("/var/lib/app/db");
//   Result<Table> table = (*db)->open_or_create_table("ticks", {.key_width = 8});
//   WriteTransaction t = (*db)->begin();
//   Status s = t.put(*table, keys, values);  // columns
//   if (s.ok()) s = t.commit();              // durable
//   GetResult result;
//   s = (*db)->snapshot().get(*table, keys, &result);
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/backup.h"
#include "engine/damage.h"
#include "engine/metrics.h"
#include "engine/options.h"
#include "engine/snapshot.h"
#include "engine/table.h"
#include "engine/transaction.h"
#include "engine/write_transaction.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

class DatabaseImpl;
class SharedDatabase;

// One sorted file of a table. A lookup visits a table's segments newest first, of one run only
// those that can hold the key.
struct SegmentReport {
  uint64_t run = 0;          // segments of one run have disjoint keys; higher is newer
  uint64_t rows = 0;         // tombstones included, and erased ones
  uint64_t erased_rows = 0;  // by ranges: no search finds them
  uint64_t tombstones = 0;
  uint64_t bytes_on_disk = 0;
  uint64_t key_bytes = 0, value_bytes = 0;      // without what tells where each begins
  bool fixed_keys = true, fixed_values = true;  // all of one width
  // Where rows share equal values: how many values there are, and what that saves. 0: each row has
  // its own.
  uint64_t distinct_values = 0;
  uint64_t saved_bytes = 0;  // of bytes_on_disk
  uint64_t resident_bytes = 0;
  uint64_t device_bytes = 0;
  std::string device_placement;  // "a part on each of 2 devices"; empty: on one, or on none
  // The tree: of each level, the root first, its bits, its nodes and their kind.
  std::vector<uint32_t> strides;
  std::vector<uint64_t> nodes;
  std::vector<NodeKind> kinds;
  uint32_t prefix_bits = 0;  // that all keys share
  uint32_t leaf_capacity = 0;
  uint64_t tree_bytes = 0;
  // Takes the filter that says which keys are not there. 0: there is none, as in a table's oldest
  // run.
  uint64_t filter_bytes = 0;
  // What a search costs, as far as a sample of the keys tells; nothing (empty, 0) of segments of
  // fewer than 65,536 rows.
  std::vector<double> visits;            // of each level: the share of searches that come so far
  double leaf_keys = 0;                  // that a search finds where the levels end, on average
  double expected_finds_per_second = 0;  // of random keys in large batches, where the tree lies
  std::string expected_on;               // what they are expected of: a backend's name()
};

// Thread-safe. One process writes a database; others may open it read_only.
//
// Where this process has the path open for writing, opening it again gives another handle of the
// same database: what one commits the other sees. The options of the first opening hold for both.
// Closing a handle ends that handle; the database is closed with the last one. A read_only handle
// is always a view of its own, also beside a writer in this process, and sees what refresh() finds.
//
// After fork() the database stays the parent's. In the child every call through a handle that was
// opened before, and through its snapshots and transactions, is refused (closed) and changes
// nothing, and destroying them is safe; to use the database there, open it anew, read_only while
// the parent has it open for writing.
class STRIDE_API Database {
 public:
  // locked: another process has it open for writing. invalid_argument: it is not a database, or
  // this process has it open with another Options::durability. not_found, already_exists,
  // corruption, unsupported_version, permission_denied, io_error. A segment that is
  // missing or damaged is no failure: what reads its table, or compacts it, is told.
  static Result<std::unique_ptr<Database>> open(const std::string& path,
                                                const Options& options = {});
  ~Database();  // closes, ignoring errors

  // already_exists where there is one of that name, invalid_argument for a bad name or options.
  Result<Table> create_table(const std::string& name, const TableOptions& options = {});
  // not_found where there is none.
  Result<Table> open_table(const std::string& name) const;
  // invalid_argument where it exists with another key width, other address bits, another
  // share_equal_values, or other numbers or another overflow.
  Result<Table> open_or_create_table(const std::string& name, const TableOptions& options = {});
  // not_found where there is none. Snapshots taken before still read it.
  Status drop_table(const std::string& name);
  // As WriteTransaction::rename_table(), and durable when it returns.
  Status rename_table(const std::string& name, const std::string& new_name);
  std::vector<TableStatistics> tables() const;
  // Newest first. not_found for a table that was dropped, corruption for a damaged tree, and for a
  // segment that could not be opened.
  Result<std::vector<SegmentReport>> segments(const Table& table) const;

  // Where there is no memory for a transaction, all of its calls say so.
  WriteTransaction begin() noexcept;
  // One that reads, too, and whose commit fails where that has changed (engine/transaction.h).
  Transaction transaction() noexcept;
  Snapshot snapshot() const noexcept;

  // For a handle that is read_only: brings it up to date with what another process has committed.
  // Snapshots that are taken afterwards see, whole and in their order, all commits up to one that
  // is no older than the last that had returned there with `sync` or `flush`; of `none` those that
  // it has handed to the system by then. Snapshots that are there keep what they see. Reads only
  // what has come, and never waits for the writer (docs/readers.md). Where it fails the handle is
  // as it was, and refresh() can be called again: corruption, unavailable (the files change faster
  // than they can be read), io_error, closed. For other handles there is nothing to do.
  Status refresh();
  // Makes all that was committed durable, whatever its level: it survives power loss.
  Status sync();

  // Merges all runs of each table into one, and drops tombstones and superseded entries.
  // corruption: a table has damaged segments, of which none is removed; the others are compacted.
  Status compact();
  // Measures what reads of memory cost on this machine, for a few seconds at most, and keeps it in
  // the database's directory: by this the trees of segments are planned that are written from now
  // on, in place of what is typical of such machines.
  Status calibrate();
  // Bytes of all files but LOG; cheap (no call to the operating system).
  uint64_t size_bytes() const;
  // What was done since the database was opened, and the state that it is in, at about one moment;
  // also after close(), and all 0 in a forked child. Takes a look at each segment in memory, and no
  // call to the operating system. prometheus_text() makes a text of it.
  Metrics metrics() const;
  // Reads every byte of every segment from the disk and checks it, and that keys ascend, trees lead
  // to them, and all fits the tables; then every frame of the write-ahead logs, unless read_only.
  // corruption, with file and offset: the first that does not.
  Status verify() const;
  // The same, and goes on after that: the report lists all that is damaged. Where an end is asked
  // for (engine/watched_call.h), what was found by then.
  Status verify(VerifyReport* report) const;
  // Makes a database of all that is committed: its segments are other names of this one's files
  // (hard links), so that it takes no space at first, and little time; where the file system has
  // none, or is another one, they are copied and checked. Writing goes on meanwhile; of commits
  // that are made during the call, those before one of them are in. All that was committed is
  // durable when it returns, whatever its level. A read_only handle gives what it sees. report:
  // null, or what was done.
  //
  // already_exists: the directory is there. closed, poisoned, no_space, io_error, cancelled;
  // corruption: a segment cannot be opened. Where it fails nothing is left of the directory, or
  // what can be opened by no means, after a power loss.
  Status checkpoint(const std::string& directory, const CopyOptions& options = {},
                    CopyReport* report = nullptr);
  // Brings the backup of this database in the directory up to date, or makes it there: copies the
  // segments that it does not have, and checks every byte that it copies. restore()
  // (engine/backup.h) makes a database of it. What ends early, by whatever it is, is gone on with
  // by the next call, and the backup before it stays whole until this one is. Commits as
  // checkpoint().
  //
  // invalid_argument: the directory is the backup of another database, or has other files.
  // corruption, with the file: a segment is damaged; nothing of it is in the backup. locked:
  // another backup goes on there. closed, poisoned, no_space, io_error, cancelled.
  Status backup(const std::string& directory, const CopyOptions& options = {},
                CopyReport* report = nullptr);
  // Makes everything durable, whatever its level, and ends: later calls return `closed`. Snapshots
  // stay valid. Where other handles of this process have the database open, it stays open for
  // these, and for transactions that are there.
  Status close();

  std::string backend_name() const;

 private:
  Database(std::shared_ptr<DatabaseImpl> impl, std::shared_ptr<SharedDatabase> shared);
  // closed: this handle is, whether or not others are.
  Status check_open() const;

  std::shared_ptr<DatabaseImpl> impl_;
  std::shared_ptr<SharedDatabase> shared_;  // null: no other handle can have it
  std::atomic<bool> closed_{false};
};

}  // namespace stride

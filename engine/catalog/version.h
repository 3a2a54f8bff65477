// What a snapshot sees: an immutable list of tables, each with its segments, newest first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/catalog/expiry_clock.h"
#include "engine/catalog/indexed_segment.h"
#include "engine/catalog/segment_list.h"
#include "engine/catalog/table_index.h"
#include "engine/catalog/table_list.h"
#include "engine/monitoring/monitor.h"
#include "engine/table.h"
#include "gpu/backend.h"
#include "storage/manifest.h"
#include "storage/process.h"
#include "storage/status.h"

namespace stride {

// Segments of one run lie together.
uint64_t count_runs(const SegmentList& segments);
// Bytes of the files of one run.
uint64_t run_bytes(const SegmentList& segments, uint64_t run);

class Executor;
class MatcherSlot;
class Memtable;
class ReaderLease;

// Immutable once its version is published.
struct TableVersion {
  std::shared_ptr<const TableRecord> table;
  SegmentList segments;
  // What matches addresses against these segments (engine/prefix/matcher.h). Null: not a prefix
  // table.
  std::shared_ptr<MatcherSlot> matcher = nullptr;
};

// One opening of a database. Handles of tables are compared with versions and transactions by the
// address of this.
struct DatabaseIdentity {
  std::string path;
  ProcessMark opened_in;
  std::shared_ptr<Monitor> monitor;
  ExpiryClock clock;

  explicit DatabaseIdentity(std::string where,
                            std::shared_ptr<Monitor> told = std::make_shared<Monitor>(),
                            std::function<int64_t()> time = nullptr)
      : path(std::move(where)), monitor(std::move(told)), clock(std::move(time)) {}

  // closed: this process is a forked child of the one that opened it.
  Status check_process() const { return opened_in.is_here() ? Status() : left_in_parent(path); }
};

// What a handle of a table holds.
struct TableParts {
  static const std::shared_ptr<const TableRecord>& record(const Table& table) {
    return table.record_;
  }
  static const std::shared_ptr<const Schema>& schema(const Table& table) { return table.schema_; }
  static const std::shared_ptr<const DatabaseIdentity>& database(const Table& table) {
    return table.database_;
  }
  static Table make(std::shared_ptr<const TableRecord> record,
                    std::shared_ptr<const DatabaseIdentity> database,
                    std::shared_ptr<const Schema> schema) {
    return Table(std::move(record), std::move(database), std::move(schema));
  }
};

// A memtable to which no rows come any more, on its way to be a run.
struct SealedMemtable {
  uint64_t run = 0;  // newer than segments of smaller numbers, and older than all others
  std::shared_ptr<Memtable> rows;
  uint64_t memory_bytes = 0;
  uint64_t log_bytes = 0;  // of the files that hold the rows
  // Rows of later commits do not count, where the reader's snapshot is older than the last ones.
  uint32_t last_commit = UINT32_MAX;
};

// Immutable once it is published. The next version shares the tables that it does not change.
struct Version {
  std::shared_ptr<const DatabaseIdentity> database;
  std::shared_ptr<Backend> backend;  // the host's
  std::shared_ptr<Executor> executor;
  TableList tables;
  std::shared_ptr<const TableIndex> index;  // of these
  // Rows that are newer than all segments. A reader sees those that were published by the time it
  // took the version. Null: there is no log.
  std::shared_ptr<Memtable> memtable;
  std::vector<SealedMemtable> sealed;  // newest first
  uint64_t file_bytes = 0;             // of all segments together
  uint64_t resident_bytes = 0;         // the same
  // Keeps the files where another process may write. Null: this one does, or there is no lease.
  std::shared_ptr<ReaderLease> lease;

  // Null where the table is not there.
  const TableVersion* find(uint32_t table) const {
    size_t at = index->position(table);
    return at == TableIndex::none ? nullptr : tables[at].get();
  }
  const TableVersion* find_name(std::string_view name) const {
    const TableRecord* record = index->find(name);
    return record ? find(record->id) : nullptr;
  }
  // The table of a handle. invalid_argument: it is of another database. not_found. closed: this
  // process is a forked child.
  Result<const TableVersion*> find(const Table& table) const;
};

// invalid_argument: the handle is empty, or its table is not of this database.
Status check_identity(const Table& table, const std::shared_ptr<const DatabaseIdentity>& database);

}  // namespace stride

// What a snapshot sees: an immutable list of tables, each with its segments, newest first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/catalog/segment_list.h"
#include "engine/snapshot.h"
#include "gpu/backend.h"
#include "storage/manifest.h"
#include "storage/process.h"
#include "storage/segment.h"
#include "storage/status.h"

namespace stride {

// A segment's copy on a device.
struct DeviceCopy {
  std::shared_ptr<Backend> device;  // outlives the index
  std::shared_ptr<ResidentIndex> index;
};

// What Residency keeps of a segment. Thread-safe.
class DeviceSlot {
 public:
  std::shared_ptr<const DeviceCopy> get() const {
    std::lock_guard lock(mutex_);
    return copy_;
  }
  void set(std::shared_ptr<const DeviceCopy> copy) {
    std::lock_guard lock(mutex_);
    copy_.swap(copy);
  }
  std::atomic<uint64_t> last_use{0};
  std::atomic<uint64_t> queries{0};  // that wanted it on the device since it last came, or did not
  std::atomic<bool> refused{false};  // there was no room for it

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const DeviceCopy> copy_;
};

// A segment that is ready to be searched, with what a search needs at hand. Thread-safe. Pins its
// file: an obsolete one is removed when the last reference goes.
class IndexedSegment {
 public:
  IndexedSegment(FileSystem* fs, std::shared_ptr<Segment> segment, SegmentRecord record);
  ~IndexedSegment();

  const SegmentRecord& record() const { return record_; }
  Segment& segment() const { return *segment_; }
  uint64_t rows() const { return keys_.size; }
  Bytes first_key() const { return first_key_; }
  Bytes last_key() const { return last_key_; }
  bool has_tombstones() const { return kinds_ != nullptr; }
  // not ok: it could not be opened, and prepare() fails so. It has no rows then, whatever its
  // record says.
  Status open_failure() const { return segment_->open_failure(); }
  // Whether the key cannot be among its keys. Costs no look at the file.
  bool is_outside(Bytes key) const {
    return readable_ && (compare(key, first_key_) < 0 || compare(key, last_key_) > 0);
  }

  // Checks the tree before its first use. Call before index() and after.
  Status prepare() const {
    return ready_.load(std::memory_order_acquire) ? Status() : prepare_once();
  }
  // Precondition: prepare() was ok.
  IndexView index() const {
    IndexView view{keys_, {tree_.data(), tree_.size()}, segment_->guard()};
    view.rows = &beside_keys_;
    return view;
  }
  const PackedColumn& keys() const { return keys_; }
  const ValueRows& values() const { return values_; }

  // Each checks the bytes that it is about to return, unless all are known to be intact.
  Status key(uint64_t rank, Bytes* key) const;
  Status value(uint64_t rank, Bytes* value) const;
  Status is_tombstone(uint64_t rank, bool* tombstone) const;
  // The same for rows [first, last) at once.
  Status ensure_rows(uint64_t first, uint64_t last) const {
    return segment_->intact() ? Status() : ensure_unchecked_rows(first, last);
  }

  // Brings and checks all keys, for reading them from one end to the other.
  Status ensure_keys() const;

  void remove_when_unused() { obsolete_.store(true, std::memory_order_relaxed); }

  // Unchecked, for callers that know guard() to be null or have ensured the row.
  EntryKind kind(uint64_t rank) const {
    return kinds_ ? static_cast<EntryKind>(kinds_[rank]) : EntryKind::put;
  }
  const uint8_t* kinds() const { return kinds_; }
  DeviceSlot& device_slot() { return device_slot_; }

 private:
  Status prepare_once() const;
  Status ensure_unchecked_rows(uint64_t first, uint64_t last) const;
  Status ensure_column(const PackedColumn& column, uint64_t first, uint64_t last) const;
  Status ensure_values(uint64_t first, uint64_t last) const;

  FileSystem* fs_;
  std::shared_ptr<Segment> segment_;
  SegmentRecord record_;
  PackedColumn keys_;
  ValueRows values_;
  PackedColumn beside_keys_;  // the values or, where they are shared, their numbers
  const uint8_t* kinds_;
  Bytes tree_, first_key_, last_key_;
  bool readable_;
  std::atomic<bool> obsolete_{false};
  mutable std::atomic<bool> ready_{false};
  mutable std::mutex prepare_mutex_;
  DeviceSlot device_slot_;
};

// Segments of one run lie together.
uint64_t count_runs(const SegmentList& segments);

class MatcherSlot;

struct TableVersion {
  std::shared_ptr<const TableRecord> table;
  SegmentList segments;
  // What matches addresses against these segments (engine/prefix/matcher.h). Null: not a prefix table.
  std::shared_ptr<MatcherSlot> matcher = nullptr;
};

class Residency;

// One opening of a database. Handles of tables are compared with versions and transactions by the
// address of this.
struct DatabaseIdentity {
  std::string path;
  ProcessMark opened_in;

  // closed: this process is a forked child of the one that opened it.
  Status check_process() const { return opened_in.is_here() ? Status() : left_in_parent(path); }
};

// What a handle of a table holds.
struct TableParts {
  static const std::shared_ptr<const TableRecord>& record(const Table& table) {
    return table.record_;
  }
  static const std::shared_ptr<const DatabaseIdentity>& database(const Table& table) {
    return table.database_;
  }
  static Table make(std::shared_ptr<const TableRecord> record,
                    std::shared_ptr<const DatabaseIdentity> database) {
    return Table(std::move(record), std::move(database));
  }
};

struct Version {
  std::shared_ptr<const DatabaseIdentity> database;
  std::vector<TableVersion> tables;  // ascending id
  std::shared_ptr<Backend> backend;  // the host's
  std::shared_ptr<Residency> residency;

  // Null where the table is not there.
  const TableVersion* find(uint32_t table) const;
  // The same for a handle. invalid_argument: it is of another database. not_found. closed: this
  // process is a forked child.
  Result<const TableVersion*> find(const Table& table) const;
};

// invalid_argument: the handle is empty, or its table is not of this database.
Status check_identity(const Table& table, const std::shared_ptr<const DatabaseIdentity>& database);

// What a snapshot holds.
struct SnapshotVersion {
  static const std::shared_ptr<const Version>& of(const Snapshot& snapshot) {
    return snapshot.version_;
  }
};

}  // namespace stride

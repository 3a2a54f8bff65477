// A segment of a version, as reads use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/catalog/segment_file.h"
#include "engine/device/device_slot.h"
#include "gpu/backend.h"
#include "storage/expiry.h"
#include "storage/key_filter.h"
#include "storage/manifest.h"
#include "storage/segment.h"
#include "storage/status.h"

namespace stride {

// A segment that is ready to be searched, with what a search needs at hand. Holds its file, so that
// this stays as long as it is read. Thread-safe.
class IndexedSegment {
 public:
  // file: null for a second object of the same file, which lives no longer than the first.
  IndexedSegment(std::shared_ptr<SegmentFile> file, std::shared_ptr<Segment> segment,
                 SegmentRecord record);
  // The same segment, of which these rows, too, count as not there: it shares the file and what
  // lies in memory. On a device it has a copy of its own, which hides them.
  IndexedSegment(const IndexedSegment& before, const RowIntervals& erased);
  // The same segment, of which rows that the check hides count as tombstones: it shares the file
  // and what lies in memory. It is never on a device.
  IndexedSegment(const IndexedSegment& before, const ExpiryCheck& check);

  const SegmentRecord& record() const { return record_; }
  Segment& segment() const { return *segment_; }
  // Precondition: it was given one.
  SegmentFile& file() const { return *file_; }
  uint64_t rows() const { return keys_.size; }
  Bytes first_key() const { return first_key_; }
  Bytes last_key() const { return last_key_; }
  // Or rows that may count as such.
  bool has_tombstones() const { return kinds_ != nullptr || may_expire(); }
  // Whether it is one of those that look at the time when a row ends.
  bool may_expire() const { return expiry_.is_there(); }
  // Rows that ranges have erased, and which no read finds. They were erased in all segments that
  // were there at the time, so that nothing older has a row of their keys, but what a newer
  // tombstone hides.
  const RowIntervals& erased() const { return record_.erased; }
  bool is_erased(uint64_t rank) const { return !erased().empty() && erased().contains(rank); }
  // As the manifest knows, tombstones included.
  uint64_t live_rows() const { return record_.rows - erased().rows(); }
  // About how many bytes of the file those take.
  uint64_t live_bytes() const;
  // Whether it is a segment of the manifest, and not one in memory of a memtable's rows.
  bool is_stored() const { return record_.segment != 0; }
  // not ok: it could not be opened, and prepare() fails so. It has no rows then, whatever its
  // record says.
  Status open_failure() const { return segment_->open_failure(); }
  // Whether the key cannot be among its keys. Costs no look at the file.
  bool is_outside(Bytes key) const {
    return readable_ && (compare(key, first_key_) < 0 || compare(key, last_key_) > 0);
  }

  // Checks the tree and the filter before their first use. Call before index() and after.
  Status prepare() const {
    return ready_.load(std::memory_order_acquire) ? Status() : prepare_once();
  }
  // Precondition: prepare() was ok.
  IndexView index() const {
    IndexView view{keys_, {tree_.data(), tree_.size()}, segment_->guard()};
    view.rows = &beside_keys_;
    view.filter = filter_.is_there() ? &filter_ : nullptr;
    return view;
  }
  // Before prepare() it may be asked for prefetches only.
  const KeyFilter& filter() const { return filter_; }
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

  // Prefetches and checks all keys, for reading them from one end to the other.
  Status ensure_keys() const;

  // Unchecked, for callers that know guard() to be null or have ensured the row.
  EntryKind kind(uint64_t rank) const {
    const EntryKind stored = kinds_ ? static_cast<EntryKind>(kinds_[rank]) : EntryKind::put;
    return may_expire() && stored == EntryKind::put && expiry_.hides(values_[rank])
               ? EntryKind::tombstone
               : stored;
  }
  // As they are stored. Null: all are puts.
  const uint8_t* kinds() const { return kinds_; }
  DeviceSlot& device_slot() { return device_slot_; }  // of Residents

 private:
  Status prepare_once() const;
  Status ensure_unchecked_rows(uint64_t first, uint64_t last) const;
  Status ensure_column(const PackedColumn& column, uint64_t first, uint64_t last) const;
  Status ensure_values(uint64_t first, uint64_t last) const;

  std::shared_ptr<SegmentFile> file_;  // outlives the segment, which may have it mapped
  std::shared_ptr<Segment> segment_;
  const SegmentRecord record_;
  PackedColumn keys_;
  ValueRows values_;
  PackedColumn beside_keys_;  // the values or, where they are shared, their numbers
  const uint8_t* kinds_;
  ExpiryCheck expiry_;
  Bytes tree_, first_key_, last_key_;
  KeyFilter filter_;
  bool readable_;
  mutable std::atomic<bool> ready_{false};
  mutable std::mutex prepare_mutex_;
  DeviceSlot device_slot_;
};

}  // namespace stride

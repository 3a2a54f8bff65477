// Which segments lie on a device, within the memory that it has.
//
//   Status s = residents.prefetch(device, segments, queries.size, /*insist=*/false, &copied);
//   if (auto copy = segment->device_slot().get()) search(*copy->index);
//
// A segment is copied to the device when that pays: at once where the device was asked for, else
// when the batches that were searched on the host would have taken as long as the copy. Where there
// is no room, the segments that were used least recently leave.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/catalog/indexed_segment.h"
#include "engine/catalog/segment_list.h"
#include "engine/monitoring/monitor.h"
#include "engine/options.h"
#include "gpu/backend.h"
#include "storage/status.h"

namespace stride {

// Whether it says that a device failed, and not that something does not fit there.
inline bool is_device_failure(const Status& status) {
  return status.code() == StatusCode::io_error || status.code() == StatusCode::unavailable;
}

// Thread-safe.
class Residents {
 public:
  // at_once: a segment need not earn its place before it is copied for the first time.
  // monitor: is told which come and go, and outlives this.
  Residents(ValuePlacement placement, bool at_once, Monitor& monitor)
      : placement_(placement), at_once_(at_once), monitor_(monitor) {}

  struct Copied {
    std::shared_ptr<IndexedSegment> segment;
    std::shared_ptr<ResidentIndex> index;
  };
  // Copies those of the segments to the device that have earned it, or, with `insist`, all. Without
  // `insist` a call that meets another one copies nothing and does not wait for it. Adds what it
  // has copied to `copied`. Fails where the device does, which is then given up; a segment that
  // does not fit, or cannot be read, fails nothing. Precondition: the segments are prepared.
  Status prefetch(const std::shared_ptr<Backend>& device, const SegmentList& segments,
                  uint64_t queries, bool insist, std::vector<Copied>* copied);
  // The device has failed: all segments leave it, and none comes any more.
  void give_up();

 private:
  // Whether it belongs there and is not. The device does not look at when rows end.
  bool lacks(IndexedSegment& segment) const;
  // Whether a segment's values belong on the device. Shared ones stay on the host.
  bool stores_values(const IndexedSegment& segment) const {
    return placement_ == ValuePlacement::device && !segment.values().shared();
  }
  // Reads what is going to be copied from the disk.
  Status prefetch_file(const IndexedSegment& segment) const;
  Result<std::shared_ptr<ResidentIndex>> copy_to(Backend& device, const SegmentList& segments,
                                                 IndexedSegment& segment, bool may_evict);
  // The segment that was used least recently leaves. False: there is none.
  bool evict_one(const SegmentList& but);
  void tell(EventKind kind, const IndexedSegment& segment, uint64_t bytes) noexcept;

  const ValuePlacement placement_;
  const bool at_once_;
  Monitor& monitor_;
  std::atomic<uint64_t> clock_{0};
  std::atomic<bool> given_up_{false};
  std::mutex mutex_;  // held while segments are copied; guards on_device_
  std::vector<std::weak_ptr<IndexedSegment>> on_device_;
};

}  // namespace stride

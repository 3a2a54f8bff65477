// Which segments lie on a device, and which batches go there.
//
//   Residency::Batch batch = residency.batch(segments, queries.size);
//   if (batch.all_on_device()) s = batch.device().tree_index().find_blocks(batch.indexes(),
//   queries, take); if (residency.failed(s)) ...  // the host does it
//
// A segment is brought to the device when that pays: at once where the device was asked for, else
// when the batches that were searched on the host would have taken as long as to bring it. Where
// there is no room, the segments that were used least recently leave. A device that fails is not
// used again, and the host does the rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/device/costs_file.h"
#include "engine/options.h"
#include "gpu/backend.h"
#include "storage/status.h"

namespace stride {

// Thread-safe.
class Residency {
 public:
  static constexpr uint64_t least_memory_limit = 256 << 20;
  // Fewer queries than this are never worth a call to a device.
  static constexpr uint64_t least_queries = 512;
  // Nor fewer rows for a sort and a build.
  static constexpr uint64_t least_rows = uint64_t{1} << 18;

  // Where the segments of a search are, newest first. Keeps them there as long as it lives.
  class Batch {
   public:
    // Whether any of them, and whether all (with their values), are on the device.
    bool any_on_device() const { return resident_ > 0; }
    bool all_on_device() const { return device_ && resident_ == indexes_.size(); }
    bool all_values_on_device() const { return device_ && with_values_ == indexes_.size(); }
    Backend& device() const { return *device_; }
    // With `resident` set where a segment is on the device.
    std::span<const IndexView> indexes() const { return indexes_; }
    // All go to the host.
    void leave_device() {
      for (IndexView& index : indexes_) index.resident = nullptr;
      resident_ = with_values_ = 0;
    }

   private:
    friend class Residency;
    std::shared_ptr<Backend> device_;
    std::vector<std::shared_ptr<const DeviceCopy>> pins_;
    std::vector<IndexView> indexes_;
    size_t resident_ = 0, with_values_ = 0;
  };

  // unavailable: a device is asked for and there is none. invalid_argument: a limit that is too
  // low.
  static Result<std::shared_ptr<Residency>> make(const Options& options);

  const std::shared_ptr<Backend>& host() const { return host_; }
  // Null where there is none, or it failed. Looks for it, the first time.
  std::shared_ptr<Backend> device();
  // The same, without looking for it.
  std::shared_ptr<Backend> device_if_known();
  std::string name();
  // By which trees are planned, of each backend that is named: at once, and of a device that is
  // looked for later.
  void set_costs(const BackendCosts& costs);
  // Measures those of the host, and of the device where there is one. Some tenths of a second each.
  Status measure_costs(BackendCosts* costs);

  // Precondition: the segments are prepared. queries: how many. insist: it has to be the device.
  Batch batch(const SegmentList& segments, uint64_t queries, bool insist = false);
  // Calls work(backend), which sorts so many rows or builds a tree over them: with the device where
  // that pays, and with the host where it does not or the device fails.
  template <class Work>
  Status run_bulk(uint64_t rows, const Work& work) {
    std::shared_ptr<Backend> device = rows < least_rows ? nullptr : device_for(rows);
    if (!device) return work(*host_);
    Status status = work(*device);
    return failed(status) ? work(*host_) : status;
  }
  // The device for a batch of so many queries in what is no segment. Null: the host does it.
  std::shared_ptr<Backend> device_for_batch(uint64_t queries) {
    return queries < least_queries ? nullptr : device_for(queries);
  }
  // Whether a device was asked for, and its use is not to be judged.
  bool insists() const { return kind_ == BackendKind::cuda; }
  // Call with what a device has returned. True: it is the device's failure, and the host should do
  // the work instead.
  bool failed(const Status& status);
  // Batches of at least so many queries go to the device where all segments are there; 0: not yet
  // known.
  uint64_t crossover() const { return crossover_.load(std::memory_order_relaxed); }

 private:
  Residency() = default;
  // device(), once all the work that was asked for makes it worth to bring one up.
  std::shared_ptr<Backend> device_for(uint64_t work);
  void bring(const std::shared_ptr<Backend>& device, const SegmentList& segments, uint64_t queries,
             bool insist);
  Result<std::shared_ptr<ResidentIndex>> copy_to(Backend& device, const SegmentList& segments,
                                                 IndexedSegment& segment, bool may_evict);
  // Whether a segment's values belong on the device. Shared ones stay on the host.
  bool places_values(const IndexedSegment& segment) const {
    return placement_ == ValuePlacement::device && !segment.values().shared();
  }
  bool lacks(IndexedSegment& segment) const;
  Status bring_file(const IndexedSegment& segment) const;
  bool evict_one(const SegmentList& but);
  void use_costs(Backend& backend);
  void calibrate(Backend& device, const IndexedSegment& segment, const ResidentIndex& resident);

  BackendKind kind_ = BackendKind::automatic;
  ValuePlacement placement_ = ValuePlacement::host;
  uint64_t memory_limit_ = 0;
  std::shared_ptr<Backend> host_;

  std::mutex look_mutex_;  // held while a device is brought up; guards looked_
  bool looked_ = false;
  std::mutex device_mutex_;  // guards device_ and costs_; never held for long
  BackendCosts costs_;
  std::shared_ptr<Backend> device_;
  std::atomic<bool> lost_{false};
  std::atomic<uint64_t> demand_{0};

  std::mutex bring_mutex_;  // held by the one that brings segments; guards what is not atomic
  std::vector<std::weak_ptr<IndexedSegment>> on_device_;
  std::atomic<uint64_t> clock_{0};
  std::atomic<uint64_t> crossover_{0};
  uint64_t calibrated_rows_ = 0;
};

}  // namespace stride

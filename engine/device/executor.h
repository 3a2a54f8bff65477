// Which backend runs a batch: the host's threads, or a device where there is one and it pays.
//
//   Executor::Batch batch = executor.batch(segments, queries.size);
//   if (batch.all_on_device()) s = batch.device().tree_index().find_blocks(batch.indexes(),
//   queries, take); if (executor.failed(s)) ...  // the host does it
//
// A device that fails is not used again, and the host does the rest; of several devices the others
// go on. Which segments lie on the device is Residents' concern (engine/device/residents.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/catalog/segment_list.h"
#include "engine/device/costs_file.h"
#include "engine/device/crossover.h"
#include "engine/device/residents.h"
#include "engine/monitoring/monitor.h"
#include "engine/options.h"
#include "gpu/backend.h"
#include "storage/status.h"

namespace stride {

// One of the uses that are counted, as long as it lives.
class CountedUse {
 public:
  explicit CountedUse(std::atomic<uint32_t>& uses) : uses_(uses), before_(uses++) {}
  ~CountedUse() { --uses_; }
  CountedUse(const CountedUse&) = delete;
  // How many there were already.
  uint32_t before() const { return before_; }

 private:
  std::atomic<uint32_t>& uses_;
  const uint32_t before_;
};

// Thread-safe.
class Executor {
 public:
  static constexpr uint64_t min_memory_limit = 256 << 20;
  static constexpr uint64_t min_queries = Crossover::min_queries;
  // Fewer rows than this are never sorted, or built into a tree, on a device.
  static constexpr uint64_t min_rows = uint64_t{1} << 18;

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
    // Sends all segments to the host.
    void leave_device() {
      for (IndexView& index : indexes_) index.resident = nullptr;
      resident_ = with_values_ = 0;
    }

   private:
    friend class Executor;
    std::shared_ptr<Backend> device_;
    std::vector<std::shared_ptr<const DeviceCopy>> pins_;
    std::vector<IndexView> indexes_;
    size_t resident_ = 0, with_values_ = 0;
  };

  // unavailable: a device is asked for and there is none. invalid_argument: a limit that is too
  // low, or devices that are not there.
  static Result<std::shared_ptr<Executor>> make(
      const Options& options, std::shared_ptr<Monitor> monitor = std::make_shared<Monitor>());

  const std::shared_ptr<Backend>& host() const { return host_; }
  // Null where there is none, or it failed. Looks for it, the first time.
  std::shared_ptr<Backend> device();
  // The same, without looking for it.
  std::shared_ptr<Backend> device_if_known();
  std::string name();
  // Sets the costs by which each named backend plans trees, also those of a device that is found
  // later.
  void set_costs(const BackendCosts& costs);
  // Measures the costs of the host, and of the device where there is one, in some tenths of a
  // second each.
  Status measure_costs(BackendCosts* costs);

  // How many batches of values are copied at this time: for CountedUse.
  std::atomic<uint32_t>& copies() { return copies_; }

  // Precondition: the segments are prepared. queries: how many. insist: it has to be the device.
  Batch batch(const SegmentList& segments, uint64_t queries, bool insist = false);
  // Calls work(backend), which sorts so many rows or builds a tree over them: with the device where
  // that pays, and with the host where it does not or the device fails.
  template <class Work>
  Status run_bulk(uint64_t rows, const Work& work) {
    std::shared_ptr<Backend> device = rows < min_rows ? nullptr : device_for(rows);
    if (!device) return work(*host_);
    Status status = work(*device);
    return failed(status) ? work(*host_) : status;
  }
  // The device for a batch of so many queries in what is no segment. Null: the host does it.
  std::shared_ptr<Backend> device_for_batch(uint64_t queries) {
    return queries < min_queries ? nullptr : device_for(queries);
  }
  // Whether a device was asked for, and its use is not to be judged.
  bool insists() const { return kind_ == BackendKind::cuda; }
  // Counts keys that a device has searched.
  void count_device_keys(uint64_t keys) noexcept {
    monitor_->operations().slot().add(Count::device_keys, keys);
    note_losses();
  }
  // Call with what a device has returned. True: it is the device's failure, and the host should do
  // the work instead.
  bool failed(const Status& status);
  // Batches of at least so many queries go to the device where all segments are there; 0: not yet
  // known.
  uint64_t crossover() const { return crossover_.queries(); }

 private:
  Executor(BackendKind kind, const Options& options, std::shared_ptr<Monitor> monitor)
      : kind_(kind),
        memory_limit_(options.gpu_memory_limit_bytes),
        numbers_(options.devices),
        monitor_(std::move(monitor)),
        residents_(options.value_placement, /*at_once=*/kind == BackendKind::cuda, *monitor_) {}
  Result<std::unique_ptr<Backend>> make_device() const;
  // Tells of those of several devices that have been lost since it was called last.
  void note_losses() noexcept;
  // device(), once all the work that was asked for makes it worth to bring one up.
  std::shared_ptr<Backend> device_for(uint64_t work);
  void prefetch(const std::shared_ptr<Backend>& device, const SegmentList& segments,
                uint64_t queries, bool insist);
  // Requires device_mutex_.
  void use_costs(Backend& backend);

  const BackendKind kind_;
  const uint64_t memory_limit_;
  const std::vector<int> numbers_;  // of the devices; none: all that help
  const std::shared_ptr<Monitor> monitor_;
  std::shared_ptr<Backend> host_;

  std::mutex look_mutex_;  // held while a device is brought up; guards looked_
  bool looked_ = false;
  std::mutex device_mutex_;  // guards device_ and costs_; never held for long
  BackendCosts costs_;
  std::shared_ptr<Backend> device_;
  std::atomic<bool> lost_{false};
  std::mutex losses_mutex_;  // guards told_
  std::vector<bool> told_;   // which of several devices are known to be lost
  std::atomic<uint64_t> losses_{0};
  std::atomic<uint64_t> demand_{0};
  std::atomic<uint32_t> copies_{0};

  Residents residents_;
  Crossover crossover_;
};

}  // namespace stride

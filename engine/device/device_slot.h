// Where a segment keeps its copy on a device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "gpu/backend.h"

namespace stride {

// A segment's copy on a device.
struct DeviceCopy {
  std::shared_ptr<Backend> device;  // outlives the index
  std::shared_ptr<ResidentIndex> index;
};

// What Residents (engine/device/residents.h) notes of a segment. Thread-safe.
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

}  // namespace stride

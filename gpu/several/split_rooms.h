// Memory of devices for the chunks of a batch that is split by range.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "gpu/backend.h"
#include "storage/status.h"

namespace stride {

inline constexpr uint64_t chunks_under_way = 3;  // of a device's share

// Memory of a device for what comes from elsewhere, or goes there.
class ChunkRoom {
 public:
  // What was there before is lost.
  Status make(Backend& device, uint64_t bytes) {
    if (memory_ && memory_->size() >= bytes) return {};
    auto made = device.allocate(bytes);
    if (made.ok()) memory_ = std::move(*made);
    return made.status();
  }
  std::byte* data() const { return memory_->data(); }

 private:
  std::unique_ptr<BackendMemory> memory_;
};

}  // namespace stride

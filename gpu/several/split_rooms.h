// The chunks of a batch that is split over the parts of something.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "gpu/several/device_set.h"
#include "gpu/several/room_cache.h"
#include "storage/status.h"

namespace stride {

inline constexpr uint64_t chunks_under_way = 3;  // of a device's share

// Calls run(chunk, rooms) for each chunk of a share, some at a time; those of a lane, which has
// rooms made by Rooms(parts), one after the other.
template <class Rooms, class Run>
Status run_chunks(DeviceSet& devices, uint64_t size, uint64_t chunk, size_t parts, const Run& run) {
  const uint64_t chunks = (size + chunk - 1) / chunk;
  std::atomic<uint64_t> next{0};
  return devices.run_each(std::min(chunks_under_way, chunks), [&](uint64_t) -> Status {
    Rooms rooms(parts);
    for (uint64_t i; (i = next++) < chunks;)
      STRIDE_TRY(run(Share{i * chunk, std::min(chunk, size - i * chunk)}, &rooms));
    return {};
  });
}

}  // namespace stride

// The chunks of a batch that is split over the parts of something.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gpu/several/device_set.h"
#include "gpu/several/room_cache.h"
#include "storage/status.h"

namespace stride {

inline constexpr uint64_t chunks_under_way = 3;  // of a device's share

// The bytes where the device has them: there already, or as a copy in the room.
inline Result<const std::byte*> bring(const DeviceSet& devices, size_t device,
                                      const std::byte* data, uint64_t bytes, ChunkRoom* room) {
  if (devices[device].is_on_device(data)) return data;
  STRIDE_TRY(room->make(devices.rooms(device), bytes));
  STRIDE_TRY(devices[device].copy(room->data(), data, bytes));
  return static_cast<const std::byte*>(room->data());
}

// What a chunk has: at least and at most so many rows, but for the first and last ones.
struct ChunkRows {
  uint64_t least, most;
};

// Cuts a share into chunks, which begin at multiples of 64. Where there are more than go on at a
// time, the first ones grow and the last ones shrink by equal steps: lanes that began with chunks
// of one size would go on in step, and all of them put rows together while the link has nothing to
// do.
inline std::vector<Share> cut_into_chunks(uint64_t size, const ChunkRows& rows) {
  constexpr uint64_t lanes = chunks_under_way, unit = 64;
  std::vector<uint64_t> steps;  // the size of each chunk, in steps
  if (size <= lanes * rows.most) {
    const uint64_t even = std::clamp((size + lanes - 1) / lanes, rows.least, rows.most);
    steps.assign((size + even - 1) / even, 1);
  } else {
    for (uint64_t step = 1; step <= lanes; ++step) steps.push_back(step);
    const uint64_t graded = (lanes + 1) * rows.most;  // of the first and the last ones
    if (size > graded)
      steps.insert(steps.end(), (size - graded + rows.most - 1) / rows.most, lanes);
    for (uint64_t step = lanes; step >= 1; --step) steps.push_back(step);
  }
  const uint64_t all_steps = std::accumulate(steps.begin(), steps.end(), uint64_t{0});
  std::vector<Share> chunks;
  uint64_t begin = 0, so_far = 0;
  for (uint64_t step : steps) {
    so_far += step;
    const uint64_t end = std::min(size, (size * so_far / all_steps + unit - 1) / unit * unit);
    if (end > begin) chunks.push_back({begin, end - begin});
    begin = end;
  }
  return chunks;
}

// Calls run(chunk, rooms) for each chunk of a share, some at a time; those of a lane, which has
// rooms made by Rooms(parts), one after the other.
template <class Rooms, class Run>
Status run_chunks(DeviceSet& devices, uint64_t size, const ChunkRows& rows, size_t parts,
                  const Run& run) {
  const std::vector<Share> chunks = cut_into_chunks(size, rows);
  std::atomic<uint64_t> next{0};
  return devices.run_each(std::min<uint64_t>(chunks_under_way, chunks.size()),
                          [&](uint64_t) -> Status {
                            Rooms rooms(parts);
                            for (uint64_t i; (i = next++) < chunks.size();)
                              STRIDE_TRY(run(chunks[i], &rooms));
                            return {};
                          });
}

}  // namespace stride

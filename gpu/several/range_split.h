// Keys in the memory of a device, put together by range there.
//
//   auto split = split_by_range(*device.cuda_device(), keys, {first_key_of_range_1, ...},
//                               SplitFor::ranks, memory);
//   for each range: search (*split)->keys(range) for (*split)->ranks(range), on any device
//   Status s = (*split)->put_ranks(first_ranks, out);   // out[i]: of keys[i]
//
// or, for SplitFor::rows, put what is found for keys(range)[j] at places(range)[j].
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/several/room_cache.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

class CudaDevice;

enum class SplitFor : uint8_t { ranks, rows };

// Belongs to the thread that has made it.
class RangeSplit {
 public:
  static constexpr size_t max_ranges = 16;
  static constexpr uint64_t max_keys = uint64_t{1} << 31;

  virtual ~RangeSplit() = default;

  // In memory of the device.
  virtual KeyColumn keys(size_t range) const = 0;
  // Room for an answer to each of keys(range), likewise. With put_ranks() for SplitFor::ranks
  // alone.
  virtual std::span<uint32_t> ranks(size_t range) = 0;
  // Writes the answers in the order of the keys that were given, to memory of the device, each with
  // first_ranks[range] added, but for Location::absent.
  virtual Status put_ranks(std::span<const uint32_t> first_ranks, uint32_t* out) = 0;
  // For SplitFor::rows alone. In memory of the device: which of the keys that were given each of
  // keys(range) is.
  virtual const uint32_t* places(size_t range) const = 0;
};

// keys: of one width, in memory that the device reads, at most RangeSplit::max_keys; they stay
// until the split goes. first_keys: of that width, ascending, of each range but the first; fewer
// than max_ranges. memory: of the device, which nothing else uses until the split goes.
// resource_exhausted: no room on the device.
Result<std::unique_ptr<RangeSplit>> split_by_range(CudaDevice& device, const KeyColumn& keys,
                                                   const std::vector<std::string>& first_keys,
                                                   SplitFor purpose, const RoomOfDevice& memory);

}  // namespace stride

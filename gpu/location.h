// Where a search has found a key, and where a device leaves what was found.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stride {

// Which index of those that were searched, and the key's rank there.
struct alignas(8) Location {
  uint32_t index;
  uint32_t rank;
  static constexpr uint32_t absent = 0xFFFFFFFF;  // as `index`
  constexpr bool found() const { return index != absent; }
};

// Where a batch leaves its answers in the memory of a device; queries.size = n.
struct DeviceValues {
  uint32_t* found = nullptr;    // n bits, in (n + 31) / 32 words
  uint64_t* offsets = nullptr;  // n + 1: where each value begins and ends
  std::byte* values = nullptr;
  uint64_t capacity = 0;  // of values: what lies beyond is counted but not written
};

}  // namespace stride

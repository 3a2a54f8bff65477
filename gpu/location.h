// Where a search has found a key.
#pragma once

#include <cstdint>

namespace stride {

// Which index of those that were searched, and the key's rank there.
struct alignas(8) Location {
  uint32_t index;
  uint32_t rank;
  static constexpr uint32_t absent = 0xFFFFFFFF;  // as `index`
  constexpr bool found() const { return index != absent; }
};

}  // namespace stride

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
  // Not 0: value i lies at i * width, and is all zeros where it is not there or has another width.
  // Then offsets, found and capacity are not looked at, and `there` has n bytes, of which byte i is
  // 1 where query i was found.
  uint32_t width = 0;
  uint8_t* there = nullptr;
  // Not null, with a width: in place of i it is places[i], for values and `there`.
  const uint32_t* places = nullptr;

  // Where values of one width lie from that of a query on; without places.
  DeviceValues from(uint64_t query) const {
    return {
        .values = values + query * width, .width = width, .there = there ? there + query : nullptr};
  }
};

// Where the rows of n locations are copied in the memory of a device: key and value of row i to
// i * their width, all zeros where there is none, or where it has another width. Width 0: they are
// not wanted, and at least one of the two is.
struct GatheredRows {
  std::byte* keys = nullptr;
  uint32_t key_width = 0;
  std::byte* values = nullptr;
  uint32_t value_width = 0;
  uint8_t* there = nullptr;  // n bytes, of which byte i is 1 where there is a row; null: unasked
  const uint32_t* places = nullptr;  // not null: in place of i it is places[i]
};

// A column of numbers or bytes in the memory of a device that keys are made of: cell i lies at
// data + i * stride.
struct DeviceKeyPart {
  enum class Kind : uint8_t {
    bytes,
    unsigned_number,
    signed_number,
    floating
  };  // numbers: little-endian
  const std::byte* data = nullptr;
  uint64_t stride = 0;
  uint32_t width = 0;  // in bytes; of numbers 1, 2, 4 or 8
  Kind kind = Kind::bytes;
};

}  // namespace stride

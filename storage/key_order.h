// Numbers as bytes that sort as the numbers do, and the way back: storage/key_format.h says how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "storage/schema.h"

namespace stride {

// Whether cells of a column are bytes that are written as they are where it is the key's last.
inline bool is_of_bytes(const Field& field) {
  return width_of(field.type) == 0 || field.type == FieldType::uuid;
}

template <size_t width>
using BitsOf = std::conditional_t<
    width == 1, uint8_t,
    std::conditional_t<width == 2, uint16_t, std::conditional_t<width == 4, uint32_t, uint64_t>>>;

template <class Bits>
Bits swap_bytes(Bits bits) {
  if constexpr (sizeof(Bits) == 1) return bits;
  if constexpr (sizeof(Bits) == 2) return __builtin_bswap16(bits);
  if constexpr (sizeof(Bits) == 4) return __builtin_bswap32(bits);
  if constexpr (sizeof(Bits) == 8) return __builtin_bswap64(bits);
}

// from: a number as it lies in memory. to: its bytes in a key, as many.
template <class T>
void order_number(const std::byte* from, std::byte* to) {
  using Bits = BitsOf<sizeof(T)>;
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  if constexpr (std::is_floating_point_v<T>) {
    bits = static_cast<Bits>(bits & sign ? ~bits : bits ^ sign);
  } else if constexpr (std::is_signed_v<T>) {
    bits = static_cast<Bits>(bits ^ sign);
  }
  bits = swap_bytes(bits);
  std::memcpy(to, &bits, sizeof bits);
}

// from: its bytes in a key. to: the number as it lies in memory.
template <class T>
void unorder_number(const std::byte* from, std::byte* to) {
  using Bits = BitsOf<sizeof(T)>;
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  bits = swap_bytes(bits);
  if constexpr (std::is_floating_point_v<T>) {
    bits = static_cast<Bits>(bits & sign ? bits ^ sign : ~bits);
  } else if constexpr (std::is_signed_v<T>) {
    bits = static_cast<Bits>(bits ^ sign);
  }
  std::memcpy(to, &bits, sizeof bits);
}

}  // namespace stride

// Addresses of up to 128 bits as numbers: the first bit is the number's highest, the rest is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/keys/key_bits.h"

namespace stride {

__extension__ using Wide = unsigned __int128;

template <class Number>
inline constexpr uint32_t number_bits = sizeof(Number) * 8;

STRIDE_HD inline uint32_t leading_zeros(Wide x) {  // x != 0
  auto high = static_cast<uint64_t>(x >> 64);
  return high ? leading_zeros(high) : 64 + leading_zeros(static_cast<uint64_t>(x));
}

// How many bits there are up to the last that is set.
STRIDE_HD inline uint32_t significant_bits(uint64_t x) {
#if defined(__CUDA_ARCH__)
  return x ? 65 - static_cast<uint32_t>(__ffsll(static_cast<long long>(x))) : 0;
#else
  return x ? 64 - static_cast<uint32_t>(__builtin_ctzll(x)) : 0;
#endif
}
STRIDE_HD inline uint32_t significant_bits(Wide x) {
  auto low = static_cast<uint64_t>(x);
  return low ? 64 + significant_bits(low) : significant_bits(static_cast<uint64_t>(x >> 64));
}

// Bits [depth, depth + count), count from 1 to 32, depth below number_bits.
STRIDE_HD inline uint32_t slot_of(uint64_t x, uint32_t depth, uint32_t count) {
  return static_cast<uint32_t>(x << depth >> (64 - count));
}
STRIDE_HD inline uint32_t slot_of(Wide x, uint32_t depth, uint32_t count) {
  auto high = static_cast<uint64_t>(x >> 64);
  return depth + count <= 64 ? slot_of(high, depth, count)
                             : slot_of(static_cast<uint64_t>((x << depth) >> 64), 0, count);
}

// Rows as numbers. top(i) is the first 64 bits of row i.
struct Addresses4 {
  using Number = uint64_t;
  const std::byte* data;
  uint64_t operator[](uint64_t i) const {
    uint32_t x;
    std::memcpy(&x, data + i * 4, 4);
    return uint64_t{__builtin_bswap32(x)} << 32;
  }
  uint64_t top(uint64_t i) const { return (*this)[i]; }
};
struct Addresses8 {
  using Number = uint64_t;
  const std::byte* data;
  uint64_t operator[](uint64_t i) const { return load_big_endian(data + i * 8); }
  uint64_t top(uint64_t i) const { return (*this)[i]; }
};
struct Addresses16 {
  using Number = Wide;
  const std::byte* data;
  STRIDE_HD Wide operator[](uint64_t i) const {
    return Wide{load_big_endian(data + i * 16)} << 64 | load_big_endian(data + i * 16 + 8);
  }
  uint64_t top(uint64_t i) const { return load_big_endian(data + i * 16); }
};
// Any other width up to that of the number; rows are `step` bytes apart.
template <class AnyNumber>
struct AddressesOf {
  using Number = AnyNumber;
  const std::byte* data;
  uint32_t width;
  uint64_t step;
  STRIDE_HD Number operator[](uint64_t i) const {
    alignas(8) std::byte bytes[sizeof(Number)] = {};
    memcpy(bytes, data + i * step, width);
    if constexpr (sizeof(Number) == 8) {
      return load_big_endian(bytes);
    } else {
      return Addresses16{bytes}[0];
    }
  }
  uint64_t top(uint64_t i) const {
    return static_cast<uint64_t>((*this)[i] >> (number_bits<Number> - 64));
  }
};

}  // namespace stride

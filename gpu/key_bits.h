// Keys as bit strings, for host and device code alike.
//
//   uint64_t top = slice8(key.data(), key.size(), 0);      // the first 8 bytes, big-endian
//   uint32_t slot = bits_at(key.data(), key.size(), 17, 8);  // bits 17..24
//
// A key is a string of bits, most significant first, that goes on with zeros past its end. So
// "a" and "a\0" are equal as bit strings: what tells such keys apart is left to whole-key
// comparisons.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "storage/column.h"

// Marks what device code calls too; nothing where the compiler is not CUDA's.
#if defined(__CUDACC__)
#define STRIDE_HD __host__ __device__
#else
#define STRIDE_HD
#endif

namespace stride {

static_assert(std::endian::native == std::endian::little, "stored integers are little-endian");

STRIDE_HD inline uint64_t byte_swap(uint64_t x) {
#if defined(__CUDA_ARCH__)
  return uint64_t{__byte_perm(static_cast<uint32_t>(x), 0, 0x0123)} << 32 |
         __byte_perm(static_cast<uint32_t>(x >> 32), 0, 0x0123);
#else
  return __builtin_bswap64(x);
#endif
}

STRIDE_HD inline uint32_t leading_zeros(uint64_t x) {  // x != 0
#if defined(__CUDA_ARCH__)
  return static_cast<uint32_t>(__clzll(static_cast<long long>(x)));
#else
  return static_cast<uint32_t>(__builtin_clzll(x));
#endif
}

STRIDE_HD inline uint32_t count_bits(uint32_t x) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint32_t>(__popc(x));
#else
  return static_cast<uint32_t>(__builtin_popcount(x));
#endif
}

STRIDE_HD inline uint64_t load_big_endian(const std::byte* p) {
  uint64_t x;
  memcpy(&x, p, 8);
  return byte_swap(x);
}

// 1 to 7 bytes as the first ones of 8, without a loop: loads that overlap.
STRIDE_HD inline uint64_t load_short(const std::byte* p, uint64_t bytes) {
  if (bytes >= 4) {
    uint32_t first, last;
    memcpy(&first, p, 4);
    memcpy(&last, p + bytes - 4, 4);
    return byte_swap(first | uint64_t{last} << 8 * (bytes - 4));
  }
  uint64_t middle = bytes / 2, last = bytes - 1;
  return static_cast<uint64_t>(p[0]) << 56 | static_cast<uint64_t>(p[middle]) << (56 - 8 * middle) |
         static_cast<uint64_t>(p[last]) << (56 - 8 * last);
}

// The 8 bytes from byte `at` of a key as a number, zeros past its end.
STRIDE_HD inline uint64_t slice8(const std::byte* key, uint64_t bytes, uint64_t at) {
  if (at + 8 <= bytes) return load_big_endian(key + at);
  if (at >= bytes) return 0;
  uint64_t left = bytes - at;
  if (bytes >= 8) return load_big_endian(key + bytes - 8) << 8 * (8 - left);
  return load_short(key + at, left);
}

// Bits [depth, depth + count) of a number of 64 bits that goes on with zeros. 1 <= count <= 32.
STRIDE_HD inline uint32_t bits_of(uint64_t number, uint32_t depth, uint32_t count) {
  return depth > 63 ? 0 : static_cast<uint32_t>(number << depth >> (64 - count));
}

STRIDE_HD inline uint32_t bits_at(const std::byte* key, uint64_t bytes, uint32_t depth,
                                  uint32_t count) {
  return bits_of(slice8(key, bytes, depth >> 3), depth & 7, count);
}

// How many leading bits two keys share, or `same_bits` where they are equal as bit strings.
inline constexpr uint32_t same_bits = 0xFFFFFFFF;

STRIDE_HD inline uint32_t shared_bits(uint64_t a, uint64_t b) {
  return a == b ? same_bits : leading_zeros(a ^ b);
}

STRIDE_HD inline uint32_t shared_bits(const std::byte* a, uint64_t a_bytes, const std::byte* b,
                                      uint64_t b_bytes) {
  uint64_t longer = a_bytes > b_bytes ? a_bytes : b_bytes;
  for (uint64_t at = 0; at < longer; at += 8) {
    uint64_t difference = slice8(a, a_bytes, at) ^ slice8(b, b_bytes, at);
    if (difference) return static_cast<uint32_t>(at * 8) + leading_zeros(difference);
  }
  return same_bits;
}

// A column of 8-byte keys, as numbers.
struct NumberKeys {
  const std::byte* data;
  static constexpr bool always_differ_in_bits = true;

  STRIDE_HD uint64_t operator[](uint64_t i) const { return load_big_endian(data + i * 8); }
  STRIDE_HD uint32_t bits(uint64_t i, uint32_t depth, uint32_t count) const {
    return bits_of((*this)[i], depth, count);
  }
  STRIDE_HD uint32_t shared(uint64_t i, uint64_t j) const {
    return shared_bits((*this)[i], (*this)[j]);
  }
};

// Any column.
struct ByteKeys {
  PackedColumn column;
  static constexpr bool always_differ_in_bits = false;

  STRIDE_HD uint32_t bits(uint64_t i, uint32_t depth, uint32_t count) const {
    Bytes key = column[i];
    return bits_at(key.data(), key.size(), depth, count);
  }
  STRIDE_HD uint32_t shared(uint64_t i, uint64_t j) const {
    Bytes a = column[i], b = column[j];
    return shared_bits(a.data(), a.size(), b.data(), b.size());
  }
};

}  // namespace stride

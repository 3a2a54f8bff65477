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
#include <type_traits>

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

// The 8 bytes at p, as stored. On a device p may be anywhere in an array that is aligned to 8 bytes
// and padded to whole words: the words that hold the bytes are read, and no other.
STRIDE_HD inline uint64_t load8(const std::byte* p) {
#if defined(__CUDA_ARCH__)
  auto address = reinterpret_cast<uintptr_t>(p);
  const auto* words = reinterpret_cast<const uint64_t*>(address & ~uintptr_t{7});
  uint32_t shift = static_cast<uint32_t>(address & 7) * 8;
  return shift ? words[0] >> shift | words[1] << (64 - shift) : words[0];
#else
  uint64_t x;
  memcpy(&x, p, 8);
  return x;
#endif
}

STRIDE_HD inline uint64_t load_big_endian(const std::byte* p) { return byte_swap(load8(p)); }

// 1 to 7 bytes as the first ones of 8, without a loop.
STRIDE_HD inline uint64_t load_short(const std::byte* p, uint64_t bytes) {
#if defined(__CUDA_ARCH__)
  auto address = reinterpret_cast<uintptr_t>(p);
  const auto* words = reinterpret_cast<const uint64_t*>(address & ~uintptr_t{7});
  uint32_t shift = static_cast<uint32_t>(address & 7) * 8,
           rest = 64 - 8 * static_cast<uint32_t>(bytes);
  uint64_t x = words[0] >> shift;
  if (shift > rest) x |= words[1] << (64 - shift);
  return byte_swap(x) >> rest << rest;
#else
  // Loads that overlap.
  if (bytes >= 4) {
    uint32_t first, last;
    memcpy(&first, p, 4);
    memcpy(&last, p + bytes - 4, 4);
    return byte_swap(first | uint64_t{last} << 8 * (bytes - 4));
  }
  uint64_t middle = bytes / 2, last = bytes - 1;
  return static_cast<uint64_t>(p[0]) << 56 | static_cast<uint64_t>(p[middle]) << (56 - 8 * middle) |
         static_cast<uint64_t>(p[last]) << (56 - 8 * last);
#endif
}

// The 8 bytes from byte `at` of a key as a number, zeros past its end.
STRIDE_HD inline uint64_t slice8(const std::byte* key, uint64_t bytes, uint64_t at) {
  if (at + 8 <= bytes) return load_big_endian(key + at);
  if (at >= bytes) return 0;
  uint64_t left = bytes - at;
#if !defined(__CUDA_ARCH__)
  if (bytes >= 8) return load_big_endian(key + bytes - 8) << 8 * (8 - left);
#endif
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

// As compare(), without a call where the first 8 bytes differ.
STRIDE_HD inline int compare_keys(Bytes a, Bytes b) {
#if defined(__CUDA_ARCH__)
  uint64_t shorter = a.size() < b.size() ? a.size() : b.size();
  for (uint64_t at = 0; at < shorter; at += 8) {
    uint64_t x = slice8(a.data(), a.size(), at), y = slice8(b.data(), b.size(), at);
    if (x != y) return x < y ? -1 : 1;
  }
  return a.size() < b.size() ? -1 : a.size() > b.size();
#else
  if (a.size() >= 8 && b.size() >= 8) {
    uint64_t x = load_big_endian(a.data()), y = load_big_endian(b.data());
    if (x != y) return x < y ? -1 : 1;
    a = a.subspan(8);
    b = b.subspan(8);
  }
  return compare(a, b);
#endif
}

STRIDE_HD inline bool equal_keys(Bytes a, Bytes b) {
#if defined(__CUDA_ARCH__)
  if (a.size() != b.size()) return false;
  auto aligned = reinterpret_cast<uintptr_t>(a.data()) | reinterpret_cast<uintptr_t>(b.data());
  if (((aligned | a.size()) & 15) == 0) {
    const auto* x = reinterpret_cast<const uint4*>(a.data());
    const auto* y = reinterpret_cast<const uint4*>(b.data());
    for (uint64_t i = 0; i < a.size() / 16; ++i) {
      uint4 u = x[i], v = y[i];
      if ((u.x ^ v.x) | (u.y ^ v.y) | (u.z ^ v.z) | (u.w ^ v.w)) return false;
    }
    return true;
  }
  return compare_keys(a, b) == 0;
#else
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
#endif
}

// Keys of 4 or 8 bytes, as numbers.
STRIDE_HD inline int compare_keys(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }
STRIDE_HD inline bool equal_keys(uint64_t a, uint64_t b) { return a == b; }

STRIDE_HD inline uint32_t shared_bits(Bytes a, Bytes b) {
  return shared_bits(a.data(), a.size(), b.data(), b.size());
}

// The place after all keys that begin with a prefix: the prefix, and then ones without end.
struct PrefixEnd {
  Bytes prefix;
};

STRIDE_HD inline int compare_keys(Bytes key, PrefixEnd end) {
  uint64_t most = key.size() < end.prefix.size() ? key.size() : end.prefix.size();
  int compared = compare_keys(key.first(most), end.prefix.first(most));
  return compared ? compared : -1;
}

STRIDE_HD inline uint32_t shared_bits(PrefixEnd end, Bytes key) {
  uint64_t most = key.size() < end.prefix.size() ? key.size() : end.prefix.size();
  uint32_t shared = shared_bits(end.prefix.data(), most, key.data(), most);
  if (shared != same_bits) return shared;
  // One of the two goes on: zeros past the key's end, ones past the prefix's.
  for (uint64_t at = most; at < end.prefix.size(); ++at) {
    auto byte = static_cast<uint64_t>(end.prefix[at]);
    if (byte) return static_cast<uint32_t>(at * 8) + leading_zeros(byte << 56);
  }
  for (uint64_t at = end.prefix.size(); at < key.size(); ++at) {
    uint64_t byte = static_cast<uint64_t>(key[at]) ^ 0xFF;
    if (byte) return static_cast<uint32_t>(at * 8) + leading_zeros(byte << 56);
  }
  return static_cast<uint32_t>(8 *
                               (key.size() > end.prefix.size() ? key.size() : end.prefix.size()));
}

// A column of keys of 4 or 8 bytes, as numbers: the key's bits are the top ones, zeros follow. On a
// device it is aligned to its width.
template <uint32_t width>
struct NumberKeys {
  static_assert(width == 4 || width == 8);
  const std::byte* data;
  static constexpr bool always_differ_in_bits = true;

  STRIDE_HD uint64_t operator[](uint64_t i) const {
    using Stored = std::conditional_t<width == 4, uint32_t, uint64_t>;
    Stored stored;
#if defined(__CUDA_ARCH__)
    stored = reinterpret_cast<const Stored*>(data)[i];
#else
    memcpy(&stored, data + i * width, width);
#endif
    return byte_swap(stored);
  }
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

  STRIDE_HD Bytes operator[](uint64_t i) const { return column[i]; }
  STRIDE_HD uint32_t bits(uint64_t i, uint32_t depth, uint32_t count) const {
    Bytes key = column[i];
    return bits_at(key.data(), key.size(), depth, count);
  }
  STRIDE_HD uint32_t shared(uint64_t i, uint64_t j) const {
    Bytes a = column[i], b = column[j];
    return shared_bits(a.data(), a.size(), b.data(), b.size());
  }
};

// Calls use(keys) with the type that suits the column.
template <class Use>
auto with_keys(const PackedColumn& column, const Use& use) {
  bool aligned = reinterpret_cast<uintptr_t>(column.data) % 8 == 0;
  if (column.fixed && column.width == 8 && aligned) return use(NumberKeys<8>{column.data});
  if (column.fixed && column.width == 4 && aligned) return use(NumberKeys<4>{column.data});
  return use(ByteKeys{column});
}

}  // namespace stride

// Numbers as keys. Keys are ordered as bytes, so the bytes of a number as it lies in memory do not
// sort as numbers do. These do:
//
//   std::vector<uint64_t> keys = u64_keys(numbers);               // or i64_keys, of signed numbers
//   t.put(table, Column::fixed(keys.data(), 8, keys.size()), values);
//   uint64_t first = u64_of_key(batch.keys[0]);                   // and back, of a scan's row
//
// A key has 8 bytes, the highest first; that of a signed number has its sign bit flipped, so that
// negative numbers come first. `stride load --key-type u64` and `i64`, and stride_int64_to_keys()
// of the C interface, make the same keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "storage/column.h"

namespace stride {

// The result's bytes in memory are the key.
inline uint64_t u64_key(uint64_t number) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(number >> (56 - 8 * i));
  uint64_t key;
  std::memcpy(&key, bytes, 8);
  return key;
}
inline uint64_t i64_key(int64_t number) {
  return u64_key(static_cast<uint64_t>(number) ^ uint64_t{1} << 63);
}

// And back. Precondition: key.size() is 8.
inline uint64_t u64_of_key(Bytes key) {
  uint64_t number = 0;
  for (int i = 0; i < 8; ++i) number = number << 8 | std::to_integer<uint64_t>(key[i]);
  return number;
}
inline int64_t i64_of_key(Bytes key) {
  return static_cast<int64_t>(u64_of_key(key) ^ uint64_t{1} << 63);
}

inline std::vector<uint64_t> u64_keys(std::span<const uint64_t> numbers) {
  std::vector<uint64_t> keys(numbers.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = u64_key(numbers[i]);
  return keys;
}
inline std::vector<uint64_t> i64_keys(std::span<const int64_t> numbers) {
  std::vector<uint64_t> keys(numbers.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i64_key(numbers[i]);
  return keys;
}

}  // namespace stride

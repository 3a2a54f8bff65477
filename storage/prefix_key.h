// Prefixes as keys: how a table of prefixes writes the first bits of an address as a key.
//
// A prefix of addresses that have `address_bits` bits is the address with all bits behind the
// prefix 0, and then its length in bits (big-endian; 1 byte where addresses have up to 255 bits,
// else 2). 10.0.0.0/8 is 0A 00 00 00 08. So keys ascend by address, and of prefixes that begin
// together the shorter one comes first: whatever a prefix covers follows it without a gap.
//
// Where addresses are byte strings of any length (`address_bits` is byte_strings) prefixes are
// whole bytes, and a prefix is its own key: the order is the same.
#pragma once

#include <cstdint>

#include "storage/column.h"

namespace stride {

inline constexpr uint32_t max_address_bits = 65535;
// In place of a number of address bits: addresses are byte strings of any length.
inline constexpr uint32_t byte_strings = 0xFFFFFFFF;

inline constexpr uint32_t address_bytes(uint32_t address_bits) { return (address_bits + 7) / 8; }
inline constexpr uint32_t prefix_length_bytes(uint32_t address_bits) {
  return address_bits < 256 ? 1 : 2;
}
// Every key has so many bytes; 0 for byte strings, whose keys have any length.
inline constexpr uint32_t prefix_key_width(uint32_t address_bits) {
  return address_bits == byte_strings
             ? 0
             : address_bytes(address_bits) + prefix_length_bytes(address_bits);
}

// The first address of a prefix; of byte strings the prefix. Precondition: the key has
// prefix_key_width(address_bits) bytes.
inline constexpr Bytes prefix_address(Bytes key, uint32_t address_bits) {
  return address_bits == byte_strings ? key : key.first(address_bytes(address_bits));
}

// In bits. Precondition: the key has prefix_key_width(address_bits) bytes.
inline constexpr uint32_t prefix_length(Bytes key, uint32_t address_bits) {
  if (address_bits == byte_strings) return static_cast<uint32_t>(key.size() * 8);
  uint32_t at = address_bytes(address_bits);
  auto byte = [&](uint32_t i) { return static_cast<uint32_t>(key[i]); };
  return prefix_length_bytes(address_bits) == 1 ? byte(at) : byte(at) << 8 | byte(at + 1);
}

// Whether all bits from `length` on are 0.
inline bool host_bits_are_clear(Bytes address, uint32_t length) {
  uint64_t at = length / 8;
  if (length % 8 && at < address.size()) {
    if (static_cast<uint32_t>(address[at]) & (0xFFu >> length % 8)) return false;
    ++at;
  }
  for (; at < address.size(); ++at) {
    if (address[at] != std::byte{0}) return false;
  }
  return true;
}

inline void clear_host_bits(std::byte* address, uint32_t bytes, uint32_t length) {
  uint32_t at = length / 8;
  if (length % 8) {
    address[at] &= ~std::byte(0xFF >> length % 8);
    ++at;
  }
  for (; at < bytes; ++at) address[at] = std::byte{0};
}

// Writes prefix_length_bytes(address_bits) bytes.
inline void put_prefix_length(std::byte* to, uint32_t length, uint32_t address_bits) {
  if (prefix_length_bytes(address_bits) == 2) *to++ = std::byte(length >> 8);
  *to = std::byte(length);
}

// Whether the bytes are a key of such a table.
inline bool is_prefix_key(Bytes key, uint32_t address_bits) {
  if (address_bits == byte_strings) return key.size() <= max_key_bytes;
  if (key.size() != prefix_key_width(address_bits)) return false;
  uint32_t length = prefix_length(key, address_bits);
  return length <= address_bits && host_bits_are_clear(prefix_address(key, address_bits), length);
}

}  // namespace stride

// Keys as text and as the bytes that a table orders.
//
//   type   text                       stored
//   bytes  any                        as it is
//   u64    18446744073709551615       8 bytes, big-endian
//   i64    -5                         8 bytes, big-endian, the sign bit flipped
//   hex    00ff                       the bytes that the digits mean
//   ip     10.0.0.1 or 2001:db8::1    4 or 16 bytes, as sent on a network
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/cli/output.h"
#include "storage/column.h"

namespace stride::cli {

enum class KeyType : uint8_t { bytes, u64, i64, hex, ip };

std::string_view name_of(KeyType type);
std::optional<KeyType> key_type_named(std::string_view name);
// Bytes of every key of the type; 0: they differ.
uint32_t width_of(KeyType type);

// Room that encode() needs at `to` for this text.
inline size_t encoded_bound(std::string_view text) { return text.size() + 16; }
// Writes the key and returns its bytes; negative: the text is no such key.
ptrdiff_t encode_key(KeyType type, std::string_view text, std::byte* to);
// The stored form of a u64, or of an i64 in two's complement.
inline void store_number(KeyType type, uint64_t number, std::byte* to) {
  number = __builtin_bswap64(type == KeyType::i64 ? number ^ uint64_t{1} << 63 : number);
  std::memcpy(to, &number, sizeof number);
}
// "'12x' is no number from 0 to 18446744073709551615"
std::string why_no_key(KeyType type, std::string_view text);

// The text of a stored key. What is not of the type (another width) is shown in hex digits, 0x
// before.
void decode_key(KeyType type, Bytes key, TextBuffer* out);

// Text in quotes for a message: what cannot be printed is escaped, and much is cut.
std::string quoted(std::string_view text);

}  // namespace stride::cli

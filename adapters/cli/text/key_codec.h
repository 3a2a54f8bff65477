// Keys as text and as the bytes that a table orders.
//
//   type   text                       stored
//   bytes  any                        as it is
//   u64    18446744073709551615       8 bytes, big-endian
//   i64    -5                         8 bytes, big-endian, the sign bit flipped
//   hex    00ff                       the bytes that the digits mean
//   ip     10.0.0.1 or 2001:db8::1    4 or 16 bytes, as sent on a network
//   prefix 10.0.0.0/8, 2001:db8::/32, a key of a prefix table (engine/prefixes.h)
//          0a/8; an address for all
//          its bits
//   columns  text/key_columns.h        storage/key_format.h
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/cli/output/output.h"
#include "adapters/cli/text/key_columns.h"
#include "storage/column.h"
#include "storage/prefix_key.h"
#include "storage/quoted.h"

namespace stride::cli {

// address: what prefixes of a prefix table are of; no table's keys. columns: of KeyForm::columns.
enum class KeyType : uint8_t { bytes, u64, i64, hex, ip, prefix, address, columns };

std::string_view name_of(KeyType type);
inline bool is_number(KeyType type) { return type == KeyType::u64 || type == KeyType::i64; }

// All that there is to know for reading and writing keys of a table.
struct KeyForm {
  KeyType type = KeyType::bytes;
  // Addresses of a prefix table have so many bits. With type prefix, 0 says that they are not known
  // yet, and keys are their text. With type bytes, keys are checked to be prefixes as such a table
  // stores them.
  uint32_t address_bits = 0;
  bool mask_host_bits = false;
  std::shared_ptr<const Schema> columns;  // its key columns; with type columns

  KeyForm() = default;
  KeyForm(KeyType t, uint32_t bits = 0, bool mask = false)  // NOLINT: implicit on purpose
      : type(t), address_bits(bits), mask_host_bits(mask) {}

  // How many columns of a file make a key.
  size_t parts() const { return columns ? columns->key().size() : 1; }
};
// Finds one of the forms that a table's keys can have: u64, prefix, or types with commas between.
std::optional<KeyForm> key_form_named(std::string_view name);
std::string name_of(const KeyForm& form);
// Bytes of every key of the form; 0: they differ.
uint32_t width_of(const KeyForm& form);

// Room that encode_key() needs at `to` for this text.
inline size_t encoded_bound(const KeyForm& form, std::string_view text) {
  if (form.columns) return encoded_key_bound(*form.columns, text.size());
  return text.size() + 16 + prefix_key_width(form.address_bits);
}
// Writes the key and returns its bytes; negative: the text is no such key.
ptrdiff_t encode_key(const KeyForm& form, std::string_view text, std::byte* to);
// The stored form of a u64, or of an i64 in two's complement.
inline void store_number(KeyType type, uint64_t number, std::byte* to) {
  number = __builtin_bswap64(type == KeyType::i64 ? number ^ uint64_t{1} << 63 : number);
  std::memcpy(to, &number, sizeof number);
}
// "'12x' is no number from 0 to 18446744073709551615"
std::string why_no_key(const KeyForm& form, std::string_view text);

// The text of a stored key. What is not of the form (another width) is shown in hex digits, 0x
// before.
void decode_key(const KeyForm& form, Bytes key, TextBuffer* out);

// 32 where the text can only be one of IPv4, 128 of IPv6; else 0.
uint32_t address_bits_told_by(std::string_view text);
// "32", "bytes": as --address-bits has it.
std::optional<uint32_t> address_bits_named(std::string_view name);
std::string name_of_address_bits(uint32_t address_bits);

}  // namespace stride::cli

// Prefixes of addresses, and what makes them: keys of a prefix table, addresses, and their text.
//
//   auto routes = db->open_or_create_table("routes", {.address_bits = 32});
//   PrefixKeys keys;                                   // reuse it: it keeps its memory
//   Status s = make_prefix_keys({addresses, lengths}, 32, HostBits::refuse, &keys);
//   if (s.ok()) s = transaction.put(*routes, keys.keys(), values);
//   ...
//   MatchResult hops;                                  // the longest prefix of each address
//   s = db->snapshot().match(*routes, addresses, &hops);
//
//   Result<std::string> key = parse_prefix("10.0.0.0/8", 32);
//   format_prefix(as_bytes(*key), 32);                 // "10.0.0.0/8"
//
// A key of a prefix table is the address with all bits behind the prefix 0, then the prefix's
// length in bits (storage/prefix_key.h). Keys ascend by address, a prefix before all that it
// covers. The first bit of an address is the highest one of its first byte. Where addresses are
// byte strings
// (`address_bits` is byte_strings), prefixes are whole bytes, and each is its own key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/result_buffer.h"
#include "engine/scan.h"
#include "storage/column.h"
#include "storage/export.h"
#include "storage/prefix_key.h"
#include "storage/status.h"

namespace stride {

// Row i is the first lengths[i] bits of address i. For byte strings the rows of `addresses` are the
// prefixes, and lengths is null.
struct PrefixColumn {
  KeyColumn addresses;
  const uint16_t* lengths = nullptr;
};

// What to do about an address that has bits set behind its prefix.
enum class HostBits : uint8_t { refuse, mask };

class PrefixKeys;
// invalid_argument, with the row: bits set behind a prefix (unless they are masked), a prefix that
// is longer than addresses, an address of another width.
STRIDE_API Status make_prefix_keys(const PrefixColumn& prefixes, uint32_t address_bits,
                                   HostBits host_bits, PrefixKeys* out);

// Keys of a prefix table. Owns them but for those of byte strings, which are the caller's rows.
class PrefixKeys {
 public:
  // Valid until the object is used again.
  KeyColumn keys() const { return keys_; }

 private:
  friend Status make_prefix_keys(const PrefixColumn& prefixes, uint32_t address_bits,
                                 HostBits host_bits, PrefixKeys* out);
  ResultBuffer<std::byte> bytes_;
  KeyColumn keys_;
};

// The key of a prefix that is written as
//   10.0.0.0/8, or 10.1.2.3 for all 32 bits     where addresses have 32 bits
//   2001:db8::/32, or ::1 for all 128 bits      where they have 128 bits
//   0ab/12, or all digits of an address         hexadecimal, for addresses of any number of bits;
//                                               digits that are left out are zeros
//   any text                                    for byte strings, whose bytes it is
// invalid_argument says what is wrong.
STRIDE_API Result<std::string> parse_prefix(std::string_view text, uint32_t address_bits,
                                            HostBits host_bits = HostBits::refuse);
// An address, written as above, without a length; hexadecimal with all its digits.
STRIDE_API Result<std::string> parse_address(std::string_view text, uint32_t address_bits);

// As parse_prefix() reads it: dotted for 32 bits, as in RFC 5952 for 128, hexadecimal for others.
// What is no key of such a table: its bytes in hexadecimal.
STRIDE_API std::string format_prefix(Bytes key, uint32_t address_bits);
// The same for an address, or for what is none.
STRIDE_API std::string format_address(Bytes address, uint32_t address_bits);

// The bounds of a scan over a prefix and all prefixes inside it: they follow one another.
// invalid_argument: the key is none of such a table.
STRIDE_API Result<ScanOptions> scan_inside(Bytes key, uint32_t address_bits);

}  // namespace stride

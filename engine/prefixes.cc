#include "engine/prefixes.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "storage/no_throw.h"
#include "storage/quoted.h"

namespace stride {
namespace {

constexpr uint32_t ipv4_bits = 32, ipv6_bits = 128;

Status in_row(uint64_t row, const std::string& what) {
  return Status::invalid("row " + std::to_string(row) + ": " + what);
}

std::string bits_of(uint32_t bits) { return std::to_string(bits) + (bits == 1 ? " bit" : " bits"); }

bool is_number_of_bits(uint32_t address_bits) {
  return (address_bits > 0 && address_bits <= max_address_bits) || address_bits == byte_strings;
}

Status check_bits(uint32_t address_bits) {
  if (is_number_of_bits(address_bits)) return {};
  return Status::invalid("addresses of " + bits_of(address_bits) + " are not possible")
      .with_remedy("give 1 to 65535 bits, or byte_strings");
}

std::string too_long(uint32_t length, uint32_t address_bits) {
  return "a prefix has " + bits_of(length) + ", but addresses have " + std::to_string(address_bits);
}

Status host_bits_are_set(const std::string& where, uint32_t length) {
  return Status::invalid(where + "bits behind the prefix's " + bits_of(length) + " are set")
      .with_remedy("clear them, or have them masked (HostBits::mask)");
}

// The keys of rows with addresses of `width` bytes; 0: of address_bytes(address_bits).
template <uint32_t width>
Status make_keys(const PrefixColumn& prefixes, uint32_t address_bits, HostBits host_bits,
                 std::byte* out) {
  const uint32_t bytes = width ? width : address_bytes(address_bits);
  const uint32_t key_width = prefix_key_width(address_bits);
  for (uint64_t i = 0; i < prefixes.addresses.size; ++i, out += key_width) {
    Bytes address = prefixes.addresses[i];
    uint32_t length = prefixes.lengths[i];
    if (address.size() != bytes)
      return in_row(i, "an address has " + std::to_string(address.size()) + " bytes, not " +
                           std::to_string(bytes));
    if (length > address_bits) return in_row(i, too_long(length, address_bits));
    std::memcpy(out, address.data(), bytes);
    clear_host_bits(out, bytes, length);
    if (host_bits == HostBits::refuse && std::memcmp(out, address.data(), bytes) != 0)
      return host_bits_are_set("row " + std::to_string(i) + ": ", length);
    put_prefix_length(out + bytes, length, address_bits);
  }
  return {};
}

Status check_strings(const KeyColumn& prefixes) {
  for (uint64_t i = 0; i < prefixes.size; ++i)
    if (uint64_t bytes = prefixes.begin(i + 1) - prefixes.begin(i); bytes > max_key_bytes)
      return in_row(i,
                    "a prefix has " + std::to_string(bytes) + " bytes; at most 65535 are possible");
  return {};
}

}  // namespace

Status make_prefix_keys(const PrefixColumn& prefixes, uint32_t address_bits, HostBits host_bits,
                        PrefixKeys* out) {
  out->keys_ = {};
  STRIDE_TRY(check_bits(address_bits));
  const KeyColumn& addresses = prefixes.addresses;
  if (address_bits == byte_strings) {
    if (prefixes.lengths)
      return Status::invalid("prefixes of byte strings are given with lengths")
          .with_remedy("give the prefixes themselves, and no lengths");
    STRIDE_TRY(check_strings(addresses));
    out->keys_ = addresses;
    return {};
  }
  if (!prefixes.lengths && addresses.size > 0)
    return Status::invalid("prefixes are given without their lengths");
  uint32_t width = prefix_key_width(address_bits);
  STRIDE_TRY(no_throw([&] {
    out->bytes_.reset(addresses.size * width);
    std::byte* keys = out->bytes_.data();
    switch (address_bytes(address_bits)) {
      case 4:
        return make_keys<4>(prefixes, address_bits, host_bits, keys);
      case 16:
        return make_keys<16>(prefixes, address_bits, host_bits, keys);
      default:
        return make_keys<0>(prefixes, address_bits, host_bits, keys);
    }
  }));
  out->keys_ = Column::fixed(out->bytes_.data(), width, addresses.size);
  return {};
}

namespace {

Status bad_text(std::string_view text, const std::string& why) {
  return Status::invalid(in_quotes(text) + ": " + why);
}

uint32_t hex_digits(uint32_t address_bits) { return (address_bits + 3) / 4; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Status parse_hex(std::string_view text, uint32_t address_bits, std::byte* address) {
  uint32_t max_digits = hex_digits(address_bits);
  if (text.size() > max_digits)
    return bad_text(text, std::to_string(text.size()) + " digits, but an address of " +
                              bits_of(address_bits) + " has " + std::to_string(max_digits));
  for (size_t i = 0; i < text.size(); ++i) {
    int digit = hex_value(text[i]);
    if (digit < 0) {
      const char* forms = address_bits == ipv4_bits   ? "neither a dotted IPv4 address nor "
                          : address_bits == ipv6_bits ? "neither an IPv6 address nor "
                                                      : "not ";
      return bad_text(text, std::string(forms) + "hexadecimal digits");
    }
    address[i / 2] |= std::byte(i % 2 ? digit : digit << 4);
  }
  return {};
}

// *all: every bit is given, as in the notations of the internet.
Status parse_bits(std::string_view text, uint32_t address_bits, std::string* address, bool* all) {
  address->assign(address_bytes(address_bits), '\0');
  if (text.empty()) return bad_text(text, "an address is missing");
  auto parse_inet = [&](int family, const char* name) {
    // inet_pton() reads up to a NUL.
    if (text.find('\0') == std::string_view::npos &&
        inet_pton(family, std::string(text).c_str(), address->data()) == 1)
      return Status();
    return bad_text(text, std::string("not an ") + name + " address");
  };
  *all = true;
  if (address_bits == ipv4_bits && text.find('.') != std::string_view::npos)
    return parse_inet(AF_INET, "IPv4");
  if (address_bits == ipv6_bits && text.find(':') != std::string_view::npos)
    return parse_inet(AF_INET6, "IPv6");
  // 10/8 is not to become 16.0.0.0/8.
  if (address_bits == ipv4_bits && text.size() != hex_digits(ipv4_bits))
    return bad_text(text, "not an IPv4 address")
        .with_remedy("write all four numbers, as in 10.0.0.0/8, or all 8 hexadecimal digits");
  *all = text.size() == hex_digits(address_bits);
  return parse_hex(text, address_bits, reinterpret_cast<std::byte*>(address->data()));
}

// A number without sign, spaces or leading zeros.
std::optional<uint32_t> parse_number(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  uint32_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Status check_string(std::string_view text) {
  if (text.size() <= max_key_bytes) return {};
  return bad_text(text,
                  std::to_string(text.size()) + " bytes; at most 65535 are possible for a prefix");
}

Status parse_key(std::string_view text, uint32_t address_bits, HostBits host_bits,
                 std::string* key) {
  STRIDE_TRY(check_bits(address_bits));
  if (address_bits == byte_strings) {
    STRIDE_TRY(check_string(text));
    *key = text;
    return {};
  }
  size_t slash = text.rfind('/');
  bool all;
  STRIDE_TRY(parse_bits(text.substr(0, slash), address_bits, key, &all));
  uint32_t length = address_bits;
  if (slash != std::string_view::npos) {
    auto number = parse_number(text.substr(slash + 1));
    if (!number)
      return bad_text(text, "what follows the '/' is no number of bits from 0 to " +
                                std::to_string(address_bits));
    if (*number > address_bits) return bad_text(text, too_long(*number, address_bits));
    length = *number;
  } else if (!all) {
    return bad_text(text, "no length follows")
        .with_remedy("write address/length, or all digits of the address");
  }
  auto* bytes = reinterpret_cast<std::byte*>(key->data());
  if (host_bits == HostBits::mask) {
    clear_host_bits(bytes, address_bytes(address_bits), length);
  } else if (!host_bits_are_clear(as_bytes(*key), length)) {
    return host_bits_are_set(in_quotes(text) + ": ", length);
  }
  std::byte encoded[2];
  put_prefix_length(encoded, length, address_bits);
  *key += as_text({encoded, prefix_length_bytes(address_bits)});
  return {};
}

Status parse_whole_address(std::string_view text, uint32_t address_bits, std::string* address) {
  STRIDE_TRY(check_bits(address_bits));
  if (address_bits == byte_strings) {
    *address = text;
    return {};
  }
  bool all;
  STRIDE_TRY(parse_bits(text, address_bits, address, &all));
  if (!all)
    return bad_text(text, std::to_string(text.size()) + " digits, but an address of " +
                              bits_of(address_bits) + " has " +
                              std::to_string(hex_digits(address_bits)));
  if (!host_bits_are_clear(as_bytes(*address), address_bits))
    return bad_text(text, "more than " + bits_of(address_bits) + " are set");
  return {};
}

std::string hex(Bytes bytes, size_t digits) {
  std::string text;
  for (size_t i = 0; i < digits; ++i) {
    auto byte = static_cast<unsigned>(bytes[i / 2]);
    text += "0123456789abcdef"[i % 2 ? byte & 15 : byte >> 4];
  }
  return text;
}

// The smallest address above all that begin with the first `length` bits; none: there is none.
std::optional<std::string> end_of(Bytes address, uint32_t length) {
  std::string end(as_text(address));
  while (length > 0) {
    uint32_t at = (length - 1) / 8;
    unsigned one = 0x80u >> (length - 1) % 8, byte = static_cast<unsigned char>(end[at]);
    if (!(byte & one)) {
      end[at] = static_cast<char>(byte | one);
      return end;
    }
    end[at] = static_cast<char>(byte & ~one);
    --length;
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> parse_prefix(std::string_view text, uint32_t address_bits, HostBits host_bits) {
  std::string key;
  STRIDE_TRY(no_throw([&] { return parse_key(text, address_bits, host_bits, &key); }));
  return key;
}

Result<std::string> parse_address(std::string_view text, uint32_t address_bits) {
  std::string address;
  STRIDE_TRY(no_throw([&] { return parse_whole_address(text, address_bits, &address); }));
  return address;
}

std::string format_address(Bytes address, uint32_t address_bits) {
  if (address_bits == byte_strings) return std::string(as_text(address));
  if (!is_number_of_bits(address_bits) || address.size() != address_bytes(address_bits))
    return hex(address, 2 * address.size());
  char text[INET6_ADDRSTRLEN];
  if (address_bits == ipv4_bits && inet_ntop(AF_INET, address.data(), text, sizeof text))
    return text;
  if (address_bits == ipv6_bits && inet_ntop(AF_INET6, address.data(), text, sizeof text))
    return text;
  return hex(address, hex_digits(address_bits));
}

std::string format_prefix(Bytes key, uint32_t address_bits) {
  if (address_bits == byte_strings) return std::string(as_text(key));
  if (!is_number_of_bits(address_bits) || !is_prefix_key(key, address_bits))
    return hex(key, 2 * key.size());
  return format_address(key.first(address_bytes(address_bits)), address_bits) + "/" +
         std::to_string(prefix_length(key, address_bits));
}

Result<ScanOptions> scan_inside(Bytes key, uint32_t address_bits) {
  STRIDE_TRY(check_bits(address_bits));
  if (!is_prefix_key(key, address_bits))
    return Status::invalid("these " + std::to_string(key.size()) +
                           " bytes are no prefix of addresses of " + bits_of(address_bits))
        .with_remedy("make the key with parse_prefix() or make_prefix_keys()");
  ScanOptions options;
  STRIDE_TRY(no_throw([&] {
    if (address_bits == byte_strings) {
      options.prefix = std::string(as_text(key));
      return Status();
    }
    options.from = std::string(as_text(key));
    // A key begins with its address, and so comes after it.
    options.to = end_of(key.first(address_bytes(address_bits)), prefix_length(key, address_bits));
    return Status();
  }));
  return options;
}

}  // namespace stride

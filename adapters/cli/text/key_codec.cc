#include "adapters/cli/text/key_codec.h"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <cstring>

#include "engine/prefixes.h"

namespace stride::cli {
namespace {

constexpr std::array<std::string_view, 8> names = {"bytes", "u64",    "i64",     "hex",
                                                   "ip",    "prefix", "address", "columns"};
constexpr uint32_t ipv4_bits = 32, ipv6_bits = 128;
constexpr uint64_t sign_bit = uint64_t{1} << 63;

uint64_t load_big_endian(const std::byte* from) {
  uint64_t number;
  std::memcpy(&number, from, 8);
  return __builtin_bswap64(number);
}

// Eight digits at once: pairs, then fours, then the whole, each step within one word.
bool eight_digits(const char* text, uint64_t* number) {
  uint64_t v;
  std::memcpy(&v, text, 8);
  uint64_t digits = v ^ 0x3030303030303030;
  if (((digits + 0x7676767676767676) | digits) & 0x8080808080808080) return false;
  digits = digits * 10 + (digits >> 8);
  constexpr uint64_t mask = 0x000000FF000000FF;
  *number = (((digits & mask) * (100 + (uint64_t{1000000} << 32))) +
             (((digits >> 16) & mask) * (1 + (uint64_t{10000} << 32)))) >>
            32;
  return true;
}

bool parse_digits(std::string_view text, uint64_t* number) {
  if (text.empty() || text.size() > 20) return false;
  uint64_t n = 0;
  size_t at = 0;
  for (uint64_t eight; text.size() - at >= 8; at += 8) {
    if (!eight_digits(text.data() + at, &eight)) return false;
    n = n * 100000000 + eight;  // of 16 digits at most, or the last four decide
  }
  for (; at < text.size(); ++at) {
    unsigned digit = static_cast<unsigned char>(text[at]) - unsigned{'0'};
    if (digit > 9) return false;
    if (at >= 19 && (n > ~uint64_t{0} / 10 || n * 10 > ~uint64_t{0} - digit)) return false;
    n = n * 10 + digit;
  }
  *number = n;
  return true;
}

ptrdiff_t encode_u64(std::string_view text, std::byte* to) {
  uint64_t number;
  if (!parse_digits(text, &number)) return -1;
  store_number(KeyType::u64, number, to);
  return 8;
}

ptrdiff_t encode_i64(std::string_view text, std::byte* to) {
  bool negative = !text.empty() && text[0] == '-';
  uint64_t size;
  if (!parse_digits(text.substr(negative), &size)) return -1;
  if (size > sign_bit - !negative) return -1;
  store_number(KeyType::i64, negative ? uint64_t{0} - size : size, to);
  return 8;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

ptrdiff_t encode_hex(std::string_view text, std::byte* to) {
  if (text.size() % 2 != 0) return -1;
  for (size_t i = 0; i < text.size(); i += 2) {
    int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return -1;
    to[i / 2] = static_cast<std::byte>(high << 4 | low);
  }
  return static_cast<ptrdiff_t>(text.size() / 2);
}

// As inet_pton() takes it: four numbers without leading zeros.
bool parse_ipv4(std::string_view text, std::byte* to) {
  size_t at = 0;
  for (int i = 0; i < 4; ++i) {
    if (i != 0 && (at == text.size() || text[at++] != '.')) return false;
    size_t begin = at;
    unsigned number = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      if (at - begin == 3) return false;
      number = number * 10 + static_cast<unsigned>(text[at] - '0');
    }
    if (at == begin || number > 255 || (at - begin > 1 && text[begin] == '0')) return false;
    to[i] = static_cast<std::byte>(number);
  }
  return at == text.size();
}

bool parse_ipv6(std::string_view text, std::byte* to) {
  char copy[INET6_ADDRSTRLEN + 1];
  if (text.size() >= sizeof copy || text.find('\0') != std::string_view::npos) return false;
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return inet_pton(AF_INET6, copy, to) == 1;
}

ptrdiff_t encode_ip(std::string_view text, std::byte* to) {
  if (parse_ipv4(text, to)) return 4;
  return parse_ipv6(text, to) ? 16 : -1;
}

uint32_t hex_digits(uint32_t address_bits) { return (address_bits + 3) / 4; }

// *all: every bit is given. What engine/prefixes.h reads, but without an allocation for each.
bool parse_bits(std::string_view text, uint32_t address_bits, std::byte* to, bool* all) {
  *all = true;
  if (address_bits == ipv4_bits && text.find('.') != std::string_view::npos)
    return parse_ipv4(text, to);
  if (address_bits == ipv6_bits && text.find(':') != std::string_view::npos)
    return parse_ipv6(text, to);
  if (address_bits == ipv4_bits && text.size() != hex_digits(ipv4_bits)) return false;
  *all = text.size() == hex_digits(address_bits);
  if (text.empty() || text.size() > hex_digits(address_bits)) return false;
  std::memset(to, 0, address_bytes(address_bits));
  for (size_t i = 0; i < text.size(); ++i) {
    int digit = hex_digit(text[i]);
    if (digit < 0) return false;
    to[i / 2] |= static_cast<std::byte>(i % 2 ? digit : digit << 4);
  }
  return true;
}

// Without sign, spaces and leading zeros.
bool parse_length(std::string_view text, uint32_t* length) {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return false;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *length);
  return error == std::errc() && end == text.data() + text.size();
}

ptrdiff_t encode_bytes(std::string_view text, std::byte* to) {
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  return static_cast<ptrdiff_t>(text.size());
}

// Whether keys are their text: of byte strings, and where it is not known what they are of.
bool is_text(uint32_t address_bits) { return address_bits == 0 || address_bits == byte_strings; }

ptrdiff_t encode_prefix(const KeyForm& form, std::string_view text, std::byte* to) {
  const uint32_t bits = form.address_bits, bytes = address_bytes(bits);
  size_t slash = text.rfind('/');
  bool all = false;
  uint32_t length = bits;
  if (!parse_bits(text.substr(0, slash), bits, to, &all)) return -1;
  if (slash != std::string_view::npos) {
    if (!parse_length(text.substr(slash + 1), &length) || length > bits) return -1;
  } else if (!all) {
    return -1;
  }
  if (form.mask_host_bits) {
    clear_host_bits(to, bytes, length);
  } else if (!host_bits_are_clear({to, bytes}, length)) {
    return -1;
  }
  put_prefix_length(to + bytes, length, bits);
  return prefix_key_width(bits);
}

ptrdiff_t encode_address(uint32_t bits, std::string_view text, std::byte* to) {
  bool all = false;
  if (!parse_bits(text, bits, to, &all) || !all) return -1;
  const uint32_t bytes = address_bytes(bits);
  return host_bits_are_clear({to, bytes}, bits) ? ptrdiff_t{bytes} : -1;
}

// The first of the digits.
void append_hex(Bytes bytes, size_t digits, TextBuffer* out) {
  static constexpr char text[] = "0123456789abcdef";
  char* to = out->room(digits);
  for (size_t i = 0; i < digits; ++i) {
    auto byte = static_cast<unsigned>(bytes[i / 2]);
    *to++ = text[i % 2 ? byte & 15 : byte >> 4];
  }
  out->grow(digits);
}

void append_hex(Bytes bytes, TextBuffer* out) { append_hex(bytes, 2 * bytes.size(), out); }

void append_ipv4(Bytes address, TextBuffer* out) {
  char* begin = out->room(INET_ADDRSTRLEN);
  char* to = begin;
  for (size_t i = 0; i < 4; ++i) {
    if (i != 0) *to++ = '.';
    to = std::to_chars(to, to + 3, static_cast<unsigned>(address[i])).ptr;
  }
  out->grow(static_cast<size_t>(to - begin));
}

bool append_ip(Bytes key, TextBuffer* out) {
  if (key.size() == 4) {
    append_ipv4(key, out);
    return true;
  }
  char text[INET6_ADDRSTRLEN];
  if (key.size() != 16 || !inet_ntop(AF_INET6, key.data(), text, sizeof text)) return false;
  out->append(std::string_view(text));
  return true;
}

// Precondition: the address has so many bits.
void append_address(Bytes address, uint32_t bits, TextBuffer* out) {
  if ((bits == ipv4_bits || bits == ipv6_bits) && append_ip(address, out)) return;
  append_hex(address, hex_digits(bits), out);
}

// False: the bytes are no key of the form.
bool append_prefix(const KeyForm& form, Bytes key, TextBuffer* out) {
  const uint32_t bits = form.address_bits;
  if (form.type == KeyType::address) {
    if (key.size() != address_bytes(bits)) return false;
    append_address(key, bits, out);
    return true;
  }
  if (!is_prefix_key(key, bits)) return false;
  append_address(key.first(address_bytes(bits)), bits, out);
  out->append('/');
  out->append_number(prefix_length(key, bits));
  return true;
}

// What cannot be printed is escaped.
std::string why_no_prefix(const KeyForm& form, std::string_view text) {
  const uint32_t bits = form.address_bits;
  const uint32_t told = address_bits_told_by(text);
  if (told != 0 && told != bits && (bits == ipv4_bits || bits == ipv6_bits)) {
    auto name = [](uint32_t of) { return of == ipv4_bits ? "IPv4" : "IPv6"; };
    return in_quotes(text) + " is " + name(told) + ", and the table is of " + name(bits) +
           " prefixes";
  }
  if (form.type == KeyType::address) {
    auto address = parse_address(text, bits);
    return address.ok() ? "not an address" : address.status().message();
  }
  auto key = parse_prefix(text, bits);
  std::string why = key.ok() ? "not a prefix" : key.status().message();
  auto masked = parse_prefix(text, bits, HostBits::mask);
  if (!masked.ok()) return why;
  return why + "; without them it is " + format_prefix(as_bytes(*masked), bits) +
         ", and load --mask-host-bits clears them";
}

}  // namespace

std::string_view name_of(KeyType type) { return names[static_cast<size_t>(type)]; }

std::optional<KeyForm> key_form_named(std::string_view name) {
  for (size_t i = 0; i < static_cast<size_t>(KeyType::address); ++i)
    if (names[i] == name) return static_cast<KeyType>(i);
  KeyForm form = KeyType::columns;
  form.columns = key_columns_named(name);
  if (!form.columns) return std::nullopt;
  return form;
}

std::string name_of(const KeyForm& form) {
  return form.columns ? types_of(*form.columns) : std::string(name_of(form.type));
}

uint32_t width_of(const KeyForm& form) {
  if (form.columns) return form.columns->key_width();
  if (is_number(form.type)) return 8;
  if (is_text(form.address_bits)) return 0;
  if (form.type == KeyType::address) return address_bytes(form.address_bits);
  return prefix_key_width(form.address_bits);
}

ptrdiff_t encode_key(const KeyForm& form, std::string_view text, std::byte* to) {
  switch (form.type) {
    case KeyType::u64:
      return encode_u64(text, to);
    case KeyType::i64:
      return encode_i64(text, to);
    case KeyType::hex:
      return encode_hex(text, to);
    case KeyType::ip:
      return encode_ip(text, to);
    case KeyType::prefix:
      if (is_text(form.address_bits)) break;
      return encode_prefix(form, text, to);
    case KeyType::address:
      if (is_text(form.address_bits)) break;
      return encode_address(form.address_bits, text, to);
    case KeyType::bytes:
      if (is_text(form.address_bits) || is_prefix_key(as_bytes(text), form.address_bits)) break;
      return -1;
    case KeyType::columns: {
      if (form.parts() == 1) return encode_key_parts(*form.columns, {&text, 1}, to);
      std::string memory;
      const auto parts = split_key(text, &memory);
      return parts.size() == form.parts() ? encode_key_parts(*form.columns, parts, to) : -1;
    }
  }
  return encode_bytes(text, to);
}

std::string why_no_key(const KeyForm& form, std::string_view text) {
  switch (form.type) {
    case KeyType::u64:
      return in_quotes(text) + " is no number from 0 to 18446744073709551615";
    case KeyType::i64:
      return in_quotes(text) + " is no number from -9223372036854775808 to 9223372036854775807";
    case KeyType::hex:
      return in_quotes(text) + " is no even number of hex digits";
    case KeyType::ip:
      return in_quotes(text) + " is no IPv4 or IPv6 address";
    case KeyType::prefix:
    case KeyType::address:
      return why_no_prefix(form, text);
    case KeyType::bytes:
      if (is_text(form.address_bits)) break;
      return in_quotes(text) + " is no prefix of " + std::to_string(form.address_bits) +
             " bits as a table stores it";
    case KeyType::columns: {
      if (form.parts() == 1) return why_no_key_parts(*form.columns, {&text, 1});
      std::string memory;
      return why_no_key_parts(*form.columns, split_key(text, &memory));
    }
  }
  return in_quotes(text) + " is no key";
}

void decode_key(const KeyForm& form, Bytes key, TextBuffer* out) {
  const KeyType type = form.type;
  const bool of_prefixes = type == KeyType::prefix || type == KeyType::address;
  if (type == KeyType::bytes || (of_prefixes && is_text(form.address_bits)))
    return out->append(as_text(key));
  if (type == KeyType::hex) return append_hex(key, out);
  if (type == KeyType::ip && append_ip(key, out)) return;
  if (of_prefixes && append_prefix(form, key, out)) return;
  if (form.columns && append_key_parts(*form.columns, key, ',', form.parts() > 1, out)) return;
  if (is_number(type) && key.size() == 8) {
    uint64_t number = load_big_endian(key.data());
    if (type == KeyType::i64) {
      number ^= sign_bit;
      if (number & sign_bit) {
        out->append('-');
        number = uint64_t{0} - number;
      }
    }
    return out->append_number(number);
  }
  out->append("0x");
  append_hex(key, out);
}

uint32_t address_bits_told_by(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return ipv6_bits;
  bool dotted = text.find('.') != std::string_view::npos &&
                text.find_first_not_of("0123456789./") == std::string_view::npos;
  return dotted ? ipv4_bits : 0;
}

std::optional<uint32_t> address_bits_named(std::string_view name) {
  if (name == "bytes") return byte_strings;
  uint32_t bits = 0;
  if (!parse_length(name, &bits) || bits == 0 || bits > max_address_bits) return std::nullopt;
  return bits;
}

std::string name_of_address_bits(uint32_t address_bits) {
  return address_bits == byte_strings ? "bytes" : std::to_string(address_bits);
}

}  // namespace stride::cli

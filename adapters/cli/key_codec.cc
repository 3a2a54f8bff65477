#include "adapters/cli/key_codec.h"

#include <arpa/inet.h>

#include <array>
#include <cstring>

namespace stride::cli {
namespace {

constexpr std::array<std::string_view, 5> names = {"bytes", "u64", "i64", "hex", "ip"};
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

ptrdiff_t encode_ip(std::string_view text, std::byte* to) {
  char copy[INET6_ADDRSTRLEN + 1];
  if (text.size() >= sizeof copy || std::memchr(text.data(), '\0', text.size())) return -1;
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  if (inet_pton(AF_INET, copy, to) == 1) return 4;
  return inet_pton(AF_INET6, copy, to) == 1 ? 16 : -1;
}

void append_hex(Bytes bytes, TextBuffer* out) {
  static constexpr char digits[] = "0123456789abcdef";
  char* to = out->room(2 * bytes.size());
  for (std::byte b : bytes) {
    *to++ = digits[static_cast<unsigned>(b) >> 4];
    *to++ = digits[static_cast<unsigned>(b) & 15];
  }
  out->grow(2 * bytes.size());
}

bool append_ip(Bytes key, TextBuffer* out) {
  char text[INET6_ADDRSTRLEN];
  if (key.size() != 4 && key.size() != 16) return false;
  if (!inet_ntop(key.size() == 4 ? AF_INET : AF_INET6, key.data(), text, sizeof text)) return false;
  out->append(std::string_view(text));
  return true;
}

}  // namespace

std::string_view name_of(KeyType type) { return names[static_cast<size_t>(type)]; }

std::optional<KeyType> key_type_named(std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<KeyType>(i);
  return std::nullopt;
}

uint32_t width_of(KeyType type) { return type == KeyType::u64 || type == KeyType::i64 ? 8 : 0; }

ptrdiff_t encode_key(KeyType type, std::string_view text, std::byte* to) {
  switch (type) {
    case KeyType::u64:
      return encode_u64(text, to);
    case KeyType::i64:
      return encode_i64(text, to);
    case KeyType::hex:
      return encode_hex(text, to);
    case KeyType::ip:
      return encode_ip(text, to);
    case KeyType::bytes:
      break;
  }
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  return static_cast<ptrdiff_t>(text.size());
}

std::string why_no_key(KeyType type, std::string_view text) {
  switch (type) {
    case KeyType::u64:
      return quoted(text) + " is no number from 0 to 18446744073709551615";
    case KeyType::i64:
      return quoted(text) + " is no number from -9223372036854775808 to 9223372036854775807";
    case KeyType::hex:
      return quoted(text) + " is no even number of hex digits";
    case KeyType::ip:
      return quoted(text) + " is no IPv4 or IPv6 address";
    case KeyType::bytes:
      break;
  }
  return quoted(text) + " is no key";
}

void decode_key(KeyType type, Bytes key, TextBuffer* out) {
  if (type == KeyType::bytes) return out->append(as_text(key));
  if (type == KeyType::hex) return append_hex(key, out);
  if (type == KeyType::ip && append_ip(key, out)) return;
  if (width_of(type) == 8 && key.size() == 8) {
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

std::string quoted(std::string_view text) {
  constexpr size_t most = 60;
  std::string result = "'";
  for (char c : text.substr(0, most)) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
      result += c;
    } else {
      static constexpr char digits[] = "0123456789abcdef";
      result += "\\x";
      result += digits[static_cast<unsigned char>(c) >> 4];
      result += digits[static_cast<unsigned char>(c) & 15];
    }
  }
  return result + (text.size() > most ? "...'" : "'");
}

}  // namespace stride::cli

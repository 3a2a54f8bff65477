// Whether bytes are text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace stride {

// Bytes of the character that begins here; 0 where it is none (RFC 3629: no overlong forms, no
// surrogates, nothing past U+10FFFF).
inline size_t utf8_bytes(const unsigned char* p, size_t left) {
  unsigned char c = p[0];
  if (c < 0x80) return 1;
  size_t n = c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
  if (n == 0 || left < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((p[i] & 0xC0) != 0x80) return 0;
  if (c == 0xE0 && p[1] < 0xA0) return 0;
  if (c == 0xED && p[1] > 0x9F) return 0;
  if (c == 0xF0 && p[1] < 0x90) return 0;
  if (c == 0xF4 && p[1] > 0x8F) return 0;
  return n;
}

inline bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  size_t left = text.size();
  while (left >= 8) {
    uint64_t eight;
    std::memcpy(&eight, p, 8);
    if (eight & 0x8080808080808080) break;
    p += 8;
    left -= 8;
  }
  while (left > 0) {
    size_t n = utf8_bytes(p, left);
    if (n == 0) return false;
    p += n;
    left -= n;
  }
  return true;
}

}  // namespace stride

// How text and keys of a user are shown in messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "storage/column.h"

namespace stride {

// What is longer is cut.
inline constexpr size_t max_quoted_bytes = 60;

inline void append_hex(std::byte byte, std::string* text) {
  constexpr char digits[] = "0123456789abcdef";
  *text += digits[static_cast<unsigned>(byte) >> 4];
  *text += digits[static_cast<unsigned>(byte) & 15];
}

// The text without control characters, which a terminal would obey: a tab becomes \x09.
inline std::string printable(std::string_view text) {
  std::string shown;
  for (char c : text) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) {
      shown += c;
    } else {
      shown += "\\x";
      append_hex(static_cast<std::byte>(c), &shown);
    }
  }
  return shown;
}

// Not called as std::quoted is, which the compiler would take for a std::string. "'link 7'"
inline std::string in_quotes(std::string_view text) {
  return "'" + printable(text.substr(0, max_quoted_bytes)) +
         (text.size() > max_quoted_bytes ? "...'" : "'");
}

// "'link 7'" where the key is ASCII text, else "0x0007": its bytes in hexadecimal.
inline std::string in_quotes(Bytes key) {
  Bytes shown = key.first(std::min(key.size(), max_quoted_bytes));
  bool is_text = std::all_of(shown.begin(), shown.end(), [](std::byte b) {
    return b >= std::byte{0x20} && b < std::byte{0x7F} && b != std::byte{'\''};
  });
  if (is_text) return in_quotes(as_text(key));
  std::string text = "0x";
  for (std::byte b : shown) append_hex(b, &text);
  return text + (shown.size() < key.size() ? "..." : "");
}

}  // namespace stride

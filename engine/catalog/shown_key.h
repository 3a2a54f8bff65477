// Keys in messages.
#pragma once

#include <algorithm>
#include <string>

#include "storage/column.h"

namespace stride {

// "'link 7'", or 0x and hexadecimal digits where it is no ASCII text; cut after 32 bytes.
inline std::string shown_key(Bytes key) {
  constexpr size_t most_bytes = 32;
  Bytes shown = key.first(std::min(key.size(), most_bytes));
  bool is_text = std::all_of(shown.begin(), shown.end(), [](std::byte b) {
    return b >= std::byte{0x20} && b < std::byte{0x7F} && b != std::byte{'\''};
  });
  std::string text = is_text ? "'" : "0x";
  for (std::byte b : shown) {
    auto byte = static_cast<unsigned>(b);
    if (is_text) {
      text += static_cast<char>(byte);
    } else {
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
  }
  return text + (shown.size() < key.size() ? "..." : "") + (is_text ? "'" : "");
}

}  // namespace stride

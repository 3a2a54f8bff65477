// Whole numbers as a person reads them.
#pragma once

#include <cstdint>
#include <string>

namespace stride {

// 1,000,000
inline std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

}  // namespace stride

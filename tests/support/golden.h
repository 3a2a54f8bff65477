// Annotated dumps of files:  "0010 | 03 00 00 00 | rows" a line; "00 * 12" is twelve zeros.
#pragma once

#include <cstdio>
#include <sstream>
#include <string>

#include "tests/support/catch.h"

namespace stride::test {

// The bytes of a dump. Checks that each line is where it says.
inline std::string parse_dump(const std::string& dump) {
  std::string bytes;
  std::istringstream lines(dump);
  for (std::string line; std::getline(lines, line);) {
    if (line.find('|') == std::string::npos) continue;
    size_t first = line.find('|'), second = line.find('|', first + 1);
    CHECK_MESSAGE(std::stoull(line.substr(0, first), nullptr, 16) == bytes.size(), line);
    std::istringstream words(line.substr(first + 1, second - first - 1));
    for (std::string word; words >> word;) {
      if (word == "*") {
        size_t count = 0;
        words >> count;
        bytes.append(count - 1, bytes.back());
      } else {
        bytes.push_back(static_cast<char>(std::stoi(word, nullptr, 16)));
      }
    }
  }
  return bytes;
}

// Compares byte by byte, and says where they part.
inline void expect_dump(const std::string& bytes, const std::string& dump) {
  std::string golden = parse_dump(dump);
  CHECK(bytes.size() == golden.size());
  for (size_t i = 0; i < bytes.size() && i < golden.size(); ++i) {
    auto at = [i](const std::string& s) { return static_cast<int>(static_cast<uint8_t>(s[i])); };
    REQUIRE_MESSAGE(at(bytes) == at(golden), "at offset 0x" << std::hex << i);
  }
}

}  // namespace stride::test

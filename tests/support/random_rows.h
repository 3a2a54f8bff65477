// Keys and values of a kind, at random.
#pragma once

#include <ostream>
#include <random>
#include <string>

namespace stride::test {

struct Shape {
  const char* name;
  uint32_t key_width;  // 0: any
  int alphabet;        // bytes that keys are made of; the first two are 0x00 and 0xFF
  int longest_key;
  int longest_value;
};

class RandomRows {
 public:
  RandomRows(const Shape& shape, std::mt19937_64& random) : shape_(shape), random_(random) {}

  std::string key() {
    size_t n = shape_.key_width ? shape_.key_width : random_() % (shape_.longest_key + 1);
    std::string k(n, '\0');
    for (char& c : k) {
      uint64_t r = random_() % shape_.alphabet;
      c = static_cast<char>(r == 0 ? 0x00 : r == 1 ? 0xFF : 'a' + r % 26);
    }
    return k;
  }
  std::string value() {
    std::string v(random_() % 5 ? random_() % (shape_.longest_value + 1) : 3, 'v');
    for (char& c : v) c = static_cast<char>(random_());
    return v;
  }

 private:
  Shape shape_;
  std::mt19937_64& random_;
};

}  // namespace stride::test

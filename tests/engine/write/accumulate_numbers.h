// The numbers that tables may have, and their bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "engine/database.h"
#include "tests/support/catch.h"

namespace stride::test {

template <class T>
std::string bytes_of(T number) {
  std::string b(sizeof number, '\0');
  std::memcpy(b.data(), &number, sizeof number);
  return b;
}
template <class T>
T number_from(std::string_view b) {
  T n;
  CHECK(b.size() == sizeof n);
  std::memcpy(&n, b.data(), sizeof n);
  return n;
}
template <class T>
T number_from(Bytes b) {
  return number_from<T>(as_text(b));
}
template <class T>
Column column_of(const std::vector<T>& numbers) {
  return Column::fixed(numbers.data(), sizeof(T), numbers.size());
}

// Calls test with a number of each type that a table may have.
template <class Test>
void for_each_type(const Test& test) {
  for (bool wrap : {false, true}) {
    test(int32_t{}, TableOptions{.numbers = NumberType::i32,
                                 .overflow = wrap ? Overflow::wrap : Overflow::error});
    test(int64_t{}, TableOptions{.numbers = NumberType::i64,
                                 .overflow = wrap ? Overflow::wrap : Overflow::error});
  }
  test(float{}, TableOptions{.numbers = NumberType::f32});
  test(double{}, TableOptions{.numbers = NumberType::f64});
}

inline std::string name_of(const TableOptions& options) {
  return std::string(to_string(options.numbers)) +
         (options.overflow == Overflow::wrap ? " wrap" : "");
}

}  // namespace stride::test

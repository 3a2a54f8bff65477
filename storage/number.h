// Types of numbers in columns: those of tables with numeric values, and of scatter_add.
#pragma once

#include <cstdint>
#include <string_view>

namespace stride {

// All little-endian. The values are stored in the manifest.
enum class NumberType : uint8_t {
  none = 0,  // bytes, not numbers
  i32 = 1,
  i64 = 2,
  f32 = 3,
  f64 = 4,
  f16 = 5,   // IEEE 754 binary16; as a source only
  bf16 = 6,  // the upper half of an f32; as a source only
};

constexpr uint32_t width_of(NumberType type) {  // in bytes
  switch (type) {
    case NumberType::none:
      return 0;
    case NumberType::i32:
    case NumberType::f32:
      return 4;
    case NumberType::i64:
    case NumberType::f64:
      return 8;
    case NumberType::f16:
    case NumberType::bf16:
      return 2;
  }
  return 0;
}

constexpr std::string_view to_string(NumberType type) {
  switch (type) {
    case NumberType::none:
      return "bytes";
    case NumberType::i32:
      return "i32";
    case NumberType::i64:
      return "i64";
    case NumberType::f32:
      return "f32";
    case NumberType::f64:
      return "f64";
    case NumberType::f16:
      return "f16";
    case NumberType::bf16:
      return "bf16";
  }
  return "?";
}

constexpr bool is_float(NumberType type) {
  return type == NumberType::f32 || type == NumberType::f64 || type == NumberType::f16 ||
         type == NumberType::bf16;
}

constexpr bool is_integer(NumberType type) {
  return type == NumberType::i32 || type == NumberType::i64;
}

}  // namespace stride

// Columns of numbers and of targets by their types, for loops over them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gpu/scatter_add.h"

namespace stride::benchmark {

template <class T>
struct PlainSource {
  using Sum = T;
  const T* data;
  T operator()(uint64_t i) const { return data[i]; }
};

// IEEE 754 binary16, exactly.
struct HalfSource {
  using Sum = float;
  const uint16_t* data;
  float operator()(uint64_t i) const {
    uint32_t bits = static_cast<uint32_t>(data[i] & 0x8000) << 16 |
                    static_cast<uint32_t>(data[i] & 0x7FFF) << 13;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x * 0x1p112f;  // the exponent's bias is 112 less; infinities and NaN do not come here
  }
};

struct BrainHalfSource {
  using Sum = float;
  const uint16_t* data;
  float operator()(uint64_t i) const {
    uint32_t bits = static_cast<uint32_t>(data[i]) << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
};

// Calls body(source): source(i) is a Sum, the type that it is added to.
template <class Body>
auto with_sources(const Numbers& numbers, const Body& body) {
  switch (numbers.type) {
    case NumberType::i32:
      return body(PlainSource<int32_t>{static_cast<const int32_t*>(numbers.data)});
    case NumberType::i64:
      return body(PlainSource<int64_t>{static_cast<const int64_t*>(numbers.data)});
    case NumberType::f64:
      return body(PlainSource<double>{static_cast<const double*>(numbers.data)});
    case NumberType::f16:
      return body(HalfSource{static_cast<const uint16_t*>(numbers.data)});
    case NumberType::bf16:
      return body(BrainHalfSource{static_cast<const uint16_t*>(numbers.data)});
    default:
      return body(PlainSource<float>{static_cast<const float*>(numbers.data)});
  }
}

// Calls body(targets): a pointer to uint32_t or uint64_t.
template <class Body>
auto with_targets(const Indexes& indexes, const Body& body) {
  if (indexes.width == 4) return body(static_cast<const uint32_t*>(indexes.data));
  return body(static_cast<const uint64_t*>(indexes.data));
}

// Integers wrap.
template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

}  // namespace stride::benchmark

// What host threads do with sources and with the cells of their targets.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "gpu/bulk_vector.h"
#include "gpu/scatter/scatter_arith.h"
#include "gpu/scatter_add.h"

namespace stride {

// Calls body with a pointer to the column's type: const uint32_t* or const uint64_t*.
template <class Body>
auto with_indexes(const Indexes& indexes, const Body& body) {
  if (indexes.width == 4) return body(static_cast<const uint32_t*>(indexes.data));
  return body(static_cast<const uint64_t*>(indexes.data));
}

template <class T>
struct Plain {
  static constexpr bool is_ones = false;
  const T* data;
  T operator()(uint64_t i) const { return data[i]; }
};
template <class T>
struct Ones {
  static constexpr bool is_ones = true;
  T operator()(uint64_t) const { return 1; }
};
template <class From>
struct Widened {
  static constexpr bool is_ones = false;
  const From* data;
  float operator()(uint64_t i) const { return to_float(data[i]); }
};

// Calls body with what reads source i as a number of T's type, and T.
template <class T, class Body>
auto with_sources_of(const Numbers& sources, void* into, const Body& body) {
  T* t = static_cast<T*>(into);
  if (!sources.data) return body(Ones<T>(), t);
  return body(Plain<T>{static_cast<const T*>(sources.data)}, t);
}
template <class Body>
auto with_numbers(const Numbers& sources, const MutableNumbers& into, const Body& body) {
  switch (into.type) {
    case NumberType::i32:
      return with_sources_of<int32_t>(sources, into.data, body);
    case NumberType::i64:
      return with_sources_of<int64_t>(sources, into.data, body);
    case NumberType::f64:
      return with_sources_of<double>(sources, into.data, body);
    default:
      break;
  }
  float* t = static_cast<float*>(into.data);
  if (sources.data && sources.type == NumberType::f16)
    return body(Widened<Half>{static_cast<const Half*>(sources.data)}, t);
  if (sources.data && sources.type == NumberType::bf16)
    return body(Widened<BrainHalf>{static_cast<const BrainHalf*>(sources.data)}, t);
  return with_sources_of<float>(sources, into.data, body);
}

// What is done with sources and the cells of their targets: put(cells, t, value(source)), or where
// it takes blocks, of up to block_sources, put_block(cells, count, source, target). `join` puts two
// values of one target together. A cell that is `neutral` is as if no source had come.
inline constexpr uint64_t block_sources = 512;

template <class T>
struct Add {
  using Number = T;
  static constexpr bool takes_blocks = false;
  static constexpr uint64_t cell_bytes = sizeof(T);
  // An addition that waits for the one before it, through memory, is slow.
  static constexpr bool has_slow_chains = std::is_floating_point_v<T>;
  static T neutral() { return 0; }
  static T value(T x) { return x; }
  static T join(T a, T b) { return wrapping_sum(a, b); }
  static void put(T* cells, uint64_t t, T x) { cells[t] = wrapping_sum(cells[t], x); }
  static void prefetch(const T* cells, uint64_t t) { __builtin_prefetch(cells + t, 1); }
};

template <class T>
struct Extreme {
  using Number = T;
  static constexpr bool takes_blocks = false;
  static constexpr uint64_t cell_bytes = sizeof(T);
  static constexpr bool has_slow_chains = false;
  bool is_min;
  T neutral() const {
    using Limits = std::numeric_limits<T>;
    // A NaN comes behind, or before, all numbers.
    if constexpr (std::is_floating_point_v<T>)
      return is_min ? Limits::quiet_NaN() : -Limits::quiet_NaN();
    else
      return is_min ? Limits::max() : Limits::min();
  }
  static T value(T x) { return x; }
  void put(T* cells, uint64_t t, T x) const {
    auto mine = total_order(x), there = total_order(cells[t]);
    if (x == x && (is_min ? mine < there : mine > there)) cells[t] = x;
  }
  static void prefetch(const T* cells, uint64_t t) { __builtin_prefetch(cells + t, 1); }
};

// Sums of cut numbers.
class QuantizedSums {
 public:
  QuantizedSums() = default;
  // cells: of as many numbers, in any state.
  explicit QuantizedSums(std::span<int64_t> cells) : high_(cells) {
    std::memset(high_.data(), 0, high_.size_bytes());
  }
  bool empty() const { return high_.empty(); }
  bool has_low() const { return !low_.empty(); }
  int64_t* high() { return high_.data(); }
  int64_t* low() {
    if (low_.empty()) {
      low_.resize(high_.size());
      std::memset(low_.data(), 0, low_.size() * sizeof(int64_t));
    }
    return low_.data();
  }
  // The sum, which is 0 afterwards.
  QuantizedNumber take(uint64_t t) {
    QuantizedNumber sum = {high_[t], 0};
    high_[t] = 0;
    if (!low_.empty()) std::swap(sum.low, low_[t]);
    return sum;
  }

 private:
  std::span<int64_t> high_;
  BulkVector<int64_t> low_;  // empty until there is a low part: many columns have none
};

// Makes reproducible sums. What is not finite counts as 0.
template <class T>
struct Quantized {
  using Number = T;
  static constexpr bool takes_blocks = true;
  static constexpr uint64_t cell_bytes = sizeof(int64_t);
  static constexpr bool has_slow_chains = true;
  SumScale scale;
  bool all_finite;
  bool is_short;  // parts are smaller than 2^51
  QuantizedNumber value(T x) const {
    if (!all_finite && !is_finite(x)) return {0, 0};
    return cut_number(scale, x);
  }
  static QuantizedNumber join(QuantizedNumber a, QuantizedNumber b) {
    return {a.high + b.high, a.low + b.low};
  }
  static void put(QuantizedSums& sums, uint64_t t, QuantizedNumber x) {
    sums.high()[t] += x.high;
    if (x.low != 0) sums.low()[t] += x.low;
  }
  static void prefetch(QuantizedSums& sums, uint64_t t) { __builtin_prefetch(sums.high() + t, 1); }
  // As cut_number(), several at once: a sum with 1.5 * 2^52 is rounded to a whole number, which its
  // last bits are.
  template <class Source, class Target>
  void put_block(QuantizedSums& sums, uint64_t count, const Source& source,
                 const Target& target) const {
    if (!all_finite || !is_short) {
      for (uint64_t k = 0; k < count; ++k) put(sums, target(k), value(source(k)));
      return;
    }
    constexpr double middle = 0x1.8p52;
    const double high_up = scale.high_up, low_up = scale.low_up;
    int64_t high[block_sources], low[block_sources], any_low = 0;
    for (uint64_t k = 0; k < count; ++k) {
      const double scaled = static_cast<double>(source(k)) * high_up, rounded = scaled + middle;
      const double rest = (scaled - (rounded - middle)) * low_up;
      high[k] = std::bit_cast<int64_t>(rounded) - std::bit_cast<int64_t>(middle);
      low[k] = std::bit_cast<int64_t>(rest + middle) - std::bit_cast<int64_t>(middle);
      any_low |= low[k];
    }
    int64_t* cells = sums.high();
    for (uint64_t k = 0; k < count; ++k) cells[target(k)] += high[k];
    if (any_low == 0) return;
    cells = sums.low();
    for (uint64_t k = 0; k < count; ++k) cells[target(k)] += low[k];
  }
  void fold(T* into, QuantizedNumber sum) const {
    if (sum.high != 0 || sum.low != 0 || !all_finite) *into = folded(scale, *into, sum);
  }
  // The first `count` sums, which are 0 afterwards.
  void fold_all(T* into, QuantizedSums& sums, uint64_t count) const {
    if (sums.has_low() || !all_finite) {
      for (uint64_t t = 0; t < count; ++t) fold(into + t, sums.take(t));
      return;
    }
    // Branch-free, because which cells are not zero can't be predicted.
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    int64_t* high = sums.high();
    for (uint64_t t = 0; t < count; ++t) {
      const auto after = static_cast<T>(static_cast<double>(into[t]) +
                                        static_cast<double>(high[t]) * scale.high_down);
      const Bits mask = Bits{0} - Bits{high[t] != 0};
      if (after != after) {
        fold(into + t, {high[t], 0});
      } else {
        into[t] = std::bit_cast<T>((std::bit_cast<Bits>(into[t]) & ~mask) |
                                   (std::bit_cast<Bits>(after) & mask));
      }
    }
    std::memset(high, 0, count * sizeof *high);
  }
};

}  // namespace stride

#include "benchmark/workloads/map/weights.h"

#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

namespace stride::benchmark {
namespace {

// Calls body(zero) with a 0 of the type, which is one of those that sums have.
template <class Body>
auto with_type(NumberType type, const Body& body) {
  switch (type) {
    case NumberType::i32:
      return body(int32_t{});
    case NumberType::i64:
      return body(int64_t{});
    case NumberType::f32:
      return body(float{});
    default:
      return body(double{});
  }
}

template <class T>
void add_up(std::span<const uint32_t> target_of_source, uint64_t seed, Weights* weights) {
  std::mt19937_64 random(seed + 1);
  T* numbers = reinterpret_cast<T*>(weights->numbers.data());
  for (uint64_t i = 0; i < target_of_source.size(); ++i) {
    int64_t whole = static_cast<int64_t>(random() % 2'000'001) - 1'000'000;
    if constexpr (std::is_integral_v<T>) {
      numbers[i] = static_cast<T>(whole / 1000);
      weights->wrapped[target_of_source[i]] += static_cast<uint64_t>(numbers[i]);
    } else {
      numbers[i] = static_cast<T>(whole) / 1'000'000;
      weights->sums[target_of_source[i]] += numbers[i];
      weights->absolute[target_of_source[i]] += std::abs(static_cast<double>(numbers[i]));
    }
    ++weights->counts[target_of_source[i]];
  }
}

template <class T>
uint64_t first_wrong(const Weights& weights, const T* into, uint64_t calls) {
  for (uint64_t t = 0; t < weights.sums.size(); ++t) {
    if constexpr (std::is_integral_v<T>) {
      if (into[t] != static_cast<T>(weights.wrapped[t] * calls)) return t;
    } else {
      auto times = static_cast<double>(calls);
      double max_error = static_cast<double>(weights.counts[t] + 2) * times * times *
                         weights.absolute[t] * std::numeric_limits<T>::epsilon();
      if (!(std::abs(static_cast<double>(into[t]) - times * weights.sums[t]) <= max_error))
        return t;
    }
  }
  return UINT64_MAX;
}

}  // namespace

Weights make_weights(NumberType type, std::span<const uint32_t> target_of_source, uint64_t targets,
                     uint64_t seed) {
  Weights weights;
  weights.type = type;
  weights.numbers.resize(target_of_source.size() * width_of(type));
  weights.sums.resize(targets);
  weights.absolute.resize(targets);
  weights.wrapped.resize(targets);
  weights.counts.resize(targets);
  with_type(type, [&](auto zero) { add_up<decltype(zero)>(target_of_source, seed, &weights); });
  return weights;
}

Status check_sums(const Weights& weights, const void* into, uint64_t calls,
                  const std::string& who) {
  uint64_t wrong = with_type(weights.type, [&](auto zero) {
    return first_wrong(weights, static_cast<const decltype(zero)*>(into), calls);
  });
  if (wrong == UINT64_MAX) return {};
  return Status(StatusCode::corruption, "wrong answer: target " + std::to_string(wrong) + " of " +
                                            who + ", " + std::string(to_string(weights.type)));
}

}  // namespace stride::benchmark

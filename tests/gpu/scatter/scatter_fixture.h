// What tests of scatter-add share: plain loops to compare with, columns, and every backend.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {

struct Side {
  std::string name;
  unsigned threads;
};

template <class T>
std::vector<std::byte> column_bytes(const std::vector<T>& column) {
  std::vector<std::byte> bytes(column.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), column.data(), bytes.size());
  return bytes;
}

template <class T>
Numbers numbers_of(const std::vector<T>& v) {
  return Numbers::of(std::span<const T>(v));
}
template <class T>
MutableNumbers numbers_of(std::vector<T>* v) {
  return MutableNumbers::of(std::span<T>(*v));
}

template <class T>
T wrapped(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

// The definition in gpu/scatter_add.h, in other words.
template <class T, class Index>
std::vector<T> reproducible(const std::vector<T>& s, const std::vector<Index>& r,
                            std::vector<T> t) {
  double largest = 0;
  for (T x : s)
    if (std::isfinite(x)) largest = std::max<double>(largest, std::abs(x));
  int exponent = -899, bits = 62 - static_cast<int>(std::bit_width(s.size()));
  if (largest > 0) {
    std::frexp(largest, &exponent);
    exponent = std::max(exponent, -899);
  }
  std::vector<std::pair<int64_t, int64_t>> sums(t.size());
  std::vector<T> others(t.size());
  for (size_t i = 0; i < s.size(); ++i) {
    if (r[i] >= t.size()) continue;
    double x = s[i];
    if (!std::isfinite(x)) {
      others[r[i]] += s[i];
      continue;
    }
    double scaled = std::ldexp(x, bits - exponent), high = std::nearbyint(scaled);
    sums[r[i]].first += static_cast<int64_t>(high);
    sums[r[i]].second += static_cast<int64_t>(std::nearbyint(std::ldexp(scaled - high, bits)));
  }
  for (size_t i = 0; i < t.size(); ++i) {
    auto [high, low] = sums[i];
    if (high != 0 || low != 0)
      t[i] = static_cast<T>(static_cast<double>(t[i]) +
                            (std::ldexp(static_cast<double>(high), exponent - bits) +
                             std::ldexp(static_cast<double>(low), exponent - 2 * bits)));
    if (others[i] != 0) t[i] += others[i];
  }
  return t;
}

// Equal bits, but for the payload of a NaN.
template <class T>
bool same(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
}

inline constexpr ScatterMethod methods[] = {ScatterMethod::automatic, ScatterMethod::direct,
                                            ScatterMethod::privatized, ScatterMethod::heavy_hitters,
                                            ScatterMethod::partition};

class ScatterTest {
 protected:
  const Side side_ = GENERATE(Side{"host", 1}, Side{"host_threads", 2}, Side{"cuda", 0});
  RunsWith name_{side_.name};

  ScatterTest() {
    if (under_thread_sanitizer && side_.threads == 1) SKIP("threads share nothing");
    if (side_.name != "cuda") {
      backend_ = Backend::host(side_.threads);
      return;
    }
    auto device = Backend::cuda({.host_threads = 2});
    if (!device.ok()) SKIP(device.status().to_string());
    backend_ = std::move(*device);
  }

  bool on_device() const { return backend_->has_device(); }

  // A column in the backend's memory, `skip` entries behind an aligned place.
  template <class T>
  T* place(const std::vector<T>& column, uint64_t skip) {
    auto memory = backend_->allocate((column.size() + skip) * sizeof(T) + 64);
    CHECK_OK(memory);
    T* at = reinterpret_cast<T*>((*memory)->data()) + skip;
    CHECK_OK(backend_->copy(at, column.data(), column.size() * sizeof(T)));
    placed_.push_back(std::move(*memory));
    return at;
  }
  template <class T>
  std::vector<T> fetch(const T* from, uint64_t n) {
    std::vector<T> column(n);
    CHECK_OK(backend_->copy(column.data(), from, n * sizeof(T)));
    return column;
  }

  // T after a scatter. here: the columns lie where the backend works.
  template <class S, class T, class Index>
  std::vector<T> scattered(NumberType type, const std::vector<S>& s, const std::vector<Index>& r,
                           std::vector<T> t, const ScatterOptions& options, bool here,
                           uint64_t skip, ScatterReport* report) {
    Numbers sources{type, s.data(), s.size()};
    Indexes targets = Indexes::of(r);
    MutableNumbers into = numbers_of(&t);
    if (here) {
      sources.data = place(s, skip);
      targets.data = place(r, skip);
      into.data = place(t, skip);
    }
    Status status = backend_->scatter().apply(sources, targets, into, options, report);
    CHECK_OK(status);
    if (here) t = fetch(static_cast<const T*>(into.data), t.size());
    placed_.clear();
    return t;
  }

  // Whether a method can do it here. Of a device with 160 KB of shared memory a block or more.
  bool is_known(ScatterMethod method, ScatterOperation operation, uint64_t n, uint64_t limit,
                uint32_t width) const {
    if (method == ScatterMethod::automatic || method == ScatterMethod::direct) return true;
    if (!on_device()) return method != ScatterMethod::heavy_hitters;
    if (operation != ScatterOperation::add) return false;
    if (method == ScatterMethod::privatized) return limit <= 9000;
    return method == ScatterMethod::heavy_hitters ? n >= 16384 : width == 4;
  }
  std::vector<ScatterMethod> known_methods(ScatterOperation operation, uint64_t n, uint64_t limit,
                                           uint32_t width) const {
    std::vector<ScatterMethod> known;
    for (ScatterMethod method : methods)
      if (is_known(method, operation, n, limit, width)) known.push_back(method);
    return known;
  }

  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<BackendMemory>> placed_;
};

template <class Index>
std::vector<Index> random_targets(std::mt19937_64& rng, uint64_t n, uint64_t limit, int kind) {
  std::vector<Index> r(n);
  for (Index& x : r) {
    switch (kind) {
      case 1:
        x = static_cast<Index>(limit / 2);
        break;  // one for all
      case 2:
        x = static_cast<Index>(rng() % 4 ? rng() % 3 % limit : rng() % limit);
        break;  // heavy hitters
      case 3:
        x = static_cast<Index>(rng() % (limit + limit / 4 + 1));
        break;  // out of range, too
      default:
        x = static_cast<Index>(rng() % limit);
    }
  }
  if (kind == 4) std::sort(r.begin(), r.end());
  return r;
}

}  // namespace stride::test

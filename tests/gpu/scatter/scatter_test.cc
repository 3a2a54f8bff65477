// Scatter-add against plain loops, on the host and on a device.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/scatter/route_plan.h"
#include "gpu/scatter/scatter_arith.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

struct Side {
  std::string name;
  unsigned threads;
};

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& column) {
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

constexpr ScatterMethod methods[] = {ScatterMethod::automatic, ScatterMethod::direct,
                                     ScatterMethod::copies, ScatterMethod::hot,
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
    if (!on_device()) return method != ScatterMethod::hot;
    if (operation != ScatterOperation::add) return false;
    if (method == ScatterMethod::copies) return limit <= 9000;
    return method == ScatterMethod::hot ? n >= 16384 : width == 4;
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
        break;  // hot
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

TEST_CASE_METHOD(ScatterTest, "ScatterTest.IntegersAreExact", "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  auto check = [&]<class T, class Index>(T, Index) {
    for (uint64_t n : {0, 1, 3, 4, 127, 128, 129, 1000, smaller_under_tsan(40000, 20000)}) {
      for (uint64_t limit : {1, 2, 37, 5000, 100000}) {
        for (int kind = 0; kind < 5; ++kind) {
          if (n != 1000 && kind != static_cast<int>(n % 5)) continue;
          auto r = random_targets<Index>(rng, n, limit, kind);
          std::vector<T> s(n), t(limit);
          for (T& x : s) x = static_cast<T>(rng() % 2 ? rng() : rng() % 100);
          for (T& x : t) x = static_cast<T>(rng());
          for (ScatterOperation operation :
               {ScatterOperation::add, ScatterOperation::min, ScatterOperation::max}) {
            std::vector<T> expected = t;
            ScatterReport left;
            for (uint64_t i = 0; i < n; ++i) {
              if (r[i] >= limit) {
                left.first_out_of_range = std::min(left.first_out_of_range, i);
                ++left.out_of_range;
                continue;
              }
              T& to = expected[r[i]];
              to = operation == ScatterOperation::add   ? wrapped(to, s[i])
                   : operation == ScatterOperation::min ? std::min(to, s[i])
                                                        : std::max(to, s[i]);
            }
            for (ScatterMethod method : known_methods(operation, n, limit, sizeof(Index))) {
              ScatterReport report;
              auto found = scattered(number_type_of<T>(), s, r, t,
                                     {.operation = operation, .method = method},
                                     n % 2 == 0 || n == 129, n % 3, &report);
              REQUIRE_MESSAGE(found == expected, n << " to " << limit << ", kind " << kind
                                                   << ", method " << static_cast<int>(method));
              REQUIRE(report.out_of_range == left.out_of_range);
              REQUIRE(report.first_out_of_range == left.first_out_of_range);
            }
          }
        }
      }
    }
  };
  check(int32_t(), uint32_t());
  check(int64_t(), uint64_t());
}

// Columns that are large enough for each method to be what it is elsewhere.
TEST_CASE_METHOD(ScatterTest, "ScatterTest.LargeColumns", "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  // There are so many that the backend looks at a sample of them.
  const uint64_t n = (uint64_t{1} << (on_device() ? 21 : 18)) + 77;
  for (uint64_t limit : {100, 9000, 300000}) {
    for (int kind = 0; kind < 5; ++kind) {
      auto r = random_targets<uint32_t>(rng, n, limit, kind);
      std::vector<int64_t> s(n), t(limit, -5);
      for (int64_t& x : s) x = static_cast<int64_t>(rng());
      std::vector<int64_t> expected = t;
      for (uint64_t i = 0; i < n; ++i)
        if (r[i] < limit) expected[r[i]] = wrapped(expected[r[i]], s[i]);
      std::vector<float> f(n), tf(limit, 0.5f);
      for (float& x : f) x = static_cast<float>(rng() % 1000) / 8;  // sums are exact
      std::vector<float> expected_floats = tf;
      std::vector<double> sums(tf.begin(), tf.end());
      for (uint64_t i = 0; i < n; ++i)
        if (r[i] < limit) sums[r[i]] += f[i];
      for (uint64_t i = 0; i < limit; ++i) expected_floats[i] = static_cast<float>(sums[i]);
      for (ScatterMethod method : known_methods(ScatterOperation::add, n, limit, 4)) {
        for (bool here : {true, false}) {
          if (!on_device() && here) continue;
          ScatterReport report;
          INFO(std::to_string(limit) + " targets, kind " + std::to_string(kind) + ", method " +
               std::to_string(static_cast<int>(method)));
          REQUIRE(scattered(NumberType::i64, s, r, t, {.method = method}, here, 0, &report) ==
                  expected);
          auto found =
              scattered(NumberType::f32, f, r, tf,
                        {.mode = ScatterMode::reproducible, .method = method}, here, 0, &report);
          REQUIRE(found == expected_floats);
          found = scattered(NumberType::f32, f, r, tf, {.method = method}, here, 0, &report);
          for (uint64_t i = 0; i < limit; ++i)
            REQUIRE_MESSAGE(std::abs(found[i] - expected_floats[i]) <= sums[i] * 1e-3, i);
        }
      }
    }
  }
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.ReproducibleSumsHaveTheBitsOfTheDefinition",
                 "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  auto check = [&]<class T>(T) {
    for (int round = 0; round < smaller_under_sanitizers(40, 20); ++round) {
      const uint64_t n = 1 + rng() % 20000, limit = 1 + rng() % (round % 2 ? 20 : 5000);
      auto r = random_targets<uint32_t>(rng, n, limit, static_cast<int>(rng() % 5));
      std::vector<T> s(n), t(limit);
      // From numbers of one size to such that have no bit in common.
      const int spread = static_cast<int>(rng() % 80), middle = static_cast<int>(rng() % 60) - 30;
      for (T& x : s) {
        x = static_cast<T>(std::ldexp(static_cast<double>(rng()) / 0x1p64 - 0.5,
                                      middle + static_cast<int>(rng() % (spread + 1))));
        if (round % 5 == 0 && rng() % 1000 == 0) x = std::numeric_limits<T>::infinity();
        if (round % 10 == 0 && rng() % 1000 == 0) x = -std::numeric_limits<T>::infinity();
        if (round % 7 == 0 && rng() % 1000 == 0) x = std::numeric_limits<T>::quiet_NaN();
        if (round % 4 == 0 && rng() % 10 == 0) x = std::numeric_limits<T>::denorm_min();
        if (rng() % 20 == 0) x = rng() % 2 ? T(0) : -T(0);
      }
      for (T& x : t) x = static_cast<T>(static_cast<double>(rng()) / 0x1p60);
      auto expected = reproducible(s, r, t);
      for (ScatterMethod method : known_methods(ScatterOperation::add, n, limit, 4)) {
        for (bool here : {true, false}) {
          ScatterReport report;
          auto found = scattered(number_type_of<T>(), s, r, t,
                                 {.mode = ScatterMode::reproducible, .method = method}, here,
                                 rng() % 4, &report);
          for (uint64_t i = 0; i < limit; ++i)
            REQUIRE_MESSAGE(same(found[i], expected[i]),
                            found[i] << " for " << expected[i] << ", round " << round << ", method "
                                     << static_cast<int>(method));
        }
      }
    }
  };
  check(float());
  check(double());
}

// Whatever the method, the place of the columns and the order of the sources: blocks then get
// others.
TEST_CASE_METHOD(ScatterTest, "ScatterTest.ReproducibleSumsHaveTheSameBitsOnEveryRun",
                 "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  const uint64_t n = on_device() ? 3000000 : 20000;
  for (uint64_t limit : {500, 70000}) {
    auto r = random_targets<uint32_t>(rng, n, limit, 2);
    std::vector<float> s(n), t(limit, 1);
    for (float& x : s)
      x = static_cast<float>(
          std::ldexp(static_cast<double>(rng()) / 0x1p64 - 0.5, -static_cast<int>(rng() % 40)));
    const auto expected = bytes_of(reproducible(s, r, t));
    const auto known = known_methods(ScatterOperation::add, n, limit, 4);
    for (uint64_t run = 0; run < 50; ++run) {
      const auto shift = static_cast<std::ptrdiff_t>(rng() % n);
      std::rotate(s.begin(), s.begin() + shift, s.end());
      std::rotate(r.begin(), r.begin() + shift, r.end());
      ScatterReport report;
      auto found =
          scattered(NumberType::f32, s, r, t,
                    {.mode = ScatterMode::reproducible, .method = known[run % known.size()]},
                    run / known.size() % 2 == 0, rng() % 4, &report);
      REQUIRE_MESSAGE(bytes_of(found) == expected, "run " << run << ", " << limit << " targets");
    }
  }
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.ReproducibleSumsOfExtremes", "[ScatterTest]") {
  auto check = [&]<class T>(T) {
    constexpr T most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::denorm_min();
    for (const std::vector<T>& s : {std::vector<T>{most, -most, most},
                                    {least, least, -least},
                                    {most, least, 1},
                                    {0, -0.0, 0},
                                    {most, most, most},
                                    {std::numeric_limits<T>::infinity(), 1, -most}}) {
      std::vector<uint32_t> r = {0, 0, 1};
      ScatterReport report;
      std::vector<T> t = {1, -0.0, 3};
      auto expected = reproducible(s, r, t);
      auto found = scattered(number_type_of<T>(), s, r, t, {.mode = ScatterMode::reproducible},
                             true, 0, &report);
      for (size_t i = 0; i < t.size(); ++i) CHECK_MESSAGE(same(found[i], expected[i]), found[i]);
    }
  };
  check(float());
  check(double());
}

// Within the documented bound of the exact sums.
TEST_CASE_METHOD(ScatterTest, "ScatterTest.FloatsAreAsNearAsIsPromised", "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  const uint64_t n = 300000, limit = 1000;
  auto r = random_targets<uint32_t>(rng, n, limit, 2);
  std::vector<float> s(n);
  for (float& x : s) x = static_cast<float>(static_cast<double>(rng()) / 0x1p64 - 0.25);
  std::vector<long double> sums(limit), sizes(limit);
  std::vector<uint64_t> counts(limit);
  for (uint64_t i = 0; i < n; ++i) {
    sums[r[i]] += s[i];
    sizes[r[i]] += std::abs(s[i]);
    ++counts[r[i]];
  }
  const double cut = std::ldexp(1.0, -2 * (62 - static_cast<int>(std::bit_width(n))));
  for (ScatterMode mode : {ScatterMode::fast, ScatterMode::reproducible}) {
    ScatterReport report;
    auto found = scattered(NumberType::f32, s, r, std::vector<float>(limit), {.mode = mode}, true,
                           0, &report);
    for (uint64_t i = 0; i < limit; ++i) {
      long double off = std::abs(found[i] - sums[i]);
      if (mode == ScatterMode::fast)
        REQUIRE(off <= sizes[i] * static_cast<long double>(counts[i]) * 0x1p-24);
      else
        REQUIRE(off <=
                static_cast<long double>(counts[i]) * cut + std::abs(sums[i]) * 0x1.0001p-24);
    }
  }
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.MinAndMaxOfFloats", "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  auto check = [&]<class T>(T) {
    const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    const std::vector<T> some = {0, -T(0), 1, -1, inf, -inf, nan, std::numeric_limits<T>::min(),
                                 -3};
    for (bool is_min : {true, false}) {
      const uint64_t n = 5000, limit = 700;
      auto r = random_targets<uint64_t>(rng, n, limit, 0);
      std::vector<T> s(n), t(limit);
      for (T& x : s) x = rng() % 2 ? some[rng() % some.size()] : static_cast<T>(rng() % 100) - 50;
      for (T& x : t) x = rng() % 2 ? T(7) : rng() % 2 ? -T(0) : T(0);
      std::vector<T> expected = t;
      auto less = [](T a, T b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); };
      for (uint64_t i = 0; i < n; ++i) {
        T& to = expected[r[i]];
        if (!std::isnan(s[i]) && (is_min ? less(s[i], to) : less(to, s[i]))) to = s[i];
      }
      ScatterReport report;
      auto found = scattered(number_type_of<T>(), s, r, t,
                             {.operation = is_min ? ScatterOperation::min : ScatterOperation::max},
                             true, 1, &report);
      REQUIRE(bytes_of(found) == bytes_of(expected));
    }
  };
  check(float());
  check(double());
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.HalvesAreWidenedExactly", "[ScatterTest]") {
  std::vector<uint16_t> halves(1 << 16);
  std::iota(halves.begin(), halves.end(), uint16_t{0});
  std::vector<uint32_t> own(halves.size());
  std::iota(own.begin(), own.end(), 0u);
  for (NumberType type : {NumberType::f16, NumberType::bf16}) {
    // Which keeps subnormal numbers, as fast additions on a device do not, and leaves out NaN.
    ScatterReport report;
    auto found = scattered(type, halves, own, std::vector<float>(halves.size(), -INFINITY),
                           {.operation = ScatterOperation::max}, true, 0, &report);
    if (!on_device()) {
      auto together =
          scattered(type, halves, own, std::vector<float>(halves.size(), -INFINITY),
                    {.operation = ScatterOperation::max, .method = ScatterMethod::partition}, true,
                    0, &report);
      REQUIRE(bytes_of(together) == bytes_of(found));
    }
    for (uint32_t bits = 0; bits < halves.size(); ++bits) {
      const int sign = bits >> 15 ? -1 : 1, exponent_bits = type == NumberType::f16 ? 5 : 8;
      const int mantissa_bits = 15 - exponent_bits;
      const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
      const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
      const int bias = (1 << (exponent_bits - 1)) - 1;
      double x = exponent ? std::ldexp(1 + std::ldexp(mantissa, -mantissa_bits), exponent - bias)
                          : std::ldexp(mantissa, 1 - bias - mantissa_bits);
      if (exponent == (1 << exponent_bits) - 1) x = mantissa ? -sign * INFINITY : INFINITY;
      REQUIRE_MESSAGE(found[bits] == static_cast<float>(sign * x), bits);
    }
  }
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.OnesCount", "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  auto r = random_targets<uint32_t>(rng, 10000, 50, 0);
  std::vector<int64_t> counts(50);
  std::vector<float> floats(50);
  for (uint32_t x : r) ++counts[x];
  for (ScatterMethod method : known_methods(ScatterOperation::add, r.size(), 50, 4)) {
    std::vector<int64_t> found(50);
    REQUIRE_OK(backend_->scatter().apply(Numbers::ones(NumberType::i64, r.size()), Indexes::of(r),
                                         numbers_of(&found), {.method = method}));
    CHECK(found == counts);
  }
  REQUIRE_OK(backend_->scatter().apply(Numbers::ones(NumberType::f32, r.size()), Indexes::of(r),
                                       numbers_of(&floats), {.mode = ScatterMode::reproducible}));
  CHECK(floats == std::vector<float>(counts.begin(), counts.end()));
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.WhatIsOutOfRangeIsRefusedWhereThatIsAsked",
                 "[ScatterTest]") {
  for (bool here : {true, false}) {
    std::vector<uint64_t> r(300000, 3);
    std::vector<double> s(r.size(), 1.0), t = {1, 2, 3, 4};
    r[77777] = 4;
    r[99999] = UINT64_MAX;
    std::vector<double> before = t;
    Numbers sources = numbers_of(s);
    Indexes targets = Indexes::of(r);
    MutableNumbers into = numbers_of(&t);
    if (here) {
      sources.data = place(s, 0);
      targets.data = place(r, 0);
      into.data = place(t, 0);
    }
    ScatterReport report;
    Status status = backend_->scatter().apply(sources, targets, into,
                                              {.out_of_range = OutOfRange::error}, &report);
    CHECK(status.code() == StatusCode::invalid_argument);
    CHECK_MESSAGE(status.to_string().find("the target of source 77777 is 4, and T has 4 numbers (2 "
                                          "sources are out of range)") != std::string::npos,
                  status.to_string());
    CHECK(report.out_of_range == 2u);
    CHECK((here ? fetch(static_cast<const double*>(into.data), 4) : t) == before);
    auto route = backend_->scatter().make_route(targets, 4, OutOfRange::error);
    CHECK(route.status().to_string() == status.to_string());
    placed_.clear();
  }
}

// None is done in another way than it was asked for.
TEST_CASE_METHOD(ScatterTest, "ScatterTest.RefusesMethodsThatItDoesNotHave", "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  auto check = [&]<class Index>(Index, uint64_t n, uint64_t limit) {
    const auto r = random_targets<Index>(rng, n, limit, 0);
    const std::vector<float> s(n, 1), before(limit, 2);
    std::vector<float> expected = before;
    for (Index x : r) ++expected[x];
    for (bool here : {true, false}) {
      for (ScatterMode mode : {ScatterMode::fast, ScatterMode::reproducible}) {
        for (ScatterMethod method : methods) {
          for (ScatterOperation operation : {ScatterOperation::add, ScatterOperation::max}) {
            INFO(std::to_string(n) + " to " + std::to_string(limit) + ", method " +
                 std::to_string(static_cast<int>(method)) + ", operation " +
                 std::to_string(static_cast<int>(operation)) + (here ? ", here" : ", elsewhere"));
            const bool is_add = operation == ScatterOperation::add;
            std::vector<float> t = before;
            Numbers sources = numbers_of(s);
            Indexes targets = Indexes::of(r);
            MutableNumbers into = numbers_of(&t);
            if (here) {
              sources.data = place(s, 0);
              targets.data = place(r, 0);
              into.data = place(t, 0);
            }
            Status status = backend_->scatter().apply(
                sources, targets, into, {.operation = operation, .mode = mode, .method = method});
            if (here) t = fetch(static_cast<const float*>(into.data), limit);
            if (is_known(method, operation, n, limit, sizeof(Index))) {
              CHECK_OK(status);
              CHECK(t == (is_add ? expected : before));
            } else {
              CHECK_MESSAGE(status.code() == StatusCode::invalid_argument, status.to_string());
              CHECK_MESSAGE(status.to_string().find("ScatterMethod::") != std::string::npos,
                            status.to_string());
              CHECK(t == before);
            }
            placed_.clear();
          }
        }
      }
    }
  };
  for (uint64_t n : {1000, 20000, 200000}) {
    for (uint64_t limit : {1000, 100000}) {
      check(uint32_t(), n, limit);
      check(uint64_t(), n, limit);
    }
  }
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.WrongArguments", "[ScatterTest]") {
  std::vector<float> s = {1, 2}, t = {0};
  std::vector<uint32_t> r = {0};
  auto refused = [&](const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                     const std::string& message) {
    Status status = backend_->scatter().apply(sources, targets, into);
    CHECK_MESSAGE(status.code() == StatusCode::invalid_argument, status.to_string());
    CHECK_MESSAGE(status.to_string().find(message) != std::string::npos, status.to_string());
  };
  refused(numbers_of(s), Indexes::of(r), numbers_of(&t), "2 sources with 1 targets");
  refused({NumberType::f64, nullptr, 1}, Indexes::of(r), numbers_of(&t),
          "sources of type f64 cannot be combined into f32");
  refused({NumberType::f16, s.data(), 1}, Indexes::of(r), {NumberType::f16, t.data(), 1},
          "f16 cannot be combined into f16");
  refused({NumberType::f32, s.data(), 1}, {r.data(), 1, 2}, numbers_of(&t), "targets of 2 bytes");
  refused({NumberType::f32, reinterpret_cast<std::byte*>(s.data()) + 1, 1}, Indexes::of(r),
          numbers_of(&t), "sources: a column at an address that is not a multiple of 4");
  refused({NumberType::f32, s.data(), 1}, {nullptr, 1, 4}, numbers_of(&t), "targets: ");
  for (const Indexes& wrong : {Indexes{r.data(), 1, 2}, Indexes{nullptr, 1, 4},
                               Indexes{reinterpret_cast<std::byte*>(r.data()) + 1, 1, 4}}) {
    auto none = backend_->scatter().make_route(wrong, 1, OutOfRange::count);
    CHECK_MESSAGE(none.status().code() == StatusCode::invalid_argument, none.status().to_string());
  }
  auto route = backend_->scatter().make_route(Indexes::of(r), 1, OutOfRange::count);
  REQUIRE_OK(route);
  CHECK((*route)->apply(numbers_of(s), numbers_of(&t)).code() == StatusCode::invalid_argument);
  CHECK((*route)->apply({NumberType::f32, s.data(), 1}, numbers_of(&s)).code() ==
        StatusCode::invalid_argument);
  CHECK(t[0] == 0);
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.EmptyColumns", "[ScatterTest]") {
  std::vector<float> none, t = {3};
  std::vector<uint32_t> no_targets;
  ScatterReport report{5, 5};
  CHECK_OK(backend_->scatter().apply(numbers_of(none), Indexes::of(no_targets), numbers_of(&t), {},
                                     &report));
  CHECK(report.out_of_range == 0u);
  CHECK(report.first_out_of_range == UINT64_MAX);
  auto route = backend_->scatter().make_route(Indexes::of(no_targets), 1, OutOfRange::error);
  REQUIRE_OK(route);
  CHECK_OK((*route)->apply(numbers_of(none), numbers_of(&t)));
  // No targets at all: everything is out of range.
  std::vector<float> s = {1, 2};
  std::vector<uint32_t> r = {0, 1};
  REQUIRE_OK(
      backend_->scatter().apply(numbers_of(s), Indexes::of(r), numbers_of(&none), {}, &report));
  CHECK(report.out_of_range == 2u);
  CHECK(report.first_out_of_range == 0u);
  CHECK(t[0] == 3);
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.RoutesGiveTheSame", "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  struct Size {
    uint64_t n, limit;
  };
  for (Size size : {Size{1000, 100}, Size{70000, 60000}, Size{1200000, 60000},
                    Size{1500000, 1400000}, Size{3000001, 500000}}) {
    if (!on_device() && size.n > 100000) continue;  // a route of the host is the targets
    for (int kind : {0, 2, 3, 4}) {
      if (size.n > 2000000 && kind == 4) continue;
      auto r = random_targets<uint32_t>(rng, size.n, size.limit, kind);
      INFO(std::to_string(size.n) + " to " + std::to_string(size.limit) + ", kind " +
           std::to_string(kind));
      auto route = backend_->scatter().make_route(Indexes::of(r), size.limit, OutOfRange::count);
      REQUIRE_OK(route);
      CHECK((*route)->memory_bytes() >= size.n * 4);
      uint64_t out_of_range = 0;
      for (uint32_t x : r) out_of_range += x >= size.limit;
      CHECK((*route)->report().out_of_range == out_of_range);

      std::vector<int64_t> s(size.n), t(size.limit, 3);
      for (int64_t& x : s) x = static_cast<int64_t>(rng());
      std::vector<int64_t> expected = t;
      for (uint64_t i = 0; i < size.n; ++i)
        if (r[i] < size.limit) expected[r[i]] = wrapped(expected[r[i]], s[i]);
      std::vector<int64_t> found = t;
      REQUIRE_OK((*route)->apply(numbers_of(s), numbers_of(&found)));
      REQUIRE(found == expected);

      std::vector<float> f(size.n), tf(size.limit, 1);
      for (float& x : f) x = static_cast<float>(static_cast<double>(rng()) / 0x1p64);
      auto exact = reproducible(f, r, tf);
      for (bool here : {false, true}) {
        std::vector<float> floats = tf;
        Numbers sources = numbers_of(f);
        MutableNumbers into = numbers_of(&floats);
        if (here) {
          sources.data = place(f, 1);
          into.data = place(floats, 0);
        }
        REQUIRE_OK((*route)->apply(sources, into, ScatterMode::reproducible));
        if (here) floats = fetch(static_cast<const float*>(into.data), size.limit);
        REQUIRE(bytes_of(floats) == bytes_of(exact));
        // Twice, with the same bits on a device.
        std::vector<float> first;
        for (int time = 0; time < 2; ++time) {
          floats = tf;
          if (here) into.data = place(tf, 0);
          REQUIRE_OK((*route)->apply(sources, into));
          if (here) floats = fetch(static_cast<const float*>(into.data), size.limit);
          for (uint64_t i = 0; i < size.limit; ++i)
            REQUIRE_MESSAGE(std::abs(floats[i] - exact[i]) <= 1e-4 * std::abs(exact[i]), i);
          if (time == 1 && on_device() && is_exchanged(size.n, size.limit))
            REQUIRE(floats == first);
          first = floats;
        }
        placed_.clear();
      }
    }
  }
}

TEST_CASE_METHOD(ScatterTest, "ScatterTest.WorkOnAStream", "[ScatterTest]") {
  std::vector<float> s(5000, 1.0f), t(10);
  std::vector<uint32_t> r(s.size());
  for (size_t i = 0; i < r.size(); ++i) r[i] = static_cast<uint32_t>(i % 10);
  void* per_thread = reinterpret_cast<void*>(2);  // cudaStreamPerThread
  Numbers sources = numbers_of(s);
  Indexes targets = Indexes::of(r);
  MutableNumbers into = numbers_of(&t);
  auto route = backend_->scatter().make_route(targets, 10, OutOfRange::count);
  REQUIRE_OK(route);
  CHECK_FALSE(backend_->scatter().apply(sources, targets, into, {.stream = per_thread}).ok());
  CHECK_FALSE((*route)->apply(sources, into, ScatterMode::fast, per_thread).ok());
  if (!on_device()) return;
  sources.data = place(s, 0);
  targets.data = place(r, 0);
  into.data = place(t, 0);
  for (int time = 0; time < 20; ++time) {
    REQUIRE_OK(backend_->scatter().apply(sources, targets, into, {.stream = per_thread}));
    REQUIRE_OK((*route)->apply(sources, into, ScatterMode::fast, per_thread));
    REQUIRE_OK((*route)->apply(sources, into, ScatterMode::reproducible, per_thread));
  }
  // A call that waits on the same stream comes behind them.
  std::vector<float> found;
  for (int look = 0; look < 1000; ++look) {
    found = fetch(static_cast<const float*>(into.data), 10);
    if (found == std::vector<float>(10, 60 * 500.0f)) break;
  }
  CHECK(found == std::vector<float>(10, 60 * 500.0f));
}

// Pinned and pageable memory, in pieces, and T where it is.
TEST_CASE_METHOD(ScatterTest, "ScatterTest.SourcesInHostMemoryComeInPieces", "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  const uint64_t n = smaller_under_sanitizers(5'000'001, 500'001), limit = 70000;
  auto r = random_targets<uint32_t>(rng, n, limit, 2);
  std::vector<int32_t> s(n), expected(limit);
  for (int32_t& x : s) x = static_cast<int32_t>(rng());
  for (uint64_t i = 0; i < n; ++i) expected[r[i]] = wrapped(expected[r[i]], s[i]);
  auto pinned_s = backend_->allocate_host(n * 4), pinned_r = backend_->allocate_host(n * 4);
  REQUIRE((pinned_s.ok() && pinned_r.ok()));
  std::memcpy((*pinned_s)->data(), s.data(), n * 4);
  std::memcpy((*pinned_r)->data(), r.data(), n * 4);
  const void* sources[] = {s.data(), (*pinned_s)->data(), place(s, 0)};
  const void* targets[] = {r.data(), (*pinned_r)->data(), place(r, 0)};
  for (const void* from : sources) {
    for (const void* to : targets) {
      std::vector<int32_t> found(limit);
      ScatterReport report;
      REQUIRE_OK(backend_->scatter().apply({NumberType::i32, from, n}, {to, n, 4},
                                           numbers_of(&found), {}, &report));
      REQUIRE(found == expected);
    }
  }
}

// What the host does with few and many sources, for any number of threads.
TEST_CASE("HostScatterTest.HasTheBitsOfTheLoopWhereSourcesAreBroughtTogether",
          "[HostScatterTest]") {
  std::mt19937_64 rng(seed());
  std::vector<std::unique_ptr<Backend>> backends;
  for (unsigned threads : {1, 2, 3, 5})
    if (!under_sanitizer || threads == 3) backends.push_back(Backend::host(threads));
  auto check = [&]<class T, class Index>(T, const std::vector<Index>& r, uint64_t limit,
                                         const std::string& name) {
    INFO(name);
    constexpr bool is_float = std::is_floating_point_v<T>;
    std::vector<T> s(r.size()), t(limit);
    for (T& x : s)
      x = is_float ? static_cast<T>(static_cast<double>(rng()) / 0x1p63 - 1)
                   : static_cast<T>(rng());
    for (T& x : t) x = static_cast<T>(rng() % 1000);
    std::vector<T> sums = t, most = t, exact;
    ScatterReport left;
    for (uint64_t i = 0; i < r.size(); ++i) {
      if (r[i] >= limit) {
        left.first_out_of_range = std::min(left.first_out_of_range, i);
        ++left.out_of_range;
        continue;
      }
      sums[r[i]] = wrapped(sums[r[i]], s[i]);
      most[r[i]] = std::max(most[r[i]], s[i]);
    }
    if constexpr (is_float) exact = reproducible(s, r, t);
    for (const auto& backend : backends) {
      auto found = [&](const ScatterOptions& options) {
        std::vector<T> into = t;
        ScatterReport report;
        Status status = backend->scatter().apply(numbers_of(s), Indexes::of(r), numbers_of(&into),
                                                 options, &report);
        CHECK_OK(status);
        CHECK(report.out_of_range == left.out_of_range);
        CHECK(report.first_out_of_range == left.first_out_of_range);
        return bytes_of(into);
      };
      for (ScatterMethod method : {ScatterMethod::partition, ScatterMethod::automatic}) {
        if (!is_float || method == ScatterMethod::partition)
          REQUIRE(found({.method = method}) == bytes_of(sums));
        REQUIRE(found({.operation = ScatterOperation::max, .method = method}) == bytes_of(most));
        if constexpr (is_float)
          REQUIRE(found({.mode = ScatterMode::reproducible, .method = method}) == bytes_of(exact));
      }
    }
  };
  struct Case {
    uint64_t n, limit;
    int kind;
  };
  // A stretch of sources and one more; fewer sources than targets; more targets than are cached,
  // for all kinds of targets.
  for (Case c : {Case{65536, 65536, 0}, Case{65537, 65537, 0}, Case{1000, 70000, 3},
                 Case{300001, 1100000, 0}, Case{300001, 1100000, 2}, Case{300001, 1100000, 3}}) {
    const std::string name =
        std::to_string(c.n) + " to " + std::to_string(c.limit) + ", kind " + std::to_string(c.kind);
    auto narrow = random_targets<uint32_t>(rng, c.n, c.limit, c.kind);
    check(float(), narrow, c.limit, name);
    auto wide = random_targets<uint64_t>(rng, c.n, c.limit, c.kind);
    if (c.kind == 3) {
      wide[0] = UINT64_MAX;
      wide[c.n / 2] = uint64_t{1} << 32;
    }
    check(int64_t(), wide, c.limit, name);
    std::sort(wide.begin(), wide.end());
    check(double(), wide, c.limit, name + ", sorted");
  }
  // Two blocks, of which neither ends with a whole stretch.
  const uint64_t n = (uint64_t{1} << 22) + 12345;
  check(float(), random_targets<uint32_t>(rng, n, 3000, 3), 3000, "two blocks");
}

// Takes sizes around those where the host does it in another way, with all that numbers can be.
TEST_CASE("HostScatterTest.AgreesWithTheLoopAtLimits", "[HostScatterTest]") {
  std::mt19937_64 rng(seed());
  const std::vector<uint64_t> sizes = {
      1,    2,    3,    4,     5,     63,    64,    65,    511,   512,    513,    2047,   2048,
      4095, 4096, 4097, 16383, 16384, 16385, 65535, 65536, 65537, 131071, 131072, 131073, 140000};
  const std::vector<uint64_t> limits = {
      1,     2,     63,    64,    65,    127,   128,    129,    1023,    1024,    1025,
      32767, 32768, 32769, 65535, 65536, 65537, 131071, 131073, 1048575, 1048577, 2500000};
  std::vector<std::unique_ptr<Backend>> backends;
  for (unsigned threads : {1, 2})
    if (!under_thread_sanitizer || threads > 1) backends.push_back(Backend::host(threads));
  auto check = [&]<class T, class Index>(T, Index) {
    using Limits = std::numeric_limits<T>;
    const uint64_t n = sizes[rng() % sizes.size()], limit = limits[rng() % limits.size()];
    auto r = random_targets<Index>(rng, n, limit, static_cast<int>(rng() % 5));
    const bool is_sorted = rng() % 2, has_none_in_range = rng() % 16 == 0;
    if (is_sorted) std::sort(r.begin(), r.end());
    if (has_none_in_range) std::fill(r.begin(), r.end(), std::numeric_limits<Index>::max());
    std::vector<T> s(n), t(limit);
    const uint64_t specials = rng() % 3 ? 1000 : 3;  // one of so many
    const std::vector<T> special = {Limits::max(),      Limits::lowest(),    Limits::min(),
                                    Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()};
    constexpr bool is_float = std::is_floating_point_v<T>;
    for (T& x : s) {
      x = is_float ? static_cast<T>(static_cast<int>(rng() % 2001) - 1000) : static_cast<T>(rng());
      // Finite ones that are large make a sum depend on the order.
      if (rng() % specials == 0) x = special[is_float ? 3 + rng() % 3 : rng() % 3];
    }
    for (T& x : t) x = is_float ? T(rng() % 10) : static_cast<T>(rng());
    std::vector<T> sums = t, most = t, exact;
    ScatterReport left;
    for (uint64_t i = 0; i < n; ++i) {
      if (r[i] >= limit) {
        if (left.out_of_range++ == 0) left.first_out_of_range = i;
        continue;
      }
      sums[r[i]] = wrapped(sums[r[i]], s[i]);
      if (s[i] > most[r[i]]) most[r[i]] = s[i];
    }
    if constexpr (is_float) exact = reproducible(s, r, t);
    auto first_other = [](const std::vector<T>& found, const std::vector<T>& expected) {
      return static_cast<uint64_t>(
          std::mismatch(found.begin(), found.end(), expected.begin(), same<T>).first -
          found.begin());
    };
    for (const auto& backend : backends) {
      for (ScatterMethod method : {ScatterMethod::automatic, ScatterMethod::direct,
                                   ScatterMethod::copies, ScatterMethod::partition}) {
        INFO(std::to_string(n) + " to " + std::to_string(limit) + ", method " +
             std::to_string(static_cast<int>(method)) + (is_sorted ? ", sorted" : ""));
        auto agrees = [&](const ScatterOptions& options, const std::vector<T>& expected) {
          std::vector<T> found = t;
          ScatterReport report;
          Status status = backend->scatter().apply(numbers_of(s), Indexes::of(r),
                                                   numbers_of(&found), options, &report);
          REQUIRE_OK(status);
          REQUIRE(first_other(found, expected) == limit);
          REQUIRE(report.out_of_range == left.out_of_range);
          REQUIRE(report.first_out_of_range == left.first_out_of_range);
        };
        agrees({.method = method}, sums);
        agrees({.operation = ScatterOperation::max, .method = method}, most);
        if (is_float) agrees({.mode = ScatterMode::reproducible, .method = method}, exact);
      }
      auto route = backend->scatter().make_route(Indexes::of(r), limit, OutOfRange::count);
      REQUIRE_OK(route);
      std::vector<T> found = t;
      REQUIRE_OK((*route)->apply(numbers_of(s), numbers_of(&found)));
      REQUIRE(first_other(found, sums) == limit);
    }
  };
  for (int round = 0; round < smaller_under_sanitizers(12, 4); ++round) {
    check(float(), uint32_t());
    check(double(), uint64_t());
    check(int32_t(), uint64_t());
    check(int64_t(), uint32_t());
  }
}

// Targets that ascend, nearly do, or only where the backend looks at a sample of them.
TEST_CASE("HostScatterTest.TargetsThatNearlyAscend", "[HostScatterTest]") {
  std::mt19937_64 rng(seed());
  const uint64_t n = smaller_under_sanitizers(300'007, 150'007), limit = 90'000;
  auto ascending = [&](uint64_t most, uint64_t run) {
    std::vector<uint64_t> r(n);
    for (uint64_t& x : r) x = rng() % most / run * run;
    std::sort(r.begin(), r.end());
    return r;
  };
  std::map<std::string, std::vector<uint64_t>> cases;
  cases["ascending"] = ascending(limit, 1);
  cases["the last out of range"] = ascending(limit + limit / 3, 1);
  cases["all out of range"] = std::vector<uint64_t>(n, limit);
  cases["runs"] = ascending(limit, 1000);
  auto& swapped = cases["neighbours swapped"] = ascending(limit, 1);
  for (uint64_t k = 0; k < n / 50; ++k) {
    const uint64_t i = rng() % (n - 40);
    std::swap(swapped[i], swapped[i + 1 + rng() % 39]);
  }
  for (const char* name : {"ascending", "runs", "the last out of range"}) {
    auto& far = cases[std::string(name) + ", some anywhere"] = cases[name];
    for (uint64_t k = 0; k < n / 500; ++k) far[rng() % n] = rng() % 2 ? rng() % limit : rng();
  }
  // Each 5000 are in any order.
  auto& blocks = cases["blocks"] = ascending(limit, 1);
  for (uint64_t i = 0; i + 5000 <= n; i += 5000)
    std::shuffle(blocks.begin() + static_cast<std::ptrdiff_t>(i),
                 blocks.begin() + static_cast<std::ptrdiff_t>(i) + 5000, rng);
  auto& seen = cases["only a sample ascends"] = ascending(limit, 1);
  for (uint64_t i = 0; i < n; ++i)
    if (i % (n / 1024) != i / (n / 1024) % (n / 1024)) seen[i] = rng() % (limit + 100);
  cases["greatest"] = ascending(limit, 1);
  for (uint64_t i = n / 2; i < n; ++i) cases["greatest"][i] = UINT32_MAX;

  std::vector<std::unique_ptr<Backend>> backends;
  for (unsigned threads : {1, 2})
    if (!under_thread_sanitizer || threads > 1) backends.push_back(Backend::host(threads));
  auto check = [&]<class T, class Index>(T, const std::vector<Index>& r) {
    std::vector<T> s(n), t(limit, 3);
    for (T& x : s) x = static_cast<T>(static_cast<int>(rng() % 2001) - 1000);  // sums are exact
    std::vector<T> sums = t, least = t;
    ScatterReport left;
    for (uint64_t i = 0; i < n; ++i) {
      if (r[i] >= limit) {
        if (left.out_of_range++ == 0) left.first_out_of_range = i;
        continue;
      }
      sums[r[i]] += s[i];
      least[r[i]] = std::min(least[r[i]], s[i]);
    }
    for (const auto& backend : backends) {
      for (const ScatterOptions& options :
           {ScatterOptions{}, ScatterOptions{.operation = ScatterOperation::min},
            ScatterOptions{.mode = ScatterMode::reproducible}}) {
        std::vector<T> found = t;
        ScatterReport report;
        Status status = backend->scatter().apply(numbers_of(s), Indexes::of(r), numbers_of(&found),
                                                 options, &report);
        REQUIRE_OK(status);
        REQUIRE(found == (options.operation == ScatterOperation::min ? least : sums));
        REQUIRE(report.out_of_range == left.out_of_range);
        REQUIRE(report.first_out_of_range == left.first_out_of_range);
      }
    }
  };
  for (const auto& [name, r] : cases) {
    INFO(name);
    std::vector<uint32_t> narrow(n);
    for (uint64_t i = 0; i < n; ++i)
      narrow[i] = static_cast<uint32_t>(std::min<uint64_t>(r[i], UINT32_MAX));
    check(int32_t(), narrow);
    check(float(), narrow);
    check(double(), narrow);
    check(int64_t(), r);
    check(float(), r);
  }
}

// Targets that no number of 32 bits can tell.
TEST_CASE_METHOD(ScatterTest, "ScatterTest.MoreThanFourBillionTargets", "[ScatterTest]") {
  const uint64_t limit = (uint64_t{1} << 32) + 10;
  if (!on_device()) SKIP("needs 17 GB of memory");
  auto t = backend_->allocate(limit * 4);
  if (!t.ok()) SKIP(t.status().to_string());
  std::vector<uint64_t> r = {0, UINT32_MAX, uint64_t{UINT32_MAX} - 1, limit - 1, limit, UINT64_MAX};
  std::vector<int32_t> s = {1, 2, 3, 4, 5, 6};
  auto* into = reinterpret_cast<int32_t*>((*t)->data());
  const std::vector<int32_t> zero = {0};
  for (int i = 0; i < 4; ++i) REQUIRE_OK(backend_->copy(into + r[i], zero.data(), 4));
  ScatterReport report;
  REQUIRE_OK(backend_->scatter().apply(numbers_of(s), Indexes::of(r),
                                       {NumberType::i32, into, limit}, {}, &report));
  CHECK(report.out_of_range == 2u);
  CHECK(report.first_out_of_range == 4u);
  for (int i = 0; i < 4; ++i) CHECK(fetch(into + r[i], 1)[0] == s[i]);
  // Targets of 32 bits that are all there.
  std::vector<uint32_t> narrow = {UINT32_MAX, 0};
  REQUIRE_OK(backend_->scatter().apply(Numbers::ones(NumberType::i32, 2), Indexes::of(narrow),
                                       {NumberType::i32, into, limit}, {}, &report));
  CHECK(report.out_of_range == 0u);
  CHECK(fetch(into + UINT32_MAX, 1)[0] == 3);
}

// The plan of a route, carried out by loops as a device does.
TEST_CASE("RoutePlanTest.LeadsEverySourceToItsTarget", "[RoutePlanTest]") {
  std::mt19937_64 rng(seed());
  struct Case {
    uint64_t n, limit;
    uint32_t processors;
    int kind;
  };
  for (Case c : {Case{100, 30, 2, 0}, Case{50000, 700, 3, 2}, Case{400000, 30000, 4, 3},
                 Case{400000, 390000, 132, 0}, Case{300000, 5, 7, 1}, Case{200000, 10000, 2, 4}}) {
    auto r = random_targets<uint64_t>(rng, c.n + 10, c.limit, c.kind);
    const uint64_t first = 10;
    RouteSlab slab = plan_slab(Indexes::of(r), first, c.n, c.limit, c.processors);
    REQUIRE(slab.sources == c.n);
    REQUIRE(slab.chunk_sources <= route_chunk_sources);
    REQUIRE(slab.part_target.size() == slab.parts + 1u);
    REQUIRE(slab.chunk_piece.size() == slab.chunks + 1u);
    std::vector<uint64_t> items(slab.items, UINT64_MAX);
    std::vector<std::vector<uint64_t>> sums(slab.hot_sums());
    for (uint32_t chunk = 0; chunk < slab.chunks; ++chunk) {
      const uint64_t begin = uint64_t{chunk} * slab.chunk_sources;
      const uint32_t first_pick = slab.chunk_pick[chunk];
      const uint32_t picks = slab.chunk_pick[chunk + 1] - first_pick;
      REQUIRE(first_pick % 8 == 0u);
      REQUIRE(picks <= slab.most_picks);
      for (uint32_t p = slab.chunk_piece[chunk]; p < slab.chunk_piece[chunk + 1]; ++p) {
        const RouteSlab::Piece& piece = slab.pieces[p];
        const bool is_sum = piece.to >= slab.items;
        REQUIRE(piece.count > 0u);
        REQUIRE(piece.begin + piece.count <= picks);
        if (!is_sum) {
          REQUIRE(piece.count <= route_piece_sources);
          REQUIRE(piece.begin % route_quad + piece.count % route_quad + piece.to % route_quad ==
                  0u);
        }
        for (uint32_t j = 0; j < piece.count; ++j) {
          const uint64_t source = begin + slab.picks[first_pick + piece.begin + j];
          REQUIRE(source < c.n);
          if (is_sum) {
            sums.at(piece.to - slab.items).push_back(source);
          } else {
            items.at(piece.to + j) = source;
          }
        }
      }
    }
    std::vector<std::vector<uint64_t>> sources(c.limit);
    for (uint32_t p = 0; p < slab.parts; ++p) {
      const uint32_t size = slab.part_item[p + 1] - slab.part_item[p];
      REQUIRE(size <= slab.max_items);
      REQUIRE(size <= route_part_sources + (route_quad - 1) * slab.chunks);
      REQUIRE(slab.part_target[p + 1] - slab.part_target[p] <= slab.most_targets);
      REQUIRE(slab.most_targets <= route_part_targets);
      const uint32_t first_group = slab.part_group[p], last_group = slab.part_group[p + 1];
      REQUIRE(slab.group_list[first_group] % 8 == 0u);
      REQUIRE(slab.group_list[last_group] - slab.group_list[first_group] <= slab.most_list);
      for (uint32_t g = first_group; g < last_group; ++g) {
        for (uint32_t at = slab.group_list[g]; at < slab.group_list[g + 1]; ++at) {
          if (slab.list[at] == size) continue;
          const uint32_t k = (at - slab.group_list[g]) % route_group_targets;
          const uint32_t t = slab.group_targets[g * route_group_targets + k];
          REQUIRE(t >= slab.part_target[p]);
          REQUIRE(t < slab.part_target[p + 1]);
          sources[t].push_back(items[slab.part_item[p] + slab.list[at]]);
        }
      }
    }
    for (uint32_t h = 0; h < slab.hot_count(); ++h)
      for (uint64_t at = slab.hot[h].begin; at < slab.hot[h + 1].begin; ++at) {
        auto& of = sources[slab.hot[h].target];
        const auto& sum = sums[at - slab.items];
        REQUIRE_FALSE(sum.empty());
        of.insert(of.end(), sum.begin(), sum.end());
      }
    std::vector<std::vector<uint64_t>> expected(c.limit);
    for (uint64_t i = 0; i < c.n; ++i)
      if (r[first + i] < c.limit) expected[r[first + i]].push_back(i);
    REQUIRE_MESSAGE(sources == expected, c.n << " to " << c.limit);
  }
}

}  // namespace
}  // namespace stride::test

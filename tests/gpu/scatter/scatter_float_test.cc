// Sums, minima and maxima of floats: which bits they have, and how near they are.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/scatter/scatter_arith.h"
#include "tests/gpu/scatter/scatter_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

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
    const auto expected = column_bytes(reproducible(s, r, t));
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
      REQUIRE_MESSAGE(column_bytes(found) == expected, "run " << run << ", " << limit << " targets");
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
      REQUIRE(column_bytes(found) == column_bytes(expected));
    }
  };
  check(float());
  check(double());
}

}  // namespace
}  // namespace stride::test

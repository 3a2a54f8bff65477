// Scatter-add against plain loops, on the host and on a device.
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
      REQUIRE(column_bytes(together) == column_bytes(found));
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
    auto prepared = backend_->scatter().prepare(targets, 4, OutOfRange::error);
    CHECK(prepared.status().to_string() == status.to_string());
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
    auto none = backend_->scatter().prepare(wrong, 1, OutOfRange::count);
    CHECK_MESSAGE(none.status().code() == StatusCode::invalid_argument, none.status().to_string());
  }
  auto prepared = backend_->scatter().prepare(Indexes::of(r), 1, OutOfRange::count);
  REQUIRE_OK(prepared);
  CHECK((*prepared)->apply(numbers_of(s), numbers_of(&t)).code() == StatusCode::invalid_argument);
  CHECK((*prepared)->apply({NumberType::f32, s.data(), 1}, numbers_of(&s)).code() ==
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
  auto prepared = backend_->scatter().prepare(Indexes::of(no_targets), 1, OutOfRange::error);
  REQUIRE_OK(prepared);
  CHECK_OK((*prepared)->apply(numbers_of(none), numbers_of(&t)));
  // No targets at all: everything is out of range.
  std::vector<float> s = {1, 2};
  std::vector<uint32_t> r = {0, 1};
  REQUIRE_OK(
      backend_->scatter().apply(numbers_of(s), Indexes::of(r), numbers_of(&none), {}, &report));
  CHECK(report.out_of_range == 2u);
  CHECK(report.first_out_of_range == 0u);
  CHECK(t[0] == 3);
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

}  // namespace
}  // namespace stride::test

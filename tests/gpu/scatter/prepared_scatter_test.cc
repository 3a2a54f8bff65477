// Targets that are prepared once, and work on a stream.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/scatter/exchange_plan.h"
#include "tests/gpu/scatter/scatter_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

struct PreparedTest : ScatterTest {
  struct Size {
    uint64_t n, limit;
  };

  // Sums of integers are those of the loop.
  void expect_integers(const PreparedScatter& prepared, const std::vector<uint32_t>& r,
                       const Size& size, std::mt19937_64& rng) {
    std::vector<int64_t> s(size.n), t(size.limit, 3);
    for (int64_t& x : s) x = static_cast<int64_t>(rng());
    std::vector<int64_t> expected = t;
    for (uint64_t i = 0; i < size.n; ++i)
      if (r[i] < size.limit) expected[r[i]] = wrapped(expected[r[i]], s[i]);
    std::vector<int64_t> found = t;
    REQUIRE_OK(prepared.apply(numbers_of(s), numbers_of(&found)));
    REQUIRE(found == expected);
  }

  // Reproducible sums of floats have the bits of the definition, others are near, and on a device
  // the same twice.
  void expect_floats(const PreparedScatter& prepared, const std::vector<uint32_t>& r,
                     const Size& size, std::mt19937_64& rng) {
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
      REQUIRE_OK(prepared.apply(sources, into, ScatterMode::reproducible));
      if (here) floats = fetch(static_cast<const float*>(into.data), size.limit);
      REQUIRE(column_bytes(floats) == column_bytes(exact));
      // Twice, with the same bits on a device.
      std::vector<float> first;
      for (int time = 0; time < 2; ++time) {
        floats = tf;
        if (here) into.data = place(tf, 0);
        REQUIRE_OK(prepared.apply(sources, into));
        if (here) floats = fetch(static_cast<const float*>(into.data), size.limit);
        for (uint64_t i = 0; i < size.limit; ++i)
          REQUIRE_MESSAGE(std::abs(floats[i] - exact[i]) <= 1e-4 * std::abs(exact[i]), i);
        if (time == 1 && on_device() && is_exchanged(size.n, size.limit)) REQUIRE(floats == first);
        first = floats;
      }
      placed_.clear();
    }
  }
};

TEST_CASE_METHOD(PreparedTest, "ScatterTest.PreparedTargetsGiveTheSame", "[ScatterTest]") {
  std::mt19937_64 rng(seed());
  for (Size size : {Size{1000, 100}, Size{70000, 60000}, Size{1200000, 60000},
                    Size{1500000, 1400000}, Size{3000001, 500000}}) {
    if (!on_device() && size.n > 100000)
      continue;  // the host prepares nothing: it keeps the targets
    for (int kind : {0, 2, 3, 4}) {
      if (size.n > 2000000 && kind == 4) continue;
      auto r = random_targets<uint32_t>(rng, size.n, size.limit, kind);
      INFO(std::to_string(size.n) + " to " + std::to_string(size.limit) + ", kind " +
           std::to_string(kind));
      auto prepared = backend_->scatter().prepare(Indexes::of(r), size.limit, OutOfRange::count);
      REQUIRE_OK(prepared);
      CHECK((*prepared)->memory_bytes() >= size.n * 4);
      uint64_t out_of_range = 0;
      for (uint32_t x : r) out_of_range += x >= size.limit;
      CHECK((*prepared)->report().out_of_range == out_of_range);
      expect_integers(**prepared, r, size, rng);
      expect_floats(**prepared, r, size, rng);
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
  auto prepared = backend_->scatter().prepare(targets, 10, OutOfRange::count);
  REQUIRE_OK(prepared);
  CHECK_FALSE(backend_->scatter().apply(sources, targets, into, {.stream = per_thread}).ok());
  CHECK_FALSE((*prepared)->apply(sources, into, ScatterMode::fast, per_thread).ok());
  if (!on_device()) return;
  sources.data = place(s, 0);
  targets.data = place(r, 0);
  into.data = place(t, 0);
  for (int time = 0; time < 20; ++time) {
    REQUIRE_OK(backend_->scatter().apply(sources, targets, into, {.stream = per_thread}));
    REQUIRE_OK((*prepared)->apply(sources, into, ScatterMode::fast, per_thread));
    REQUIRE_OK((*prepared)->apply(sources, into, ScatterMode::reproducible, per_thread));
  }
  // A call that waits on the same stream comes behind them.
  std::vector<float> found;
  for (int look = 0; look < 1000; ++look) {
    found = fetch(static_cast<const float*>(into.data), 10);
    if (found == std::vector<float>(10, 60 * 500.0f)) break;
  }
  CHECK(found == std::vector<float>(10, 60 * 500.0f));
}

}  // namespace
}  // namespace stride::test

// What the host does with few and many sources, and where it does it in another way, for any number
// of threads.
#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "tests/gpu/scatter/scatter_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

using Backends = std::vector<std::unique_ptr<Backend>>;

Backends backends_of(std::initializer_list<unsigned> threads) {
  Backends backends;
  for (unsigned n : threads) backends.push_back(Backend::host(n));
  return backends;
}

// What a plain loop makes of T.
template <class T>
struct LoopResult {
  std::vector<T> sums, least, most;
  ScatterReport left;
};

template <class T, class Index>
LoopResult<T> loop_over(const std::vector<T>& s, const std::vector<Index>& r,
                        const std::vector<T>& t) {
  LoopResult<T> result{t, t, t, {}};
  for (uint64_t i = 0; i < s.size(); ++i) {
    if (r[i] >= t.size()) {
      if (result.left.out_of_range++ == 0) result.left.first_out_of_range = i;
      continue;
    }
    T &sum = result.sums[r[i]], &least = result.least[r[i]], &most = result.most[r[i]];
    sum = wrapped(sum, s[i]);
    if (s[i] < least) least = s[i];
    if (s[i] > most) most = s[i];
  }
  return result;
}

// T after a scatter that has to report what was left out.
template <class T, class Index>
std::vector<T> applied(Backend& backend, const std::vector<T>& s, const std::vector<Index>& r,
                       std::vector<T> t, const ScatterOptions& options, const ScatterReport& left) {
  ScatterReport report;
  Status status =
      backend.scatter().apply(numbers_of(s), Indexes::of(r), numbers_of(&t), options, &report);
  REQUIRE_OK(status);
  REQUIRE(report.out_of_range == left.out_of_range);
  REQUIRE(report.first_out_of_range == left.first_out_of_range);
  return t;
}

template <class T, class Index>
void expect_bits_of_loop(const Backends& backends, std::mt19937_64& rng,
                         const std::vector<Index>& r, uint64_t limit, const std::string& name) {
  INFO(name);
  constexpr bool is_float = std::is_floating_point_v<T>;
  std::vector<T> s(r.size()), t(limit);
  for (T& x : s)
    x = is_float ? static_cast<T>(static_cast<double>(rng()) / 0x1p63 - 1) : static_cast<T>(rng());
  for (T& x : t) x = static_cast<T>(rng() % 1000);
  const LoopResult<T> loop = loop_over(s, r, t);
  std::vector<T> exact;
  if constexpr (is_float) exact = reproducible(s, r, t);
  for (const auto& backend : backends) {
    auto found = [&](const ScatterOptions& options) {
      return column_bytes(applied(*backend, s, r, t, options, loop.left));
    };
    for (ScatterMethod method : {ScatterMethod::partition, ScatterMethod::automatic}) {
      if (!is_float || method == ScatterMethod::partition)
        REQUIRE(found({.method = method}) == column_bytes(loop.sums));
      REQUIRE(found({.operation = ScatterOperation::max, .method = method}) == column_bytes(loop.most));
      if constexpr (is_float)
        REQUIRE(found({.mode = ScatterMode::reproducible, .method = method}) == column_bytes(exact));
    }
  }
}

// Sources are brought together by ranges of targets.
TEST_CASE("HostScatterTest.HasTheBitsOfTheLoopWhereSourcesAreBroughtTogether",
          "[HostScatterTest]") {
  std::mt19937_64 rng(seed());
  const Backends backends = under_sanitizer ? backends_of({3}) : backends_of({1, 2, 3, 5});
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
    expect_bits_of_loop<float>(backends, rng, narrow, c.limit, name);
    auto wide = random_targets<uint64_t>(rng, c.n, c.limit, c.kind);
    if (c.kind == 3) {
      wide[0] = UINT64_MAX;
      wide[c.n / 2] = uint64_t{1} << 32;
    }
    expect_bits_of_loop<int64_t>(backends, rng, wide, c.limit, name);
    std::sort(wide.begin(), wide.end());
    expect_bits_of_loop<double>(backends, rng, wide, c.limit, name + ", sorted");
  }
  // Two blocks, of which neither ends with a whole stretch.
  const uint64_t n = (uint64_t{1} << 22) + 12345;
  expect_bits_of_loop<float>(backends, rng, random_targets<uint32_t>(rng, n, 3000, 3), 3000,
                             "two blocks");
}

// Sizes around those where the host does it in another way.
const std::vector<uint64_t> source_counts = {
    1,    2,    3,    4,     5,     63,    64,    65,    511,   512,    513,    2047,   2048,
    4095, 4096, 4097, 16383, 16384, 16385, 65535, 65536, 65537, 131071, 131072, 131073, 140000};
const std::vector<uint64_t> target_counts = {
    1,     2,     63,    64,    65,    127,   128,    129,    1023,    1024,    1025,
    32767, 32768, 32769, 65535, 65536, 65537, 131071, 131073, 1048575, 1048577, 2500000};

// Sources with all that numbers can be. Finite ones that are large make a sum depend on the order.
template <class T>
std::vector<T> special_sources(std::mt19937_64& rng, uint64_t n) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> s(n);
  const uint64_t specials = rng() % 3 ? 1000 : 3;  // one of so many
  const std::vector<T> special = {Limits::max(),      Limits::lowest(),    Limits::min(),
                                  Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()};
  constexpr bool is_float = std::is_floating_point_v<T>;
  for (T& x : s) {
    x = is_float ? static_cast<T>(static_cast<int>(rng() % 2001) - 1000) : static_cast<T>(rng());
    if (rng() % specials == 0) x = special[is_float ? 3 + rng() % 3 : rng() % 3];
  }
  return s;
}

template <class T, class Index>
void expect_loop_at_limits(const Backends& backends, std::mt19937_64& rng) {
  const uint64_t n = source_counts[rng() % source_counts.size()];
  const uint64_t limit = target_counts[rng() % target_counts.size()];
  auto r = random_targets<Index>(rng, n, limit, static_cast<int>(rng() % 5));
  const bool is_sorted = rng() % 2, has_none_in_range = rng() % 16 == 0;
  if (is_sorted) std::sort(r.begin(), r.end());
  if (has_none_in_range) std::fill(r.begin(), r.end(), std::numeric_limits<Index>::max());
  const std::vector<T> s = special_sources<T>(rng, n);
  std::vector<T> t(limit);
  constexpr bool is_float = std::is_floating_point_v<T>;
  for (T& x : t) x = is_float ? T(rng() % 10) : static_cast<T>(rng());
  const LoopResult<T> loop = loop_over(s, r, t);
  std::vector<T> exact;
  if constexpr (is_float) exact = reproducible(s, r, t);
  auto first_other = [](const std::vector<T>& found, const std::vector<T>& expected) {
    return static_cast<uint64_t>(
        std::mismatch(found.begin(), found.end(), expected.begin(), same<T>).first - found.begin());
  };
  for (const auto& backend : backends) {
    for (ScatterMethod method : {ScatterMethod::automatic, ScatterMethod::direct,
                                 ScatterMethod::privatized, ScatterMethod::partition}) {
      INFO(std::to_string(n) + " to " + std::to_string(limit) + ", method " +
           std::to_string(static_cast<int>(method)) + (is_sorted ? ", sorted" : ""));
      auto agrees = [&](const ScatterOptions& options, const std::vector<T>& expected) {
        REQUIRE(first_other(applied(*backend, s, r, t, options, loop.left), expected) == limit);
      };
      agrees({.method = method}, loop.sums);
      agrees({.operation = ScatterOperation::max, .method = method}, loop.most);
      if (is_float) agrees({.mode = ScatterMode::reproducible, .method = method}, exact);
    }
    auto prepared = backend->scatter().prepare(Indexes::of(r), limit, OutOfRange::count);
    REQUIRE_OK(prepared);
    std::vector<T> found = t;
    REQUIRE_OK((*prepared)->apply(numbers_of(s), numbers_of(&found)));
    REQUIRE(first_other(found, loop.sums) == limit);
  }
}

TEST_CASE("HostScatterTest.AgreesWithTheLoopAtLimits", "[HostScatterTest]") {
  std::mt19937_64 rng(seed());
  const Backends backends = under_thread_sanitizer ? backends_of({2}) : backends_of({1, 2});
  for (int round = 0; round < smaller_under_sanitizers(12, 4); ++round) {
    expect_loop_at_limits<float, uint32_t>(backends, rng);
    expect_loop_at_limits<double, uint64_t>(backends, rng);
    expect_loop_at_limits<int32_t, uint64_t>(backends, rng);
    expect_loop_at_limits<int64_t, uint32_t>(backends, rng);
  }
}

// Targets that ascend, nearly do, or only where the backend looks at a sample of them.
std::map<std::string, std::vector<uint64_t>> nearly_ascending(std::mt19937_64& rng, uint64_t n,
                                                              uint64_t limit) {
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
  return cases;
}

template <class T, class Index>
void expect_exact(const Backends& backends, std::mt19937_64& rng, const std::vector<Index>& r,
                  uint64_t limit) {
  std::vector<T> s(r.size()), t(limit, 3);
  for (T& x : s) x = static_cast<T>(static_cast<int>(rng() % 2001) - 1000);  // sums are exact
  const LoopResult<T> loop = loop_over(s, r, t);
  for (const auto& backend : backends) {
    for (const ScatterOptions& options :
         {ScatterOptions{}, ScatterOptions{.operation = ScatterOperation::min},
          ScatterOptions{.mode = ScatterMode::reproducible}}) {
      const bool is_min = options.operation == ScatterOperation::min;
      REQUIRE(applied(*backend, s, r, t, options, loop.left) == (is_min ? loop.least : loop.sums));
    }
  }
}

TEST_CASE("HostScatterTest.TargetsThatNearlyAscend", "[HostScatterTest]") {
  std::mt19937_64 rng(seed());
  const uint64_t n = smaller_under_sanitizers(300'007, 150'007), limit = 90'000;
  const Backends backends = under_thread_sanitizer ? backends_of({2}) : backends_of({1, 2});
  const auto cases = nearly_ascending(rng, n, limit);
  for (const auto& [name, r] : cases) {
    INFO(name);
    std::vector<uint32_t> narrow(n);
    for (uint64_t i = 0; i < n; ++i)
      narrow[i] = static_cast<uint32_t>(std::min<uint64_t>(r[i], UINT32_MAX));
    expect_exact<int32_t>(backends, rng, narrow, limit);
    expect_exact<float>(backends, rng, narrow, limit);
    expect_exact<double>(backends, rng, narrow, limit);
    expect_exact<int64_t>(backends, rng, r, limit);
    expect_exact<float>(backends, rng, r, limit);
  }
}

}  // namespace
}  // namespace stride::test

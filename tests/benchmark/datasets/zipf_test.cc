// Zipf's law: what is drawn beside the formula.
#include "benchmark/datasets/zipf.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t draws = 400'000;

double zeta_term_by_term(uint64_t n, double theta) {
  double sum = 0;
  for (uint64_t i = 1; i <= n; ++i) sum += std::pow(static_cast<double>(i), -theta);
  return sum;
}

// How often a number of this probability may come, within six standard deviations.
bool is_likely(uint64_t count, double probability) {
  const double expected = probability * static_cast<double>(draws);
  const double deviation = std::sqrt(expected * (1 - probability));
  return std::abs(static_cast<double>(count) - expected) <= 6 * deviation + 1;
}

TEST_CASE("ZipfTest.ZetaIsTheSum", "[ZipfTest]") {
  for (double theta : {0.0, 0.3, 0.99, 0.999})
    for (uint64_t n : {1, 2, 999, 1000, 1001, 5000, 300'000}) {
      const double sum = zeta_term_by_term(n, theta);
      CHECK(std::abs(zeta(n, theta) - sum) <= sum * 1e-11);
    }
  // The constant of YCSB's ScrambledZipfianGenerator.
  CHECK(std::abs(zeta(10'000'000'000, 0.99) - 26.46902820178302) < 1e-6);
}

TEST_CASE("ZipfTest.RanksFollowTheFormula", "[ZipfTest]") {
  for (double theta : {0.2, 0.7, 0.99})
    for (uint64_t n : {1, 2, 3, 100, 100'000}) {
      const ZipfRanks ranks(n, theta);
      std::vector<uint64_t> counts(n);
      for (uint64_t i = 0; i < draws; ++i) {
        const uint64_t rank = ranks[random_word(test::seed(), i)];
        REQUIRE(rank < n);
        ++counts[rank];
      }
      const double sum = zeta_term_by_term(n, theta);
      CHECK(is_likely(counts[0], 1 / sum));
      if (n > 1) CHECK(is_likely(counts[1], std::pow(2, -theta) / sum));
      // The method draws the other ranks nearly as often as the formula says.
      uint64_t so_far = 0;
      for (uint64_t r = 0, next = 3; r < n; ++r) {
        so_far += counts[r];
        if (r + 1 != next) continue;
        next *= 4;
        const double share = static_cast<double>(so_far) / static_cast<double>(draws);
        CHECK(std::abs(share - zeta_term_by_term(r + 1, theta) / sum) < 0.05);
      }
    }
}

TEST_CASE("ZipfTest.AThetaOf0IsUniform", "[ZipfTest]") {
  const ZipfRanks ranks(10, 0);
  std::vector<uint64_t> counts(10);
  for (uint64_t i = 0; i < draws; ++i) ++counts[ranks[random_word(test::seed(), i)]];
  for (uint64_t count : counts) CHECK(is_likely(count, 0.1));
}

TEST_CASE("ZipfTest.GrowingIsBeginningWithMore", "[ZipfTest]") {
  ZipfRanks grown(10, 0.99);
  for (uint64_t n : {11, 12, 50, 2000, 2001, 2050}) {
    grown.grow(n);
    const ZipfRanks fresh(n, 0.99);
    CHECK(grown.size() == n);
    uint64_t different = 0;
    for (uint64_t i = 0; i < 10'000; ++i) {
      const uint64_t bits = random_word(test::seed(), i);
      different += grown[bits] != fresh[bits];
    }
    CHECK(different <= 2);  // where the last bit of a double decides
  }
}

TEST_CASE("ZipfTest.ScramblingKeepsTheShares", "[ZipfTest]") {
  constexpr uint64_t n = 1000;
  const ScrambledZipf zipf(n, 0.99);
  std::vector<uint64_t> counts(n);
  for (uint64_t i = 0; i < draws; ++i) {
    const uint64_t number = zipf[random_word(test::seed(), i)];
    REQUIRE(number < n);
    ++counts[number];
  }
  // The most popular ranks of 10 billion, and on each number a share of all others.
  const double sum = zeta(10'000'000'000, 0.99);
  const uint64_t first = below(scramble(1), n);
  CHECK(counts[first] == *std::ranges::max_element(counts));
  const double share = static_cast<double>(counts[first]) / static_cast<double>(draws);
  CHECK(share > 0.95 / sum);
  CHECK(share < 1 / sum + 0.02);
  CHECK(std::ranges::count(counts, 0u) == 0);
}

TEST_CASE("ZipfTest.TheLatestIsTheMostPopular", "[ZipfTest]") {
  LatestZipf latest(100, 0.99);
  std::vector<uint64_t> counts(150);
  for (uint64_t i = 0; i < draws; ++i) {
    const uint64_t number = latest.draw(random_word(test::seed(), i), 150);
    REQUIRE(number < 150);
    ++counts[number];
  }
  const double sum = zeta_term_by_term(150, 0.99);
  CHECK(is_likely(counts[149], 1 / sum));
  CHECK(is_likely(counts[148], std::pow(2, -0.99) / sum));
  CHECK(counts[149] > counts[148]);
  CHECK(counts[148] > counts[100]);
}

}  // namespace
}  // namespace stride::benchmark

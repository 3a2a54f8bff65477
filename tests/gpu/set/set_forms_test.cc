// What is peculiar to one form of sets: slots, dense ids, collisions, byte strings.

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/backend.h"
#include "gpu/set/dense_table.h"
#include "gpu/set/slot_table.h"
#include "gpu/set/vector_layout.h"
#include "tests/gpu/set/vector_set_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

// A table that could not grow may when it is cleared.
TEST_CASE("SlotTableTest.GrowsAgainWhenItIsCleared", "[SlotTableTest]") {
  TaskPool pool(2);
  VectorSetOptions options{.form = VectorForm::slots, .capacity = 1};
  REQUIRE_OK(complete_options(&options));
  constexpr uint64_t n = 166'000, fits_in_two = 110'000;
  // There are so many ids that there is room for two parts, not for three.
  SlotTable<uint64_t> table(pool, options, options.capacity, 200'000);
  const uint64_t first_limit = table.id_limit();
  std::vector<uint64_t> ids(n);
  auto entry_of = [](uint64_t i) { return (i + 1) * 0x9E3779B97F4A7C15; };
  for (int round = 0; round < 2; ++round) {
    CHECK_MESSAGE(table.put(fits_in_two, entry_of, ids.data(), nullptr) == 0u, "round " << round);
    CHECK(table.size() == fits_in_two);
    CHECK(table.id_limit() == 2 * first_limit - 1);
    CHECK(table.put(n, entry_of, ids.data(), nullptr) > 0u);
    CHECK(table.id_limit() == 2 * first_limit - 1);
    table.clear();
    CHECK(table.size() == 0u);
    CHECK(table.id_limit() == first_limit);
    table.find(n, entry_of, ids.data());
    CHECK(std::count(ids.begin(), ids.end(), VectorSet::absent) == static_cast<int64_t>(n));
  }
}

// Which of the last vectors fit depends on the order in which a device's threads come, so that the
// size is about the same.
TEST_CASE("DeviceVectorSetTest.AClearedSetHoldsAsMuchAgain", "[DeviceVectorSetTest]") {
  auto backend = Backend::cuda({.memory_limit = 64 << 20, .host_threads = 2});
  if (!backend.ok()) SKIP(backend.status().to_string());
  auto set = (*backend)->sets().make_vector_set({.form = VectorForm::slots, .capacity = 1});
  REQUIRE_OK(set);
  constexpr uint64_t n = 100'000, most_batches = 1000;
  auto fill = [&] {
    Status status;
    std::vector<uint64_t> vectors(n);
    for (uint64_t batch = 0; status.ok() && batch < most_batches; ++batch) {
      for (uint64_t i = 0; i < n; ++i) vectors[i] = (batch * n + i + 1) * 0x9E3779B97F4A7C15;
      status = (*set)->find_or_put(Column::fixed(vectors.data(), 8, n), {}, {});
    }
    return status;
  };
  const Status first = fill();
  const uint64_t first_size = (*set)->size(), first_limit = (*set)->id_limit();
  Status cleared = (*set)->clear();
  REQUIRE_OK(cleared);
  CHECK((*set)->size() == 0u);
  CHECK((*set)->id_limit() < first_limit);
  const Status second = fill();
  const uint64_t second_size = (*set)->size();
  INFO("first " + std::to_string(first_size) + ", " + first.to_string() + "; then " +
       std::to_string(second_size) + ", " + second.to_string());
  CHECK(first.code() == StatusCode::resource_exhausted);
  CHECK(second.code() == StatusCode::resource_exhausted);
  CHECK((*set)->id_limit() == first_limit);
  CHECK_THAT(static_cast<double>(second_size),
             Catch::Matchers::WithinAbs(static_cast<double>(first_size),
                                        0.01 * static_cast<double>(first_size)));
}

// Any number of threads, and a device, give the same dense ids, where batches are large too.
TEST_CASE("DenseIdsTest.AreTheSameEverywhere", "[DenseIdsTest]") {
  std::mt19937_64 rng(seed());
  uint64_t n = 400'000;
  std::vector<uint32_t> words(n * 3);
  for (uint32_t& w : words) w = static_cast<uint32_t>(rng() % 64);
  KeyColumn column = Column::fixed(words.data(), 12, n);
  std::vector<std::unique_ptr<Backend>> backends;
  for (unsigned threads : {1u, 2u, 5u}) backends.push_back(Backend::host(threads));
  if (auto device = Backend::cuda({.host_threads = 2}); device.ok())
    backends.push_back(std::move(*device));
  std::vector<uint64_t> expected;
  for (auto& backend : backends) {
    auto set = backend->sets().make_vector_set({.words = 3, .capacity = 300'000});
    REQUIRE_OK(set);
    std::vector<uint64_t> ids(n);
    REQUIRE_OK((*set)->find_or_put(column, ids, {}));
    if (expected.empty()) expected = ids;
    CHECK_MESSAGE(ids == expected, backend->name());
  }
}

// The inverse of a number that is odd, modulo 2^64.
uint64_t inverse(uint64_t x) {
  uint64_t y = x;
  for (int i = 0; i < 6; ++i) y *= 2 - x * y;
  return y;
}

// Vectors of 4 words whose first hashes are all equal, for a set with the seed 0: the state after
// the last two words is chosen, and so what they have to be.
std::vector<uint32_t> colliding(uint64_t n) {
  std::vector<uint32_t> words;
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t state = i * VectorHash::step;
    state ^= state >> 32;
    uint64_t target = 42 * inverse(VectorHash::step), pair = target ^ state;
    for (uint64_t x : {i, pair}) {
      words.push_back(static_cast<uint32_t>(x));
      words.push_back(static_cast<uint32_t>(x >> 32));
    }
  }
  return words;
}

TEST_CASE("CollidingVectorsTest.AreToldApart", "[CollidingVectorsTest]") {
  uint64_t n = 20'000;
  std::vector<uint32_t> words = colliding(n);
  VectorHash hash{0};
  auto hash_of = [&](uint64_t row) {
    return hash.first([&](uint32_t i) { return words[row * 4 + i]; }, 4);
  };
  REQUIRE(hash_of(1) == hash_of(19'999));
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(Backend::host(2));
  if (auto device = Backend::cuda({.host_threads = 2}); device.ok())
    backends.push_back(std::move(*device));
  for (auto& backend : backends) {
    for (VectorForm form : {VectorForm::dense, VectorForm::compressed}) {
      auto set = backend->sets().make_vector_set({.words = 4, .form = form, .capacity = 1000});
      REQUIRE_OK(set);
      std::vector<uint64_t> ids(n), again(n);
      KeyColumn column = Column::fixed(words.data(), 16, n);
      Status status = (*set)->find_or_put(column, ids, {});
      REQUIRE_OK(status);
      CHECK((*set)->size() == n);
      REQUIRE_OK((*set)->find(column, again));
      CHECK(ids == again);
      std::sort(again.begin(), again.end());
      CHECK(std::unique(again.begin(), again.end()) == again.end());
    }
  }
}

TEST_CASE("ByteSetTest.AgreesWithAMap", "[ByteSetTest]") {
  std::mt19937_64 rng(seed());
  for (unsigned threads : {1u, 4u}) {
    auto backend = Backend::host(threads);
    auto set = backend->sets().make_byte_set();
    REQUIRE_OK(set);
    std::map<std::string, uint64_t> expected;
    for (uint64_t n : {0ull, 1ull, 64ull, 100'000ull, 3ull, 50'000ull}) {
      std::vector<std::byte> bytes;
      std::vector<uint64_t> offsets = {0};
      for (uint64_t i = 0; i < n; ++i) {
        uint64_t length = rng() % 20 == 0 ? rng() % 300 : rng() % 4;
        for (uint64_t b = 0; b < length; ++b)
          bytes.push_back(static_cast<std::byte>(rng() % 3 == 0 ? 0 : 255 - rng() % 9));
        offsets.push_back(bytes.size());
      }
      KeyColumn rows = Column::variable(bytes.data(), offsets.data(), n);
      std::vector<uint64_t> ids(n), bits((n + 63) / 64);
      Status status = (*set)->find_or_put(rows, ids, bits);
      REQUIRE_OK(status);
      for (uint64_t i = 0; i < n; ++i) {
        auto [at, is_new] = expected.emplace(as_text(rows[i]), expected.size());
        REQUIRE_MESSAGE(ids[i] == at->second, i);
        REQUIRE_MESSAGE(bit(bits, i) == is_new, i);
      }
      REQUIRE((*set)->size() == expected.size());
    }
    std::vector<uint64_t> short_ids(1);
    uint64_t one = 7;
    CHECK((*set)->find_or_put(Column::fixed(&one, 4, 2), short_ids, {}).code() ==
          StatusCode::invalid_argument);
    CHECK_OK((*set)->find_or_put(Column::fixed(&one, 8, 1), {}, {}));
  }
}

}  // namespace
}  // namespace stride::test

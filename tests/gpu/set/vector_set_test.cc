// Sets of vectors against standard maps, on the host and on a device.

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
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

using Vector = std::vector<uint32_t>;

struct Side {
  std::string name;
  unsigned threads;
};

std::vector<Side> sides() { return {{"host1", 1}, {"host4", 4}, {"cuda", 0}}; }

struct Form {
  std::string name;
  VectorForm form;
  bool wide;
  std::vector<uint32_t> words;
};

std::vector<Form> forms() {
  return {{"slots", VectorForm::slots, false, {1, 2, 4}},
          {"dense", VectorForm::dense, false, {1, 2, 3, 4, 7, 8, 16, 64}},
          {"compressed", VectorForm::compressed, false, {1, 2, 3, 4, 7, 8, 16, 64}},
          {"wide", VectorForm::compressed, true, {1, 2, 7, 16}}};
}

class VectorSetTest {
 protected:
  const Side side_ = GENERATE(from_range(sides()));
  const Form form_ = GENERATE(from_range(forms()));
  RunsWith name_{side_.name + "_" + form_.name};

  VectorSetTest() {
    if (side_.name != "cuda") {
      backend_ = Backend::host(side_.threads);
      return;
    }
    auto device = Backend::cuda({.host_threads = 2});
    if (!device.ok()) SKIP(device.status().to_string());
    backend_ = std::move(*device);
  }
  bool dense() const { return form_.form == VectorForm::dense; }
  // Calls test() with words_ set to each length.
  template <class Test>
  void each_length(const Test& test) {
    if (under_thread_sanitizer && side_.threads == 1) SKIP("threads share nothing");
    for (uint32_t words : form_.words) {
      INFO(std::to_string(words) + " words");
      words_ = words;
      test();
    }
  }
  VectorSetOptions options() const {
    VectorSetOptions options;
    options.words = words_;
    options.form = form_.form;
    options.wide_nodes = form_.wide;
    return options;
  }
  std::unique_ptr<VectorSet> make(const VectorSetOptions& options) {
    auto set = backend_->sets().make_vector_set(options);
    CHECK_OK(set);
    return set.ok() ? std::move(*set) : nullptr;
  }
  // Vectors that are few where `values` is small.
  std::vector<Vector> random(std::mt19937_64& rng, uint64_t n, uint32_t values) const {
    std::vector<Vector> out(n, Vector(words_));
    for (Vector& v : out)
      for (uint32_t& w : v)
        w = values ? static_cast<uint32_t>(rng() % values) - values / 2
                   : static_cast<uint32_t>(rng());
    return out;
  }
  std::unique_ptr<Backend> backend_;
  uint32_t words_ = 0;
};

std::vector<uint32_t> flat(const std::vector<Vector>& vectors) {
  std::vector<uint32_t> words;
  for (const Vector& v : vectors) words.insert(words.end(), v.begin(), v.end());
  return words;
}

bool bit(const std::vector<uint64_t>& bits, uint64_t i) { return bits[i / 64] >> i % 64 & 1; }

// What a set should hold.
class Oracle {
 public:
  explicit Oracle(bool dense) : dense_(dense) {}

  void put(VectorSet& set, const std::vector<Vector>& vectors) {
    std::vector<uint32_t> words = flat(vectors);
    KeyColumn column = Column::fixed(words.data(), set.words() * 4, vectors.size());
    std::vector<uint64_t> ids(vectors.size(), 12345),
        bits((vectors.size() + 63) / 64, ~uint64_t{0});
    Status status = set.find_or_put(column, ids, bits);
    REQUIRE_OK(status);
    std::unordered_map<Vector, uint64_t, Hash> news;
    for (uint64_t i = 0; i < vectors.size(); ++i) {
      bool known = ids_.contains(vectors[i]);
      if (bit(bits, i)) {
        REQUIRE_MESSAGE(!known, "row " << i << " is new twice");
        ++news[vectors[i]];
        REQUIRE_MESSAGE(news[vectors[i]] == 1u, "row " << i << " is new twice in a batch");
        REQUIRE_MESSAGE(vectors_.emplace(ids[i], vectors[i]).second, "id " << ids[i] << " twice");
      }
      REQUIRE(ids[i] < set.id_limit());
      if (dense_ && !known && !first_.contains(vectors[i])) {
        REQUIRE_MESSAGE(bit(bits, i), "row " << i << " comes first");
        REQUIRE(ids[i] == ids_.size() + first_.size());
        first_[vectors[i]] = ids[i];
      }
    }
    for (uint64_t i = 0; i < vectors.size(); ++i) {
      REQUIRE_MESSAGE((ids_.contains(vectors[i]) || news.contains(vectors[i])),
                      "row " << i << " lost");
      REQUIRE(vectors_.at(ids[i]) == vectors[i]);
    }
    for (uint64_t i = vectors.size(); i < bits.size() * 64; ++i) REQUIRE_FALSE(bit(bits, i));
    for (uint64_t i = 0; i < vectors.size(); ++i) ids_[vectors[i]] = ids[i];
    first_.clear();
    REQUIRE(set.size() == ids_.size());
  }
  void check(VectorSet& set, const std::vector<Vector>& others) const {
    std::vector<Vector> asked = others;
    std::vector<uint64_t> ids;
    for (const auto& [vector, id] : ids_) {
      asked.push_back(vector);
      ids.push_back(id);
    }
    std::vector<uint32_t> words = flat(asked);
    std::vector<uint64_t> found(asked.size());
    Status status = set.find(Column::fixed(words.data(), set.words() * 4, asked.size()), found);
    REQUIRE_OK(status);
    for (uint64_t i = 0; i < asked.size(); ++i) {
      auto there = ids_.find(asked[i]);
      REQUIRE_MESSAGE(found[i] == (there == ids_.end() ? VectorSet::absent : there->second), i);
    }
    std::vector<uint32_t> back(ids.size() * set.words());
    status = set.get(ids, std::as_writable_bytes(std::span(back)));
    REQUIRE_OK(status);
    uint64_t i = 0;
    for (const auto& [vector, id] : ids_) {
      REQUIRE(std::equal(vector.begin(), vector.end(), back.begin() + static_cast<int64_t>(i)));
      i += set.words();
    }
  }

 private:
  bool dense_;
  struct Hash {
    size_t operator()(const Vector& v) const {
      size_t h = 0;
      for (uint32_t word : v) h = h * 1'000'003 + word;
      return h;
    }
  };
  std::unordered_map<Vector, uint64_t, Hash> ids_, first_;
  std::unordered_map<uint64_t, Vector> vectors_;
};

TEST_CASE_METHOD(VectorSetTest, "VectorSetTest.AgreesWithAMap", "[VectorSetTest]") {
  each_length([&] {
    std::mt19937_64 rng(seed());
    uint32_t scale = 1 + words_ / 4;
    for (uint64_t capacity : {1ull, 200'000ull}) {
      VectorSetOptions o = options();
      o.capacity = capacity;
      o.seed = rng();
      auto set = make(o);
      REQUIRE(set);
      Oracle oracle(dense());
      for (uint64_t n : {0ull, 1ull, 63ull, 64ull, 1000ull, smaller_under_tsan(6000ull, 1200ull),
                         7ull, smaller_under_tsan(3000ull, 600ull)}) {
        oracle.put(*set, random(rng, n / scale, n % 2 ? 3 : 50));
        oracle.put(*set, random(rng, n / scale, 0));
      }
      oracle.check(*set, random(rng, 1000, 40));
      REQUIRE_OK(set->clear());
      CHECK(set->size() == 0u);
      Oracle again(dense());
      again.put(*set, random(rng, 500, 4));
      again.check(*set, random(rng, 100, 40));
    }
  });
}

TEST_CASE_METHOD(VectorSetTest, "VectorSetTest.GrowsWithoutLosingIds", "[VectorSetTest]") {
  each_length([&] {
    std::mt19937_64 rng(seed());
    VectorSetOptions o = options();
    o.capacity = 1;
    auto set = make(o);
    REQUIRE(set);
    uint64_t n = smaller_under_tsan(80'000, 40'000), batches = 4;
    if (form_.form == VectorForm::compressed || words_ > 16) n /= (words_ + 3) / 4 * 4;
    std::vector<uint32_t> words(n * batches * set->words());
    for (uint32_t& w : words) w = static_cast<uint32_t>(rng());
    std::vector<uint64_t> ids(n * batches), found(n * batches);
    KeyColumn all = Column::fixed(words.data(), set->words() * 4, n * batches);
    uint64_t size = 0, limit = 0;
    for (uint64_t b = 0; b < batches; ++b) {
      std::vector<uint64_t> bits((n + 63) / 64);
      std::span<uint64_t> out = std::span(ids).subspan(b * n, n);
      REQUIRE_OK(set->find_or_put(all.slice(b * n, n), out, bits));
      for (uint64_t word : bits) size += static_cast<uint64_t>(std::popcount(word));
      CHECK(set->size() == size);
      CHECK(set->id_limit() >= limit);
      limit = set->id_limit();
    }
    REQUIRE_OK(set->find_or_put(all, found, {}));
    CHECK(found == ids);
    CHECK(set->size() == size);
    REQUIRE_OK(set->find(all, found));
    CHECK(found == ids);
    std::vector<uint32_t> back(words.size());
    REQUIRE_OK(set->get(ids, std::as_writable_bytes(std::span(back))));
    CHECK(back == words);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    CHECK(found.size() == size);
    CHECK(found.back() < set->id_limit());

    // Emptied, it has the room that it began with, and grows no sooner than that is full.
    REQUIRE_OK(set->clear());
    limit = set->id_limit();
    REQUIRE_OK(set->find_or_put(all.slice(0, 1), std::span(ids).first(1), {}));
    CHECK(set->size() == 1u);
    if (form_.form == VectorForm::slots && side_.name != "cuda") {
      CHECK(set->id_limit() == limit);
    }
  });
}

TEST_CASE_METHOD(VectorSetTest, "VectorSetTest.EveryBitPatternIsData", "[VectorSetTest]") {
  each_length([&] {
    auto set = make(options());
    REQUIRE(set);
    std::vector<Vector> vectors;
    for (uint32_t word : {0u, 1u, 0xFFFFFFFFu, 0x80000000u, 0xFFFFFFFEu, 0x7FFFFFFFu}) {
      vectors.push_back(Vector(words_, word));
      for (uint32_t w = 0; w < words_; ++w) {
        vectors.push_back(Vector(words_, 0));
        vectors.back()[w] = word;
        vectors.push_back(Vector(words_, 0xFFFFFFFF));
        vectors.back()[w] = word;
      }
    }
    Oracle oracle(dense());
    oracle.check(*set, vectors);
    oracle.put(*set, vectors);
    oracle.put(*set, vectors);
    oracle.check(*set, vectors);
  });
}

TEST_CASE_METHOD(VectorSetTest, "VectorSetTest.EqualVectorsHaveOneId", "[VectorSetTest]") {
  each_length([&] {
    VectorSetOptions o = options();
    o.capacity = 10;
    auto set = make(o);
    REQUIRE(set);
    Oracle oracle(dense());
    for (uint32_t word : {0u, 7u}) {
      oracle.put(*set, std::vector<Vector>(100'000 / words_, Vector(words_, word)));
      oracle.put(*set, std::vector<Vector>(1, Vector(words_, word)));
    }
    CHECK(set->size() == 2u);
  });
}

TEST_CASE_METHOD(VectorSetTest, "VectorSetTest.BatchesOfOne", "[VectorSetTest]") {
  each_length([&] {
    std::mt19937_64 rng(seed());
    auto set = make(options());
    REQUIRE(set);
    Oracle oracle(dense());
    for (const Vector& v : random(rng, 50, 5)) oracle.put(*set, {v});
    oracle.check(*set, random(rng, 50, 5));
  });
}

// What fits is there, and what does not is told.
TEST_CASE_METHOD(VectorSetTest, "VectorSetTest.AFullSetSaysSo", "[VectorSetTest]") {
  each_length([&] {
    std::mt19937_64 rng(seed());
    VectorSetOptions o = options();
    o.capacity = 3000;
    o.load = 1;
    o.grows = false;
    o.node_capacity = uint64_t{20'000} * words_;
    auto set = make(o);
    REQUIRE(set);
    uint64_t n = 20'000;  // many times what fits
    std::vector<Vector> vectors = random(rng, n, 0);
    std::vector<uint32_t> words = flat(vectors);
    KeyColumn column = Column::fixed(words.data(), set->words() * 4, n);
    std::vector<uint64_t> ids(n), bits((n + 63) / 64), found(n);
    Status status = set->find_or_put(column, ids, bits);
    REQUIRE_MESSAGE(status.code() == StatusCode::resource_exhausted, status.to_string());
    CHECK(status.to_string().find("20000") != std::string::npos);
    CHECK(set->size() >= 3000u);
    CHECK(set->size() < 16'000u);
    uint64_t there = 0;
    std::vector<uint32_t> back(set->words());
    for (uint64_t i = 0; i < n; ++i) {
      there += bit(bits, i);
      if (ids[i] == VectorSet::absent) {
        CHECK_FALSE(bit(bits, i));
        continue;
      }
      REQUIRE_OK(set->get({&ids[i], 1}, std::as_writable_bytes(std::span(back))));
      REQUIRE(back == vectors[i]);
      if (i > 200 && set->words() > 8 && i % 64) i += 40;  // a device takes one at a time slowly
    }
    REQUIRE_OK(set->find(column, found));
    CHECK(found == ids);
    if (set->words() <= 8) CHECK(there == set->size());
    // Those that are there are found again, and new ones are refused as before.
    status = set->find_or_put(column.slice(0, 64), found = std::vector<uint64_t>(64), {});
    CHECK(found == std::vector<uint64_t>(ids.begin(), ids.begin() + 64));
  });
}

TEST_CASE_METHOD(VectorSetTest, "VectorSetTest.AnIdThatWasNeverGiven", "[VectorSetTest]") {
  each_length([&] {
    auto set = make(options());
    REQUIRE(set);
    std::vector<uint32_t> words(set->words() * 3, 5), back(set->words() * 3);
    std::vector<uint64_t> ids(3);
    auto out = std::as_writable_bytes(std::span(back));
    REQUIRE(set->get(ids, out).code() == StatusCode::not_found);  // 0, of an empty set
    REQUIRE_OK(set->find_or_put(Column::fixed(words.data(), set->words() * 4, 3), ids, {}));
    REQUIRE_OK(set->get(ids, out));
    CHECK(back == words);
    for (uint64_t bad : {set->id_limit(), set->id_limit() + 1, VectorSet::absent, ids[0] + 1}) {
      std::vector<uint64_t> asked = {ids[0], bad, bad};
      Status status = set->get(asked, out);
      CHECK_MESSAGE(status.code() == StatusCode::not_found, bad);
      CHECK_MESSAGE(status.to_string().find("row 1") != std::string::npos, status.to_string());
    }
  });
}

// What one call finds is not told to another.
TEST_CASE_METHOD(VectorSetTest, "VectorSetTest.GetsFromSeveralThreads", "[VectorSetTest]") {
  words_ = form_.words[1];
  auto set = make(options());
  REQUIRE(set);
  constexpr uint64_t n = 5000;
  std::vector<uint32_t> words(n * words_);
  std::iota(words.begin(), words.end(), 1u);
  std::vector<uint64_t> ids(n), bad;
  REQUIRE_OK(set->find_or_put(Column::fixed(words.data(), words_ * 4, n), ids, {}));
  bad = ids;
  bad[n - 7] = set->id_limit();
  TestThreads threads;
  for (const bool is_good : {true, false, true, false})
    threads.start([&, is_good] {
      std::vector<uint32_t> back(words.size());
      for (int round = 0; round < smaller_under_tsan(100, 25); ++round) {
        Status status = set->get(is_good ? ids : bad, std::as_writable_bytes(std::span(back)));
        REQUIRE_MESSAGE(status.code() == (is_good ? StatusCode::ok : StatusCode::not_found),
                        status.to_string());
        if (is_good)
          REQUIRE_MESSAGE(back == words, "round " << round);
        else
          REQUIRE_MESSAGE(status.to_string().find("row 4993:") != std::string::npos,
                          status.to_string());
      }
    });
  threads.join();
}

TEST_CASE_METHOD(VectorSetTest, "VectorSetTest.WrongRoom", "[VectorSetTest]") {
  each_length([&] {
    auto set = make(options());
    REQUIRE(set);
    std::vector<uint32_t> words(set->words() * 65 + 1, 5);
    std::vector<uint64_t> ids(65), bits(2);
    KeyColumn column = Column::fixed(words.data(), set->words() * 4, 65);
    auto code = [](const Status& s) { return s.code(); };
    auto bad = StatusCode::invalid_argument;
    CHECK(code(set->find_or_put(column, std::span(ids).first(64), bits)) == bad);
    CHECK(code(set->find_or_put(column, ids, std::span(bits).first(1))) == bad);
    CHECK(code(set->find(column, std::span(ids).first(3))) == bad);
    KeyColumn other = Column::fixed(words.data(), set->words() * 4 + 1, 2);
    CHECK(code(set->find_or_put(other, std::span(ids).first(2), {})) == bad);
    CHECK(set->size() == 0u);
    CHECK_OK(set->find_or_put(column, {}, {}));
    CHECK(set->size() == 1u);
  });
}

TEST_CASE("VectorSetOptionsTest.WhatDoesNotHold", "[VectorSetOptionsTest]") {
  auto backend = Backend::host(1);
  auto code = [&](const VectorSetOptions& o) {
    auto set = backend->sets().make_vector_set(o);
    return set.ok() ? StatusCode::ok : set.status().code();
  };
  auto bad = StatusCode::invalid_argument;
  CHECK(code({.words = 0}) == bad);
  CHECK(code({.words = 65}) == bad);
  CHECK(code({.words = 64}) == StatusCode::ok);
  CHECK(code({.words = 3, .form = VectorForm::slots}) == bad);
  CHECK(code({.load = 0}) == bad);
  CHECK(code({.load = 1.01}) == bad);
  CHECK(code({.load = 1e-300}) == bad);
  CHECK(code({.form = VectorForm::compressed, .load = 1e-18, .node_capacity = 1}) == bad);
  CHECK(code({.bucket_slots = 3}) == bad);
  CHECK(code({.bucket_slots = 128}) == bad);
  CHECK(code({.neighbours = 16}) == bad);
  CHECK(code({.capacity = uint64_t{1} << 33}) == bad);
  CHECK(code({.form = VectorForm::compressed, .node_capacity = uint64_t{1} << 33}) == bad);
}

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

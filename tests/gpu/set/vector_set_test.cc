// Sets of vectors against standard maps, on the host and on a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "gpu/backend.h"
#include "gpu/set/dense_table.h"
#include "gpu/set/slot_table.h"
#include "gpu/set/vector_layout.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

using Vector = std::vector<uint32_t>;

struct Side {
  std::string name;
  unsigned threads;
};

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

class VectorSetTest : public testing::TestWithParam<std::tuple<Side, Form>> {
 protected:
  void SetUp() override {
    const Side& side = std::get<0>(GetParam());
    if (side.name != "cuda") {
      backend_ = Backend::host(side.threads);
      return;
    }
    auto device = Backend::cuda({.host_threads = 2});
    if (!device.ok()) GTEST_SKIP() << device.status().to_string();
    backend_ = std::move(*device);
  }
  const Form& form() const { return std::get<1>(GetParam()); }
  bool dense() const { return form().form == VectorForm::dense; }
  // Calls test() with words_ set to each length.
  template <class Test>
  void each_length(const Test& test) {
    for (uint32_t words : form().words) {
      SCOPED_TRACE(std::to_string(words) + " words");
      words_ = words;
      test();
      if (HasFatalFailure()) return;
    }
  }
  VectorSetOptions options() const {
    VectorSetOptions options;
    options.words = words_;
    options.form = form().form;
    options.wide_nodes = form().wide;
    return options;
  }
  std::unique_ptr<VectorSet> make(const VectorSetOptions& options) {
    auto set = backend_->sets().make_vector_set(options);
    EXPECT_TRUE(set.ok()) << set.status().to_string();
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
    ASSERT_TRUE(status.ok()) << status.to_string();
    std::unordered_map<Vector, uint64_t, Hash> news;
    for (uint64_t i = 0; i < vectors.size(); ++i) {
      bool known = ids_.contains(vectors[i]);
      if (bit(bits, i)) {
        ASSERT_FALSE(known) << "row " << i << " is new twice";
        ++news[vectors[i]];
        ASSERT_EQ(news[vectors[i]], 1u) << "row " << i << " is new twice in a batch";
        ASSERT_TRUE(vectors_.emplace(ids[i], vectors[i]).second) << "id " << ids[i] << " twice";
      }
      ASSERT_LT(ids[i], set.id_limit());
      if (dense_ && !known && !first_.contains(vectors[i])) {
        ASSERT_TRUE(bit(bits, i)) << "row " << i << " comes first";
        ASSERT_EQ(ids[i], ids_.size() + first_.size());
        first_[vectors[i]] = ids[i];
      }
    }
    for (uint64_t i = 0; i < vectors.size(); ++i) {
      ASSERT_TRUE(ids_.contains(vectors[i]) || news.contains(vectors[i])) << "row " << i << " lost";
      ASSERT_EQ(vectors_.at(ids[i]), vectors[i]);
    }
    for (uint64_t i = vectors.size(); i < bits.size() * 64; ++i) ASSERT_FALSE(bit(bits, i));
    for (uint64_t i = 0; i < vectors.size(); ++i) ids_[vectors[i]] = ids[i];
    first_.clear();
    ASSERT_EQ(set.size(), ids_.size());
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
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (uint64_t i = 0; i < asked.size(); ++i) {
      auto there = ids_.find(asked[i]);
      ASSERT_EQ(found[i], there == ids_.end() ? VectorSet::absent : there->second) << i;
    }
    std::vector<uint32_t> back(ids.size() * set.words());
    status = set.get(ids, std::as_writable_bytes(std::span(back)));
    ASSERT_TRUE(status.ok()) << status.to_string();
    uint64_t i = 0;
    for (const auto& [vector, id] : ids_) {
      ASSERT_TRUE(std::equal(vector.begin(), vector.end(), back.begin() + static_cast<int64_t>(i)));
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

TEST_P(VectorSetTest, AgreesWithAMap) {
  each_length([&] {
    std::mt19937_64 rng(seed());
    uint32_t scale = 1 + words_ / 4;
    for (uint64_t capacity : {1ull, 200'000ull}) {
      VectorSetOptions o = options();
      o.capacity = capacity;
      o.seed = rng();
      auto set = make(o);
      ASSERT_TRUE(set);
      Oracle oracle(dense());
      for (uint64_t n : {0ull, 1ull, 63ull, 64ull, 1000ull, 6000ull, 7ull, 3000ull}) {
        oracle.put(*set, random(rng, n / scale, n % 2 ? 3 : 50));
        if (HasFatalFailure()) return;
        oracle.put(*set, random(rng, n / scale, 0));
        if (HasFatalFailure()) return;
      }
      oracle.check(*set, random(rng, 1000, 40));
      if (HasFatalFailure()) return;
      ASSERT_TRUE(set->clear().ok());
      EXPECT_EQ(set->size(), 0u);
      Oracle again(dense());
      again.put(*set, random(rng, 500, 4));
      again.check(*set, random(rng, 100, 40));
    }
  });
}

TEST_P(VectorSetTest, GrowsWithoutLosingIds) {
  each_length([&] {
    std::mt19937_64 rng(seed());
    VectorSetOptions o = options();
    o.capacity = 1;
    auto set = make(o);
    ASSERT_TRUE(set);
    uint64_t n = 80'000, batches = 4;
    if (form().form == VectorForm::compressed || words_ > 16) n /= (words_ + 3) / 4 * 4;
    std::vector<uint32_t> words(n * batches * set->words());
    for (uint32_t& w : words) w = static_cast<uint32_t>(rng());
    std::vector<uint64_t> ids(n * batches), found(n * batches);
    KeyColumn all = Column::fixed(words.data(), set->words() * 4, n * batches);
    uint64_t size = 0, limit = 0;
    for (uint64_t b = 0; b < batches; ++b) {
      std::vector<uint64_t> bits((n + 63) / 64);
      std::span<uint64_t> out = std::span(ids).subspan(b * n, n);
      ASSERT_TRUE(set->find_or_put(all.slice(b * n, n), out, bits).ok());
      for (uint64_t word : bits) size += static_cast<uint64_t>(std::popcount(word));
      EXPECT_EQ(set->size(), size);
      EXPECT_GE(set->id_limit(), limit);
      limit = set->id_limit();
    }
    ASSERT_TRUE(set->find_or_put(all, found, {}).ok());
    EXPECT_TRUE(found == ids);
    EXPECT_EQ(set->size(), size);
    ASSERT_TRUE(set->find(all, found).ok());
    EXPECT_TRUE(found == ids);
    std::vector<uint32_t> back(words.size());
    ASSERT_TRUE(set->get(ids, std::as_writable_bytes(std::span(back))).ok());
    EXPECT_TRUE(back == words);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    EXPECT_EQ(found.size(), size);
    EXPECT_LT(found.back(), set->id_limit());

    // Emptied, it has the room that it began with, and grows no sooner than that is full.
    ASSERT_TRUE(set->clear().ok());
    limit = set->id_limit();
    ASSERT_TRUE(set->find_or_put(all.slice(0, 1), std::span(ids).first(1), {}).ok());
    EXPECT_EQ(set->size(), 1u);
    if (form().form == VectorForm::slots && std::get<0>(GetParam()).name != "cuda") {
      EXPECT_EQ(set->id_limit(), limit);
    }
  });
}

TEST_P(VectorSetTest, EveryBitPatternIsData) {
  each_length([&] {
    auto set = make(options());
    ASSERT_TRUE(set);
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

TEST_P(VectorSetTest, EqualVectorsHaveOneId) {
  each_length([&] {
    VectorSetOptions o = options();
    o.capacity = 10;
    auto set = make(o);
    ASSERT_TRUE(set);
    Oracle oracle(dense());
    for (uint32_t word : {0u, 7u}) {
      oracle.put(*set, std::vector<Vector>(100'000 / words_, Vector(words_, word)));
      oracle.put(*set, std::vector<Vector>(1, Vector(words_, word)));
    }
    EXPECT_EQ(set->size(), 2u);
  });
}

TEST_P(VectorSetTest, BatchesOfOne) {
  each_length([&] {
    std::mt19937_64 rng(seed());
    auto set = make(options());
    ASSERT_TRUE(set);
    Oracle oracle(dense());
    for (const Vector& v : random(rng, 50, 5)) oracle.put(*set, {v});
    oracle.check(*set, random(rng, 50, 5));
  });
}

// What fits is there, and what does not is told.
TEST_P(VectorSetTest, AFullSetSaysSo) {
  each_length([&] {
    std::mt19937_64 rng(seed());
    VectorSetOptions o = options();
    o.capacity = 3000;
    o.load = 1;
    o.grows = false;
    o.node_capacity = uint64_t{20'000} * words_;
    auto set = make(o);
    ASSERT_TRUE(set);
    uint64_t n = 20'000;  // many times what fits
    std::vector<Vector> vectors = random(rng, n, 0);
    std::vector<uint32_t> words = flat(vectors);
    KeyColumn column = Column::fixed(words.data(), set->words() * 4, n);
    std::vector<uint64_t> ids(n), bits((n + 63) / 64), found(n);
    Status status = set->find_or_put(column, ids, bits);
    ASSERT_EQ(status.code(), StatusCode::resource_exhausted) << status.to_string();
    EXPECT_NE(status.to_string().find("20000"), std::string::npos);
    EXPECT_GE(set->size(), 3000u);
    EXPECT_LT(set->size(), 16'000u);
    uint64_t there = 0;
    std::vector<uint32_t> back(set->words());
    for (uint64_t i = 0; i < n; ++i) {
      there += bit(bits, i);
      if (ids[i] == VectorSet::absent) {
        EXPECT_FALSE(bit(bits, i));
        continue;
      }
      ASSERT_TRUE(set->get({&ids[i], 1}, std::as_writable_bytes(std::span(back))).ok());
      ASSERT_EQ(back, vectors[i]);
      if (i > 200 && set->words() > 8 && i % 64) i += 40;  // a device takes one at a time slowly
    }
    ASSERT_TRUE(set->find(column, found).ok());
    EXPECT_EQ(found, ids);
    if (set->words() <= 8) EXPECT_EQ(there, set->size());
    // Those that are there are found again, and new ones are refused as before.
    status = set->find_or_put(column.slice(0, 64), found = std::vector<uint64_t>(64), {});
    EXPECT_EQ(found, std::vector<uint64_t>(ids.begin(), ids.begin() + 64));
  });
}

TEST_P(VectorSetTest, AnIdThatWasNeverGiven) {
  each_length([&] {
    auto set = make(options());
    ASSERT_TRUE(set);
    std::vector<uint32_t> words(set->words() * 3, 5), back(set->words() * 3);
    std::vector<uint64_t> ids(3);
    auto out = std::as_writable_bytes(std::span(back));
    ASSERT_EQ(set->get(ids, out).code(), StatusCode::not_found);  // 0, of an empty set
    ASSERT_TRUE(set->find_or_put(Column::fixed(words.data(), set->words() * 4, 3), ids, {}).ok());
    ASSERT_TRUE(set->get(ids, out).ok());
    EXPECT_EQ(back, words);
    for (uint64_t bad : {set->id_limit(), set->id_limit() + 1, VectorSet::absent, ids[0] + 1}) {
      std::vector<uint64_t> asked = {ids[0], bad, bad};
      Status status = set->get(asked, out);
      EXPECT_EQ(status.code(), StatusCode::not_found) << bad;
      EXPECT_NE(status.to_string().find("row 1"), std::string::npos) << status.to_string();
    }
  });
}

// What one call finds is not told to another.
TEST_P(VectorSetTest, GetsFromSeveralThreads) {
  words_ = form().words[1];
  auto set = make(options());
  ASSERT_TRUE(set);
  constexpr uint64_t n = 5000;
  std::vector<uint32_t> words(n * words_);
  std::iota(words.begin(), words.end(), 1u);
  std::vector<uint64_t> ids(n), bad;
  ASSERT_TRUE(set->find_or_put(Column::fixed(words.data(), words_ * 4, n), ids, {}).ok());
  bad = ids;
  bad[n - 7] = set->id_limit();
  std::vector<std::thread> threads;
  for (const bool is_good : {true, false, true, false})
    threads.emplace_back([&, is_good] {
      std::vector<uint32_t> back(words.size());
      for (int round = 0; round < 100; ++round) {
        Status status = set->get(is_good ? ids : bad, std::as_writable_bytes(std::span(back)));
        ASSERT_EQ(status.code(), is_good ? StatusCode::ok : StatusCode::not_found)
            << status.to_string();
        if (is_good)
          ASSERT_EQ(back, words);
        else
          ASSERT_NE(status.to_string().find("row 4993:"), std::string::npos) << status.to_string();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(VectorSetTest, WrongRoom) {
  each_length([&] {
    auto set = make(options());
    ASSERT_TRUE(set);
    std::vector<uint32_t> words(set->words() * 65 + 1, 5);
    std::vector<uint64_t> ids(65), bits(2);
    KeyColumn column = Column::fixed(words.data(), set->words() * 4, 65);
    auto code = [](const Status& s) { return s.code(); };
    auto bad = StatusCode::invalid_argument;
    EXPECT_EQ(code(set->find_or_put(column, std::span(ids).first(64), bits)), bad);
    EXPECT_EQ(code(set->find_or_put(column, ids, std::span(bits).first(1))), bad);
    EXPECT_EQ(code(set->find(column, std::span(ids).first(3))), bad);
    KeyColumn other = Column::fixed(words.data(), set->words() * 4 + 1, 2);
    EXPECT_EQ(code(set->find_or_put(other, std::span(ids).first(2), {})), bad);
    EXPECT_EQ(set->size(), 0u);
    EXPECT_TRUE(set->find_or_put(column, {}, {}).ok());
    EXPECT_EQ(set->size(), 1u);
  });
}

std::vector<Side> sides() { return {{"host1", 1}, {"host4", 4}, {"cuda", 0}}; }

INSTANTIATE_TEST_SUITE_P(All, VectorSetTest,
                         testing::Combine(testing::ValuesIn(sides()), testing::ValuesIn(forms())),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param).name;
                         });

TEST(VectorSetOptionsTest, WhatDoesNotHold) {
  auto backend = Backend::host(1);
  auto code = [&](const VectorSetOptions& o) {
    auto set = backend->sets().make_vector_set(o);
    return set.ok() ? StatusCode::ok : set.status().code();
  };
  auto bad = StatusCode::invalid_argument;
  EXPECT_EQ(code({.words = 0}), bad);
  EXPECT_EQ(code({.words = 65}), bad);
  EXPECT_EQ(code({.words = 64}), StatusCode::ok);
  EXPECT_EQ(code({.words = 3, .form = VectorForm::slots}), bad);
  EXPECT_EQ(code({.load = 0}), bad);
  EXPECT_EQ(code({.load = 1.01}), bad);
  EXPECT_EQ(code({.load = 1e-300}), bad);
  EXPECT_EQ(code({.form = VectorForm::compressed, .load = 1e-18, .node_capacity = 1}), bad);
  EXPECT_EQ(code({.bucket_slots = 3}), bad);
  EXPECT_EQ(code({.bucket_slots = 128}), bad);
  EXPECT_EQ(code({.neighbours = 16}), bad);
  EXPECT_EQ(code({.capacity = uint64_t{1} << 33}), bad);
  EXPECT_EQ(code({.form = VectorForm::compressed, .node_capacity = uint64_t{1} << 33}), bad);
}

// A table that could not grow may when it is cleared.
TEST(SlotTableTest, GrowsAgainWhenItIsCleared) {
  TaskPool pool(2);
  VectorSetOptions options{.form = VectorForm::slots, .capacity = 1};
  ASSERT_TRUE(complete_options(&options).ok());
  constexpr uint64_t n = 166'000, fits_in_two = 110'000;
  // So many ids that there is room for two parts, not for three.
  SlotTable<uint64_t> table(pool, options, options.capacity, 200'000);
  const uint64_t first_limit = table.id_limit();
  std::vector<uint64_t> ids(n);
  auto entry_of = [](uint64_t i) { return (i + 1) * 0x9E3779B97F4A7C15; };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(table.put(fits_in_two, entry_of, ids.data(), nullptr), 0u) << "round " << round;
    EXPECT_EQ(table.size(), fits_in_two);
    EXPECT_EQ(table.id_limit(), 2 * first_limit - 1);
    EXPECT_GT(table.put(n, entry_of, ids.data(), nullptr), 0u);
    EXPECT_EQ(table.id_limit(), 2 * first_limit - 1);
    table.clear();
    EXPECT_EQ(table.size(), 0u);
    EXPECT_EQ(table.id_limit(), first_limit);
    table.find(n, entry_of, ids.data());
    EXPECT_EQ(std::count(ids.begin(), ids.end(), VectorSet::absent), static_cast<int64_t>(n));
  }
}

// Which of the last vectors fit depends on the order in which a device's threads come, so that the
// size is about the same.
TEST(DeviceVectorSetTest, AClearedSetHoldsAsMuchAgain) {
  auto backend = Backend::cuda({.memory_limit = 64 << 20, .host_threads = 2});
  if (!backend.ok()) GTEST_SKIP() << backend.status().to_string();
  auto set = (*backend)->sets().make_vector_set({.form = VectorForm::slots, .capacity = 1});
  ASSERT_TRUE(set.ok()) << set.status().to_string();
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
  ASSERT_TRUE(cleared.ok()) << cleared.to_string();
  EXPECT_EQ((*set)->size(), 0u);
  EXPECT_LT((*set)->id_limit(), first_limit);
  const Status second = fill();
  const uint64_t second_size = (*set)->size();
  SCOPED_TRACE("first " + std::to_string(first_size) + ", " + first.to_string() + "; then " +
               std::to_string(second_size) + ", " + second.to_string());
  EXPECT_EQ(first.code(), StatusCode::resource_exhausted);
  EXPECT_EQ(second.code(), StatusCode::resource_exhausted);
  EXPECT_EQ((*set)->id_limit(), first_limit);
  EXPECT_NEAR(static_cast<double>(second_size), static_cast<double>(first_size),
              0.01 * static_cast<double>(first_size));
}

// Any number of threads, and a device, give the same dense ids, where batches are large too.
TEST(DenseIdsTest, AreTheSameEverywhere) {
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
    ASSERT_TRUE(set.ok());
    std::vector<uint64_t> ids(n);
    ASSERT_TRUE((*set)->find_or_put(column, ids, {}).ok());
    if (expected.empty()) expected = ids;
    EXPECT_TRUE(ids == expected) << backend->name();
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

TEST(CollidingVectorsTest, AreToldApart) {
  uint64_t n = 20'000;
  std::vector<uint32_t> words = colliding(n);
  VectorHash hash{0};
  auto hash_of = [&](uint64_t row) {
    return hash.first([&](uint32_t i) { return words[row * 4 + i]; }, 4);
  };
  ASSERT_EQ(hash_of(1), hash_of(19'999));
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(Backend::host(2));
  if (auto device = Backend::cuda({.host_threads = 2}); device.ok())
    backends.push_back(std::move(*device));
  for (auto& backend : backends) {
    for (VectorForm form : {VectorForm::dense, VectorForm::compressed}) {
      auto set = backend->sets().make_vector_set({.words = 4, .form = form, .capacity = 1000});
      ASSERT_TRUE(set.ok());
      std::vector<uint64_t> ids(n), again(n);
      KeyColumn column = Column::fixed(words.data(), 16, n);
      Status status = (*set)->find_or_put(column, ids, {});
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ((*set)->size(), n);
      ASSERT_TRUE((*set)->find(column, again).ok());
      EXPECT_EQ(ids, again);
      std::sort(again.begin(), again.end());
      EXPECT_EQ(std::unique(again.begin(), again.end()), again.end());
    }
  }
}

TEST(ByteSetTest, AgreesWithAMap) {
  std::mt19937_64 rng(seed());
  for (unsigned threads : {1u, 4u}) {
    auto backend = Backend::host(threads);
    auto set = backend->sets().make_byte_set();
    ASSERT_TRUE(set.ok());
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
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (uint64_t i = 0; i < n; ++i) {
        auto [at, is_new] = expected.emplace(as_text(rows[i]), expected.size());
        ASSERT_EQ(ids[i], at->second) << i;
        ASSERT_EQ(bit(bits, i), is_new) << i;
      }
      ASSERT_EQ((*set)->size(), expected.size());
    }
    std::vector<uint64_t> short_ids(1);
    uint64_t one = 7;
    EXPECT_EQ((*set)->find_or_put(Column::fixed(&one, 4, 2), short_ids, {}).code(),
              StatusCode::invalid_argument);
    EXPECT_TRUE((*set)->find_or_put(Column::fixed(&one, 8, 1), {}, {}).ok());
  }
}

}  // namespace
}  // namespace stride::test

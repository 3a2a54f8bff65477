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
#include "tests/gpu/set/vector_set_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

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
      for (uint64_t n :
           {0ull, 1ull, 63ull, 64ull, 1000ull, smaller_under_sanitizers(6000ull, 1200ull), 7ull,
            smaller_under_sanitizers(3000ull, 600ull)}) {
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
    uint64_t n = smaller_under_sanitizers(80'000, 40'000), batches = 4;
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
    if (form_.form == VectorForm::slots && (side_.devices == 0 || side_.fakes)) {
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
      oracle.put(*set, std::vector<Vector>(smaller_under_sanitizers(100'000, 25'000) / words_,
                                           Vector(words_, word)));
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
    // More than fits. Each that does not takes a look at all of a table.
    const uint64_t n = smaller_under_sanitizers(20'000, 8'000);
    o.node_capacity = n * words_;
    auto set = make(o);
    REQUIRE(set);
    std::vector<Vector> vectors = random(rng, n, 0);
    std::vector<uint32_t> words = flat(vectors);
    KeyColumn column = Column::fixed(words.data(), set->words() * 4, n);
    std::vector<uint64_t> ids(n), bits((n + 63) / 64), found(n);
    Status status = set->find_or_put(column, ids, bits);
    REQUIRE_MESSAGE(status.code() == StatusCode::resource_exhausted, status.to_string());
    CHECK(status.to_string().find(std::to_string(n)) != std::string::npos);
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
      if (under_sanitizer && i % 16 != 0) continue;
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

}  // namespace
}  // namespace stride::test

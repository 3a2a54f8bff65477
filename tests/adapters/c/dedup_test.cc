// Sets of vectors and dedup tables through the C interface, beside a map.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>

#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

constexpr uint32_t words = 2;

class CDedupTest : public CTest {
 protected:
  CDedupTest() {
    REQUIRE_C_OK(stride_set_options_init(&options_, sizeof options_));
    for (uint32_t& word : vectors_) word = static_cast<uint32_t>(random_() % 40);
  }
  uint64_t n() const { return vectors_.size() / words; }
  uint64_t vector(uint64_t i) const {
    return uint64_t{vectors_[2 * i]} << 32 | vectors_[2 * i + 1];
  }
  // find_or_put(ids, was_new) of all vectors into what is empty, or has them all.
  template <class Put>
  void expect_put(const Put& put, bool empty, bool dense) {
    CHECK_C_OK(put(ids_.data(), bits_.data()));
    std::map<uint64_t, uint64_t> model;
    for (uint64_t i = 0; i < n(); ++i) {
      auto [at, fresh] = model.emplace(vector(i), dense ? model.size() : ids_[i]);
      CHECK(ids_[i] == at->second);
      CHECK(bit(bits_.data(), i) == (fresh && empty));
    }
    different_ = model.size();
  }
  template <class Find, class Get>
  void expect_found(const Find& find, const Get& get) {
    std::vector<uint64_t> found(n());
    CHECK_C_OK(find(found.data()));
    CHECK(found == ids_);
    std::vector<uint32_t> back(vectors_.size());
    CHECK_C_OK(get(back.data()));
    CHECK(back == vectors_);
  }
  void expect_put(stride_dedup_table* table, bool empty) {
    expect_put(
        [&](uint64_t* ids, uint64_t* bits) {
          return stride_dedup_find_or_put(table, vectors_.data(), n(), ids, bits);
        },
        empty, true);
    expect_found([&](uint64_t* ids) { return stride_dedup_find(table, vectors_.data(), n(), ids); },
                 [&](uint32_t* back) { return stride_dedup_get(table, ids_.data(), n(), back); });
  }

  std::mt19937_64 random_{seed()};
  stride_set_options options_{};
  std::vector<uint32_t> vectors_ = std::vector<uint32_t>(2 * 3000);
  std::vector<uint64_t> ids_ = std::vector<uint64_t>(3000), bits_ = std::vector<uint64_t>(47);
  uint64_t different_ = 0;
};

TEST_CASE_METHOD(CDedupTest, "CDedupTest.SetsOfAllForms", "[CDedupTest]") {
  for (int form : {STRIDE_SET_DENSE, STRIDE_SET_SLOTS, STRIDE_SET_COMPRESSED}) {
    INFO("form " << form);
    options_.form = form;
    stride_set* set;
    REQUIRE_C_OK(stride_set_create(&options_, &set));
    auto put = [&](uint64_t* ids, uint64_t* bits) {
      return stride_set_find_or_put(set, vectors_.data(), n(), ids, bits);
    };
    for (bool empty : {true, false}) expect_put(put, empty, form == STRIDE_SET_DENSE);
    expect_found([&](uint64_t* ids) { return stride_set_find(set, vectors_.data(), n(), ids); },
                 [&](uint32_t* back) { return stride_set_get(set, ids_.data(), n(), back); });
    stride_set_info info{sizeof info};
    CHECK_C_OK(stride_set_read_info(set, &info));
    CHECK(info.vectors == different_);
    for (uint64_t id : ids_) CHECK(id < info.id_limit);
    CHECK(info.memory_bytes > 0u);
    const uint32_t none[words] = {41, 41};
    uint64_t id = 0;
    CHECK_C_OK(stride_set_find(set, none, 1, &id));
    CHECK(id == STRIDE_ABSENT);
    uint32_t back[words];
    CHECK_C_ERROR(stride_set_get(set, &id, 1, back), STRIDE_NOT_FOUND, "row 0");
    CHECK_C_OK(stride_set_find_or_put(set, none, 1, nullptr, nullptr));
    CHECK_C_OK(stride_set_clear(set));
    expect_put(put, true, form == STRIDE_SET_DENSE);
    CHECK_C_OK(stride_set_find_or_put(set, nullptr, 0, nullptr, nullptr));
    CHECK_C_OK(stride_set_release(set));
    CHECK(stride_set_clear(set) == STRIDE_INVALID_ARGUMENT);
  }
}

TEST_CASE_METHOD(CDedupTest, "CDedupTest.WhatSetsRefuse", "[CDedupTest]") {
  stride_set* set = nullptr;
  CHECK_C_ERROR(stride_set_create(&options_, nullptr), invalid, "set is NULL");
  CHECK_C_ERROR(stride_set_options_init(nullptr, sizeof options_), invalid, "NULL");
  auto refused = [&](auto member, auto wrong) {
    stride_set_options o = options_;
    o.*member = wrong;
    set = reinterpret_cast<stride_set*>(1);
    CHECK(stride_set_create(&o, &set) == invalid);
    CHECK(set == nullptr);
  };
  refused(&stride_set_options::size, 0);
  refused(&stride_set_options::words, 0);
  refused(&stride_set_options::words, 65);
  refused(&stride_set_options::form, 3);
  refused(&stride_set_options::form, -1);
  refused(&stride_set_options::backend, 3);
  refused(&stride_set_options::load, 0.0);
  refused(&stride_set_options::load, 1.5);
  options_.words = 3;
  options_.form = STRIDE_SET_SLOTS;
  CHECK_C_ERROR(stride_set_create(&options_, &set), invalid, "3 words");
  options_.words = words;
  options_.capacity = uint64_t{1} << 50;
  options_.grows = 0;
  CHECK_C_ERROR(stride_set_create(&options_, &set), invalid, "capacity");
  options_.capacity = 10;
  REQUIRE_C_OK(stride_set_create(&options_, &set));
  CHECK_C_ERROR(stride_set_find_or_put(set, vectors_.data(), n(), ids_.data(), nullptr),
                STRIDE_RESOURCE_EXHAUSTED, "no room");
  CHECK_C_ERROR(stride_set_find_or_put(set, nullptr, 1, ids_.data(), nullptr), invalid, "vectors");
  CHECK_C_ERROR(stride_set_find_or_put(set, vectors_.data(), UINT64_MAX, nullptr, nullptr), invalid,
                "rows");
  CHECK_C_ERROR(stride_set_find(set, nullptr, 1, ids_.data()), invalid, "vectors is NULL");
  CHECK_C_ERROR(stride_set_find(set, vectors_.data(), 1, nullptr), invalid, "ids is NULL");
  CHECK_C_ERROR(stride_set_get(set, nullptr, 1, vectors_.data()), invalid, "ids is NULL");
  CHECK_C_ERROR(stride_set_get(set, ids_.data(), 1, nullptr), invalid, "vectors is NULL");
  CHECK_C_ERROR(stride_set_read_info(set, nullptr), invalid, "info is NULL");
  CHECK_C_OK(stride_set_release(set));
}

TEST_CASE_METHOD(CDedupTest, "CDedupTest.TablesKeepTheirIds", "[CDedupTest]") {
  stride_dedup_table* table;
  stride_dedup_options o;
  REQUIRE_C_OK(stride_dedup_options_init(&o, sizeof o));
  CHECK(o.compressed == 0);
  o.compressed = GENERATE(0, 1);
  REQUIRE_C_OK(stride_dedup_open(db_, "states", &o, &table));
  expect_put(table, true);
  uint64_t size = 0, bytes = 0;
  CHECK_C_OK(stride_dedup_read_info(table, &size, &bytes));
  CHECK(size == different_);
  CHECK(bytes > 0u);
  CHECK_C_OK(stride_dedup_release(table));
  CHECK_C_OK(stride_close(db_));
  REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &db_));
  stride_dedup_options other = o;
  other.compressed = !o.compressed;
  CHECK_C_ERROR(stride_dedup_open(db_, "states", &other, &table), STRIDE_INVALID_ARGUMENT,
                (o.compressed ? "is a compressed" : "is no compressed"));
  CHECK(table == nullptr);
  REQUIRE_C_OK(stride_dedup_open(db_, "states", &o, &table));
  expect_put(table, false);
  CHECK_C_OK(stride_dedup_release(table));
  CHECK(stride_dedup_read_info(table, &size, nullptr) == STRIDE_INVALID_ARGUMENT);
}

TEST_CASE_METHOD(CDedupTest, "CDedupTest.WhatTablesRefuse", "[CDedupTest]") {
  stride_dedup_table* table;
  stride_dedup_options o;
  REQUIRE_C_OK(stride_dedup_options_init(&o, sizeof o));
  CHECK(o.durability == STRIDE_DURABILITY_DEFAULT);
  CHECK_C_ERROR(stride_dedup_options_init(nullptr, sizeof o), invalid, "NULL");
  CHECK_C_ERROR(stride_dedup_open(db_, nullptr, nullptr, &table), invalid, "name is NULL");
  CHECK_C_ERROR(stride_dedup_open(db_, "s", nullptr, nullptr), invalid, "table is NULL");
  CHECK_C_ERROR(stride_dedup_open(db_, "t", nullptr, &table), invalid, "width");
  CHECK(table == nullptr);
  o.durability = 3;
  CHECK_C_ERROR(stride_dedup_open(db_, "s", &o, &table), invalid, "durability 3");
  o.durability = STRIDE_DURABILITY_NONE;
  o.words = 65;
  CHECK_C_ERROR(stride_dedup_open(db_, "s", &o, &table), invalid, "65 words");
  o.words = words;
  REQUIRE_C_OK(stride_dedup_open(db_, "s", &o, &table));
  CHECK_C_ERROR(stride_dedup_find_or_put(table, nullptr, 1, nullptr, nullptr), invalid, "vectors");
  CHECK_C_ERROR(stride_dedup_find(table, vectors_.data(), 1, nullptr), invalid, "ids is NULL");
  CHECK_C_ERROR(stride_dedup_get(table, ids_.data(), 1, nullptr), invalid, "vectors is NULL");
  CHECK_C_ERROR(stride_dedup_get(table, ids_.data(), 1, vectors_.data()), STRIDE_NOT_FOUND, "row");
  expect_put(table, true);
  // Closing the database ends puts; what was there is found on.
  CHECK_C_OK(stride_close(db_));
  const uint32_t other[words] = {99, 99};
  CHECK(stride_dedup_find_or_put(table, other, 1, ids_.data(), nullptr) == STRIDE_CLOSED);
  uint64_t id = 0;
  CHECK_C_OK(stride_dedup_find(table, other, 1, &id));
  CHECK(id == STRIDE_ABSENT);
  REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &db_));  // its lock is gone
  CHECK_C_OK(stride_dedup_release(table));
  REQUIRE_C_OK(stride_dedup_open(db_, "s", &o, &table));
  expect_put(table, false);
  CHECK_C_OK(stride_dedup_release(table));
}

TEST_CASE_METHOD(CDedupTest, "CDedupTest.ForkedChildren", "[CDedupTest]") {
#if defined(__SANITIZE_THREAD__)
  SKIP("ThreadSanitizer knows no forks of processes with threads");
#endif
  stride_set* set;
  stride_dedup_table* table;
  REQUIRE_C_OK(stride_set_create(nullptr, &set));
  REQUIRE_C_OK(stride_dedup_open(db_, "states", nullptr, &table));
  expect_put(table, true);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const uint32_t vector[words] = {1, 2};
    uint64_t id;
    if (stride_set_find_or_put(set, vector, 1, &id, nullptr) != STRIDE_CLOSED) _exit(1);
    if (stride_dedup_find_or_put(table, vector, 1, &id, nullptr) != STRIDE_CLOSED) _exit(2);
    if (stride_dedup_find(table, vector, 1, &id) != STRIDE_CLOSED) _exit(3);
    if (stride_set_release(set) != STRIDE_OK) _exit(4);
    _exit(stride_dedup_release(table) == STRIDE_OK ? 0 : 5);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_MESSAGE(WIFEXITED(status), "signal " << WTERMSIG(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK_C_OK(stride_set_release(set));
  CHECK_C_OK(stride_dedup_release(table));
}

}  // namespace
}  // namespace stride::test

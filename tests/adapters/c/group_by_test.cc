// Groups through the C interface, beside a map.
#include <algorithm>
#include <map>
#include <random>

#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

struct CGroup {
  uint64_t count = 0;
  int64_t sum = 0;
  int32_t min = INT32_MAX, max = INT32_MIN;
};

class CGroupByTest : public CTest {
 protected:
  CGroupByTest() {
    std::mt19937_64 random(seed());
    Strings keys, values;
    for (int i = 0; i < 2000; ++i) {
      std::string key = {static_cast<char>('a' + random() % 5), static_cast<char>('a' + i % 26)};
      keys.push_back(key + std::to_string(i));
      auto number = static_cast<int32_t>(random());
      values.emplace_back(reinterpret_cast<const char*>(&number), sizeof number);
      CGroup& g = model_[key.substr(0, 1)];
      ++g.count;
      g.sum += number;
      g.min = std::min(g.min, number);
      g.max = std::max(g.max, number);
    }
    put(table_, keys, values);
    REQUIRE_C_OK(stride_group_options_init(&options_, sizeof options_));
    snapshot();
  }
  std::map<std::string, CGroup> model_;
  stride_group_options options_{};
  stride_groups* groups_ = nullptr;
};

TEST_CASE_METHOD(CGroupByTest, "CGroupByTest.AgreesWithAMap", "[CGroupByTest]") {
  options_.prefix_bytes = 1;
  options_.numbers = STRIDE_NUMBERS_I32;
  options_.sum = options_.min = options_.max = 1;
  REQUIRE_C_OK(stride_group_by(snapshot_, table_, nullptr, &options_, &groups_));
  stride_group_columns c{};
  c.size = sizeof c;
  REQUIRE_C_OK(stride_groups_read(groups_, &c));
  REQUIRE(c.groups == model_.size());
  CHECK(c.keys.size == c.groups);
  CHECK(c.float_sums == nullptr);
  uint64_t at = 0;
  for (const auto& [key, group] : model_) {
    CHECK(row_of(c.keys, at) == key);
    CHECK(c.counts[at] == group.count);
    CHECK(c.integer_sums[at] == group.sum);
    CHECK(static_cast<const int32_t*>(c.mins)[at] == group.min);
    CHECK(static_cast<const int32_t*>(c.maxes)[at] == group.max);
    ++at;
  }
  CHECK_C_OK(stride_groups_release(groups_));
  CHECK(stride_groups_read(groups_, &c) == STRIDE_INVALID_ARGUMENT);
}

// The defaults count all rows, also of bytes; a range counts its own.
TEST_CASE_METHOD(CGroupByTest, "CGroupByTest.RangesAndDefaults", "[CGroupByTest]") {
  stride_scan_options range;
  REQUIRE_C_OK(stride_scan_options_init(&range, sizeof range));
  range.prefix = bytes_of("c");
  stride_group_columns c{};
  c.size = sizeof c;
  options_.numbers = STRIDE_NUMBERS_I32;
  REQUIRE_C_OK(stride_group_by(snapshot_, table_, &range, &options_, &groups_));
  REQUIRE_C_OK(stride_groups_read(groups_, &c));
  REQUIRE(c.groups == 1u);
  CHECK(c.counts[0] == model_["c"].count);
  CHECK(c.integer_sums == nullptr);
  CHECK(c.mins == nullptr);
  CHECK_C_OK(stride_groups_release(groups_));
  range.prefix = bytes_of("z");
  REQUIRE_C_OK(stride_group_by(snapshot_, table_, &range, &options_, &groups_));
  REQUIRE_C_OK(stride_groups_read(groups_, &c));
  CHECK(c.groups == 0u);
  CHECK(c.keys.size == 0u);
  CHECK(c.counts == nullptr);
  CHECK_C_OK(stride_groups_release(groups_));
}

TEST_CASE_METHOD(CGroupByTest, "CGroupByTest.WhatIsRefused", "[CGroupByTest]") {
  CHECK_C_ERROR(stride_group_options_init(nullptr, sizeof options_), invalid, "NULL");
  CHECK_C_ERROR(stride_group_by(snapshot_, table_, nullptr, &options_, nullptr), invalid, "groups");
  options_.sum = 1;
  groups_ = reinterpret_cast<stride_groups*>(1);
  CHECK_C_ERROR(stride_group_by(snapshot_, table_, nullptr, &options_, &groups_), invalid, "t");
  CHECK(groups_ == nullptr);
  options_.numbers = STRIDE_NUMBERS_F64;  // values have 4 bytes
  CHECK_C_ERROR(stride_group_by(snapshot_, table_, nullptr, &options_, &groups_), invalid, "'t'");
  for (int type : {-1, 5}) {
    options_.numbers = type;
    CHECK_C_ERROR(stride_group_by(snapshot_, table_, nullptr, &options_, &groups_), invalid,
                  "possible");
  }
  options_.numbers = STRIDE_NUMBERS_I32;
  options_.reserved = 1;
  CHECK_C_ERROR(stride_group_by(snapshot_, table_, nullptr, &options_, &groups_), invalid,
                "reserved");
  options_.reserved = 0;
  stride_scan_options range;
  REQUIRE_C_OK(stride_scan_options_init(&range, sizeof range));
  range.from.size = 3;
  CHECK_C_ERROR(stride_group_by(snapshot_, table_, &range, &options_, &groups_), invalid, "bound");
  REQUIRE_C_OK(stride_group_by(snapshot_, table_, nullptr, &options_, &groups_));
  stride_group_columns c{};
  CHECK_C_ERROR(stride_groups_read(groups_, &c), invalid, "sizeof(stride_group_columns)");
  CHECK_C_ERROR(stride_groups_read(groups_, nullptr), invalid, "columns is NULL");
  CHECK_C_OK(stride_groups_release(groups_));
}

}  // namespace
}  // namespace stride::test

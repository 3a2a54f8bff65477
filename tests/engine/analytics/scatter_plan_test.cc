// scatter plans of mapping tables, beside a map and a plain loop.
#include "engine/scatter_plan.h"

#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "engine/analytics/scatter_targets.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

std::string number(uint64_t n, uint32_t width) {
  return std::string(reinterpret_cast<const char*>(&n), width);
}
uint64_t number(const std::string& value) {
  uint64_t n = 0;
  std::memcpy(&n, value.data(), value.size());
  return n;
}

constexpr uint64_t nowhere = UINT64_MAX;

struct Expected {
  std::vector<uint64_t> targets;  // of each source, or nowhere
  uint64_t count = 0;
  uint64_t unmapped = 0, first = UINT64_MAX;

  void lacks(uint64_t source) {
    ++unmapped;
    first = std::min(first, source);
    targets.push_back(nowhere);
  }
};

class ScatterPlanTest {
 protected:
  ScatterPlanTest() { reopen(); }
  void reopen(std::shared_ptr<Backend> backend = nullptr) {
    db_.reset();
    Options options;
    options.file_system = &files_;
    options.threads = 2;
    options.backend = BackendKind::host;
    options.shared_backend = std::move(backend);
    db_ = std::move(*Database::open("/db", options));
    mapping_ = *db_->open_or_create_table("mapping");
  }
  void put(const Model& rows) {
    WriteTransaction t = db_->begin();
    Rows keys, values;
    for (const auto& [key, value] : rows) {
      keys.add(key);
      values.add(value);
      model_[key] = value;
    }
    REQUIRE_OK(t.put(mapping_, keys.column(), values.column()));
    REQUIRE_OK(t.commit());
  }
  void erase(const std::string& key) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.erase(mapping_, key));
    REQUIRE_OK(t.commit());
    model_.erase(key);
  }
  void clear_table() {
    REQUIRE_OK(db_->drop_table("mapping"));
    mapping_ = *db_->create_table("mapping");
    model_.clear();
  }

  Expected expect_numbers(const std::vector<std::string>& sources, uint64_t targets) const {
    Expected e;
    e.count = targets;
    for (uint64_t i = 0; i < sources.size(); ++i) {
      auto at = model_.find(sources[i]);
      uint64_t limit = targets ? targets : max_scatter_plan_targets;
      if (at == model_.end() || number(at->second) >= limit) {
        e.lacks(i);
      } else {
        e.targets.push_back(number(at->second));
        if (targets == 0) e.count = std::max(e.count, e.targets.back() + 1);
      }
    }
    return e;
  }
  std::vector<std::string> all_keys() const {
    std::vector<std::string> keys;
    for (const auto& row : model_) keys.push_back(row.first);
    return keys;
  }

  void expect_report(const ScatterPlan& plan, const Expected& expected) {
    CHECK(plan.sources() == expected.targets.size());
    REQUIRE(plan.targets() == expected.count);
    CHECK(plan.unmapped() == expected.unmapped);
    CHECK(plan.first_unmapped() == expected.first);
    CHECK(plan.memory_bytes() >= 4 * plan.sources());
  }
  // T, of numbers so small that floats add them exactly.
  template <class T>
  std::vector<T> small_numbers(uint64_t n) {
    std::vector<T> numbers(n);
    for (T& x : numbers) x = static_cast<T>(static_cast<int64_t>(random_() % 15) - 7);
    return numbers;
  }
  template <class T>
  void expect_maps(const ScatterPlan& plan, const Expected& expected) {
    for (bool clear : {false, true}) {
      std::vector<T> weights = small_numbers<T>(expected.targets.size());
      std::vector<T> into = small_numbers<T>(expected.count), sums = into;
      if (clear) std::fill(sums.begin(), sums.end(), T{0});
      for (uint64_t i = 0; i < weights.size(); ++i)
        if (expected.targets[i] != nowhere) sums[expected.targets[i]] += weights[i];
      ScatterMode mode = random_() % 2 ? ScatterMode::fast : ScatterMode::reproducible;
      REQUIRE_OK(plan.map(Numbers::of<T>(weights), MutableNumbers::of<T>(into),
                          {.mode = mode, .clear = clear}));
      REQUIRE_MESSAGE(into == sums, plan.backend_name());
    }
  }
  void expect_plan(const ScatterPlan& plan, const Expected& expected) {
    expect_report(plan, expected);
    expect_maps<float>(plan, expected);
    expect_maps<double>(plan, expected);
    expect_maps<int32_t>(plan, expected);
    expect_maps<int64_t>(plan, expected);
  }
  void expect_map_weights(const std::vector<std::string>& sources, const Expected& expected,
                          const ScatterPlanOptions& options) {
    Rows keys(sources);
    std::vector<int32_t> weights = small_numbers<int32_t>(sources.size());
    std::vector<int32_t> into = small_numbers<int32_t>(expected.count), sums = into;
    bool clear = random_() % 2;
    if (clear) std::fill(sums.begin(), sums.end(), 0);
    for (uint64_t i = 0; i < weights.size(); ++i)
      if (expected.targets[i] != nowhere) sums[expected.targets[i]] += weights[i];
    ScatterReport report;
    REQUIRE_OK(map_weights(db_->snapshot(), mapping_, keys.column(), Numbers::of<int32_t>(weights),
                           MutableNumbers::of<int32_t>(into), options, {.clear = clear}, &report));
    CHECK(into == sums);
    CHECK(report.out_of_range == expected.unmapped);
    CHECK(report.first_out_of_range == expected.first);
  }
  void refused(const Status& s, StatusCode code, const std::string& mentions) {
    CHECK_MESSAGE(to_string(s.code()) == to_string(code), s.to_string());
    CHECK_MESSAGE(s.to_string().find(mentions) != std::string::npos, s.to_string());
  }

  std::mt19937_64 random_{seed()};
  MemoryFileSystem files_;
  std::vector<std::shared_ptr<Backend>> backends_ = all_backends();
  std::unique_ptr<Database> db_;
  Table mapping_;
  Model model_;
};

TEST_CASE_METHOD(ScatterPlanTest, "ScatterPlanTest.NumbersAreThoseOfAMap", "[ScatterPlanTest]") {
  for (int round = 0; round < 12; ++round) {
    clear_table();
    const uint32_t width = round % 2 ? 4 : 8;
    const uint64_t different = 1 + random_() % (round == 3 ? 50'000 : 3000);
    const uint64_t targets = round % 4 == 0 ? 1 : 1 + random_() % 2000;
    for (int commits = 1 + static_cast<int>(random_() % 3); commits > 0; --commits) {
      Model rows;
      for (uint64_t i = random_() % (2 * different); i > 0; --i)
        rows["s" + std::to_string(random_() % different)] =
            number(random_() % 20 ? random_() % targets : targets + random_() % 5, width);
      put(rows);
      if (!model_.empty()) erase(model_.begin()->first);
    }
    std::vector<std::string> sources(round == 5 ? 200'000 : random_() % 20'000);
    for (std::string& s : sources)
      s = "s" + std::to_string(random_() % (different + different / 4));
    Rows keys(sources);
    for (const auto& backend : backends_) {
      reopen(random_() % 2 ? backend : nullptr);
      for (uint64_t given : {uint64_t{0}, targets}) {
        ScatterPlanOptions options{.targets = given, .backend = backend};
        Expected expected = expect_numbers(sources, given);
        auto plan = ScatterPlan::make(db_->snapshot(), mapping_, keys.column(), options);
        REQUIRE_OK(plan);
        CHECK(plan->backend() == backend);
        expect_plan(*plan, expected);
        CHECK(plan->target_keys().size == 0u);
        // Without a number of targets there are as many as T has.
        if (given) expect_map_weights(sources, expected, {.targets = given % 2 ? given : 0});
        // The table itself.
        Expected all = expect_numbers(all_keys(), given);
        auto matrix = ScatterPlan::of_table(db_->snapshot(), mapping_, options);
        REQUIRE_OK(matrix);
        expect_plan(*matrix, all);
      }
    }
  }
}

TEST_CASE_METHOD(ScatterPlanTest, "ScatterPlanTest.NamesAreNumberedInTheirOrder",
                 "[ScatterPlanTest]") {
  const std::string zero(1, '\0'), high(1, '\xFF');
  for (int round = 0; round < 6; ++round) {
    clear_table();
    std::vector<std::string> names = {
        "",         zero,       zero + zero, "a",         "aa",        "b",
        "a" + zero, "a" + high, high,        high + zero, high + high, std::string(70'000, 'x'),
        "aaaaaaaab"};
    for (int i = 0; i < (round < 2 ? 0 : 3000); ++i)
      names.push_back(std::string(random_() % 12, "\0\1a\xFF"[random_() % 4]) +
                      std::to_string(random_() % 500));
    Model rows;
    for (uint64_t i = 0; i < 4 * names.size(); ++i)
      rows["s" + std::to_string(i)] = names[round == 0 ? 0 : random_() % names.size()];
    put(rows);
    std::vector<std::string> sources;
    for (uint64_t i = random_() % 10'000; i > 0; --i)
      sources.push_back("s" + std::to_string(random_() % (5 * names.size())));
    auto expect_names = [&](const std::vector<std::string>& of) {
      std::map<std::string, uint64_t> places;
      for (const std::string& s : of)
        if (model_.contains(s)) places[model_[s]];
      Expected e;
      for (auto& [name, place] : places) place = e.count++;
      for (uint64_t i = 0; i < of.size(); ++i) {
        if (model_.contains(of[i])) {
          e.targets.push_back(places[model_[of[i]]]);
        } else {
          e.lacks(i);
        }
      }
      return std::pair(e, places);
    };
    auto check = [&](const Result<ScatterPlan>& plan, const std::vector<std::string>& of) {
      REQUIRE_OK(plan);
      auto [expected, places] = expect_names(of);
      expect_plan(*plan, expected);
      KeyColumn keys = plan->target_keys();
      REQUIRE(keys.size == places.size());
      uint64_t at = 0;
      for (const auto& place : places) REQUIRE(text(keys[at++]) == place.first);
    };
    for (const auto& backend : backends_) {
      ScatterPlanOptions options{.values = ScatterPlanTargets::keys, .backend = backend};
      check(ScatterPlan::make(db_->snapshot(), mapping_, Rows(sources).column(), options), sources);
      check(ScatterPlan::of_table(db_->snapshot(), mapping_, options), all_keys());
    }
    expect_map_weights(sources, expect_names(sources).first, {.values = ScatterPlanTargets::keys});
  }
}

TEST_CASE_METHOD(ScatterPlanTest, "ScatterPlanTest.WhatHasNoTarget", "[ScatterPlanTest]") {
  put({{"a", number(1, 4)}, {"b", number(7, 4)}, {"c", number(0, 4)}});
  Snapshot now = db_->snapshot();
  std::vector<float> weights = {1, 2, 4, 8, 16}, into = {0, 0};
  auto make = [&](const std::vector<std::string>& sources, ScatterPlanOptions options) {
    return ScatterPlan::make(now, mapping_, Rows(sources).column(), options);
  };
  auto plan = make({"c", "x", "a", "b", "a"}, {.targets = 2});
  CHECK(plan->unmapped() == 2u);
  CHECK(plan->first_unmapped() == 1u);
  REQUIRE_OK(plan->map(Numbers::of<float>(weights), MutableNumbers::of<float>(into)));
  CHECK(into == (std::vector<float>{1, 20}));
  // Or not at all.
  ScatterPlanOptions strict{.targets = 2, .unmapped = Unmapped::error};
  refused(make({"c", "x", "a", "b"}, strict).status(), StatusCode::not_found,
          "table 'mapping': source 1 (key 'x') is not there");
  refused(make({"c", "b", "x"}, strict).status(), StatusCode::invalid_argument,
          "source 1 (key 'b') has the target 7, and there are 2");
  CHECK_OK(make({"c", "a"}, strict));
  refused(ScatterPlan::of_table(now, mapping_, strict).status(), StatusCode::invalid_argument,
          "source 1 (key 'b') has the target 7");
  refused(
      make({"\x01"}, {.values = ScatterPlanTargets::keys, .unmapped = Unmapped::error}).status(),
      StatusCode::not_found, "source 0 (key 0x01) is not there");
  std::vector<std::string> sources = {"c", "x", "a", "b", "a"};
  refused(map_weights(now, mapping_, Rows(sources).column(), Numbers::of<float>(weights),
                      MutableNumbers::of<float>(into), strict, {.clear = true}),
          StatusCode::not_found, "source 1");
  CHECK(into == (std::vector<float>{1, 20}));
}

TEST_CASE_METHOD(ScatterPlanTest, "ScatterPlanTest.ValuesOfAnotherWidth", "[ScatterPlanTest]") {
  for (const std::string& wrong : {std::string(), std::string("abc"), number(1, 8)}) {
    clear_table();
    put({{"a", number(1, 4)}, {"b", wrong}, {"c", number(1, 4)}});
    std::vector<std::string> sources = {"x", "a", "c", "b"};
    std::string bytes = "a value of " + std::to_string(wrong.size()) + " bytes";
    refused(ScatterPlan::make(db_->snapshot(), mapping_, Rows(sources).column()).status(),
            StatusCode::invalid_argument, "table 'mapping': source 3 (key 'b') has " + bytes);
    refused(ScatterPlan::of_table(db_->snapshot(), mapping_).status(), StatusCode::invalid_argument,
            "source 1 (key 'b') has " + bytes);
    std::vector<int32_t> weights(4), into(2, 5);
    refused(map_weights(db_->snapshot(), mapping_, Rows(sources).column(),
                        Numbers::of<int32_t>(weights), MutableNumbers::of<int32_t>(into), {},
                        {.clear = true}),
            StatusCode::invalid_argument, bytes);
    CHECK(into == (std::vector<int32_t>{5, 5}));
    // What is not asked for is not looked at.
    sources.pop_back();
    CHECK_OK(ScatterPlan::make(db_->snapshot(), mapping_, Rows(sources).column()));
  }
  clear_table();
  put({{"a", "123"}});
  refused(ScatterPlan::of_table(db_->snapshot(), mapping_).status(), StatusCode::invalid_argument,
          "3 bytes");
}

TEST_CASE_METHOD(ScatterPlanTest, "ScatterPlanTest.NothingAndOne", "[ScatterPlanTest]") {
  for (const auto& backend : backends_) {
    clear_table();
    Snapshot empty = db_->snapshot();
    for (ScatterPlanTargets values : {ScatterPlanTargets::numbers, ScatterPlanTargets::keys}) {
      ScatterPlanOptions options{.values = values, .backend = backend};
      auto none = ScatterPlan::make(empty, mapping_, KeyColumn(), options);
      REQUIRE_OK(none);
      expect_plan(*none, {});
      none = ScatterPlan::of_table(empty, mapping_, options);
      REQUIRE_OK(none);
      expect_plan(*none, {});
      std::vector<std::string> sources = {"a", "b"};
      auto lost = ScatterPlan::make(empty, mapping_, Rows(sources).column(), options);
      REQUIRE_OK(lost);
      expect_plan(*lost, {.targets = {nowhere, nowhere}, .unmapped = 2, .first = 0});
      expect_map_weights({}, {}, {.values = values});
    }
    // Targets that nothing goes to.
    auto idle = ScatterPlan::make(empty, mapping_, KeyColumn(), {.targets = 3, .backend = backend});
    expect_plan(*idle, {.count = 3});
    // All to one target.
    put({{"a", number(2, 4)}});
    std::vector<std::string> many(5000, "a");
    auto one =
        ScatterPlan::make(db_->snapshot(), mapping_, Rows(many).column(), {.backend = backend});
    expect_plan(*one, {.targets = std::vector<uint64_t>(5000, 2), .count = 3});
  }
}

TEST_CASE_METHOD(ScatterPlanTest, "ScatterPlanTest.APlanIsWhatTheTableWas", "[ScatterPlanTest]") {
  put({{"a", number(0, 8)}, {"b", number(1, 8)}});
  std::vector<std::string> sources = {"b", "a", "b"};
  Expected before = expect_numbers(sources, 0);
  Snapshot then = db_->snapshot();
  auto early = ScatterPlan::make(then, mapping_, Rows(sources).column());
  put({{"a", number(5, 8)}});
  erase("b");
  auto late = ScatterPlan::make(then, mapping_, Rows(sources).column());
  auto now = ScatterPlan::make(db_->snapshot(), mapping_, Rows(sources).column());
  Expected after = expect_numbers(sources, 0);
  REQUIRE_OK(db_->compact());
  for (int life = 0; life < 2; ++life) {
    expect_plan(*early, before);
    expect_plan(*late, before);
    expect_plan(*now, after);
    ScatterPlan moved = std::move(*now);
    *now = std::move(moved);
    reopen();
    auto again = ScatterPlan::make(db_->snapshot(), mapping_, Rows(sources).column());
    expect_plan(*again, after);
  }
  // And without the database.
  db_.reset();
  expect_plan(*early, before);
}

TEST_CASE_METHOD(ScatterPlanTest, "ScatterPlanTest.LargeNumbers", "[ScatterPlanTest]") {
  auto host = Backend::host(2);
  auto read = [&](const ScatterPlanOptions& options) {
    ScatterTargets targets;
    Status s =
        read_scatter_targets(db_->snapshot(), mapping_, nullptr, true, options, *host, &targets);
    CHECK_OK(s);
    return targets;
  };
  auto list = [](const ScatterTargets& targets) {
    Indexes indexes = targets.targets.view();
    std::vector<uint64_t> numbers;
    for (uint64_t i = 0; i < indexes.size; ++i)
      numbers.push_back(indexes.width == 4 ? static_cast<const uint32_t*>(indexes.data)[i]
                                           : static_cast<const uint64_t*>(indexes.data)[i]);
    return numbers;
  };
  constexpr uint64_t most32 = 0xFFFFFFFF;
  put({{"a", number(5, 8)}, {"b", number(most32 - 1, 8)}});
  ScatterTargets targets = read({});
  CHECK(targets.targets.view().width == 4u);
  CHECK(targets.target_count == most32);
  CHECK(list(targets) == (std::vector<uint64_t>{5, most32 - 1}));
  put({{"c", number(most32, 8)}});
  targets = read({});
  CHECK(targets.targets.view().width == 8u);
  CHECK(targets.target_count == most32 + 1);
  CHECK(list(targets) == (std::vector<uint64_t>{5, most32 - 1, most32}));
  CHECK(targets.report.out_of_range == 0u);
  // With a bound what is beyond it is out of range, also in 32 bits.
  targets = read({.targets = most32});
  CHECK(targets.targets.view().width == 4u);
  CHECK(targets.report.out_of_range == 1u);
  CHECK(targets.report.first_out_of_range == 2u);
  CHECK(read({.targets = most32 + 1}).targets.view().width == 8u);
  put({{"d", number(max_scatter_plan_targets, 8)}, {"e", number(UINT64_MAX, 8)}});
  targets = read({});
  CHECK(targets.target_count == most32 + 1);
  CHECK(targets.report.out_of_range == 2u);
  CHECK(list(targets)[3] == UINT64_MAX);
  // Keys of 4 bytes do, too.
  clear_table();
  put({{"a", number(most32, 4)}});
  CHECK(read({}).target_count == most32 + 1);
  CHECK(list(read({})) == std::vector<uint64_t>{most32});
}

TEST_CASE_METHOD(ScatterPlanTest, "ScatterPlanTest.ReproducibleSumsHaveTheSameBits",
                 "[ScatterPlanTest]") {
  Model rows;
  constexpr uint64_t n = 30'000;
  for (uint64_t i = 0; i < n; ++i) rows[std::to_string(i)] = number(random_() % 50, 4);
  put(rows);
  std::vector<float> weights(n);
  for (float& w : weights)
    w = std::ldexp(static_cast<float>(random_() % 20'001) - 10'000,
                   static_cast<int>(random_() % 60) - 30);
  std::vector<float> first;
  for (const auto& backend : backends_) {
    auto plan =
        ScatterPlan::of_table(db_->snapshot(), mapping_, {.targets = 50, .backend = backend});
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::vector<float> into(50, 1e9f);
      REQUIRE_OK(plan->map(Numbers::of<float>(weights), MutableNumbers::of<float>(into),
                           {.mode = ScatterMode::reproducible, .clear = true}));
      if (first.empty()) first = into;
      REQUIRE_MESSAGE(std::memcmp(first.data(), into.data(), 50 * sizeof(float)) == 0,
                      backend->name());
    }
  }
}

TEST_CASE_METHOD(ScatterPlanTest, "ScatterPlanTest.WhatIsRefused", "[ScatterPlanTest]") {
  put({{"a", number(1, 4)}});
  Snapshot now = db_->snapshot();
  refused(ScatterPlan::of_table(now, mapping_, {.targets = max_scatter_plan_targets + 1}).status(),
          StatusCode::invalid_argument, "is not possible");
  refused(ScatterPlan::of_table(now, mapping_, {.values = ScatterPlanTargets::keys, .targets = 7})
              .status(),
          StatusCode::invalid_argument, "leave it 0");
  Table other = *db_->create_table("other");
  refused(ScatterPlan::of_table(now, other).status(), StatusCode::not_found, "'other'");
  refused(ScatterPlan::make(now, other, KeyColumn()).status(), StatusCode::not_found, "'other'");
  auto plan = ScatterPlan::of_table(now, mapping_);
  std::vector<float> one(1, 2.0f), two(2, 2.0f);
  std::vector<double> doubles(2, 2.0);
  auto map = [&](auto& from, auto& into, ScatterMapOptions options = {.clear = true}) {
    return plan->map(
        Numbers::of(std::span<const typename std::decay_t<decltype(from)>::value_type>(from)),
        MutableNumbers::of(std::span(into)), options);
  };
  refused(map(one, one), StatusCode::invalid_argument, "a T of 1 numbers, for a plan to 2");
  refused(map(two, two), StatusCode::invalid_argument, "2 sources with 1 targets");
  refused(map(one, doubles), StatusCode::invalid_argument, "cannot be combined");
  refused(map(one, two, {.clear = true, .stream = &one}), StatusCode::invalid_argument,
          "cannot be cleared on a stream");
  refused(map(one, two, {.stream = &one}), StatusCode::unavailable, "are a device's");
  CHECK(two == std::vector<float>(2, 2.0f));
  CHECK(doubles == std::vector<double>(2, 2.0));
  std::vector<std::string> sources = {"a"};
  auto weights = Numbers::of<float>(one);
  refused(map_weights(now, mapping_, Rows(sources).column(), weights,
                      MutableNumbers::of<float>(two), {}, {.stream = &one}),
          StatusCode::invalid_argument, "make a ScatterPlan");
  refused(map_weights(now, mapping_, Rows(sources).column(), weights,
                      MutableNumbers::of<float>(two), {.targets = 3}),
          StatusCode::invalid_argument, "for a plan to 3");
}

// Counts, numbers on a device, and a device that fails.
TEST_CASE_METHOD(ScatterPlanTest, "ScatterPlanTest.OnADevice", "[ScatterPlanTest]") {
  auto device = std::make_shared<FakeDevice>(1 << 30);
  reopen(device);
  put({{"a", number(1, 4)}, {"b", number(0, 4)}, {"c", number(1, 4)}});
  auto on_device = ScatterPlan::of_table(db_->snapshot(), mapping_);
  CHECK(on_device->backend_name() == "fake device");
  std::vector<float> weights = {1, 2, 4};
  auto s = std::move(*device->allocate(12)), t = std::move(*device->allocate(8));
  REQUIRE_OK(device->copy(s->data(), weights.data(), 12));
  std::vector<float> sums(2, 7.0f);
  REQUIRE_OK(device->copy(t->data(), sums.data(), 8));
  Numbers from{NumberType::f32, s->data(), 3};
  MutableNumbers into{NumberType::f32, t->data(), 2};
  auto expect_sums = [&](const std::vector<float>& expected) {
    REQUIRE_OK(device->copy(sums.data(), t->data(), 8));
    CHECK(sums == expected);
  };
  REQUIRE_OK(on_device->map(from, into));
  expect_sums({9, 12});
  uint64_t before = on_device->memory_bytes();
  REQUIRE_OK(on_device->map(from, into, {.clear = true}));
  REQUIRE_OK(on_device->map(Numbers::ones(NumberType::f32, 3), into));
  expect_sums({3, 7});
  CHECK(on_device->memory_bytes() > before);
  std::vector<std::string> sources = {"a", "b", "c"};
  REQUIRE_OK(map_weights(db_->snapshot(), mapping_, Rows(sources).column(), from, into, {},
                         {.clear = true}));
  expect_sums({2, 5});
  // One that is made on the host has no use for a device's memory.
  auto on_host = ScatterPlan::of_table(db_->snapshot(), mapping_, {.backend = Backend::host(1)});
  refused(on_host->map(from, into), StatusCode::unavailable, "are a device's");
  expect_sums({2, 5});
  // No room there: the host's, and so is all after a failure. What the caller has named stays.
  device->fail_call(1, StatusCode::resource_exhausted);
  refused(ScatterPlan::of_table(db_->snapshot(), mapping_, {.backend = device}).status(),
          StatusCode::resource_exhausted, "");
  device->fail_call(1, StatusCode::io_error);
  auto fallen = ScatterPlan::of_table(db_->snapshot(), mapping_);
  REQUIRE_OK(fallen);
  CHECK(fallen->backend_name() != "fake device");
  expect_plan(*fallen, expect_numbers(all_keys(), 0));
}

}  // namespace
}  // namespace stride::test

// Groups of rows, beside a map of groups.
#include "engine/group_by.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

template <class T>
std::string bytes_of(T x) {
  return std::string(reinterpret_cast<const char*>(&x), sizeof x);
}
template <class T>
T value_of(const std::string& bytes) {
  T x;
  std::memcpy(&x, bytes.data(), sizeof x);
  return x;
}

class GroupByTest {
 protected:
  GroupByTest() {
    backends_ = all_backends();
    backends_.push_back(nullptr);  // the database's own
    Options options;
    options.file_system = &files_;
    options.threads = 2;
    options.backend = BackendKind::host;
    db_ = std::move(*Database::open("/db", options));
    new_table();
  }
  void new_table() {
    table_ = *db_->create_table("t" + std::to_string(tables_++));
    model_.clear();
  }
  void put(const Model& rows) {
    WriteTransaction t = db_->begin();
    Rows keys, values;
    for (const auto& [key, value] : rows) {
      keys.add(key);
      values.add(value);
      model_[key] = value;
    }
    REQUIRE_OK(t.put(table_, keys.column(), values.column()));
    REQUIRE_OK(t.commit());
  }
  Result<GroupResult> group(const ScanOptions& range, const GroupOptions& options) {
    return group_by(db_->snapshot(), table_, range, options);
  }

  // Values whose sums are exact in any order.
  template <class T>
  void expect_groups(NumberType type, const ScanOptions& range, uint32_t prefix_bytes) {
    std::map<std::string, std::vector<T>> groups;
    for (const auto& [key, value] : model_)
      if (within(key, range)) groups[key.substr(0, prefix_bytes)].push_back(value_of<T>(value));
    for (const auto& backend : backends_) {
      GroupOptions options{.prefix_bytes = prefix_bytes, .type = type, .backend = backend};
      options.sum = random_() % 4;
      options.min = random_() % 4;
      options.max = random_() % 4;
      auto result = group(range, options);
      REQUIRE_OK(result);
      REQUIRE(result->size() == groups.size());
      REQUIRE(result->keys().size == groups.size());
      bool floats = std::is_floating_point_v<T>;
      CHECK(result->integer_sums().size() == (options.sum && !floats ? groups.size() : 0));
      CHECK(result->float_sums().size() == (options.sum && floats ? groups.size() : 0));
      CHECK(result->mins_as<T>().size() == (options.min ? groups.size() : 0));
      CHECK(result->maxes_as<T>().size() == (options.max ? groups.size() : 0));
      uint64_t g = 0;
      for (const auto& [key, values] : groups) {
        REQUIRE(text(result->keys()[g]) == key);
        REQUIRE(result->counts()[g] == values.size());
        using Sum = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
        Sum sum = 0;
        for (T x : values) sum += static_cast<Sum>(x);
        if (options.sum && floats) REQUIRE(result->float_sums()[g] == sum);
        if (options.sum && !floats) REQUIRE(result->integer_sums()[g] == sum);
        if (options.min)
          REQUIRE(result->mins_as<T>()[g] == *std::min_element(values.begin(), values.end()));
        if (options.max)
          REQUIRE(result->maxes_as<T>()[g] == *std::max_element(values.begin(), values.end()));
        ++g;
      }
    }
  }
  template <class T>
  void expect_random_groups(NumberType type) {
    for (int round = 0; round < 6; ++round) {
      new_table();
      const uint64_t letters = 1 + random_() % 4;
      for (int commit = 0; commit < 3; ++commit) {
        Model rows;
        for (uint64_t n = random_() % 3000; n > 0; --n) {
          std::string key(random_() % 9, '\0');
          for (char& c : key) c = "\0a\xFF\x80"[random_() % letters];
          key += random_() % 10 ? std::to_string(random_() % 1000) : "";
          rows[key] = bytes_of(static_cast<T>(static_cast<int64_t>(random_() % 2001) - 1000));
        }
        put(rows);
      }
      for (uint32_t prefix_bytes : {0u, 1u, 2u, 5u, 100u}) {
        ScanOptions range;
        if (random_() % 2) range.from = std::string(1, 'a');
        if (random_() % 2) range.to = std::string("\xFF\xFF");
        if (random_() % 3 == 0) range.prefix = "a";
        range.reverse = random_() % 2;
        range.batch_rows = static_cast<uint32_t>(random_() % 100);
        expect_groups<T>(type, range, prefix_bytes);
      }
    }
  }
  void refused(const Status& s, StatusCode code, const std::string& mentions) {
    CHECK_MESSAGE(to_string(s.code()) == to_string(code), s.to_string());
    CHECK_MESSAGE(s.to_string().find(mentions) != std::string::npos, s.to_string());
  }

  std::mt19937_64 random_{seed()};
  MemoryFileSystem files_;
  std::vector<std::shared_ptr<Backend>> backends_;
  std::unique_ptr<Database> db_;
  Table table_;
  int tables_ = 0;
  Model model_;
};

TEST_CASE_METHOD(GroupByTest, "GroupByTest.RandomGroupsAreThoseOfAMap", "[GroupByTest]") {
  expect_random_groups<int32_t>(NumberType::i32);
  expect_random_groups<int64_t>(NumberType::i64);
  expect_random_groups<float>(NumberType::f32);
  expect_random_groups<double>(NumberType::f64);
}

// Two groups that are cut by the blocks in which rows are combined, of 2^20 rows each.
class LargeGroups : public GroupByTest {
 protected:
  static constexpr uint64_t rows = smaller_under_sanitizers(2'300'000, 1'200'000);
  static constexpr uint64_t of_first = 1'100'000;

  LargeGroups() {
    for (uint64_t i = 0; i < rows; ++i) {
      uint64_t group = i >= of_first;
      keys_[i] = __builtin_bswap64(group << 56 | i);
      // The sums of the first rows alone do not fit, all of them do.
      values_[i] = group == 0 ? (i < of_first / 2 ? INT64_MAX - 5 : INT64_MIN)
                              : static_cast<int64_t>(random_() >> 20) - (int64_t{1} << 43);
      sums_[group] = static_cast<int64_t>(static_cast<uint64_t>(sums_[group]) +
                                          static_cast<uint64_t>(values_[i]));
      mins_[group] = std::min(mins_[group], values_[i]);
      doubles_[i] = std::ldexp(static_cast<double>(random_() % 1'000'001),
                               static_cast<int>(random_() % 100) - 50);
    }
  }
  KeyColumn keys() const { return Column::fixed(keys_.data(), 8, rows); }
  // A table of one run for each part, which ends before the row that `ends` tells.
  template <class T>
  Table put(const char* name, const std::vector<T>& values, std::initializer_list<uint64_t> ends) {
    Table table = *db_->create_table(name, {.key_width = 8});
    uint64_t from = 0;
    for (uint64_t to : ends) {
      WriteTransaction t = db_->begin();
      CHECK_OK(t.put_view(table, keys().slice(from, to - from),
                          Column::fixed(values.data() + from, 8, to - from)));
      CHECK_OK(t.commit());
      from = to;
    }
    return table;
  }
  void expect_integers(const Table& wide) {
    for (const auto& backend : backends_) {
      GroupOptions options{.prefix_bytes = 1, .type = NumberType::i64, .backend = backend};
      options.sum = options.min = true;
      auto result = group_by(db_->snapshot(), wide, {}, options);
      REQUIRE_OK(result);
      REQUIRE(result->size() == 2u);
      CHECK(result->counts()[0] == of_first);
      CHECK(result->counts()[1] == rows - of_first);
      for (int g : {0, 1}) {
        CHECK(result->integer_sums()[g] == sums_[g]);
        CHECK(result->mins_as<int64_t>()[g] == mins_[g]);
      }
      options.prefix_bytes = 0;
      ScanOptions first_half{.to = std::string(as_text(keys()[of_first / 2]))};
      refused(group_by(db_->snapshot(), wide, first_half, options).status(),
              StatusCode::invalid_argument, "table 'wide': the sum of the group");
    }
  }

  std::vector<uint64_t> keys_ = std::vector<uint64_t>(rows);
  std::vector<int64_t> values_ = std::vector<int64_t>(rows);
  std::vector<double> doubles_ = std::vector<double>(rows);
  int64_t sums_[2] = {0, 0}, mins_[2] = {INT64_MAX, INT64_MAX};
};

TEST_CASE_METHOD(LargeGroups, "GroupByTest.MoreRowsThanABlock", "[GroupByTest]") {
  expect_integers(put("wide", values_, {rows}));
  Table floats = put("floats", doubles_, {rows}),
        parts = put("parts", doubles_, {rows / 3, rows / 2, rows});
  // Doubles add up to the same bits, wherever they are added and however they lie.
  std::vector<double> first;
  for (const auto& backend : backends_) {
    for (const Table& table : {floats, parts}) {
      auto result =
          group_by(db_->snapshot(), table, {},
                   {.prefix_bytes = 1, .type = NumberType::f64, .sum = true, .backend = backend});
      REQUIRE_OK(result);
      std::vector<double> found(result->float_sums().begin(), result->float_sums().end());
      REQUIRE(found.size() == 2u);
      if (first.empty()) first = found;
      REQUIRE(std::memcmp(found.data(), first.data(), 16) == 0);
    }
  }
  double plain = 0;
  for (uint64_t i = 0; i < of_first; ++i) plain += doubles_[i];
  CHECK_THAT(first[0] / plain, Catch::Matchers::WithinAbs(1, 1e-9));
}

TEST_CASE_METHOD(GroupByTest, "GroupByTest.SumsThatDoNotFit", "[GroupByTest]") {
  auto sums = [&](NumberType type) {
    return group({}, {.prefix_bytes = 1, .type = type, .sum = true});
  };
  put({{"a1", bytes_of(INT64_MAX)}, {"a2", bytes_of(INT64_MAX)}, {"b", bytes_of(int64_t{1})}});
  refused(sums(NumberType::i64).status(), StatusCode::invalid_argument, "with 'a' does not fit");
  // In any order, and without sums.
  put({{"a3", bytes_of(INT64_MIN)}});
  CHECK(sums(NumberType::i64)->integer_sums()[0] == INT64_MAX - 1);
  put({{"c1", bytes_of(INT64_MIN)}, {"c2", bytes_of(int64_t{-1})}});
  refused(sums(NumberType::i64).status(), StatusCode::invalid_argument, "with 'c' does not fit");
  auto counts = group({}, {.prefix_bytes = 1, .type = NumberType::i64, .min = true});
  REQUIRE_OK(counts);
  CHECK(counts->mins_as<int64_t>()[2] == INT64_MIN);
  // What 32 bits do not hold is no matter.
  new_table();
  put({{"a1", bytes_of(INT32_MAX)}, {"a2", bytes_of(INT32_MAX)}});
  CHECK(sums(NumberType::i32)->integer_sums()[0] == 2 * int64_t{INT32_MAX});
}

TEST_CASE_METHOD(GroupByTest, "GroupByTest.FloatsThatAreNotFinite", "[GroupByTest]") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  put({{"a1", bytes_of(1.0f)}, {"a2", bytes_of(infinity)}});
  put({{"b1", bytes_of(-infinity)}, {"b2", bytes_of(infinity)}});
  put({{"c1", bytes_of(nan)}, {"c2", bytes_of(2.0f)}, {"c3", bytes_of(-nan)}});
  put({{"d1", bytes_of(nan)}, {"d2", bytes_of(-nan)}});
  put({{"e1", bytes_of(0.0f)}, {"e2", bytes_of(-0.0f)}});
  for (const auto& backend : backends_) {
    auto result = group({}, {.prefix_bytes = 1,
                             .type = NumberType::f32,
                             .sum = true,
                             .min = true,
                             .max = true,
                             .backend = backend});
    REQUIRE_OK(result);
    auto sums = result->float_sums();
    auto mins = result->mins_as<float>(), maxes = result->maxes_as<float>();
    CHECK(sums[0] == infinity);
    for (int g : {1, 2, 3}) CHECK_MESSAGE(std::isnan(sums[g]), g);
    CHECK(mins[1] == -infinity);
    CHECK(maxes[1] == infinity);
    CHECK(mins[2] == 2);
    CHECK(maxes[2] == 2);
    CHECK((std::isnan(mins[3]) && std::isnan(maxes[3])));
    CHECK(std::signbit(mins[4]));
    CHECK_FALSE(std::signbit(maxes[4]));
  }
}

TEST_CASE_METHOD(GroupByTest, "GroupByTest.NothingAndWhatIsRefused", "[GroupByTest]") {
  GroupOptions sums{.type = NumberType::i32, .sum = true};
  auto result = group({}, sums);
  REQUIRE_OK(result);
  CHECK(result->size() == 0u);
  CHECK(result->keys().size == 0u);
  CHECK(result->integer_sums().empty());
  for (NumberType type : {NumberType::none, NumberType::f16, NumberType::bf16})
    refused(group({}, {.type = type}).status(), StatusCode::invalid_argument, "cannot be grouped");
  put({{"a", bytes_of(1)}, {"b", "12345"}, {std::string("\1\2"), bytes_of(2)}});
  refused(group({}, sums).status(), StatusCode::invalid_argument,
          "table 't0', key 'b': a value of 5 bytes, which is no i32");
  CHECK(group({.to = "b"}, sums)->integer_sums()[0] == 3);
  // Counts look at no value.
  CHECK(group({}, {.type = NumberType::f64})->counts()[0] == 3u);
  refused(group({}, {.type = NumberType::f64, .min = true}).status(), StatusCode::invalid_argument,
          "key 0x0102: a value of 4 bytes, which is no f64");
  new_table();
  put({{"a", bytes_of(1)}, {"b", bytes_of(2)}});
  refused(group({}, {.type = NumberType::i64, .max = true}).status(), StatusCode::invalid_argument,
          "key 'a'");
  Snapshot then = db_->snapshot();
  Table later = *db_->create_table("later");
  refused(group_by(then, later, {}, sums).status(), StatusCode::not_found, "'later'");
  // What the snapshot has, and nothing later.
  put({{"b", bytes_of(20)}, {"c", bytes_of(30)}});
  CHECK(group_by(then, table_, {}, sums)->integer_sums()[0] == 3);
  CHECK(group({}, sums)->integer_sums()[0] == 51);
  // A result goes on after the move.
  auto moved = std::move(*group({}, sums));
  CHECK(moved.counts()[0] == 3u);
  CHECK(text(moved.keys()[0]) == "");
}

// A device that was asked for does it, until it fails.
TEST_CASE_METHOD(GroupByTest, "GroupByTest.ADeviceThatFails", "[GroupByTest]") {
  auto device = std::make_shared<FakeDevice>(1 << 30);
  MemoryFileSystem files;
  Options options;
  options.file_system = &files;
  options.shared_backend = device;
  auto db = std::move(*Database::open("/db", options));
  constexpr uint64_t n = 300'000;
  std::vector<uint64_t> keys(n);
  std::vector<int32_t> values(n);
  int64_t sum = 0;
  for (uint64_t i = 0; i < n; ++i) {
    keys[i] = __builtin_bswap64(i);
    sum += values[i] = static_cast<int32_t>(random_());
  }
  Table table = *db->create_table("t", {.key_width = 8});
  WriteTransaction t = db->begin();
  REQUIRE_OK(
      t.put_view(table, Column::fixed(keys.data(), 8, n), Column::fixed(values.data(), 4, n)));
  REQUIRE_OK(t.commit());
  for (uint64_t failing : {0, 2, 1}) {
    device->fail_call(failing, StatusCode::io_error);
    uint64_t before = device->calls();
    auto result = group_by(db->snapshot(), table, {},
                           {.type = NumberType::i32, .sum = true, .min = true, .max = true});
    REQUIRE_OK(result);
    CHECK(result->integer_sums()[0] == sum);
    CHECK(result->mins_as<int32_t>()[0] == *std::min_element(values.begin(), values.end()));
    CHECK(result->maxes_as<int32_t>()[0] == *std::max_element(values.begin(), values.end()));
    CHECK(device->calls() - before == (failing == 0 ? 3u : failing == 2 ? 2u : 0u));
  }
}

}  // namespace
}  // namespace stride::test

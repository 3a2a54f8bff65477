// Lookups of one key and of batches through the C interface.
#include <random>

#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

using namespace std::string_literals;

class CLookupTest : public CTest {
 protected:
  CLookupTest() {
    REQUIRE_C_OK(stride_values_create(&values_));
    REQUIRE_C_OK(stride_references_create(&references_));
  }
  ~CLookupTest() {
    CHECK_C_OK(stride_values_release(values_));
    CHECK_C_OK(stride_references_release(references_));
  }

  Found one_by_one(const Strings& queries) {
    Found found;
    for (const std::string& q : queries) {
      stride_bytes value;
      CHECK_C_OK(stride_get_one(snapshot_, table_, q.data(), q.size(), &value));
      found.push_back(text_of(value));
    }
    return found;
  }
  Found got(const stride_column& queries) {
    stride_column column{};
    const uint64_t* validity = nullptr;
    CHECK_C_OK(stride_get(snapshot_, table_, &queries, values_));
    CHECK_C_OK(stride_values_read(values_, &column, &validity));
    CHECK(column.size == queries.size);
    CHECK((validity == nullptr) == (queries.size == 0));
    return rows_of(column, validity);
  }
  Found found(const stride_column& queries) {
    uint64_t size = 0;
    const uint64_t* validity = nullptr;
    CHECK_C_OK(stride_find(snapshot_, table_, &queries, references_));
    CHECK_C_OK(stride_references_read(references_, &size, &validity));
    CHECK(size == queries.size);
    std::vector<stride_bytes> views(size);
    CHECK_C_OK(stride_references_get(references_, 0, size, views.data()));
    Found rows;
    for (uint64_t i = 0; i < size; ++i) {
      rows.push_back(text_of(views[i]));
      CHECK(rows[i].has_value() == bit(validity, i));
    }
    return rows;
  }
  // Into memory of the caller that has room for `data_bytes` of values.
  int got_into(const stride_column& queries, uint64_t data_bytes, stride_values* workspace,
               Found* rows, uint64_t* needed) {
    // Has exactly that size, so that a sanitizer sees what goes beyond.
    std::unique_ptr<char[]> data(new char[data_bytes]);
    std::vector<uint64_t> offsets(queries.size + 1), validity((queries.size + 63) / 64, ~0ull);
    stride_buffers b{sizeof b, data.get(), data_bytes, offsets.data(), validity.data(), 0};
    int status = stride_get_into(snapshot_, table_, &queries, workspace, &b);
    *needed = b.needed;
    if (status == STRIDE_OK)
      *rows = rows_of({data.get(), offsets.data(), queries.size, 0}, validity.data());
    return status;
  }
  static std::optional<std::string> text_of(const stride_bytes& value) {
    if (!value.data) return std::nullopt;
    return std::string(static_cast<const char*>(value.data), value.size);
  }
  static Found rows_of(const stride_column& column, const uint64_t* validity) {
    Found rows;
    for (uint64_t i = 0; i < column.size; ++i) {
      std::string row = row_of(column, i);
      if (!bit(validity, i)) CHECK(row == "");
      rows.push_back(bit(validity, i) ? std::optional(row) : std::nullopt);
    }
    return rows;
  }
  // Every way of looking up gives this.
  void expect_found(const Strings& queries, const Found& expected) {
    CRows rows(queries);
    stride_column column = rows.column();
    CHECK(one_by_one(queries) == expected);
    CHECK(got(column) == expected);
    CHECK(found(column) == expected);
    uint64_t bytes = 0, needed;
    for (const auto& row : expected) bytes += row ? row->size() : 0;
    for (stride_values* workspace : {values_, static_cast<stride_values*>(nullptr)}) {
      Found into;
      CHECK_C_OK(got_into(column, bytes, workspace, &into, &needed));
      CHECK(into == expected);
      CHECK(needed == bytes);
      if (bytes == 0) continue;
      CHECK_C_ERROR(got_into(column, bytes - 1, workspace, &into, &needed), STRIDE_TOO_SMALL,
                    "too_small: the values have " + std::to_string(bytes));
      CHECK(needed == bytes);
    }
  }

  stride_values* values_ = nullptr;
  stride_references* references_ = nullptr;
};

TEST_CASE_METHOD(CLookupTest, "CLookupTest.AnyBytesDuplicatesAndMissingKeys", "[CLookupTest]") {
  put(table_, {"", "\0"s, "\0\0"s, "a", "\xFF"s, "\xFF\0"s},
      {"none", "", "00", "1", "\0\xFF"s, "x"});
  snapshot();
  expect_found(
      {"a", "", "\0"s, "b", "\xFF"s, "a", "\xFF\0"s, "\0\0"s, "\0\0\0"s, "\xFF\xFF"s},
      {"1", "none", "", std::nullopt, "\0\xFF"s, "1", "x", "00", std::nullopt, std::nullopt});
  expect_found({"\0"s}, {""});
  expect_found({"b"}, {std::nullopt});
  expect_found({}, {});
  expect_found({std::string(100'000, 'k'), "a"}, {std::nullopt, "1"});
}

TEST_CASE_METHOD(CLookupTest, "CLookupTest.EmptyTable", "[CLookupTest]") {
  snapshot();
  expect_found({"a", "b", "c", "d", "e", "f"}, Found(6));
  uint64_t keys = 7;
  CHECK_C_OK(stride_count(snapshot_, table_, &keys));
  CHECK(keys == 0u);
}

TEST_CASE_METHOD(CLookupTest, "CLookupTest.ManyRowsOverSeveralCommitsAgreeWithAModel",
                 "[CLookupTest]") {
  std::mt19937_64 random(seed());
  std::map<std::string, std::string> model;
  auto any_key = [&] { return std::to_string(random() % 6000); };
  for (int commit = 0; commit < 3; ++commit) {
    Strings keys, values;
    for (int i = 0; i < 2000; ++i) {
      keys.push_back(any_key());
      values.push_back(std::string(random() % 70, char('a' + commit)));
      model[keys.back()] = values.back();
    }
    put(table_, keys, values);
  }
  snapshot();
  Strings queries;
  Found expected;
  for (int i = 0; i < 5000; ++i) {
    queries.push_back(any_key());
    auto at = model.find(queries.back());
    expected.push_back(at == model.end() ? std::nullopt : std::optional(at->second));
  }
  expect_found(queries, expected);
  uint64_t keys;
  CHECK_C_OK(stride_count(snapshot_, table_, &keys));
  CHECK(keys == model.size());
}

TEST_CASE_METHOD(CLookupTest, "CLookupTest.FixedColumns", "[CLookupTest]") {
  stride_table* wide;
  REQUIRE_C_OK(stride_table_create(db_, "wide", 8, &wide));
  std::vector<int64_t> numbers(10'000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i) - 5000;
  std::vector<char> bytes(numbers.size() * 8);
  REQUIRE_C_OK(stride_int64_to_keys(numbers.data(), numbers.size(), bytes.data()));
  stride_column keys{bytes.data(), nullptr, numbers.size(), 8};
  stride_column values{numbers.data(), nullptr, numbers.size(), 8};
  stride_transaction* t;
  REQUIRE_C_OK(stride_begin(db_, &t));
  REQUIRE_C_OK(stride_put_view(t, wide, &keys, &values));
  REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_SYNC));
  REQUIRE_C_OK(stride_get(snapshot(), wide, &keys, values_));
  stride_column got;
  REQUIRE_C_OK(stride_values_read(values_, &got, nullptr));
  CHECK(got.offsets[numbers.size()] == numbers.size() * 8);
  CHECK(std::memcmp(got.data, numbers.data(), numbers.size() * 8) == 0);
  // Keys that such a table cannot hold.
  stride_column others{bytes.data(), nullptr, 10, 4};
  const uint64_t* validity;
  REQUIRE_C_OK(stride_get(snapshot_, wide, &others, values_));
  REQUIRE_C_OK(stride_values_read(values_, nullptr, &validity));
  CHECK(validity[0] == 0u);
  CHECK_C_OK(stride_table_release(wide));
}

TEST_CASE_METHOD(CLookupTest, "CLookupTest.ReferencesOutliveTheSnapshotAndTheDatabase",
                 "[CLookupTest]") {
  put(table_, {"a", "b"}, {"1", "2"});
  CRows rows({"b", "c", "a"});
  stride_column queries = rows.column();
  REQUIRE_C_OK(stride_find(snapshot(), table_, &queries, references_));
  REQUIRE_C_OK(stride_table_drop(db_, "t"));
  REQUIRE_C_OK(stride_snapshot_release(snapshot_));
  REQUIRE_C_OK(stride_close(db_));
  snapshot_ = nullptr;
  db_ = nullptr;
  stride_bytes views[2];
  CHECK_C_OK(stride_references_get(references_, 1, 2, views));
  CHECK(text_of(views[0]) == std::nullopt);
  CHECK(text_of(views[1]) == "1");
  CHECK_C_OK(stride_references_get(references_, 3, 0, nullptr));
  CHECK_C_ERROR(stride_references_get(references_, 2, 2, views), STRIDE_INVALID_ARGUMENT, "3");
  CHECK_C_ERROR(stride_references_get(references_, UINT64_MAX, 2, views), STRIDE_INVALID_ARGUMENT,
                "3");
}

TEST_CASE_METHOD(CLookupTest, "CLookupTest.ResultsThatAreNotThere", "[CLookupTest]") {
  stride_column column;
  stride_bytes view;
  CHECK_C_ERROR(stride_values_read(values_, &column, nullptr), STRIDE_INVALID_ARGUMENT, "first");
  CHECK_C_ERROR(stride_references_get(references_, 0, 0, &view), STRIDE_INVALID_ARGUMENT, "first");
  snapshot();
  CRows rows({"a"});
  stride_column queries = rows.column();
  REQUIRE_C_OK(stride_get(snapshot_, table_, &queries, values_));
  REQUIRE_C_OK(stride_find(snapshot_, table_, &queries, references_));
  REQUIRE_C_OK(stride_table_drop(db_, "t"));
  snapshot();
  CHECK_C_ERROR(stride_get(snapshot_, table_, &queries, values_), STRIDE_NOT_FOUND, "'t'");
  CHECK_C_ERROR(stride_find(snapshot_, table_, &queries, references_), STRIDE_NOT_FOUND, "'t'");
  CHECK_C_ERROR(stride_values_read(values_, &column, nullptr), STRIDE_INVALID_ARGUMENT, "first");
  CHECK_C_ERROR(stride_references_read(references_, nullptr, nullptr), STRIDE_INVALID_ARGUMENT,
                "first");
  uint64_t needed = 1;
  Found rows_got;
  CHECK_C_ERROR(got_into(queries, 10, nullptr, &rows_got, &needed), STRIDE_NOT_FOUND, "'t'");
  CHECK(needed == 0u);
}

}  // namespace
}  // namespace stride::test

// A database with one table behind the C interface, and columns to talk to it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "adapters/c/stridedb.h"
#include "tests/support/model.h"

namespace stride::test {

#define EXPECT_C_OK(expression) EXPECT_EQ((expression), STRIDE_OK) << stride_last_error()->text
#define ASSERT_C_OK(expression) ASSERT_EQ((expression), STRIDE_OK) << stride_last_error()->text

// The call fails with this status, and the thread's error says so and mentions a word.
#define EXPECT_C_ERROR(expression, expected, mentions)                                  \
  do {                                                                                  \
    int of_call = (expression);                                                         \
    EXPECT_EQ(of_call, expected) << stride_status_name(of_call);                        \
    EXPECT_EQ(stride_last_error()->status, expected);                                   \
    EXPECT_NE(std::string(stride_last_error()->text).find(mentions), std::string::npos) \
        << stride_last_error()->text;                                                   \
  } while (0)

using Strings = std::vector<std::string>;
using Found = std::vector<std::optional<std::string>>;

// Owns the memory of a column.
class CRows {
 public:
  CRows(const Strings& rows) : rows_(rows) {}  // NOLINT: implicit on purpose
  stride_column column() const {
    Column c = rows_.column();
    return {c.data, c.offsets, c.size, 0};
  }

 private:
  Rows rows_;
};

inline std::string row_of(const stride_column& column, uint64_t i) {
  auto* data = static_cast<const char*>(column.data);
  if (!column.offsets) return {data + i * column.width, column.width};
  return {data + column.offsets[i], column.offsets[i + 1] - column.offsets[i]};
}

inline bool bit(const uint64_t* words, uint64_t i) { return words[i / 64] >> i % 64 & 1; }

inline stride_bytes bytes_of(std::string_view s) { return {s.data(), s.size()}; }

class CTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_C_OK(stride_open(path().c_str(), nullptr, &db_));
    ASSERT_C_OK(stride_table_create(db_, "t", 0, &table_));
  }
  void TearDown() override {
    EXPECT_C_OK(stride_snapshot_release(snapshot_));
    EXPECT_C_OK(stride_table_release(table_));
    EXPECT_C_OK(stride_close(db_));
  }
  std::string path() const { return directory_.file("db"); }

  void put(stride_table* table, const Strings& keys, const Strings& values) {
    stride_transaction* t;
    CRows k(keys), v(values);
    stride_column kc = k.column(), vc = v.column();
    ASSERT_C_OK(stride_begin(db_, &t));
    ASSERT_C_OK(stride_put(t, table, &kc, &vc));
    ASSERT_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  }
  // Replaces the fixture's one.
  stride_snapshot* snapshot() {
    EXPECT_C_OK(stride_snapshot_release(snapshot_));
    EXPECT_C_OK(stride_snapshot_take(db_, &snapshot_));
    return snapshot_;
  }
  Strings scan(stride_table* table, const stride_scan_options* options = nullptr) {
    Strings keys;
    stride_scan* scan = nullptr;
    stride_column k{}, v{};
    EXPECT_C_OK(stride_scan_open(snapshot(), table, options, &scan));
    for (;;) {
      EXPECT_C_OK(stride_scan_next(scan, &k, &v));
      EXPECT_EQ(k.size, v.size);
      for (uint64_t i = 0; i < k.size; ++i) keys.push_back(row_of(k, i));
      if (k.size == 0) break;
    }
    EXPECT_C_OK(stride_scan_release(scan));
    return keys;
  }

  TemporaryDirectory directory_;
  stride_database* db_ = nullptr;
  stride_table* table_ = nullptr;
  stride_snapshot* snapshot_ = nullptr;
};

}  // namespace stride::test

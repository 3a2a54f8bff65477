// A database with one table behind the C interface, and columns to talk to it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "adapters/c/stridedb.h"
#include "adapters/c/stridedb_metrics.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {

inline constexpr int invalid = STRIDE_INVALID_ARGUMENT;

#define CHECK_C_OK(expression) CHECK_MESSAGE((expression) == STRIDE_OK, stride_last_error()->text)
#define REQUIRE_C_OK(expression) \
  REQUIRE_MESSAGE((expression) == STRIDE_OK, stride_last_error()->text)

// The call fails with this status, and the thread's error says so and mentions a word.
#define CHECK_C_ERROR(expression, expected, mentions)                                \
  do {                                                                               \
    const int stride_code_ = (expression);                                           \
    const std::string stride_text_ = stride_last_error()->text;                      \
    CHECK_MESSAGE(stride_code_ == expected, stride_text_);                           \
    CHECK_MESSAGE(stride_last_error()->status == expected, stride_text_);            \
    CHECK_MESSAGE(stride_text_.find(mentions) != std::string::npos,                  \
                  "'" << stride_text_ << "' does not mention '" << mentions << "'"); \
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

class CTest {
 protected:
  // Without its threads, which merge and write the file LOG, a database works in calls alone.
  explicit CTest(bool threads = true) {
    stride_options o;
    stride_watch_options watch;
    REQUIRE_C_OK(stride_options_init(&o, sizeof o));
    REQUIRE_C_OK(stride_watch_options_init(&watch, sizeof watch));
    o.background_work = threads;
    watch.log_file = threads;
    REQUIRE_C_OK(stride_open_watched(path().c_str(), &o, &watch, &db_));
    REQUIRE_C_OK(stride_table_create(db_, "t", 0, &table_));
  }
  ~CTest() {
    CHECK_C_OK(stride_snapshot_release(snapshot_));
    CHECK_C_OK(stride_table_release(table_));
    CHECK_C_OK(stride_close(db_));
  }
  std::string path() const { return directory_.file("db"); }

  void put(stride_table* table, const Strings& keys, const Strings& values) {
    stride_transaction* t;
    CRows k(keys), v(values);
    stride_column kc = k.column(), vc = v.column();
    REQUIRE_C_OK(stride_begin(db_, &t));
    REQUIRE_C_OK(stride_put(t, table, &kc, &vc));
    REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  }
  // Replaces the fixture's one.
  stride_snapshot* snapshot() {
    CHECK_C_OK(stride_snapshot_release(snapshot_));
    CHECK_C_OK(stride_snapshot_take(db_, &snapshot_));
    return snapshot_;
  }
  Strings scan(stride_table* table, const stride_scan_options* options = nullptr) {
    Strings keys;
    stride_scan* scan = nullptr;
    stride_column k{}, v{};
    CHECK_C_OK(stride_scan_open(snapshot(), table, options, &scan));
    for (;;) {
      CHECK_C_OK(stride_scan_next(scan, &k, &v));
      CHECK(k.size == v.size);
      for (uint64_t i = 0; i < k.size; ++i) keys.push_back(row_of(k, i));
      if (k.size == 0) break;
    }
    CHECK_C_OK(stride_scan_release(scan));
    return keys;
  }

  TemporaryDirectory directory_;
  stride_database* db_ = nullptr;
  stride_table* table_ = nullptr;
  stride_snapshot* snapshot_ = nullptr;
};

}  // namespace stride::test

// Ordered reading through the C interface.
#include <algorithm>

#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

using namespace std::string_literals;

class CScanTest : public CTest {
 protected:
  static stride_scan_options options() {
    stride_scan_options o;
    std::memset(&o, 0xEE, sizeof o);
    CHECK_C_OK(stride_scan_options_init(&o, sizeof o));
    return o;
  }
};

TEST_CASE_METHOD(CScanTest, "CScanTest.BoundsPrefixesAndDirections", "[CScanTest]") {
  put(table_, {"", "a", "b", "ba", "b\xFF"s, "c", "\xFF"s}, {"0", "1", "2", "3", "4", "5", "6"});
  std::string a = "a", b = "b", c = "c";
  stride_scan_options o = options();
  CHECK(scan(table_, &o).size() == 7u);
  o.from = bytes_of(a);
  o.to = bytes_of(c);
  CHECK(scan(table_, &o) == (Strings{"a", "b", "ba", "b\xFF"s}));
  o.from_exclusive = o.to_inclusive = 1;
  CHECK(scan(table_, &o) == (Strings{"b", "ba", "b\xFF"s, "c"}));
  o.reverse = 1;
  CHECK(scan(table_, &o) == (Strings{"c", "b\xFF"s, "ba", "b"}));
  o.prefix = bytes_of(b);
  CHECK(scan(table_, &o) == (Strings{"b\xFF"s, "ba", "b"}));
  o = options();
  o.from = bytes_of(c);
  o.to = bytes_of(a);
  CHECK(scan(table_, &o) == Strings{});
  // Bounds of no bytes are bounds.
  o = options();
  o.to = {"", 0};
  CHECK(scan(table_, &o) == Strings{});
  o.to_inclusive = 1;
  CHECK(scan(table_, &o) == Strings{""});
}

TEST_CASE_METHOD(CScanTest, "CScanTest.BatchesOverSeveralCommits", "[CScanTest]") {
  Strings keys, expected;
  for (int commit = 0; commit < 3; ++commit) {
    keys.clear();
    for (int i = commit; i < 9000; i += 3) {
      keys.push_back(std::to_string(i));
      expected.push_back(keys.back());
    }
    put(table_, keys, keys);
  }
  std::sort(expected.begin(), expected.end());
  CHECK(scan(table_) == expected);
  stride_scan_options o = options();
  o.batch_rows = 100;
  o.reverse = 1;
  stride_scan* s;
  REQUIRE_C_OK(stride_scan_open(snapshot(), table_, &o, &s));
  uint64_t rows = 0;
  for (;;) {
    stride_column k, v;
    REQUIRE_C_OK(stride_scan_next(s, &k, &v));
    if (k.size == 0) break;
    REQUIRE(k.size <= 100u);
    for (uint64_t i = 0; i < k.size; ++i, ++rows) {
      REQUIRE(row_of(k, i) == expected[expected.size() - 1 - rows]);
      REQUIRE(row_of(v, i) == row_of(k, i));
    }
  }
  CHECK(rows == expected.size());
  stride_column k, v;
  CHECK_C_OK(stride_scan_next(s, &k, &v));  // still at the end
  CHECK(k.size == 0u);
  CHECK_C_OK(stride_scan_release(s));
}

TEST_CASE_METHOD(CScanTest, "CScanTest.OutlivesSnapshotAndDatabase", "[CScanTest]") {
  put(table_, {"a", "b"}, {"1", "2"});
  stride_scan_options o = options();
  o.batch_rows = 1;
  stride_scan* s;
  REQUIRE_C_OK(stride_scan_open(snapshot(), table_, &o, &s));
  REQUIRE_C_OK(stride_snapshot_release(snapshot_));
  REQUIRE_C_OK(stride_close(db_));
  snapshot_ = nullptr;
  db_ = nullptr;
  stride_column k, v;
  CHECK_C_OK(stride_scan_next(s, &k, &v));
  CHECK(row_of(k, 0) == "a");
  CHECK_C_OK(stride_scan_next(s, &k, &v));
  CHECK(row_of(v, 0) == "2");
  CHECK_C_OK(stride_scan_release(s));
}

TEST_CASE_METHOD(CScanTest, "CScanTest.BadOptions", "[CScanTest]") {
  stride_scan* s;
  stride_scan_options o{};
  CHECK_C_ERROR(stride_scan_open(snapshot(), table_, &o, &s), STRIDE_INVALID_ARGUMENT, "size");
  CHECK(s == nullptr);
  o = options();
  o.from.size = 3;
  CHECK_C_ERROR(stride_scan_open(snapshot_, table_, &o, &s), STRIDE_INVALID_ARGUMENT, "NULL");
}

}  // namespace
}  // namespace stride::test

// Cursors, entries next to keys and counts of ranges through the C interface; the engine's tests
// look for what they find.
#include <string>
#include <vector>

#include "adapters/c/stridedb_cursors.h"
#include "tests/support/c_fixture.h"

namespace stride::test {
namespace {

using namespace std::string_literals;

class CCursorTest : public CTest {
 protected:
  CCursorTest() {
    put(table_, {"", "a", "ab", "c"}, {"0", "1", "", "3"});
    put(table_, {"b", "c"}, {"2", "4"});
  }
  ~CCursorTest() { CHECK_C_OK(stride_cursor_release(cursor_)); }

  stride_cursor* open(const stride_cursor_options* options = nullptr) {
    CHECK_C_OK(stride_cursor_release(cursor_));
    REQUIRE_C_OK(stride_cursor_open(snapshot(), table_, options, &cursor_));
    return cursor_;
  }
  // The entry that a move has found, as key=value.
  std::string entry() const {
    if (!key_.data) return "none";
    return std::string(static_cast<const char*>(key_.data), key_.size) + "=" +
           std::string(static_cast<const char*>(value_.data), value_.size);
  }
  std::string seek(const std::string& key) {
    REQUIRE_C_OK(stride_cursor_seek(cursor_, key.data(), key.size(), &key_, &value_));
    return entry();
  }
  std::string seek_for_previous(const std::string& key) {
    REQUIRE_C_OK(stride_cursor_seek_for_previous(cursor_, key.data(), key.size(), &key_, &value_));
    return entry();
  }
  std::string next() {
    REQUIRE_C_OK(stride_cursor_next(cursor_, &key_, &value_));
    return entry();
  }
  std::string previous() {
    REQUIRE_C_OK(stride_cursor_previous(cursor_, &key_, &value_));
    return entry();
  }
  std::string first() {
    REQUIRE_C_OK(stride_cursor_seek_to_first(cursor_, &key_, &value_));
    return entry();
  }
  std::string last() {
    REQUIRE_C_OK(stride_cursor_seek_to_last(cursor_, &key_, &value_));
    return entry();
  }

  stride_cursor* cursor_ = nullptr;
  stride_bytes key_{}, value_{};
};

TEST_CASE_METHOD(CCursorTest, "CCursorTest.GoesBothWays", "[CCursorTest]") {
  open();
  CHECK(next() == "none");
  CHECK(seek("aa") == "ab=");
  CHECK(next() == "b=2");
  CHECK(previous() == "ab=");
  CHECK(previous() == "a=1");
  CHECK(previous() == "=0");
  CHECK(previous() == "none");
  CHECK(seek_for_previous("bb") == "b=2");
  CHECK(last() == "c=4");
  CHECK(next() == "none");
  CHECK(first() == "=0");
  CHECK(seek("d") == "none");
  CHECK_C_OK(stride_cursor_seek_to_first(cursor_, nullptr, nullptr));
  CHECK(next() == "a=1");
}

TEST_CASE_METHOD(CCursorTest, "CCursorTest.BoundsHold", "[CCursorTest]") {
  stride_cursor_options options;
  REQUIRE_C_OK(stride_cursor_options_init(&options, sizeof options));
  options.prefix = bytes_of("a");
  open(&options);
  CHECK(first() == "a=1");
  CHECK(last() == "ab=");
  CHECK(next() == "none");
  CHECK(seek("b") == "none");
  CHECK(seek_for_previous("b") == "ab=");
  options.prefix = {};
  options.from = bytes_of("ab");
  options.to = bytes_of("c");
  open(&options);
  CHECK(seek("") == "ab=");
  CHECK(last() == "b=2");
}

TEST_CASE_METHOD(CCursorTest, "CCursorTest.EntriesNextToKeysAndCounts", "[CCursorTest]") {
  const CRows rows({"aa", "b", "d"});
  const stride_column queries = rows.column();
  std::vector<stride_bytes> keys(3), values(3);
  auto found = [&](size_t i) {
    key_ = keys[i];
    value_ = values[i];
    return entry();
  };
  REQUIRE_C_OK(stride_lower_bound(snapshot(), table_, &queries, keys.data(), values.data()));
  CHECK(found(0) == "ab=");
  CHECK(found(1) == "b=2");
  CHECK(found(2) == "none");
  REQUIRE_C_OK(stride_upper_bound(snapshot_, table_, &queries, keys.data(), values.data()));
  CHECK(found(0) == "ab=");
  CHECK(found(1) == "c=4");
  CHECK(found(2) == "none");
  REQUIRE_C_OK(stride_previous(snapshot_, table_, &queries, keys.data(), values.data()));
  CHECK(found(0) == "a=1");
  CHECK(found(1) == "b=2");
  CHECK(found(2) == "c=4");
  REQUIRE_C_OK(stride_previous(snapshot_, table_, &queries, keys.data(), nullptr));

  uint64_t count = 0;
  const stride_bytes a = bytes_of("a"), c = bytes_of("c");
  REQUIRE_C_OK(stride_count_range(snapshot_, table_, &a, &c, &count));
  CHECK(count == 3u);
  REQUIRE_C_OK(stride_count_range(snapshot_, table_, nullptr, nullptr, &count));
  CHECK(count == 5u);
  const CRows ends({"c", "b", "e"});
  const stride_column to = ends.column();
  std::vector<uint64_t> counts(3);
  REQUIRE_C_OK(stride_count_ranges(snapshot_, table_, &queries, &to, counts.data()));
  CHECK(counts == (std::vector<uint64_t>{2, 0, 0}));
}

TEST_CASE_METHOD(CCursorTest, "CCursorTest.BadArguments", "[CCursorTest]") {
  stride_cursor_options options = {};
  CHECK_C_ERROR(stride_cursor_options_init(nullptr, sizeof options), STRIDE_INVALID_ARGUMENT,
                "options");
  stride_cursor* made = cursor_;
  CHECK_C_ERROR(stride_cursor_open(snapshot(), table_, &options, &made), STRIDE_INVALID_ARGUMENT,
                "stride_cursor_options");
  CHECK(made == nullptr);
  REQUIRE_C_OK(stride_cursor_options_init(&options, sizeof options));
  options.to = {nullptr, 1};
  CHECK_C_ERROR(stride_cursor_open(snapshot_, table_, &options, &made), STRIDE_INVALID_ARGUMENT,
                "bound");
  CHECK_C_ERROR(stride_cursor_open(snapshot_, table_, nullptr, nullptr), STRIDE_INVALID_ARGUMENT,
                "cursor");
  CHECK_C_ERROR(stride_cursor_open(nullptr, table_, nullptr, &made), STRIDE_INVALID_ARGUMENT,
                "stride_snapshot");
  CHECK_C_ERROR(stride_cursor_next(nullptr, &key_, &value_), STRIDE_INVALID_ARGUMENT,
                "stride_cursor");
  open();
  CHECK_C_ERROR(stride_cursor_seek(cursor_, nullptr, 1, &key_, &value_), STRIDE_INVALID_ARGUMENT,
                "key");
  auto* wrong = reinterpret_cast<stride_cursor*>(table_);
  CHECK_C_ERROR(stride_cursor_previous(wrong, &key_, &value_), STRIDE_INVALID_ARGUMENT,
                "stride_table");
  CHECK_C_ERROR(stride_cursor_release(wrong), STRIDE_INVALID_ARGUMENT, "stride_table");
  const CRows rows({"a"}), more({"a", "b"});
  const stride_column queries = rows.column(), two = more.column();
  uint64_t count = 0;
  CHECK_C_ERROR(stride_lower_bound(snapshot_, table_, &queries, nullptr, nullptr),
                STRIDE_INVALID_ARGUMENT, "keys");
  CHECK_C_ERROR(stride_previous(snapshot_, table_, nullptr, &key_, nullptr),
                STRIDE_INVALID_ARGUMENT, "queries");
  CHECK_C_ERROR(stride_count_ranges(snapshot_, table_, &queries, &two, &count),
                STRIDE_INVALID_ARGUMENT, "1 ranges");
  const stride_bytes no_data{nullptr, 1};
  CHECK_C_ERROR(stride_count_range(snapshot_, table_, &no_data, nullptr, &count),
                STRIDE_INVALID_ARGUMENT, "from");
  CHECK_C_ERROR(stride_count_range(snapshot_, table_, nullptr, nullptr, nullptr),
                STRIDE_INVALID_ARGUMENT, "keys");
}

// A cursor keeps what it reads, and a released one is told from a good one.
TEST_CASE_METHOD(CCursorTest, "CCursorTest.OutlivesItsSnapshot", "[CCursorTest]") {
  open();
  CHECK(first() == "=0");
  CHECK_C_OK(stride_snapshot_release(snapshot_));
  snapshot_ = nullptr;
  REQUIRE_C_OK(stride_compact(db_));
  CHECK(next() == "a=1");
  CHECK_C_OK(stride_cursor_release(cursor_));
  CHECK_C_ERROR(stride_cursor_next(cursor_, &key_, &value_), STRIDE_INVALID_ARGUMENT,
                "stride_cursor");
  CHECK(key_.data == nullptr);
  cursor_ = nullptr;
  CHECK_C_OK(stride_cursor_release(nullptr));
}

}  // namespace
}  // namespace stride::test

// Prefix tables through the C interface: how they are made, listed and opened.
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/adapters/c/prefix_table_fixture.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.OptionsOfTables", "[CPrefixTest]") {
  stride_table_options o;
  std::memset(&o, 0xEE, sizeof o);
  REQUIRE_C_OK(stride_table_options_init(&o, sizeof o));
  CHECK(o.size == sizeof o);
  CHECK(o.key_width + o.address_bits == 0u);
  CHECK_C_ERROR(stride_table_options_init(&o, 8), invalid, "16");
  CHECK_C_ERROR(stride_table_options_init(nullptr, sizeof o), invalid, "options is NULL");

  // The defaults are as without options.
  stride_table* table = nullptr;
  uint32_t width = 99, bits = 99;
  for (const stride_table_options* given : {static_cast<stride_table_options*>(nullptr), &o}) {
    REQUIRE_C_OK(stride_table_open_or_create_with(db_, "t", given, &table));
    CHECK_C_OK(stride_table_key_width(table, &width));
    CHECK_C_OK(stride_table_address_bits(table, &bits));
    CHECK(width + bits == 0u);
    CHECK_C_OK(stride_table_release(table));
  }
  o.key_width = 8;
  REQUIRE_C_OK(stride_table_create_with(db_, "wide", &o, &table));
  CHECK_C_OK(stride_table_key_width(table, &width));
  CHECK(width == 8u);
  CHECK_C_OK(stride_table_release(table));

  CHECK_C_OK(stride_table_key_width(routes_, &width));
  CHECK_C_OK(stride_table_address_bits(routes_, &bits));
  CHECK(width == 5u);
  CHECK(bits == 32u);
  CHECK_C_ERROR(stride_table_address_bits(routes_, nullptr), invalid, "address_bits is NULL");
  o = {sizeof o, 0, 32};
  CHECK_C_ERROR(stride_table_create_with(db_, "routes", &o, &table), STRIDE_ALREADY_EXISTS,
                "routes");
  CHECK(table == nullptr);
  REQUIRE_C_OK(stride_table_open_or_create_with(db_, "routes", &o, &table));
  CHECK_C_OK(stride_table_release(table));
  CHECK_C_ERROR(stride_table_open_or_create_with(db_, "t", &o, &table), invalid,
                "an ordinary table, not a table of prefixes of 32-bit addresses");
  CHECK_C_ERROR(stride_table_open_or_create(db_, "routes", 5, &table), invalid,
                "a table of prefixes of 32-bit addresses, not an ordinary table");
  o.address_bits = 128;
  CHECK_C_ERROR(stride_table_open_or_create_with(db_, "routes", &o, &table), invalid, "128-bit");
  o.address_bits = 65536;
  CHECK_C_ERROR(stride_table_create_with(db_, "x", &o, &table), invalid, "65536 is too large");
  o = {sizeof o, 5, 32};
  CHECK_C_ERROR(stride_table_create_with(db_, "x", &o, &table), invalid, "key_width 5");
  o = {8, 0, 32};
  CHECK_C_ERROR(stride_table_create_with(db_, "x", &o, &table), invalid, "stride_table_options");
  CHECK_C_ERROR(stride_table_open(db_, "x", &table), STRIDE_NOT_FOUND, "x");
}

// A program that was compiled with a later header.
TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.LargerOptions", "[CPrefixTest]") {
  struct {
    stride_table_options options;
    uint64_t later;
  } o;
  std::memset(&o, 0xEE, sizeof o);
  REQUIRE_C_OK(stride_table_options_init(&o.options, sizeof o));
  CHECK(o.options.size == sizeof o);
  CHECK(o.later == 0u);
  o.options.address_bits = 128;
  stride_table* table = nullptr;
  uint32_t bits = 0;
  REQUIRE_C_OK(stride_table_create_with(db_, "v6", &o.options, &table));
  CHECK_C_OK(stride_table_address_bits(table, &bits));
  CHECK(bits == 128u);
  CHECK_C_OK(stride_table_release(table));
  o.later = 1;
  CHECK_C_ERROR(stride_table_create_with(db_, "x", &o.options, &table), STRIDE_UNAVAILABLE,
                "lacks");
}

// address_bits is where a reserved member was: a program of then has the same struct.
TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.TablesAreListedAsBefore", "[CPrefixTest]") {
  struct FirstInfo {
    size_t size;
    const char* name;
    uint32_t key_width, reserved;
    uint64_t runs, rows, bytes_on_disk;
  };
  static_assert(sizeof(FirstInfo) == offsetof(stride_table_info, memtable_rows) &&
                offsetof(FirstInfo, reserved) == offsetof(stride_table_info, address_bits) &&
                offsetof(FirstInfo, runs) == offsetof(stride_table_info, runs));
  put_routes({{"10.0.0.0/8", "ten"}});
  stride_table* strings = create("strings", STRIDE_BYTE_STRINGS);
  CHECK_C_OK(stride_table_release(strings));
  stride_tables* list;
  REQUIRE_C_OK(stride_table_list(db_, &list));
  stride_table_info info{};
  info.size = sizeof info;
  std::vector<uint32_t> bits, widths;
  for (uint64_t i = 0; i < 3; ++i) {
    REQUIRE_C_OK(stride_tables_get(list, i, &info));
    bits.push_back(info.address_bits);
    widths.push_back(info.key_width);
  }
  CHECK(bits == (std::vector<uint32_t>{0, 32, STRIDE_BYTE_STRINGS}));
  CHECK(widths == (std::vector<uint32_t>{0, 5, 0}));
  FirstInfo first{};
  first.size = sizeof first;
  REQUIRE_C_OK(stride_tables_get(list, 1, reinterpret_cast<stride_table_info*>(&first)));
  CHECK(std::string_view(first.name) == "routes");
  CHECK(first.rows == 1u);
  CHECK_C_OK(stride_tables_release(list));
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.KindsOutliveTheHandle", "[CPrefixTest]") {
  stride_table* v6 = create("v6", 128);
  put(v6, {prefix_key("2001:db8::/32", 128)}, {"docs"});
  CHECK_C_OK(stride_table_release(v6));
  REQUIRE_C_OK(stride_close(db_));
  REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &db_));
  uint32_t bits = 0;
  REQUIRE_C_OK(stride_table_open(db_, "v6", &v6));
  CHECK_C_OK(stride_table_address_bits(v6, &bits));
  CHECK(bits == 128u);
  snapshot();
  expect_matches(v6, {address_of("2001:db8::7", 128), address_of("2001:db9::", 128)},
                 {Match{prefix_key("2001:db8::/32", 128), "docs", 32}, std::nullopt});
  CHECK_C_OK(stride_table_release(v6));
}

}  // namespace
}  // namespace stride::test

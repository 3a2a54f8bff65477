// Matches through the C interface that are refused.
#include <string>
#include <vector>

#include "tests/adapters/c/prefix_table_fixture.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

using namespace std::string_literals;

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.KeysThatAreNoneAreNotWritten", "[CPrefixTest]") {
  stride_transaction* t;
  REQUIRE_C_OK(stride_begin(db_, &t));
  auto put_one = [&](const std::string& key) {
    return stride_put_one(t, routes_, key.data(), key.size(), "v", 1);
  };
  CHECK_C_ERROR(put_one("\x0A\0\0\x01\x08"s), invalid, "bits behind the prefix's 8 bits are set");
  CHECK_C_ERROR(put_one("\x0A\0\0\0\x21"s), invalid, "33 bits");
  CHECK_C_ERROR(put_one("\x0A\0\0\0"s), invalid, "4 bytes");
  CRows bad({"\x0A\0\0\x01\x08"s});
  stride_column column = bad.column();
  CHECK_C_ERROR(stride_put(t, routes_, &column, &column), invalid, "row 0: bits behind");
  CHECK_C_ERROR(stride_erase(t, routes_, &column), invalid, "row 0: bits behind");
  REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  CHECK(scan(routes_) == Strings{});
}

// What is asked of a match that is refused, and where its results would go.
class WrongMatch : public CPrefixTest {
 protected:
  WrongMatch() {
    put_routes({{"10.0.0.0/8", "ten"}});
    snapshot();
  }
  void expect_addresses_refused();
  void expect_plain_table_refused();
  void expect_results_refused();
  void expect_dropped_table_refused();

  CRows good_{{"\x0A\0\0\0"s}}, wrong_{{"\x0A\0\0\0"s, "\x0A\0\0\0\0"s}};
  stride_column one_ = good_.column(), two_ = wrong_.column(), fixed_{"12345678", nullptr, 1, 8};
  char data_[16];
  uint64_t offsets_[3], validity_, n_ = 99;
  stride_buffers buffers_{sizeof buffers_, data_, sizeof data_, offsets_, &validity_, 99};
  stride_bytes value_, key_;
  stride_scan* scan_ = nullptr;
  uint32_t length_;
};

void WrongMatch::expect_addresses_refused() {
  CHECK_C_ERROR(stride_match(snapshot_, routes_, &two_, values_), invalid,
                "row 1: an address has 5 bytes, but those of table 'routes' have 4");
  CHECK_C_ERROR(stride_match(snapshot_, routes_, &fixed_, values_), invalid, "8 bytes");
  CHECK_C_ERROR(stride_match_into(snapshot_, routes_, &two_, values_, &buffers_, nullptr), invalid,
                "row 1");
  CHECK(buffers_.needed == 0u);
  CHECK_C_ERROR(stride_match_references(snapshot_, routes_, &two_, references_), invalid, "row 1");
  CHECK_C_ERROR(stride_match_one(snapshot_, routes_, "123", 3, &value_, &key_, &length_), invalid,
                "3 bytes");
  CHECK_C_ERROR(stride_match_all(snapshot_, routes_, "123", 3, 1, &value_, nullptr, nullptr, &n_),
                invalid, "3 bytes");
  CHECK_C_ERROR(stride_scan_inside(snapshot_, routes_, "123", 3, &scan_), invalid, "3 bytes");
  CHECK_C_ERROR(stride_scan_inside(snapshot_, routes_, "\x0A\0\0\x01\x08", 5, &scan_), invalid,
                "no prefix");
  CHECK(scan_ == nullptr);
  CHECK(n_ == 99u);
}

void WrongMatch::expect_plain_table_refused() {
  const char* why = "table 't' is no prefix table";
  CHECK_C_ERROR(stride_match(snapshot_, table_, &one_, values_), invalid, why);
  CHECK_C_ERROR(stride_match_into(snapshot_, table_, &one_, nullptr, &buffers_, nullptr), invalid,
                why);
  CHECK_C_ERROR(stride_match_references(snapshot_, table_, &one_, references_), invalid, why);
  CHECK_C_ERROR(stride_match_one(snapshot_, table_, "1234", 4, &value_, nullptr, nullptr), invalid,
                why);
  CHECK_C_ERROR(stride_match_all(snapshot_, table_, "1234", 4, 0, nullptr, nullptr, nullptr, &n_),
                invalid, why);
  CHECK_C_ERROR(stride_scan_inside(snapshot_, table_, "12345", 5, &scan_), invalid, why);
}

// Nothing of what was refused is a result, and a lookup is no match.
void WrongMatch::expect_results_refused() {
  const uint32_t* lengths;
  stride_column column;
  CHECK_C_ERROR(stride_values_read(values_, &column, nullptr), invalid, "first");
  CHECK_C_ERROR(stride_values_lengths(values_, &lengths), invalid, "stride_match()");
  CHECK_C_ERROR(stride_references_prefixes(references_, 0, 0, &key_, &length_), invalid, "first");
  REQUIRE_C_OK(stride_match(snapshot_, routes_, &one_, values_));
  REQUIRE_C_OK(stride_match_references(snapshot_, routes_, &one_, references_));
  CHECK_C_OK(stride_values_lengths(values_, &lengths));
  CHECK(lengths[0] == 8u);
  CHECK_C_ERROR(stride_values_lengths(values_, nullptr), invalid, "lengths is NULL");
  CHECK_C_OK(stride_references_prefixes(references_, 0, 1, nullptr, nullptr));
  CHECK_C_OK(stride_references_prefixes(references_, 1, 0, &key_, &length_));
  CHECK_C_ERROR(stride_references_prefixes(references_, 0, 2, &key_, &length_), invalid,
                "addresses 0 and 2 in all were asked for, of 1");
  CHECK_C_ERROR(stride_references_get(references_, 2, 0, &value_), invalid, "of 1");
  REQUIRE_C_OK(stride_get(snapshot_, routes_, &one_, values_));
  REQUIRE_C_OK(stride_find(snapshot_, routes_, &one_, references_));
  CHECK_C_OK(stride_values_read(values_, &column, nullptr));
  CHECK_C_ERROR(stride_values_lengths(values_, &lengths), invalid, "no result of a match");
  CHECK_C_ERROR(stride_references_prefixes(references_, 0, 1, &key_, &length_), invalid,
                "no result of a match");
}

void WrongMatch::expect_dropped_table_refused() {
  REQUIRE_C_OK(stride_table_drop(db_, "routes"));
  snapshot();
  CHECK_C_ERROR(stride_match(snapshot_, routes_, &one_, values_), STRIDE_NOT_FOUND, "'routes'");
  CHECK_C_ERROR(stride_match_one(snapshot_, routes_, "1234", 4, &value_, nullptr, nullptr),
                STRIDE_NOT_FOUND, "'routes'");
  CHECK_C_ERROR(stride_scan_inside(snapshot_, routes_, "12345", 5, &scan_), STRIDE_NOT_FOUND,
                "'routes'");
}

TEST_CASE_METHOD(WrongMatch, "CPrefixTest.WrongAddressesTablesAndResults", "[CPrefixTest]") {
  expect_addresses_refused();
  expect_plain_table_refused();
  expect_results_refused();
  expect_dropped_table_refused();
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.RoomForAllPrefixes", "[CPrefixTest]") {
  put_routes({{"0.0.0.0/0", "default"}, {"10.0.0.0/8", "ten"}, {"10.1.0.0/16", "one"}});
  snapshot();
  const std::string address = address_of("10.1.2.3", 32);
  auto match_all = [&](uint64_t room, stride_bytes* values, uint32_t* lengths, uint64_t* n) {
    return stride_match_all(snapshot_, routes_, address.data(), address.size(), room, values,
                            nullptr, lengths, n);
  };
  stride_bytes values[4] = {};
  uint32_t lengths[4] = {99, 99, 99, 99};
  uint64_t n = 0;
  CHECK_C_ERROR(match_all(2, values, lengths, &n), STRIDE_TOO_SMALL,
                "the address has 3 prefixes and there is room for 2");
  CHECK(n == 3u);
  CHECK(values[0].data == nullptr);
  CHECK(lengths[0] == 99u);
  CHECK_C_OK(match_all(4, nullptr, lengths, &n));
  CHECK(n == 3u);
  CHECK(std::vector<uint32_t>(lengths, lengths + 4) == (std::vector<uint32_t>{0, 8, 16, 99}));
  CHECK_C_OK(match_all(3, values, nullptr, &n));
  CHECK(std::string(static_cast<const char*>(values[2].data), values[2].size) == "one");
  CHECK(values[3].data == nullptr);
  CHECK_C_ERROR(match_all(4, values, lengths, nullptr), invalid, "n is NULL");
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.NullArguments", "[CPrefixTest]") {
  put_routes({{"10.0.0.0/8", "ten"}});
  snapshot();
  stride_column one{"\x0A\0\0\0", nullptr, 1, 4};
  uint64_t offsets[2], validity, n;
  stride_buffers b{sizeof b, nullptr, 0, offsets, &validity, 0};
  stride_bytes value;
  stride_scan* scan;
  CHECK(stride_match(snapshot_, routes_, nullptr, values_) == invalid);
  CHECK(stride_match_into(snapshot_, routes_, nullptr, nullptr, &b, nullptr) == invalid);
  CHECK(stride_match_into(snapshot_, routes_, &one, nullptr, nullptr, nullptr) == invalid);
  b.validity = nullptr;
  CHECK_C_ERROR(stride_match_into(snapshot_, routes_, &one, nullptr, &b, nullptr), invalid,
                "validity");
  CHECK(stride_match_references(snapshot_, routes_, nullptr, references_) == invalid);
  CHECK(stride_match_one(snapshot_, routes_, "1234", 4, nullptr, nullptr, nullptr) == invalid);
  CHECK(stride_match_one(snapshot_, routes_, nullptr, 4, &value, nullptr, nullptr) == invalid);
  CHECK(stride_match_all(snapshot_, routes_, nullptr, 4, 0, nullptr, nullptr, nullptr, &n) ==
        invalid);
  CHECK(stride_scan_inside(snapshot_, routes_, nullptr, 5, &scan) == invalid);
  CHECK_C_ERROR(stride_scan_inside(snapshot_, routes_, "12345", 5, nullptr), invalid,
                "scan is NULL");
  CHECK_C_OK(stride_match_one(snapshot_, routes_, "\x0A\0\0\0", 4, &value, nullptr, nullptr));
  CHECK(value.size == 3u);
}

}  // namespace
}  // namespace stride::test

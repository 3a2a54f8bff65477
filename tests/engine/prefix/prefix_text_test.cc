// Keys of prefixes: made of columns, read from text and written.

#include "engine/prefixes.h"
#include "tests/support/catch.h"
#include "tests/support/prefix_model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

void expect_refused(const Status& s, const std::string& why) {
  CHECK_MESSAGE(s.code() == StatusCode::invalid_argument, s.to_string());
  CHECK_MESSAGE(s.to_string().find(why) != std::string::npos, s.to_string());
}

TEST_CASE("PrefixKeysTest.RandomColumnsAgreeWithBitByBit", "[PrefixKeysTest]") {
  std::mt19937_64 random(seed());
  PrefixKeys keys;
  for (uint32_t bits : {1u, 7u, 8u, 12u, 32u, 33u, 64u, 128u, 200u, 255u, 256u, 300u, 65535u}) {
    PrefixModel model(bits);
    Rows addresses;
    std::string fixed;
    std::vector<uint16_t> lengths;
    std::vector<std::string> expected;
    for (int i = 0; i < 50; ++i) {
      std::string address(address_bytes(bits), '\0');
      for (char& c : address) c = static_cast<char>(random());
      lengths.push_back(static_cast<uint16_t>(random() % (bits + 1)));
      expected.push_back(model.key(address, lengths.back()));
      addresses.add(address);
      fixed += address;
    }
    for (bool is_fixed : {false, true}) {
      KeyColumn column = is_fixed ? Column::fixed(fixed.data(), address_bytes(bits), lengths.size())
                                  : addresses.column();
      REQUIRE_OK(make_prefix_keys({column, lengths.data()}, bits, HostBits::mask, &keys));
      REQUIRE(keys.keys().size == lengths.size());
      for (size_t i = 0; i < lengths.size(); ++i) {
        REQUIRE(text(keys.keys()[i]) == expected[i]);
        REQUIRE(is_prefix_key(keys.keys()[i], bits));
        REQUIRE(prefix_length(keys.keys()[i], bits) == lengths[i]);
        std::string written = format_prefix(keys.keys()[i], bits);
        auto read = parse_prefix(written, bits);
        REQUIRE_OK(read);
        REQUIRE_MESSAGE(*read == expected[i], written);
      }
    }
  }
}

TEST_CASE("PrefixKeysTest.SaysWhichRowIsWrong", "[PrefixKeysTest]") {
  PrefixKeys keys;
  Rows addresses({std::string("\x0A\0\0\0", 4), std::string("\x0A\x01\0\0", 4)});
  auto make = [&](const KeyColumn& column, std::vector<uint16_t> lengths, HostBits host_bits) {
    Status s = make_prefix_keys({column, lengths.data()}, 32, host_bits, &keys);
    if (!s.ok()) CHECK(keys.keys().size == 0u);
    return s;
  };
  REQUIRE_OK(make(addresses.column(), {8, 16}, HostBits::refuse));
  REQUIRE_OK(make(addresses.column(), {8, 8}, HostBits::mask));
  CHECK(text(keys.keys()[0]) == text(keys.keys()[1]));
  expect_refused(make(addresses.column(), {8, 15}, HostBits::refuse), "row 1");
  expect_refused(make(addresses.column(), {8, 15}, HostBits::refuse), "15 bits are set");
  expect_refused(make(addresses.column(), {8, 33}, HostBits::mask), "row 1: a prefix has 33 bits");
  expect_refused(make(addresses.column(), {0, 0}, HostBits::refuse), "row 0");
  expect_refused(make(Rows({"1234", "123"}).column(), {32, 0}, HostBits::mask), "3 bytes, not 4");
  expect_refused(make(Column::fixed("12345678", 8, 1), {8}, HostBits::mask), "8 bytes, not 4");
  REQUIRE_OK(make(Column(), {}, HostBits::refuse));
  expect_refused(make_prefix_keys({addresses.column()}, 32, HostBits::mask, &keys), "lengths");
  expect_refused(make_prefix_keys({addresses.column()}, 0, HostBits::mask, &keys), "0 bits");
  expect_refused(make_prefix_keys({addresses.column()}, 65536, HostBits::mask, &keys), "65535");
}

TEST_CASE("PrefixKeysTest.ByteStringsAreTheirOwnKeys", "[PrefixKeysTest]") {
  PrefixKeys keys;
  Rows paths({"", "/usr", "/usr/lib"});
  REQUIRE_OK(make_prefix_keys({paths.column()}, byte_strings, HostBits::refuse, &keys));
  CHECK(text(keys.keys()[2]) == "/usr/lib");
  uint16_t lengths[] = {0, 0, 0};
  expect_refused(make_prefix_keys({paths.column(), lengths}, byte_strings, HostBits::mask, &keys),
                 "lengths");
  Rows long_row({"x", std::string(65536, 'x')});
  expect_refused(make_prefix_keys({long_row.column()}, byte_strings, HostBits::mask, &keys),
                 "row 1");
  CHECK(*parse_prefix("/a/b", byte_strings) == "/a/b");
  CHECK(*parse_address("/a/b", byte_strings) == "/a/b");
  CHECK(format_prefix(as_bytes("/a/b"), byte_strings) == "/a/b");
  expect_refused(parse_prefix(std::string(65536, 'x'), byte_strings).status(), "65536 bytes");
}

TEST_CASE("PrefixTextTest.ReadsAndWrites", "[PrefixTextTest]") {
  struct Case {
    uint32_t bits;
    const char* text;
    std::string key;
    const char* written;
  };
  auto bytes = [](std::initializer_list<int> list) {
    std::string s;
    for (int b : list) s += static_cast<char>(b);
    return s;
  };
  auto ipv6 = [&](std::initializer_list<int> first, int length) {
    std::string s = bytes(first);
    s.resize(16);
    return s + static_cast<char>(length);
  };
  const Case cases[] = {
      {32, "10.0.0.0/8", bytes({10, 0, 0, 0, 8}), "10.0.0.0/8"},
      {32, "10.1.2.3", bytes({10, 1, 2, 3, 32}), "10.1.2.3/32"},
      {32, "0.0.0.0/0", bytes({0, 0, 0, 0, 0}), "0.0.0.0/0"},
      {32, "255.255.255.255/32", bytes({255, 255, 255, 255, 32}), "255.255.255.255/32"},
      {32, "0a000000/8", bytes({10, 0, 0, 0, 8}), "10.0.0.0/8"},
      {32, "0A010203", bytes({10, 1, 2, 3, 32}), "10.1.2.3/32"},
      {32, "80000000/1", bytes({128, 0, 0, 0, 1}), "128.0.0.0/1"},
      {128, "2001:db8::/32", ipv6({0x20, 0x01, 0x0D, 0xB8}, 32), "2001:db8::/32"},
      {128, "2001:0DB8:0:0:0:0:0:0/32", ipv6({0x20, 0x01, 0x0D, 0xB8}, 32), "2001:db8::/32"},
      {128, "::/0", ipv6({}, 0), "::/0"},
      {128, "::1", ipv6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128), "::1/128"},
      {128, "::ffff:10.0.0.0/104", ipv6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10}, 104),
       "::ffff:10.0.0.0/104"},
      {128, "20010db8/32", ipv6({0x20, 0x01, 0x0D, 0xB8}, 32), "2001:db8::/32"},
      {12, "0a0/12", bytes({0x0A, 0x00, 12}), "0a0/12"},
      {12, "0a0", bytes({0x0A, 0x00, 12}), "0a0/12"},
      {7, "fe/7", bytes({0xFE, 7}), "fe/7"},
      {1, "8/1", bytes({0x80, 1}), "8/1"},
      {1, "0/0", bytes({0x00, 0}), "0/0"},
      {300, "8/1", "\x80" + std::string(37, '\0') + bytes({0, 1}), nullptr},
  };
  for (const Case& c : cases) {
    auto key = parse_prefix(c.text, c.bits);
    REQUIRE_MESSAGE(key.ok(), c.text << ": " << key.status().to_string());
    CHECK_MESSAGE(*key == c.key, c.text);
    CHECK_MESSAGE(is_prefix_key(as_bytes(*key), c.bits), c.text);
    if (c.written) CHECK(format_prefix(as_bytes(*key), c.bits) == c.written);
  }
  CHECK(*parse_prefix("10.1.2.3/8", 32, HostBits::mask) == *parse_prefix("10.0.0.0/8", 32));
  CHECK(*parse_prefix("ff/7", 7, HostBits::mask) == *parse_prefix("fe/7", 7));
  CHECK(format_prefix(as_bytes("abc"), 32) == "616263");
}

TEST_CASE("PrefixTextTest.RefusesWhatIsNone", "[PrefixTextTest]") {
  struct Case {
    uint32_t bits;
    std::string text;
    const char* why;
  };
  const Case cases[] = {
      {32, "", "missing"},
      {32, "/8", "missing"},
      {32, "10.0.0.0/", "number of bits"},
      {32, "10.0.0.0/33", "33 bits"},
      {32, "10.0.0.0/08", "number of bits"},
      {32, "10.0.0.0/+8", "number of bits"},
      {32, "10.0.0.0/ 8", "number of bits"},
      {32, "10.0.0.0/8 ", "number of bits"},
      {32, "10.0.0.0/8/8", "IPv4"},
      {32, "10/8", "IPv4"},
      {32, "0a/8", "IPv4"},
      {32, "10.0.0.0/99999999999", "number of bits"},
      {32, "10.0.0/8", "IPv4"},
      {32, "10.0.0.256/8", "IPv4"},
      {32, " 10.0.0.0/8", "IPv4"},
      {32, std::string("10.0.0.0\0/8", 11), "IPv4"},
      {32, "10.0.0.1/8", "8 bits are set"},
      {32, "::/0", "IPv4"},
      {32, "10", "not an IPv4 address"},
      {48, "10", "no length"},
      {32, "0a0000000/8", "not an IPv4 address"},
      {32, "xyz/8", "hexadecimal"},
      {128, "2001:db8::1/32", "32 bits are set"},
      {128, "2001:db8::/129", "129 bits"},
      {128, "2001:db8:/32", "IPv6"},
      {128, "10.0.0.0/8", "IPv6"},
      {12, "0a00/12", "4 digits"},
      {12, "0a0/13", "13 bits"},
      {7, "ff/7", "7 bits are set"},
      {0, "0/0", "0 bits"},
      {65536, "0/0", "65535"},
  };
  for (const Case& c : cases) {
    auto key = parse_prefix(c.text, c.bits);
    REQUIRE_MESSAGE(!key.ok(), c.text);
    expect_refused(key.status(), c.why);
  }
}

TEST_CASE("PrefixTextTest.Addresses", "[PrefixTextTest]") {
  CHECK(*parse_address("10.1.2.3", 32) == "\x0A\x01\x02\x03");
  CHECK(*parse_address("0a010203", 32) == "\x0A\x01\x02\x03");
  CHECK(*parse_address("0a1", 12) == "\x0A\x10");
  CHECK(format_address(as_bytes("\x0A\x01\x02\x03"), 32) == "10.1.2.3");
  CHECK(format_address(as_bytes("\x0A\x10"), 12) == "0a1");
  CHECK(format_address(as_bytes(*parse_address("2001:DB8:0::1", 128)), 128) == "2001:db8::1");
  CHECK(format_address(as_bytes("abc"), 32) == "616263");
  for (uint32_t bits : {0u, 65536u, 0xFFFFFFF9u, 0xFFFFFFFAu, 0xFFFFFFFEu}) {  // no addresses
    CHECK(format_address(as_bytes(""), bits) == "");
    CHECK(format_address(as_bytes("ab"), bits) == "6162");
    CHECK(format_prefix(as_bytes("ab"), bits) == "6162");
  }
  expect_refused(parse_address("10.0.0.0/8", 32).status(), "IPv4");
  expect_refused(parse_address("0a", 32).status(), "not an IPv4 address");
  expect_refused(parse_address("0a", 48).status(), "2 digits");
  expect_refused(parse_address("", 32).status(), "missing");
  expect_refused(parse_address("ff", 7).status(), "more than 7 bits");
  expect_refused(parse_address("0a0/3", 12).status(), "digits");
}

TEST_CASE("PrefixScanTest.Bounds", "[PrefixScanTest]") {
  auto bounds = [](const char* text, uint32_t bits) {
    return *scan_inside(as_bytes(*parse_prefix(text, bits)), bits);
  };
  CHECK(bounds("10.0.0.0/8", 32).to == std::string("\x0B\0\0\0", 4));
  CHECK(bounds("10.0.0.0/7", 32).to == std::string("\x0C\0\0\0", 4));
  CHECK(bounds("9.255.255.255", 32).to == std::string("\x0A\0\0\0", 4));
  CHECK_FALSE(bounds("0.0.0.0/0", 32).to);
  CHECK_FALSE(bounds("255.255.0.0/16", 32).to);
  CHECK(bounds("a/b", byte_strings).prefix == "a/b");
  expect_refused(scan_inside(as_bytes("abc"), 32).status(), "no prefix");
  expect_refused(scan_inside(as_bytes("abc"), 0).status(), "0 bits");
}

}  // namespace
}  // namespace stride::test

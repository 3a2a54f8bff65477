// Keys of prefix tables, and the text of prefixes and addresses, through the C interface.
#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/prefix_fixture.h"

namespace stride::test {
namespace {

using namespace std::string_literals;

std::string text_of(const std::string& key, uint32_t bits) {
  char text[512];
  uint64_t n = 0;
  CHECK_C_OK(stride_format_prefix(key.data(), key.size(), bits, text, sizeof text, &n));
  CHECK(text[n] == '\0');
  return {text, n};
}

std::string address_text_of(const std::string& address, uint32_t bits) {
  char text[512];
  uint64_t n = 0;
  CHECK_C_OK(stride_format_address(address.data(), address.size(), bits, text, sizeof text, &n));
  CHECK(text[n] == '\0');
  return {text, n};
}

TEST_CASE("CPrefixKeysTest.Widths", "[CPrefixKeysTest]") {
  uint32_t width = 7;
  for (auto [bits, expected] : {std::pair{1u, 2u},
                                {32u, 5u},
                                {128u, 17u},
                                {255u, 33u},
                                {256u, 34u},
                                {65535u, 8194u},
                                {STRIDE_BYTE_STRINGS, 0u}}) {
    CHECK_C_OK(stride_prefix_key_width(bits, &width));
    CHECK_MESSAGE(width == expected, bits);
  }
  for (uint32_t bits : {0u, 65536u, STRIDE_BYTE_STRINGS - 1})
    CHECK_C_ERROR(stride_prefix_key_width(bits, &width), invalid, "not possible");
  CHECK_C_ERROR(stride_prefix_key_width(32, nullptr), invalid, "key_width is NULL");
}

TEST_CASE("CPrefixKeysTest.FromColumnsAndBack", "[CPrefixKeysTest]") {
  const char addresses[] = "\x0A\0\0\0\xC0\xA8\0\0\0\0\0\0\x01\x02\x03\x04";
  const uint16_t lengths[] = {8, 16, 0, 32};
  stride_column rows{addresses, nullptr, 4, 4};
  char keys[4 * 5];
  REQUIRE_C_OK(stride_make_prefix_keys(&rows, lengths, 32, refuse, keys));
  CHECK(std::string(keys, sizeof keys) ==
        "\x0A\0\0\0\x08\xC0\xA8\0\0\x10\0\0\0\0\0\x01\x02\x03\x04\x20"s);
  stride_column made{keys, nullptr, 4, 5};
  char addresses_back[16];
  uint16_t lengths_back[4] = {};
  REQUIRE_C_OK(stride_split_prefix_keys(&made, 32, addresses_back, lengths_back));
  CHECK(std::string(addresses_back, 16) == std::string(addresses, 16));
  CHECK(std::equal(lengths, lengths + 4, lengths_back));
  std::fill_n(lengths_back, 4, uint16_t{99});
  REQUIRE_C_OK(stride_split_prefix_keys(&made, 32, nullptr, lengths_back));
  CHECK(std::equal(lengths, lengths + 4, lengths_back));
  REQUIRE_C_OK(stride_split_prefix_keys(&made, 32, addresses_back, nullptr));

  // Columns with offsets, and lengths of two bytes.
  CRows wide({std::string(38, '\0'), "\xFF\xF0"s + std::string(36, '\0')});
  const uint16_t wide_lengths[] = {300, 12};
  stride_column wide_rows = wide.column();
  char wide_keys[2 * 40];
  REQUIRE_C_OK(stride_make_prefix_keys(&wide_rows, wide_lengths, 300, refuse, wide_keys));
  CHECK(std::string(wide_keys, 80) ==
        std::string(38, '\0') + "\x01\x2C"s + "\xFF\xF0"s + std::string(36, '\0') + "\x00\x0C"s);
  const uint64_t offsets[] = {40, 80};
  stride_column last{wide_keys, offsets, 1, 0};
  REQUIRE_C_OK(stride_split_prefix_keys(&last, 300, nullptr, lengths_back));
  CHECK(lengths_back[0] == 12);

  stride_column nothing{};
  CHECK_C_OK(stride_make_prefix_keys(&nothing, nullptr, 32, refuse, nullptr));
  CHECK_C_OK(stride_split_prefix_keys(&nothing, 32, nullptr, nullptr));
}

TEST_CASE("CPrefixKeysTest.HostBitsAndOtherBadRows", "[CPrefixKeysTest]") {
  const char addresses[] = "\x0A\0\0\0\x0A\x01\x02\x03";
  uint16_t lengths[] = {8, 16};
  stride_column rows{addresses, nullptr, 2, 4};
  char keys[2 * 5];
  CHECK_C_ERROR(stride_make_prefix_keys(&rows, lengths, 32, refuse, keys), invalid,
                "row 1: bits behind the prefix's 16 bits are set");
  CHECK(std::string_view(stride_last_error()->remedy) != "");
  REQUIRE_C_OK(stride_make_prefix_keys(&rows, lengths, 32, mask, keys));
  CHECK(std::string(keys, sizeof keys) == "\x0A\0\0\0\x08\x0A\x01\0\0\x10"s);
  lengths[1] = 33;
  for (int host_bits : {refuse, mask})
    CHECK_C_ERROR(stride_make_prefix_keys(&rows, lengths, 32, host_bits, keys), invalid,
                  "row 1: a prefix has 33 bits, but addresses have 32");
  rows.width = 3;
  CHECK_C_ERROR(stride_make_prefix_keys(&rows, lengths, 32, mask, keys), invalid,
                "row 0: an address has 3 bytes, not 4");
  rows.width = 4;
  CHECK_C_ERROR(stride_make_prefix_keys(&rows, lengths, 32, 2, keys), invalid, "host_bits 2");
  CHECK_C_ERROR(stride_make_prefix_keys(&rows, lengths, 0, mask, keys), invalid, "0 bits");
  CHECK_C_ERROR(stride_make_prefix_keys(&rows, lengths, 65536, mask, keys), invalid, "65536");
  for (const uint16_t* given : {lengths, static_cast<uint16_t*>(nullptr)})
    CHECK_C_ERROR(stride_make_prefix_keys(&rows, given, STRIDE_BYTE_STRINGS, mask, keys), invalid,
                  "their own keys");
  CHECK_C_ERROR(stride_make_prefix_keys(nullptr, lengths, 32, mask, keys), invalid,
                "addresses is NULL");
  CHECK_C_ERROR(stride_make_prefix_keys(&rows, nullptr, 32, mask, keys), invalid,
                "lengths is NULL");
  CHECK_C_ERROR(stride_make_prefix_keys(&rows, lengths, 32, mask, nullptr), invalid,
                "keys is NULL");

  CRows wrong({"\x0A\0\0\0\x08"s, "\x0A\0\0\x01\x08"s});
  stride_column bad = wrong.column();
  CHECK_C_ERROR(stride_split_prefix_keys(&bad, 32, nullptr, lengths), invalid,
                "row 1: these 5 bytes are no key");
  CHECK_C_ERROR(stride_split_prefix_keys(&bad, 40, nullptr, lengths), invalid,
                "row 0: these 5 bytes are no key of a prefix of 40-bit");
  CHECK_C_ERROR(stride_split_prefix_keys(&bad, 0, nullptr, lengths), invalid, "0 bits");
  CHECK_C_ERROR(stride_split_prefix_keys(&bad, STRIDE_BYTE_STRINGS, nullptr, lengths), invalid,
                "their own keys");
  CHECK_C_ERROR(stride_split_prefix_keys(nullptr, 32, nullptr, lengths), invalid, "keys is NULL");
}

TEST_CASE("CPrefixTextTest.ToKeysAndBack", "[CPrefixTextTest]") {
  CHECK(prefix_key("10.0.0.0/8", 32) == "\x0A\0\0\0\x08"s);
  CHECK(prefix_key("10.1.2.3", 32) == "\x0A\x01\x02\x03\x20"s);
  CHECK(prefix_key("0.0.0.0/0", 32) == "\0\0\0\0\0"s);
  CHECK(prefix_key("2001:db8::/32", 128) == "\x20\x01\x0D\xB8"s + std::string(12, '\0') + "\x20");
  CHECK(prefix_key("::1", 128) == std::string(15, '\0') + "\x01\x80");
  CHECK(prefix_key("0ab/12", 12) == "\x0A\xB0\x0C"s);
  CHECK(prefix_key("/a/b", STRIDE_BYTE_STRINGS) == "/a/b");
  CHECK(prefix_key("", STRIDE_BYTE_STRINGS) == "");
  CHECK(prefix_key("10.1.2.3/8", 32, mask) == prefix_key("10.0.0.0/8", 32));
  CHECK(address_of("10.1.2.3", 32) == "\x0A\x01\x02\x03");
  CHECK(address_of("::1", 128) == std::string(15, '\0') + "\x01");
  CHECK(address_of("0ab", 12) == "\x0A\xB0");
  CHECK(address_of("a/8", STRIDE_BYTE_STRINGS) == "a/8");

  CHECK(text_of("\x0A\0\0\0\x08"s, 32) == "10.0.0.0/8");
  CHECK(text_of("\0\0\0\0\0"s, 32) == "0.0.0.0/0");
  CHECK(text_of(prefix_key("2001:0DB8::/32", 128), 128) == "2001:db8::/32");
  CHECK(text_of("\x0A\xB0\x0C"s, 12) == "0ab/12");
  CHECK(text_of("a\0b"s, STRIDE_BYTE_STRINGS) == "a\0b"s);
  CHECK(text_of("abc", 32) == "616263");  // no key
  CHECK(text_of("", 32) == "");
  CHECK(address_text_of("\x0A\x01\x02\x03", 32) == "10.1.2.3");
  CHECK(address_text_of(std::string(15, '\0') + "\x01", 128) == "::1");
  CHECK(address_text_of("\x0A\xB0", 12) == "0ab");
  // 64 bytes are enough for the longest.
  std::string longest = prefix_key("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 128);
  char text[64];
  CHECK_C_OK(stride_format_prefix(longest.data(), longest.size(), 128, text, 64, nullptr));
  CHECK(std::string_view(text) == "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128");
}

TEST_CASE("CPrefixTextTest.RoomOfTheCaller", "[CPrefixTextTest]") {
  char memory[16];
  std::fill_n(memory, sizeof memory, 'x');
  uint64_t n = 0;
  CHECK_C_OK(stride_parse_prefix("10.0.0.0/8", 32, refuse, memory, 5, nullptr));
  CHECK(std::string(memory, 6) == "\x0A\0\0\0\x08x"s);
  CHECK_C_ERROR(stride_parse_prefix("11.0.0.0/8", 32, refuse, memory, 4, &n), STRIDE_TOO_SMALL,
                "too_small: the key has 5 bytes and there is room for 4");
  CHECK(n == 5u);
  CHECK(memory[0] == '\x0A');
  CHECK_C_ERROR(stride_parse_address("::1", 128, nullptr, 0, &n), STRIDE_TOO_SMALL,
                "the address has 16 bytes");
  CHECK(n == 16u);

  const std::string key = "\x0A\0\0\0\x08"s;
  CHECK_C_OK(stride_format_prefix(key.data(), 5, 32, memory, 11, &n));
  CHECK(n == 10u);
  CHECK(std::string_view(memory) == "10.0.0.0/8");
  CHECK(memory[11] == 'x');
  std::fill_n(memory, sizeof memory, 'x');
  CHECK_C_ERROR(stride_format_prefix(key.data(), 5, 32, memory, 10, &n), STRIDE_TOO_SMALL,
                "the text has 11 bytes, with the NUL, and there is room for 10");
  CHECK(n == 10u);
  CHECK(memory[0] == 'x');
  CHECK_C_ERROR(stride_format_address("\x0A\0\0\0", 4, 32, nullptr, 0, &n), STRIDE_TOO_SMALL,
                "9 bytes");
  CHECK(n == 8u);
  CHECK_C_OK(stride_parse_prefix("", STRIDE_BYTE_STRINGS, refuse, nullptr, 0, &n));
  CHECK(n == 0u);
}

TEST_CASE("CPrefixTextTest.Refused", "[CPrefixTextTest]") {
  char memory[64];
  uint64_t n = 77;
  auto parse = [&](const char* text, uint32_t bits, int host_bits = refuse) {
    return stride_parse_prefix(text, bits, host_bits, memory, sizeof memory, &n);
  };
  CHECK_C_ERROR(parse("10.1.2.3/8", 32), invalid, "'10.1.2.3/8': bits behind the prefix's 8 bits");
  CHECK_C_ERROR(parse("10.0.0.0/33", 32), invalid, "33 bits, but addresses have 32");
  CHECK_C_ERROR(parse("10.0.0.0/33", 32, mask), invalid, "33 bits");
  CHECK_C_ERROR(parse("10.0.0/8", 32), invalid, "not an IPv4 address");
  CHECK_C_ERROR(parse("::/0", 32), invalid, "IPv4");
  CHECK_C_ERROR(parse("2001:db8::/129", 128), invalid, "129 bits");
  CHECK_C_ERROR(parse("10.0.0.0/8", 128), invalid, "neither an IPv6 address");
  CHECK_C_ERROR(parse("10.0.0.0/x", 32), invalid, "number of bits");
  CHECK_C_ERROR(parse("", 32), invalid, "missing");
  CHECK_C_ERROR(parse("0/0", 0), invalid, "0 bits");
  CHECK_C_ERROR(parse("0/0", 70000), invalid, "70000 bits");
  CHECK_C_ERROR(parse("10.0.0.0/8", 32, -1), invalid, "host_bits -1");
  CHECK_C_ERROR(parse(nullptr, 32), invalid, "text is NULL");
  CHECK_C_ERROR(parse(std::string(65536, 'x').c_str(), STRIDE_BYTE_STRINGS), invalid,
                "65536 bytes");
  CHECK_C_ERROR(stride_parse_prefix("::/0", 128, refuse, nullptr, 17, &n), invalid, "key is NULL");
  auto parse_address = [&](const char* text, uint32_t bits) {
    return stride_parse_address(text, bits, memory, sizeof memory, &n);
  };
  CHECK_C_ERROR(parse_address("10.0.0.0/8", 32), invalid, "IPv4");
  CHECK_C_ERROR(parse_address("0a", 48), invalid, "2 digits");
  CHECK_C_ERROR(parse_address(nullptr, 32), invalid, "text is NULL");
  CHECK_C_ERROR(stride_parse_address("::", 128, nullptr, 16, &n), invalid, "address is NULL");
  CHECK(n == 77u);  // nothing of all that has set it

  auto format = [&](const void* key, uint64_t bytes, uint32_t bits, char* text) {
    return stride_format_prefix(key, bytes, bits, text, sizeof memory, &n);
  };
  CHECK_C_ERROR(format(nullptr, 5, 32, memory), invalid, "key is NULL");
  CHECK_C_ERROR(format("12345", 5, 32, nullptr), invalid, "text is NULL");
  for (uint32_t bits : {0u, 65536u, STRIDE_BYTE_STRINGS - 1, STRIDE_BYTE_STRINGS - 5}) {
    CHECK_C_ERROR(format("12", 2, bits, memory), invalid, "not possible");
    CHECK_C_ERROR(stride_format_address("12", 2, bits, memory, sizeof memory, &n), invalid,
                  "not possible");
  }
  CHECK_C_ERROR(stride_format_address(nullptr, 4, 32, memory, sizeof memory, &n), invalid,
                "address is NULL");
}

}  // namespace
}  // namespace stride::test

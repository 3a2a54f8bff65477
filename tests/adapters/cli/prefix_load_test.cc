// What load takes for a prefix, and what it refuses.
#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "adapters/cli/text/key_codec.h"
#include "engine/prefixes.h"
#include "tests/adapters/cli/prefix_cli_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::cli {
namespace {

TEST_CASE_METHOD(PrefixTest, "PrefixTest.TheFirstKeyTellsTheAddresses", "[PrefixTest]") {
  REQUIRE_MESSAGE(
      load_prefixes("10.0.0.0/8\tten\n0.0.0.0/0\tall\n10.1.2.3\tone\n0b000000/8\televen\n"
                    "10.0.0.0/16\tmore\n") == 0,
      error_);
  CHECK(scan() ==
        "0.0.0.0/0\tall\n10.0.0.0/8\tten\n10.0.0.0/16\tmore\n10.1.2.3/32\tone\n"
        "11.0.0.0/8\televen\n");
  REQUIRE_MESSAGE(
      load_prefixes("2001:db8::/32\tdoc\n::/0\tall\n::1\tone\n2001:DB8:0:0:1::/80\tlong\n"
                    "::ffff:1.2.3.0/120\tmapped\n20/3\tunicast\n",
                    {}, "six") == 0,
      error_);
  CHECK(scan({}, "six") ==
        "::/0\tall\n::1/128\tone\n::ffff:1.2.3.0/120\tmapped\n2000::/3\tunicast\n"
        "2001:db8::/32\tdoc\n2001:db8:0:0:1::/80\tlong\n");
  // A table that is there tells it, and remembers what its keys are.
  REQUIRE_MESSAGE(load(file("more.tsv", "0c000000/8\ttwelve\n")) == 0, error_);
  CHECK(scan({"--from", "12.0.0.0/8"}) == "12.0.0.0/8\ttwelve\n");
  for (const char* input : {"-", "p.csv"}) {
    std::string rows = "n,net\r\n1,fe80::/10\r\n2,::/8\r\n", table = std::string("of ") + input;
    std::string path = *input == '-' ? "-" : file(input, rows);
    REQUIRE_MESSAGE(run({"load", database_, table, path, "--format", "csv", "--header", "--key",
                         "net", "--key-type", "prefix", "--block-bytes", "1"},
                        rows) == 0,
                    error_);
    CHECK(scan({}, table) == "::/8\t2\nfe80::/10\t1\n");
  }
  REQUIRE_MESSAGE(load(file("a.jsonl", "\n{\"key\":\"1.0.0.0/8\",\"v\":7}\n"),
                       {"--key-type", "prefix", "--value", "v"}, "json") == 0,
                  error_);
  CHECK(scan({}, "json") == "1.0.0.0/8\t7\n");
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.AddressesOfAnyNumberOfBits", "[PrefixTest]") {
  REQUIRE_MESSAGE(load_prefixes("0a/8\ta\nabc\tall bits\nab0/9\tb\nab/8\tc\n8/1\thalf\n",
                                {"--address-bits", "12"}) == 0,
                  error_);
  CHECK(scan() == "0a0/8\ta\n800/1\thalf\nab0/8\tc\nab0/9\tb\nabc/12\tall bits\n");
  CHECK(match({"abc", "ab7", "ac0", "000"}) ==
        "abc\tabc/12\tall bits\nab7\tab0/9\tb\nac0\t800/1\thalf\n000\t\t\n");
  REQUIRE_MESSAGE(
      load_prefixes("com\t1\ncom.example\t2\n\xff\t3\n", {"--address-bits", "bytes"}, "s") == 0,
      error_);
  CHECK(scan({"--prefix", "com"}, "s") == "com\t1\ncom.example\t2\n");
  REQUIRE(run({"match", database_, "s", "com.example.www", "com.exam", "co", "\xff\xfe"}) == 0);
  CHECK(out_ == "com.example.www\tcom.example\t2\ncom.exam\tcom\t1\nco\t\t\n\xff\xfe\t\xff\t3\n");
  REQUIRE(run({"match", database_, "s", "\xff\xfe", "--json"}) == 0);
  CHECK(out_ == "{\"address_hex\":\"fffe\",\"prefix_hex\":\"ff\",\"value\":\"3\"}\n");
  // As wide as 8 bytes, and yet no number.
  REQUIRE_MESSAGE(load_prefixes("0a/8\ta\n", {"--address-bits", "56"}, "wide") == 0, error_);
  CHECK(scan({"--json"}, "wide") == "{\"key\":\"0a000000000000/8\",\"value\":\"a\"}\n");
  REQUIRE_MESSAGE(load_prefixes("0a/65535\ta\n", {"--address-bits", "65535"}, "widest") == 0,
                  error_);
  CHECK(scan({}, "widest").size() == 16384u + 9);
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.BadPrefixes", "[PrefixTest]") {
  expect_bad4("10.1.2.3/8",
              "'10.1.2.3/8': bits behind the prefix's 8 bits are set; without them it is "
              "10.0.0.0/8, and load --mask-host-bits clears them");
  expect_bad4("10.0.0.1/31", "'10.0.0.1/31': bits behind the prefix's 31 bits are set");
  expect_bad4("10.0.0.0/33", "'10.0.0.0/33': a prefix has 33 bits, but addresses have 32");
  expect_bad4("10.0.0.0/", "'10.0.0.0/': what follows the '/' is no number of bits from 0 to 32");
  expect_bad4("10.0.0.0/x", "'10.0.0.0/x': what follows the '/' is no number of bits");
  expect_bad4("10.0.0.0/-1", "'10.0.0.0/-1': what follows the '/' is no number of bits");
  expect_bad4("10.0.0.0/08", "'10.0.0.0/08': what follows the '/' is no number of bits");
  expect_bad4("10.0.0.0/ 8", "'10.0.0.0/ 8': what follows the '/' is no number of bits");
  expect_bad4("10.0.0/8", "'10.0.0': not an IPv4 address");
  expect_bad4("10.0.0.256/8", "'10.0.0.256': not an IPv4 address");
  expect_bad4("010.0.0.0/8", "'010.0.0.0': not an IPv4 address");
  expect_bad4("10.0.0.0/8/8", "'10.0.0.0/8': not an IPv4 address");
  expect_bad4("/8", "'': an address is missing");
  expect_bad4("", "empty key");
  expect_bad4("0a", "'0a': not an IPv4 address");
  expect_bad4("10/8", "'10': not an IPv4 address");
  expect_bad("ab", "'ab': no length follows", "12", "abc");
  expect_bad4("0a00000000/8", "'0a00000000': not an IPv4 address");
  expect_bad4("garbage", "'garbage': not an IPv4 address");
  expect_bad4("\x01\x7f/8", "'\\x01\\x7f': not an IPv4 address");
  expect_bad4("2001:db8::/32", "'2001:db8::/32' is IPv6, and the table is of IPv4 prefixes");
  auto bad6 = [&](const std::string& key, const std::string& reason) {
    expect_bad(key, reason, "128", "::/0");
  };
  bad6("10.0.0.0/8", "'10.0.0.0/8' is IPv4, and the table is of IPv6 prefixes");
  bad6("2001:db8::1/32", "'2001:db8::1/32': bits behind the prefix's 32 bits are set");
  bad6("2001:db8::/129", "'2001:db8::/129': a prefix has 129 bits, but addresses have 128");
  bad6("2001:db8/32", "'2001:db8': not an IPv6 address");
  bad6("1::2::3/128", "'1::2::3': not an IPv6 address");
  bad6("::/\xff", "'::/\xff': what follows the '/' is no number of bits");
  expect_bad("abcd", "'abcd': 4 digits, but an address of 12 bits has 3", "12", "abc");
  expect_bad("ab.", "'ab.': not hexadecimal digits", "12", "abc");
  expect_bad(std::string(65536, 'x'), "key 'xxx", "bytes", "x");
  CHECK_FALSE(std::filesystem::exists(database_));
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.RowsOfBothFamiliesAndRejects", "[PrefixTest]") {
  std::string path = file("mixed.tsv", "1.0.0.0/8\ta\n::/8\tb\n2.0.0.1/8\tc\n3.0.0.0/8\td\n"),
              bad = directory_ + "/bad.tsv";
  REQUIRE_MESSAGE(
      load(path, {"--key-type", "prefix", "--rejects", bad, "--block-bytes", "9", "--json"}) == 0,
      error_);
  CHECK_MESSAGE(out_.find("\"rejected\":2,\"rows\":2") != std::string::npos, out_);
  CHECK(scan() == "1.0.0.0/8\ta\n3.0.0.0/8\td\n");
  CHECK(read(bad) == path + "\t2\t'::/8' is IPv6, and the table is of IPv4 prefixes\t::/8\tb\n" +
                         path +
                         "\t3\t'2.0.0.1/8': bits behind the prefix's 8 bits are set; without "
                         "them it is 2.0.0.0/8, and load --mask-host-bits clears them\t"
                         "2.0.0.1/8\tc\n");
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.HostBitsAreMasked", "[PrefixTest]") {
  REQUIRE_MESSAGE(
      load_prefixes("10.1.2.3/8\tfirst\n10.255.0.0/15\tx\n10.9.9.9/8\tlast\n1.2.3.4/0\tall\n"
                    "1.2.3.4\tone\n",
                    {"--mask-host-bits", "--on-duplicate", "last"}) == 0,
      error_);
  CHECK(scan() == "0.0.0.0/0\tall\n1.2.3.4/32\tone\n10.0.0.0/8\tlast\n10.254.0.0/15\tx\n");
  REQUIRE_MESSAGE(load_prefixes("2001:db8::1/32\tx\n", {"--mask-host-bits"}, "six") == 0, error_);
  CHECK(scan({}, "six") == "2001:db8::/32\tx\n");
  REQUIRE(load_prefixes("fff/3\tx\n", {"--mask-host-bits", "--address-bits", "11"}, "odd") == 0);
  CHECK(scan({}, "odd") == "e00/3\tx\n");
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.Duplicates", "[PrefixTest]") {
  std::string rows = "10.0.0.0/8\t1\n11.0.0.0/8\t2\n0a000000/8\t3\n";
  REQUIRE_MESSAGE(load_prefixes(rows, {"--on-duplicate", "last"}) == 0, error_);
  CHECK(scan() == "10.0.0.0/8\t3\n11.0.0.0/8\t2\n");
  REQUIRE_MESSAGE(load_prefixes(rows, {"--on-duplicate", "first"}, "first") == 0, error_);
  CHECK(scan({}, "first") == "10.0.0.0/8\t1\n11.0.0.0/8\t2\n");
  CHECK(load_prefixes(rows, {}, "error") == 3);
  CHECK_MESSAGE(
      error_.find("p.tsv:3: key '10.0.0.0/8' of table 'error' is in ") != std::string::npos,
      error_);
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.Arguments", "[PrefixTest]") {
  std::string path = file("name.tsv", "example.com/8\tx\n");
  std::vector<std::string> prefix = {"--key-type", "prefix"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), prefix.begin(), prefix.end());
    return more;
  };
  const char* remedy = ": give --address-bits 32 (IPv4), 128 (IPv6), another number, or bytes";
  expect_load_refused(
      path, prefix, 2,
      std::string("key 'example.com/8' does not tell what prefixes are of") + remedy);
  expect_load_refused(file("hex.tsv", "0a000000/8\tx\n"), prefix, 2, "does not tell what prefixes");
  expect_load_refused(file("none.tsv", ""), prefix, 2,
                      std::string("there is no key that tells what prefixes are of") + remedy);
  expect_load_refused(file("short.tsv", "10.0.0.0/8\tx\n11.0.0.0/8\n"), prefix, 3,
                      "short.tsv:2: too few columns: 1, and 2 are needed");
  expect_load_refused(file("p.raw", "xxxxxy"), with({"--format", "raw", "--key-bytes", "5"}), 2,
                      std::string("raw records do not tell what their prefixes are of") + remedy);
  for (const char* bits : {"0", "65536", "x", "-1", "032"})
    expect_load_refused(path, with({"--address-bits", bits}), 2,
                        "must be a number from 1 to 65535, or bytes");
  expect_load_refused(path, with({"--key-width", "5"}), 2,
                      "--key-width does not go with --key-type prefix");
  for (std::vector<std::string> only : {std::vector<std::string>{"--address-bits", "32"},
                                        std::vector<std::string>{"--mask-host-bits"}})
    expect_load_refused(path, only, 2, "are for --key-type prefix");
  CHECK_FALSE(std::filesystem::exists(database_));

  REQUIRE_MESSAGE(load(file("w.tsv", "w\tx\n"), {}, "words") == 0, error_);
  REQUIRE_MESSAGE(load_prefixes("10.0.0.0/8\tx\n") == 0, error_);
  expect_load_refused(path, {"--key-type", "u64"}, 2, "has keys of type prefix, not u64");
  expect_load_refused(path, with({"--address-bits", "128"}), 2, "addresses of 32 bits, not 128");
  expect_load_refused(path, {}, 3, "'example.com': not an IPv4 address");
  expect_refused({"load", database_, "words", path, "--key-type", "prefix"}, 2,
                 "table 'words' has keys of type bytes, not prefix");
  expect_refused({"scan", database_, "words", "--key-type", "prefix"}, 2,
                 "table 'words' is no prefix table");
  expect_refused({"match", database_, "words", "1.2.3.4"}, 2, "table 'words' is no prefix table");
  expect_refused({"match", database_, "none", "1.2.3.4"}, 4, "no table 'none'");
  expect_refused({"match", database_, "t"}, 2, "give addresses, or --keys FILE");
  expect_refused({"match", database_, "t", "1.2.3.4", "--keys", path}, 2, "give addresses, or");
  expect_refused({"match", database_, "t", "1.2.3.0/24"}, 2, "address '1.2.3.0/24': not an IPv4");
  expect_refused({"match", database_, "t", "::1"}, 2, "address '::1' is IPv6, and the table is of");
  expect_refused({"match", database_, "t", "0a"}, 2, "'0a': not an IPv4 address");
  expect_refused({"match", database_, "t", ""}, 2, "'': an address is missing");
  expect_refused({"get", database_, "t", "10.0.0.0/6"}, 2,
                 "key '10.0.0.0/6': bits behind the prefix's 6 bits are set");
  expect_refused({"scan", database_, "t", "--prefix", "10.0.0.0/40"}, 2,
                 "--prefix: '10.0.0.0/40': a prefix has 40 bits");
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.LoadsInParts", "[PrefixTest]") {
  std::string rows;
  for (int i = 0; i < 400; ++i)
    rows += "10." + std::to_string(i / 200) + "." + std::to_string(i % 200) + ".9/24\tv\n";
  std::string path =
      file("a.tsv", rows.substr(0, rows.size() / 2) + "x\n" + rows.substr(rows.size() / 2 + 2));
  std::vector<std::string> options = {
      "--key-type", "prefix", "--mask-host-bits", "--commit-every", "50", "--block-bytes", "64"};
  CHECK(load(path, options) == 3);
  CHECK_MESSAGE(error_.find("rows are committed; --resume") != std::string::npos, error_);
  options.push_back("--resume");
  options.insert(options.end(), {"--max-rejects", "5"});
  REQUIRE_MESSAGE(load(path, options) == 0, error_);
  CHECK_MESSAGE(error_.find("starting at the beginning") == std::string::npos, error_);
  REQUIRE_MESSAGE(load_prefixes("10.0.0.0/8\tx\n", {"--dry-run", "--json"}, "dry") == 0, error_);
  CHECK(json()["rows"] == 1);
  CHECK(run({"count", database_, "dry"}) == 4);
}

// What is read here without allocations is what the engine reads.
TEST_CASE_METHOD(PrefixTest, "PrefixTest.TheEngineReadsTheSameTexts", "[PrefixTest]") {
  std::mt19937_64 random(test::seed());
  const std::vector<std::string> seeds = {
      "10.0.0.0/8", "255.255.255.255", "1.2.3.4/32", "2001:db8::/32", "::ffff:1.2.3.4/128",
      "::",         "fe80::1",         "0a/8",       "0a000000",      "abc/12",
      "0/0",        "0.0.0.0/0",       "1::2:3/128", "FFFFFFFF/32",   "1:2:3:4:5:6:7:8"};
  for (int i = 0; i < test::smaller_under_sanitizers(200000, 20000); ++i) {
    std::string text = seeds[random() % seeds.size()];
    for (uint64_t n = random() % 4; n > 0; --n) {
      size_t at = random() % (text.size() + 1);
      char c = "0123456789./:afF x"[random() % 18];
      switch (random() % 3) {
        case 0:
          text.insert(at, 1, c);
          break;
        case 1:
          if (at < text.size()) text[at] = c;
          break;
        default:
          if (at < text.size()) text.erase(at, 1);
      }
    }
    for (uint32_t bits : {12u, 32u, 128u, 300u}) {
      for (bool mask : {false, true}) {
        KeyForm form(KeyType::prefix, bits, mask);
        std::string mine(encoded_bound(form, text), '\0');
        ptrdiff_t n = encode_key(form, text, reinterpret_cast<std::byte*>(mine.data()));
        auto theirs = parse_prefix(text, bits, mask ? HostBits::mask : HostBits::refuse);
        REQUIRE_MESSAGE((n >= 0) == theirs.ok(), text << " " << bits);
        if (n < 0) continue;
        REQUIRE_MESSAGE(mine.substr(0, static_cast<size_t>(n)) == *theirs, text << " " << bits);
        TextBuffer shown;
        decode_key(form, as_bytes(*theirs), &shown);
        REQUIRE(shown.text() == format_prefix(as_bytes(*theirs), bits));
      }
      KeyForm form(KeyType::address, bits);
      std::string mine(encoded_bound(form, text), '\0');
      ptrdiff_t n = encode_key(form, text, reinterpret_cast<std::byte*>(mine.data()));
      auto theirs = parse_address(text, bits);
      REQUIRE_MESSAGE((n >= 0) == theirs.ok(), text << " " << bits);
      if (n >= 0) REQUIRE_MESSAGE(mine.substr(0, static_cast<size_t>(n)) == *theirs, text);
    }
  }
}

}  // namespace
}  // namespace stride::cli

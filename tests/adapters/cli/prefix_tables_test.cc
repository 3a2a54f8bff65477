// How the commands show tables of prefixes, and what a dump keeps of them.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/adapters/cli/prefix_cli_fixture.h"
#include "tests/support/catch.h"

namespace stride::cli {
namespace {

TEST_CASE_METHOD(PrefixTest, "PrefixTest.AnEmptyTable", "[PrefixTest]") {
  REQUIRE_MESSAGE(load_prefixes("", {"--address-bits", "32"}) == 0, error_);
  CHECK(scan() == "");
  CHECK(scan({"--prefix", "0.0.0.0/0"}) == "");
  CHECK(match({"1.2.3.4"}) == "1.2.3.4\t\t\n");
  CHECK(error_ == "stride: 1 of 1 addresses have no prefix in the table\n");
  CHECK(match({"1.2.3.4", "--all", "--missing", "skip"}) == "");
  CHECK(match({"--keys", "-"}) == "");
  REQUIRE_MESSAGE(load_prefixes("2.0.0.0/8\tx\n") == 0, error_);
  CHECK(match({"2.0.0.1"}) == "2.0.0.1\t2.0.0.0/8\tx\n");
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.PrefixesAreLookedUpAndScanned", "[PrefixTest]") {
  REQUIRE_MESSAGE(
      load_prefixes("0.0.0.0/0\tall\n10.0.0.0/8\tten\n10.0.0.0/9\tlow\n10.128.0.0/9\thigh\n"
                    "10.255.255.255/32\tlast\n11.0.0.0/8\televen\n") == 0,
      error_);
  REQUIRE(run({"get", database_, "t", "10.0.0.0/8", "10.0.0.0/10", "10.255.255.255"}) == 0);
  CHECK(out_ == "10.0.0.0/8\tten\n10.255.255.255/32\tlast\n");
  CHECK(error_ == "stride: 1 of 3 keys are not in the table\n");
  REQUIRE_MESSAGE(run({"get", database_, "t", "--keys", "-", "--json"}, "10.0.0.0/9\n") == 0,
                  error_);
  CHECK(out_ == "{\"key\":\"10.0.0.0/9\",\"value\":\"low\"}\n");
  CHECK(run({"get", database_, "t", "9.0.0.0/8", "--missing", "error"}) == 4);
  CHECK(error_ == "stride: key '9.0.0.0/8' is not in table 't'\n");
  REQUIRE(run({"join", database_, "t", "-", "--key", "2"}, "a\t0b000000/8\nb\t12.0.0.0/8\n") == 0);
  CHECK(out_ == "a\t0b000000/8\televen\nb\t12.0.0.0/8\t\n");

  std::string inside =
      "10.0.0.0/8\tten\n10.0.0.0/9\tlow\n10.128.0.0/9\thigh\n10.255.255.255/32\tlast\n";
  CHECK(scan({"--prefix", "10.0.0.0/8"}) == inside);
  CHECK(scan({"--prefix", "10.0.0.0/7"}) == inside + "11.0.0.0/8\televen\n");
  CHECK(scan({"--prefix", "0.0.0.0/0"}) == scan());
  CHECK(scan({"--prefix", "12.0.0.0/8"}) == "");
  CHECK(scan({"--prefix", "10.255.255.255"}) == "10.255.255.255/32\tlast\n");
  CHECK(scan({"--prefix", "10.0.0.0/8", "--reverse", "--limit", "1"}) ==
        "10.255.255.255/32\tlast\n");
  CHECK(scan({"--prefix", "10.0.0.0/8", "--from", "10.0.0.0/9", "--to", "10.255.0.0/16"}) ==
        "10.0.0.0/9\tlow\n10.128.0.0/9\thigh\n");
  CHECK(scan({"--prefix", "10.0.0.0/8", "--from", "0.0.0.0/0", "--to", "11.0.0.0/8"}) == inside);
  CHECK(scan({"--prefix", "10.128.0.0/9", "--keys-only"}) == "10.128.0.0/9\n10.255.255.255/32\n");
  CHECK(scan({"--key-type", "hex", "--prefix", "0b"}) == "0b00000008\televen\n");
  REQUIRE(run({"count", database_, "t"}) == 0);
  CHECK(out_ == "6\n");

  // What is printed is loaded again.
  std::string raw = scan({"--format", "raw"}), csv = scan({"--format", "csv"});
  REQUIRE_MESSAGE(load(file("c.csv", csv), {"--key-type", "prefix"}, "csv") == 0, error_);
  CHECK(scan({}, "csv") == scan());
  REQUIRE_MESSAGE(
      load(file("r.raw", raw), {"--format", "raw", "--key-type", "prefix", "--address-bits", "32"},
           "raw") == 0,
      error_);
  CHECK(scan({}, "raw") == scan());
  raw[raw.find("\x0b\0\0\0\x08", 0, 5) + 4] = 7;
  expect_load_refused(file("r.raw", raw), {"--format", "raw"}, 3,
                      "r.raw:6: '\\x0b\\x00\\x00\\x00\\x07' is no prefix of 32 bits as a table");
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.TablesSayWhatTheyAreOf", "[PrefixTest]") {
  REQUIRE_MESSAGE(load_prefixes("10.0.0.0/8\tten\n") == 0, error_);
  REQUIRE_MESSAGE(load_prefixes("x\ty\n", {"--address-bits", "bytes"}, "strings") == 0, error_);
  REQUIRE_MESSAGE(load(file("w.tsv", "w\tx\n"), {}, "words") == 0, error_);
  REQUIRE_MESSAGE(run({"tables", database_, "--json"}) == 0, error_);
  auto tables = json();
  REQUIRE(tables.size() == 3u);
  CHECK(tables[0]["key_type"] == "prefix");
  CHECK(tables[0]["address_bits"] == 32);
  CHECK(tables[0]["key_width"] == 5);
  CHECK(tables[1]["address_bits"] == "bytes");
  CHECK_FALSE(tables[2].contains("address_bits"));
  REQUIRE_MESSAGE(run({"tables", database_}) == 0, error_);
  CHECK(out_.substr(0, 13) == "t\tprefix\t5\t1\t");
  REQUIRE_MESSAGE(run({"stats", database_, "--json"}) == 0, error_);
  CHECK(json()["tables"][0]["address_bits"] == 32);
  REQUIRE_MESSAGE(run({"stats", database_}) == 0, error_);
  CHECK_MESSAGE(out_.find("\nt.address_bits\t32\n") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("\nstrings.address_bits\tbytes\n") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("words.address_bits") == std::string::npos, out_);
  REQUIRE_MESSAGE(run({"explain", database_, "t", "--json"}) == 0, error_);
  CHECK(json()["address_bits"] == 32);
  CHECK(json()["key_type"] == "prefix");
  REQUIRE_MESSAGE(run({"explain", database_, "t"}) == 0, error_);
  CHECK(out_.substr(0, out_.find(';')) == "table 't': prefixes of addresses of 32 bits, 5 bytes");
  REQUIRE_MESSAGE(run({"explain", database_, "strings"}) == 0, error_);
  CHECK(out_.substr(0, out_.find(';')) == "table 'strings': prefixes of byte strings, any length");
}

// What a program has made says by itself what its keys are.
TEST_CASE_METHOD(PrefixTest, "PrefixTest.TablesWithoutNotes", "[PrefixTest]") {
  {
    auto database = Database::open(database_);
    REQUIRE_OK((*database)->create_table("t", {.address_bits = 32}));
  }
  CHECK(scan() == "");
  REQUIRE_MESSAGE(load(file("p.tsv", "10.0.0.0/8\tten\n")) == 0, error_);
  CHECK(scan() == "10.0.0.0/8\tten\n");
  // Another table takes the name: the note of the first is not believed.
  {
    auto database = Database::open(database_);
    REQUIRE_OK((*database)->drop_table("t"));
    REQUIRE_OK((*database)->create_table("t", {.key_width = 2}));
  }
  REQUIRE_MESSAGE(run({"tables", database_}) == 0, error_);
  CHECK(out_.substr(0, 8) == "t\thex\t2\t");
  {
    auto database = Database::open(database_);
    REQUIRE_OK((*database)->drop_table("t"));
  }
  REQUIRE_MESSAGE(load(file("u.tsv", "1\tone\n"), {"--key-type", "u64"}) == 0, error_);
  {
    auto database = Database::open(database_);
    REQUIRE_OK((*database)->drop_table("t"));
    REQUIRE_OK((*database)->create_table("t", {.address_bits = 56}));
  }
  CHECK(scan() == "");
  REQUIRE_MESSAGE(run({"tables", database_}) == 0, error_);
  CHECK(out_.substr(0, 11) == "t\tprefix\t8\t");
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.WhatIsDumpedIsRestored", "[PrefixTest]") {
  REQUIRE_MESSAGE(load_prefixes("10.0.0.0/8\tten\n0.0.0.0/0\tall\n1.2.3.4\t\n") == 0, error_);
  REQUIRE_MESSAGE(load_prefixes("2001:db8::/32\tdoc\n", {}, "six") == 0, error_);
  REQUIRE(load_prefixes("abc/11\tx\n", {"--address-bits", "12", "--mask-host-bits"}, "odd") == 0);
  REQUIRE_MESSAGE(load_prefixes("x\ty\n", {"--address-bits", "bytes"}, "strings") == 0, error_);
  REQUIRE_MESSAGE(load(file("w.tsv", "w\tx\n"), {}, "words") == 0, error_);
  {
    auto database = Database::open(database_);
    REQUIRE_OK((*database)->create_table("unnoted", {.address_bits = 300}));
  }
  std::map<std::string, std::string> rows;
  for (const char* table : {"t", "six", "odd", "strings", "words", "unnoted"})
    rows[table] = scan({}, table);
  REQUIRE_MESSAGE(run({"tables", database_, "--json"}) == 0, error_);
  auto tables = json();
  REQUIRE_MESSAGE(run({"dump", database_}) == 0, error_);
  std::string dump = out_;
  REQUIRE_MESSAGE(run({"dump", database_, "words"}) == 0, error_);
  std::string words = out_;
  for (const char* every : {"0", "1"}) {
    database_ = directory_ + "/copy" + every;
    REQUIRE_MESSAGE(run({"restore", database_, "-", "--commit-every", every}, dump) == 0, error_);
    for (const auto& [table, text] : rows) CHECK(scan({}, table) == text);
    CHECK(match({"10.1.1.1"}) == "10.1.1.1\t10.0.0.0/8\tten\n");
    REQUIRE_MESSAGE(run({"tables", database_, "--json"}) == 0, error_);
    auto copied = json();
    REQUIRE(copied.size() == tables.size());
    for (size_t i = 0; i < tables.size(); ++i)
      for (const char* member : {"table", "key_type", "key_width"})
        CHECK(copied[i][member] == tables[i][member]);
    for (size_t i = 0; i < tables.size(); ++i)
      CHECK(copied[i].value("address_bits", nlohmann::json()) ==
            tables[i].value("address_bits", nlohmann::json()));
  }
  // Programs that know no prefix tables refuse a frame of this kind, and read dumps without.
  uint32_t kind;
  std::memcpy(&kind, dump.data() + 8, sizeof kind);
  CHECK(kind == 4u);
  std::memcpy(&kind, words.data() + 8, sizeof kind);
  CHECK(kind == 1u);
  // The kind is part of what the checksum is of.
  kind = 1;
  std::memcpy(dump.data() + 8, &kind, sizeof kind);
  CHECK(run({"restore", directory_ + "/damaged", "-"}, dump) == 3);
  CHECK_MESSAGE(error_.find("is damaged at byte 8") != std::string::npos, error_);
}

}  // namespace
}  // namespace stride::cli

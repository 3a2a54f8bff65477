// The command match.
#include <cstddef>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "engine/prefixes.h"
#include "tests/adapters/cli/prefix_cli_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

TEST_CASE_METHOD(PrefixTest, "PrefixTest.MatchesOfArguments", "[PrefixTest]") {
  REQUIRE_MESSAGE(
      load_prefixes("10.0.0.0/8\tten\n10.1.0.0/16\tten, \"one\"\n10.1.2.3\thost\n") == 0, error_);
  CHECK(match({"10.1.2.3", "11.0.0.0", "10.1.2.4", "0a020000"}) ==
        "10.1.2.3\t10.1.2.3/32\thost\n11.0.0.0\t\t\n10.1.2.4\t10.1.0.0/16\tten, \"one\"\n"
        "10.2.0.0\t10.0.0.0/8\tten\n");
  CHECK(error_ == "stride: 1 of 4 addresses have no prefix in the table\n");
  CHECK(match({"10.1.9.9", "11.0.0.0", "--missing", "skip", "--format", "csv"}) ==
        "10.1.9.9,10.1.0.0/16,\"ten, \"\"one\"\"\"\n");
  CHECK(match({"10.3.0.0", "11.0.0.0", "--json"}) ==
        "{\"address\":\"10.3.0.0\",\"prefix\":\"10.0.0.0/8\",\"value\":\"ten\"}\n"
        "{\"address\":\"11.0.0.0\",\"prefix\":null,\"value\":null}\n");
  CHECK(match({"10.1.2.3", "11.0.0.0", "10.9.9.9", "--all"}) ==
        "10.1.2.3\t10.0.0.0/8\tten\n10.1.2.3\t10.1.0.0/16\tten, \"one\"\n"
        "10.1.2.3\t10.1.2.3/32\thost\n11.0.0.0\t\t\n10.9.9.9\t10.0.0.0/8\tten\n");
  CHECK(error_ == "stride: 1 of 3 addresses have no prefix in the table\n");
  CHECK(match({"10.1.0.0", "11.0.0.0", "--all", "--json"}) ==
        "{\"address\":\"10.1.0.0\",\"prefix\":\"10.0.0.0/8\",\"value\":\"ten\"}\n"
        "{\"address\":\"10.1.0.0\",\"prefix\":\"10.1.0.0/16\",\"value\":\"ten, \\\"one\\\"\"}\n"
        "{\"address\":\"11.0.0.0\",\"prefix\":null,\"value\":null}\n");
  for (const char* all : {"", "--all"}) {
    std::vector<std::string> arguments = {"match",    database_,  "t",         "10.9.9.9",
                                          "11.0.0.0", "10.1.2.3", "--missing", "error"};
    if (*all) arguments.push_back(all);
    CHECK(run(arguments) == 4);
    CHECK(out_ == "10.9.9.9\t10.0.0.0/8\tten\n");
    CHECK(error_ == "stride: no prefix in table 't' covers '11.0.0.0'\n");
  }
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.MatchesOfFiles", "[PrefixTest]") {
  REQUIRE_MESSAGE(load_prefixes("::/0\tall\n2001:db8::/32\tdoc\n") == 0, error_);
  CHECK(match({"--keys", "-"}, "2001:db8::1\textra\n::\n2001:DB8:0::2") ==
        "2001:db8::1\t2001:db8::/32\tdoc\n::\t::/0\tall\n2001:db8::2\t2001:db8::/32\tdoc\n");
  CHECK(match({"--keys", file("a.gz", gzip("::1\n::2\n"))}) == "::1\t::/0\tall\n::2\t::/0\tall\n");
  for (const char* bad : {"1.2.3.4", "x", "", "::/0", "::1::"}) {
    CHECK(run({"match", database_, "t", "--keys", "-", "--block-bytes", "4"},
              "::1\n::2\n" + std::string(bad) + "\n") == 3);
    CHECK_MESSAGE(error_.find("standard input:3: ") != std::string::npos, error_);
    CHECK(out_ == "::1\t::/0\tall\n::2\t::/0\tall\n");
  }
  REQUIRE_MESSAGE(load_prefixes("2000::/3\tunicast\n", {}, "u") == 0, error_);
  CHECK(run({"match", database_, "u", "--keys", "-", "--missing", "error"}, "2000::\n::1\n") == 4);
  CHECK(out_ == "2000::\t2000::/3\tunicast\n");
  CHECK_MESSAGE(
      error_.find("standard input:2: no prefix in table 'u' covers '::1'") != std::string::npos,
      error_);
}

// Random prefixes of addresses of so many bits, and what match prints of them: from a map that is
// asked for one length after the other.
class MatchOracle {
 public:
  MatchOracle(uint32_t bits, std::mt19937_64& random)
      : bits_(bits), bytes_(address_bytes(bits)), random_(random) {
    for (int i = 0; i < 3000; ++i) {
      std::string key = prefix_of(address(), static_cast<uint32_t>(random_() % (bits_ + 1)));
      map_[key] = std::to_string(i);
      rows_ += format_prefix(as_bytes(key), bits_) + "\t" + map_[key] + "\n";
    }
    for (int i = 0; i < 5000; ++i) look_up(address());
  }
  const std::string& rows() const { return rows_; }
  const std::string& addresses() const { return addresses_; }
  const std::string& longest() const { return longest_; }
  const std::string& all() const { return all_; }
  const std::string& found_only() const { return found_only_; }

 private:
  // Few values of each byte, so that prefixes nest.
  std::string address() {
    std::string text;
    for (uint32_t i = 0; i < bytes_; ++i)
      text +=
          static_cast<char>(i < 2 ? random_() % 4 * 64 + 5 : random_() % 2 * 128 + random_() % 3);
    clear_host_bits(reinterpret_cast<std::byte*>(text.data()), bytes_, bits_);
    return text;
  }
  std::string prefix_of(std::string of, uint32_t length) const {
    clear_host_bits(reinterpret_cast<std::byte*>(of.data()), bytes_, length);
    std::byte end[2];
    put_prefix_length(end, length, bits_);
    return of + std::string(as_text({end, prefix_length_bytes(bits_)}));
  }
  void look_up(const std::string& of) {
    std::string text = format_address(as_bytes(of), bits_), last;
    addresses_ += text + "\tmore\n";
    for (uint32_t length = 0; length <= bits_; ++length) {
      auto found = map_.find(prefix_of(of, length));
      if (found == map_.end()) continue;
      last =
          text + "\t" + format_prefix(as_bytes(found->first), bits_) + "\t" + found->second + "\n";
      all_ += last;
    }
    found_only_ += last;
    longest_ += last.empty() ? text + "\t\t\n" : last;
    if (last.empty()) all_ += text + "\t\t\n";
  }

  uint32_t bits_, bytes_;
  std::mt19937_64& random_;
  std::map<std::string, std::string> map_;
  std::string rows_, addresses_, longest_, all_, found_only_;
};

TEST_CASE_METHOD(PrefixTest, "PrefixTest.RandomMatchesAreThoseOfAMap", "[PrefixTest]") {
  std::mt19937_64 random(test::seed());
  struct Family {
    const char* table;
    uint32_t bits;
  };
  for (Family family : {Family{"four", 32}, Family{"six", 128}, Family{"odd", 19}}) {
    MatchOracle oracle(family.bits, random);
    REQUIRE_MESSAGE(
        load_prefixes(oracle.rows(),
                      {"--address-bits", std::to_string(family.bits), "--on-duplicate", "last"},
                      family.table) == 0,
        error_);
    for (const char* threads : {"1", "3"}) {
      std::vector<std::string> arguments = {"match",
                                            database_,
                                            family.table,
                                            "--keys",
                                            "-",
                                            "--threads",
                                            threads,
                                            "--block-bytes",
                                            std::to_string(1 + random() % 30000)};
      REQUIRE_MESSAGE(run(arguments, oracle.addresses()) == 0, error_);
      CHECK_MESSAGE(out_ == oracle.longest(), family.table);
      arguments.insert(arguments.end(), {"--missing", "skip"});
      REQUIRE_MESSAGE(run(arguments, zstd(oracle.addresses())) == 0, error_);
      CHECK_MESSAGE(out_ == oracle.found_only(), family.table);
    }
    REQUIRE(run({"match", database_, family.table, "--keys", "-", "--all"}, oracle.addresses()) ==
            0);
    CHECK_MESSAGE(out_ == oracle.all(), family.table);
  }
}

// All prefixes of IPv4 with their networks: the first address of every thousandth is matched.
TEST_CASE_METHOD(PrefixTest, "PrefixTest.TheTableOfTheInternet", "[PrefixTest]") {
  REQUIRE_MESSAGE(load(STRIDE_SOURCE_DIR "/benchmark/data/prefixes_ipv4_asn.tsv.zst",
                       {"--key-type", "prefix", "--json"}) == 0,
                  error_);
  CHECK(json()["rows"] == 564579);
  std::istringstream rows(scan());
  std::string addresses, expected;
  uint64_t n = 0;
  for (std::string row; std::getline(rows, row); ++n) {
    if (n % 1000 != 0) continue;
    std::string address = row.substr(0, row.find('/'));
    addresses += address + "\n";
    expected += address + "\t" + row + "\n";
  }
  CHECK(n == 564579u);
  CHECK(match({"--keys", "-"}, addresses) == expected);
  CHECK(match({"--keys", "-", "--all"}, addresses) == expected);
  CHECK(error_ == "");
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.ColumnsMayBeCalledAddressOrPrefix", "[PrefixTest]") {
  const std::string nets = file("n.csv", "net,address,prefix,prefix_\n10.0.0.0/8,Main St,p,q\n");
  REQUIRE_MESSAGE(load(nets, {"--key-type", "prefix", "--header"}) == 0, error_);
  CHECK(match({"10.1.2.3", "11.0.0.0", "--format", "csv"}) ==
        "address_,prefix__,address,prefix,prefix_\n10.1.2.3,10.0.0.0/8,Main St,p,q\n"
        "11.0.0.0,,,,\n");
  CHECK(match({"10.1.2.3", "11.0.0.0", "--format", "jsonl"}) ==
        "{\"address_\":\"10.1.2.3\",\"prefix__\":\"10.0.0.0/8\",\"address\":\"Main St\","
        "\"prefix\":\"p\",\"prefix_\":\"q\"}\n"
        "{\"address_\":\"11.0.0.0\",\"prefix__\":null,\"address\":null,\"prefix\":null,"
        "\"prefix_\":null}\n");
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.HelpHasExamples", "[PrefixTest]") {
  REQUIRE(run({"match", "--help"}) == 0);
  CHECK_MESSAGE(out_.find("\n  stride match db") != std::string::npos, out_);
}

}  // namespace
}  // namespace stride::cli

// stride-bench lpm as a person meets it, and what it is made of.
#include <map>

#include "benchmark/datasets/route_tables.h"
#include "benchmark/peers/route_intervals.h"
#include "benchmark/workloads/lpm/report.h"
#include "engine/prefixes.h"
#include "gpu/location.h"
#include "tests/benchmark/harness/command_line_fixture.h"
#include "tests/support/catch.h"

namespace stride::benchmark {
namespace {

class LpmTest : public CommandLineFixture {
 protected:
  // A file with the lines.
  std::string file(const std::string& name, const std::string& lines) {
    std::string path = directory_ + "/" + name;
    std::ofstream(path) << lines;
    return path;
  }
  // With small defaults.
  int lpm(const std::vector<std::string>& arguments) {
    return run_with("lpm",
                    {{"--prefixes", routes_},
                     {"--queries", "3000"},
                     {"--backend", "host"},
                     {"--threads", "2"},
                     {"--update-rate", "2000"},
                     {"--update-batch", "20"},
                     {"--update-seconds", "0.2"},
                     {"--repeat", "1"},
                     {"--directory", directory_}},
                    arguments);
  }
  std::string routes_ = file("routes.tsv",
                             "10.0.0.0/8\ta\n10.1.0.0/16\tb\n10.1.2.3/32\tc\n192.168.0.0/16\td\n"
                             "10.1.0.0/16\te\n2001:db8::/32\tf\n2001:db8::1/128\tg\n::/0\th\n");
  std::string json_ = directory_ + "/rows.json", plot_ = directory_ + "/plot.svg";
};

TEST_CASE_METHOD(LpmTest, "LpmTest.TablesAndFiles", "[LpmTest]") {
  REQUIRE_MESSAGE(lpm({"--json", json_, "--plot", plot_}) == 0, error_);
  CHECK(error_ == "");
  CHECK_MESSAGE(out_.find("ipv4: 4 prefixes") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("ipv6: 3 prefixes, 5 intervals") != std::string::npos, out_);
  CHECK(out_.find("\nbinary search:2 threads") != std::string::npos);
  CHECK(out_.find("updates a second") != std::string::npos);
  auto rows = read_rows(json_);
  for (const auto& row : rows) CHECK_MESSAGE(row["records_per_second"] > 0, row["phase"]);
  // There are rows of both families.
  std::vector<std::string> twice = {"build", "match_uniform", "match_table",
                                    "build", "match_uniform", "match_table"};
  CHECK(phases_of(rows, "stride", "1 thread") == twice);
  CHECK(phases_of(rows, "stride", "2 threads") == twice);
  std::vector<std::string> database;
  for (int family = 0; family < 2; ++family) {
    for (const char* phase :
         {"load", "match_uniform", "match_table", "match_alone", "update", "match_meanwhile"})
      database.push_back(phase);
  }
  CHECK(phases_of(rows, "stride", "database") == database);
  CHECK(read_text(plot_).find("</svg>") != std::string::npos);
}

TEST_CASE_METHOD(LpmTest, "LpmTest.AddressesOfAFileAndNoUpdates", "[LpmTest]") {
  std::string addresses = file("asked.txt", "10.1.2.3\n10.9.9.9\n1.1.1.1\n");
  REQUIRE_MESSAGE(
      lpm({"--addresses", addresses + ",table", "--update-rate", "0", "--json", json_}) == 0,
      error_);
  auto rows = read_rows(json_);
  std::vector<std::string> database = phases_of(rows, "stride", "database");
  // There are no IPv6 addresses in the file.
  CHECK(database ==
        (std::vector<std::string>{"load", "match_asked", "match_table", "load", "match_table"}));
}

TEST_CASE_METHOD(LpmTest, "LpmTest.AFileWithoutAddressesOfAFamily", "[LpmTest]") {
  std::string addresses = file("asked.txt", "10.1.2.3\n");
  REQUIRE_MESSAGE(lpm({"--addresses", addresses}) == 0, error_);
  CHECK_MESSAGE(out_.find("ipv6: 3 prefixes") != std::string::npos, out_);
}

TEST_CASE_METHOD(LpmTest, "LpmTest.RefusesWhatIsWrong", "[LpmTest]") {
  expect_refused(lpm({"--prefixes", file("bad", "10.0.0.0/8\ta\n10.0.0.1/8\tb\n")}), "bad:2: ");
  expect_refused(lpm({"--prefixes", file("none", "")}), "no prefixes in the files");
  expect_refused(lpm({"--addresses", file("bad", "10.0.0.0/8\n")}), "bad:1: ");
  expect_refused(lpm({"--queries", "0"}), "--queries must be");
  expect_refused(lpm({"--update-batch", "0"}), "--update-batch must be");
  expect_refused(lpm({"--addresses", ""}), "--addresses");
  CHECK(lpm({"--prefixes", directory_ + "/missing"}) == 1);
  CHECK_MESSAGE(error_.find("missing") != std::string::npos, error_);
}

TEST_CASE_METHOD(LpmTest, "LpmTest.Help", "[LpmTest]") {
  CHECK(run({"lpm", "--help"}) == 0);
  for (const char* option :
       {"--prefixes", "--addresses", "--queries", "--update-rate", "--backend"})
    CHECK_MESSAGE(out_.find(option) != std::string::npos, option);
}

TEST_CASE_METHOD(LpmTest, "LpmTest.IntervalsGiveTheLongestPrefix", "[LpmTest]") {
  auto tables = read_routes({routes_});
  REQUIRE_OK(tables);
  REQUIRE(tables->size() == 2u);
  const RouteTable& ipv4 = (*tables)[0];
  REQUIRE(ipv4.size() == 4u);
  CHECK(as_text(ipv4.values.view()[1]) == "e");  // the later line
  std::map<std::string, std::string> expected = {
      {"9.255.255.255", "-"}, {"10.0.0.0", "a"},        {"10.1.0.0", "e"},
      {"10.1.2.2", "e"},      {"10.1.2.3", "c"},        {"10.1.2.4", "e"},
      {"10.2.0.0", "a"},      {"10.255.255.255", "a"},  {"11.0.0.0", "-"},
      {"0.0.0.0", "-"},       {"192.168.255.255", "d"}, {"255.255.255.255", "-"}};
  Parallel parallel(1);
  RouteIntervals intervals(ipv4.keys.view(), 32);
  for (const auto& [text, value] : expected) {
    std::string address = *parse_address(text, 32);
    uint32_t rank;
    intervals.match(Column::fixed(address.data(), 4, 1), &parallel, {&rank, 1});
    CHECK_MESSAGE((rank == Location::absent ? "-" : as_text(ipv4.values.view()[rank])) == value,
                  text);
  }
  // A prefix that ends where all addresses end, and one of all bits.
  const RouteTable& ipv6 = (*tables)[1];
  RouteIntervals wide(ipv6.keys.view(), 128);
  CHECK(wide.size() == 5u);
  for (const auto& [text, rank] : std::map<std::string, uint32_t>{
           {"::", 0}, {"2001:db8::", 1}, {"2001:db8::1", 2}, {"2001:db8::2", 1}, {"ffff::", 0}}) {
    std::string address = *parse_address(text, 128);
    uint32_t found;
    wide.match(Column::fixed(address.data(), 16, 1), &parallel, {&found, 1});
    CHECK_MESSAGE(found == rank, text);
  }
}

TEST_CASE_METHOD(LpmTest, "LpmTest.TableAddressesLieInThePrefixes", "[LpmTest]") {
  auto tables = read_routes({file("routes", "10.1.0.0/16\ta\n172.16.0.0/12\tb\n")});
  REQUIRE_OK(tables);
  OwnedColumn addresses = table_addresses((*tables)[0], 1000, 5);
  REQUIRE(addresses.rows == 1000u);
  RouteIntervals intervals((*tables)[0].keys.view(), 32);
  Parallel parallel(1);
  std::vector<uint32_t> ranks(1000);
  intervals.match(addresses.view(), &parallel, ranks);
  CHECK(std::count(ranks.begin(), ranks.end(), Location::absent) == 0);
  CHECK(std::count(ranks.begin(), ranks.end(), 0u) > 300);
}

}  // namespace
}  // namespace stride::benchmark

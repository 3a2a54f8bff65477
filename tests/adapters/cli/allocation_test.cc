// Memory runs out in commands: every allocation of a command fails in turn, alone or with all that
// follow. The command says so, or could do without, and what it reports is what is there.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/failing_allocations.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/soak.h"

namespace stride::cli {
namespace {

class CliAllocationTest : public CliFixture {
 protected:
  CliAllocationTest() {
    test::only_one = GENERATE(true, false);
    original_ = directory_ + "/original";
    database_ = original_;
    std::string lines;
    for (int i = 0; i < 300; ++i)
      lines += "key" + std::to_string(i) + "\tvalue " + std::to_string(i % 7) + "\n";
    const std::string rows = file("rows.tsv", lines);
    REQUIRE_MESSAGE(load(rows) == 0, error_);
    REQUIRE_MESSAGE(load(file("more.tsv", "key7\tnew\nz\tlast\n"), {"--on-duplicate", "last"}) == 0,
                    error_);
    REQUIRE_MESSAGE(load(file("hits.tsv", "a\t1\nb\t2\na\t3\n"),
                         {"--accumulate", "--key-type", "bytes"}, "hits") == 0,
                    error_);
    REQUIRE_MESSAGE(load(file("routes.tsv", "10.0.0.0/8\tten\n10.1.0.0/16\tone\n"),
                         {"--key-type", "prefix"}, "routes") == 0,
                    error_);
    REQUIRE_MESSAGE(load(file("typed.csv", "id,name,score\n1,Ada,1.5\n2,Bob,\n"),
                         {"--key-type", "u64"}, "typed") == 0,
                    error_);
    database_ = directory_ + "/db";
  }

  // Each table as scan prints it.
  std::map<std::string, std::string> tables() {
    std::map<std::string, std::string> found;
    REQUIRE_MESSAGE(run({"tables", database_, "--format", "tsv"}) == 0, error_);
    std::istringstream names(out_);
    for (std::string line; std::getline(names, line);) {
      const std::string name = line.substr(0, line.find('\t'));
      found[name] = scan({}, name);
    }
    return found;
  }
  void begin_anew() {
    std::filesystem::remove_all(database_);
    std::filesystem::copy(original_, database_, std::filesystem::copy_options::recursive);
    std::filesystem::remove_all(directory_ + "/made");
  }

  // Until the command needs no allocation that fails. Returns how often it has said so.
  uint64_t sweep(const std::vector<std::string>& arguments, const std::string& input = "") {
    begin_anew();
    const auto before = tables();
    REQUIRE_MESSAGE(run(arguments, input) == 0, error_);
    const std::string printed = out_;
    const auto after = tables();
    uint64_t refused = 0;
    for (int64_t n = 0;; n = next_after(n)) {
      INFO(arguments[0] << ", allocation " << n);
      begin_anew();
      int code = 0;
      const bool failed = test::fail_allocation(n, [&] { code = run(arguments, input); });
      const std::string said = error_;
      if (code == 0) {
        CHECK(out_ == printed);
      } else {
        CHECK_MESSAGE(code == 7, code << " " << said);
        CHECK(said.find("memory") != std::string::npos);
        ++refused;
      }
      REQUIRE_MESSAGE(run({"verify", database_}) == 0, error_);
      REQUIRE(tables() == (code == 0 ? after : before));
      if (!failed) break;
    }
    return refused;
  }

 private:
  // Every allocation where the tests are to run for long, else some of them, others in each run.
  int64_t next_after(int64_t n) {
    if (test::soak_seconds(0) > 0) return n + 1;
    return n + 1 + static_cast<int64_t>(random_() % (20 + static_cast<uint64_t>(n) / 4));
  }

  std::string original_;
  std::mt19937_64 random_{test::seed()};
};

TEST_CASE_METHOD(CliAllocationTest, "CliAllocationTest.Writing", "[CliAllocationTest]") {
  CHECK(sweep({"load", database_, "t", directory_ + "/more.tsv", "--on-duplicate", "first"}) > 0u);
  CHECK(sweep({"load", database_, "hits", directory_ + "/hits.tsv", "--accumulate"}) > 0u);
  CHECK(sweep({"load", database_, "typed", directory_ + "/typed.csv", "--on-duplicate", "last"}) >
        0u);
  CHECK(sweep({"delete", database_, "t", "key3", "key4"}) > 0u);
  CHECK(sweep({"rename", database_, "t", "u"}) > 0u);
  CHECK(sweep({"drop", database_, "t"}) > 0u);
  CHECK(sweep({"compact", database_}) > 0u);
  CHECK(sweep({"shell", database_}, "put t a b\ndelete t key5\n") > 0u);
}

TEST_CASE_METHOD(CliAllocationTest, "CliAllocationTest.Reading", "[CliAllocationTest]") {
  CHECK(sweep({"get", database_, "t", "key1", "key2"}) > 0u);
  CHECK(sweep({"scan", database_, "typed", "--json"}) > 0u);
  CHECK(sweep({"group", database_, "typed", "--by", "name"}) > 0u);
  CHECK(sweep({"match", database_, "routes", "10.1.2.3"}) > 0u);
  CHECK(sweep({"join", database_, "t", "-"}, "key1\nkey9\n") > 0u);
  CHECK(sweep({"dedup", "-"}, "a\nb\na\n") > 0u);
  CHECK(sweep({"explain", database_, "t"}) > 0u);
  CHECK(sweep({"dump", database_}) > 0u);
}

TEST_CASE_METHOD(CliAllocationTest, "CliAllocationTest.Copies", "[CliAllocationTest]") {
  const std::string made = directory_ + "/made";
  CHECK(sweep({"checkpoint", database_, made}) > 0u);
  CHECK(sweep({"backup", database_, made}) > 0u);
  CHECK(sweep({"salvage", database_, made}) > 0u);
}

}  // namespace
}  // namespace stride::cli

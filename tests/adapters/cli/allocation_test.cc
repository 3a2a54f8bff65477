// Memory runs out in commands: every allocation of a command fails in turn, alone or with all that
// follow. The command says so, or can do without, and what it reports is what is there.
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/soak.h"

namespace stride::cli {
namespace {

class CliAllocationTest : public CliFixture {
 protected:
  CliAllocationTest() {
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
    REQUIRE_MESSAGE(run({"tables", database_}) == 0, error_);
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

  // Runs a program of its own whose allocation `n` fails. Returns how it ended, as waitpid() does,
  // and what it said in out_ and error_.
  int run_with_failure(int64_t n, const std::string& arguments, bool* failed) {
    const std::string base = directory_ + "/program";
    const std::string line = "STRIDE_FAIL_ALLOCATION=" + std::to_string(n) +
                             (only_one_ ? "" : " STRIDE_FAIL_ALL=1") + " exec " +
                             STRIDE_FAILING_PROGRAM + " " + arguments + " >" + base + ".out 2>" +
                             base + ".err 3>" + base + ".failed <" + input_;
    const int ended = std::system(line.c_str());
    out_ = read(base + ".out");
    error_ = read(base + ".err");
    *failed = read(base + ".failed") != "0";
    return ended;
  }

  // Until the command needs no allocation that fails.
  void sweep(const std::string& arguments, const std::string& input = "") {
    // A third of the commands, others in each run.
    if (test::under_sanitizer && test::soak_seconds(0) <= 0 && random_() % 3) return;
    input_ = file("input", input);
    bool failed = false;
    begin_anew();
    const auto before = tables();
    REQUIRE_MESSAGE(run_with_failure(INT64_MAX / 4, arguments, &failed) == 0, error_);
    const std::string printed = out_;
    const auto after = tables();
    uint64_t refused = 0;
    for (int64_t n = random_() % 50;; n = next_after(n)) {
      INFO("stride " << arguments << ", allocation " << n);
      begin_anew();
      const int ended = run_with_failure(n, arguments, &failed);
      const std::string said = error_;
      if (ended == 0) {
        CHECK(out_ == printed);
      } else if (WIFEXITED(ended)) {
        CHECK_MESSAGE(WEXITSTATUS(ended) == 7, WEXITSTATUS(ended) << " " << said);
        CHECK(said.find("memory") != std::string::npos);
        ++refused;
      } else {
        // Libraries that read arguments and JSON allocate where they may not throw.
        CHECK(WTERMSIG(ended) == SIGABRT);
      }
      REQUIRE_MESSAGE(run({"verify", database_}) == 0, error_);
      const auto there = tables();
      // Where memory was too short for the report alone, the error says that the work is done.
      const bool is_done = ended == 0 || said.find(" is done") != std::string::npos ||
                           said.find(" is dropped") != std::string::npos;
      if (WIFEXITED(ended))
        REQUIRE_MESSAGE(there == (is_done ? after : before), said);
      else
        REQUIRE((there == before || there == after));
      if (!failed) break;
    }
    CHECK(refused > 0u);
  }

  const bool only_one_ = GENERATE(true, false);

 private:
  // Every allocation where the tests are to run for long, else some of them, others in each run.
  int64_t next_after(int64_t n) {
    if (test::soak_seconds(0) > 0) return n + 1;
    return n + 1 + static_cast<int64_t>(random_() % (test::under_sanitizer ? 8000 : 500));
  }

  const std::string original_ = directory_ + "/original";
  std::string input_;
  std::mt19937_64 random_{test::seed()};
};

TEST_CASE_METHOD(CliAllocationTest, "CliAllocationTest.Writing", "[CliAllocationTest]") {
  sweep("load " + database_ + " t " + directory_ + "/more.tsv --on-duplicate first");
  sweep("load " + database_ + " hits " + directory_ + "/hits.tsv --accumulate");
  sweep("load " + database_ + " typed " + directory_ + "/typed.csv --on-duplicate last");
  sweep("delete " + database_ + " t key3 key4");
  sweep("rename " + database_ + " t u");
  sweep("drop " + database_ + " t");
  sweep("compact " + database_);
  sweep("shell " + database_, "put t a b\n");
}

TEST_CASE_METHOD(CliAllocationTest, "CliAllocationTest.Reading", "[CliAllocationTest]") {
  sweep("get " + database_ + " t key1 key2");
  sweep("scan " + database_ + " typed --json");
  sweep("group " + database_ + " typed --by name");
  sweep("match " + database_ + " routes 10.1.2.3");
  sweep("join " + database_ + " t -", "key1\nkey9\n");
  sweep("dedup -", "a\nb\na\n");
  sweep("explain " + database_ + " t");
  sweep("dump " + database_);
}

TEST_CASE_METHOD(CliAllocationTest, "CliAllocationTest.Copies", "[CliAllocationTest]") {
  const std::string made = directory_ + "/made";
  sweep("checkpoint " + database_ + " " + made);
  sweep("backup " + database_ + " " + made);
  sweep("salvage " + database_ + " " + made);
}

}  // namespace
}  // namespace stride::cli

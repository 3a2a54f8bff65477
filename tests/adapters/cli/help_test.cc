// The version, the help, and where data can be JSON.
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "adapters/cli/command_set.h"
#include "adapters/cli/subcommands.h"
#include "adapters/cli/text/similar_names.h"
#include "engine/library_version.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class HelpTest : public CliFixture {
 protected:
  std::string output_of(const std::vector<std::string>& arguments) {
    CHECK_MESSAGE(run(arguments) == 0, error_);
    CHECK(error_ == "");
    return out_;
  }
  // All of the output is JSON: one value, or one in each line.
  static bool is_json(const std::string& text) {
    if (nlohmann::json::accept(text)) return true;
    std::istringstream lines(text);
    bool some = false;
    for (std::string line; std::getline(lines, line); some = true)
      if (!nlohmann::json::accept(line)) return false;
    return some;
  }
};

TEST_CASE_METHOD(HelpTest, "HelpTest.TheVersion", "[HelpTest]") {
  const std::string text = "stride " + std::to_string(version_major) + "." +
                           std::to_string(version_minor) + "." + std::to_string(version_patch) +
                           "\n";
  CHECK(output_of({"--version"}) == text);
  CHECK(output_of({"version"}) == text);
  expect_refused({"version", "--json"}, 2, "version has no option '--json'");
}

TEST_CASE_METHOD(HelpTest, "HelpTest.HelpOfACommandIsWhatItsOptionShows", "[HelpTest]") {
  for (const Subcommands::Command& command : Subcommands::all()) {
    const std::string help = output_of({"help", command.name});
    CHECK_MESSAGE(help == output_of({command.name, "--help"}), command.name);
    CHECK_MESSAGE(help.find(std::string("Usage: stride ") + command.name) != std::string::npos,
                  help);
  }
  CHECK(output_of({"help"}) == output_of({"--help"}));
  for (const char* line : {"\n  load ", "\n  help ", "\n  version ", "\n  --version "})
    CHECK_MESSAGE(output_of({"help"}).find(line) != std::string::npos, out_);
  CHECK(output_of({"completion", "bash"}).find("elif [ \"${COMP_WORDS[1]}\" = help ]") !=
        std::string::npos);
}

// CLI11 from 2.4 on ends a program that has others, in whatever command.
TEST_CASE("HelpTest.NamesOfArgumentsHaveNoBlanks", "[HelpTest]") {
  Context context{Environment{}};
  CommandSet commands(&context);
  for (const CLI::App* command : commands.app()->get_subcommands({})) {
    for (const CLI::Option* option : command->get_options()) {
      const std::string name = option->get_name(/*positional=*/true);
      CHECK_MESSAGE(name.find_first_of(" \n=:{!") == std::string::npos, command->get_name()
                                                                            << ": " << name);
    }
  }
}

// A command that is not in this table is one whose JSON nobody looks at.
TEST_CASE_METHOD(HelpTest, "HelpTest.DataIsJsonWhereThatIsOffered", "[HelpTest]") {
  const std::string rows = file("rows.tsv", "a\"\t1\n\xff\t2\n"), db = database_;
  const std::string nets = file("nets.tsv", "10.0.0.0/8\tx\n");
  const std::string table = "t\xff\"";
  REQUIRE_MESSAGE(load(rows, {"--numbers", "i64"}, table) == 0, error_);
  REQUIRE_MESSAGE(load(nets, {"--key-type", "prefix"}, "nets") == 0, error_);
  REQUIRE_MESSAGE(run({"dump", db}) == 0, error_);
  const std::string dump = file("dump", out_), copy = directory_ + "/copy";
  const std::map<std::string, std::vector<std::string>> commands = {
      {"load", {"load", db, table, rows}},
      {"put", {"put", db, table, "a", "1"}},
      {"delete", {"delete", db, table, "missing"}},
      {"get", {"get", db, table, "a\"", "\xff", "b", "--missing", "empty"}},
      {"match", {"match", db, "nets", "10.1.2.3", "11.0.0.0"}},
      {"dedup", {"dedup", rows, "--count"}},
      {"scan", {"scan", db, table, "--format", "csv"}},
      {"group", {"group", db, table, "--prefix-bytes", "1", "--min", "--max"}},
      {"count", {"count", db, table}},
      {"tables", {"tables", db, "--all"}},
      {"rename", {"rename", db, "nets", "\xfe"}},
      {"drop", {"drop", db, "\xfe"}},
      {"restore", {"restore", copy, dump}},
      {"checkpoint", {"checkpoint", db, directory_ + "/checkpoint"}},
      {"backup", {"backup", db, directory_ + "/backup"}},
      {"stats", {"stats", db}},
      {"metrics", {"metrics", db}},
      {"explain", {"explain", db, table}},
      {"salvage", {"salvage", db, directory_ + "/salvaged"}},
      {"verify", {"verify", db}},
      {"compact", {"compact", db}},
      {"calibrate", {"calibrate", db}},
      {"doctor", {"doctor", directory_, "--megabytes", "1"}}};
  for (const Subcommands::Command& command : Subcommands::all()) {
    auto found = commands.find(command.name);
    if (!command.json) {
      expect_refused({command.name, "--json"}, 2,
                     std::string(command.name) + " has no option '--json'");
      CHECK(output_of({"help", command.name}).find("--json") == std::string::npos);
      continue;
    }
    REQUIRE_MESSAGE(found != commands.end(), command.name);
    std::vector<std::string> arguments = found->second;
    arguments.push_back("--json");
    CHECK_MESSAGE(run(arguments) == 0, error_);
    CHECK_MESSAGE(is_json(out_), command.name << ": " << out_);
  }
  expect_refused({"dedup", rows, "--json"}, 2, "--json is for --count");
}

TEST_CASE("SimilarNamesTest.Distances", "[SimilarNamesTest]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("load", "laod") == 1);   // swapped
  CHECK(edit_distance("load", "lod") == 1);    // left out
  CHECK(edit_distance("load", "loaad") == 1);  // too many
  CHECK(edit_distance("load", "lOAx") == 1);   // another, and upper case
  CHECK(edit_distance("ca", "abc") == 3);      // no byte is edited twice
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("SimilarNamesTest.OnlyTheNearest", "[SimilarNamesTest]") {
  using Names = std::vector<std::string>;
  CHECK(similar_names("laod", {"load", "get", "loads"}) == Names{"load"});
  CHECK(similar_names("tabl", {"table", "tab", "tables"}) == Names{"table", "tab"});
  CHECK(similar_names("aaax", {"aaaa", "aaab", "aaac", "aaad"}) == Names{"aaaa", "aaab", "aaac"});
  CHECK(similar_names("zipcode", {"zip", "city"}).empty());
  CHECK(similar_names("id", {"ip", "x"}).empty());
  CHECK(similar_names("ids", {"id"}) == Names{"id"});
  CHECK(similar_names("USERS", {"users"}) == Names{"users"});
  CHECK(similar_names(std::string(300, 'a'), {std::string(299, 'a')}).empty());
  CHECK(did_you_mean("laod", {"load"}, "none") == "did you mean 'load'?");
  CHECK(did_you_mean("tabl", {"table", "tab"}, "none") == "did you mean 'table' or 'tab'?");
  CHECK(did_you_mean("x", {"load"}, "none") == "none");
}

TEST_CASE("SimilarNamesTest.Lists", "[SimilarNamesTest]") {
  CHECK(names_text({"a"}) == "'a'");
  CHECK(names_text({"a", "b"}) == "'a' and 'b'");
  CHECK(names_text({"a", "b", "c"}, "or") == "'a', 'b' or 'c'");
  std::vector<std::string> names(10, "n");
  CHECK(names_text(names) == "'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n' and 'n'");
  names.resize(12, "n");
  CHECK(names_text(names) == "'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n' and 2 more");
  CHECK(names_text({"a\tb"}) == "'a\\x09b'");
}

}  // namespace
}  // namespace stride::cli

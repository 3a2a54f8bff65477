// get, join, scan and tables.
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

class LookupTest : public CliFixture {
 protected:
  LookupTest() {
    CHECK_MESSAGE(load(file("users.tsv", "7\tseven\n10\tten, \"x\"\n300\tthree\thundred\n"),
                       {"--key-type", "u64"}, "users") == 0,
                  error_);
  }
};

TEST_CASE_METHOD(LookupTest, "LookupTest.GetKeysOfArguments", "[LookupTest]") {
  REQUIRE_MESSAGE(run({"get", database_, "users", "300", "8", "7", "7"}) == 0, error_);
  CHECK(out_ == "300\tthree\thundred\n7\tseven\n7\tseven\n");
  CHECK(error_ == "stride: 1 of 4 keys are not in the table\n");
  REQUIRE(run({"get", database_, "users", "8", "10", "--missing", "empty", "--format", "csv"}) ==
          0);
  CHECK(out_ == "8,\n10,\"ten, \"\"x\"\"\"\n");
  REQUIRE(run({"get", database_, "users", "8", "7", "--missing", "empty", "--json"}) == 0);
  CHECK(out_ == "{\"key\":8,\"value\":null}\n{\"key\":7,\"value\":\"seven\"}\n");
  CHECK(run({"get", database_, "users", "7", "8", "10", "--missing", "error"}) == 4);
  CHECK(out_ == "7\tseven\n");
  CHECK(error_ == "stride: key '8' is not in table 'users'\n");
  CHECK(run({"get", database_, "users"}) == 2);
  CHECK(run({"get", database_, "users", "7", "--keys", "-"}) == 2);
}

TEST_CASE_METHOD(LookupTest, "LookupTest.GetKeysOfFiles", "[LookupTest]") {
  REQUIRE_MESSAGE(run({"get", database_, "users", "--keys", "-"}, "10\n9\textra\n7") == 0, error_);
  CHECK(out_ == "10\tten, \"x\"\n7\tseven\n");
  CHECK(run({"get", database_, "users", "--keys", file("k.gz", gzip("7\n9\n")), "--missing",
             "error"}) == 4);
  CHECK_MESSAGE(error_.find("k.gz:2: key '9' is not in table 'users'") != std::string::npos,
                error_);
  CHECK(out_ == "7\tseven\n");
  CHECK(run({"get", database_, "users", "--keys", "-"}, "7\nx\n") == 3);
  CHECK_MESSAGE(error_.find("standard input:2: 'x' is no number") != std::string::npos, error_);
}

TEST_CASE_METHOD(LookupTest, "LookupTest.HexKeysOfAnyBytes", "[LookupTest]") {
  REQUIRE(load(file("h.tsv", "00\tzero\n0000\ttwo\nff\tff\nff00ff\tx\n"), {"--key-type", "hex"},
               "h") == 0);
  REQUIRE_MESSAGE(run({"get", database_, "h", "ff00ff", "0000", "FF", "00", "0001"}) == 0, error_);
  CHECK(out_ == "ff00ff\tx\n0000\ttwo\nff\tff\n00\tzero\n");
  // As bytes they are no text.
  REQUIRE(run({"scan", database_, "h", "--key-type", "bytes", "--json", "--from", "\xff"}) == 0);
  CHECK(out_ ==
        "{\"key_hex\":\"ff\",\"value\":\"ff\"}\n{\"key_hex\":\"ff00ff\",\"value\":\"x\"}\n");
}

TEST_CASE_METHOD(LookupTest, "LookupTest.JoinKeepsRowsAndOrder", "[LookupTest]") {
  std::string rows = "b\t10\t1\na\t8\t2\nb\t7\t3\n";
  REQUIRE_MESSAGE(run({"join", database_, "users", "-", "--key", "2"}, rows) == 0, error_);
  CHECK(out_ == "b\t10\t1\tten, \"x\"\na\t8\t2\t\nb\t7\t3\tseven\n");
  REQUIRE(run({"join", database_, "users", "-", "--key", "2", "--missing", "skip"}, rows) == 0);
  CHECK(out_ == "b\t10\t1\tten, \"x\"\nb\t7\t3\tseven\n");
  CHECK(run({"join", database_, "users", "-", "--key", "2", "--missing", "error"}, rows) == 4);
  CHECK_MESSAGE(error_.find("standard input:2: key '8'") != std::string::npos, error_);
  CHECK(run({"join", database_, "users", "-", "--key", "1"}, rows) == 3);
  CHECK_MESSAGE(error_.find("standard input:1: 'b' is no number") != std::string::npos, error_);
  CHECK(out_ == "");
}

TEST_CASE_METHOD(LookupTest, "LookupTest.JoinOfCsvAndJson", "[LookupTest]") {
  REQUIRE_MESSAGE(run({"join", database_, "users", "-", "--format", "csv", "--header", "--key",
                       "id", "--value-name", "name"},
                      "x,id\r\n\"a,\n\",10\r\nb,8\r\n") == 0,
                  error_);
  CHECK(out_ == "x,id,name\r\n\"a,\n\",10,\"ten, \"\"x\"\"\"\r\nb,8,\r\n");
  REQUIRE_MESSAGE(run({"join", database_, "users", "-", "--format", "jsonl", "--key", "id"},
                      "{\"id\":10}\n{\"id\":8, \"x\":{}} \n") == 0,
                  error_);
  CHECK(out_ == "{\"id\":10,\"value\":\"ten, \\\"x\\\"\"}\n{\"id\":8, \"x\":{},\"value\":null}\n");
}

// An object with two members of one name is read in as many ways as there are readers.
TEST_CASE_METHOD(LookupTest, "LookupTest.JoinWritesNoMemberTwice", "[LookupTest]") {
  const std::vector<std::string> join = {"join",     database_, "users", "-",
                                         "--format", "jsonl",   "--key", "id"};
  auto run_with = [&](const std::vector<std::string>& options, const std::string& rows) {
    std::vector<std::string> arguments = join;
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run(arguments, rows);
  };
  const std::string rows = "{\"id\":7}\n{\"v\\u0061lue\":{\"value\":1},\"id\":10}\n";
  CHECK(run_with({}, rows) == 3);
  CHECK_MESSAGE(
      error_.find("standard input:2: the object has a field 'value' already: give the "
                  "one that is added another name with --value-name") != std::string::npos,
      error_);
  REQUIRE_MESSAGE(run_with({"--value-name", "user"}, rows) == 0, error_);
  CHECK(out_ ==
        "{\"id\":7,\"user\":\"seven\"}\n"
        "{\"v\\u0061lue\":{\"value\":1},\"id\":10,\"user\":\"ten, \\\"x\\\"\"}\n");
  REQUIRE_MESSAGE(run_with({"--rejects", "/dev/null"}, rows) == 0, error_);
  CHECK(out_ == "{\"id\":7,\"value\":\"seven\"}\n");
  CHECK(run_with({"--value-name", "id"}, rows) == 3);
}

TEST_CASE_METHOD(LookupTest, "LookupTest.JoinSaysWhichColumnItHasTwice", "[LookupTest]") {
  const std::vector<std::string> join = {"join",     database_, "users",   "-",
                                         "--format", "csv",     "--header"};
  REQUIRE_MESSAGE(run(join, "id,value\n10,a\n") == 0, error_);
  CHECK(out_ == "id,value,value\n10,a,\"ten, \"\"x\"\"\"\n");
  CHECK_MESSAGE(
      error_.find("the output has two columns 'value', of standard input and of the table") !=
          std::string::npos,
      error_);
  std::vector<std::string> named = join;
  named.insert(named.end(), {"--value-name", "user"});
  REQUIRE_MESSAGE(run(named, "id,value\n10,a\n") == 0, error_);
  CHECK(error_.find("two columns") == std::string::npos);
}

// As many columns as a table may have, each of which the file has, too.
TEST_CASE_METHOD(LookupTest, "LookupTest.JoinSaysOnceThatItHasManyColumnsTwice", "[LookupTest]") {
  std::string header = "id", row = "7";
  for (int i = 0; i < 4000; ++i) {
    header += ",c" + std::to_string(i);
    row += "," + std::to_string(i);
  }
  const std::string text = header + "\n" + row + "\n";
  REQUIRE_MESSAGE(run({"load", database_, "wide", "-", "--format", "csv", "--header"}, text) == 0,
                  error_);
  REQUIRE_MESSAGE(run({"join", database_, "wide", "-", "--format", "csv", "--header"}, text) == 0,
                  error_);
  CHECK_MESSAGE(error_.find("two columns each of 'c0', 'c1'") != std::string::npos, error_);
  CHECK_MESSAGE(error_.find("and 3990 more") != std::string::npos, error_);
  CHECK(out_.starts_with(header + ",c0,c1,"));
}

TEST_CASE_METHOD(LookupTest, "LookupTest.AHeaderWithoutRowsIsKept", "[LookupTest]") {
  REQUIRE_MESSAGE(
      run({"join", database_, "users", "-", "--format", "csv", "--header"}, "id,x\n") == 0, error_);
  CHECK(out_ == "id,x,value\n");
  REQUIRE_MESSAGE(run({"join", database_, "users", "-"}, "") == 0, error_);
  CHECK(out_ == "");
}

TEST_CASE_METHOD(LookupTest, "LookupTest.NotesOfATableThatIsGoneAreNotBelieved", "[LookupTest]") {
  auto database = Database::open(database_);
  REQUIRE_OK((*database)->drop_table("users"));
  auto table = (*database)->create_table("users", {.key_width = 2});
  WriteTransaction t = (*database)->begin();
  REQUIRE_OK(t.put(*table, "ab", "v"));
  REQUIRE_OK(t.commit());
  database->reset();
  CHECK(scan({}, "users") == "6162\tv\n");
}

TEST_CASE_METHOD(LookupTest, "LookupTest.RandomJoinsAreThoseOfAMap", "[LookupTest]") {
  std::mt19937_64 random(test::seed());
  std::map<std::string, std::string> map;
  std::string table, rows;
  for (int i = 0; i < 5000; ++i) {
    std::string key = std::to_string(random() % 6000);
    map[key] = std::string(random() % 90, static_cast<char>('a' + random() % 26));
    table += key + "\t" + map[key] + "\n";
  }
  REQUIRE_MESSAGE(load(file("t.tsv", table), {"--on-duplicate", "last"}) == 0, error_);
  std::string all, inner;
  for (int i = 0; i < 20000; ++i) {
    std::string key = std::to_string(random() % 6000), row = std::to_string(i) + "\t" + key + "\tz";
    rows += row + "\n";
    auto found = map.find(key);
    all += row + "\t" + (found == map.end() ? "" : found->second) + "\n";
    if (found != map.end()) inner += row + "\t" + found->second + "\n";
  }
  for (const char* threads : {"1", "2", "5"}) {
    std::vector<std::string> options = {"join",
                                        database_,
                                        "t",
                                        "-",
                                        "--key",
                                        "2",
                                        "--threads",
                                        threads,
                                        "--block-bytes",
                                        std::to_string(1 + random() % 50000)};
    REQUIRE_MESSAGE(run(options, rows) == 0, error_);
    CHECK(out_ == all);
    options.insert(options.end(), {"--missing", "skip"});
    REQUIRE_MESSAGE(run(options, rows) == 0, error_);
    CHECK(out_ == inner);
  }
}

TEST_CASE_METHOD(LookupTest, "LookupTest.ScanWithinBounds", "[LookupTest]") {
  CHECK(scan({"--reverse", "--limit", "2"}, "users") == "300\tthree\thundred\n10\tten, \"x\"\n");
  CHECK(scan({"--from", "8", "--to", "300"}, "users") == "10\tten, \"x\"\n");
  CHECK(scan({"--limit", "0"}, "users") == "");
  CHECK(scan({"--keys-only"}, "users") == "7\n10\n300\n");
  CHECK(scan({"--limit", "1", "--json"}, "users") == "{\"key\":7,\"value\":\"seven\"}\n");
}

TEST_CASE_METHOD(LookupTest, "LookupTest.CountAndTables", "[LookupTest]") {
  REQUIRE(run({"count", database_, "users", "--json"}) == 0);
  CHECK(out_ == "{\"count\":3,\"table\":\"users\"}\n");
  REQUIRE(run({"tables", database_, "--json"}) == 0);
  auto list = nlohmann::json::parse(out_);
  REQUIRE(list.size() == 1u);
  CHECK(list[0]["table"] == "users");
  CHECK(list[0]["key_type"] == "u64");
  CHECK(list[0]["key_width"] == 8);
  CHECK(list[0]["rows"] == 3);
  REQUIRE(run({"tables", database_, "--all"}) == 0);
  CHECK_MESSAGE(out_.find("\n.stride\t") != std::string::npos, out_);
}

TEST_CASE_METHOD(LookupTest, "LookupTest.HelpHasExamples", "[LookupTest]") {
  for (const char* command : {"load", "get", "join", "scan", "count", "tables"}) {
    CHECK(run({command, "--help"}) == 0);
    CHECK_MESSAGE(out_.find("\n  stride " + std::string(command) + " db") != std::string::npos,
                  out_);
    CHECK(error_ == "");
  }
  CHECK(run({"--help"}) == 0);
  CHECK(out_.find("Exit codes: 0 done") != std::string::npos);
}

}  // namespace
}  // namespace stride::cli

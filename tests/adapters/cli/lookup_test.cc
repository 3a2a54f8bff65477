// get, join, scan and tables.
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

class LookupTest : public CliFixture {
 protected:
  LookupTest() {
    EXPECT_EQ(load(file("users.tsv", "7\tseven\n10\tten, \"x\"\n300\tthree\thundred\n"),
                   {"--key-type", "u64"}, "users"),
              0)
        << error_;
  }
};

TEST_F(LookupTest, GetKeysOfArguments) {
  ASSERT_EQ(run({"get", database_, "users", "300", "8", "7", "7"}), 0) << error_;
  EXPECT_EQ(out_, "300\tthree\thundred\n7\tseven\n7\tseven\n");
  EXPECT_EQ(error_, "stride: 1 of 4 keys are not in the table\n");
  ASSERT_EQ(run({"get", database_, "users", "8", "10", "--missing", "empty", "--format", "csv"}),
            0);
  EXPECT_EQ(out_, "8,\n10,\"ten, \"\"x\"\"\"\n");
  ASSERT_EQ(run({"get", database_, "users", "8", "7", "--missing", "empty", "--json"}), 0);
  EXPECT_EQ(out_, "{\"key\":8,\"value\":null}\n{\"key\":7,\"value\":\"seven\"}\n");
  EXPECT_EQ(run({"get", database_, "users", "7", "8", "10", "--missing", "error"}), 4);
  EXPECT_EQ(out_, "7\tseven\n");
  EXPECT_EQ(error_, "stride: key '8' is not in table 'users'\n");
  EXPECT_EQ(run({"get", database_, "users"}), 2);
  EXPECT_EQ(run({"get", database_, "users", "7", "--keys", "-"}), 2);
}

TEST_F(LookupTest, GetKeysOfFiles) {
  ASSERT_EQ(run({"get", database_, "users", "--keys", "-"}, "10\n9\textra\n7"), 0) << error_;
  EXPECT_EQ(out_, "10\tten, \"x\"\n7\tseven\n");
  EXPECT_EQ(run({"get", database_, "users", "--keys", file("k.gz", gzip("7\n9\n")), "--missing",
                 "error"}),
            4);
  EXPECT_NE(error_.find("k.gz:2: key '9' is not in table 'users'"), std::string::npos) << error_;
  EXPECT_EQ(out_, "7\tseven\n");
  EXPECT_EQ(run({"get", database_, "users", "--keys", "-"}, "7\nx\n"), 3);
  EXPECT_NE(error_.find("standard input:2: 'x' is no number"), std::string::npos) << error_;
}

TEST_F(LookupTest, HexKeysOfAnyBytes) {
  ASSERT_EQ(
      load(file("h.tsv", "00\tzero\n0000\ttwo\nff\tff\nff00ff\tx\n"), {"--key-type", "hex"}, "h"),
      0);
  ASSERT_EQ(run({"get", database_, "h", "ff00ff", "0000", "FF", "00", "0001"}), 0) << error_;
  EXPECT_EQ(out_, "ff00ff\tx\n0000\ttwo\nff\tff\n00\tzero\n");
  // As bytes they are no text.
  ASSERT_EQ(run({"scan", database_, "h", "--key-type", "bytes", "--json", "--from", "\xff"}), 0);
  EXPECT_EQ(out_,
            "{\"key_hex\":\"ff\",\"value\":\"ff\"}\n{\"key_hex\":\"ff00ff\",\"value\":\"x\"}\n");
}

TEST_F(LookupTest, JoinKeepsRowsAndOrder) {
  std::string rows = "b\t10\t1\na\t8\t2\nb\t7\t3\n";
  ASSERT_EQ(run({"join", database_, "users", "-", "--key", "2"}, rows), 0) << error_;
  EXPECT_EQ(out_, "b\t10\t1\tten, \"x\"\na\t8\t2\t\nb\t7\t3\tseven\n");
  ASSERT_EQ(run({"join", database_, "users", "-", "--key", "2", "--missing", "skip"}, rows), 0);
  EXPECT_EQ(out_, "b\t10\t1\tten, \"x\"\nb\t7\t3\tseven\n");
  EXPECT_EQ(run({"join", database_, "users", "-", "--key", "2", "--missing", "error"}, rows), 4);
  EXPECT_NE(error_.find("standard input:2: key '8'"), std::string::npos) << error_;
  EXPECT_EQ(run({"join", database_, "users", "-", "--key", "1"}, rows), 3);
  EXPECT_NE(error_.find("standard input:1: 'b' is no number"), std::string::npos) << error_;
  EXPECT_EQ(out_, "");
}

TEST_F(LookupTest, JoinOfCsvAndJson) {
  ASSERT_EQ(run({"join", database_, "users", "-", "--format", "csv", "--header", "--key", "id",
                 "--value-name", "name"},
                "x,id\r\n\"a,\n\",10\r\nb,8\r\n"),
            0)
      << error_;
  EXPECT_EQ(out_, "x,id,name\r\n\"a,\n\",10,\"ten, \"\"x\"\"\"\r\nb,8,\r\n");
  ASSERT_EQ(run({"join", database_, "users", "-", "--format", "jsonl", "--key", "id"},
                "{\"id\":10}\n{\"id\":8, \"x\":{}} \n"),
            0)
      << error_;
  EXPECT_EQ(out_,
            "{\"id\":10,\"value\":\"ten, \\\"x\\\"\"}\n{\"id\":8, \"x\":{},\"value\":null}\n");
}

TEST_F(LookupTest, AHeaderWithoutRowsIsKept) {
  ASSERT_EQ(run({"join", database_, "users", "-", "--format", "csv", "--header"}, "id,x\n"), 0)
      << error_;
  EXPECT_EQ(out_, "id,x,value\n");
  ASSERT_EQ(run({"join", database_, "users", "-"}, ""), 0) << error_;
  EXPECT_EQ(out_, "");
}

TEST_F(LookupTest, NotesOfATableThatIsGoneAreNotBelieved) {
  auto database = Database::open(database_);
  ASSERT_TRUE((*database)->drop_table("users").ok());
  auto table = (*database)->create_table("users", {.key_width = 2});
  WriteTransaction t = (*database)->begin();
  ASSERT_TRUE(t.put(*table, "ab", "v").ok());
  ASSERT_TRUE(t.commit().ok());
  database->reset();
  EXPECT_EQ(scan({}, "users"), "6162\tv\n");
}

TEST_F(LookupTest, RandomJoinsAreThoseOfAMap) {
  std::mt19937_64 random(test::seed());
  std::map<std::string, std::string> map;
  std::string table, rows;
  for (int i = 0; i < 5000; ++i) {
    std::string key = std::to_string(random() % 6000);
    map[key] = std::string(random() % 90, static_cast<char>('a' + random() % 26));
    table += key + "\t" + map[key] + "\n";
  }
  ASSERT_EQ(load(file("t.tsv", table)), 0) << error_;
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
    ASSERT_EQ(run(options, rows), 0) << error_;
    EXPECT_TRUE(out_ == all);
    options.insert(options.end(), {"--missing", "skip"});
    ASSERT_EQ(run(options, rows), 0) << error_;
    EXPECT_TRUE(out_ == inner);
  }
}

TEST_F(LookupTest, ScanWithinBounds) {
  EXPECT_EQ(scan({"--reverse", "--limit", "2"}, "users"), "300\tthree\thundred\n10\tten, \"x\"\n");
  EXPECT_EQ(scan({"--from", "8", "--to", "300"}, "users"), "10\tten, \"x\"\n");
  EXPECT_EQ(scan({"--limit", "0"}, "users"), "");
  EXPECT_EQ(scan({"--keys-only"}, "users"), "7\n10\n300\n");
  EXPECT_EQ(scan({"--limit", "1", "--json"}, "users"), "{\"key\":7,\"value\":\"seven\"}\n");
}

TEST_F(LookupTest, CountAndTables) {
  ASSERT_EQ(run({"count", database_, "users", "--json"}), 0);
  EXPECT_EQ(out_, "{\"count\":3,\"table\":\"users\"}\n");
  ASSERT_EQ(run({"tables", database_, "--json"}), 0);
  auto list = nlohmann::json::parse(out_);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["table"], "users");
  EXPECT_EQ(list[0]["key_type"], "u64");
  EXPECT_EQ(list[0]["key_width"], 8);
  EXPECT_EQ(list[0]["rows"], 3);
  ASSERT_EQ(run({"tables", database_, "--all"}), 0);
  EXPECT_NE(out_.find("\n.stride\t"), std::string::npos) << out_;
}

TEST_F(LookupTest, HelpHasExamples) {
  for (const char* command : {"load", "get", "join", "scan", "count", "tables"}) {
    EXPECT_EQ(run({command, "--help"}), 0);
    EXPECT_NE(out_.find("\n  stride " + std::string(command) + " db"), std::string::npos) << out_;
    EXPECT_EQ(error_, "");
  }
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_NE(out_.find("Exit codes: 0 done"), std::string::npos);
}

}  // namespace
}  // namespace stride::cli

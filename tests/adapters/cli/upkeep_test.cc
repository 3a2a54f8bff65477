// Whole databases: dump and restore, stats, explain, verify, compact, doctor; and the help pages.
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>

#include "storage/memory_file_system.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class UpkeepTest : public CliFixture {
 protected:
  // Two tables, one with two runs.
  void fill() {
    std::string rows;
    for (int i = 0; i < 5000; ++i)
      rows += std::to_string(i) + "\tvalue " + std::to_string(i) + "\n";
    ASSERT_EQ(load(file("u.tsv", rows), {"--key-type", "u64"}, "users"), 0) << error_;
    ASSERT_EQ(load(file("h.tsv", "00\tzero\nff\t\n00ff\tx\n"), {"--key-type", "hex"}, "hex"), 0)
        << error_;
    ASSERT_EQ(load(file("h.tsv", "ff\tnew\n"), {}, "hex"), 0) << error_;
  }
  nlohmann::json json() const { return nlohmann::json::parse(out_); }
};

TEST_F(UpkeepTest, WhatIsDumpedIsRestored) {
  fill();
  std::string users = scan({}, "users"), hex = scan({}, "hex");
  for (bool packed : {false, true}) {
    std::vector<std::string> arguments = {"dump", database_};
    if (packed) arguments.push_back("--zst");
    ASSERT_EQ(run(arguments), 0) << error_;
    std::string dump = out_, from = database_;
    EXPECT_EQ(dump.substr(0, 8) == "STRDUMP1", !packed);
    for (const char* every : {"0", "100"}) {
      database_ = directory_ + "/copy" + (packed ? "p" : "") + every;
      ASSERT_EQ(run({"restore", database_, "-", "--commit-every", every, "--json"}, dump), 0)
          << error_;
      EXPECT_EQ(json()["rows"], 5003);
      EXPECT_EQ(json()["tables"], 2);
      EXPECT_EQ(scan({}, "users"), users);
      EXPECT_EQ(scan({}, "hex"), hex);
      EXPECT_EQ(run({"restore", database_, "-"}, dump), 2);
      EXPECT_NE(error_.find("table 'users' is in"), std::string::npos) << error_;
    }
    database_ = from;
  }
  ASSERT_EQ(run({"dump", database_, "hex"}), 0) << error_;
  database_ = directory_ + "/one";
  ASSERT_EQ(run({"restore", database_, "-"}, out_), 0) << error_;
  ASSERT_EQ(run({"tables", database_}), 0);
  EXPECT_EQ(out_.substr(0, 10), "hex\thex\t0\t");
}

TEST_F(UpkeepTest, BrokenDumpsAreRefusedWhole) {
  fill();
  ASSERT_EQ(run({"dump", database_}), 0) << error_;
  std::string dump = out_;
  for (size_t bytes :
       {size_t{0}, size_t{5}, size_t{8}, size_t{20}, dump.size() / 2, dump.size() - 1}) {
    for (const char* every : {"0", "100"}) {
      std::string copy = directory_ + "/copy" + std::to_string(bytes) + every;
      EXPECT_EQ(run({"restore", copy, "-", "--commit-every", every}, dump.substr(0, bytes)), 3)
          << bytes;
      EXPECT_NE(error_.find("standard input: "), std::string::npos) << error_;
      if (std::filesystem::exists(copy)) {
        ASSERT_EQ(run({"tables", copy}), 0) << error_;
        EXPECT_EQ(out_, "");
      }
    }
  }
  for (size_t at = 0; at < dump.size(); at += dump.size() / 50) {
    std::string damaged = dump;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_EQ(run({"restore", directory_ + "/damaged", "-"}, damaged), 3) << at;
    EXPECT_FALSE(std::filesystem::exists(directory_ + "/damaged"));
  }
  EXPECT_EQ(run({"dump", database_, "none"}), 4);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(run({"dump", database_, "hex", "hex"}), 2);
  EXPECT_NE(error_.find("named twice"), std::string::npos) << error_;
  EXPECT_EQ(run({"dump", database_, ".stride"}), 2);
  EXPECT_EQ(out_, "");
}

TEST_F(UpkeepTest, EqualValuesAreStoredOnce) {
  std::string rows;
  for (int i = 10000; i < 13000; ++i)
    rows += std::to_string(i) + "\tthe value of many rows, number " + std::to_string(i % 5) + "\n";
  std::string input = file("rows.tsv", rows);
  ASSERT_EQ(load(input, {"--share-equal-values"}), 0) << error_;
  ASSERT_EQ(load(input, {}, "plain"), 0) << error_;
  EXPECT_EQ(scan(), rows);
  // The option is for new tables, and needs not be given again.
  ASSERT_EQ(load(file("more.tsv", "10000\tthe value of many rows, number 0\n")), 0) << error_;
  ASSERT_EQ(load(input, {"--share-equal-values"}), 0) << error_;
  expect_refused({"load", database_, "plain", input, "--share-equal-values"}, 2,
                 "table 'plain' was made without --share-equal-values");
  ASSERT_EQ(run({"compact", database_}), 0) << error_;

  ASSERT_EQ(run({"stats", database_, "--json"}), 0) << error_;
  const auto stats = json();
  for (const auto& table : stats["tables"]) {
    bool shared = table["table"] == "t";
    EXPECT_EQ(table.contains("share_equal_values"), shared);
    EXPECT_EQ(table.contains("saved_bytes"), shared);
    if (!shared) continue;
    EXPECT_EQ(table["stored_values"], 5);
    EXPECT_GT(table["saved_bytes"], 90000);
  }
  ASSERT_EQ(run({"stats", database_}), 0) << error_;
  EXPECT_NE(out_.find("\nt.stored_values\t5\n"), std::string::npos) << out_;
  EXPECT_NE(out_.find("\nt.saved_bytes\t"), std::string::npos) << out_;
  EXPECT_EQ(out_.find("plain.saved_bytes"), std::string::npos) << out_;
  ASSERT_EQ(run({"explain", database_, "t", "--json"}), 0) << error_;
  EXPECT_EQ(json()["segments"][0]["distinct_values"], 5);
  ASSERT_EQ(run({"explain", database_, "t"}), 0) << error_;
  EXPECT_NE(out_.find("\n  shared    5 distinct values, which saves "), std::string::npos) << out_;
  ASSERT_EQ(run({"explain", database_, "plain"}), 0) << error_;
  EXPECT_EQ(out_.find("  shared  "), std::string::npos) << out_;

  // A dump remembers it.
  ASSERT_EQ(run({"dump", database_}), 0) << error_;
  std::string dump = out_;
  database_ = directory_ + "/copy";
  ASSERT_EQ(run({"restore", database_, "-"}, dump), 0) << error_;
  EXPECT_EQ(scan(), rows);
  ASSERT_EQ(run({"stats", database_}), 0) << error_;
  EXPECT_NE(out_.find("\nt.stored_values\t5\n"), std::string::npos) << out_;
  EXPECT_EQ(out_.find("plain.stored_values"), std::string::npos) << out_;
}

TEST_F(UpkeepTest, ExplainTellsWhatSearchesCost) {
  std::string rows;
  for (int i = 0; i < 70'000; ++i) rows += std::to_string(100'000 + 7 * i) + "\tv\n";
  ASSERT_EQ(load(file("rows.tsv", rows)), 0) << error_;
  ASSERT_EQ(load(file("few.tsv", "1\tv\n"), {}, "few"), 0) << error_;
  ASSERT_EQ(run({"explain", database_, "t", "--json"}), 0) << error_;
  const auto explained = json();
  const auto& tree = explained["segments"][0]["tree"];
  EXPECT_GT(tree["expected_finds_per_second"], 1e5);
  EXPECT_GE(tree["leaf_keys"], 1);
  EXPECT_EQ(tree["levels"][0]["visits"], 1);
  for (const auto& level : tree["levels"]) EXPECT_LE(level["visits"], 1.0001);
  ASSERT_EQ(run({"explain", database_, "t"}), 0) << error_;
  EXPECT_NE(out_.find("#################### 100.0 % of searches\n"), std::string::npos) << out_;
  EXPECT_NE(out_.find(" million finds a second in large batches, on host"), std::string::npos)
      << out_;
  // Of few rows nothing is kept to tell it from.
  ASSERT_EQ(run({"explain", database_, "few"}), 0) << error_;
  EXPECT_EQ(out_.find("finds a second"), std::string::npos) << out_;
  ASSERT_EQ(run({"verify", database_}), 0) << error_;

  // What is measured counts from then on, and what somebody wrote there does not.
  ASSERT_EQ(run({"calibrate", database_}), 0) << error_;
  std::ifstream costs(database_ + "/COSTS");
  std::string line;
  ASSERT_TRUE(std::getline(costs, line));
  EXPECT_EQ(line.rfind("host (", 0), 0u) << line;
  EXPECT_NE(line.find("\thost "), std::string::npos) << line;
  ASSERT_EQ(run({"explain", database_, "t"}), 0) << error_;
  ASSERT_EQ(run({"compact", database_}), 0) << error_;
  std::ofstream(database_ + "/COSTS") << "host (1 thread)\tnonsense\nno tab\n";
  ASSERT_EQ(run({"explain", database_, "t"}), 0) << error_;
  EXPECT_NE(out_.find("finds a second"), std::string::npos) << out_;
}

TEST_F(UpkeepTest, NamesAreAnyBytes) {
  const std::string name = "caf\xe9";
  {
    auto db = Database::open(database_);
    ASSERT_TRUE(db.ok()) << db.status().to_string();
    auto table = (*db)->create_table(name);
    ASSERT_TRUE(table.ok()) << table.status().to_string();
    WriteTransaction t = (*db)->begin();
    ASSERT_TRUE(t.put(*table, "key", "value").ok());
    ASSERT_TRUE(t.commit().ok());
  }
  ASSERT_EQ(run({"dump", database_}), 0) << error_;
  std::string dump = out_;
  ASSERT_EQ(run({"tables", database_, "--json"}), 0) << error_;
  ASSERT_EQ(run({"stats", database_, "--json"}), 0) << error_;
  database_ = directory_ + "/copy";
  ASSERT_EQ(run({"restore", database_, "-"}, dump), 0) << error_;
  EXPECT_EQ(scan({}, name), "key\tvalue\n");
}

TEST_F(UpkeepTest, AFullDiskLeavesNoTable) {
  fill();
  ASSERT_EQ(run({"dump", database_}), 0) << error_;
  std::string dump = out_;
  MemoryFileSystem files;
  files_ = &files;
  ASSERT_EQ(run({"load", "/db", "t", file("a.tsv", "a\t1\n")}), 0) << error_;
  files.set_capacity(files.used_bytes() + 20000);
  EXPECT_EQ(run({"restore", "/db", "-"}, dump), 7) << error_;
  ASSERT_EQ(run({"tables", "/db", "--json"}), 0) << error_;
  EXPECT_EQ(json().size(), 1u);
}

TEST_F(UpkeepTest, StatsAndExplain) {
  fill();
  ASSERT_EQ(run({"stats", database_, "--json"}), 0) << error_;
  ASSERT_EQ(json()["tables"].size(), 2u);
  EXPECT_EQ(json()["tables"][1]["table"], "hex");
  EXPECT_EQ(json()["tables"][1]["runs"], 2);
  EXPECT_EQ(json()["tables"][1]["rows"], 4);
  ASSERT_EQ(run({"stats", database_}), 0);
  EXPECT_NE(out_.find("\nusers.rows\t5000\n"), std::string::npos) << out_;
  ASSERT_EQ(run({"explain", database_, "users", "--json"}), 0) << error_;
  auto segment = json()["segments"][0];
  EXPECT_EQ(json()["key_type"], "u64");
  EXPECT_EQ(segment["rows"], 5000);
  EXPECT_EQ(segment["key_bytes"], 40000);
  EXPECT_EQ(segment["tree"]["levels"][0]["nodes"], 1);
  EXPECT_EQ(segment["tree"]["prefix_bits"], 51);  // numbers below 8192
  ASSERT_EQ(run({"explain", database_, "hex"}), 0) << error_;
  EXPECT_NE(out_.find("a lookup visits 2 runs, newest first; stride compact"), std::string::npos)
      << out_;
  EXPECT_NE(out_.find("  level 0   stride "), std::string::npos) << out_;
  EXPECT_EQ(run({"explain", database_, "none"}), 4);
}

TEST_F(UpkeepTest, CompactMergesRuns) {
  fill();
  std::string hex = scan({}, "hex");
  ASSERT_EQ(run({"compact", database_, "--json"}), 0) << error_;
  EXPECT_LT(json()["bytes"], json()["bytes_before"]);
  ASSERT_EQ(run({"explain", database_, "hex", "--json"}), 0);
  EXPECT_EQ(json()["runs"], 1);
  EXPECT_EQ(scan({}, "hex"), hex);
}

TEST_F(UpkeepTest, VerifyFindsDamage) {
  fill();
  ASSERT_EQ(run({"verify", database_, "--json"}), 0) << error_;
  EXPECT_EQ(json()["intact"], true);
  std::string largest;
  for (const auto& [name, bytes] : state())
    if (largest.empty() || bytes > state()[largest]) largest = name;
  std::string path = database_ + "/" + largest, bytes = read(path);
  bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 1);
  file("db/" + largest, bytes);
  EXPECT_EQ(run({"verify", database_}), 6);
  EXPECT_NE(error_.find(largest), std::string::npos) << error_;
  EXPECT_EQ(out_, "");
}

TEST_F(UpkeepTest, AMissingSegmentIsDamage) {
  fill();
  std::string segment;
  for (const auto& [name, bytes] : state())
    if (name.ends_with(".seg")) segment = name;
  std::filesystem::remove(database_ + "/" + segment);
  EXPECT_EQ(run({"verify", database_}), 6);
  EXPECT_NE(error_.find(segment), std::string::npos) << error_;
  EXPECT_EQ(run({"compact", database_}), 6);
  EXPECT_EQ(run({"stats", database_}), 0) << error_;
}

TEST_F(UpkeepTest, DoctorLeavesNothingBehind) {
  ASSERT_EQ(run({"doctor", directory_, "--megabytes", "1", "--json"}), 0) << error_;
  std::vector<std::string> what;
  for (const auto& finding : json()) what.push_back(finding["what"]);
  EXPECT_EQ(what, (std::vector<std::string>{"processors", "memory", "huge pages", "open files",
                                            "memory maps", "device", "disk", "small commit",
                                            "bulk load", "batch lookup"}));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
  ASSERT_EQ(run({"doctor", directory_, "--megabytes", "1"}), 0) << error_;
  EXPECT_EQ(out_.find('\x1b'), std::string::npos);
  EXPECT_EQ(run({"doctor", directory_ + "/none"}), 4);
}

TEST_F(UpkeepTest, CompletionAndManual) {
  ASSERT_EQ(run({"completion", "bash"}), 0) << error_;
  EXPECT_NE(out_.find("load:--on-duplicate) words='last first error' ;;"), std::string::npos)
      << out_;
  EXPECT_EQ(std::system(("bash -n " + file("completion", out_)).c_str()), 0);
  // As bash asks for the words after `stride load db t f --on-duplicate `.
  std::string script =
      "source " + directory_ +
      "/completion; COMP_WORDS=(stride load db t f --on-duplicate l); COMP_CWORD=6; "
      "_stride; echo \"${COMPREPLY[@]}\" > " +
      directory_ + "/words";
  EXPECT_EQ(std::system(("bash -c '" + script + "'").c_str()), 0);
  EXPECT_EQ(read(directory_ + "/words"), "last\n");
  ASSERT_EQ(run({"completion", "zsh"}), 0);
  ASSERT_EQ(run({"completion", "fish"}), 0);
  EXPECT_NE(out_.find("complete -c stride -n '__fish_seen_subcommand_from join' -l missing -d "),
            std::string::npos);
  EXPECT_EQ(run({"completion", "tcsh"}), 2);
  ASSERT_EQ(run({"man"}), 0);
  EXPECT_EQ(out_.substr(0, 12), ".TH STRIDE 1");
  for (const char* part : {".SH load\n", ".SH EXIT STATUS\n", "\\-\\-commit\\-every"})
    EXPECT_NE(out_.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace stride::cli

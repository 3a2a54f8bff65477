// Whole databases: dump and restore, stats, explain, verify, compact, doctor; and the help pages.
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
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
    REQUIRE_MESSAGE(load(file("u.tsv", rows), {"--key-type", "u64"}, "users") == 0, error_);
    REQUIRE_MESSAGE(
        load(file("h.tsv", "00\tzero\nff\t\n00ff\tx\n"), {"--key-type", "hex"}, "hex") == 0,
        error_);
    REQUIRE_MESSAGE(load(file("h.tsv", "ff\tnew\n"), {}, "hex") == 0, error_);
  }
  nlohmann::json json() const { return nlohmann::json::parse(out_); }
};

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.WhatIsDumpedIsRestored", "[UpkeepTest]") {
  fill();
  std::string users = scan({}, "users"), hex = scan({}, "hex");
  for (bool packed : {false, true}) {
    std::vector<std::string> arguments = {"dump", database_};
    if (packed) arguments.push_back("--zst");
    REQUIRE_MESSAGE(run(arguments) == 0, error_);
    std::string dump = out_, from = database_;
    CHECK((dump.substr(0, 8) == "STRDUMP1") == !packed);
    for (const char* every : {"0", "100"}) {
      database_ = directory_ + "/copy" + (packed ? "p" : "") + every;
      REQUIRE_MESSAGE(
          run({"restore", database_, "-", "--commit-every", every, "--json"}, dump) == 0, error_);
      CHECK(json()["rows"] == 5003);
      CHECK(json()["tables"] == 2);
      CHECK(scan({}, "users") == users);
      CHECK(scan({}, "hex") == hex);
      CHECK(run({"restore", database_, "-"}, dump) == 2);
      CHECK_MESSAGE(error_.find("table 'users' is in") != std::string::npos, error_);
    }
    database_ = from;
  }
  REQUIRE_MESSAGE(run({"dump", database_, "hex"}) == 0, error_);
  database_ = directory_ + "/one";
  REQUIRE_MESSAGE(run({"restore", database_, "-"}, out_) == 0, error_);
  REQUIRE(run({"tables", database_}) == 0);
  CHECK(out_.substr(0, 10) == "hex\thex\t0\t");
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.BrokenDumpsAreRefusedWhole", "[UpkeepTest]") {
  fill();
  REQUIRE_MESSAGE(run({"dump", database_}) == 0, error_);
  std::string dump = out_;
  for (size_t bytes :
       {size_t{0}, size_t{5}, size_t{8}, size_t{20}, dump.size() / 2, dump.size() - 1}) {
    for (const char* every : {"0", "100"}) {
      std::string copy = directory_ + "/copy" + std::to_string(bytes) + every;
      CHECK_MESSAGE(
          run({"restore", copy, "-", "--commit-every", every}, dump.substr(0, bytes)) == 3, bytes);
      CHECK_MESSAGE(error_.find("standard input: ") != std::string::npos, error_);
      if (std::filesystem::exists(copy)) {
        REQUIRE_MESSAGE(run({"tables", copy}) == 0, error_);
        CHECK(out_ == "");
      }
    }
  }
  for (size_t at = 0; at < dump.size(); at += dump.size() / 50) {
    std::string damaged = dump;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    CHECK_MESSAGE(run({"restore", directory_ + "/damaged", "-"}, damaged) == 3, at);
    CHECK_FALSE(std::filesystem::exists(directory_ + "/damaged"));
  }
  CHECK(run({"dump", database_, "none"}) == 4);
  CHECK(out_ == "");
  CHECK(run({"dump", database_, "hex", "hex"}) == 2);
  CHECK_MESSAGE(error_.find("named twice") != std::string::npos, error_);
  CHECK(run({"dump", database_, ".stride"}) == 2);
  CHECK(out_ == "");
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.EqualValuesAreStoredOnce", "[UpkeepTest]") {
  std::string rows;
  for (int i = 10000; i < 13000; ++i)
    rows += std::to_string(i) + "\tthe value of many rows, number " + std::to_string(i % 5) + "\n";
  std::string input = file("rows.tsv", rows);
  REQUIRE_MESSAGE(load(input, {"--share-equal-values"}) == 0, error_);
  REQUIRE_MESSAGE(load(input, {}, "plain") == 0, error_);
  CHECK(scan() == rows);
  // The option is for new tables, and needs not be given again.
  REQUIRE_MESSAGE(load(file("more.tsv", "10000\tthe value of many rows, number 0\n")) == 0, error_);
  REQUIRE_MESSAGE(load(input, {"--share-equal-values"}) == 0, error_);
  expect_refused({"load", database_, "plain", input, "--share-equal-values"}, 2,
                 "table 'plain' was made without --share-equal-values");
  REQUIRE_MESSAGE(run({"compact", database_}) == 0, error_);

  REQUIRE_MESSAGE(run({"stats", database_, "--json"}) == 0, error_);
  const auto stats = json();
  for (const auto& table : stats["tables"]) {
    bool shared = table["table"] == "t";
    CHECK(table.contains("share_equal_values") == shared);
    CHECK(table.contains("saved_bytes") == shared);
    if (!shared) continue;
    CHECK(table["stored_values"] == 5);
    CHECK(table["saved_bytes"] > 90000);
  }
  REQUIRE_MESSAGE(run({"stats", database_}) == 0, error_);
  CHECK_MESSAGE(out_.find("\nt.stored_values\t5\n") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("\nt.saved_bytes\t") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("plain.saved_bytes") == std::string::npos, out_);
  REQUIRE_MESSAGE(run({"explain", database_, "t", "--json"}) == 0, error_);
  CHECK(json()["segments"][0]["distinct_values"] == 5);
  REQUIRE_MESSAGE(run({"explain", database_, "t"}) == 0, error_);
  CHECK_MESSAGE(out_.find("\n  shared    5 distinct values, which saves ") != std::string::npos,
                out_);
  REQUIRE_MESSAGE(run({"explain", database_, "plain"}) == 0, error_);
  CHECK_MESSAGE(out_.find("  shared  ") == std::string::npos, out_);

  // A dump remembers it.
  REQUIRE_MESSAGE(run({"dump", database_}) == 0, error_);
  std::string dump = out_;
  database_ = directory_ + "/copy";
  REQUIRE_MESSAGE(run({"restore", database_, "-"}, dump) == 0, error_);
  CHECK(scan() == rows);
  REQUIRE_MESSAGE(run({"stats", database_}) == 0, error_);
  CHECK_MESSAGE(out_.find("\nt.stored_values\t5\n") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("plain.stored_values") == std::string::npos, out_);
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.ExplainTellsWhatSearchesCost", "[UpkeepTest]") {
  std::string rows;
  for (int i = 0; i < 70'000; ++i) rows += std::to_string(100'000 + 7 * i) + "\tv\n";
  REQUIRE_MESSAGE(load(file("rows.tsv", rows)) == 0, error_);
  REQUIRE_MESSAGE(load(file("few.tsv", "1\tv\n"), {}, "few") == 0, error_);
  REQUIRE_MESSAGE(run({"explain", database_, "t", "--json"}) == 0, error_);
  const auto explained = json();
  const auto& tree = explained["segments"][0]["tree"];
  CHECK(tree["expected_finds_per_second"] > 1e5);
  CHECK(tree["leaf_keys"] >= 1);
  CHECK(tree["levels"][0]["visits"] == 1);
  for (const auto& level : tree["levels"]) CHECK(level["visits"] <= 1.0001);
  REQUIRE_MESSAGE(run({"explain", database_, "t"}) == 0, error_);
  CHECK_MESSAGE(out_.find("#################### 100.0 % of searches\n") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find(" million finds a second in large batches, on host") != std::string::npos,
                out_);
  // Nothing is kept of few rows to tell it from.
  REQUIRE_MESSAGE(run({"explain", database_, "few"}) == 0, error_);
  CHECK_MESSAGE(out_.find("finds a second") == std::string::npos, out_);
  REQUIRE_MESSAGE(run({"verify", database_}) == 0, error_);

  // What is measured counts from then on, and what somebody wrote there does not.
  REQUIRE_MESSAGE(run({"calibrate", database_}) == 0, error_);
  std::ifstream costs(database_ + "/COSTS");
  std::string line;
  REQUIRE(std::getline(costs, line));
  CHECK_MESSAGE(line.rfind("host (", 0) == 0u, line);
  CHECK_MESSAGE(line.find("\thost ") != std::string::npos, line);
  REQUIRE_MESSAGE(run({"explain", database_, "t"}) == 0, error_);
  REQUIRE_MESSAGE(run({"compact", database_}) == 0, error_);
  std::ofstream(database_ + "/COSTS") << "host (1 thread)\tnonsense\nno tab\n";
  REQUIRE_MESSAGE(run({"explain", database_, "t"}) == 0, error_);
  CHECK_MESSAGE(out_.find("finds a second") != std::string::npos, out_);
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.NamesAreAnyBytes", "[UpkeepTest]") {
  const std::string name = "caf\xe9";
  {
    auto db = Database::open(database_);
    REQUIRE_OK(db);
    auto table = (*db)->create_table(name);
    REQUIRE_OK(table);
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, "key", "value"));
    REQUIRE_OK(t.commit());
  }
  REQUIRE_MESSAGE(run({"dump", database_}) == 0, error_);
  std::string dump = out_;
  REQUIRE_MESSAGE(run({"tables", database_, "--json"}) == 0, error_);
  REQUIRE_MESSAGE(run({"stats", database_, "--json"}) == 0, error_);
  database_ = directory_ + "/copy";
  REQUIRE_MESSAGE(run({"restore", database_, "-"}, dump) == 0, error_);
  CHECK(scan({}, name) == "key\tvalue\n");
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.AFullDiskLeavesNoTable", "[UpkeepTest]") {
  fill();
  REQUIRE_MESSAGE(run({"dump", database_}) == 0, error_);
  std::string dump = out_;
  MemoryFileSystem files;
  files_ = &files;
  REQUIRE_MESSAGE(run({"load", "/db", "t", file("a.tsv", "a\t1\n")}) == 0, error_);
  files.set_capacity(files.used_bytes() + 20000);
  CHECK_MESSAGE(run({"restore", "/db", "-"}, dump) == 7, error_);
  REQUIRE_MESSAGE(run({"tables", "/db", "--json"}) == 0, error_);
  CHECK(json().size() == 1u);
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.StatsAndExplain", "[UpkeepTest]") {
  fill();
  REQUIRE_MESSAGE(run({"stats", database_, "--json"}) == 0, error_);
  REQUIRE(json()["tables"].size() == 2u);
  CHECK(json()["tables"][1]["table"] == "hex");
  CHECK(json()["tables"][1]["runs"] == 1);
  CHECK(json()["tables"][1]["rows"] == 4);
  CHECK(json()["tables"][1]["memtable_rows"] == 1);  // the second load is a small commit
  REQUIRE(run({"stats", database_}) == 0);
  CHECK_MESSAGE(out_.find("\nusers.rows\t5000\n") != std::string::npos, out_);
  REQUIRE_MESSAGE(run({"explain", database_, "users", "--json"}) == 0, error_);
  auto segment = json()["segments"][0];
  CHECK(json()["key_type"] == "u64");
  CHECK(segment["rows"] == 5000);
  CHECK(segment["key_bytes"] == 40000);
  CHECK(segment["tree"]["levels"][0]["nodes"] == 1);
  CHECK(segment["tree"]["prefix_bits"] == 51);  // numbers below 8192
  REQUIRE_MESSAGE(run({"explain", database_, "hex"}) == 0, error_);
  CHECK_MESSAGE(out_.find("a lookup visits 1 run\n") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("looks into the 1 newest rows") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("  level 0   stride ") != std::string::npos, out_);
  CHECK(run({"explain", database_, "none"}) == 4);
}

// A table's oldest run has none.
TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.FilterBytesAreShown", "[UpkeepTest]") {
  fill();
  REQUIRE_MESSAGE(run({"stats", database_, "--json"}) == 0, error_);
  nlohmann::json stats = json();
  for (const auto& table : stats["tables"]) CHECK(table["filter_bytes"] == 0);
  REQUIRE(run({"stats", database_}) == 0);
  CHECK_MESSAGE(out_.find("\nusers.filter_bytes\t0\n") != std::string::npos, out_);
  REQUIRE_MESSAGE(run({"explain", database_, "users", "--json"}) == 0, error_);
  CHECK(json()["segments"][0]["filter_bytes"] == 0);
  REQUIRE_MESSAGE(run({"explain", database_, "users"}) == 0, error_);
  CHECK_MESSAGE(out_.find("  filter  ") == std::string::npos, out_);
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.CompactMergesRuns", "[UpkeepTest]") {
  fill();
  std::string hex = scan({}, "hex");
  REQUIRE_MESSAGE(run({"compact", database_, "--json"}) == 0, error_);
  CHECK(json()["bytes"] < json()["bytes_before"]);
  REQUIRE(run({"explain", database_, "hex", "--json"}) == 0);
  CHECK(json()["runs"] == 1);
  CHECK(scan({}, "hex") == hex);
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.VerifyFindsDamage", "[UpkeepTest]") {
  fill();
  REQUIRE_MESSAGE(run({"verify", database_, "--json"}) == 0, error_);
  CHECK(json()["intact"] == true);
  std::string largest;
  for (const auto& [name, bytes] : state())
    if (largest.empty() || bytes > state()[largest]) largest = name;
  std::string path = database_ + "/" + largest, bytes = read(path);
  bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 1);
  file("db/" + largest, bytes);
  CHECK(run({"verify", database_}) == 6);
  CHECK_MESSAGE(error_.find(largest) != std::string::npos, error_);
  CHECK_MESSAGE(out_.find(path + ": ") == 0, out_);
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.AMissingSegmentIsDamage", "[UpkeepTest]") {
  fill();
  std::string segment;
  for (const auto& [name, bytes] : state())
    if (name.ends_with(".seg")) segment = name;
  std::filesystem::remove(database_ + "/" + segment);
  CHECK(run({"verify", database_}) == 6);
  CHECK_MESSAGE(error_.find(segment) != std::string::npos, error_);
  CHECK(run({"compact", database_}) == 6);
  CHECK_MESSAGE(run({"stats", database_}) == 0, error_);
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.DoctorLeavesNothingBehind", "[UpkeepTest]") {
  REQUIRE_MESSAGE(run({"doctor", directory_, "--megabytes", "1", "--json"}) == 0, error_);
  std::vector<std::string> what;
  for (const auto& finding : json()) what.push_back(finding["what"]);
  CHECK(what ==
        (std::vector<std::string>{"processors", "memory", "huge pages", "open files", "memory maps",
                                  "device", "disk", "small commit", "bulk load", "batch lookup"}));
  CHECK(std::filesystem::is_empty(directory_));
  REQUIRE_MESSAGE(run({"doctor", directory_, "--megabytes", "1"}) == 0, error_);
  CHECK(out_.find('\x1b') == std::string::npos);
  CHECK(run({"doctor", directory_ + "/none"}) == 4);
}

TEST_CASE_METHOD(UpkeepTest, "UpkeepTest.CompletionAndManual", "[UpkeepTest]") {
  REQUIRE_MESSAGE(run({"completion", "bash"}) == 0, error_);
  CHECK_MESSAGE(out_.find("load:--on-duplicate) words='last first error' ;;") != std::string::npos,
                out_);
  CHECK(std::system(("bash -n " + file("completion", out_)).c_str()) == 0);
  // As bash asks for the words after `stride load db t f --on-duplicate `.
  std::string script =
      "source " + directory_ +
      "/completion; COMP_WORDS=(stride load db t f --on-duplicate l); COMP_CWORD=6; "
      "_stride; echo \"${COMPREPLY[@]}\" > " +
      directory_ + "/words";
  CHECK(std::system(("bash -c '" + script + "'").c_str()) == 0);
  CHECK(read(directory_ + "/words") == "last\n");
  REQUIRE(run({"completion", "zsh"}) == 0);
  CHECK(out_.starts_with("#compdef stride\n"));
  REQUIRE(run({"completion", "fish"}) == 0);
  CHECK(out_.find("complete -c stride -n '__fish_seen_subcommand_from join' -l missing -d ") !=
        std::string::npos);
  CHECK(run({"completion", "tcsh"}) == 2);
  REQUIRE(run({"man"}) == 0);
  CHECK(out_.substr(0, 12) == ".TH STRIDE 1");
  for (const char* part : {".SH load\n", ".SH EXIT STATUS\n", "\\-\\-commit\\-every"})
    CHECK_MESSAGE(out_.find(part) != std::string::npos, part);
}

}  // namespace
}  // namespace stride::cli

// dedup, beside a set that takes one row after the other.
#include <fcntl.h>

#include <random>
#include <set>

#include "adapters/cli/input/arrow_rows.h"
#include "adapters/cli/interrupt.h"
#include "storage/file.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

// As awk '!seen[$0]++' does it.
std::string first_lines(const std::vector<std::string>& files) {
  std::set<std::string> seen;
  std::string result;
  for (const std::string& text : files) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (seen.insert(line).second) result += line + "\n";
  }
  return result;
}

class DedupTest : public CliFixture {
 protected:
  int dedup(const std::vector<std::string>& arguments, const std::string& input = "") {
    std::vector<std::string> all = {"dedup"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run(all, input);
  }
  // With what was seen in memory, and in a table of a database that is not there yet.
  void expect_dedup(std::vector<std::string> arguments, const std::string& expected,
                    const std::string& input = "") {
    REQUIRE_MESSAGE(dedup(arguments, input) == 0, error_);
    CHECK(out_ == expected);
    std::string in_memory = error_;
    arguments.insert(arguments.end(),
                     {"--table", directory_ + "/db" + std::to_string(made_++), "t"});
    REQUIRE_MESSAGE(dedup(arguments, input) == 0, error_);
    CHECK(out_ == expected);
    CHECK(error_ == in_memory);
  }
  std::vector<std::string> to_table(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--table", database_, "t"});
    return arguments;
  }

 private:
  int made_ = 0;
};

TEST_CASE_METHOD(DedupTest, "DedupTest.KeepsTheFirstOfEachLine", "[DedupTest]") {
  std::string a = file("a", "b\na\nb\n\nc\n\na\n"), b = file("b", "c\nd\nb\n");
  expect_dedup({a, b}, "b\na\n\nc\nd\n");
  CHECK(error_ == "stride: 5 of 10 rows were seen before, 5 new\n");
  expect_dedup({b}, "c\nd\nb\n");
  CHECK(error_ == "");
  expect_dedup({"-"}, "x\n", "x\nx\nx\nx\n");
  expect_dedup({"-"}, "", "");
  expect_dedup({"-"}, "\n", "\n\n\n");
  expect_dedup({"-"}, "x\n", "x");
}

// The last line need not end, and CR is a byte like any other.
TEST_CASE_METHOD(DedupTest, "DedupTest.LineEnds", "[DedupTest]") {
  std::string crlf = file("crlf", "a\r\nb\r\na\r\n"), open = file("open", "a\nc\na");
  expect_dedup({crlf}, "a\r\nb\r\n");
  expect_dedup({crlf, open}, "a\r\nb\r\na\nc\n");
  expect_dedup({open, crlf}, "a\nc\na\r\nb\r\n");
  expect_dedup({open, crlf, "--line-ends", "any"}, "a\nc\nb\r\n");
  expect_dedup({"-", "--line-ends", "crlf"}, "a\r\nb\r\n", "a\r\na\r\nb");
  expect_dedup({"-", "--line-ends", "any"}, "\r\na\r\n", "\r\n\na\r\na\r");
  expect_refused({"dedup", "-", "--line-ends", "crlf"}, 3, "standard input:2: mixed line ends",
                 "a\r\nb\n");
}

TEST_CASE_METHOD(DedupTest, "DedupTest.RandomLinesAreThoseOfASet", "[DedupTest]") {
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < 25; ++round) {
    std::vector<std::string> texts, arguments;
    uint64_t different = 1 + random() % 300;
    for (uint64_t f = 1 + random() % 3; f > 0; --f) {
      std::string text;
      for (uint64_t n = random() % 3000; n > 0; --n) {
        uint64_t line = random() % different;
        text += std::string(line % 23, "x\0\xFF\t\" \r"[line % 7]) + std::to_string(line / 2);
        if (line % 50 == 0) text.clear();
        text += n == 1 && random() % 2 ? "" : line % 5 ? "\n" : "\r\n";
      }
      texts.push_back(text);
      std::string name = "f" + std::to_string(f);
      arguments.push_back(file(name, random() % 3 == 0   ? gzip(text)
                                     : random() % 2 == 0 ? zstd(text)
                                                         : text));
    }
    std::string block = std::to_string(1 + random() % (round % 2 ? 50 : 20'000));
    arguments.insert(arguments.end(),
                     {"--block-bytes", block, "--threads", std::to_string(1 + random() % 4)});
    expect_dedup(arguments, first_lines(texts));
    arguments.insert(arguments.end(), {"--commit-every", std::to_string(1 + random() % 1000)});
    REQUIRE_MESSAGE(dedup(to_table(arguments)) == 0, error_);
    REQUIRE(out_ == first_lines(texts));
    std::filesystem::remove_all(database_);
  }
}

TEST_CASE_METHOD(DedupTest, "DedupTest.LongLines", "[DedupTest]") {
  std::string text = std::string(70'000, 'x') + "\n" + std::string(70'000, 'x') + "y\n";
  REQUIRE_MESSAGE(dedup({"-", "--block-bytes", "1000"}, text + text) == 0, error_);
  CHECK(out_ == text);
  expect_refused(to_table({"dedup", "-"}), 3, "at most 65535", text);
  CHECK_FALSE(std::filesystem::exists(database_));
  expect_refused({"dedup", "-", "--max-row-bytes", "100"}, 3, "--max-row-bytes", text);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.ByAColumn", "[DedupTest]") {
  expect_dedup({"-", "--key", "2"}, "1\ta\n3\tb\tx\n5\t\n", "1\ta\n2\ta\n3\tb\tx\n4\tb\n5\t\n6\t");
  expect_dedup({"-", "--format", "csv", "--header", "--key", "id"}, "x,id\r\n1,\"a\n,\"\r\n3,b\r\n",
               "x,id\r\n1,\"a\n,\"\r\n2,\"a\n,\"\r\n3,b\r\n4,b");
  expect_dedup({"-", "--format", "jsonl", "--key", "ip"}, "{\"ip\":\"a\"}\n{\"ip\":7} \n",
               "{\"ip\":\"a\"}\n\n{ \"n\":1,\"ip\":\"\\u0061\"}\n{\"ip\":7} \n{\"ip\":\"7\"}");
  expect_dedup({"-", "--key", "1", "--key-type", "u64"}, "7\tx\n8\n", "7\tx\n007\ty\n8");
  expect_dedup({"-", "--key", "1", "--key-type", "ip"}, "10.0.0.1\n::\n", "10.0.0.1\n::\n0::0\n");
}

TEST_CASE_METHOD(DedupTest, "DedupTest.WholeRowsOfCsvAndJson", "[DedupTest]") {
  expect_dedup({"-", "--format", "csv"}, "a,\"b\nb\"\n\"a\",\"b\nb\"\n",
               "a,\"b\nb\"\na,\"b\nb\"\n\"a\",\"b\nb\"\n");
  std::string lines = "{\"a\":1}\n{\"a\": 1}\nno object\n\n";
  expect_dedup({"-", "--format", "jsonl"}, lines, lines + lines);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.OneHeaderOfSeveralFiles", "[DedupTest]") {
  std::string a = file("a.csv", "id,v\n1,x\n"), b = file("b.csv", "v,id\ny,1\ny,2");
  expect_dedup({a, b, "--header", "--key", "id"}, "id,v\n1,x\ny,2\n");
  expect_dedup({a, "--header"}, "id,v\n1,x\n");
  expect_dedup({file("c.csv", "id,v\n"), "--header"}, "id,v\n");
}

TEST_CASE_METHOD(DedupTest, "DedupTest.Counts", "[DedupTest]") {
  std::string a = file("a", "b\na\nb\n");
  REQUIRE_MESSAGE(dedup({a, "--count"}) == 0, error_);
  CHECK(out_ == "2\n");
  REQUIRE_MESSAGE(dedup(to_table({a, "--count", "--json"})) == 0, error_);
  CHECK(out_ == "{\"new\":2,\"rejected\":0,\"rows\":3,\"seen\":1}\n");
  REQUIRE_MESSAGE(dedup(to_table({a, "--count"})) == 0, error_);
  CHECK(out_ == "0\n");
}

TEST_CASE_METHOD(DedupTest, "DedupTest.ATableRemembers", "[DedupTest]") {
  REQUIRE_MESSAGE(dedup(to_table({"-"}), "b\na\n") == 0, error_);
  REQUIRE_MESSAGE(dedup(to_table({"-"}), "c\na\n\n") == 0, error_);
  CHECK(out_ == "c\n\n");
  REQUIRE_MESSAGE(dedup(to_table({"-"}), "c\na\n\n") == 0, error_);
  CHECK(out_ == "");
  CHECK(scan() == "\t\na\t\nb\t\nc\t\n");
  // Another command made it, with values of its own and keys that are numbers.
  REQUIRE_MESSAGE(load(file("n.tsv", "7\tseven\n"), {"--key-type", "u64"}, "n") == 0, error_);
  REQUIRE_MESSAGE(run({"dedup", "-", "--table", database_, "n"}, "8\n7\n08\n") == 0, error_);
  CHECK(out_ == "8\n");
  CHECK(scan({}, "n") == "7\tseven\n8\t\n");
}

TEST_CASE_METHOD(DedupTest, "DedupTest.KeyTypesOfANewTableAreRemembered", "[DedupTest]") {
  REQUIRE_MESSAGE(dedup(to_table({"-", "--key", "2", "--key-type", "u64"}), "a\t7\n") == 0, error_);
  CHECK(scan() == "7\t\n");
  REQUIRE_MESSAGE(dedup(to_table({"-", "--key", "1"}), "07\n8\n") == 0, error_);
  CHECK(out_ == "8\n");
}

// A lookup never visits more than a few runs.
TEST_CASE_METHOD(DedupTest, "DedupTest.ManyCommitsAreCompacted", "[DedupTest]") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(i * 7 % 90) + "\n";
  REQUIRE_MESSAGE(dedup(to_table({"-", "--commit-every", "1", "--block-bytes", "1"}), text) == 0,
                  error_);
  CHECK(out_ == first_lines({text}));
  auto database = Database::open(database_);
  CHECK((*database)->tables()[0].runs <= 25u);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.BadRows", "[DedupTest]") {
  std::string rows = "1\ta\n2\n3\ta\n4\tb\n", bad = directory_ + "/bad";
  // What other blocks have is printed.
  CHECK(dedup({"-", "--key", "2", "--block-bytes", "4"}, "0\ta\n0\tb\n" + rows) == 3);
  CHECK(out_.substr(0, 4) == "0\ta\n");
  CHECK_MESSAGE(error_.find("standard input:4: too few columns") != std::string::npos, error_);
  expect_dedup({"-", "--key", "2", "--rejects", bad}, "1\ta\n4\tb\n", rows);
  CHECK(error_ == "stride: 1 of 3 rows were seen before, 2 new, 1 bad rows left out\n");
  CHECK(read(bad).substr(0, 17) == "standard input\t2\t");
  // Nothing of a batch that is not committed is printed or kept.
  expect_refused(to_table({"dedup", "-", "--key", "2", "--block-bytes", "4"}), 3, ":2: ", rows);
  CHECK_FALSE(std::filesystem::exists(database_));
}

TEST_CASE_METHOD(DedupTest, "DedupTest.WhatIsRefused", "[DedupTest]") {
  std::string a = file("a", "x\n");
  expect_refused({"dedup"}, 2, "FILE");
  expect_refused({"dedup", a, "--commit-every", "5"}, 2, "--table");
  expect_refused({"dedup", a, "--format", "raw"}, 2, "tsv, csv and jsonl");
  expect_refused({"dedup", a, "--format", "parquet"}, BatchFile::available() ? 2 : 8, "");
  expect_refused({"dedup", a, "--key-type", "prefix"}, 2, "prefix tables");
  expect_refused({"dedup", a, "--key", "name"}, 2, "no column 'name'");
  expect_refused({"dedup", a, "--table", database_}, 2, "--table");
  expect_refused({"dedup", a, "--table", database_, ".stride"}, 2, "belongs to this program");
  expect_refused(to_table({"dedup", directory_ + "/none"}), 4, "none");
  CHECK_FALSE(std::filesystem::exists(database_));
  REQUIRE_MESSAGE(load(file("p.tsv", "10.0.0.0/8\tx\n"), {"--key-type", "prefix"}, "p") == 0,
                  error_);
  expect_refused({"dedup", a, "--table", database_, "p"}, 2, "is a prefix table");
  REQUIRE_MESSAGE(load(file("n.tsv", "7\tx\n"), {"--key-type", "u64"}, "n") == 0, error_);
  expect_refused({"dedup", a, "--table", database_, "n"}, 3, "a:1: 'x' is no number");
  expect_refused({"dedup", a, "--table", database_, "n", "--key-type", "ip"}, 3, "a:1: ");
  std::filesystem::create_directory(directory_ + "/other");
  file("other/holiday.jpg", "not ours");
  expect_refused({"dedup", a, "--table", directory_ + "/other", "t"}, 2, "other");
  auto held = FileSystem::posix().lock(database_ + "/LOCK");
  REQUIRE_OK(held);
  expect_refused(to_table({"dedup", a}), 5, "locked");
}

TEST_CASE_METHOD(DedupTest, "DedupTest.AnInterruptComesBeforeTheCommit", "[DedupTest]") {
  set_interrupted(true);
  for (bool table : {false, true}) {
    std::string a = file("a", "x\n");
    CHECK(dedup(table ? to_table({a}) : std::vector<std::string>{a}) == 130);
    CHECK(out_ == "");
    CHECK_MESSAGE(error_.find("stride: interrupted") != std::string::npos, error_);
  }
  set_interrupted(false);
  CHECK_FALSE(std::filesystem::exists(database_));
}

// What could not be printed is not in the table either.
TEST_CASE_METHOD(DedupTest, "DedupTest.AFullOutputIsTakenBack", "[DedupTest]") {
  std::string a = file("a", "x\ny\nx\n");
  REQUIRE_MESSAGE(dedup(to_table({"-"}), "y\n") == 0, error_);
  std::vector<const char*> argv = {"stride", "dedup", a.c_str(), "--table", database_.c_str(), "t"};
  MemoryFile in, error;
  int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  CHECK(cli::run(static_cast<int>(argv.size()), argv.data(),
                 {.in = in.fd(), .out = full, .err = error.fd()}) == 7);
  ::close(full);
  CHECK_MESSAGE(error.text().find("No space left") != std::string::npos, error.text());
  CHECK(scan() == "y\t\n");
  REQUIRE_MESSAGE(dedup(to_table({a})) == 0, error_);
  CHECK(out_ == "x\n");
}

// Whichever call to the file system fails, what was printed before and what is printed when the
// command is given again are all rows, and none twice. Only after a failed sync, which leaves open
// what the disk has, some may be missing.
TEST_CASE_METHOD(DedupTest, "DedupTest.AFailedCommitPrintsNothing", "[DedupTest]") {
  std::string text;
  for (int i = 0; i < 40; ++i) text += std::to_string(i * 7 % 30) + "\n";
  std::vector<std::string> arguments =
      to_table({file("a", text), "--block-bytes", "30", "--commit-every", "8"});
  bool failed = true;
  for (uint64_t n = 1; failed; ++n) {
    REQUIRE(n < 1000u);
    MemoryFileSystem files;
    files_ = &files;
    REQUIRE_MESSAGE(run({"load", database_, "u", file("u", "x\n"), "--value", "1"}) == 0, error_);
    files.fail_call(n, StatusCode::no_space);
    failed = dedup(arguments) != 0;
    std::string printed = out_, why = error_;
    files.fail_call(0, StatusCode::ok);
    REQUIRE_MESSAGE(dedup(arguments) == 0, error_);
    bool known = why.find("may be lost") == std::string::npos;
    if (known) REQUIRE_MESSAGE(printed + out_ == first_lines({text}), "call " << n);
    REQUIRE_MESSAGE(printed + out_ == first_lines({printed + out_}), "call " << n);
    files_ = nullptr;
  }
}

TEST_CASE_METHOD(DedupTest, "DedupTest.HelpSaysWhatHoldsAfterAnInterrupt", "[DedupTest]") {
  CHECK(dedup({"--help"}) == 0);
  CHECK_MESSAGE(out_.find("\n  stride dedup ") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("Ctrl-C") != std::string::npos, out_);
  CHECK(run({"completion", "bash"}) == 0);
  CHECK(out_.find("dedup") != std::string::npos);
  CHECK(run({"man"}) == 0);
  CHECK(out_.find(".SH dedup") != std::string::npos);
}

}  // namespace
}  // namespace stride::cli

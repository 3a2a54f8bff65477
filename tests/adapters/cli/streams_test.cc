// The program among the files of a shell: closed streams, streams somewhere in a file, files that
// are read and written at once, and a limit of their size.
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/sanitizers.h"

namespace stride::cli {
namespace {

class StreamsTest : public CliFixture {
 protected:
  StreamsTest() : rows_(file("rows.tsv", "a\t1\nb\t2\n")) {
    CHECK_MESSAGE(load(rows_) == 0, error_);
    CHECK_MESSAGE(run({"dump", database_}) == 0, error_);
    dump_ = file("dump", out_);
  }
  // The exit code of a shell's line, in which $S is stride; minus the signal that ended it. What it
  // prints goes to the files out and err of the directory, unless the line says otherwise.
  int shell(const std::string& line) {
    std::string all = "cd '" + directory_ + "' && S=" STRIDE_PROGRAM " && exec >out 2>err; " + line;
    int status = std::system(all.c_str());
    error_ = read(directory_ + "/err");
    out_ = read(directory_ + "/out");
    if (WIFEXITED(status) && WEXITSTATUS(status) > 150) return 128 - WEXITSTATUS(status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void expect_shell_refuses(const std::string& line, int code, const std::string& message) {
    auto before = state();
    std::string rows = read(rows_);
    CHECK_MESSAGE(shell(line) == code, line << "\n" << error_);
    CHECK_MESSAGE(error_.find(message) != std::string::npos, line << "\n" << error_);
    CHECK_MESSAGE(state() == before, line);
    CHECK_MESSAGE(read(rows_) == rows, line);
  }
  void expect_whole(const std::string& database) {
    REQUIRE_MESSAGE(run({"verify", database}) == 0, error_);
    REQUIRE_MESSAGE(run({"scan", database, "t"}) == 0, error_);
    CHECK(out_ == "a\t1\nb\t2\n");
  }

  std::string rows_, dump_;
};

TEST_CASE_METHOD(StreamsTest, "StreamsTest.MessagesDoNotGoIntoTheDatabase", "[StreamsTest]") {
  for (const char* closed : {">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&-", "<&- >&- 2>&-"}) {
    std::filesystem::remove_all(directory_ + "/copy");
    std::filesystem::remove_all(directory_ + "/loaded");
    CHECK_MESSAGE(shell(std::string("$S restore copy dump ") + closed) == 0, closed);
    expect_whole(directory_ + "/copy");
    CHECK_MESSAGE(shell(std::string("$S load loaded t rows.tsv ") + closed) == 0, closed);
    CHECK_MESSAGE(shell(std::string("$S load loaded t rows.tsv ") + closed) == 0, closed);
    CHECK_MESSAGE(shell(std::string("$S compact loaded ") + closed) == 0, closed);
    expect_whole(directory_ + "/loaded");
  }
}

TEST_CASE_METHOD(StreamsTest, "StreamsTest.WhatCannotBePrintedIsAnError", "[StreamsTest]") {
  for (const char* command : {"scan db t", "tables db", "dump db", "dedup rows.tsv", "man",
                              "stats db --json", "load db t rows.tsv --json"}) {
    CHECK_MESSAGE(shell(std::string("$S ") + command + " >&-") == 1, command);
    CHECK_MESSAGE(error_.find("standard output: write: Bad file descriptor") != std::string::npos,
                  command << error_);
    CHECK_MESSAGE(shell(std::string("$S ") + command + " > /dev/full") == 7, command);
    CHECK_MESSAGE(error_.find("standard output: write: No space left on device: free some space") !=
                      std::string::npos,
                  command << error_);
  }
}

TEST_CASE_METHOD(StreamsTest, "StreamsTest.AClosedInputIsNoOtherFile", "[StreamsTest]") {
  for (const char* command : {"load db t -", "load new t -", "restore new -", "dedup -",
                              "get db t --keys -", "join db t -"})
    expect_shell_refuses(std::string("$S ") + command + " <&-", 2, "standard input is closed");
  CHECK_FALSE(std::filesystem::exists(directory_ + "/new"));
}

TEST_CASE_METHOD(StreamsTest, "StreamsTest.TheInputIsReadFromWhereItStands", "[StreamsTest]") {
  file("head.tsv", "not a row\nc\t3\nd\t4\n");
  REQUIRE_MESSAGE(shell("{ read line; $S load db rest -; } < head.tsv") == 0, error_);
  CHECK(scan({}, "rest") == "c\t3\nd\t4\n");
  // At its end, and beyond.
  REQUIRE_MESSAGE(shell("{ cat > cat; $S load db none -; } < head.tsv") == 0, error_);
  CHECK(scan({}, "none") == "");
  REQUIRE_MESSAGE(shell("{ cat > cat; : > head.tsv; $S load db beyond -; } < head.tsv") == 0,
                  error_);
  CHECK(scan({}, "beyond") == "");
  file("packed", "not a row\n" + gzip("e\t5\n"));
  REQUIRE_MESSAGE(shell("{ read line; $S load db packed -; } < packed") == 0, error_);
  CHECK(scan({}, "packed") == "e\t5\n");
  file("dump-behind", "not a dump\n" + read(dump_));
  REQUIRE_MESSAGE(shell("{ read line; $S restore copy -; } < dump-behind") == 0, error_);
  expect_whole(directory_ + "/copy");
}

TEST_CASE_METHOD(StreamsTest, "StreamsTest.BadRowsDoNotGoIntoTheInput", "[StreamsTest]") {
  std::ofstream(rows_) << "a\t1\nbad\n";
  REQUIRE(symlink("rows.tsv", (directory_ + "/symbolic").c_str()) == 0);
  REQUIRE(link(rows_.c_str(), (directory_ + "/hard").c_str()) == 0);
  int turn = 0;
  for (const char* command :
       {"load db t rows.tsv", "load db t other rows.tsv", "load db t - < rows.tsv",
        "load db t rows.tsv --commit-every 1 --resume", "load new t rows.tsv --dry-run",
        "join db t rows.tsv", "dedup rows.tsv", "dedup rows.tsv --table new t"}) {
    for (const char* name : {"rows.tsv", "symbolic", "hard", "./rows.tsv"}) {
      if (test::under_sanitizer && ++turn % 3 != 0) continue;
      expect_shell_refuses(std::string("$S ") + command + " --rejects " + name, 2,
                           std::string("--rejects ") + name + " goes into the file that is read");
    }
  }
  // Nor into what is printed.
  for (const char* name : {"out", "err"})
    expect_shell_refuses(std::string("$S join db t rows.tsv --rejects ") + name, 2,
                         "is the file that the output goes to");
  // Nor into the database.
  for (const char* name : {"db/CURRENT", "db/new", "db/../db/LOCK"})
    expect_shell_refuses(std::string("$S load db t rows.tsv --rejects ") + name, 2,
                         "is in the directory of a database");
  REQUIRE_MESSAGE(shell("$S load db t rows.tsv --rejects bad") == 0, error_);
  CHECK(read(directory_ + "/bad") == "rows.tsv\t2\ttoo few columns: 1, and 2 are needed\tbad\n");
  // What is there of an earlier load is replaced, and devices are left alone.
  REQUIRE_MESSAGE(shell("$S load db t rows.tsv --rejects bad") == 0, error_);
  CHECK(read(directory_ + "/bad") == "rows.tsv\t2\ttoo few columns: 1, and 2 are needed\tbad\n");
  CHECK_MESSAGE(shell("$S load db t rows.tsv --rejects /dev/null") == 0, error_);
}

TEST_CASE_METHOD(StreamsTest, "StreamsTest.TheOutputDoesNotGoIntoTheInput", "[StreamsTest]") {
  for (const char* command : {"join db t rows.tsv", "dedup rows.tsv", "get db t --keys rows.tsv",
                              "join db t - < rows.tsv", "dedup rows.tsv --table new seen"})
    expect_shell_refuses(std::string("$S ") + command + " >> rows.tsv", 2,
                         "the output goes into the file that is read");
}

TEST_CASE_METHOD(StreamsTest, "StreamsTest.AFileSizeLimitIsAnError", "[StreamsTest]") {
  std::string rows;
  for (int i = 0; i < 50'000; ++i) rows += std::to_string(i) + "\tvalue\n";
  file("large.tsv", rows);
  auto limited = [&](const std::string& command) {
    int code = shell("ulimit -f 20; $S " + command);
    CHECK_MESSAGE(error_.find("File too large") != std::string::npos, command << error_);
    CHECK_MESSAGE(error_.find("raise the file size limit (ulimit -f)") != std::string::npos,
                  command << error_);
    return code;
  };
  CHECK(limited("load db t large.tsv") == 7);
  CHECK(limited("load db new large.tsv") == 7);
  CHECK(limited("dedup large.tsv") == 7);
  CHECK(limited("load db new2 large.tsv --key 3 --rejects bad") == 7);
  expect_whole(database_);
  CHECK_MESSAGE(shell("$S load db t large.tsv") == 0, error_);
}

}  // namespace
}  // namespace stride::cli

// The program as a process: signals, and pipes whose reader has gone.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#include "tests/adapters/cli/process_fixture.h"
#include "tests/support/sanitizers.h"

namespace stride::cli {
namespace {

class ProcessTest : public ProcessFixture {
 protected:
  // A terminal that the program writes to, and what it has shown.
  struct Terminal {
    Terminal() {
      if (mine < 0 || grantpt(mine) != 0 || unlockpt(mine) != 0) abort();
      theirs = ::open(ptsname(mine), O_RDWR | O_NOCTTY | O_CLOEXEC);
      if (theirs < 0) abort();
    }
    ~Terminal() {
      ::close(mine);
      ::close(theirs);
    }
    // Before the process ends.
    bool shows(std::string_view what, pid_t pid) {
      char some[4096];
      for (bool ended = false; text.find(what) == std::string::npos;) {
        struct pollfd readable = {mine, POLLIN, 0};
        if (poll(&readable, 1, 10) != 1) {
          if (ended) break;
          siginfo_t info{};
          ended = waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
                  info.si_pid == pid;
          continue;
        }
        const ssize_t n = ::read(mine, some, sizeof some);
        if (n > 0) text.append(some, static_cast<size_t>(n));
      }
      return text.find(what) != std::string::npos;
    }
    int mine = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), theirs = -1;
    std::string text;
  };
};

TEST_CASE_METHOD(ProcessTest, "ProcessTest.AnInterruptLeavesTheDatabaseAsItWas", "[ProcessTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "a\t1\n")) == 0, error_);
  for (const char* table : {"t", "new"}) {
    auto before = state();
    Pipe input;
    MemoryFile error;
    pid_t pid =
        start({"load", database_, table, "-", "--block-bytes", "4"}, input.ends[0], -1, error.fd());
    // It reads all of this, and waits for more.
    std::string rows = "a\t2\nb\t2\n";
    REQUIRE(write(input.ends[1], rows.data(), rows.size()) == static_cast<ssize_t>(rows.size()));
    for (int left = 1, i = 0; left != 0 && i < 1000; ++i) {
      struct pollfd readable = {input.ends[0], POLLIN, 0};
      left = poll(&readable, 1, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(pid, SIGINT);
    CHECK(wait(pid) == 130);
    CHECK_MESSAGE(error.text().find("stride: interrupted") != std::string::npos, error.text());
    CHECK(state() == before);
    CHECK(scan() == "a\t1\n");
  }
}

// The bar on the terminal says when it commits; Ctrl-C then ends it as it ends the reading.
TEST_CASE_METHOD(ProcessTest, "ProcessTest.AnInterruptEndsACommit", "[ProcessTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "1\t1\n"), {"--key-type", "u64"}) == 0, error_);
  std::string rows;
  for (uint64_t i = 0; i < 1'500'000; ++i)
    rows += std::to_string(i * 0x9E3779B97F4A7C15) + "\tvalue\n";
  const std::string path = file("big.tsv", rows);
  for (const char* table : {"new", "t"}) {
    // It can be faster than the bar is drawn.
    int code = 0;
    for (int attempt = 0; attempt < 5 && code == 0; ++attempt) {
      const auto before = state();
      Terminal terminal;
      const pid_t pid = start({"load", database_, table, path, "--key-type", "u64",
                               "--on-duplicate", "last", "--max-memory", "1000000000"},
                              -1, -1, terminal.theirs);
      const bool commits = terminal.shows("committing [", pid);
      kill(pid, SIGINT);
      const bool interrupted = terminal.shows("interrupted; ", pid);
      code = wait(pid);
      if (code == 0) continue;
      CHECK(commits);
      CHECK(interrupted);
      CHECK(state() == before);
    }
    CHECK(code == 130);
  }
}

// What was printed before the interrupt and what the same command prints then are all rows.
TEST_CASE_METHOD(ProcessTest, "ProcessTest.ADedupGoesOnAfterAnInterrupt", "[ProcessTest]") {
  std::string rows, expected;
  for (int i = 0; i < 300; ++i) rows += std::to_string(i % 90) + "\n";
  for (int i = 0; i < 90; ++i) expected += std::to_string(i) + "\n";
  std::vector<std::string> arguments = {"dedup",          "-", "--table",       database_, "t",
                                        "--commit-every", "8", "--block-bytes", "20"};
  Pipe input;
  MemoryFile out, error;
  pid_t pid = start(arguments, input.ends[0], out.fd(), error.fd());
  std::string_view some = std::string_view(rows).substr(0, 180);
  REQUIRE(write(input.ends[1], some.data(), some.size()) == static_cast<ssize_t>(some.size()));
  for (int i = 0; i < 1000 && out.text().size() < 60; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(pid, SIGINT);
  CHECK_MESSAGE(wait(pid) == 130, error.text());
  std::string printed = out.text();
  CHECK(printed.size() >= 60u);
  REQUIRE_MESSAGE(run(arguments, rows) == 0, error_);
  CHECK(printed + out_ == expected);
}

// When a process is killed, some of its rows may be in the table and not in the output, and none is
// printed twice.
TEST_CASE_METHOD(ProcessTest, "ProcessTest.AKilledDedupPrintsNothingTwice", "[ProcessTest]") {
  std::string rows;
  for (int i = 0; i < 200'000; ++i) rows += std::to_string(i * 7 % 150'000) + "\n";
  std::vector<std::string> arguments = {"dedup", file("rows", rows), "--table", database_,
                                        "t",     "--commit-every",   "2000",    "--block-bytes",
                                        "10k"};
  std::set<std::string> lines;
  for (int life = 1; life < 6; ++life) {
    MemoryFile out;
    pid_t pid = start(arguments, -1, out.fd(), -1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * life));
    kill(pid, SIGKILL);
    wait(pid);
    std::istringstream printed(out.text());
    for (std::string line; std::getline(printed, line) && !printed.eof();)
      CHECK_MESSAGE(lines.insert(line).second, line);
  }
  REQUIRE_MESSAGE(run(arguments) == 0, error_);
  std::istringstream printed(out_);
  for (std::string line; std::getline(printed, line);)
    CHECK_MESSAGE(lines.insert(line).second, line);
  CHECK(lines.size() > 150'000u - 5 * 4000u);
  REQUIRE(run({"count", database_, "t"}) == 0);
  CHECK(out_ == "150000\n");
}

// What a killed restore in parts has left is dropped by the next one; a table that somebody else
// made is not.
TEST_CASE_METHOD(ProcessTest, "ProcessTest.ARestoreThatWasKilledCanBeBegunAnew", "[ProcessTest]") {
  std::string rows, dump;
  for (int i = 0; i < 200'000; ++i) rows += std::to_string(i) + "\tvalue\n";
  REQUIRE_MESSAGE(load(file("rows.tsv", rows)) == 0, error_);
  REQUIRE_MESSAGE(run({"dump", database_}) == 0, error_);
  dump = out_;
  const std::string copy = directory_ + "/copy";
  Pipe input;
  pid_t pid = start({"restore", copy, "-", "--commit-every", "1"}, input.ends[0], -1, -1);
  bool written = false;
  std::thread writer([&] {
    std::string_view most = std::string_view(dump).substr(0, dump.size() * 2 / 3);
    written = write(input.ends[1], most.data(), most.size()) == static_cast<ssize_t>(most.size());
  });
  writer.join();
  CHECK(written);
  for (int i = 0; i < 1000 && (run({"count", copy, "t"}) != 0 || out_ == "0\n"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(pid, SIGKILL);
  CHECK(wait(pid) == -SIGKILL);
  REQUIRE_MESSAGE(run({"count", copy, "t"}) == 0, error_);
  CHECK(out_ != "200000\n");
  REQUIRE_MESSAGE(run({"restore", copy, file("dump", dump), "--commit-every", "50000"}) == 0,
                  error_);
  REQUIRE_MESSAGE(run({"count", copy, "t"}) == 0, error_);
  CHECK(out_ == "200000\n");
  CHECK(run({"restore", copy, file("dump", dump)}) == 2);
  CHECK_MESSAGE(error_.find("is in " + copy + " already") != std::string::npos, error_);
}

TEST_CASE_METHOD(ProcessTest, "ProcessTest.AClosedPipeEndsItQuietly", "[ProcessTest]") {
  std::string rows;
  for (int i = 0; i < 100000; ++i) rows += std::to_string(i) + "\tvalue\n";
  std::string path = file("a.tsv", rows);
  REQUIRE_MESSAGE(load(path) == 0, error_);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"scan", database_, "t"},
        {"join", database_, "t", path},
        {"dedup", path},
        {"dedup", path, "--table", database_, "seen"}}) {
    MemoryFile error;
    pid_t pid;
    {
      Pipe output;
      pid = start(arguments, -1, output.ends[1], error.fd());
      char some[100];
      REQUIRE(::read(output.ends[0], some, sizeof some) > 0);
    }
    CHECK(wait(pid) == 141);
    CHECK(error.text() == "");
  }
}

// A named pipe that nobody writes to.
TEST_CASE_METHOD(ProcessTest, "ProcessTest.AnInterruptEndsTheWaitForAPipe", "[ProcessTest]") {
  std::string path = directory_ + "/pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  MemoryFile error;
  pid_t pid = start({"load", database_, "t", path}, -1, -1, error.fd());
  CHECK(catches_interrupts(pid));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(pid, SIGINT);
  CHECK(wait(pid) == 130);
  CHECK_MESSAGE(error.text().find("stride: interrupted") != std::string::npos, error.text());
}

// The rows of a batch whose commit has begun are printed, and this takes until somebody reads them.
TEST_CASE_METHOD(ProcessTest, "ProcessTest.ALongEndAfterAnInterruptIsExplained", "[ProcessTest]") {
  if (test::under_thread_sanitizer)
    SKIP("ThreadSanitizer holds signals back while a thread waits in a system call");
  std::string rows;
  for (int i = 0; i < 100'000; ++i) rows += std::to_string(i) + "\n";
  Pipe output;
  MemoryFile error;
  pid_t pid = start({"dedup", file("rows", rows), "--table", database_, "t"}, -1, output.ends[1],
                    error.fd());
  ::close(std::exchange(output.ends[1], -1));
  struct pollfd readable = {output.ends[0], POLLIN, 0};
  REQUIRE(becomes_true([&] { return poll(&readable, 1, 0) == 1; }));
  kill(pid, SIGINT);
  const std::string why = "interrupted: ends as soon as the step that has begun is done";
  CHECK(becomes_true([&] { return error.text().find(why) != std::string::npos; }));
  std::string printed;
  char some[4096];
  for (ssize_t n; (n = ::read(output.ends[0], some, sizeof some)) > 0;)
    printed.append(some, static_cast<size_t>(n));
  const int code = wait(pid);
  CHECK_MESSAGE((code == 0 || code == 130), error.text());
  CHECK(printed == rows);
}

TEST_CASE_METHOD(ProcessTest, "ProcessTest.SigtermIsAnInterruptToo", "[ProcessTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "a\t1\n")) == 0, error_);
  auto before = state();
  Pipe input;
  pid_t pid = start({"load", database_, "t", "-"}, input.ends[0], -1, -1);
  kill(pid, SIGTERM);
  int code = wait(pid);
  CHECK_MESSAGE((code == 130 || code == -SIGTERM), code);  // after it catches signals, or before
  CHECK(state() == before);
}

}  // namespace
}  // namespace stride::cli

// stride shell: lines of a file, and what a person types.
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/file.h"
#include "tests/adapters/cli/process_fixture.h"

namespace stride::cli {
namespace {

class ShellTest : public ProcessFixture {
 protected:
  ShellTest() {
    REQUIRE_MESSAGE(
        load(file("users.tsv", "1\tone\n2\ttwo\n"), {"--key-type", "u64"}, "users") == 0, error_);
    REQUIRE_MESSAGE(load(file("words.tsv", "a\tx\nb c\ty\n"), {}, "words") == 0, error_);
  }
  // The exit code of a shell that is given these lines.
  int shell(const std::string& lines) { return run({"shell", database_}, lines); }
  void expect_end(const std::string& lines, int code, const std::string& message) {
    CHECK_MESSAGE(shell(lines) == code, error_);
    CHECK(error_ == "stride: " + message + "\n");
  }
};

TEST_CASE_METHOD(ShellTest, "ShellTest.RunsTheCommandsOfAFile", "[ShellTest]") {
  CHECK_MESSAGE(shell("get users 2 1\n"
                      "\n"
                      "# get users 7\n"
                      "   scan words --limit 1\r\n"
                      "count users\n"
                      "tables --json") == 0,
                error_);
  const std::string tables = out_.substr(out_.find('['));
  CHECK(out_ == "2\ttwo\n1\tone\na\tx\n2\n" + tables);
  CHECK(error_ == "");
  REQUIRE(run({"tables", database_, "--json"}) == 0);
  CHECK(out_ == tables);
}

TEST_CASE_METHOD(ShellTest, "ShellTest.EditsRows", "[ShellTest]") {
  CHECK_MESSAGE(shell("put users 3 'three  times' 4 \"it's\" 5 ''\n"
                      "delete users 1\n"
                      "put words k [1,2]\n") == 0,
                error_);
  CHECK(error_ == "put 3 rows\ndeleted 1 key\nput 1 row\n");
  CHECK(scan({}, "users") == "2\ttwo\n3\tthree  times\n4\tit's\n5\t\n");
  CHECK(scan({"--prefix", "k"}, "words") == "k\t[1,2]\n");
}

TEST_CASE_METHOD(ShellTest, "ShellTest.EndsAtTheFirstFailure", "[ShellTest]") {
  expect_end("count users\n\ncount nobody\nput users 9 nine\n", 4,
             "line 3: no table 'nobody' in database " + database_ +
                 ", which has 'users' and 'words': name one of these");
  CHECK(out_ == "2\n");
  CHECK(scan({}, "users") == "1\tone\n2\ttwo\n");
  expect_end("get users x\n", 2,
             "line 1: key 'x' is no number from 0 to 18446744073709551615: keys are of type u64 "
             "here: give one, or another --key-type");
  expect_end("get users 7 --missing error\n", 4, "line 1: key '7' is not in table 'users'");
}

TEST_CASE_METHOD(ShellTest, "ShellTest.MessagesAreThoseOfAShell", "[ShellTest]") {
  expect_end("cuont users\n", 2, "line 1: no command 'cuont': did you mean 'count'?");
  expect_end("frobnicate\n", 2, "line 1: no command 'frobnicate': help lists all commands");
  expect_end("count\n", 2,
             "line 1: count needs TABLE: count TABLE; help count has all options and examples");
  expect_end("get users 1 --wrong\n", 2,
             "line 1: get has no option '--wrong': help get lists what it has");
  expect_end("--version\n", 2,
             "line 1: the shell has no option '--version' before its command: help lists all");
  expect_end("exit now\n", 2,
             "line 1: exit has no use for 'now': exit; help exit has all options and examples");
  // What has no database, or would be a shell in a shell.
  for (const char* command : {"shell", "bench", "dedup", "completion", "doctor"})
    expect_end(std::string(command) + "\n", 2,
               "line 1: no command '" + std::string(command) + "': help lists all commands");
}

TEST_CASE_METHOD(ShellTest, "ShellTest.OpenQuotes", "[ShellTest]") {
  expect_end("put words k 'v\n", 2,
             "line 1: the ' at byte 13 of the line opens a quote that is not closed: close it, or "
             "write \\'");
  expect_end("put words k \"v\n", 2,
             "line 1: the \" at byte 13 of the line opens a quote that is not closed: close it, or "
             "write \\\"");
  expect_end("put words k v\\\n", 2,
             "line 1: the \\ at the end of the line has nothing behind it: write \\\\");
}

TEST_CASE_METHOD(ShellTest, "ShellTest.ExitAndQuitLeave", "[ShellTest]") {
  for (const char* word : {"exit", "quit"}) {
    CHECK(shell(std::string("count users\n") + word + "\nfrobnicate\n") == 0);
    CHECK(out_ == "2\n");
    CHECK(error_ == "");
  }
  CHECK(shell("") == 0);
  CHECK(out_ + error_ == "");
}

TEST_CASE_METHOD(ShellTest, "ShellTest.HelpIsWithoutTheDatabase", "[ShellTest]") {
  CHECK(shell("help\n") == 0);
  for (const char* line : {"\n  get ", "\n  load ", "\n  help ", "\n  exit ", "\n  quit "})
    CHECK_MESSAGE(out_.find(line) != std::string::npos, out_);
  for (const char* line : {"\n  shell ", "\n  dedup ", "\n  man "})
    CHECK_MESSAGE(out_.find(line) == std::string::npos, out_);
  CHECK(shell("help get\n") == 0);
  for (const char* part : {"Usage: get [OPTIONS] TABLE [KEY...]", "\n  get users 17 42\n"})
    CHECK_MESSAGE(out_.find(part) != std::string::npos, out_);
  for (const char* part : {" DB", "stride get db"})
    CHECK_MESSAGE(out_.find(part) == std::string::npos, out_);
  const std::string help = out_;
  CHECK(shell("get --help\n") == 0);
  CHECK(out_ == help);
}

// The lines after it are commands, and not rows.
TEST_CASE_METHOD(ShellTest, "ShellTest.CommandsOfAFileHaveNoInput", "[ShellTest]") {
  const std::string why =
      ": '-' is the standard input, from which the commands come: give the name of a file";
  expect_end("load new -\na\tb\n", 2, "line 1: FILE" + why);
  expect_end("get users --keys -\n1\n", 2, "line 1: --keys" + why);
  CHECK(shell("put words - dash\nget words -\n") == 0);
  CHECK(out_ == "-\tdash\n");
}

TEST_CASE_METHOD(ShellTest, "ShellTest.LoadsFiles", "[ShellTest]") {
  const std::string path = file("my rows.csv", "id,name\n7,x\n");
  CHECK_MESSAGE(shell("load new '" + path + "' --header --key-type u64\nscan new\n") == 0, error_);
  CHECK(out_ == "7\tx\n");
}

TEST_CASE_METHOD(ShellTest, "ShellTest.NeedsADatabase", "[ShellTest]") {
  expect_refused({"shell", directory_ + "/none"}, 4, "no database in " + directory_ + "/none",
                 "count users\n");
  CHECK_FALSE(std::filesystem::exists(directory_ + "/none"));
  auto held = FileSystem::posix().lock(database_ + "/LOCK");
  REQUIRE_OK(held);
  CHECK(shell("count users\nput users 3 x\n") == 5);
  CHECK_MESSAGE(error_.starts_with("stride: line 2: locked by "), error_);
  CHECK_MESSAGE(error_.find("close it there first") != std::string::npos, error_);
}

// A shell that waits holds no lock.
TEST_CASE_METHOD(ShellTest, "ShellTest.OthersWriteWhileItWaits", "[ShellTest]") {
  Pipe input;
  MemoryFile out, error;
  const pid_t pid = start({"shell", database_}, input.ends[0], out.fd(), error.fd());
  ::close(input.ends[0]);
  auto type = [&](const std::string& line) {
    CHECK(::write(input.ends[1], line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  };
  type("count users\n");
  CHECK(becomes_true([&] { return out.text() == "2\n"; }));
  int code = 5;
  CHECK(becomes_true([&] { return (code = run({"put", database_, "users", "3", "x"})) != 5; }));
  CHECK_MESSAGE(code == 0, error_);
  type("count users\n");
  CHECK(becomes_true([&] { return out.text() == "2\n3\n"; }));
  input.ends[0] = -1;
  ::close(std::exchange(input.ends[1], -1));
  CHECK(wait(pid) == 0);
  CHECK(error.text() == "");
}

// A shell on a terminal of its own.
class ShellTerminalTest : public ShellTest {
 protected:
  ShellTerminalTest() {
    history_ = directory_ + "/state/stride/history";
    setenv("XDG_STATE_HOME", (directory_ + "/state").c_str(), 1);
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    setenv("HOME", directory_.c_str(), 1);  // no ~/.editrc
  }
  ~ShellTerminalTest() {
    for (const auto& [name, value] : before_)
      value ? setenv(name, value->c_str(), 1) : unsetenv(name);
    if (terminal_ >= 0) ::close(terminal_);
  }

  void open() {
    terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(terminal_ >= 0);
    REQUIRE(grantpt(terminal_) == 0);
    REQUIRE(unlockpt(terminal_) == 0);
    struct winsize size {};
    size.ws_row = 24;
    size.ws_col = 200;
    ioctl(terminal_, TIOCSWINSZ, &size);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // With POSIX_SPAWN_SETSID the first terminal that is opened is the one whose Ctrl-C it gets.
    posix_spawn_file_actions_addopen(&actions, 0, ptsname(terminal_), O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    std::string shell = "shell", database = database_, program = "stride";
    char* argv[] = {program.data(), shell.data(), database.data(), nullptr};
    REQUIRE(posix_spawn(&pid_, STRIDE_PROGRAM, &actions, &attributes, argv, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    shows("help lists the commands");
    prompts();
  }
  void type(const std::string& keys) {
    REQUIRE(::write(terminal_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  // Whether the terminal gives whole lines, as to commands, or characters, as to who edits a line.
  bool gives_lines() const {
    struct termios modes {};
    return tcgetattr(terminal_, &modes) == 0 && (modes.c_lflag & ICANON) != 0;
  }
  // All that was typed has been read, by the command that the shell has begun.
  void command_reads_it() {
    const int end = ::open(ptsname(terminal_), O_RDONLY | O_NOCTTY | O_CLOEXEC);
    REQUIRE(end >= 0);
    const bool read = becomes_true([&] {
      int waiting = -1;
      return ioctl(end, FIONREAD, &waiting) == 0 && waiting == 0 && gives_lines();
    });
    ::close(end);
    REQUIRE_MESSAGE(read, "what was typed is not read behind " << screen_);
  }
  // A Ctrl-D that comes before the shell edits the line would be a character of it.
  void prompts() {
    shows("stride> ");
#ifdef STRIDE_HAVE_EDIT
    REQUIRE_MESSAGE(becomes_true([&] { return !gives_lines(); }), screen_);
#endif
  }
  // The terminal shows this behind what it was last seen to show.
  void shows(const std::string& text) {
    const bool shown = becomes_true([&] {
      struct pollfd readable = {terminal_, POLLIN, 0};
      char some[4096];
      while (screen_.find(text, seen_) == std::string::npos && poll(&readable, 1, 0) == 1) {
        const ssize_t n = ::read(terminal_, some, sizeof some);
        if (n <= 0) break;
        screen_.append(some, static_cast<size_t>(n));
      }
      return screen_.find(text, seen_) != std::string::npos;
    });
    REQUIRE_MESSAGE(shown, "no '" << text << "' behind byte " << seen_ << " of " << screen_);
    seen_ = screen_.find(text, seen_) + text.size();
  }
  // A command, what it prints, and the next prompt.
  void command(const std::string& line, const std::string& printed) {
    type(line + "\n");
    shows(printed);
    prompts();
  }
  int leave() {
    type("\x04");
    return wait(pid_);
  }

  std::string history_, screen_;
  size_t seen_ = 0;
  int terminal_ = -1;
  pid_t pid_ = 0;

 private:
  static std::optional<std::string> value_of(const char* name) {
    const char* value = getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  const std::vector<std::pair<const char*, std::optional<std::string>>> before_ = {
      {"XDG_STATE_HOME", value_of("XDG_STATE_HOME")},
      {"TERM", value_of("TERM")},
      {"NO_COLOR", value_of("NO_COLOR")},
      {"HOME", value_of("HOME")}};
};

TEST_CASE_METHOD(ShellTerminalTest, "ShellTerminalTest.GoesOnAfterAnError", "[ShellTerminalTest]") {
  open();
  command("count users", "\n2\r\n");
  command("count nobody", "stride: no table 'nobody' in database");
  command("get users 1", "\n1\tone\r\n");
  CHECK(leave() == 0);
}

TEST_CASE_METHOD(ShellTerminalTest, "ShellTerminalTest.ExitLeaves", "[ShellTerminalTest]") {
  open();
  command("frobnicate", "no command 'frobnicate'");
  type("exit\n");
  CHECK(wait(pid_) == 0);
}

TEST_CASE_METHOD(ShellTerminalTest, "ShellTerminalTest.CtrlCClearsTheLine", "[ShellTerminalTest]") {
  open();
  type("drop users");
  shows("drop users");
  type("\x03");
  prompts();
  command("count users", "\n2\r\n");
  CHECK(leave() == 0);
}

TEST_CASE_METHOD(ShellTerminalTest, "ShellTerminalTest.CtrlCInterruptsTheCommandAlone",
                 "[ShellTerminalTest]") {
  open();
  for (int i = 0; i < 2; ++i) {
    type("load new -\n");
    shows("load new -");
    command_reads_it();
    type("a\tx\n");
    shows("x\r\n");
    type("\x03");
    shows("stride: interrupted; what was not committed is not there");
    prompts();
  }
  command("count new", "stride: no table 'new'");
  command("count users", "\n2\r\n");
  CHECK(leave() == 0);
}

TEST_CASE_METHOD(ShellTerminalTest, "ShellTerminalTest.SigtermEndsIt", "[ShellTerminalTest]") {
  open();
  kill(pid_, SIGTERM);
  shows("stride: ended by SIGTERM");
  CHECK(wait(pid_) == 130);
}

TEST_CASE_METHOD(ShellTerminalTest, "ShellTerminalTest.GoesOnAfterAStop", "[ShellTerminalTest]") {
  open();
  type("count us");
  shows("count us");
  kill(pid_, SIGSTOP);
  kill(pid_, SIGCONT);
  command("ers", "\n2\r\n");
  CHECK(leave() == 0);
}

#ifdef STRIDE_HAVE_EDIT
TEST_CASE_METHOD(ShellTerminalTest, "ShellTerminalTest.TabCompletes", "[ShellTerminalTest]") {
  open();
  type("cou\t");
  shows("nt ");
  type("us\t");
  shows("ers ");
  type("\n");
  shows("\n2\r\n");
  prompts();
  type("scan \t");
  shows("users  words");
  shows("scan ");
  type("users --lim\t");
  shows("it ");
  command("1", "\n1\tone\r\n");
  CHECK(leave() == 0);
}

TEST_CASE_METHOD(ShellTerminalTest, "ShellTerminalTest.KeepsAHistory", "[ShellTerminalTest]") {
  open();
  command("get users 2", "\n2\ttwo\r\n");
  command(" get users 1", "\n1\tone\r\n");
  CHECK(leave() == 0);
  CHECK(read(history_) == "get users 2\n");
  struct stat status {};
  REQUIRE(stat(history_.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  ::close(terminal_);
  open();
  type("\x1b[A");  // arrow up
  shows("get users 2");
  command("", "\n2\ttwo\r\n");
  CHECK(leave() == 0);
}

TEST_CASE_METHOD(ShellTerminalTest, "ShellTerminalTest.AHistoryThatCannotBeWritten",
                 "[ShellTerminalTest]") {
  file("state", "this is no folder");
  open();
  command("count users", "\n2\r\n");
  command("get users 'one", "opens a quote that is not closed");
  CHECK(leave() == 0);
  CHECK(read(directory_ + "/state") == "this is no folder");
}

TEST_CASE_METHOD(ShellTerminalTest, "ShellTerminalTest.CharactersOfManyBytes",
                 "[ShellTerminalTest]") {
  open();
  command("put words \xc3\xbc \xe2\x82\xac\xe2\x82\xac\x7f", "put 1 row");
  CHECK(leave() == 0);
  CHECK(scan({"--prefix", "\xc3\xbc"}, "words") == "\xc3\xbc\t\xe2\x82\xac\n");
}
#endif

}  // namespace
}  // namespace stride::cli

// The file LOG: its lines, its limits, and what becomes of it where calls fail.
#include "engine/monitoring/log_file.h"

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(FileSystem& files, const std::string& path) {
  std::vector<std::string> lines;
  auto file = files.open(path, OpenMode::read);
  if (!file.ok()) return lines;
  std::string text(*(*file)->size(), '\0');
  REQUIRE_OK((*file)->read_at(0, {reinterpret_cast<std::byte*>(text.data()), text.size()}));
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

// Without time and level.
std::string message_of(const std::string& line) {
  static const std::regex form(
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info|warning|error) (.*))");
  std::smatch match;
  REQUIRE_MESSAGE(std::regex_match(line, match, form), line);
  return match[2];
}

class LogFileTest {
 protected:
  LogFileTest() { REQUIRE_OK(files_.create_directory("/db")); }
  std::vector<std::string> messages(const std::string& name) {
    std::vector<std::string> found;
    for (const std::string& line : lines_of(files_, "/db/" + name))
      found.push_back(message_of(line));
    return found;
  }
  MemoryFileSystem files_;
};

TEST_CASE_METHOD(LogFileTest, "LogFileTest.GoesOnWithWhatIsThere", "[LogFileTest]") {
  using Lines = std::vector<std::string>;
  {
    LogFile log(files_, "/db");
    log.hold("opened");
    CHECK_FALSE(*files_.exists("/db/LOG"));
    log.log(LogLevel::info, "one");
    log.log(LogLevel::error, "two\nlines\t\x01");
  }
  LogFile log(files_, "/db");
  log.log(LogLevel::warning, "three");
  CHECK(messages("LOG") == Lines{"opened", "one", "two\\x0alines\\x09\\x01", "three"});
  CHECK_FALSE(*files_.exists("/db/LOG.old"));
}

TEST_CASE_METHOD(LogFileTest, "LogFileTest.StaysWithinItsLimit", "[LogFileTest]") {
  constexpr uint64_t max_bytes = 2000;
  LogFile log(files_, "/db", max_bytes);
  constexpr int count = 200;
  for (int i = 0; i < count; ++i) {
    log.log(LogLevel::info, std::to_string(i) + std::string(static_cast<size_t>(i % 50), 'x'));
    CHECK(*(*files_.open("/db/LOG", OpenMode::read))->size() <= max_bytes);
  }
  const auto newest = messages("LOG"), older = messages("LOG.old");
  CHECK(*(*files_.open("/db/LOG.old", OpenMode::read))->size() <= max_bytes);
  // Both together are the last lines, without a gap.
  int next = count - static_cast<int>(newest.size() + older.size());
  for (const auto* lines : {&older, &newest})
    for (const std::string& line : *lines) CHECK(line.starts_with(std::to_string(next++)));
  CHECK(next == count);
  CHECK(files_.list("/db")->size() == 2u);
  // A line that is longer than the whole file is cut to its own limit.
  log.log(LogLevel::info, std::string(100000, 'y'));
  CHECK(messages("LOG").back().size() == LogFile::max_line_bytes);
}

TEST_CASE_METHOD(LogFileTest, "LogFileTest.LinesThatAreLostAreCounted", "[LogFileTest]") {
  for (uint64_t n = 1; n <= 12; ++n) {
    MemoryFileSystem files;
    REQUIRE_OK(files.create_directory("/db"));
    LogFile log(files, "/db", /*max_bytes=*/300);
    files.fail_call(n, StatusCode::io_error);
    for (int i = 0; i < 20; ++i) log.log(LogLevel::info, "line " + std::to_string(i));
    uint64_t lost = 0, there = 0;
    int last = -1;
    for (const char* name : {"/db/LOG.old", "/db/LOG"}) {
      for (const std::string& line : lines_of(files, name)) {
        const std::string message = message_of(line);
        if (message == "1 lines were lost") {
          ++lost;
          continue;
        }
        REQUIRE_MESSAGE(message.starts_with("line "), message);
        const int number = std::stoi(message.substr(5));
        CHECK_MESSAGE(number > last, message);
        last = number;
        ++there;
      }
    }
    CHECK(lost <= 1u);
    CHECK(there > 0u);
    CHECK(last == 19);
    CHECK(*(*files.open("/db/LOG", OpenMode::read))->size() <= 300u);
  }
}

TEST_CASE_METHOD(LogFileTest, "LogFileTest.AFullDiskLosesLinesAndNothingElse", "[LogFileTest]") {
  LogFile log(files_, "/db");
  log.log(LogLevel::info, "before");
  files_.set_capacity(files_.used_bytes() + 10);
  for (int i = 0; i < 5; ++i) log.log(LogLevel::info, "lost " + std::string(100, 'x'));
  CHECK(messages("LOG").size() == 1u);
  files_.set_capacity(UINT64_MAX);
  log.log(LogLevel::info, "after");
  CHECK(messages("LOG") == std::vector<std::string>{"before", "5 lines were lost", "after"});
}

class DatabaseLogTest {
 protected:
  Options options_{.memtable_bytes = 1 << 20, .backend = BackendKind::host};
  TemporaryDirectory directory_;
  const std::string path_ = directory_.file("db");

  std::unique_ptr<Database> open() {
    auto db = Database::open(path_, options_);
    REQUIRE_OK(db);
    return std::move(*db);
  }
  // Commits, and makes a run of it.
  void flush(Database& db) {
    auto table = db.open_or_create_table("t");
    REQUIRE_OK(table);
    WriteTransaction t = db.begin();
    REQUIRE_OK(t.put(*table, "key", "value"));
    REQUIRE_OK(t.commit());
    REQUIRE_OK(db.compact());
  }
  std::string log() {
    std::string text;
    if (!fs::exists(path_ + "/LOG")) return text;
    for (const std::string& line : lines_of(FileSystem::posix(), path_ + "/LOG"))
      text += message_of(line) + "\n";
    return text;
  }
};

TEST_CASE_METHOD(DatabaseLogTest, "DatabaseLogTest.TellsWhatWasDone", "[DatabaseLogTest]") {
  auto db = open();
  REQUIRE_OK(db->close());
  CHECK(log().empty());  // nothing has happened
  db = open();
  flush(*db);
  REQUIRE_OK(db->close());
  const std::string text = log();
  CHECK(text.starts_with("opened: "));
  CHECK(text.find("flush of run ") != std::string::npos);
  CHECK(text.ends_with("\nclosed\n"));
  // A reader leaves it alone, and so does who does not want it.
  options_.read_only = true;
  REQUIRE_OK(open()->close());
  CHECK(log() == text);
  options_.read_only = false;
  options_.log_file = false;
  db = open();
  flush(*db);
  REQUIRE_OK(db->close());
  CHECK(log() == text);
}

TEST_CASE_METHOD(DatabaseLogTest, "DatabaseLogTest.ALoggerTakesItsPlace", "[DatabaseLogTest]") {
  struct Lines final : Logger {
    void log(LogLevel, std::string_view line) override { text += std::string(line) + "\n"; }
    std::string text;
  };
  auto lines = std::make_shared<Lines>();
  options_.logger = lines;
  auto db = open();
  flush(*db);
  REQUIRE_OK(db->close());
  CHECK(lines->text.starts_with("opened: "));
  CHECK(lines->text.ends_with("closed\n"));
  CHECK(log().empty());
}

// What lies in the way of the file harms nothing.
TEST_CASE_METHOD(DatabaseLogTest, "DatabaseLogTest.WhatIsInTheWayHarmsNothing",
                 "[DatabaseLogTest]") {
  REQUIRE_OK(open()->close());
  SECTION("a directory") { fs::create_directory(path_ + "/LOG"); }
  SECTION("a link") { fs::create_symlink(directory_.file("elsewhere"), path_ + "/LOG"); }
  auto db = open();
  flush(*db);
  REQUIRE_OK(db->close());
  CHECK_FALSE(fs::exists(directory_.file("elsewhere")));
  db = open();
  CHECK(db->metrics().state.rows == 1u);
}

}  // namespace
}  // namespace stride::test

// Words, completion and history of stride shell, without a terminal.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "adapters/cli/command_set.h"
#include "adapters/cli/shell/completion.h"
#include "adapters/cli/shell/history_file.h"
#include "adapters/cli/shell/words.h"
#include "adapters/cli/text/brackets.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

using Names = std::vector<std::string>;

Names words_of(std::string_view line) {
  Names names;
  for (const Word& word : split_words(line).words) names.push_back(word.text);
  return names;
}

TEST_CASE("ShellWordsTest.Quotes", "[ShellWordsTest]") {
  CHECK(words_of("") == Names{});
  CHECK(words_of(" \t ") == Names{});
  CHECK(words_of("put users 17") == Names{"put", "users", "17"});
  CHECK(words_of("  a\tb \r") == Names{"a", "b"});
  CHECK(words_of("'a b' \"c d\"") == Names{"a b", "c d"});
  CHECK(words_of("a'b'\"c\"d") == Names{"abcd"});
  CHECK(words_of("'' \"\" x") == Names{"", "", "x"});
  CHECK(words_of(R"('a\b' "a\b" "a\"b\\" a\ b \' \\)") ==
        Names{R"(a\b)", R"(a\b)", R"(a"b\)", "a b", "'", "\\"});
  CHECK(words_of("\"it's\" 'say \"x\"'") == Names{"it's", "say \"x\""});
  CHECK(words_of("$HOME *.tsv a#b") == Names{"$HOME", "*.tsv", "a#b"});
}

TEST_CASE("ShellWordsTest.WhatIsOpen", "[ShellWordsTest]") {
  CHECK(split_words("a 'b'").open == 0);
  for (const auto& [line, open, at] : {std::tuple{"a 'b", '\'', 2}, std::tuple{"a b\"c d", '"', 3},
                                       std::tuple{"a \\", '\\', 2}, std::tuple{"\"\\", '"', 0}}) {
    const Words words = split_words(line);
    CHECK_MESSAGE(words.open == open, line);
    CHECK_MESSAGE(words.open_at == static_cast<size_t>(at), line);
  }
}

// Random texts are words again, and where they lie is known.
TEST_CASE("ShellWordsTest.AsWordIsRead", "[ShellWordsTest]") {
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < 2000; ++round) {
    Names texts;
    std::string line;
    for (size_t n = random() % 4; n > 0; --n) {
      std::string text;
      for (size_t bytes = random() % 6; bytes > 0; --bytes) text += "ab '\"\\#\t$"[random() % 9];
      texts.push_back(text);
      line += std::string(1 + random() % 2, ' ') + as_word(text);
    }
    const Words parted = split_words(line);
    CHECK(parted.open == 0);
    CHECK_MESSAGE(words_of(line) == texts, line);
    for (size_t i = 0; i < parted.words.size(); ++i) {
      const Word& word = parted.words[i];
      CHECK_MESSAGE(line.substr(word.begin, word.end - word.begin) == as_word(texts[i]), line);
    }
  }
}

TEST_CASE("BracketsTest.AMarkIsTakenOffAgain", "[BracketsTest]") {
  for (const char* text : {"", "a", "[", "[]", "[1,2]", "[x", "\x01", "\x01[1]", "\x01\x01"})
    CHECK(without_mark(with_mark(text)) == text);
  CHECK(with_mark("[1]") != "[1]");
  CHECK(with_mark("plain") == "plain");
}

class CompletionTest : public CliFixture {
 protected:
  Names words(const std::string& line) { return completion(line).words; }
  Completion completion(const std::string& line) {
    Context context{Environment{}};
    CommandSet commands(&context, database_, true);
    asked_ = 0;
    return complete(commands.app(), line, [this] {
      ++asked_;
      return Names{"users", "words", "orders of day"};
    });
  }
  int asked_ = 0;
};

TEST_CASE_METHOD(CompletionTest, "CompletionTest.Commands", "[CompletionTest]") {
  CHECK(words("co") == Names{"compact", "count"});
  CHECK(words("help co") == Names{"compact", "count"});
  CHECK(words("xyz") == Names{});
  const Names all = words("");
  CHECK(std::ranges::is_sorted(all));
  for (const char* name : {"get", "put", "delete", "scan", "match", "count", "tables", "stats",
                           "explain", "help", "quit", "exit"})
    CHECK_MESSAGE(std::ranges::count(all, name) == 1, name);
  CHECK(asked_ == 0);
}

TEST_CASE_METHOD(CompletionTest, "CompletionTest.Tables", "[CompletionTest]") {
  CHECK(words("scan ") == Names{"orders of day", "users", "words"});
  CHECK(asked_ == 1);
  const Completion found = completion("  scan 'or");
  CHECK(found.words == Names{"orders of day"});
  CHECK(found.begin == 7u);
  CHECK(found.typed == "or");
  CHECK(words("scan --limit 10 u") == Names{"users"});
  CHECK(words("scan --reverse u") == Names{"users"});
  CHECK(words("drop users w") == Names{"words"});
  CHECK(words("get users w") == Names{});
  CHECK(words("nothing u") == Names{});
  CHECK(words("tables u") == Names{});
}

TEST_CASE_METHOD(CompletionTest, "CompletionTest.Options", "[CompletionTest]") {
  CHECK(words("scan users --li") == Names{"--limit"});
  CHECK(words("scan --re") == Names{"--reverse"});
  CHECK(words("scan users --format ") == Names{"arrow", "csv", "jsonl", "parquet", "raw", "tsv"});
  CHECK(words("scan users --format j") == Names{"jsonl"});
  CHECK(words("scan users --limit ") == Names{});
  const Names all = words("scan users ");
  CHECK(std::ranges::count(all, "--keys-only") == 1);
  CHECK(words("load users x --block-b") == Names{});  // hidden
}

TEST_CASE_METHOD(CompletionTest, "CompletionTest.Files", "[CompletionTest]") {
  file("one.tsv", "");
  file("other.tsv", "");
  file(".hidden", "");
  std::filesystem::create_directory(directory_ + "/folder");
  const std::string in = directory_ + "/";
  CHECK(words("load users " + in) == Names{in + "folder/", in + "one.tsv", in + "other.tsv"});
  CHECK(words("load users " + in + "ot") == Names{in + "other.tsv"});
  CHECK(words("load users " + in + ".") == Names{in + ".hidden"});
  CHECK(words("get users --keys " + in + "on") == Names{in + "one.tsv"});
  CHECK(words("load users " + in + "none/") == Names{});
}

class HistoryFileTest : public CliFixture {};

TEST_CASE_METHOD(HistoryFileTest, "HistoryFileTest.KeepsTheNewestLines", "[HistoryFileTest]") {
  const std::string path = directory_ + "/a/b/history";
  const HistoryFile history(path);
  CHECK(history.read() == Names{});
  history.append("count users");
  history.append("put users 1 'a b'");
  CHECK(history.read() == Names{"count users", "put users 1 'a b'"});
  std::string lines;
  for (size_t i = 0; i < 2 * HistoryFile::max_lines; ++i) lines += std::to_string(i) + "\n";
  file("a/b/history", lines);
  const Names kept = history.read();
  REQUIRE(kept.size() == HistoryFile::max_lines);
  CHECK(kept.front() == std::to_string(HistoryFile::max_lines));
  CHECK(kept.back() == std::to_string(2 * HistoryFile::max_lines - 1));
  CHECK(history.read() == kept);
  CHECK(std::ranges::count(read(path), '\n') == static_cast<ptrdiff_t>(HistoryFile::max_lines));
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0077) == 0u);
}

TEST_CASE_METHOD(HistoryFileTest, "HistoryFileTest.FailsSilently", "[HistoryFileTest]") {
  for (const std::string& path : {std::string(), directory_ + "/file/history", directory_}) {
    file("file", "x");
    const HistoryFile history(path);
    history.append("count users");
    CHECK(history.read() == Names{});
  }
  CHECK(read(directory_ + "/file") == "x");
}

}  // namespace
}  // namespace stride::cli

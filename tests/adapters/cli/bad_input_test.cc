// Bad input of every kind: which exit code, which message, and a database that stays as it was.
#include <unistd.h>

#include <algorithm>

#include "storage/file.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class BadInputTest : public CliFixture {
 protected:
  BadInputTest() {
    CHECK_MESSAGE(load(file("first.tsv", "1\tone\n"), {"--key-type", "u64"}, "numbers") == 0,
                  error_);
    CHECK_MESSAGE(load(file("first.tsv", "1\tone\n")) == 0, error_);
  }
  // A load into `t` says file:line: reason, exit code 3.
  void expect_bad(const std::string& name, const std::string& content, uint64_t line,
                  const std::string& reason, const std::vector<std::string>& options = {}) {
    std::string path = file(name, content);
    for (const char* bytes : {"7", "1000000"}) {
      std::vector<std::string> all = options;
      all.insert(all.end(), {"--block-bytes", bytes});
      expect_load_refused(path, all, 3, path + ":" + std::to_string(line) + ": " + reason);
    }
  }
};

TEST_CASE_METHOD(BadInputTest, "BadInputTest.TooFewAndTooManyColumns", "[BadInputTest]") {
  expect_bad("a.tsv", "a\t1\nb\n", 2, "too few columns: 1, and 2 are needed");
  expect_bad("a.tsv", "a\t1\n\nb\t2\n", 2, "empty line");
  expect_bad("a.tsv", "a\t1\tx\nb\t2\n", 2, "too few columns: 2, and 3 are needed",
             {"--value", "3"});
  expect_bad("a.csv", "k,v\na,1\nb,2,3\n", 3, "too many columns: 3, and the header has 2",
             {"--header"});
  expect_bad("a.csv", "k,v\na,1\nb\n", 3, "too few columns: 1, and the header has 2", {"--header"});
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.Quotes", "[BadInputTest]") {
  expect_bad("a.csv", "a,1\nb,\"2\nc,3\n", 2, "unterminated quote");
  expect_bad("a.csv", "a,1\nb,\"2\n\nc\",3\n\"d", 5, "unterminated quote", {"--value", "2"});
  expect_bad("a.csv", "a,1\nb,2\"3\nc,4\n", 2, "a quote inside a field");
  expect_bad("a.csv", "a,1\nb,\"2\"3\nc,4\n", 2, "text after a closing quote");
  expect_bad("a.csv", "\"k\"x,v\na,1\n", 1, "text after a closing quote in the header",
             {"--header"});
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.ABadQuoteCostsOneRow", "[BadInputTest]") {
  std::string path = file("a.csv", "a,\"1\"x\"\nb,2\"\nc,\"3\"\nd,\"4\"\"\n"),
              bad = directory_ + "/bad";
  for (const char* bytes : {"1", "5", "1000"}) {
    std::string table = std::string("quotes") + bytes;
    REQUIRE_MESSAGE(load(path, {"--rejects", bad, "--block-bytes", bytes}, table) == 0, error_);
    CHECK(scan({}, table) == "c\t3\n");
    CHECK(read(bad) == path + "\t1\ttext after a closing quote (column 2)\ta,\"1\"x\"\n" + path +
                           "\t2\ta quote inside a field that does not begin with one (column 2)"
                           "\tb,2\"\n" +
                           path +
                           "\t4\tunterminated quote, which opens in this row (column 2)"
                           "\td,\"4\"\"\n\n");
  }
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.Json", "[BadInputTest]") {
  std::string good = "{\"key\":\"a\"}\n";
  auto bad = [&](const std::string& line, const std::string& reason) {
    expect_bad("a.jsonl", good + line + "\n" + good, 2, reason);
  };
  bad("{\"key\":\"\xC3\x28\"}", "JSON: a string that is not UTF-8");
  bad("{\"key\":\"\xED\xA0\x80\"}", "JSON: a string that is not UTF-8");
  bad("{\"key\":\"\xC0\x80\"}", "JSON: a string that is not UTF-8");
  bad("{\"key\":\"\xF0\x9F\x98\"}", "JSON: a string that is not UTF-8");
  bad("{\"key\":\"a}", "JSON: unterminated string");
  bad("{\"key\":\"a\\x\"}", "JSON: a backslash before what needs none");
  bad("{\"key\":\"\\ud800\"}", "JSON: half of a surrogate pair");
  bad("{\"key\":\"a\tb\"}", "JSON: a control character in a string");
  bad("{\"key\":\"a\"", "JSON: ',' or '}' is missing");
  bad("{\"key\":\"a\"} x", "JSON: text after the object");
  bad("{\"key\":01}", "JSON: ',' or '}' is missing");
  bad("{\"key\":1.}", "JSON: a number that is none");
  bad("{\"key\":nul}", "JSON: neither a string nor");
  bad("[1]", "JSON: the line is no JSON object");
  bad("{\"key\":[1,]}", "JSON: neither a string nor");
  bad("{\"key\":" + std::string(600, '[') + std::string(600, ']') + "}",
      "JSON: nested more than 512 deep");
  bad("{\"k\":1}", "no field 'key'");
  bad("{\"key\":null}", "the field 'key' is neither a string nor a number");
  expect_bad("a.jsonl", "{\"key\":1,\"v\":2}\n" + good, 2, "no field 'v'", {"--value", "v"});
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.Keys", "[BadInputTest]") {
  auto bad = [&](const std::string& key, const std::string& reason, const char* type) {
    std::string path =
        file("k.tsv", (type == std::string("ip") ? "::\tv\n" : "00\tv\n") + key + "\tv\n");
    expect_refused({"load", database_, std::string("new"), path, "--key-type", type}, 3,
                   path + ":2: " + reason);
    CHECK(run({"count", database_, "new"}) == 4);
  };
  bad("18446744073709551616", "'18446744073709551616' is no number from 0 to", "u64");
  bad("99999999999999999999", "'99999999999999999999' is no number from 0 to", "u64");
  bad("100000000000000000000", "'100000000000000000000' is no number", "u64");
  bad("-1", "'-1' is no number from 0 to", "u64");
  bad("1x345678", "'1x345678' is no number from 0 to", "u64");
  bad(" 1", "' 1' is no number from 0 to", "u64");
  bad("9223372036854775808", "'9223372036854775808' is no number from -9223372036854775808", "i64");
  bad("-9223372036854775809", "'-9223372036854775809' is no number", "i64");
  bad("-", "'-' is no number", "i64");
  bad("abc", "'abc' is no even number of hex digits", "hex");
  bad("0g", "'0g' is no even number of hex digits", "hex");
  bad("1.2.3", "'1.2.3' is no IPv4 or IPv6 address", "ip");
  bad("1.2.3.256", "'1.2.3.256' is no IPv4 or IPv6 address", "ip");
  for (const char* type : {"u64", "hex", "bytes", "ip"}) bad("", "empty key", type);
  bad(std::string(65536, 'k'), "key 'kkk", "bytes");
  std::string path = file("k.tsv", "abc\t1\nabcd\t2\n");
  expect_refused({"load", database_, "new", path, "--key-width", "3"}, 3,
                 path + ":2: key 'abcd' has 4 bytes, every key has 3");
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.MixedLineEnds", "[BadInputTest]") {
  expect_bad("a.tsv", "a\t1\nb\t2\r\n", 2, "mixed line ends: this one is CRLF");
  expect_bad("a.tsv", "a\t1\r\nb\t2\nc\t3\r\n", 2, "mixed line ends: this one is LF");
  expect_bad("a.csv", "a,\"1\"\r\nb,\"2\"\n", 2, "mixed line ends: this one is LF");
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.LongLines", "[BadInputTest]") {
  std::string text = "a\t1\n" + std::string(5000, 'x') + "\ty\nb\t2\n";
  expect_bad("a.tsv", text, 2, "longer than --max-row-bytes (1000)", {"--max-row-bytes", "1000"});
  std::string path = file("a.tsv", text), bad = directory_ + "/bad";
  for (const char* bytes : {"7", "600", "100000"}) {
    std::string table = std::string("long") + bytes;
    REQUIRE_MESSAGE(
        load(path, {"--max-row-bytes", "1000", "--rejects", bad, "--block-bytes", bytes}, table) ==
            0,
        error_);
    CHECK(scan({}, table) == "a\t1\nb\t2\n");
    CHECK(read(bad).substr(0, path.size() + 19) == path + "\t2\tlonger than --ma");
  }
  expect_bad("a.csv", "a,1\nb,\"2\n" + std::string(3000, '\n'), 2, "", {"--max-row-bytes", "1000"});
  // Without an end.
  expect_bad("a.tsv", "a\t1\n" + std::string(5000, 'x'), 2, "longer than --max-row-bytes (1000)",
             {"--max-row-bytes", "1000"});
  expect_bad("a.jsonl", "{\"key\":1}\n{\"key\":\"" + std::string(5000, 'x') + "\"}\n", 2,
             "longer than --max-row-bytes (1000)", {"--max-row-bytes", "1000"});
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.RawFiles", "[BadInputTest]") {
  expect_bad("a.raw", std::string("\1\0\0\0\1\0\0\0kv\1\0\0", 13), 2,
             "the file ends within the record", {"--format", "raw"});
  expect_bad("a.raw", "kkvvkkv", 2, "the file ends within the record",
             {"--format", "raw", "--key-bytes", "2", "--value-bytes", "2"});
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.Files", "[BadInputTest]") {
  expect_load_refused(directory_ + "/none.tsv", {}, 4, "/none.tsv: open: No such file");
  expect_load_refused(directory_, {}, 1, "read: Is a directory");
  std::string packed = gzip(std::string(100000, 'x') + "\ty\n");
  expect_load_refused(file("a.gz", packed.substr(0, packed.size() / 2)), {}, 3,
                      "a.gz: ends in the middle of gzip");
  packed[packed.size() - 6] ^= 1;
  expect_load_refused(file("a.gz", packed), {}, 3, "a.gz: broken gzip data");
  packed = zstd(std::string(100000, 'x') + "\ty\n");
  expect_load_refused(file("a.zst", packed.substr(0, packed.size() - 3)), {}, 3,
                      "ends in the middle of zstd");
  packed[6] ^= 0x7f;
  expect_load_refused(file("a.zst", packed), {}, 3, "a.zst: ");
}

// The second of two files is gone: nothing of the first is there.
TEST_CASE_METHOD(BadInputTest, "BadInputTest.AllOrNothingOverFiles", "[BadInputTest]") {
  std::string good = file("good.tsv", "a\t1\n");
  expect_refused({"load", database_, "t", good, directory_ + "/gone"}, 4, "/gone");
  CHECK(scan() == "1\tone\n");
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.Arguments", "[BadInputTest]") {
  std::string path = file("a.tsv", "1\tx\n");
  expect_load_refused(path, {"--key", "0"}, 2, "no column '0'");
  expect_load_refused(path, {"--key", "id"}, 2, "no column 'id': without --header");
  expect_load_refused(path, {"--header", "--key", "id"}, 2, "no column 'id' in the header");
  expect_load_refused(path, {"--header", "--key", "3"}, 2, "no column 3: the header has 2");
  expect_load_refused(path, {"--value", "2,2"}, 2, "--value names a column twice");
  expect_load_refused(path, {"--delimiter", "ab"}, 2, "--delimiter must be one byte");
  expect_load_refused(path, {"--key-type", "float"}, 2, "--key-type");
  expect_load_refused(path, {"--format", "xml"}, 2, "--format");
  expect_load_refused(path, {"--resume"}, 2, "--commit-every");
  expect_load_refused(path, {"--on-duplicate", "maybe"}, 2, "--on-duplicate");
  expect_load_refused(path, {"--key-bytes", "3"}, 2, "are for --format raw");
  expect_load_refused(path, {"--commit-every", "many"}, 2, "--commit-every");
  expect_refused({}, 2, "give a command");
  expect_refused({"explode"}, 2, "");
  expect_refused({"load", database_, ".stride", path}, 2, "belongs to this program");
  expect_refused({"load", database_, std::string(300, 't'), path}, 2, "1 to 255 bytes");
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.Counts", "[BadInputTest]") {
  std::string path = file("a.tsv", "1\tx\n2\ty\n");
  for (const char* text : {"-1", "+1", "1.5", "0x10", "k", "1kk", "1 k", "18446744073709551616",
                           "18446744073709552k", "99999999999999999999999"}) {
    std::string message = ": '" + std::string(text) + "' is no number from 0 to";
    for (const char* option : {"--commit-every", "--max-rejects", "--max-memory"})
      expect_load_refused(path, {option, text}, 2, option + message);
    expect_refused({"scan", database_, "t", "--limit", text}, 2, "--limit" + message);
  }
  REQUIRE_MESSAGE(load(path, {"--commit-every", "1k", "--max-memory", "1G"}, "new") == 0, error_);
  CHECK(scan({"--limit", "0"}, "new") == "");
  CHECK(scan({"--limit", "1"}, "new") == "1\tx\n");
  CHECK(scan({"--limit", "18446744073709551615"}, "new") == "1\tx\n2\ty\n");
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.TablesOfAnotherKind", "[BadInputTest]") {
  std::string path = file("a.tsv", "1\tx\n");
  const std::string of_numbers =
      "--key-width 4 does not go with keys of type u64, which have 8 bytes: leave it out";
  expect_refused({"load", database_, "numbers", path, "--key-width", "4"}, 2, of_numbers);
  expect_refused({"load", database_, "new", path, "--key-type", "u64", "--key-width", "4"}, 2,
                 of_numbers);
  REQUIRE_MESSAGE(load(path, {"--key-width", "8"}, "numbers") == 0, error_);
  expect_load_refused(path, {"--key-type", "u64"}, 2, "has keys of type bytes, not u64");
  expect_load_refused(path, {"--key-width", "4"}, 2,
                      "has keys of any length, and this load makes keys of 4");
  expect_refused({"load", database_, "numbers", path, "--key-type", "i64"}, 2,
                 "of type u64, not i64");
  expect_refused({"scan", database_, "t", "--key-type", "u64", "--from", "x"}, 2,
                 "--from: 'x' is no number");
  expect_refused({"scan", database_, "numbers", "--prefix", "1"}, 2,
                 "--prefix is for keys of type bytes");
  expect_refused({"get", database_, "numbers", "x"}, 2, "key 'x' is no number");
  auto database = Database::open(database_);
  REQUIRE_OK((*database)->create_table("four", {.key_width = 4}));
  database->reset();
  expect_refused({"load", database_, "four", path, "--key-type", "u64"}, 2,
                 "table 'four' has keys of 4 bytes, and this load makes keys of 8");
  expect_refused({"load", database_, "four", path}, 3,
                 "a.tsv:1: key '1' has 1 bytes, every key has 4");
  expect_refused({"scan", database_, "four", "--key-type", "u64"}, 2, "have 4 bytes");
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.AWindowThatIsTooLarge", "[BadInputTest]") {
  // A frame that asks for 256 MiB.
  std::string packed("\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00", 9);
  expect_load_refused(file("long.zst", packed), {}, 3, "was packed with --long");
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.DatabasesThatAreNot", "[BadInputTest]") {
  std::string rows = file("rows.tsv", "1\tx\n");
  expect_refused({"load", "", "t", rows}, 2, "the name of the database's directory is empty");
  expect_refused({"scan", "", "t"}, 2, "the name of the database's directory is empty");
  expect_refused({"count", directory_ + "/none", "t"}, 4, "");
  expect_refused({"count", database_, "none"}, 4, "no table 'none'");
  expect_refused({"get", database_, "none", "k"}, 4, "no table 'none'");
  std::string path = file("a.tsv", "1\tx\n");
  expect_refused({"load", directory_, "t", path}, 2, "");  // other files lie there
  auto held = FileSystem::posix().lock(database_ + "/LOCK");
  REQUIRE_OK(held);
  expect_load_refused(path, {}, 5, "lock");
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.MemoryForAllOrNothing", "[BadInputTest]") {
  std::string rows;
  for (int i = 0; i < 1000; ++i) rows += std::to_string(i) + "\tvalue\n";
  std::string path = file("a.tsv", rows);
  expect_load_refused(path, {"--max-memory", "1k", "--block-bytes", "500"}, 7,
                      "give --commit-every");
  CHECK_MESSAGE(
      load(path, {"--max-memory", "10k", "--block-bytes", "500", "--commit-every", "50"}) == 0,
      error_);
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.AFullDisk", "[BadInputTest]") {
  MemoryFileSystem files;
  files_ = &files;
  database_ = "/db";
  REQUIRE_MESSAGE(load(file("a.tsv", "a\t1\n")) == 0, error_);
  std::string rows;
  for (int i = 0; i < 20000; ++i) rows += std::to_string(i) + "\tvalue\n";
  std::string path = file("b.tsv", rows);
  files.set_capacity(files.used_bytes() + 10000);
  CHECK_MESSAGE(load(path) == 7, error_);
  CHECK_MESSAGE(error_.find("No space left") != std::string::npos, error_);
  CHECK_MESSAGE(error_.find("free some space on this disk") != std::string::npos, error_);
  CHECK_MESSAGE(load(path, {}, "new") == 7, error_);
  CHECK(scan() == "a\t1\n");
  CHECK_MESSAGE(run({"count", database_, "new"}) == 4, out_);
  files.set_capacity(1 << 30);
  CHECK_MESSAGE(load(path) == 0, error_);
  REQUIRE(run({"count", database_, "t"}) == 0);
  CHECK(out_ == "20001\n");
}

TEST_CASE_METHOD(BadInputTest, "BadInputTest.AFullOutput", "[BadInputTest]") {
  int full = open("/dev/full", O_WRONLY);
  MemoryFile error;
  const char* argv[] = {"stride", "scan", database_.c_str(), "t"};
  CHECK(cli::run(4, argv, {.out = full, .err = error.fd()}) == 7);
  CHECK_MESSAGE(error.text().find("standard output: write: No space left") != std::string::npos,
                error.text());
  ::close(full);
  std::string path = file("a.tsv", "\tx\n");
  expect_load_refused(path, {"--rejects", "/dev/full"}, 7, "/dev/full: write: No space left");
}

}  // namespace
}  // namespace stride::cli

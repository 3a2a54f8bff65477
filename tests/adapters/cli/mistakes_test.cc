// The mistakes that users make most: for each the whole message, which says what is wrong, where,
// and what to do.
#include <string>
#include <vector>

#include "storage/file.h"
#include "storage/memory_file_system.h"
#include "tests/adapters/cli/process_fixture.h"

namespace stride::cli {
namespace {

// In all of these {db} is the database and {dir} the directory with the files.
struct Mistake {
  std::vector<std::string> arguments;
  int code;
  std::string message;
  std::string what, where, to_do;  // parts of it
};

class MistakesTest : public ProcessFixture {
 protected:
  MistakesTest() {
    file("z.csv", "zip,city\n00501,Holtsville\n00544,Holtsville\n");
    file("numbers.tsv", "1\tone\n2\ttwo\n");
    file("quote.csv", "a,b\n1,2\n3,\"4\n5,6\n7,8\n");
    file("closed.csv", "a,b\n1,2\n3,\"4\n5,6\n7,\"8\"\n");
    file("short.csv", "a,b\n1,2\n3\n");
    file("mixed.csv", "a,b\n1,2\r\n3,4\n");
    file("array.json", "[\n {\"id\":1},\n {\"id\":2}\n]\n");
    file("pretty.json", "{\n \"id\":1\n}\n");
    file("rows.jsonl", "{\"id\":1,\"name\":\"x\"}\n");
    file("bits.tsv", "10.1.2.3/8\tx\n");
    file("sums.tsv", "a\t9223372036854775807\na\t1\n");
    REQUIRE_MESSAGE(load(directory_ + "/z.csv", {"--header"}, "zips") == 0, error_);
    REQUIRE_MESSAGE(load(directory_ + "/numbers.tsv", {"--key-type", "u64"}, "users") == 0, error_);
  }

  std::string with_places(std::string text) const {
    for (const auto& [mark, place] : {std::pair{"{db}", database_}, {"{dir}", directory_}})
      for (size_t at = 0; (at = text.find(mark)) != std::string::npos;)
        text.replace(at, std::string(mark).size(), place);
    return text;
  }

  void check(const Mistake& mistake) {
    std::vector<std::string> arguments;
    for (const std::string& argument : mistake.arguments)
      arguments.push_back(with_places(argument));
    const auto before = state();
    const int code = run(arguments);
    CHECK_MESSAGE(code == mistake.code, error_);
    CHECK(out_ == "");
    CHECK(state() == before);
    CHECK(error_ == "stride: " + with_places(mistake.message) + "\n");
    for (const std::string& part : {mistake.what, mistake.where, mistake.to_do}) {
      CHECK_MESSAGE(part != "", error_);
      CHECK_MESSAGE(mistake.message.find(part) != std::string::npos, part);
    }
    for (const char* word : {"::", "Could not convert", "not in {", "Overflow", "HostBits",
                             "invalid_argument", "not_found"})
      CHECK_MESSAGE(error_.find(word) == std::string::npos, error_);
  }
};

// What --limit says of what is no count.
const std::string no_count =
    "' is no number from 0 to 18446744073709551615 (k, m and g behind it are thousands, millions "
    "and "
    "billions): give such a number";
const std::string or_rejects = ", or leave bad rows out with --rejects FILE";
const std::string close_quote = "close the quote, or write quotes inside of quotes twice";

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AMisspelledCommand", "[MistakesTest]") {
  check({{"laod", "{db}", "t", "{dir}/z.csv"},
         2,
         "no command 'laod': did you mean 'load'?",
         "no command",
         "'laod'",
         "did you mean 'load'"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AMisspelledOption", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/z.csv", "--heade"},
         2,
         "load has no option '--heade': did you mean '--header'?",
         "has no option",
         "'--heade'",
         "did you mean '--header'"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AWordForACount", "[MistakesTest]") {
  check({{"scan", "{db}", "zips", "--limit", "ten"},
         2,
         "--limit: 'ten" + no_count,
         "'ten' is no number",
         "--limit",
         "give such a number"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.ANegativeCount", "[MistakesTest]") {
  check({{"scan", "{db}", "zips", "--limit", "-1"},
         2,
         "--limit: '-1" + no_count,
         "'-1' is no number",
         "--limit",
         "give such a number"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AnUnknownKeyType", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/z.csv", "--key-type", "int"},
         2,
         "--key-type: 'int' is no type of keys: give bytes, u8 to u64, i8 to i64, f32, f64, bool, "
         "date, timestamp, uuid, string, hex, ip, prefix, or several of these types with commas "
         "between",
         "'int' is no type of keys",
         "--key-type",
         "give bytes, u8 to u64"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AColumnThatIsNotThere", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/z.csv", "--header", "--key", "zipcode"},
         2,
         "{dir}/z.csv:1: no column 'zipcode' in the header, which has 'zip' and 'city': name one "
         "of these, or give its number",
         "no column 'zipcode'",
         "{dir}/z.csv:1",
         "name one of these"});
  check({{"load", "{db}", "t", "{dir}/z.csv", "--header", "--value", "citty"},
         2,
         "{dir}/z.csv:1: no column 'citty' in the header, which has 'zip' and 'city': did you "
         "mean 'city'?",
         "no column 'citty'",
         "{dir}/z.csv:1",
         "did you mean 'city'?"});
}

// The first row has the name, so it is a header.
TEST_CASE_METHOD(MistakesTest, "MistakesTest.AColumnsNameWithoutHeader", "[MistakesTest]") {
  CHECK_MESSAGE(load(directory_ + "/z.csv", {"--key", "zip"}, "named") == 0, error_);
  CHECK(error_.find("z.csv: the first row names the columns (--no-header: it is a row)") !=
        std::string::npos);
  check({{"load", "{db}", "t", "{dir}/z.csv", "--key", "zip", "--no-header"},
         2,
         "{dir}/z.csv: no column 'zip': without --header a column is a number from 1: give its "
         "number, or --header",
         "no column 'zip'",
         "{dir}/z.csv",
         "give its number, or --header"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.TextForANumber", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/z.csv", "--header", "--key", "2", "--key-type", "u64"},
         3,
         "{dir}/z.csv:2: 'Holtsville' is no number from 0 to 18446744073709551615: name the key's "
         "column with --key, or give another --key-type, or leave bad rows out with --rejects "
         "FILE",
         "'Holtsville' is no number",
         "{dir}/z.csv:2",
         "name the key's column with --key, or give another --key-type"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AnotherKeyType", "[MistakesTest]") {
  check({{"load", "{db}", "users", "{dir}/z.csv", "--key-type", "bytes"},
         2,
         "table 'users' has keys of type u64, not bytes: give --key-type u64, or load into "
         "another table",
         "has keys of type u64, not bytes",
         "table 'users'",
         "give --key-type u64, or load into another table"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AWidthOfNumbers", "[MistakesTest]") {
  check({{"load", "{db}", "users", "{dir}/numbers.tsv", "--key-width", "4"},
         2,
         "--key-width 4 does not go with keys of type u64, which have 8 bytes: leave it out",
         "does not go with keys of type u64",
         "--key-width 4",
         "leave it out"});
  check({{"load", "{db}", "zips", "{dir}/z.csv", "--key-width", "5"},
         2,
         "table 'zips' has keys of any length, and this load makes keys of 5 bytes (--key-type "
         "bytes): leave --key-type and --key-width out, or load into another table",
         "keys of any length, and this load makes keys of 5 bytes",
         "table 'zips'",
         "leave --key-type and --key-width out"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AMissingFile", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/zipcodes.csv"},
         4,
         "{dir}/zipcodes.csv: open: No such file or directory: check the path",
         "No such file",
         "{dir}/zipcodes.csv",
         "check the path"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AMissingParquetFile", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/zipcodes.parquet"},
         4,
         "{dir}/zipcodes.parquet: open: No such file or directory: check the path",
         "No such file",
         "{dir}/zipcodes.parquet",
         "check the path"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.NoSuchTable", "[MistakesTest]") {
  check({{"scan", "{db}", "zip"},
         4,
         "no table 'zip' in database {db}, which has 'zips' and 'users': did you mean 'zips'?",
         "no table 'zip'",
         "database {db}",
         "did you mean 'zips'?"});
  check({{"count", "{db}", "orders"},
         4,
         "no table 'orders' in database {db}, which has 'zips' and 'users': name one of these",
         "no table 'orders'",
         "database {db}",
         "name one of these"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.NoSuchDatabase", "[MistakesTest]") {
  check({{"count", "{dir}/dbb", "zips"},
         4,
         "no database in {dir}/dbb: check the path, or make one with stride load {dir}/dbb TABLE "
         "FILE",
         "no database",
         "{dir}/dbb",
         "make one with stride load"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.ADirectoryThatIsNoDatabase", "[MistakesTest]") {
  check({{"count", "{dir}", "zips"},
         2,
         "not a StrideDB database: the directory has other files ({dir}): give the directory of a "
         "database, or an empty or new one",
         "not a StrideDB database",
         "({dir})",
         "give the directory of a database"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AnOpenQuote", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/quote.csv", "--header"},
         3,
         "{dir}/quote.csv:3: unterminated quote, which opens in this row (column 2): " +
             close_quote + or_rejects,
         "unterminated quote",
         "{dir}/quote.csv:3",
         "close the quote"});
  check({{"load", "{db}", "t", "{dir}/closed.csv", "--header"},
         3,
         "{dir}/closed.csv:3: text after a closing quote (column 2): the quote opens in this row "
         "and closes 2 lines below: " +
             close_quote + or_rejects,
         "text after a closing quote",
         "{dir}/closed.csv:3",
         "close the quote"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AShortRow", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/short.csv", "--header"},
         3,
         "{dir}/short.csv:3: too few columns: 1, and the header has 2: check --format and "
         "--delimiter" +
             or_rejects,
         "too few columns: 1",
         "{dir}/short.csv:3",
         "check --format and --delimiter"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.MixedLineEnds", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/mixed.csv", "--header"},
         3,
         "{dir}/mixed.csv:2: mixed line ends: this one is CRLF, the ones before are LF: take both "
         "ends with --line-ends any" +
             or_rejects,
         "mixed line ends",
         "{dir}/mixed.csv:2",
         "--line-ends any"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AJsonArray", "[MistakesTest]") {
  // Its elements are rows.
  CHECK_MESSAGE(load(directory_ + "/array.json", {"--key", "id"}, "array") == 0, error_);
  CHECK(error_.find("array.json: the elements of a JSON array are rows") != std::string::npos);
  check({{"load", "{db}", "t", "{dir}/rows.jsonl", "--key", "ids"},
         3,
         "{dir}/rows.jsonl:1: no field 'ids': the object has 'id' and 'name', did you mean 'id'?" +
             or_rejects,
         "no field 'ids'",
         "{dir}/rows.jsonl:1",
         "did you mean 'id'?"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.BitsBehindAPrefix", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/bits.tsv", "--key-type", "prefix"},
         3,
         "{dir}/bits.tsv:1: '10.1.2.3/8': bits behind the prefix's 8 bits are set; without them it "
         "is 10.0.0.0/8, and load --mask-host-bits clears them: correct the row" +
             or_rejects,
         "bits behind the prefix's 8 bits are set",
         "{dir}/bits.tsv:1",
         "load --mask-host-bits clears them"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.ASumThatDoesNotFit", "[MistakesTest]") {
  check({{"load", "{db}", "sums", "{dir}/sums.tsv", "--accumulate"},
         2,
         "table 'sums', key 'a': the sum is 9223372036854775808, which does not fit i64: add less, "
         "or load into a new table with --wrap, or --numbers f64",
         "does not fit i64",
         "table 'sums', key 'a'",
         "load into a new table with --wrap, or --numbers f64"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.RowsThatDoNotFitIntoMemory", "[MistakesTest]") {
  check({{"load", "{db}", "t", "{dir}/numbers.tsv", "--max-memory", "1"},
         7,
         "the rows need more than 1 B of memory before they can be committed as a whole; give "
         "--commit-every N to commit them in parts",
         "need more than 1 B of memory",
         "before they can be committed as a whole",
         "give --commit-every N"});
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.ALockedDatabase", "[MistakesTest]") {
  auto held = FileSystem::posix().lock(database_ + "/LOCK");
  REQUIRE_OK(held);
  expect_load_refused(directory_ + "/z.csv", {}, 5, "locked by ");
  CHECK_MESSAGE(
      error_.find("(" + database_ + "/LOCK): close it there first, or wait until it is done\n") !=
          std::string::npos,
      error_);
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.AFullDisk", "[MistakesTest]") {
  MemoryFileSystem files;
  files_ = &files;
  database_ = "/db";
  REQUIRE_MESSAGE(load(directory_ + "/numbers.tsv") == 0, error_);
  std::string rows;
  for (int i = 0; i < 20000; ++i) rows += std::to_string(i) + "\tvalue\n";
  files.set_capacity(files.used_bytes() + 10000);
  expect_load_refused(file("many.tsv", rows), {}, 7, "No space left on device");
  for (const char* part : {"(/db/", "free some space on this disk"})
    CHECK_MESSAGE(error_.find(part) != std::string::npos, error_);
  CHECK(scan() == "1\tone\n2\ttwo\n");
}

// ProcessTest has what is printed where the end takes a while.
TEST_CASE_METHOD(MistakesTest, "MistakesTest.CtrlCInALoad", "[MistakesTest]") {
  Pipe input;
  MemoryFile error;
  const auto before = state();
  const pid_t pid = start({"load", database_, "t", "-"}, input.ends[0], -1, error.fd());
  CHECK(catches_interrupts(pid));
  kill(pid, SIGINT);
  CHECK(wait(pid) == 130);
  CHECK(error.text() == "stride: interrupted; what was not committed is not there: run it again\n");
  CHECK(state() == before);
}

// Only a few names are shown, and only near ones are suggested.
TEST_CASE_METHOD(MistakesTest, "MistakesTest.ManyColumns", "[MistakesTest]") {
  std::string header = "c1";
  for (int i = 2; i <= 14; ++i) header += ",column" + std::to_string(i);
  const std::string path = file("wide.csv", header + "\n");
  expect_load_refused(path, {"--header", "--key", "x"}, 2,
                      "which has 'c1', 'column2', 'column3', 'column4', 'column5', 'column6', "
                      "'column7', 'column8', 'column9', 'column10' and 4 more: name one of these");
  expect_load_refused(path, {"--header", "--key", "colunm7"}, 2, ": did you mean 'column7'?\n");
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.OtherArguments", "[MistakesTest]") {
  auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    expect_refused(arguments, 2, "stride: " + message + "\n");
  };
  refused({}, "give a command: stride help lists them");
  refused({"frobnicate"}, "no command 'frobnicate': stride help lists all commands");
  refused({"help", "scna"}, "no command 'scna': did you mean 'scan'?");
  refused({"--json", "count"},
          "stride has no option '--json' before its command: stride help lists all");
  refused({"count", database_},
          "count needs TABLE: stride count DB TABLE; stride help count has all options and "
          "examples");
  refused(
      {"get"},
      "get needs DB: stride get DB TABLE [KEY...]; stride help get has all options and examples");
  refused({"count", database_, "zips", "users"},
          "count has no use for 'users': stride count DB TABLE; stride help count has all options "
          "and examples");
  refused({"count", database_, "zips", "--wrong=1"},
          "count has no option '--wrong': stride help count lists what it has");
  refused({"scan", database_, "zips", "--limit"}, "--limit is given without its N: give --limit N");
  refused({"scan", database_, "zips", "--limit", "1", "--limit", "2"},
          "--limit is given more than once: give it once");
  refused({"scan", database_, "zips", "--format", "cvs"},
          "--format: 'cvs' is none of tsv, csv, jsonl, raw, parquet, arrow: did you mean 'csv'?");
  for (const char* text : {"many", "-1", "5000"})
    refused(
        {"get", database_, "zips", "1", "--threads", text},
        "--threads: '" + std::string(text) + "' is no number from 0 to 1024: give such a number");
  const std::string no_key =
      "'x' is no number from 0 to 18446744073709551615: keys are of type u64 here: give one, or "
      "another --key-type";
  refused({"get", database_, "users", "x"}, "key " + no_key);
  refused({"put", database_, "users", "x", "y"}, "key " + no_key);
  refused({"scan", database_, "users", "--from", "x"}, "--from: " + no_key);
  refused({"group", database_, "zips", "--prefix-bytes", "x"},
          "--prefix-bytes: 'x' is no number from 0 to 65535: give such a number");
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.JsonOfOtherForms", "[MistakesTest]") {
  expect_load_refused(directory_ + "/pretty.json", {"--key", "id"}, 3,
                      "write each object in a line, as jq -c . FILE does");
  REQUIRE_MESSAGE(load(file("lines.json", "{\"key\":1}\n")) == 0, error_);
  CHECK(scan() == "1\t{\"key\":1}\n");
}

// What is left out on purpose is not advised again.
TEST_CASE_METHOD(MistakesTest, "MistakesTest.BadRowsThatAreAllowed", "[MistakesTest]") {
  expect_load_refused(
      file("bad.tsv", "a\t1\nb\nc\n"), {"--rejects", directory_ + "/bad", "--max-rejects", "1"}, 3,
      "1 bad rows before it were let pass: check --format and --delimiter, or leave "
      "more bad rows out with --max-rejects\n");
  expect_refused({"get", database_, "users", "--keys", file("keys", "x\n")}, 3,
                 "/keys:1: 'x' is no number from 0 to 18446744073709551615: name the key's column "
                 "with --key, or give "
                 "another --key-type, or leave bad rows out with --rejects FILE\n");
}

// The empty key is a bound like others; names of columns and files are not empty.
TEST_CASE_METHOD(MistakesTest, "MistakesTest.OptionsWithNothingBehindTheSign", "[MistakesTest]") {
  const std::string rows = file("w.tsv", "a\nb\n");
  REQUIRE_MESSAGE(run({"load", database_, "words", rows}) == 0, error_);
  for (const std::vector<std::string>& from :
       {std::vector<std::string>{"--from="}, {"--from", ""}, {"--prefix="}, {"--prefix", ""}}) {
    std::vector<std::string> arguments = {"scan", database_, "words"};
    arguments.insert(arguments.end(), from.begin(), from.end());
    REQUIRE_MESSAGE(run(arguments) == 0, error_);
    CHECK(out_ == "a\t\nb\t\n");
  }
  REQUIRE(run({"scan", database_, "words", "--to="}) == 0);
  CHECK(out_.empty());
  for (const char* option : {"--key", "--rejects"}) {
    const std::string advice = std::string(option) + ": it is empty: name a ";
    expect_refused({"load", database_, "words", rows, std::string(option) + "="}, 2, advice);
    expect_refused({"load", database_, "words", rows, option, ""}, 2, advice);
  }
  expect_refused({"get", database_, "words", "--keys="}, 2, "--keys: it is empty: name a file");
}

TEST_CASE_METHOD(MistakesTest, "MistakesTest.ADatabaseWithoutTables", "[MistakesTest]") {
  const std::string empty = directory_ + "/empty";
  REQUIRE(Database::open(empty).ok());
  expect_refused({"count", empty, "t"}, 4,
                 "no table 't' in database " + empty + ", which has none: stride load " + empty +
                     " TABLE FILE makes one\n");
}

}  // namespace
}  // namespace stride::cli

// What load makes of good files.
#include <algorithm>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

class LoadTest : public CliFixture {};

TEST_CASE_METHOD(LoadTest, "LoadTest.TsvRowsComeBackInKeyOrder", "[LoadTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "b\t2\nc\t3\tthree\na\t1\n")) == 0, error_);
  CHECK(out_ == "");
  CHECK_MESSAGE(error_.find("loaded 3 rows") != std::string::npos, error_);
  CHECK(scan() == "a\t1\nb\t2\nc\t3\tthree\n");
}

TEST_CASE_METHOD(LoadTest, "LoadTest.AnEmptyFileMakesAnEmptyTable", "[LoadTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "")) == 0, error_);
  CHECK(scan() == "");
  REQUIRE(run({"count", database_, "t"}) == 0);
  CHECK(out_ == "0\n");
  REQUIRE_MESSAGE(load(file("a.csv", ""), {"--header", "--key", "id"}, "u") == 0, error_);
}

TEST_CASE_METHOD(LoadTest, "LoadTest.TheLastLineNeedsNoEnd", "[LoadTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "a\t1\nb\t2")) == 0, error_);
  CHECK(scan() == "a\t1\nb\t2\n");
}

TEST_CASE_METHOD(LoadTest, "LoadTest.LinesEndWithLfOrCrlf", "[LoadTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "a\t1\r\nb\t2\r\nc\t3")) == 0, error_);
  CHECK(scan() == "a\t1\nb\t2\nc\t3\n");
  REQUIRE_MESSAGE(load(file("b.tsv", "a\t1\r\nb\t2\n"), {"--line-ends", "any"}, "any") == 0,
                  error_);
  CHECK(scan({}, "any") == "a\t1\nb\t2\n");
  REQUIRE_MESSAGE(load(file("c.tsv", "a\t1\r\nb\t2\n"), {"--line-ends", "lf"}, "lf") == 0, error_);
  CHECK(scan({}, "lf") == "a\t1\r\nb\t2\n");
  REQUIRE_MESSAGE(load(file("d.csv", "a,1\r\n\"b\",\"2\"\r\n\"c\",3\r\n"), {}, "csv") == 0, error_);
  CHECK(scan({}, "csv") == "a\t1\nb\t2\nc\t3\n");
}

TEST_CASE_METHOD(LoadTest, "LoadTest.ColumnsByNumberAndByName", "[LoadTest]") {
  std::string rows = "x\tid\ty\n1\tb\t10\n2\ta\t20\n";
  REQUIRE_MESSAGE(load(file("a.tsv", rows), {"--header", "--key", "id"}) == 0, error_);
  CHECK(scan() == "a\t2\t20\nb\t1\t10\n");
  REQUIRE_MESSAGE(load(file("a.tsv", rows), {"--header", "--key", "2", "--value", "y,x"}, "u") == 0,
                  error_);
  CHECK(scan({}, "u") == "a\t20\t2\nb\t10\t1\n");
  REQUIRE_MESSAGE(load(file("a.txt", "1;b;10\n2;a;20\n"),
                       {"--delimiter", ";", "--key", "3", "--value", "2"}, "v") == 0,
                  error_);
  CHECK(scan({}, "v") == "10\tb\n20\ta\n");
}

TEST_CASE_METHOD(LoadTest, "LoadTest.HeadersOfSeveralFilesAreReadEach", "[LoadTest]") {
  std::string a = file("a.csv", "id,v\n1,one\n"),
              b = file("b.csv", "\xEF\xBB\xBFv,\"id\"\r\ntwo,2\r\n");
  REQUIRE_MESSAGE(
      run({"load", database_, "t", a, b, "--header", "--key", "id", "--value", "v"}) == 0, error_);
  CHECK(scan() == "1\tone\n2\ttwo\n");
}

TEST_CASE_METHOD(LoadTest, "LoadTest.QuotedFieldsOfCsv", "[LoadTest]") {
  std::string rows = "\"a,1\",\"say \"\"hi\"\"\"\nb,\"two\nlines\"\n\"c\",\"\"\nd,\n\"\",e\n";
  REQUIRE_MESSAGE(load(file("a.csv", rows), {"--allow-empty-key"}) == 0, error_);
  CHECK(scan({"--format", "csv"}) == ",e\n\"a,1\",\"say \"\"hi\"\"\"\nb,\"two\nlines\"\nc,\nd,\n");
}

// Wherever the cut falls, in a field or between two quotes, rows are the same.
TEST_CASE_METHOD(LoadTest, "LoadTest.QuotedLineEndsAcrossBlocks", "[LoadTest]") {
  std::string rows, expected;
  for (int i = 100; i < 160; ++i) {
    std::string n = std::to_string(i);
    rows += n + ",\"" + std::string(i % 7, '\n') + "\"\"" + n + "\"\",\n\",x\n";
    expected += n + ",\"" + std::string(i % 7, '\n') + "\"\"" + n + "\"\",\n\tx\"\n";
  }
  std::string path = file("a.csv", rows);
  for (int bytes = 1; bytes < 40; ++bytes) {
    std::string table = "t" + std::to_string(bytes);
    REQUIRE_MESSAGE(
        load(path, {"--block-bytes", std::to_string(bytes), "--threads", "3"}, table) == 0, error_);
    CHECK_MESSAGE(scan({"--format", "csv"}, table) == expected, bytes);
  }
}

TEST_CASE_METHOD(LoadTest, "LoadTest.JsonLines", "[LoadTest]") {
  std::string rows =
      "{\"key\":\"a\",\"v\":[1,{\"x\":null}]}\n\n"
      "{ \"v\" : -1.5e3 , \"key\" : \"\\u00e4\\n\\ud83d\\ude00\" }\r\n"
      "{\"\\u006bey\":7,\"v\":\"t\\tb\",\"key2\":0}";
  REQUIRE_MESSAGE(load(file("a.jsonl", rows), {"--value", "v"}) == 0, error_);
  CHECK(scan() == "7\tt\tb\na\t[1,{\"x\":null}]\n\u00e4\n\U0001F600\t-1.5e3\n");
  REQUIRE(load(file("b.jsonl", "{\"id\":5,\"b\":true}\n"),
               {"--key", "id", "--key-type", "u64", "--schema", "none"}, "u") == 0);
  CHECK(scan({}, "u") == "5\t{\"id\":5,\"b\":true}\n");
}

TEST_CASE_METHOD(LoadTest, "LoadTest.JsonFromScanIsLoadedAgain", "[LoadTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "a\"\\\t1\x01\nb\t\u00fc\n")) == 0, error_);
  std::string rows = scan({"--format", "jsonl"});
  CHECK(rows ==
        "{\"key\":\"a\\\"\\\\\",\"value\":\"1\\u0001\"}\n{\"key\":\"b\",\"value\":\"\u00fc\"}\n");
  REQUIRE_MESSAGE(load(file("b.jsonl", rows), {"--value", "value"}, "u") == 0, error_);
  CHECK(scan({}, "u") == scan());
}

TEST_CASE_METHOD(LoadTest, "LoadTest.RawRecords", "[LoadTest]") {
  std::string rows("\x02\0\0\0\x03\0\0\0kkvvv\x01\0\0\0\0\0\0\0\xff", 22);
  std::string path = file("a.raw", rows);
  REQUIRE_MESSAGE(load(path, {"--format", "raw", "--block-bytes", "9"}) == 0, error_);
  CHECK(scan({"--key-type", "hex"}) == "6b6b\tvvv\nff\t\n");
  CHECK(scan({"--format", "raw"}) == rows);
  REQUIRE_MESSAGE(
      load(file("b.raw", "aa111bb222"),
           {"--format", "raw", "--key-bytes", "2", "--value-bytes", "3", "--key-type", "hex"},
           "fixed") == 0,
      error_);
  CHECK(scan({}, "fixed") == "6161\t111\n6262\t222\n");
}

TEST_CASE_METHOD(LoadTest, "LoadTest.KeyTypes", "[LoadTest]") {
  REQUIRE_MESSAGE(
      load(file("u.tsv",
                "18446744073709551615\tmax\n0\tzero\n00256\tpadded\n12345678901234567\tlong\n"),
           {"--key-type", "u64"}, "u") == 0,
      error_);
  CHECK(scan({}, "u") ==
        "0\tzero\n256\tpadded\n12345678901234567\tlong\n18446744073709551615\tmax\n");
  CHECK(scan({"--key-type", "hex", "--limit", "2"}, "u") ==
        "0000000000000000\tzero\n0000000000000100\tpadded\n");
  REQUIRE_MESSAGE(
      load(file("i.tsv", "-9223372036854775808\tmin\n9223372036854775807\tmax\n-1\tm\n1\tp\n"),
           {"--key-type", "i64"}, "i") == 0,
      error_);
  CHECK(scan({}, "i") == "-9223372036854775808\tmin\n-1\tm\n1\tp\n9223372036854775807\tmax\n");
  CHECK(scan({"--from", "-1", "--to", "1"}, "i") == "-1\tm\n");
  REQUIRE_MESSAGE(
      load(file("h.tsv", "00\tzero\nfF\tff\n00FF\tb\n"), {"--key-type", "hex"}, "h") == 0, error_);
  CHECK(scan({}, "h") == "00\tzero\n00ff\tb\nff\tff\n");
  CHECK(scan({"--prefix", "00"}, "h") == "00\tzero\n00ff\tb\n");
  REQUIRE_MESSAGE(load(file("p.tsv", "10.0.0.1\ta\n2001:db8::1\tb\n10.0.0.0\tc\n"),
                       {"--key-type", "ip"}, "p") == 0,
                  error_);
  CHECK(scan({}, "p") == "10.0.0.0\tc\n10.0.0.1\ta\n2001:db8::1\tb\n");
  REQUIRE_MESSAGE(load(file("w.tsv", "abcd\t1\n"), {"--key-width", "4"}, "w") == 0, error_);
  REQUIRE_MESSAGE(run({"tables", database_}) == 0, error_);
  CHECK(out_.substr(0, 4) == "u\tu6");
  CHECK_MESSAGE(out_.find("\np\tip\t0\t3\t") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("\nw\tbytes\t4\t1\t") != std::string::npos, out_);
}

TEST_CASE_METHOD(LoadTest, "LoadTest.PackedFilesAndTheStandardInput", "[LoadTest]") {
  std::string rows;
  for (int i = 1000; i < 3000; ++i)
    rows += std::to_string(i) + "\tvalue " + std::to_string(i) + "\n";
  REQUIRE_MESSAGE(load(file("a.tsv.gz", gzip(rows)), {}, "gz") == 0, error_);
  CHECK(scan({}, "gz") == rows);
  // Two members, and two frames, one after the other.
  size_t half = rows.find("1500");
  REQUIRE_MESSAGE(
      load(file("b", gzip(rows.substr(0, half)) + gzip(rows.substr(half))), {}, "gz2") == 0,
      error_);
  CHECK(scan({}, "gz2") == rows);
  REQUIRE_MESSAGE(
      load(file("c.tsv.zst", zstd(rows.substr(0, half)) + zstd(rows.substr(half))), {}, "zst") == 0,
      error_);
  CHECK(scan({}, "zst") == rows);
  REQUIRE_MESSAGE(run({"load", database_, "in", "-"}, zstd(rows)) == 0, error_);
  CHECK(scan({}, "in") == rows);
  REQUIRE_MESSAGE(
      load(file("d.tsv", gzip("a\t1\n") + "\t\n"), {"--compressed", "none"}, "plain") == 0, error_);
}

TEST_CASE_METHOD(LoadTest, "LoadTest.OnDuplicate", "[LoadTest]") {
  std::string path = file("a.tsv", "a\t1\nb\t1\na\t2\nc\t1\na\t3\n"),
              again = file("b.tsv", "d\t1\nb\t2\n");
  for (const char* bytes : {"1", "9", "1000"}) {
    std::string last = std::string("last") + bytes, first = std::string("first") + bytes;
    REQUIRE_MESSAGE(load(path, {"--block-bytes", bytes, "--on-duplicate", "last"}, last) == 0,
                    error_);
    CHECK(scan({}, last) == "a\t3\nb\t1\nc\t1\n");
    REQUIRE_MESSAGE(load(again, {}, last) == 0, error_);
    CHECK(scan({}, last) == "a\t3\nb\t2\nc\t1\nd\t1\n");
    REQUIRE_MESSAGE(load(path, {"--block-bytes", bytes, "--on-duplicate", "first"}, first) == 0,
                    error_);
    CHECK(scan({}, first) == "a\t1\nb\t1\nc\t1\n");
    REQUIRE_MESSAGE(load(again, {"--on-duplicate", "first", "--json"}, first) == 0, error_);
    CHECK_MESSAGE(out_.find("\"skipped\":1") != std::string::npos, out_);
    CHECK(scan({}, first) == "a\t1\nb\t1\nc\t1\nd\t1\n");
    expect_refused(
        {"load", database_, "error", path, "--block-bytes", bytes, "--on-duplicate", "error"}, 3,
        path + ":3: key 'a' of table 'error' is in " + path + ":1 already");
    CHECK(run({"count", database_, "error"}) == 4);
  }
  REQUIRE_MESSAGE(load(again, {"--on-duplicate", "error"}, "e") == 0, error_);
  auto before = scan({}, "e");
  CHECK(load(file("c.tsv", "c\t1\nb\t3\n"), {"--on-duplicate", "error"}, "e") == 3);
  CHECK_MESSAGE(error_.find("c.tsv:2: key 'b' is in table 'e' already") != std::string::npos,
                error_);
  CHECK(scan({}, "e") == before);
}

TEST_CASE_METHOD(LoadTest, "LoadTest.RejectsAreWrittenDown", "[LoadTest]") {
  std::string path = file("a.tsv", "1\ta\nx\tb\n2\tc\n\n3\n4\td\n"), bad = directory_ + "/bad.tsv";
  REQUIRE_MESSAGE(
      load(path, {"--key-type", "u64", "--rejects", bad, "--block-bytes", "5", "--json"}) == 0,
      error_);
  CHECK_MESSAGE(out_.find("\"rejected\":3,\"rows\":3") != std::string::npos, out_);
  CHECK(scan() == "1\ta\n2\tc\n4\td\n");
  CHECK(read(bad) == path + "\t2\t'x' is no number from 0 to 18446744073709551615\tx\tb\n" + path +
                         "\t4\tempty line\t\n" + path +
                         "\t5\ttoo few columns: 1, and 2 are needed\t3\n");
  REQUIRE_MESSAGE(load(path, {"--key-type", "u64", "--max-rejects", "3"}, "u") == 0, error_);
  expect_refused({"load", database_, "v", path, "--key-type", "u64", "--max-rejects", "2"}, 3,
                 path + ":5: ");
}

TEST_CASE_METHOD(LoadTest, "LoadTest.CommitEveryAndResume", "[LoadTest]") {
  std::string good, all;
  for (int i = 1000; i < 1400; ++i) all += std::to_string(i) + "\tv\n";
  good = all;
  std::string broken = all;
  broken.replace(broken.find("1300"), 4, "x300");
  for (bool packed : {false, true}) {
    std::string table = packed ? "packed" : "plain";
    auto put = [&](const std::string& rows) { return file("a.tsv", packed ? gzip(rows) : rows); };
    std::vector<std::string> options = {"--key-type", "u64",           "--commit-every",
                                        "100",        "--block-bytes", "64"};
    CHECK(load(put(broken), options, table) == 3);
    CHECK_MESSAGE(error_.find("a.tsv:301: 'x300'") != std::string::npos, error_);
    CHECK_MESSAGE(error_.find("rows are committed; --resume") != std::string::npos, error_);
    REQUIRE(run({"count", database_, table}) == 0);
    int count = std::stoi(out_);
    CHECK(count >= 200);
    CHECK(count <= 300);
    options.push_back("--resume");
    // The file is another one now.
    auto times = std::filesystem::last_write_time(directory_ + "/a.tsv");
    put(good + "9\tv\n");
    CHECK(load(directory_ + "/a.tsv", options, table) == 2);
    CHECK_MESSAGE(error_.find("a file has changed") != std::string::npos, error_);
    // The same size and time: taken to be the same.
    put(good);
    if (!packed) {
      std::filesystem::last_write_time(directory_ + "/a.tsv", times);
      REQUIRE_MESSAGE(load(directory_ + "/a.tsv", options, table) == 0, error_);
      CHECK_MESSAGE(error_.find("starting at the beginning") == std::string::npos, error_);
    } else {
      options.pop_back();
      REQUIRE_MESSAGE(load(directory_ + "/a.tsv", options, table) == 0, error_);
      options.push_back("--resume");
    }
    CHECK(scan({}, table) == all);
    // Done: nothing is loaded again, as counters must not be; but for another file all is new.
    REQUIRE_MESSAGE(load(directory_ + "/a.tsv", options, table) == 0, error_);
    CHECK_MESSAGE(error_.find("had come to its end") != std::string::npos, error_);
    CHECK_MESSAGE(error_.find("loaded 0 rows") != std::string::npos, error_);
    CHECK(scan({}, table) == all);
    put(good + "9\tw\n");
    REQUIRE_MESSAGE(load(directory_ + "/a.tsv", options, table) == 0, error_);
    CHECK_MESSAGE(error_.find("starting at the beginning") != std::string::npos, error_);
    CHECK(scan({}, table) == "9\tw\n" + all);
  }
}

// What was committed is not read again: the rows before have been spoilt.
TEST_CASE_METHOD(LoadTest, "LoadTest.ResumeStartsBehindTheLastCommit", "[LoadTest]") {
  std::string rows = "id\tv\n";
  for (int i = 1000; i < 1400; ++i) rows += std::to_string(i) + "\tv\n";
  std::string broken = rows;
  broken.replace(broken.find("1350"), 4, "x350");
  std::string path = file("a.tsv", broken), bad = directory_ + "/bad";
  auto time = std::filesystem::last_write_time(path);
  std::vector<std::string> options = {"--header", "--key",          "id", "--key-type",
                                      "u64",      "--commit-every", "50", "--block-bytes",
                                      "100",      "--max-rejects",  "0",  "--rejects",
                                      bad};
  CHECK(load(path, options) == 3);
  CHECK_MESSAGE(error_.find("a.tsv:352: ") != std::string::npos, error_);
  REQUIRE(run({"count", database_, "t"}) == 0);
  const int before = std::stoi(out_);
  std::string spoilt = rows;
  spoilt.replace(spoilt.find("1000"), 4, "x000");
  spoilt.replace(spoilt.find("1399"), 4, "x399");
  file("a.tsv", spoilt);
  std::filesystem::last_write_time(path, time);
  options.push_back("--resume");
  options[10] = "1";
  REQUIRE_MESSAGE(load(path, options) == 0, error_);
  const std::string now = std::to_string(399 - before), then = std::to_string(before);
  CHECK_MESSAGE(error_.find("loaded " + now + " rows") != std::string::npos, error_);
  CHECK_MESSAGE(error_.find(": " + now + " new keys, behind " + then + " rows that were there") !=
                    std::string::npos,
                error_);
  CHECK(read(bad).substr(0, path.size() + 5) == path + "\t401\t");
  REQUIRE(run({"count", database_, "t"}) == 0);
  CHECK(out_ == "399\n");
}

TEST_CASE_METHOD(LoadTest, "LoadTest.DryRunWritesNothing", "[LoadTest]") {
  REQUIRE_MESSAGE(load(file("a.tsv", "a\t1\nb\t2\n"), {"--dry-run", "--json"}) == 0, error_);
  CHECK_MESSAGE(out_.find("\"rows\":2") != std::string::npos, out_);
  CHECK_FALSE(std::filesystem::exists(database_));
}

// Random rows in random pieces, against a map.
TEST_CASE_METHOD(LoadTest, "LoadTest.RandomRowsAreThoseOfAMap", "[LoadTest]") {
  std::mt19937_64 random(test::seed());
  std::map<std::string, std::string> last, first;
  for (int round = 0; round < 4; ++round) {
    std::string tsv, csv;
    for (int i = 0; i < 3000; ++i) {
      std::string key = std::to_string(random() % 2000), value;
      for (uint64_t n = random() % 60; n > 0; --n) value += "abc \"',;\\"[random() % 10];
      tsv += key + "\t" + value + "\n";
      std::string quoted;
      for (char c : value) quoted += c == '"' ? "\"\"" : std::string(1, c);
      csv += (random() % 2 ? key : "\"" + key + "\"") + ",\"" + quoted + "\"\n";
      last[key] = value;
      first.emplace(key, value);
    }
    std::string block = std::to_string(1 + random() % 20000);
    std::vector<std::string> options = {"--block-bytes", block, "--threads",
                                        std::to_string(1 + random() % 4)};
    options.insert(options.end(), {"--on-duplicate", "last"});
    REQUIRE_MESSAGE(load(file("a.tsv", tsv), options, "last") == 0, error_);
    REQUIRE_MESSAGE(load(file("a.csv", csv), options, "csv") == 0, error_);
    options.back() = "first";
    REQUIRE_MESSAGE(load(file("a.tsv.gz", gzip(tsv)), options, "first") == 0, error_);
    options.insert(options.end(), {"--commit-every", "700"});
    REQUIRE_MESSAGE(load(file("a.csv.zst", zstd(csv)), options, "parts") == 0, error_);
    auto text = [](const std::map<std::string, std::string>& map) {
      std::string all;
      for (const auto& [key, value] : map) all += key + "\t" + value + "\n";
      return all;
    };
    CHECK(scan({}, "last") == text(last));
    CHECK(scan({}, "csv") == text(last));
    CHECK(scan({}, "first") == text(first));
    CHECK(scan({}, "parts") == text(first));
    REQUIRE(run({"count", database_, "parts"}) == 0);
    CHECK(out_ == std::to_string(first.size()) + "\n");
  }
}

}  // namespace
}  // namespace stride::cli

// What load makes of good files.
#include <algorithm>
#include <random>

#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

class LoadTest : public CliFixture {};

TEST_F(LoadTest, TsvRowsComeBackInKeyOrder) {
  ASSERT_EQ(load(file("a.tsv", "b\t2\nc\t3\tthree\na\t1\n")), 0) << error_;
  EXPECT_EQ(out_, "");
  EXPECT_NE(error_.find("loaded 3 rows"), std::string::npos) << error_;
  EXPECT_EQ(scan(), "a\t1\nb\t2\nc\t3\tthree\n");
}

TEST_F(LoadTest, AnEmptyFileMakesAnEmptyTable) {
  ASSERT_EQ(load(file("a.tsv", "")), 0) << error_;
  EXPECT_EQ(scan(), "");
  ASSERT_EQ(run({"count", database_, "t"}), 0);
  EXPECT_EQ(out_, "0\n");
  ASSERT_EQ(load(file("a.csv", ""), {"--header", "--key", "id"}, "u"), 0) << error_;
}

TEST_F(LoadTest, TheLastLineNeedsNoEnd) {
  ASSERT_EQ(load(file("a.tsv", "a\t1\nb\t2")), 0) << error_;
  EXPECT_EQ(scan(), "a\t1\nb\t2\n");
}

TEST_F(LoadTest, LinesEndWithLfOrCrlf) {
  ASSERT_EQ(load(file("a.tsv", "a\t1\r\nb\t2\r\nc\t3")), 0) << error_;
  EXPECT_EQ(scan(), "a\t1\nb\t2\nc\t3\n");
  ASSERT_EQ(load(file("b.tsv", "a\t1\r\nb\t2\n"), {"--line-ends", "any"}, "any"), 0) << error_;
  EXPECT_EQ(scan({}, "any"), "a\t1\nb\t2\n");
  ASSERT_EQ(load(file("c.tsv", "a\t1\r\nb\t2\n"), {"--line-ends", "lf"}, "lf"), 0) << error_;
  EXPECT_EQ(scan({}, "lf"), "a\t1\r\nb\t2\n");
  ASSERT_EQ(load(file("d.csv", "a,1\r\n\"b\",\"2\"\r\n\"c\",3\r\n"), {}, "csv"), 0) << error_;
  EXPECT_EQ(scan({}, "csv"), "a\t1\nb\t2\nc\t3\n");
}

TEST_F(LoadTest, ColumnsByNumberAndByName) {
  std::string rows = "x\tid\ty\n1\tb\t10\n2\ta\t20\n";
  ASSERT_EQ(load(file("a.tsv", rows), {"--header", "--key", "id"}), 0) << error_;
  EXPECT_EQ(scan(), "a\t2\t20\nb\t1\t10\n");
  ASSERT_EQ(load(file("a.tsv", rows), {"--header", "--key", "2", "--value", "y,x"}, "u"), 0)
      << error_;
  EXPECT_EQ(scan({}, "u"), "a\t20\t2\nb\t10\t1\n");
  ASSERT_EQ(load(file("a.txt", "1;b;10\n2;a;20\n"),
                 {"--delimiter", ";", "--key", "3", "--value", "2"}, "v"),
            0)
      << error_;
  EXPECT_EQ(scan({}, "v"), "10\tb\n20\ta\n");
}

TEST_F(LoadTest, HeadersOfSeveralFilesAreReadEach) {
  std::string a = file("a.csv", "id,v\n1,one\n"),
              b = file("b.csv", "\xEF\xBB\xBFv,\"id\"\r\ntwo,2\r\n");
  ASSERT_EQ(run({"load", database_, "t", a, b, "--header", "--key", "id", "--value", "v"}), 0)
      << error_;
  EXPECT_EQ(scan(), "1\tone\n2\ttwo\n");
}

TEST_F(LoadTest, QuotedFieldsOfCsv) {
  std::string rows = "\"a,1\",\"say \"\"hi\"\"\"\nb,\"two\nlines\"\n\"c\",\"\"\nd,\n\"\",e\n";
  ASSERT_EQ(load(file("a.csv", rows), {"--allow-empty-key"}), 0) << error_;
  EXPECT_EQ(scan({"--format", "csv"}),
            ",e\n\"a,1\",\"say \"\"hi\"\"\"\nb,\"two\nlines\"\nc,\nd,\n");
}

// Wherever the cut falls, in a field or between two quotes, rows are the same.
TEST_F(LoadTest, QuotedLineEndsAcrossBlocks) {
  std::string rows, expected;
  for (int i = 100; i < 160; ++i) {
    std::string n = std::to_string(i);
    rows += n + ",\"" + std::string(i % 7, '\n') + "\"\"" + n + "\"\",\n\",x\n";
    expected += n + ",\"" + std::string(i % 7, '\n') + "\"\"" + n + "\"\",\n\tx\"\n";
  }
  std::string path = file("a.csv", rows);
  for (int bytes = 1; bytes < 40; ++bytes) {
    std::string table = "t" + std::to_string(bytes);
    ASSERT_EQ(load(path, {"--block-bytes", std::to_string(bytes), "--threads", "3"}, table), 0)
        << error_;
    EXPECT_EQ(scan({"--format", "csv"}, table), expected) << bytes;
  }
}

TEST_F(LoadTest, JsonLines) {
  std::string rows =
      "{\"key\":\"a\",\"v\":[1,{\"x\":null}]}\n\n"
      "{ \"v\" : -1.5e3 , \"key\" : \"\\u00e4\\n\\ud83d\\ude00\" }\r\n"
      "{\"\\u006bey\":7,\"v\":\"t\\tb\",\"key2\":0}";
  ASSERT_EQ(load(file("a.jsonl", rows), {"--value", "v"}), 0) << error_;
  EXPECT_EQ(scan(), "7\tt\tb\na\t[1,{\"x\":null}]\n\u00e4\n\U0001F600\t-1.5e3\n");
  ASSERT_EQ(
      load(file("b.jsonl", "{\"id\":5,\"b\":true}\n"), {"--key", "id", "--key-type", "u64"}, "u"),
      0);
  EXPECT_EQ(scan({}, "u"), "5\t{\"id\":5,\"b\":true}\n");
}

TEST_F(LoadTest, JsonFromScanIsLoadedAgain) {
  ASSERT_EQ(load(file("a.tsv", "a\"\\\t1\x01\nb\t\u00fc\n")), 0) << error_;
  std::string rows = scan({"--format", "jsonl"});
  EXPECT_EQ(
      rows,
      "{\"key\":\"a\\\"\\\\\",\"value\":\"1\\u0001\"}\n{\"key\":\"b\",\"value\":\"\u00fc\"}\n");
  ASSERT_EQ(load(file("b.jsonl", rows), {"--value", "value"}, "u"), 0) << error_;
  EXPECT_EQ(scan({}, "u"), scan());
}

TEST_F(LoadTest, RawRecords) {
  std::string rows("\x02\0\0\0\x03\0\0\0kkvvv\x01\0\0\0\0\0\0\0\xff", 22);
  std::string path = file("a.raw", rows);
  ASSERT_EQ(load(path, {"--format", "raw", "--block-bytes", "9"}), 0) << error_;
  EXPECT_EQ(scan({"--key-type", "hex"}), "6b6b\tvvv\nff\t\n");
  EXPECT_EQ(scan({"--format", "raw"}), rows);
  ASSERT_EQ(load(file("b.raw", "aa111bb222"),
                 {"--format", "raw", "--key-bytes", "2", "--value-bytes", "3", "--key-type", "hex"},
                 "fixed"),
            0)
      << error_;
  EXPECT_EQ(scan({}, "fixed"), "6161\t111\n6262\t222\n");
}

TEST_F(LoadTest, KeyTypes) {
  ASSERT_EQ(
      load(file("u.tsv",
                "18446744073709551615\tmax\n0\tzero\n00256\tpadded\n12345678901234567\tlong\n"),
           {"--key-type", "u64"}, "u"),
      0)
      << error_;
  EXPECT_EQ(scan({}, "u"),
            "0\tzero\n256\tpadded\n12345678901234567\tlong\n18446744073709551615\tmax\n");
  EXPECT_EQ(scan({"--key-type", "hex", "--limit", "2"}, "u"),
            "0000000000000000\tzero\n0000000000000100\tpadded\n");
  ASSERT_EQ(
      load(file("i.tsv", "-9223372036854775808\tmin\n9223372036854775807\tmax\n-1\tm\n1\tp\n"),
           {"--key-type", "i64"}, "i"),
      0)
      << error_;
  EXPECT_EQ(scan({}, "i"), "-9223372036854775808\tmin\n-1\tm\n1\tp\n9223372036854775807\tmax\n");
  EXPECT_EQ(scan({"--from", "-1", "--to", "1"}, "i"), "-1\tm\n");
  ASSERT_EQ(load(file("h.tsv", "00\tzero\nfF\tff\n00FF\tb\n"), {"--key-type", "hex"}, "h"), 0)
      << error_;
  EXPECT_EQ(scan({}, "h"), "00\tzero\n00ff\tb\nff\tff\n");
  EXPECT_EQ(scan({"--prefix", "00"}, "h"), "00\tzero\n00ff\tb\n");
  ASSERT_EQ(
      load(file("p.tsv", "10.0.0.1\ta\n2001:db8::1\tb\n10.0.0.0\tc\n"), {"--key-type", "ip"}, "p"),
      0)
      << error_;
  EXPECT_EQ(scan({}, "p"), "10.0.0.0\tc\n10.0.0.1\ta\n2001:db8::1\tb\n");
  ASSERT_EQ(load(file("w.tsv", "abcd\t1\n"), {"--key-width", "4"}, "w"), 0) << error_;
  ASSERT_EQ(run({"tables", database_}), 0) << error_;
  EXPECT_EQ(out_.substr(0, 4), "u\tu6");
  EXPECT_NE(out_.find("\np\tip\t0\t3\t"), std::string::npos) << out_;
  EXPECT_NE(out_.find("\nw\tbytes\t4\t1\t"), std::string::npos) << out_;
}

TEST_F(LoadTest, PackedFilesAndTheStandardInput) {
  std::string rows;
  for (int i = 1000; i < 3000; ++i)
    rows += std::to_string(i) + "\tvalue " + std::to_string(i) + "\n";
  ASSERT_EQ(load(file("a.tsv.gz", gzip(rows)), {}, "gz"), 0) << error_;
  EXPECT_EQ(scan({}, "gz"), rows);
  // Two members, and two frames, one after the other.
  size_t half = rows.find("1500");
  ASSERT_EQ(load(file("b", gzip(rows.substr(0, half)) + gzip(rows.substr(half))), {}, "gz2"), 0)
      << error_;
  EXPECT_EQ(scan({}, "gz2"), rows);
  ASSERT_EQ(
      load(file("c.tsv.zst", zstd(rows.substr(0, half)) + zstd(rows.substr(half))), {}, "zst"), 0)
      << error_;
  EXPECT_EQ(scan({}, "zst"), rows);
  ASSERT_EQ(run({"load", database_, "in", "-"}, zstd(rows)), 0) << error_;
  EXPECT_EQ(scan({}, "in"), rows);
  ASSERT_EQ(load(file("d.tsv", gzip("a\t1\n") + "\t\n"), {"--compressed", "none"}, "plain"), 0)
      << error_;
}

TEST_F(LoadTest, OnDuplicate) {
  std::string path = file("a.tsv", "a\t1\nb\t1\na\t2\nc\t1\na\t3\n"),
              again = file("b.tsv", "d\t1\nb\t2\n");
  for (const char* bytes : {"1", "9", "1000"}) {
    std::string last = std::string("last") + bytes, first = std::string("first") + bytes;
    ASSERT_EQ(load(path, {"--block-bytes", bytes}, last), 0) << error_;
    EXPECT_EQ(scan({}, last), "a\t3\nb\t1\nc\t1\n");
    ASSERT_EQ(load(again, {}, last), 0) << error_;
    EXPECT_EQ(scan({}, last), "a\t3\nb\t2\nc\t1\nd\t1\n");
    ASSERT_EQ(load(path, {"--block-bytes", bytes, "--on-duplicate", "first"}, first), 0) << error_;
    EXPECT_EQ(scan({}, first), "a\t1\nb\t1\nc\t1\n");
    ASSERT_EQ(load(again, {"--on-duplicate", "first", "--json"}, first), 0) << error_;
    EXPECT_NE(out_.find("\"skipped\":1"), std::string::npos) << out_;
    EXPECT_EQ(scan({}, first), "a\t1\nb\t1\nc\t1\nd\t1\n");
    expect_refused(
        {"load", database_, "error", path, "--block-bytes", bytes, "--on-duplicate", "error"}, 3,
        path + ":3: key 'a' of table 'error' is in " + path + ":1 already");
    EXPECT_EQ(run({"count", database_, "error"}), 4);
  }
  ASSERT_EQ(load(again, {"--on-duplicate", "error"}, "e"), 0) << error_;
  auto before = scan({}, "e");
  EXPECT_EQ(load(file("c.tsv", "c\t1\nb\t3\n"), {"--on-duplicate", "error"}, "e"), 3);
  EXPECT_NE(error_.find("c.tsv:2: key 'b' is in table 'e' already"), std::string::npos) << error_;
  EXPECT_EQ(scan({}, "e"), before);
}

TEST_F(LoadTest, RejectsAreWrittenDown) {
  std::string path = file("a.tsv", "1\ta\nx\tb\n2\tc\n\n3\n4\td\n"), bad = directory_ + "/bad.tsv";
  ASSERT_EQ(load(path, {"--key-type", "u64", "--rejects", bad, "--block-bytes", "5", "--json"}), 0)
      << error_;
  EXPECT_NE(out_.find("\"rejected\":3,\"rows\":3"), std::string::npos) << out_;
  EXPECT_EQ(scan(), "1\ta\n2\tc\n4\td\n");
  EXPECT_EQ(read(bad), path + "\t2\t'x' is no number from 0 to 18446744073709551615\tx\tb\n" +
                           path + "\t4\tempty line\t\n" + path +
                           "\t5\ttoo few columns: 1, and 2 are needed\t3\n");
  ASSERT_EQ(load(path, {"--key-type", "u64", "--max-rejects", "3"}, "u"), 0) << error_;
  expect_refused({"load", database_, "v", path, "--key-type", "u64", "--max-rejects", "2"}, 3,
                 path + ":5: ");
}

TEST_F(LoadTest, CommitEveryAndResume) {
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
    EXPECT_EQ(load(put(broken), options, table), 3);
    EXPECT_NE(error_.find("a.tsv:301: 'x300'"), std::string::npos) << error_;
    EXPECT_NE(error_.find("rows are committed; --resume"), std::string::npos) << error_;
    ASSERT_EQ(run({"count", database_, table}), 0);
    int count = std::stoi(out_);
    EXPECT_GE(count, 200);
    EXPECT_LE(count, 300);
    options.push_back("--resume");
    // The file is another one now.
    auto times = std::filesystem::last_write_time(directory_ + "/a.tsv");
    put(good + "9\tv\n");
    EXPECT_EQ(load(directory_ + "/a.tsv", options, table), 2);
    EXPECT_NE(error_.find("a file has changed"), std::string::npos) << error_;
    // The same size and time: taken to be the same.
    put(good);
    if (!packed) {
      std::filesystem::last_write_time(directory_ + "/a.tsv", times);
      ASSERT_EQ(load(directory_ + "/a.tsv", options, table), 0) << error_;
      EXPECT_EQ(error_.find("starting at the beginning"), std::string::npos) << error_;
    } else {
      options.pop_back();
      ASSERT_EQ(load(directory_ + "/a.tsv", options, table), 0) << error_;
      options.push_back("--resume");
    }
    EXPECT_EQ(scan({}, table), all);
    // Done: there is nothing to resume.
    ASSERT_EQ(load(directory_ + "/a.tsv", options, table), 0) << error_;
    EXPECT_NE(error_.find("starting at the beginning"), std::string::npos) << error_;
  }
}

// What was committed is not read again: the rows before have been spoilt.
TEST_F(LoadTest, ResumeStartsBehindTheLastCommit) {
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
  EXPECT_EQ(load(path, options), 3);
  EXPECT_NE(error_.find("a.tsv:352: "), std::string::npos) << error_;
  std::string spoilt = rows;
  spoilt.replace(spoilt.find("1000"), 4, "x000");
  spoilt.replace(spoilt.find("1399"), 4, "x399");
  file("a.tsv", spoilt);
  std::filesystem::last_write_time(path, time);
  options.push_back("--resume");
  options[10] = "1";
  ASSERT_EQ(load(path, options), 0) << error_;
  EXPECT_EQ(read(bad).substr(0, path.size() + 5), path + "\t401\t");
  ASSERT_EQ(run({"count", database_, "t"}), 0);
  EXPECT_EQ(out_, "399\n");
}

TEST_F(LoadTest, DryRunWritesNothing) {
  ASSERT_EQ(load(file("a.tsv", "a\t1\nb\t2\n"), {"--dry-run", "--json"}), 0) << error_;
  EXPECT_NE(out_.find("\"rows\":2"), std::string::npos) << out_;
  EXPECT_FALSE(std::filesystem::exists(database_));
}

// Random rows in random pieces, against a map.
TEST_F(LoadTest, RandomRowsAreThoseOfAMap) {
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
    ASSERT_EQ(load(file("a.tsv", tsv), options, "last"), 0) << error_;
    ASSERT_EQ(load(file("a.csv", csv), options, "csv"), 0) << error_;
    options.insert(options.end(), {"--on-duplicate", "first"});
    ASSERT_EQ(load(file("a.tsv.gz", gzip(tsv)), options, "first"), 0) << error_;
    options.insert(options.end(), {"--commit-every", "700"});
    ASSERT_EQ(load(file("a.csv.zst", zstd(csv)), options, "parts"), 0) << error_;
    auto text = [](const std::map<std::string, std::string>& map) {
      std::string all;
      for (const auto& [key, value] : map) all += key + "\t" + value + "\n";
      return all;
    };
    EXPECT_EQ(scan({}, "last"), text(last));
    EXPECT_EQ(scan({}, "csv"), text(last));
    EXPECT_EQ(scan({}, "first"), text(first));
    EXPECT_EQ(scan({}, "parts"), text(first));
    ASSERT_EQ(run({"count", database_, "parts"}), 0);
    EXPECT_EQ(out_, std::to_string(first.size()) + "\n");
  }
}

}  // namespace
}  // namespace stride::cli

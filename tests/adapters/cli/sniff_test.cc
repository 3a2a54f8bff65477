// What files tell that no option says: headers, what lies between columns, arrays of JSON.
#include "adapters/cli/input/sniff.h"

#include "adapters/cli/input/json_array.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class SniffTest : public CliFixture {};

Sniffed sniff_csv(const std::string& text, RowOptions options = {}) {
  options.format = Format::csv;
  options.delimiter = ',';
  options.sniffs_header = options.sniffs_delimiter = true;
  return sniff(text, /*whole=*/true, options);
}

TEST_CASE("SniffTest.Headers", "[SniffTest]") {
  auto header = [](const std::string& text, RowOptions options = {}) {
    return sniff_csv(text, std::move(options)).header;
  };
  CHECK(header("zip,city,n\n00501,Bonn,1\n"));
  CHECK(header("zip,day\n1,2020-01-01\n"));
  CHECK(header("\"a\nb\",\"c,d\"\nx,1.5\ny,\n"));
  CHECK(header("a,b\r\nx,true\r\n"));
  CHECK_FALSE(header("zip,city\nx,Bonn\n"));  // all are texts
  CHECK_FALSE(header("a,b\n"));               // one row
  CHECK_FALSE(header("a,2\nb,3\n"));          // a number
  CHECK_FALSE(header("a,a\nb,3\n"));          // two of one name
  CHECK_FALSE(header("a,\nb,3\n"));           // one without a name
  CHECK_FALSE(header("a,b\nx,1\ny,z\n"));     // of no type in the last row
  CHECK_FALSE(header("n\n1\n2\n"));           // one column
  CHECK_FALSE(header(""));
  CHECK(header("id,v\n1,x\n", {.key_form = KeyType::u64}));
  CHECK(header("id\n1\n2\n", {.key_form = KeyType::u64}));
  CHECK_FALSE(header("id,v\nx,y\n", {.key_form = KeyType::u64}));
  CHECK_FALSE(header("7,v\n1,y\n", {.key_form = KeyType::u64}));
  CHECK(header("x,v\n1,y\n", {.key = "v"}));
  CHECK(header("x,v\n1,y\n", {.key = "typo"}));
  CHECK_FALSE(header("x,v\ny,z\n", {.key = "2"}));
  RowOptions of_table;
  of_table.schema = std::make_shared<const Schema>(*Schema::parse("city string, n i64?"));
  CHECK(header("n,id,city\n,b,c\n", of_table));
  CHECK_FALSE(header("a,b,1\nc,d,2\n", of_table));
}

TEST_CASE("SniffTest.WhatLiesBetweenColumns", "[SniffTest]") {
  CHECK(sniff_csv("a;b\n1;2\n").delimiter == ';');
  CHECK(sniff_csv("a\tb\n1\t2\n").delimiter == '\t');
  CHECK(sniff_csv("a|b\n1|2\n").delimiter == '|');
  CHECK(sniff_csv("a;b,c\n1;2\n").delimiter == ',');
  CHECK(sniff_csv("a;b\n1\n").delimiter == ',');
  CHECK(sniff_csv("a b\n1 2\n").delimiter == ',');
  CHECK(sniff_csv("\"x;y\"\n\"z;w\"\n").delimiter == ',');
}

TEST_CASE_METHOD(SniffTest, "SniffTest.SaysWhatWasTaken", "[SniffTest]") {
  const std::string path = file("z.csv", "zip;city;n\n00501;Bonn;1\n00502;Rio;2\n");
  for (const char* bytes : {"1", "7", "1000000"}) {
    std::filesystem::remove_all(database_);
    REQUIRE_MESSAGE(load(path, {"--block-bytes", bytes}) == 0, error_);
    CHECK(error_.find("stride: " + path + ": between the columns is ';' (--delimiter says") == 0);
    CHECK(error_.find(path + ": the first row names the columns (--no-header: it is a row)\n") !=
          std::string::npos);
    CHECK(scan({"--format", "csv"}) == "zip,city,n\n00501,Bonn,1\n00502,Rio,2\n");
  }
  REQUIRE(load(path, {"--no-header"}, "u") == 0);
  CHECK(scan({}, "u") == "00501\tBonn\t1\n00502\tRio\t2\nzip\tcity\tn\n");
  REQUIRE(load(path, {"--delimiter", ","}, "v") == 0);
  CHECK(scan({}, "v") == "00501;Bonn;1\t\n00502;Rio;2\t\nzip;city;n\t\n");
  expect_load_refused(path, {"--header", "--no-header"}, 2, "excludes --");
  expect_load_refused(path, {"--key", "zipp"}, 2,
                      "no column 'zipp' in the header, which has 'zip', 'city' and 'n': did you "
                      "mean 'zip'?");
  // A file of keys, and one that is joined.
  REQUIRE(run({"get", database_, "t", "--keys", "-", "--keys-format", "csv", "--key", "zip",
               "--columns", "n"},
              "q,zip\nx,00502\n") == 0);
  CHECK(out_ == "00502\t2\n");
  REQUIRE(run({"join", database_, "t", file("o.csv", "zip,q\n00501,5\n"), "--columns", "city"}) ==
          0);
  CHECK(out_ == "zip,q,city\n00501,5,Bonn\n");
}

// A header that is longer than the first look at a file.
TEST_CASE_METHOD(SniffTest, "SniffTest.LongHeaders", "[SniffTest]") {
  std::string header = "id", row = "1";
  for (int i = 0; i < 6000; ++i) {
    header += ",\"column\n" + std::to_string(i) + "\"";
    row += "," + std::to_string(i * 2);
  }
  REQUIRE(header.size() > sniffed_bytes);
  for (const char* bytes : {"4096", "1000000"}) {
    std::filesystem::remove_all(database_);
    const std::string path = file("long.csv", header + "\n" + row + "\n");
    REQUIRE_MESSAGE(load(path, {"--key", "id", "--value", "column\n5999", "--schema", "none",
                                "--block-bytes", bytes}) == 0,
                    error_);
    CHECK(scan() == "1\t11998\n");
    REQUIRE_MESSAGE(load(path, {"--value", "2,6001", "--schema", "none"}, "u") == 0, error_);
    CHECK(scan({}, "u") == "1\t0\t11998\n");
  }
}

TEST_CASE_METHOD(SniffTest, "SniffTest.ArraysOfJson", "[SniffTest]") {
  const std::string text =
      "\xEF\xBB\xBF [\n  {\"key\": \"a\", \"v\": [1, {\"x\": \"]},{\"}],\n   \"w\": \"\\\"\\n\"},\n"
      "  {\"key\":\"b\",\"v\":2,\"w\":null}\n]\n";
  for (const char* bytes : {"1", "5", "1000000"}) {
    std::filesystem::remove_all(database_);
    REQUIRE_MESSAGE(load(file("a.json", text), {"--block-bytes", bytes}) == 0, error_);
    CHECK(error_.find("the elements of a JSON array are rows") != std::string::npos);
    CHECK(scan({"--format", "jsonl"}) ==
          "{\"key\":\"a\",\"v\":\"[1, {\\\"x\\\": \\\"]},{\\\"}]\",\"w\":\"\\\"\\n\"}\n"
          "{\"key\":\"b\",\"v\":\"2\",\"w\":null}\n");
  }
  REQUIRE(load(file("e.json", "[]"), {}, "e") == 0);
  CHECK(scan({}, "e") == "");
  auto refused = [&](const std::string& array, const std::string& message) {
    expect_load_refused(file("b.json", array), {}, 3, message);
  };
  refused("[{\"key\":\"a\",\"v\":1,\"w\":\"\"},]", "b.json: an element of the array is missing");
  refused("[{\"key\":\"a\"}", "b.json: the array has no end: a ] is missing: correct the file");
  refused("[{\"key\":\"a\"}] x", "b.json: there is more behind the array's end");
  refused("[1]", "b.json:1: JSON: the line is no JSON object");
}

TEST_CASE("SniffTest.ArraysInPieces", "[SniffTest]") {
  const std::string text = "[ {\"a\":\"\\\\\"} ,\n[1,[2]] , \"x,]\" ]\n ";
  TextBuffer whole;
  JsonArrayLines lines;
  REQUIRE(lines.feed(text, &whole));
  REQUIRE(lines.end());
  CHECK(whole.text() == "{\"a\":\"\\\\\"} \n[1,[2]] \n\"x,]\" \n");
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    TextBuffer parts;
    JsonArrayLines again;
    REQUIRE(again.feed(text.substr(0, cut), &parts));
    REQUIRE(again.feed(text.substr(cut), &parts));
    CHECK(again.end());
    CHECK(parts.text() == whole.text());
  }
}

TEST_CASE_METHOD(SniffTest, "SniffTest.JoinsOfLongestPrefixes", "[SniffTest]") {
  REQUIRE(load(file("r.csv", "net,asn,name\n10.0.0.0/8,7,office\n10.1.0.0/16,8,lab\n"),
               {"--key-type", "prefix"}) == 0);
  REQUIRE_MESSAGE(run({"join", database_, "t", file("q.csv", "q,ip\n1,10.1.2.3\n2,1.1.1.1\n"),
                       "--key", "ip", "--match"}) == 0,
                  error_);
  CHECK(out_ == "q,ip,prefix,asn,name\n1,10.1.2.3,10.1.0.0/16,8,lab\n2,1.1.1.1,,,\n");
  REQUIRE(run({"join", database_, "t", "-", "--match", "--columns", "asn", "--missing", "skip"},
              "10.9.9.9\tx\n1.1.1.1\ty\n") == 0);
  CHECK(out_ == "10.9.9.9\tx\t10.0.0.0/8\t7\n");
  REQUIRE(run({"join", database_, "t", "-", "--match", "--format", "jsonl", "--key", "ip"},
              "{\"ip\":\"10.1.0.1\"}\n{\"ip\":\"1.1.1.1\"}\n") == 0);
  CHECK(out_ ==
        "{\"ip\":\"10.1.0.1\",\"prefix\":\"10.1.0.0/16\",\"value\":{\"asn\":8,\"name\":\"lab\"}}\n"
        "{\"ip\":\"1.1.1.1\",\"prefix\":null,\"value\":null}\n");
  REQUIRE(run({"join", database_, "t", "-"}, "10.0.0.0/8\n") == 0);
  CHECK(out_ == "10.0.0.0/8\t7\toffice\n");
  CHECK(error_.find("has prefixes as keys, and rows are joined to the very same prefix: --match") !=
        std::string::npos);
  REQUIRE(load(file("p.tsv", "a\tb\n"), {}, "plain") == 0);
  expect_refused({"join", database_, "plain", "-", "--match"}, 2,
                 "table 'plain' is no prefix table: leave --match out");
}

}  // namespace
}  // namespace stride::cli

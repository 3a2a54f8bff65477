// Tables with named columns of types, from CSV and JSON lines, and back.
#include <charconv>
#include <ctime>
#include <map>
#include <random>

#include "adapters/cli/text/cell_text.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

class ColumnsTest : public CliFixture {
 protected:
  std::string schema(const std::string& table = "t") {
    CHECK_MESSAGE(run({"tables", database_}) == 0, error_);
    const size_t at = out_.find(table + "\t");
    const std::string line = out_.substr(at, out_.find('\n', at) - at);
    return line.substr(line.rfind('\t') + 1);
  }
  std::string get(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"get", database_, "t"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    CHECK_MESSAGE(run(all) == 0, error_);
    return out_;
  }
};

const char* const zips =
    "zip,city,state,lat,since,n\n"
    "00501,Holtsville,NY,40.8,2020-01-01,1\n"
    "00544,\"Holts, ville\",NY,,2021-02-03,-2\n"
    "01001,Agawam,MA,42.0,,\n";

TEST_CASE_METHOD(ColumnsTest, "ColumnsTest.CsvSaysNamesAndTypes", "[ColumnsTest]") {
  REQUIRE_MESSAGE(load(file("z.csv", zips), {"--header"}) == 0, error_);
  CHECK(error_.find("columns: city string, state string, lat f64?, since date?, n i64?\n") !=
        std::string::npos);
  CHECK(schema() == "zip bytes key, city string, state string, lat f64?, since date?, n i64?");
  CHECK(scan() ==
        "00501\tHoltsville\tNY\t40.8\t2020-01-01\t1\n"
        "00544\tHolts, ville\tNY\t\t2021-02-03\t-2\n"
        "01001\tAgawam\tMA\t42\t\t\n");
  CHECK(scan({"--format", "csv"}) ==
        "zip,city,state,lat,since,n\n"
        "00501,Holtsville,NY,40.8,2020-01-01,1\n"
        "00544,\"Holts, ville\",NY,,2021-02-03,-2\n"
        "01001,Agawam,MA,42,,\n");
  CHECK(scan({"--format", "jsonl", "--limit", "1"}) ==
        "{\"zip\":\"00501\",\"city\":\"Holtsville\",\"state\":\"NY\",\"lat\":40.8,"
        "\"since\":\"2020-01-01\",\"n\":1}\n");
  CHECK(scan({"--columns", "n,city", "--header", "--limit", "1"}) ==
        "zip\tn\tcity\n00501\t1\tHoltsville\n");
  CHECK(scan({"--columns", "n", "--format", "csv", "--no-header", "--limit", "1"}) == "00501,1\n");
  CHECK(get({"00544", "--columns", "lat,n"}) == "00544\t\t-2\n");
  // A key that is not there has as many columns.
  CHECK(get({"7", "--missing", "empty"}) == "7\t\t\t\t\t\n");
  CHECK(get({"7", "--missing", "empty", "--columns", "n,lat", "--format", "jsonl"}) ==
        "{\"zip\":\"7\",\"n\":null,\"lat\":null}\n");
  // The rows of another file go by name, in any order.
  REQUIRE_MESSAGE(load(file("y.csv", "n,since,city,lat,state,zip\n5,2022-12-31,B,1e3,BB,2\n"),
                       {"--header", "--key", "zip"}) == 0,
                  error_);
  CHECK(get({"2"}) == "2\tB\tBB\t1000\t2022-12-31\t5\n");
}

TEST_CASE_METHOD(ColumnsTest, "ColumnsTest.JoinsHaveAllColumns", "[ColumnsTest]") {
  REQUIRE_MESSAGE(load(file("z.csv", zips), {"--header"}) == 0, error_);
  const std::string orders = file("o.csv", "o,zip\n1,00501\n2,7\n");
  REQUIRE(run({"join", database_, "t", orders, "--header", "--key", "zip"}) == 0);
  CHECK(out_ ==
        "o,zip,city,state,lat,since,n\n"
        "1,00501,Holtsville,NY,40.8,2020-01-01,1\n"
        "2,7,,,,,\n");
  REQUIRE(run({"join", database_, "t", "-", "--key", "2", "--columns", "city,n"},
              "1\t00544\n2\t7\n") == 0);
  CHECK(out_ == "1\t00544\tHolts, ville\t-2\n2\t7\t\t\n");
  REQUIRE(run({"join", database_, "t", "-", "--format", "jsonl", "--key", "zip", "--columns",
               "city,lat"},
              "{\"zip\":\"00544\"}\n{\"zip\":\"7\"}\n") == 0);
  CHECK(out_ ==
        "{\"zip\":\"00544\",\"value\":{\"city\":\"Holts, ville\",\"lat\":null}}\n"
        "{\"zip\":\"7\",\"value\":null}\n");
}

TEST_CASE_METHOD(ColumnsTest, "ColumnsTest.MatchesHaveColumns", "[ColumnsTest]") {
  REQUIRE_MESSAGE(load(file("r.csv", "net,asn,name\n10.0.0.0/8,7,office\n10.1.0.0/16,8,lab\n"),
                       {"--header", "--key-type", "prefix"}) == 0,
                  error_);
  CHECK(schema() == "asn i64?, name string");
  REQUIRE(run({"match", database_, "t", "10.1.2.3", "1.1.1.1", "--format", "csv"}) == 0);
  CHECK(out_ == "address,prefix,asn,name\n10.1.2.3,10.1.0.0/16,8,lab\n1.1.1.1,,,\n");
  REQUIRE(run({"match", database_, "t", "10.9.2.3", "--columns", "name", "--json"}) == 0);
  CHECK(out_ == "{\"address\":\"10.9.2.3\",\"prefix\":\"10.0.0.0/8\",\"name\":\"office\"}\n");
}

TEST_CASE_METHOD(ColumnsTest, "ColumnsTest.JsonLinesSayFieldsAndTypes", "[ColumnsTest]") {
  const std::string rows =
      "{\"id\":1,\"name\":\"A\\u0064a\",\"score\":1.5,\"tags\":{\"a\":[1]},\"empty\":\"\"}\n"
      "{\"name\":null,\"id\":2,\"score\":2,\"ok\":true,\"at\":\"2022-01-08T10:00:00.5Z\"}\n";
  REQUIRE_MESSAGE(load(file("a.jsonl", rows), {"--key", "id", "--key-type", "u64"}) == 0, error_);
  CHECK(
      schema() ==
      "id u64 key, name string?, score f64?, tags string?, empty string?, ok bool?, at timestamp?");
  CHECK(scan({"--format", "jsonl"}) ==
        "{\"id\":1,\"name\":\"Ada\",\"score\":1.5,\"tags\":\"{\\\"a\\\":[1]}\",\"empty\":\"\","
        "\"ok\":null,\"at\":null}\n"
        "{\"id\":2,\"name\":null,\"score\":2,\"tags\":null,\"empty\":null,\"ok\":true,"
        "\"at\":\"2022-01-08 10:00:00.5\"}\n");
  // What it prints it reads.
  const std::string printed = file("b.jsonl", out_);
  REQUIRE_MESSAGE(load(printed, {"--key", "id", "--key-type", "u64"}, "u") == 0, error_);
  CHECK(scan({"--format", "jsonl"}, "u") == read(printed));
  expect_load_refused(
      file("c.jsonl", "{\"id\":3,\"other\":1}\n"), {"--key", "id"}, 3,
      "c.jsonl:1: field 'other' is none of the table's columns: name those that are "
      "to be loaded with --value");
  REQUIRE(load(file("d.jsonl", "{\"id\":3,\"other\":1,\"name\":\"x\"}\n"), {"--key", "id"}) == 3);
}

TEST_CASE_METHOD(ColumnsTest, "ColumnsTest.ATypeThatDoesNotFitLoadsNothing", "[ColumnsTest]") {
  std::string rows = "id,n,name\n";
  for (int i = 0; i < 5000; ++i) rows += std::to_string(i) + "," + std::to_string(i) + ",x\n";
  const std::string good = rows;
  auto refused = [&](const std::string& last, const std::string& message) {
    expect_load_refused(file("a.csv", good + last), {"--header", "--block-bytes", "1000"}, 3,
                        "a.csv:5002: " + message);
  };
  refused("x,1.5,y\n", "column 'n': '1.5' is no i64: the type was told from the first rows: give");
  refused("x,007,y\n", "column 'n': '007' is no i64: a number has no zeros before it");
  refused("x,1,\xFF\n", "column 'name': '\xFF' is no UTF-8");
  refused("x,1\n", "too few columns: 2, and the header has 3");
  REQUIRE_MESSAGE(load(file("b.csv", good + "x,,\n"), {"--header"}) == 0, error_);
  CHECK(get({"x"}) == "x\t\t\n");
  // Bad rows are left out where that is asked for.
  REQUIRE(load(file("c.csv", good + "y,1.5,z\nw,3,z\n"),
               {"--header", "--block-bytes", "1000", "--rejects", directory_ + "/bad"}, "u") == 0);
  CHECK(read(directory_ + "/bad").find("\t5002\tcolumn 'n': '1.5' is no i64\ty,1.5,z\n") !=
        std::string::npos);
  CHECK(scan({"--from", "w"}, "u") == "w\t3\tz\n");
}

TEST_CASE_METHOD(ColumnsTest, "ColumnsTest.ASchemaThatIsGiven", "[ColumnsTest]") {
  const std::string of_file = file("schema.txt", "city string\nlat f32?, zone u8\n");
  const std::string rows = file("a.tsv", "k\tBonn\t50.7\t1\nl\tRio\t\t255\n");
  REQUIRE_MESSAGE(load(rows, {"--schema", of_file}) == 0, error_);
  CHECK(schema() == "city string, lat f32?, zone u8");
  CHECK(scan({"--format", "csv"}) == "key,city,lat,zone\nk,Bonn,50.7,1\nl,Rio,,255\n");
  REQUIRE_MESSAGE(load(rows, {"--schema", "b string, v f64?, z u16"}, "u") == 0, error_);
  expect_load_refused(file("b.tsv", "m\tRome\t1\t256\n"), {}, 3,
                      "b.tsv:1: column 'zone': '256' is no u8");
  expect_load_refused(file("b.tsv", "m\tRome\t1\t\n"), {}, 3,
                      "b.tsv:1: column 'zone': empty, which is no u8");
  expect_load_refused(
      rows, {"--schema", "a i8"}, 2,
      "table 't' has other columns: city string, lat f32?, zone u8: leave --schema out");
  expect_load_refused(rows, {"--schema", "none"}, 2,
                      "table 't' has columns, which cannot be changed");
  auto bad = [&](const std::string& argument, int code, const std::string& message) {
    expect_refused({"load", database_, "new", rows, "--schema", argument}, code, message);
  };
  bad("nofile", 4, "nofile");
  bad("a i33", 2, "--schema: schema, line 1: 'i33' is no type of a field: give bool, i8 to i64");
  bad("a i32, a i64", 2, "--schema: two columns are called 'a': give each one a name of its own");
  bad("a i32 key", 2, "--schema: a key column: --key and --key-type say");
  bad(file("bad.txt", "a i32\nb"), 3, "bad.txt: schema, line 2: field 'b' has no type");
  bad("a i32", 3, "too many columns: 4, and 2 are the key and the table's columns");
  expect_refused({"load", database_, "new", rows, "--schema", "a i32", "--count"}, 2,
                 "a table of numbers has no columns");
}

TEST_CASE_METHOD(ColumnsTest, "ColumnsTest.RowsThatArePutAndDumped", "[ColumnsTest]") {
  REQUIRE(load(file("a.tsv", "k\tBonn\t1\n"), {"--schema", "city string, n i16?"}) == 0);
  REQUIRE_MESSAGE(run({"put", database_, "t", "l", "Rio", "", "m", "Rome", "-5"}) == 0, error_);
  CHECK(scan() == "k\tBonn\t1\nl\tRio\t\nm\tRome\t-5\n");
  expect_refused({"put", database_, "t", "l", "Rio"}, 2,
                 "key 'l' has 1 value, and the table has the columns city string, n i16?");
  expect_refused({"put", database_, "t", "l", "Rio", "x"}, 2, "column 'n': 'x' is no i16");
  REQUIRE(run({"dump", database_}) == 0);
  const std::string dump = file("dump", out_);
  const std::string before = scan({"--format", "csv"});
  database_ = directory_ + "/again";
  REQUIRE_MESSAGE(run({"restore", database_, dump}) == 0, error_);
  CHECK(scan({"--format", "csv"}) == before);
  CHECK(schema() == "city string, n i16?");
  // Raw records are rows as they are stored.
  const std::string raw = scan({"--format", "raw"});
  REQUIRE_MESSAGE(load(file("r.raw", raw), {"--format", "raw"}) == 0, error_);
  CHECK(scan({"--format", "csv"}) == before);
  expect_load_refused(file("s.raw", std::string("\x01\0\0\0\x01\0\0\0xy", 10)), {"--format", "raw"},
                      3, "the value is no row of the schema");
}

TEST_CASE_METHOD(ColumnsTest, "ColumnsTest.ColumnsThatAreNotThere", "[ColumnsTest]") {
  REQUIRE(load(file("z.csv", zips), {"--header"}) == 0);
  for (const std::string command : {"get", "scan"}) {
    std::vector<std::string> all = {command, database_, "t", "--columns", "cty"};
    if (command == "get") all.push_back("00501");
    expect_refused(all, 2,
                   "no column 'cty' in table 't', which has 'city', 'state', 'lat', 'since' "
                   "and 'n': did you mean 'city'?");
  }
  REQUIRE(load(file("p.tsv", "a\tb\n"), {}, "plain") == 0);
  expect_refused({"scan", database_, "plain", "--columns", "a"}, 2,
                 "table 'plain' has no columns: leave --columns out");
}

// A program that knows no schema has put what it liked.
TEST_CASE_METHOD(ColumnsTest, "ColumnsTest.AValueThatIsNoRow", "[ColumnsTest]") {
  REQUIRE(load(file("a.tsv", "k\tBonn\t1\n"), {"--schema", "city string, n i16"}) == 0);
  {
    auto db = Database::open(database_);
    REQUIRE(db.ok());
    WriteTransaction t = (*db)->begin();
    REQUIRE(t.put(*(*db)->open_table("t"), "bad", "x").ok());
    REQUIRE(t.commit().ok());
  }
  CHECK(run({"scan", database_, "t"}) == 6);
  CHECK(error_ ==
        "stride: the value of key 'bad' is no row of the table's columns: put the row "
        "again, or delete the key\n");
  CHECK(run({"get", database_, "t", "bad"}) == 6);
  CHECK(run({"get", database_, "t", "k"}) == 0);
}

// Texts of random cells, by rules of their own.
class RandomCells {
 public:
  explicit RandomCells(std::mt19937_64& random) : random_(random) {}
  std::string text(FieldType type) {
    switch (type) {
      case FieldType::boolean:
        return random_() % 2 ? "true" : "false";
      case FieldType::i8:
        return std::to_string(static_cast<int8_t>(random_()));
      case FieldType::i16:
        return std::to_string(static_cast<int16_t>(random_()));
      case FieldType::i32:
        return std::to_string(static_cast<int32_t>(random_()));
      case FieldType::i64:
        return std::to_string(static_cast<int64_t>(random_() >> random_() % 64));
      case FieldType::u8:
        return std::to_string(static_cast<uint8_t>(random_()));
      case FieldType::u16:
        return std::to_string(static_cast<uint16_t>(random_()));
      case FieldType::u32:
        return std::to_string(static_cast<uint32_t>(random_()));
      case FieldType::u64:
        return std::to_string(random_() >> random_() % 64);
      case FieldType::f32:
        return shortest(static_cast<float>(static_cast<int64_t>(random_())) / 1e9f);
      case FieldType::f64:
        return shortest(static_cast<double>(static_cast<int64_t>(random_())) / 1e9);
      case FieldType::date:
        return time_text("%Y-%m-%d", seconds());
      case FieldType::timestamp_s:
        return time_text("%Y-%m-%d %H:%M:%S", seconds());
      case FieldType::timestamp_ms:
        return time_text("%Y-%m-%d %H:%M:%S", seconds()) + fraction(3);
      case FieldType::timestamp_us:
        return time_text("%Y-%m-%d %H:%M:%S", seconds()) + fraction(6);
      case FieldType::timestamp_ns:
        // 64 bits hold nanoseconds of the years 1678 to 2261.
        return time_text("%Y-%m-%d %H:%M:%S",
                         static_cast<int64_t>(random_() % 18'000'000'000) - 9'000'000'000) +
               fraction(9);
      case FieldType::uuid: {
        std::string text;
        for (int i = 0; i < 36; ++i)
          text +=
              i == 8 || i == 13 || i == 18 || i == 23 ? '-' : "0123456789abcdef"[random_() % 16];
        return text;
      }
      default: {
        std::string text;
        for (uint64_t n = random_() % 10; n; --n) text += "ab,\"\n\tz \xC3\xBC"[random_() % 8];
        return text;
      }
    }
  }

 private:
  // These are seconds of the years 0 to 9999.
  int64_t seconds() { return static_cast<int64_t>(random_() % 315'569'520'000) - 62'167'219'200; }
  static std::string time_text(const char* format, int64_t seconds) {
    const time_t time = seconds;
    std::tm parts{};
    gmtime_r(&time, &parts);
    char text[40];
    strftime(text, sizeof text, format, &parts);
    // glibc writes years below 1000 without zeros.
    std::string result = text;
    return std::string(result.find('-') < 4 ? 4 - result.find('-') : 0, '0') + result;
  }
  std::string fraction(size_t places) {
    if (random_() % 3 == 0) return "";
    std::string digits(1 + random_() % places, '0');
    for (char& c : digits) c = static_cast<char>('0' + random_() % 10);
    if (digits.back() == '0') digits.back() = '7';
    return "." + digits;
  }
  template <class T>
  static std::string shortest(T number) {
    char text[40];
    return std::string(text, std::to_chars(text, text + 40, number).ptr);
  }
  std::mt19937_64& random_;
};

std::string csv(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted_text = "\"";
  for (char c : text) quoted_text += c == '"' ? "\"\"" : std::string(1, c);
  return quoted_text + "\"";
}

TEST_CASE_METHOD(ColumnsTest, "ColumnsTest.TextsOfAllTypesComeBack", "[ColumnsTest]") {
  std::mt19937_64 random(test::seed());
  RandomCells cells(random);
  for (int round = 0; round < 30; ++round) {
    std::vector<Field> fields(1 + random() % 8);
    std::string header = "id", text;
    for (size_t i = 0; i < fields.size(); ++i) {
      fields[i].name = "c" + std::to_string(i);
      fields[i].type = static_cast<FieldType>(random() % (static_cast<int>(FieldType::bytes) + 1));
      fields[i].nullable = random() % 2;
      header += "," + fields[i].name;
    }
    header += "\n";
    std::map<std::string, std::string> rows;
    for (int r = 0; r < 200; ++r) {
      const std::string key = std::to_string(random() % 1000);
      if (rows.contains(key)) continue;
      for (const Field& field : fields) {
        const bool null = field.nullable && random() % 3 == 0;
        std::string cell = null ? "" : cells.text(field.type);
        // Empty text would come back as null.
        if (!null && field.nullable && cell.empty()) cell = "x";
        rows[key] += "," + csv(cell);
      }
      text += key + rows[key] + "\n";
    }
    const std::string schema = Schema::make(fields)->to_string();
    INFO(schema);
    const std::string table = "t" + std::to_string(round);
    REQUIRE_MESSAGE(
        load(file("r.csv", header + text),
             {"--header", "--schema", schema, "--block-bytes", std::to_string(1 + random() % 5000)},
             table) == 0,
        error_);
    std::string expected = header;
    for (const auto& [key, row] : rows) expected += key + row + "\n";
    REQUIRE(scan({"--format", "csv"}, table) == expected);
    // JSON has the same cells.
    const std::string json = file("r.jsonl", scan({"--format", "jsonl"}, table));
    const std::string again = table + "j";
    REQUIRE_MESSAGE(load(json, {"--key", "id", "--schema", schema}, again) == 0, error_);
    REQUIRE(scan({"--format", "csv"}, again) == expected);
  }
}

TEST_CASE("CellTextTest.WhatIsNoCell", "[CellTextTest]") {
  auto parses = [](const std::string& type, std::string_view text) {
    const Schema schema = *Schema::parse("c " + type);
    RowWriter row(schema);
    return parse_cell(schema.values()[0], text, 0, &row);
  };
  CHECK(parses("date", "2024-02-29"));
  CHECK(parses("timestamp", "2024-02-29"));
  CHECK(parses("timestamp", "2024-02-29T23:59"));
  CHECK(parses("timestamp", "2024-02-29 23:59:59.123456000+02:30"));
  CHECK(parses("f32[3]", "[1, 2.5,nan]"));
  CHECK(parses("f64", "inf"));
  CHECK(parses("date", "-800000"));  // days, as years that have no four digits are written
  for (auto [type, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {"date", "2023-02-29"},
           {"date", "2023-2-9"},
           {"date", "2023-02-09 "},
           {"timestamp[s]", "2023-01-01 00:00:00.5"},
           {"timestamp", "2023-01-01 24:00:00"},
           {"timestamp", "2023-01-01 10"},
           {"timestamp", "2023-01-01 10:00:60"},
           {"timestamp[ns]", "3023-01-01"},
           {"timestamp", "2023-01-01 10:00Zx"},
           {"i8", "128"},
           {"u8", "-1"},
           {"i64", "9223372036854775808"},
           {"i64", "1.0"},
           {"i64", " 1"},
           {"i64", "+1"},
           {"i64", "01"},
           {"i64", ""},
           {"f64", "1,5"},
           {"f64", "1e999"},
           {"bool", "yes"},
           {"uuid", "12345678-9abc-def0-1234-56789abcdef"},
           {"uuid", "12345678x9abc-def0-1234-56789abcdef0"},
           {"f32[3]", "[1,2]"},
           {"f32[3]", "[1,2,3,4]"},
           {"f32[3]", "1,2,3"},
           {"i8[2]", "[1,200]"},
           {"bytes[3]", "ab"},
           {"string", "\xC3"}}) {
    INFO(type << " " << text);
    CHECK_FALSE(parses(type, text));
  }
}

}  // namespace
}  // namespace stride::cli

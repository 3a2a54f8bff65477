// What went wrong with columns and their keys in hands that meant no good.
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "engine/table_schema.h"
#include "storage/integer_key.h"
#include "storage/key_format.h"
#include "storage/row_format.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class ColumnsFaultsTest : public CliFixture {
 protected:
  // What a program makes.
  void with_database(const std::function<void(Database*)>& use) {
    auto db = Database::open(database_);
    REQUIRE(db.ok());
    use(db->get());
  }
};

TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.KeysOfColumnsHaveTheTablesWidth",
                 "[ColumnsFaultsTest]") {
  const std::string path = file("k.csv", "c,y,v\na,1,x\nb,1,y\n");
  expect_load_refused(path, {"--key-type", "string,i16", "--key-width", "400"}, 2,
                      "--key-width does not go with keys of several columns");
  with_database([](Database* db) { REQUIRE(db->create_table("t", {.key_width = 6}).ok()); });
  expect_load_refused(path, {"--key-type", "string,i16"}, 3,
                      "k.csv:2: the key has 5 bytes, every key has 6");
}

// A table that came into being after the load had looked.
TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.ATableThatIsMadeMeanwhileIsAnother",
                 "[ColumnsFaultsTest]") {
  const std::string path = directory_ + "/fifo.csv";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::thread other([&] {
    std::ofstream out(path);
    out << "k,a\nx,1\n" << std::flush;
    {
      auto db = Database::open(database_);
      WriteTransaction t = (*db)->begin();
      auto table = t.create_table("t", {.schema = *Schema::parse("s string, u string")});
      if (!table.ok() || !t.commit().ok()) abort();
    }
    out << "y,2\n";
  });
  CHECK(load(path, {"--header"}) != 0);
  other.join();
  CHECK(error_.find("there is a table 't' already") != std::string::npos);
  CHECK(scan() == "");
}

TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.DumpsKeepNumbersWithKeyColumns",
                 "[ColumnsFaultsTest]") {
  REQUIRE(load(file("n.tsv", "a\t1\na\t2\na\t1\n"), {"--count", "--key-type", "string,i16"}) == 0);
  CHECK(scan() == "a\t1\t2\na\t2\t1\n");
  REQUIRE(run({"dump", database_}) == 0);
  const std::string dump = file("dump", out_);
  database_ = directory_ + "/again";
  REQUIRE_MESSAGE(run({"restore", database_, dump}) == 0, error_);
  CHECK(scan() == "a\t1\t2\na\t2\t1\n");
  REQUIRE_MESSAGE(load(file("m.tsv", "a\t1\n"), {"--count"}) == 0, error_);
  CHECK(scan() == "a\t1\t3\na\t2\t1\n");
}

TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.NamesOfColumnsAreText",
                 "[ColumnsFaultsTest]") {
  expect_load_refused(file("a.csv", "k,caf\xE9,caf\xE8\na,1,2\n"), {"--header"}, 3,
                      "is no UTF-8: choose columns with --value, or give --schema none");
  // Without a name a column has that of its place, in every file.
  const std::string frame = file("i.csv", "k,,x\na,1,2\n");
  REQUIRE(load(frame, {"--header"}) == 0);
  REQUIRE_MESSAGE(load(frame, {"--header"}) == 0, error_);
  CHECK(scan({"--format", "csv"}) == "k,column_2,x\na,1,2\n");
  expect_load_refused(file("b.jsonl", "{\"k\":\"a\",\"x\":1,\"\":\"kept\"}\n"), {}, 3,
                      "field '' is none of the table's columns");
  REQUIRE(load(file("c.jsonl", "{\"key\":\"a\",\"x\":1,\"\":\"kept\"}\n"), {}, "new") == 3);
  CHECK(error_.find("a column without a name") != std::string::npos);
}

TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.LoadsKnowTheKeysOfAProgramsTable",
                 "[ColumnsFaultsTest]") {
  with_database([](Database* db) {
    auto u = db->create_table("t", {.schema = *Schema::parse("id u64 key, v i32")});
    auto c = db->create_table("c", {.schema = *Schema::parse("a string key, b date key, v i32")});
    REQUIRE(u.ok());
    REQUIRE(c.ok());
    RowWriter row(u->schema());
    row.set(0, 7);
    const uint64_t key = u64_key(3);
    WriteTransaction t = db->begin();
    REQUIRE(t.put(*u, Column::fixed(&key, 8, 1), Column::fixed(row.bytes().data(), 4, 1)).ok());
    REQUIRE(t.commit().ok());
  });
  REQUIRE_MESSAGE(load(file("u.csv", "v,id\n5,12345678\n"), {"--header"}) == 0, error_);
  CHECK(scan() == "3\t7\n12345678\t5\n");
  REQUIRE_MESSAGE(load(file("c.csv", "b,v,a\n2020-01-01,5,x\n"), {"--header"}, "c") == 0, error_);
  CHECK(scan({}, "c") == "x\t2020-01-01\t5\n");
  expect_load_refused(file("u.csv", "id,v\n1,5\n"), {"--header", "--key-type", "i64"}, 2,
                      "table 't' has keys of type u64, not i64");
  // A note of a table of that name which is gone says nothing of this one.
  REQUIRE(load(file("n.csv", "id,v\n1,5\n"), {"--header", "--key-type", "i64"}, "n") == 0);
  with_database([](Database* db) {
    REQUIRE(db->drop_table("n").ok());
    auto n = db->create_table("n", {.schema = *Schema::parse("id u64 key, v i32")});
    REQUIRE(n.ok());
    RowWriter row(n->schema());
    const uint64_t key = u64_key(0);
    WriteTransaction t = db->begin();
    REQUIRE(t.put(*n, Column::fixed(&key, 8, 1), Column::fixed(row.bytes().data(), 4, 1)).ok());
    REQUIRE(t.commit().ok());
  });
  CHECK(scan({}, "n") == "0\t0\n");
}

TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.ColumnsGoByTheirNames",
                 "[ColumnsFaultsTest]") {
  const std::string a = file("a.csv", "c,y,v\na,b,1\n"), b = file("b.csv", "y,c,v\nB,A,2\n");
  REQUIRE_MESSAGE(
      run({"load", database_, "t", a, b, "--header", "--key-type", "string,string"}) == 0, error_);
  CHECK(scan({"--format", "csv"}) == "c,y,v\nA,B,2\na,b,1\n");
  // The same where the schema is given, and where there is none.
  for (const char* schema : {"v string", "none"}) {
    const std::string name = std::string("of ") + schema;
    REQUIRE_MESSAGE(run({"load", database_, name, a, b, "--header", "--key-type", "string,string",
                         "--schema", schema}) == 0,
                    error_);
    CHECK(scan({}, name) == "A\tB\t2\na\tb\t1\n");
  }
  REQUIRE_MESSAGE(load(file("d.csv", "v,y,c\n3,Y,C\n"), {"--header"}) == 0, error_);
  CHECK(scan({"--from", "C", "--to", "D"}) == "C\tY\t3\n");
  expect_load_refused(file("e.csv", "v,w\n1,2\n"), {"--header", "--key-type", "string,string"}, 2,
                      "column 'v' would be key and value: name the key's with --key");
  // Those of --value, too, where they are the table's.
  REQUIRE(load(file("n.csv", "id,first,last\n1,Ada,Lovelace\n"), {"--header", "--key", "id"},
               "n") == 0);
  REQUIRE(load(file("m.csv", "id,last,first\n2,Hopper,Grace\n"),
               {"--header", "--key", "id", "--value", "last,first"}, "n") == 0);
  REQUIRE(load(file("m.jsonl", "{\"id\":3,\"last\":\"Cox\",\"first\":\"Joan\"}\n"),
               {"--key", "id", "--value", "last,first"}, "n") == 0);
  CHECK(scan({}, "n") == "1\tAda\tLovelace\n2\tGrace\tHopper\n3\tJoan\tCox\n");
  // A key that is a value as well has one name in each.
  REQUIRE(load(file("k.csv", "k,v\na,1\n"), {"--header", "--value", "k,v"}, "k") == 0);
  CHECK(scan({"--format", "jsonl"}, "k") == "{\"k_\":\"a\",\"k\":\"a\",\"v\":1}\n");
  REQUIRE(load(file("i.csv", "ip,key\n1.2.3.4,x\n"), {"--header", "--key-type", "ip"}, "i") == 0);
  CHECK(scan({"--format", "jsonl"}, "i") == "{\"key_\":\"1.2.3.4\",\"key\":\"x\"}\n");
  expect_refused({"scan", database_, "k", "--columns", "v,v"}, 2, "names column 'v' twice");
}

TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.DedupKeepsToTablesWithoutColumns",
                 "[ColumnsFaultsTest]") {
  REQUIRE(load(file("b.csv", "k,n\na,1\n"), {"--header"}) == 0);
  expect_refused({"dedup", file("c.csv", "c,7\n"), "--key", "1", "--table", database_, "t"}, 2,
                 "table 't' has columns, and dedup keeps keys alone");
}

TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.AnEmptyValueOfAnOptionIsEmpty",
                 "[ColumnsFaultsTest]") {
  REQUIRE(load(file("d.tsv", "a\t1\nm\t2\nz\t3\n")) == 0);
  REQUIRE_MESSAGE(run({"delete", database_, "t", "--from=", "--to=n"}) == 0, error_);
  CHECK(scan() == "z\t3\n");
  CHECK(scan({"--from=", "--reverse"}) == "z\t3\n");
  REQUIRE(run({"put", database_, "t", "\x01m", "4"}) == 0);
  REQUIRE(run({"delete", database_, "t", "--from=\x01m", "--to=\x01n"}) == 0);
  CHECK(scan() == "z\t3\n");
}

// A guess from the first rows rewrites nothing behind them.
TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.AGuessChangesNoText",
                 "[ColumnsFaultsTest]") {
  struct Case {
    const char *first, *later;
  };
  for (const Case& c : std::initializer_list<Case>{{"2020-01-01", "18000"},
                                                   {"2020-01-01 10:00:00", "1650000000"},
                                                   {"true", "1"},
                                                   {"0.5", "00501"},
                                                   {"0.5", "12345678901234567890"},
                                                   {"1.5", "NaN1"},
                                                   {"7", "007"}}) {
    INFO(c.first << " " << c.later);
    const std::string a = file("1.csv", std::string("k,d\na,") + c.first + "\n");
    const std::string b = file("2.csv", std::string("k,d\nb,") + c.later + "\n");
    expect_refused({"load", database_, "new", a, b, "--header"}, 3, "2.csv:2: column 'd': ");
  }
  REQUIRE(load(file("3.csv", "k,d\na,9007199254740993\nb,0.5\nc,0.30000000000000004\n"),
               {"--header"}) == 0);
  CHECK(scan() == "a\t9007199254740993\nb\t0.5\nc\t0.30000000000000004\n");
  REQUIRE(load(file("4.csv", "k,d\na,1e10\nb,0.30000000000000004\n"), {"--header"}, "u") == 0);
  REQUIRE(run({"tables", database_}) == 0);
  CHECK(out_.find("u\tbytes\t0\t2\t") != std::string::npos);
  CHECK(out_.find("k bytes key, d f64?\n") != std::string::npos);
  expect_refused({"load", database_, "new", file("5.jsonl", "{\"key\":1,\"n\":2}\n"),
                  file("6.jsonl", "{\"key\":2,\"n\":\"3\"}\n")},
                 3, "6.jsonl:1: column 'n': '\"3\"' is no i64");
  expect_load_refused(file("m.csv", "k,v\ra,x\r"), {"--header"}, 3, "lines end with CR alone");
}

// The reason is that of either format, and not that the first row has a field too many.
TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.ColumnsAreCountedBeforeARowIsRead",
                 "[ColumnsFaultsTest]") {
  auto rows = [&](int columns, const std::string& name) {
    std::string header = "key", row = "k", object = R"({"key":"k")";
    for (int i = 0; i < columns; ++i) {
      const std::string number = std::to_string(i);
      header += ",c" + number;
      row += "," + number;
      object += ",\"c" + number + "\":" + number;
    }
    return file(name, name.ends_with(".csv") ? header + "\n" + row + "\n" : object + "}\n");
  };
  for (const std::string end : {".csv", ".jsonl"}) {
    expect_load_refused(rows(4097, "many" + end), {}, 3,
                        "many" + end +
                            ": a schema of 4097 columns; at most 4096 are possible: "
                            "choose columns with --value, or give --schema none");
    with_database([](Database* db) { CHECK_FALSE(db->open_table("t").ok()); });
    REQUIRE(load(rows(4096, "most" + end), {}) == 0);
    with_database([](Database* db) {
      CHECK(db->open_table("t")->schema().values().size() == 4096u);
      REQUIRE(db->drop_table("t").ok());
    });
  }
}

TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.CellsAtTheEdges", "[ColumnsFaultsTest]") {
  REQUIRE(
      load(file("t.tsv", "a\t1677-09-21 00:12:43.145224192\nb\t2262-04-11 23:47:16.854775807\n"),
           {"--schema", "t timestamp[ns]"}) == 0);
  CHECK(scan() == "a\t1677-09-21 00:12:43.145224192\nb\t2262-04-11 23:47:16.854775807\n");
  expect_load_refused(file("u.tsv", "c\t2022-01-08 10:30.5\n"), {}, 3, "is no timestamp[ns]");
  REQUIRE(load(file("v.jsonl", "{\"key\":\"a\",\"v\":[1,\t2,3]}\n"), {"--schema", "v i8[3]"},
               "v") == 0);
  CHECK(scan({}, "v") == "a\t[1,2,3]\n");
  REQUIRE(load(file("b.jsonl", "{\"key\":true,\"v\":1}\n{\"key\":false,\"v\":2}\n"),
               {"--key-type", "bool"}, "b") == 0);
  CHECK(scan({"--format", "jsonl"}, "b") == "{\"key\":false,\"v\":2}\n{\"key\":true,\"v\":1}\n");
}

TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.KeysThatAreNone", "[ColumnsFaultsTest]") {
  REQUIRE(load(file("k.csv", "c,y,v\na,1,x\n"), {"--header", "--key-type", "string,i16"}) == 0);
  REQUIRE(run({"get", database_, "t", "\"a\"junk,1"}) == 0);
  CHECK(out_ == "");
  expect_load_refused(file("r.raw", std::string("\x02\0\0\0\x01\0\0\0zzq", 11)),
                      {"--format", "raw"}, 3, "r.raw:1: the key is none of type string,i16");
  expect_refused({"scan", database_, "t", "--from", "a,x"}, 2, "--from: 'x' is no i16");
  expect_load_refused(file("j.jsonl", "{\"c\":\"a\",\"y\":1}\n"),
                      {"--key", "c", "--key-type", "string,i16"}, 2,
                      "keys of type string,i16 have 2 fields: name as many with --key");
}

TEST_CASE_METHOD(ColumnsFaultsTest, "ColumnsFaultsTest.ADamagedSchemaCostsItsTable",
                 "[ColumnsFaultsTest]") {
  REQUIRE(load(file("k.csv", "k,v\na,x\n"), {"--header"}, "good") == 0);
  REQUIRE(load(file("k.csv", "k,v\na,x\n"), {"--header"}, "bad") == 0);
  with_database([](Database* db) {
    WriteTransaction t = db->begin();
    const auto id = db->open_table("bad")->id();
    REQUIRE(t.put(*db->open_table(".stride"), schema_key(id), "v strin").ok());
    REQUIRE(t.commit().ok());
  });
  CHECK(run({"tables", database_}) == 6);
  CHECK(out_.find("good\tbytes") != std::string::npos);
  CHECK(run({"scan", database_, "bad"}) == 6);
  CHECK(scan({}, "good") == "a\tx\n");
  REQUIRE_MESSAGE(run({"drop", database_, "bad"}) == 0, error_);
  CHECK(run({"tables", database_}) == 0);
}

}  // namespace
}  // namespace stride::cli

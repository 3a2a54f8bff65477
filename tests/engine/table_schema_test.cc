// Tables with a schema: it is kept with the table, as long as the table is there.
#include "engine/table_schema.h"

#include "storage/row_format.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

const Schema users_schema = *Schema::parse("id u64 key, name string, score f64?");
const TableOptions users_options = {.schema = users_schema};

TEST_CASE("TableSchemaTest.IsThereAfterReopening", "[TableSchemaTest]") {
  TemporaryDirectory directory;
  const std::string path = directory.file("db");
  {
    auto db = Database::open(path);
    REQUIRE_OK(db);
    auto users = (*db)->open_or_create_table("users", users_options);
    REQUIRE_OK(users);
    CHECK(users->schema() == users_schema);
    CHECK(users->key_width() == 8);
    auto plain = (*db)->open_or_create_table("plain", {.key_width = 4});
    REQUIRE_OK(plain);
    CHECK(plain->schema().empty());
    WriteTransaction t = (*db)->begin();
    auto more = t.create_table("more", {.schema = *Schema::parse("x i8")});
    REQUIRE_OK(more);
    auto again = t.open_or_create_table("more");
    REQUIRE_OK(again);
    CHECK(again->schema().to_string() == "x i8");
    const int8_t x = 5;
    REQUIRE_OK(t.put(*more, "key", std::string_view(reinterpret_cast<const char*>(&x), 1)));
    REQUIRE_OK(t.commit());
  }
  for (bool read_only : {false, true}) {
    auto db = Database::open(path, {.read_only = read_only});
    REQUIRE_OK(db);
    CHECK((*db)->open_table("users")->schema() == users_schema);
    CHECK((*db)->open_table("more")->schema().to_string() == "x i8");
    CHECK((*db)->open_table("plain")->schema().empty());
  }
}

TEST_CASE("TableSchemaTest.IsTheTablesAndCannotBeAnother", "[TableSchemaTest]") {
  TemporaryDirectory directory;
  auto db = Database::open(directory.file("db"));
  REQUIRE_OK((*db)->open_or_create_table("users", users_options));
  REQUIRE_OK((*db)->open_or_create_table("users", users_options));
  REQUIRE_OK((*db)->open_or_create_table("users", {.key_width = 8}));  // whatever it has
  auto other = (*db)->open_or_create_table("users", {.key_width = 8, .schema = *Schema::parse("a i8")});
  REQUIRE_FALSE(other.ok());
  CHECK(other.status().message() ==
        "table 'users' has the schema id u64 key, name string, score f64?, not a i8");
  auto numbers = (*db)->create_table(
      "numbers", {.numbers = NumberType::i64, .schema = *Schema::parse("a i8")});
  CHECK(numbers.status().code() == StatusCode::invalid_argument);
  auto wide = (*db)->create_table("wide", {.key_width = 4, .schema = users_schema});
  CHECK(wide.status().message() == "key_width 4 is given, and keys of the schema have 8 bytes");
}

TEST_CASE("TableSchemaTest.GoesWithTheTable", "[TableSchemaTest]") {
  TemporaryDirectory directory;
  auto db = Database::open(directory.file("db"));
  auto users = (*db)->create_table("users", users_options);
  REQUIRE_OK(users);
  auto notes = (*db)->open_table(".stride");
  REQUIRE_OK(notes);
  CHECK((*db)->snapshot().get(*notes, schema_key(users->id()))->has_value());
  REQUIRE_OK((*db)->drop_table("users"));
  CHECK_FALSE((*db)->snapshot().get(*notes, schema_key(users->id()))->has_value());
  auto again = (*db)->create_table("users", {.key_width = 8});
  REQUIRE_OK(again);
  CHECK((*db)->open_table("users")->schema().empty());
  // What is aborted leaves neither.
  {
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.create_table("lost", users_options));
  }
  CHECK((*db)->open_table("lost").status().code() == StatusCode::not_found);
}

TEST_CASE("TableSchemaTest.ANoteThatIsNoSchemaIsCorruption", "[TableSchemaTest]") {
  TemporaryDirectory directory;
  auto db = Database::open(directory.file("db"));
  auto users = (*db)->create_table("users", users_options);
  REQUIRE_OK(users);
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.put(*(*db)->open_table(".stride"), schema_key(users->id()), "name strin"));
  REQUIRE_OK(t.commit());
  Status s = (*db)->open_table("users").status();
  CHECK(s.code() == StatusCode::corruption);
  CHECK(s.message() == "table '.stride', key '" + schema_key(users->id()) +
                           "': schema, line 1: 'strin' is no type of a field");
}

TEST_CASE("TableSchemaTest.ColumnsOfABatch", "[TableSchemaTest]") {
  TemporaryDirectory directory;
  auto db = Database::open(directory.file("db"));
  auto points = (*db)->create_table("points", {.key_width = 4, .schema = *Schema::parse("x f64, n i32?")});
  REQUIRE_OK(points);
  constexpr uint64_t rows = 100'000;
  std::vector<uint32_t> keys(rows);
  std::vector<double> x(rows);
  std::vector<int32_t> n(rows);
  std::vector<uint64_t> valid((rows + 63) / 64);
  for (uint32_t i = 0; i < rows; ++i) {
    keys[i] = __builtin_bswap32(i);
    x[i] = i * 0.5;
    n[i] = static_cast<int32_t>(i) - 7;
    if (i % 3) valid[i / 64] |= uint64_t{1} << (i % 64);
  }
  const CellColumn columns[] = {CellColumn::of(x), CellColumn::of(n, valid.data())};
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.put(*points, Column::fixed(keys.data(), 4, rows), columns));
  // The values have one width, and another than the schema's.
  CHECK(t.put(*points, "key1", "value").message() ==
        "row 0 has a value of 5 bytes, and rows of table 'points' have 13");
  REQUIRE_OK(t.commit());
  std::vector<uint32_t> queries = {__builtin_bswap32(10), __builtin_bswap32(rows), 0};
  GetResult result;
  Snapshot snapshot = (*db)->snapshot();
  REQUIRE_OK(snapshot.get(*points, Column::fixed(queries.data(), 4, 3), &result));
  DecodedColumn xs, ns;
  REQUIRE_OK(decode_column(points->schema(), result.values, 0, &xs, &result.found));
  REQUIRE_OK(decode_column(points->schema(), result.values, 1, &ns, &result.found));
  CHECK(xs.is_there(0));
  CHECK(xs.number<double>(0) == 5.0);
  CHECK(ns.is_there(0));
  CHECK(ns.number<int32_t>(0) == 3);
  CHECK_FALSE(xs.is_there(1));
  CHECK_FALSE(ns.is_there(1));
  CHECK(xs.number<double>(2) == 0.0);
  CHECK_FALSE(ns.is_there(2));
}

}  // namespace
}  // namespace stride::test

// The text of schemas, and where cells lie in rows.
#include "storage/schema.h"

#include <random>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_schema.h"

namespace stride::test {
namespace {

TEST_CASE("SchemaTest.TextAndBack", "[SchemaTest]") {
  auto schema = Schema::parse("id u64 key, name string, score f64?\n\"the \"\"tag\"\"s\" f32[4],\n");
  REQUIRE(schema.ok());
  REQUIRE(schema->key().size() == 1);
  CHECK(schema->key()[0] == Field{"id", FieldType::u64});
  REQUIRE(schema->values().size() == 3);
  CHECK(schema->values()[0] == Field{"name", FieldType::string});
  CHECK(schema->values()[1] == Field{"score", FieldType::f64, 0, true});
  CHECK(schema->values()[2] == Field{"the \"tag\"s", FieldType::f32, 4});
  CHECK(schema->to_string() ==
        "id u64 key, name string, score f64?, \"the \"\"tag\"\"s\" f32[4]");
  CHECK(schema->find("score") == size_t{1});
  CHECK_FALSE(schema->find("id"));
  CHECK(schema->key_width() == 8);
}

TEST_CASE("SchemaTest.LayoutOfARow", "[SchemaTest]") {
  auto schema = Schema::parse("a i16, b string?, c f64?, d bytes[3], e bytes, f uuid, g bool?");
  REQUIRE(schema.ok());
  CHECK_FALSE(schema->is_fixed());
  CHECK(schema->offset(0) == 0);
  CHECK(schema->offset(2) == 2);
  CHECK(schema->offset(3) == 10);
  CHECK(schema->offset(5) == 13);
  CHECK(schema->offset(6) == 29);
  CHECK(schema->fixed_bytes() == 31);  // and one byte of bits
  CHECK(schema->valid_bit(0) == Schema::no_bit);
  CHECK(schema->valid_bit(1) == 240);
  CHECK(schema->valid_bit(2) == 241);
  CHECK(schema->valid_bit(6) == 242);
  CHECK(schema->variable() == std::vector<uint32_t>{1, 4});
}

TEST_CASE("SchemaTest.FixedRowsTakeTheirColumnsAndABitForEachNullableOne", "[SchemaTest]") {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 300; ++i) {
    Schema schema = random_schema(random, /*fixed=*/true);
    uint64_t bytes = 0, nullable = 0;
    for (const Field& field : schema.values()) {
      bytes += cell_width(field);
      nullable += field.nullable;
    }
    CHECK(schema.is_fixed());
    CHECK(schema.fixed_bytes() == bytes + (nullable + 7) / 8);
    auto again = Schema::parse(schema.to_string());
    REQUIRE(again.ok());
    CHECK(*again == schema);
  }
}

TEST_CASE("SchemaTest.WhatIsNone", "[SchemaTest]") {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"name", "schema, line 1: field 'name' has no type"},
           {"name strin", "schema, line 1: 'strin' is no type of a field"},
           {"a i32,\nb i33", "schema, line 2: 'i33' is no type of a field"},
           {"a i32 b i64", "schema, line 1: more than a name and a type"},
           {"a i32, a i64", "two columns are called 'a'"},
           {"a i32 key, a i64", "two columns are called 'a'"},
           {"\"\" i32", "a column without a name"},
           {"\"open i32", "schema, line 1: a name has no quote at its end"},
           {"a string[3]", "column 'a' is a vector of string"},
           {"a f32[0]", "schema, line 1: 'f32[0]' is no type of a field"},
           {"a f32[", "schema, line 1: 'f32[' is no type of a field"},
           {"a f64[1000000]", "column 'a' has cells of more than 1048576 bytes"},
           {"a i32? key", "key column 'a' is of type i32?, and keys are neither null nor vectors"},
           {"a i32[2] key", "key column 'a' is of type i32[2], and keys are neither null nor vectors"},
       }) {
    INFO(c.text);
    auto schema = Schema::parse(c.text);
    REQUIRE_FALSE(schema.ok());
    CHECK(schema.status().code() == StatusCode::invalid_argument);
    CHECK(schema.status().message() == c.message);
  }
  CHECK_FALSE(Schema::make(std::vector<Field>(max_fields + 1, {"a", FieldType::i8})).ok());
}

TEST_CASE("SchemaTest.AnyTextIsASchemaOrAnError", "[SchemaTest]") {
  std::mt19937_64 random(seed());
  const std::string alphabet = "ai3264 ,\n\"?[]keystrng\0\xFF";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (uint64_t n = random() % 24; n; --n) text += alphabet[random() % alphabet.size()];
    auto schema = Schema::parse(text);
    if (!schema.ok()) continue;
    auto again = Schema::parse(schema->to_string());
    REQUIRE(again.ok());
    CHECK(*again == *schema);
  }
}

}  // namespace
}  // namespace stride::test

// Key columns in bulk, beside keys that are made one at a time.
#include "engine/key_columns.h"

#include <random>

#include "storage/key_format.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_schema.h"

namespace stride::test {
namespace {

// Cells of key columns, in memory as Arrow has them.
struct KeyCellMemory {
  std::string data;
  std::vector<uint64_t> offsets = {0};
  uint64_t size = 0, width = 0, distance = 0;

  // pad: bytes between cells of one width.
  KeyCellMemory(const Field& field, const std::vector<std::string>& cells, size_t pad)
      : size(cells.size()), width(cell_width(field)), distance(width + pad) {
    for (const std::string& cell : cells) {
      data += cell + std::string(width ? pad : 0, '?');
      offsets.push_back(data.size());
    }
  }
  CellColumn column() const {
    if (!width) return CellColumn::variable(data.data(), offsets.data(), size);
    CellColumn column = CellColumn::fixed(data.data(), static_cast<uint32_t>(width), size);
    column.stride = distance;
    return column;
  }
};

Schema random_key(std::mt19937_64& random) {
  for (;;) {
    std::vector<Field> key;
    const Schema any = random_schema(random, random() % 2);
    for (Field field : any.values()) {
      field.nullable = false;
      if (!field.is_vector() && key.size() < 4) key.push_back(field);
    }
    if (key.empty()) continue;
    return *Schema::make({}, key);
  }
}

TEST_CASE("KeyColumnsTest.KeysAreThoseOfOneAtATime", "[KeyColumnsTest]") {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 200; ++i) {
    const Schema schema = random_key(random);
    const std::vector<Field>& fields = schema.key();
    CAPTURE(schema.to_string());
    const uint64_t rows = random() % 5 ? random() % 60 : 0;
    std::vector<std::vector<std::string>> cells(fields.size());
    std::vector<KeyCellMemory> memory;
    for (size_t c = 0; c < fields.size(); ++c) {
      Field field = fields[c];
      for (uint64_t r = 0; r < rows; ++r) cells[c].push_back(random_cell(field, random).value());
      memory.emplace_back(field, cells[c], random() % 2 ? random() % 9 : 0);
    }
    std::vector<CellColumn> columns;
    for (const KeyCellMemory& m : memory) columns.push_back(m.column());
    EncodedKeys encoded;
    REQUIRE_OK(encode_keys(schema, columns, &encoded));
    REQUIRE(encoded.keys.size == rows);
    CHECK(encoded.keys.is_fixed() == (schema.key_width() != 0));
    KeyWriter writer(schema);
    for (uint64_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < fields.size(); ++c) writer.set(c, as_bytes(cells[c][r]));
      CHECK(as_text(encoded.keys[r]) == writer.bytes());
    }
    // And back, also where keys of one width come with offsets.
    std::vector<uint64_t> offsets;
    for (uint64_t r = 0; r <= rows; ++r) offsets.push_back(encoded.keys.begin(r));
    const KeyColumn with_offsets = Column::variable(encoded.keys.data, offsets.data(), rows);
    for (const KeyColumn& keys : {encoded.keys, with_offsets}) {
      std::vector<DecodedColumn> decoded(fields.size());
      REQUIRE_OK(decode_keys(schema, keys, decoded));
      for (size_t c = 0; c < fields.size(); ++c) {
        REQUIRE(decoded[c].size == rows);
        for (uint64_t r = 0; r < rows; ++r) CHECK(as_text(decoded[c][r]) == cells[c][r]);
      }
    }
  }
}

TEST_CASE("KeyColumnsTest.BadColumnsAreRefused", "[KeyColumnsTest]") {
  const Schema schema = *Schema::parse("id u32 key, name string key");
  const uint32_t ids[] = {1, 2};
  const uint64_t offsets[] = {0, 1, 2}, descending[] = {0, 2, 1}, valid[] = {1};
  const CellColumn id = CellColumn::of(ids), name = CellColumn::variable("ab", offsets, 2);
  EncodedKeys keys;
  auto refused = [&](std::vector<CellColumn> columns, const std::string& why) {
    const Status status = encode_keys(schema, columns, &keys);
    CHECK(status.code() == StatusCode::invalid_argument);
    INFO(status.to_string());
    CHECK(status.to_string().find(why) != std::string::npos);
  };
  refused({id}, "1 columns are given, and keys of the schema have 2");
  refused({}, "0 columns are given");
  refused({id, CellColumn::variable("ab", offsets, 1)},
          "key column 'name' has 1 rows, and the first one has 2");
  refused({CellColumn::fixed(ids, 8, 1), CellColumn::variable("ab", offsets, 1)},
          "cells of 8 bytes are given");
  refused({id, CellColumn::variable("ab", descending, 2)}, "row 1: the offsets descend");
  refused({id, CellColumn::variable("ab", offsets, 2, valid)},
          "row 1: the cell is null, and keys have none");
  REQUIRE_OK(encode_keys(schema, std::vector<CellColumn>{id, name}, &keys));

  std::vector<DecodedColumn> one(1), two(2);
  CHECK(decode_keys(schema, keys.keys, one).code() == StatusCode::invalid_argument);
  const Status damaged = decode_keys(schema, Column::fixed("abc", 3, 1), two);
  CHECK(damaged.code() == StatusCode::corruption);
  CHECK(damaged.message().find("the key of row 0 is none of the schema") == 0);
  CHECK(decode_keys(*Schema::parse("id u32 key"), Column::fixed("abcde", 5, 1), one).code() ==
        StatusCode::corruption);
}

}  // namespace
}  // namespace stride::test

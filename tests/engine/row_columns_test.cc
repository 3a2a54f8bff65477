// Columns of cells as rows and back, beside a list of cells.
#include "engine/row_columns.h"

#include <random>

#include "storage/row_format.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_schema.h"

namespace stride::test {
namespace {

// The cells of a column, in memory as Arrow has them.
struct CellMemory {
  std::string data;
  std::vector<uint64_t> offsets = {0}, valid;
  uint64_t size = 0;
  uint32_t width = 0;

  CellMemory(const Field& field, const std::vector<Cell>& cells)
      : valid((cells.size() + 63) / 64 + 1), size(cells.size()), width(cell_width(field)) {
    for (size_t i = 0; i < cells.size(); ++i) {
      // What lies under a null is anything.
      data += cells[i].value_or(std::string(width ? width : i % 3, '?'));
      offsets.push_back(data.size());
      if (cells[i]) valid[i / 64] |= uint64_t{1} << (i % 64);
    }
  }
  CellColumn column(bool nullable) const {
    const uint64_t* bits = nullable ? valid.data() : nullptr;
    return width ? CellColumn::fixed(data.data(), width, size, bits)
                 : CellColumn::variable(data.data(), offsets.data(), size, bits);
  }
};

TEST_CASE("RowColumnsTest.ColumnsComeBack", "[RowColumnsTest]") {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 60; ++i) {
    const Schema schema = random_schema(random, random() % 2);
    const auto& fields = schema.values();
    const uint64_t rows = random() % 4 ? random() % 70 : random() % 3000;
    std::vector<std::vector<Cell>> cells(fields.size());
    std::vector<CellMemory> memory;
    for (size_t c = 0; c < fields.size(); ++c) {
      for (uint64_t r = 0; r < rows; ++r) cells[c].push_back(random_cell(fields[c], random));
      memory.emplace_back(fields[c], cells[c]);
    }
    std::vector<CellColumn> columns;
    for (size_t c = 0; c < fields.size(); ++c) columns.push_back(memory[c].column(fields[c].nullable));
    EncodedRows encoded;
    REQUIRE_OK(encode_rows(schema, columns, &encoded));
    REQUIRE(encoded.rows.size == rows);
    CHECK(encoded.rows.is_fixed() == schema.is_fixed());
    // The same bytes as a row at a time.
    RowWriter writer(schema);
    for (uint64_t r = 0; r < rows; ++r) {
      writer.clear();
      for (size_t c = 0; c < fields.size(); ++c)
        if (cells[c][r]) writer.set(c, std::string_view(*cells[c][r]));
      CHECK(as_text(writer.bytes()) == as_text(encoded.rows[r]));
    }
    Bitmap found(rows);
    const bool all = random() % 2;
    for (uint64_t r = 0; r < rows; ++r)
      if (all || random() % 3) found.set(r);
    DecodedColumn decoded;
    for (size_t c = 0; c < fields.size(); ++c) {
      REQUIRE_OK(decode_column(schema, encoded.rows, c, &decoded, all ? nullptr : &found));
      REQUIRE(decoded.size == rows);
      for (uint64_t r = 0; r < rows; ++r) {
        const bool there = found[r] && cells[c][r];
        CHECK(decoded.is_there(r) == there);
        if (there) CHECK(as_text(decoded[r]) == *cells[c][r]);
      }
      const bool fixed = schema.width(c) != 0;
      if (schema.is_fixed() && rows) CHECK(decoded.data == encoded.rows.data + schema.offset(c));
      CHECK((decoded.offsets == nullptr) == fixed);
    }
  }
}

TEST_CASE("RowColumnsTest.WrongColumnsAreRefused", "[RowColumnsTest]") {
  const Schema schema = *Schema::parse("a i32, b string?");
  std::vector<int32_t> a = {1, 2};
  std::vector<int64_t> wide = {1, 2};
  std::vector<uint64_t> offsets = {0, 1, 2}, descending = {0, 2, 1}, none = {0};
  const std::string text = "xy";
  EncodedRows encoded;
  auto message = [&](std::vector<CellColumn> columns) {
    Status s = encode_rows(schema, columns, &encoded);
    CHECK(s.code() == StatusCode::invalid_argument);
    return s.message();
  };
  const auto b = CellColumn::variable(text.data(), offsets.data(), 2);
  CHECK(message({CellColumn::of(a)}) ==
        "1 columns are given, and the schema has 2: a i32, b string?");
  CHECK(message({CellColumn::of(wide), b}) ==
        "column 'a' is of type i32, and cells of 8 bytes are given");
  CHECK(message({b, b}) == "column 'a' is of type i32, and cells of any length are given");
  CHECK(message({CellColumn::of(a), CellColumn::of(a)}) ==
        "column 'b' is of type string?, and cells of 4 bytes are given");
  CHECK(message({CellColumn::of(a), CellColumn::variable(text.data(), offsets.data(), 1)}) ==
        "column 'b' has 1 rows, and column 'a' has 2");
  CHECK(message({CellColumn::of(a), CellColumn::variable(text.data(), descending.data(), 2)}) ==
        "column 'b', row 1: the offsets descend");
  CHECK(message({CellColumn::of(a, none.data()), b}) ==
        "column 'a', row 0: the cell is null, and the column has none");
}

TEST_CASE("RowColumnsTest.RowsOfAnotherSchemaAreCorruption", "[RowColumnsTest]") {
  const Schema schema = *Schema::parse("a i32, b string, c string");
  DecodedColumn decoded;
  const std::string rows = "abcd\x01xy"
                           "abcd\x09xy";
  std::vector<uint64_t> offsets = {0, 7, 14};
  const auto column = Column::variable(rows.data(), offsets.data(), 2);
  Status s = decode_column(schema, column, 1, &decoded);
  CHECK(s.code() == StatusCode::corruption);
  CHECK(s.message() == "the value of row 1 is no row of the schema a i32, b string, c string");
  REQUIRE_OK(decode_column(schema, column.slice(0, 1), 2, &decoded));
  CHECK(as_text(decoded[0]) == "y");
  // One width, and not that of the schema.
  const Schema fixed = *Schema::parse("a i32");
  CHECK(decode_column(fixed, Column::fixed(rows.data(), 7, 2), 0, &decoded).code() ==
        StatusCode::corruption);
  CHECK(decode_column(fixed, Column::fixed(rows.data(), 4, 2), 1, &decoded).code() ==
        StatusCode::invalid_argument);
}

}  // namespace
}  // namespace stride::test

// Rows of cells: byte by byte, beside a list of cells, and of damaged bytes.
#include "storage/row_format.h"

#include <random>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_schema.h"

namespace stride::test {
namespace {

std::string bytes_of(RowWriter* row) { return std::string(as_text(row->bytes())); }

TEST_CASE("RowFormatTest.ByteByByte", "[RowFormatTest]") {
  Schema schema = *Schema::parse("name string, score f32?, age u16, note string?");
  RowWriter row(schema);
  row.set(0, "Ada");
  row.set(1, 1.5);
  row.set(2, 513);
  using namespace std::string_literals;
  CHECK(bytes_of(&row) == "\x00\x00\xC0\x3F\x01\x02\x01\x03"s + "Ada");
  row.set(3, "x");
  row.set_null(1);
  CHECK(bytes_of(&row) == "\x00\x00\x00\x00\x01\x02\x02\x03"s + "Adax");
  row.clear();
  CHECK(bytes_of(&row) == std::string(8, '\0'));
  std::string long_name(300, 'n');
  row.set(0, long_name);
  CHECK(bytes_of(&row) == std::string(7, '\0') + "\xAC\x02" + long_name);
}

TEST_CASE("RowFormatTest.OneStringIsJustItsBytes", "[RowFormatTest]") {
  Schema schema = *Schema::parse("name string");
  RowWriter row(schema);
  row.set(0, "Ada");
  CHECK(bytes_of(&row) == "Ada");
}

TEST_CASE("RowFormatTest.RandomRowsAreReadAsTheyWereWritten", "[RowFormatTest]") {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 200; ++i) {
    Schema schema = random_schema(random);
    const auto& fields = schema.values();
    RowWriter writer(schema);
    RowReader reader(schema);
    for (int r = 0; r < 20; ++r) {
      std::vector<Cell> cells;  // views of it are kept
      cells.reserve(fields.size());
      writer.clear();
      for (size_t c = 0; c < fields.size(); ++c) {
        cells.push_back(random_cell(fields[c], random));
        if (cells[c]) writer.set(c, std::string_view(*cells[c]));
      }
      // A cell that is set again, or taken back, leaves nothing behind.
      for (size_t c = 0; c < fields.size(); ++c) {
        if (!fields[c].nullable || random() % 4) continue;
        cells[c] = random_cell(fields[c], random);
        if (cells[c]) {
          writer.set(c, std::string_view(*cells[c]));
        } else {
          writer.set_null(c);
        }
      }
      std::string row = bytes_of(&writer);
      REQUIRE(reader.read(as_bytes(row)));
      for (size_t c = 0; c < fields.size(); ++c) {
        CHECK(reader.is_null(c) == !cells[c].has_value());
        if (cells[c]) CHECK(as_text(reader[c]) == *cells[c]);
        if (!cells[c]) CHECK(as_text(reader[c]) == std::string(schema.width(c), '\0'));
      }
    }
  }
}

// Whatever bytes there are: they are refused, or every cell lies within them.
TEST_CASE("RowFormatTest.DamagedRowsLeadNowhere", "[RowFormatTest]") {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 5000; ++i) {
    Schema schema = random_schema(random);
    std::string row;
    if (random() % 2) {
      RowWriter writer(schema);
      row = bytes_of(&writer);
      if (!row.empty()) row[random() % row.size()] = static_cast<char>(random());
      row.resize(row.size() + random() % 9, '\xFF');
    } else {
      row.resize(random() % 40);
      for (char& c : row) c = static_cast<char>(random());
    }
    // Memory of just that size shows AddressSanitizer what is read behind.
    std::vector<char> memory(row.begin(), row.end());
    RowReader reader(schema);
    Bytes bytes = {reinterpret_cast<const std::byte*>(memory.data()), memory.size()};
    if (!reader.read(bytes)) continue;
    for (size_t c = 0; c < schema.values().size(); ++c) {
      const Bytes cell = reader[c];
      CHECK(cell.data() >= bytes.data());
      CHECK(cell.data() + cell.size() <= bytes.data() + bytes.size());
    }
  }
}

}  // namespace
}  // namespace stride::test

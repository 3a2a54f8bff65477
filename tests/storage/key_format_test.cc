// Keys of columns: byte by byte, their order beside that of tuples, and of damaged bytes.
#include "storage/key_format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "storage/integer_key.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_schema.h"

namespace stride::test {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

TEST_CASE("KeyFormatTest.ByteByByte", "[KeyFormatTest]") {
  CHECK(Key<std::string_view, int16_t>::encode("n\0z"sv, 1999) == "n\0\xFFz\0\0\x87\xCF"s);
  CHECK(Key<uint16_t, std::string_view>::encode(258, "a\0b"sv) == "\x01\x02"s + "a\0b"s);
  CHECK(Key<bool>::encode(true) == "\x01");
  CHECK(Key<float>::encode(1.0f) == "\xBF\x80\0\0"s);
  CHECK(Key<double>::encode(-0.0) == "\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);
  const int64_t number = -5;
  const uint64_t as_key = i64_key(number);
  CHECK(Key<int64_t>::encode(number) ==
        std::string_view(reinterpret_cast<const char*>(&as_key), 8));
}

template <class T>
int total_order(T a, T b) {
  // Floats are ordered by sign, then by the bits.
  if constexpr (std::is_floating_point_v<T>) {
    if (std::signbit(a) != std::signbit(b)) return std::signbit(a) ? -1 : 1;
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const auto x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
    const int c = x < y ? -1 : x > y;
    return std::signbit(a) ? -c : c;
  } else {
    return a < b ? -1 : a > b;
  }
}

// Bytes as a key's, as numbers where the field has them.
int compare_cells(const Field& field, const std::string& a, const std::string& b) {
  if (width_of(field.type) == 0 || field.type == FieldType::uuid) return a.compare(b) < 0 ? -1 : a != b;
  int result = 0;
  with_number_of(field.type, [&](auto number) {
    auto other = number;
    std::memcpy(&number, a.data(), sizeof number);
    std::memcpy(&other, b.data(), sizeof other);
    result = total_order(number, other);
  });
  return result;
}

Schema random_key_schema(std::mt19937_64& random) {
  std::vector<Field> key(1 + random() % 4);
  for (size_t i = 0; i < key.size(); ++i) {
    key[i].name = "k" + std::to_string(i);
    key[i].type = static_cast<FieldType>(random() % field_types);
    if (key[i].type == FieldType::bytes && random() % 2) key[i].count = 1 + random() % 4;
  }
  return *Schema::make({}, std::move(key));
}

// Few different ones, with zeros and the ends of ranges among them.
std::string random_key_cell(const Field& field, std::mt19937_64& random) {
  const uint32_t width = cell_width(field);
  std::string cell(width ? width : random() % 4, '\0');
  for (char& c : cell) c = "\0\xFF\0\x80\x7F\x01"[random() % 6];
  if (random() % 2 && width)
    for (char& c : cell) c = static_cast<char>(random());
  return cell;
}

TEST_CASE("KeyFormatTest.KeysSortAsTheirColumns", "[KeyFormatTest]") {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 300; ++i) {
    const Schema schema = random_key_schema(random);
    const auto& fields = schema.key();
    struct Entry {
      std::vector<std::string> cells;
      std::string key;
    };
    std::vector<Entry> entries(40);
    KeyWriter writer(schema);
    KeyReader reader(schema);
    for (Entry& entry : entries) {
      for (size_t c = 0; c < fields.size(); ++c) {
        entry.cells.push_back(random_key_cell(fields[c], random));
        writer.set(c, as_bytes(entry.cells[c]));
      }
      entry.key = writer.bytes();
      if (schema.key_width()) CHECK(entry.key.size() == schema.key_width());
      for (size_t c = 0; c <= fields.size(); ++c)
        CHECK(entry.key.starts_with(writer.beginning(c)));
      REQUIRE(reader.read(as_bytes(entry.key)));
      for (size_t c = 0; c < fields.size(); ++c) CHECK(as_text(reader[c]) == entry.cells[c]);
    }
    for (const Entry& a : entries)
      for (const Entry& b : entries) {
        int expected = 0;
        for (size_t c = 0; c < fields.size() && expected == 0; ++c)
          expected = compare_cells(fields[c], a.cells[c], b.cells[c]);
        const int is = compare(as_bytes(a.key), as_bytes(b.key));
        CHECK((is < 0 ? -1 : is > 0) == expected);
      }
  }
}

TEST_CASE("KeyFormatTest.TypedKeysComeBack", "[KeyFormatTest]") {
  std::mt19937_64 random(seed());
  using Mixed = Key<int32_t, std::string_view, double, uint8_t, std::string_view>;
  const Schema schema =
      *Schema::parse("a i32 key, b bytes key, c f64 key, d u8 key, e string key");
  for (int i = 0; i < 2000; ++i) {
    std::string b = random_key_cell({"", FieldType::bytes}, random);
    std::string e = random_key_cell({"", FieldType::bytes}, random);
    const auto a = static_cast<int32_t>(random());
    const double c = static_cast<double>(random()) / 3 - 1e18;
    const auto d = static_cast<uint8_t>(random());
    const std::string key = Mixed::encode(a, b, c, d, e);
    KeyWriter writer(schema);
    writer.set(0, a);
    writer.set(1, b);
    writer.set(2, c);
    writer.set(3, d);
    writer.set(4, e);
    CHECK(writer.bytes() == key);
    auto parts = Mixed::decode(as_bytes(key));
    REQUIRE(parts);
    CHECK(*parts == std::tuple(a, b, c, d, e));
    CHECK_FALSE(Key<int32_t>::decode(as_bytes(key)));
    CHECK_FALSE(Mixed::decode(as_bytes(key).first(random() % 13)));
  }
}

TEST_CASE("KeyFormatTest.AnyBytesAreAKeyOrNone", "[KeyFormatTest]") {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 20000; ++i) {
    const Schema schema = random_key_schema(random);
    std::string text(random() % 24, '\0');
    for (char& c : text) c = "\0\xFF\x01z"[random() % 4];
    const std::vector<char> memory(text.begin(), text.end());
    const Bytes bytes = {reinterpret_cast<const std::byte*>(memory.data()), memory.size()};
    KeyReader reader(schema);
    if (!reader.read(bytes)) continue;
    // What is a key is the one of its columns.
    KeyWriter writer(schema);
    for (size_t c = 0; c < schema.key().size(); ++c) writer.set(c, reader[c]);
    CHECK(writer.bytes() == text);
  }
}

}  // namespace
}  // namespace stride::test

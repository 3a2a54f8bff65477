#include "storage/column.h"

#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/segments.h"

namespace stride {
namespace {

TEST_CASE("ColumnTest.FixedAndVariableRows", "[ColumnTest]") {
  std::string bytes = "aabbcc";
  Column fixed = Column::fixed(bytes.data(), 2, 3);
  CHECK(as_text(fixed[1]) == "bb");
  CHECK(fixed.bytes() == 6u);
  CHECK(as_text(fixed.slice(1, 2)[1]) == "cc");
  uint64_t offsets[] = {0, 1, 1, 6};
  Column variable = Column::variable(bytes.data(), offsets, 3);
  CHECK(as_text(variable[1]) == "");
  CHECK(as_text(variable[2]) == "abbcc");
  CHECK(variable.slice(2, 1).bytes() == 5u);
}

TEST_CASE("ColumnTest.KeysCompareAsUnsignedBytes", "[ColumnTest]") {
  CHECK(compare(as_bytes("a"), as_bytes("b")) < 0);
  CHECK(compare(as_bytes("a"), as_bytes("aa")) < 0);
  CHECK(compare(as_bytes("\xff"), as_bytes("a")) > 0);
  CHECK(compare(Bytes{}, Bytes{}) == 0);
  CHECK(compare(Bytes{}, as_bytes(std::string_view("\0", 1))) < 0);
}

TEST_CASE("ColumnTest.PackedOffsetsOfEveryWidth", "[ColumnTest]") {
  std::mt19937_64 random(test::seed());
  std::vector<std::string> rows(1000);
  for (std::string& row : rows) row.assign(random() % 300, static_cast<char>(random()));
  for (uint32_t width : {2u, 4u, 8u}) {
    test::Packed packed = test::pack(rows, width);
    PackedColumn column{reinterpret_cast<const std::byte*>(packed.data.data()),
                        packed.data.size(),
                        rows.size(),
                        0,
                        false,
                        {packed.bases.data(), packed.deltas.data(), width}};
    for (size_t i = 0; i < rows.size(); ++i) REQUIRE(as_text(column[i]) == rows[i]);
  }
}

TEST_CASE("ColumnTest.DamagedOffsetsStayInside", "[ColumnTest]") {
  std::string data(100, 'x');
  uint64_t bases[] = {~uint64_t{0} - 50};
  uint16_t deltas[] = {0, 100, 10, 65535, 60};
  PackedColumn column{reinterpret_cast<const std::byte*>(data.data()),
                      data.size(),
                      4,
                      0,
                      false,
                      {bases, deltas, 2}};
  for (uint64_t i = 0; i < 4; ++i) {
    Bytes row = column[i];
    CHECK(row.data() >= column.data);
    CHECK(row.data() + row.size() <= column.data + data.size());
  }
}

TEST_CASE("BitmapTest.CountsWhatIsSet", "[BitmapTest]") {
  Bitmap bits(130);
  CHECK(bits.count() == 0u);
  for (uint64_t i : {0, 63, 64, 129}) bits.set(i);
  CHECK(bits.count() == 4u);
  CHECK(bits[129]);
  CHECK_FALSE(bits[128]);
}

}  // namespace
}  // namespace stride

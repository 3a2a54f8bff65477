// Keys that are made of columns on the device, and rows of one width that come back in place there:
// on a fake device, and on a real one where there is one.
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "engine/key_columns.h"
#include "storage/integer_key.h"
#include "tests/engine/device/residency_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class DeviceRowsTest : public ResidencyTest {
 public:
  std::unique_ptr<BackendMemory> copy_in(const void* data, uint64_t bytes) {
    auto memory = device_->allocate(bytes + 8);
    CHECK_OK(memory);
    if (data) CHECK_OK(device_->copy((*memory)->data(), data, bytes));
    return std::move(*memory);
  }
  template <class T>
  std::vector<T> copy_out(const BackendMemory& memory, uint64_t n) {
    std::vector<T> values(n);
    CHECK_OK(device_->copy(values.data(), memory.data(), n * sizeof(T)));
    return values;
  }
  bool is_all_there() const {
    return setting_.memory == all_memory && setting_.values == ValuePlacement::device;
  }
};

TEST_CASE_METHOD(DeviceRowsTest, "DeviceRowsTest.KeysAreThoseOfTheHost", "[DeviceRowsTest]") {
  if (setting_.memory == 0) return;
  std::mt19937_64 random(seed());
  auto db = open(directory_.file("db"));
  const Table table = *db->create_table(
      "t", {.schema = *Schema::parse("a i16 key, b bool key, c f64 key, d bytes[3] key, e i64 key, "
                                     "f f32 key, g u32 key, h date key, i u64 key")});
  const std::vector<Field>& fields = table.schema().key();
  for (uint64_t rows : {uint64_t{0}, uint64_t{1}, uint64_t{1000}}) {
    std::vector<CellColumn> on_host, on_device;
    std::vector<std::vector<char>> cells(fields.size());
    std::vector<std::unique_ptr<BackendMemory>> copies;
    for (size_t i = 0; i < fields.size(); ++i) {
      // Cells lie apart, so that most are not aligned.
      const uint32_t width = cell_width(fields[i]), distance = width + (i % 3 ? 5 : 0);
      cells[i].resize(rows * distance + 1);
      for (char& byte : cells[i]) byte = static_cast<char>(random());
      copies.push_back(copy_in(cells[i].data(), cells[i].size()));
      CellColumn column = CellColumn::fixed(cells[i].data(), width, rows);
      column.stride = distance;
      on_host.push_back(column);
      column.data = copies.back()->data();
      on_device.push_back(column);
    }
    EncodedKeys expected;
    REQUIRE_OK(encode_keys(table.schema(), on_host, &expected));
    auto keys = copy_in(nullptr, rows * table.key_width());
    REQUIRE_OK(db->snapshot().make_keys_device(table, on_device, keys->data(), nullptr));
    const auto made = copy_out<std::byte>(*keys, rows * table.key_width());
    CHECK((made.empty() || std::memcmp(made.data(), expected.keys.data, made.size()) == 0));
    if (rows == 0) continue;
    const uint64_t nulls = 0;
    on_device[1].valid = &nulls;
    CHECK(db->snapshot().make_keys_device(table, on_device, keys->data(), nullptr).code() ==
          StatusCode::invalid_argument);
    on_device[1].valid = nullptr;
    on_device.pop_back();
    CHECK(db->snapshot().make_keys_device(table, on_device, keys->data(), nullptr).code() ==
          StatusCode::invalid_argument);
  }
}

TEST_CASE_METHOD(DeviceRowsTest, "DeviceRowsTest.RowsComeBackInPlace", "[DeviceRowsTest]") {
  std::mt19937_64 random(seed());
  for (const char* text : {"id i64 key, v f32[3]", "id i64 key, v u8[5]", "id i64 key, v f64"}) {
    TemporaryDirectory directory;
    auto db = open(directory.file("db"));
    const Table table = *db->create_table("t", {.schema = *Schema::parse(text)});
    const uint32_t width = table.schema().fixed_bytes();
    std::map<int64_t, std::string> model;
    for (int commit = 0; commit < 4; ++commit) {
      WriteTransaction t = db->begin();
      for (int i = 0; i < 3000; ++i) {
        const int64_t id = static_cast<int64_t>(random() % 8000) - 4000;
        const uint64_t key = i64_key(id);
        const Bytes bytes(reinterpret_cast<const std::byte*>(&key), 8);
        if (random() % 5 == 0) {
          REQUIRE_OK(t.erase(table, bytes));
          model.erase(id);
          continue;
        }
        std::string value(width, 0);
        for (char& c : value) c = static_cast<char>(random());
        REQUIRE_OK(t.put(table, bytes, as_bytes(value)));
        model[id] = value;
      }
      REQUIRE_OK(t.commit());
    }
    std::vector<int64_t> ids;
    for (uint64_t i = 0; i < many_queries; ++i)
      ids.push_back(static_cast<int64_t>(random() % 9000) - 4500);
    auto ids_there = copy_in(ids.data(), ids.size() * 8);
    auto keys = copy_in(nullptr, ids.size() * 8), values = copy_in(nullptr, ids.size() * width),
         there = copy_in(nullptr, ids.size());
    CellColumn column = CellColumn::fixed(ids_there->data(), 8, ids.size());
    const Snapshot snapshot = db->snapshot();
    if (setting_.memory > 0)
      REQUIRE_OK(snapshot.make_keys_device(table, {&column, 1}, keys->data(), nullptr));
    DeviceValues out;
    out.values = values->data();
    out.width = width;
    out.there = reinterpret_cast<uint8_t*>(there->data());
    const Status status =
        snapshot.get_device(table, Column::fixed(keys->data(), 8, ids.size()), out, nullptr);
    if (!status.ok()) {
      CHECK_MESSAGE(status.code() == StatusCode::unavailable, status.to_string());
      CHECK_FALSE(is_all_there());
      continue;
    }
    const auto rows = copy_out<char>(*values, ids.size() * width);
    const auto found = copy_out<uint8_t>(*there, ids.size());
    for (uint64_t i = 0; i < ids.size(); ++i) {
      const auto expected = model.find(ids[i]);
      REQUIRE_MESSAGE(found[i] == (expected != model.end()), i);
      const std::string row(rows.data() + i * width, width);
      REQUIRE_MESSAGE(row == (found[i] ? expected->second : std::string(width, 0)), i);
    }
  }
}

}  // namespace
}  // namespace stride::test

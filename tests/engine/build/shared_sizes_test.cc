// How large tables are whose segments keep equal values once.
#include <filesystem>
#include <fstream>
#include <optional>

#include "storage/segment_format.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

// Tables of 1,000,000 rows and more, in which numbers take 1, 2 and 4 bytes.
class SharedSizesTest {
 protected:
  // Keys of 8 bytes; row r has value r % distinct.
  void load(uint64_t rows, uint64_t distinct, uint64_t bytes, bool share) {
    std::vector<uint64_t> keys(rows);
    std::string values;
    values.reserve(rows * bytes);
    for (uint64_t i = 0; i < rows; ++i) {
      keys[i] = __builtin_bswap64(i * 1000);
      values += value(i % distinct, bytes);
    }
    db_.reset();
    directory_.emplace();
    auto db = Database::open(directory_->path(), {.memtable_bytes = 0});
    REQUIRE_OK(db);
    db_ = std::move(*db);
    auto table = db_->create_table("t", {.key_width = 8, .share_equal_values = share});
    REQUIRE_OK(table);
    table_ = *table;
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put_view(table_, Column::fixed(keys.data(), 8, rows),
                          Column::fixed(values.data(), static_cast<uint32_t>(bytes), rows)));
    REQUIRE_OK(t.commit());
  }
  static std::string value(uint64_t number, uint64_t bytes) {
    std::string v = std::to_string(number) + "-";
    v.resize(bytes, 'x');
    return v;
  }
  SegmentReport report() {
    auto segments = db_->segments(table_);
    CHECK_OK(segments);
    CHECK(segments->size() == 1u);
    return segments->front();
  }

  std::optional<TemporaryDirectory> directory_;
  std::unique_ptr<Database> db_;
  Table table_;
};

TEST_CASE_METHOD(SharedSizesTest, "SharedSizesTest.AMillionRowsOfThreeValues",
                 "[SharedSizesTest]") {
  load(1'000'000, 3, 200, /*share=*/true);
  SegmentReport shared = report();
  CHECK(shared.distinct_values == 3u);
  CHECK(shared.value_bytes == 600u);
  CHECK(shared.fixed_values);
  CHECK(shared.saved_bytes == 200'000'000u - 600 - 1'000'000);
  CHECK(shared.bytes_on_disk < 10'000'000u);
  TableStatistics table = db_->tables()[0];
  CHECK(table.share_equal_values);
  CHECK(table.rows == 1'000'000u);
  CHECK(table.stored_values == 3u);
  CHECK(table.saved_bytes == shared.saved_bytes);
  // Slices of keys, copies of values.
  auto scan = db_->snapshot().scan(table_);
  REQUIRE_OK(scan);
  uint64_t row = 0;
  for (ScanBatch batch; scan->next(&batch); row += batch.keys.size) {
    REQUIRE(batch.values.is_fixed());
    for (uint64_t i = 0; i < batch.keys.size; i += 97)
      REQUIRE(text(batch.values[i]) == value((row + i) % 3, 200));
  }
  CHECK(row == 1'000'000u);
  REQUIRE_OK(db_->verify());

  load(1'000'000, 3, 200, /*share=*/false);
  SegmentReport plain = report();
  CHECK(plain.distinct_values == 0u);
  CHECK(plain.saved_bytes == 0u);
  CHECK(db_->tables()[0].stored_values == 1'000'000u);
  // Padding to multiples of 64, and 8 bytes a block of 64 KiB; beside them 4 a page of 4 KiB.
  const auto saved = static_cast<double>(shared.saved_bytes);
  CHECK_THAT(static_cast<double>(plain.bytes_on_disk - shared.bytes_on_disk),
             Catch::Matchers::WithinAbs(saved + saved / 1024, 40'000));
}

TEST_CASE_METHOD(SharedSizesTest, "SharedSizesTest.NumbersOfEveryWidth", "[SharedSizesTest]") {
  for (auto [distinct, width] : {std::pair{256, 1}, {257, 2}, {65536, 2}, {65537, 4}}) {
    load(300'000, distinct, 50, /*share=*/true);
    SegmentReport shared = report();
    CHECK(shared.distinct_values == static_cast<uint64_t>(distinct));
    CHECK(shared.saved_bytes == (300'000u - distinct) * 50 - 300'000 * width);
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < 300'000; i += 37) keys.push_back(__builtin_bswap64(i * 1000));
    GetResult got;
    REQUIRE_OK(db_->snapshot().get(table_, Column::fixed(keys.data(), 8, keys.size()), &got));
    for (uint64_t i = 0; i < keys.size(); ++i)
      REQUIRE(text(got.values[i]) == value(i * 37 % distinct, 50));
  }
}

// The numbers would take as much as what they save.
TEST_CASE_METHOD(SharedSizesTest, "SharedSizesTest.NothingIsSharedWhereThatSavesNothing",
                 "[SharedSizesTest]") {
  for (auto [distinct, bytes] : {std::pair{60'000, 60}, {100, 1}, {48'000, 6}}) {
    load(60'000, distinct, bytes, /*share=*/true);
    SegmentReport plain = report();
    CHECK_MESSAGE(plain.distinct_values == 0u, distinct);
    CHECK(plain.saved_bytes == 0u);
    CHECK(plain.value_bytes == 60'000u * bytes);
    // Any version reads such a segment.
    for (const auto& entry : fs::directory_iterator(directory_->path())) {
      if (entry.path().extension() != ".seg") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      SegmentHeader header;
      file.read(reinterpret_cast<char*>(&header), sizeof header);
      CHECK(header.format_version == segment_version_plain);
    }
  }
}

TEST_CASE_METHOD(SharedSizesTest, "SharedSizesTest.ValuesOfSeveralRunsBecomeOne",
                 "[SharedSizesTest]") {
  load(20'000, 2, 100, /*share=*/true);
  uint64_t of_one_run = report().bytes_on_disk;
  for (int run = 1; run < 4; ++run) {
    WriteTransaction t = db_->begin();
    for (uint64_t i = 0; i < 500; ++i) {
      uint64_t k = __builtin_bswap64(i * 1000 + static_cast<uint64_t>(run));
      REQUIRE_OK(
          t.put(table_, Bytes(reinterpret_cast<std::byte*>(&k), 8), as_bytes(value(i % 3, 100))));
    }
    REQUIRE_OK(t.commit());
  }
  CHECK(db_->tables()[0].stored_values == 2u + 3 * 3);
  REQUIRE_OK(db_->compact());
  CHECK(report().distinct_values == 3u);
  CHECK(report().bytes_on_disk < of_one_run + 40'000);
}

// Where memory is short a run is cut into segments, by what they are going to have; and a batch of
// a scan holds no more than a few values.
TEST_CASE_METHOD(SharedSizesTest, "SharedSizesTest.LargeValuesOfManyRows", "[SharedSizesTest]") {
  constexpr uint64_t rows = 200, bytes = 1 << 20;
  directory_.emplace();
  Options options;
  options.memtable_bytes = 0;
  options.memory_limit_bytes = 32 << 20;
  auto db = Database::open(directory_->path(), options);
  REQUIRE_OK(db);
  auto table = (*db)->create_table("t", {.share_equal_values = true});
  REQUIRE_OK(table);
  const std::string large(bytes, 'l');
  const Column value = Column::fixed(large.data(), bytes, 1);
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < 2 * rows; ++i) keys.push_back(std::to_string(10000 + i));
  for (uint64_t run = 0; run < 2; ++run) {
    WriteTransaction t = (*db)->begin();
    for (uint64_t i = run; i < 2 * rows; i += 2)
      REQUIRE_OK(t.put_view(*table, Column::fixed(keys[i].data(), 5, 1), value));
    REQUIRE_OK(t.commit());
  }
  uint64_t segments = (*db)->tables()[0].segments;
  CHECK(segments > 10u);  // staged rows have their values each
  CHECK((*db)->tables()[0].stored_values == segments);
  REQUIRE_OK((*db)->compact());
  CHECK((*db)->tables()[0].segments <= 3u);
  CHECK((*db)->tables()[0].bytes_on_disk <= 4 * bytes);
  auto scan = (*db)->snapshot().scan(*table);
  uint64_t seen = 0;
  for (ScanBatch batch; scan->next(&batch); seen += batch.keys.size) {
    CHECK(batch.keys.size <= 5u);
    for (uint64_t i = 0; i < batch.keys.size; ++i) REQUIRE(text(batch.values[i]) == large);
  }
  CHECK(seen == 2 * rows);
}

}  // namespace
}  // namespace stride::test

// Cold reads of segments that keep equal values once.
#include "engine/read/cold_read.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/cold_files.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/segments.h"

namespace stride::test {
namespace {

// What a batch needs is brought in three steps: numbers, where the values lie, the values.
class SharedColdReadTest {
 protected:
  const bool fixed_ = GENERATE(false, true);
  RunsWith name_{fixed_ ? "fixed" : "variable"};

  static constexpr uint64_t rows = smaller_under_sanitizers(40000, 10000);
  static constexpr uint64_t distinct = smaller_under_sanitizers(3000, 1000);

  SharedColdReadTest() {
    std::vector<Row> list;
    for (uint64_t i = 0; i < rows; ++i)
      list.push_back({std::to_string(100000 + i), value(i < distinct ? i : random_() % distinct)});
    SegmentOptions options{.fixed_keys = true, .fixed_values = fixed_, .delta_width = 4};
    options.keep_resident = false;
    options.share_values = true;
    CHECK_OK(write_segment(files_, "s", 1, list, options));
  }
  std::string value(uint64_t number) const {
    std::string v = std::to_string(number) + ":";
    v.resize(fixed_ ? 500 : 400 + number % 200, 'v');
    return v;
  }
  std::shared_ptr<Segment> open(bool checked) {
    auto segment = Segment::open(files_, "s", 1);
    CHECK_OK(segment);
    Bytes file = (*segment)->mapping()->bytes();
    for (uint64_t at = 0; checked && at < file.size(); at += segment_block_bytes)
      (void)(*segment)->ensure(file.data() + at, 1);
    CHECK((*segment)->intact() == checked);
    files_.log().set_warm(false);
    (void)files_.log().take_fetches();
    return *segment;
  }
  std::vector<Location> random_rows(uint64_t n) {
    std::vector<Location> list;
    for (uint64_t i = 0; i < n; ++i) list.push_back({0, static_cast<uint32_t>(random_() % rows)});
    list.push_back({Location::absent, Location::absent});
    return list;
  }
  bool there(const Segment& segment, const void* p, uint64_t bytes) {
    auto first =
        static_cast<uint64_t>(static_cast<const std::byte*>(p) - segment.mapping()->bytes().data());
    for (uint64_t at = first / page_bytes * page_bytes; at < first + bytes; at += page_bytes)
      if (!files_.log().has(at)) return false;
    return true;
  }
  bool number_there(const Segment& segment, uint64_t row) {
    const ValueRows values = segment.values();
    return there(segment, static_cast<const std::byte*>(values.numbers) + row * values.number_width,
                 values.number_width);
  }
  bool row_there(const Segment& segment, uint64_t row) {
    const ValueRows values = segment.values();
    if (!number_there(segment, row)) return false;
    uint64_t at = values.position(row);
    if (!values.column.fixed) {
      const PackedOffsets& o = values.column.offsets;
      auto* deltas = static_cast<const std::byte*>(o.deltas);
      if (!there(segment, deltas + at * o.delta_width, 2 * o.delta_width) ||
          !there(segment, o.bases + (at >> PackedOffsets::group_bits), 8))
        return false;
    }
    return there(segment, values[row].data(), values[row].size());
  }

  MemoryFileSystem memory_;
  ColdFiles files_{memory_};
  std::mt19937_64 random_{seed()};
};

TEST_CASE_METHOD(SharedColdReadTest, "SharedColdReadTest.BringsAllThatRowsNeed",
                 "[SharedColdReadTest]") {
  for (uint64_t whole_bytes : {uint64_t{1}, uint64_t{1} << 30}) {
    for (bool checked : {true, false}) {
      auto segment = open(checked);
      std::vector<Location> list = random_rows(50);
      ColdReader cold({segment.get()}, {.gap_bytes = 0, .whole_bytes = whole_bytes});
      uint64_t end = 0;
      REQUIRE_OK(cold.prefetch_rows(list, 0, &end));
      REQUIRE(end == list.size());
      for (Location row : list)
        if (row.found()) REQUIRE_MESSAGE(row_there(*segment, row.rank), row.rank);
    }
  }
}

TEST_CASE_METHOD(SharedColdReadTest, "SharedColdReadTest.WindowsEndAtWholeTasks",
                 "[SharedColdReadTest]") {
  auto segment = open(/*checked=*/true);
  std::vector<Location> list = random_rows(9000);
  ColdReader cold({segment.get()},
                  {.window_bytes = 64 << 10, .gap_bytes = 0, .grain_rows = 64, .whole_bytes = 1});
  uint64_t windows = 0;
  for (uint64_t begin = 0, end = 0; begin < list.size(); begin = end, ++windows) {
    files_.log().set_warm(false);
    REQUIRE_OK(cold.prefetch_rows(list, begin, &end));
    REQUIRE(end > begin);
    REQUIRE((end == list.size() || end % 64 == 0));
    for (uint64_t i = begin; i < end; ++i)
      if (list[i].found()) REQUIRE(row_there(*segment, list[i].rank));
  }
  CHECK(windows > 1u);
}

TEST_CASE_METHOD(SharedColdReadTest, "SharedColdReadTest.PlacesAreBroughtWithoutTheValues",
                 "[SharedColdReadTest]") {
  auto segment = open(/*checked=*/true);
  std::vector<Location> list = random_rows(20);
  ColdReader cold({segment.get()}, {.gap_bytes = 0, .whole_bytes = 1});
  uint64_t end = 0;
  REQUIRE_OK(cold.prefetch_positions(list, 0, &end));
  REQUIRE(end == list.size());
  for (Location row : list)
    if (row.found()) REQUIRE(number_there(*segment, row.rank));
  CHECK_FALSE(row_there(*segment, list[0].rank));
}

TEST_CASE_METHOD(SharedColdReadTest, "SharedColdReadTest.WhatCannotBeReadFails",
                 "[SharedColdReadTest]") {
  auto segment = open(/*checked=*/true);
  std::vector<Location> list = random_rows(100);
  const ValueRows values = segment->values();
  uint64_t row = list[50].rank;
  std::vector<const void*> needed = {
      static_cast<const std::byte*>(values.numbers) + row * values.number_width,
      values[row].data()};
  if (!values.column.fixed)
    needed.push_back(static_cast<const std::byte*>(values.column.offsets.deltas) +
                     values.position(row) * values.column.offsets.delta_width);
  for (const void* p : needed) {
    files_.log().set_warm(false);
    auto bad = static_cast<uint64_t>(static_cast<const std::byte*>(p) -
                                     segment->mapping()->bytes().data());
    files_.log().set_fault([=](FileRange range) {
      bool hit = range.offset <= bad && bad < range.offset + range.bytes;
      return hit ? Status(StatusCode::io_error, "on order") : Status();
    });
    ColdReader cold({segment.get()}, {.whole_bytes = 1});
    uint64_t end = 0;
    CHECK(cold.prefetch_rows(list, 0, &end).code() == StatusCode::io_error);
    files_.log().set_fault({});
  }
}

}  // namespace
}  // namespace stride::test

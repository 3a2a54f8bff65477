#include "storage/segment.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/segments.h"
#include "tests/support/test_threads.h"

namespace stride {
namespace {

using test::Row;
using test::SegmentOptions;

class SegmentTest {
 protected:
  SegmentTest() { REQUIRE_OK(fs_.create_directory("db")); }

  static void expect_rows(Segment& segment, const std::vector<Row>& rows) {
    std::vector<Row> read;
    Status status = test::read_rows(segment, &read);
    REQUIRE_OK(status);
    CHECK(read == rows);
    CHECK(segment.rows() == rows.size());
    CHECK(as_text(segment.first_key()) == (rows.empty() ? "" : rows.front().key));
    CHECK(as_text(segment.last_key()) == (rows.empty() ? "" : rows.back().key));
    CHECK_OK(segment.verify());
    CHECK(segment.intact());
    CHECK(segment.guard() == nullptr);
  }

  // Written, as it stays in memory; and read back.
  void round_trip(const std::vector<Row>& rows, const SegmentOptions& options = {}) {
    std::string path = "db/" + std::to_string(++id_) + ".seg";
    auto written = test::write_segment(fs_, path, id_, rows, options);
    REQUIRE_OK(written);
    CHECK(((*written)->intact() || !options.keep_resident));
    CHECK((*written)->bytes_on_disk() % 4096 == 0u);
    CHECK((*written)->resident_bytes() ==
          (options.keep_resident ? (*written)->bytes_on_disk() : 0));
    expect_rows(**written, rows);
    auto opened = Segment::open(fs_, path, id_);
    REQUIRE_OK(opened);
    CHECK((*opened)->resident_bytes() == 0u);
    CHECK((*opened)->bytes_on_disk() == (*written)->bytes_on_disk());
    expect_rows(**opened, rows);
    CHECK(as_text((*opened)->tree()) == options.tree);
  }

  std::vector<Row> random_rows(size_t n, size_t max_key, size_t max_value) {
    std::map<std::string, Row> rows;
    for (size_t i = 0; i < n; ++i) {
      Row row;
      for (size_t k = random_() % (max_key + 1); k > 0; --k) {
        row.key += static_cast<char>(random_() % 4 * 85);
      }
      row.kind = EntryKind{static_cast<uint8_t>(random_() % 2)};
      if (row.kind != EntryKind::tombstone) {
        row.value.assign(random_() % (max_value + 1), static_cast<char>(random_()));
      }
      rows[row.key] = row;
    }
    std::vector<Row> sorted;
    for (auto& [key, row] : rows) sorted.push_back(std::move(row));
    return sorted;
  }

  MemoryFileSystem fs_;
  std::mt19937_64 random_{test::seed()};
  uint64_t id_ = 0;
};

TEST_CASE_METHOD(SegmentTest, "SegmentTest.Empty", "[SegmentTest]") {
  round_trip({});
  round_trip({}, {.fixed_keys = true, .fixed_values = true});
}

TEST_CASE_METHOD(SegmentTest, "SegmentTest.OneRow", "[SegmentTest]") {
  round_trip({{"key", "value"}});
  round_trip({{"", ""}});
  round_trip({{"", ""}}, {.fixed_keys = true, .fixed_values = true});
  round_trip({{"key", "", EntryKind::tombstone}}, {.fixed_keys = true});
}

TEST_CASE_METHOD(SegmentTest, "SegmentTest.FixedWidths", "[SegmentTest]") {
  std::vector<Row> rows;
  for (int i = 10; i < 99; ++i) rows.push_back({std::to_string(i), std::string(44, 'v')});
  round_trip(rows, {.fixed_keys = true, .fixed_values = true, .tree = "tree"});
  round_trip(rows, {.fixed_keys = true, .fixed_values = false});
  round_trip(rows, {.fixed_keys = false, .fixed_values = true, .keep_resident = false});
}

TEST_CASE_METHOD(SegmentTest, "SegmentTest.LongestKeys", "[SegmentTest]") {
  std::string longest(max_key_bytes, '\xff');
  std::string other = longest;
  other.back() = '\0';
  round_trip({{other, "a"}, {longest, "b"}}, {.delta_width = 4});
}

TEST_CASE_METHOD(SegmentTest, "SegmentTest.RandomRowsOfEveryOffsetWidth", "[SegmentTest]") {
  for (uint32_t width : {2u, 4u, 8u}) {
    round_trip(random_rows(500, 12, 300), {.delta_width = width});
    round_trip(random_rows(3, 4, 10), {.delta_width = width, .keep_resident = false});
  }
}

TEST_CASE_METHOD(SegmentTest, "SegmentTest.ManyPieces", "[SegmentTest]") {
  std::vector<Row> rows = random_rows(12000, 30, 1200);
  round_trip(rows, {.delta_width = 4, .io_threads = 3});
  round_trip(rows, {.delta_width = 4, .keep_resident = false, .io_threads = 0});
}

TEST_CASE_METHOD(SegmentTest, "SegmentTest.TellsWhoseFileItIs", "[SegmentTest]") {
  REQUIRE_OK(test::write_segment(fs_, "db/1.seg", 1, {{"a", "b"}}));
  Status status = Segment::open(fs_, "db/1.seg", 2).status();
  CHECK(status.code() == StatusCode::corruption);
  CHECK(status.message().find("segment 1, not segment 2") != std::string::npos);
  CHECK(Segment::open(fs_, "db/3.seg", 3).status().code() == StatusCode::not_found);
}

TEST_CASE_METHOD(SegmentTest, "SegmentTest.ChecksBlocksAsTheyAreRead", "[SegmentTest]") {
  std::vector<Row> rows = random_rows(4000, 20, 300);
  REQUIRE_OK(test::write_segment(fs_, "db/1.seg", 1, rows, {.delta_width = 4}));
  auto segment = Segment::open(fs_, "db/1.seg", 1);
  REQUIRE_OK(segment);
  CHECK_FALSE((*segment)->intact());
  CHECK((*segment)->guard() == segment->get());
  Bytes data = (*segment)->section(SectionType::value_data);
  CHECK((*segment)->ensure(data.data(), 1));
  CHECK_FALSE((*segment)->intact());
  test::TestThreads threads;
  for (int t = 0; t < 4; ++t) {
    threads.start([&] {
      const std::byte* start = (*segment)->keys().data;
      Bytes last = (*segment)->section(SectionType::statistics);
      for (const std::byte* p = start; p + 64 < last.data(); p += 64) {
        CHECK_MESSAGE((*segment)->ensure(p, 64), "at offset " << p - start);
      }
    });
  }
  threads.join();
  CHECK((*segment)->intact());
  CHECK_OK((*segment)->failure());
}

TEST_CASE_METHOD(SegmentTest, "SegmentTest.EnsureStaysInTheFile", "[SegmentTest]") {
  REQUIRE_OK(test::write_segment(fs_, "db/1.seg", 1, {{"a", "b"}}));
  auto segment = Segment::open(fs_, "db/1.seg", 1);
  Bytes data = (*segment)->section(SectionType::key_data);
  // One block holds it all, and opening has checked it for the statistics.
  CHECK((*segment)->intact());
  CHECK((*segment)->ensure(data.data(), 0));
}

}  // namespace
}  // namespace stride

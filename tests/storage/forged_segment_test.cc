// Segments whose checksums are right and whose content is not: readers are told which section is
// damaged before they go astray.

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "storage/current_file.h"
#include "storage/memory_file_system.h"
#include "storage/segment.h"
#include "tests/support/catch.h"
#include "tests/support/forged_files.h"
#include "tests/support/segments.h"

namespace stride {
namespace {

using test::put;
using test::Row;

class ForgedSegmentTest {
 protected:
  const uint32_t width_ = GENERATE(2u, 4u, 8u);
  test::RunsWith name_{std::to_string(width_)};

  // There are so many rows that the offsets of each column take several blocks.
  ForgedSegmentTest() {
    const int rows = width_ == 2 ? 70'000 : 20'000;
    std::vector<Row> all;
    for (int i = 0; i < rows; ++i)
      all.push_back({"key" + std::to_string(1'000'000 + i) + "k", "v"});
    MemoryFileSystem fs({.crashable = false});
    CHECK_OK(test::write_segment(fs, "a.seg", 1, all, {.delta_width = width_}));
    good_ = *read_file(fs, "a.seg");
    rows_ = static_cast<uint64_t>(rows);
  }
  uint64_t delta_at(SectionType deltas, uint64_t row) const {
    return test::section_of(good_, deltas).offset + row * width_;
  }
  void put_delta(std::string* bytes, SectionType deltas, uint64_t row, uint64_t value) const {
    std::memcpy(bytes->data() + delta_at(deltas, row), &value, width_);
  }
  uint64_t delta(SectionType deltas, uint64_t row) const {
    uint64_t value = 0;
    std::memcpy(&value, good_.data() + delta_at(deltas, row), width_);
    return value;
  }
  // Both ways of reading tell of the section: a row after the other, and all of it.
  void expect_refused(const std::string& forged, SectionType section) {
    std::string bytes = forged;
    test::seal_segment(&bytes);
    for (bool whole : {true, false}) {
      MemoryFileSystem fs({.crashable = false});
      auto file = fs.open("a.seg", OpenMode::create);
      REQUIRE_OK((*file)->write_at(0, as_bytes(bytes)));
      auto segment = Segment::open(fs, "a.seg", 1);
      std::vector<Row> rows;
      // Opening it reads the statistics, with the block that they lie in.
      Status status = !segment.ok() ? segment.status()
                      : whole       ? (*segment)->verify()
                                    : test::read_rows(**segment, &rows);
      CHECK_MESSAGE(status.code() == StatusCode::corruption, status.to_string());
      CHECK(status.file() == "a.seg");
      std::string name = "section " + std::string(to_string(section));
      CHECK_MESSAGE(status.message().substr(0, name.size()) == name, status.to_string());
      SectionEntry entry = test::section_of(bytes, section);
      CHECK_MESSAGE(status.offset().value_or(0) >= entry.offset, status.to_string());
      CHECK_MESSAGE(status.offset().value_or(0) <= entry.offset + entry.bytes, status.to_string());
      if (segment.ok()) CHECK_FALSE((*segment)->intact());
    }
  }

  std::string good_;
  uint64_t rows_ = 0;
};

TEST_CASE_METHOD(ForgedSegmentTest, "ForgedSegmentTest.OffsetsThatDescendAreCorruption",
                 "[ForgedSegmentTest]") {
  for (SectionType deltas : {SectionType::key_deltas, SectionType::value_deltas}) {
    const uint64_t in_block = segment_block_bytes / width_;
    const uint64_t at = test::section_of(good_, deltas).offset;
    const uint64_t block_end = in_block - at % segment_block_bytes / width_;
    for (uint64_t row :
         {uint64_t{1}, uint64_t{127}, uint64_t{1000}, rows_ / 2 + 3, block_end - 1}) {
      std::string bytes = good_;
      put_delta(&bytes, deltas, row, delta(deltas, row) + 5000);
      expect_refused(bytes, deltas);
    }
  }
}

// The offsets before and after the end of a block lie in blocks that are checked on their own.
TEST_CASE_METHOD(ForgedSegmentTest,
                 "ForgedSegmentTest.OffsetsThatDescendWhereABlockEndsAreCorruption",
                 "[ForgedSegmentTest]") {
  for (SectionType deltas : {SectionType::key_deltas, SectionType::value_deltas}) {
    const uint64_t at = test::section_of(good_, deltas).offset, width = width_;
    const uint64_t first = (segment_block_bytes - at % segment_block_bytes) / width;
    REQUIRE(first < rows_);
    // The block's last row ends before it begins; all before it have no bytes.
    std::string bytes = good_;
    uint64_t group = first / 128 * 128;
    for (uint64_t row = group; row < first; ++row) put_delta(&bytes, deltas, row, 2000);
    for (uint64_t row = first; row < group + 128; ++row) put_delta(&bytes, deltas, row, 1);
    if (group == first) {  // the group begins with the block: so do the offsets before it
      for (uint64_t row = first - 128; row < first; ++row) put_delta(&bytes, deltas, row, 60'000);
    }
    expect_refused(bytes, deltas);
  }
}

TEST_CASE_METHOD(ForgedSegmentTest, "ForgedSegmentTest.OffsetsOutsideTheDataAreCorruption",
                 "[ForgedSegmentTest]") {
  const SectionType sections[][2] = {{SectionType::key_bases, SectionType::key_deltas},
                                     {SectionType::value_bases, SectionType::value_deltas}};
  for (auto [bases, deltas] : sections) {
    uint64_t base = test::section_of(good_, bases).offset;
    for (uint64_t value :
         {~uint64_t{0}, ~uint64_t{0} - 1000, uint64_t{1} << 63, uint64_t{1} << 40}) {
      for (uint64_t group : {uint64_t{0}, uint64_t{1}, rows_ / 128}) {
        std::string bytes = good_;
        put(&bytes, base + group * 8, value);
        expect_refused(bytes, deltas);
      }
    }
    std::string bytes = good_;
    put_delta(&bytes, deltas, rows_, delta(deltas, rows_) + 1);
    expect_refused(bytes, deltas);
  }
}

// A segment of a few rows, and what is said of it once it has been edited.
class SmallForgedSegmentTest {
 protected:
  SmallForgedSegmentTest() {
    std::vector<Row> rows;
    for (int i = 100; i < 400; ++i) rows.push_back({"key" + std::to_string(i), "value"});
    rows[7] = {rows[7].key, "", EntryKind::tombstone};
    MemoryFileSystem fs;
    CHECK_OK(test::write_segment(fs, "a.seg", 1, rows));
    good_ = *read_file(fs, "a.seg");
  }
  uint64_t at(SectionType type) const { return test::section_of(good_, type).offset; }
  std::string said_of(const std::function<void(std::string*)>& change) {
    std::string bytes = good_;
    change(&bytes);
    test::seal_segment(&bytes);
    MemoryFileSystem fs;
    auto file = fs.open("a.seg", OpenMode::create);
    CHECK_OK((*file)->write_at(0, as_bytes(bytes)));
    auto segment = Segment::open(fs, "a.seg", 1);
    Status status = segment.ok() ? (*segment)->verify() : segment.status();
    CHECK_MESSAGE(status.code() == StatusCode::corruption, status.to_string());
    CHECK(status.file() == "a.seg");
    return status.message();
  }
  std::string good_;
};

TEST_CASE_METHOD(SmallForgedSegmentTest, "SmallForgedSegmentTest.UnknownEntryKindsAreCorruption",
                 "[SmallForgedSegmentTest]") {
  for (int kind : {2, 3, 128, 255}) {
    CHECK(said_of([&](auto* b) { put(b, at(SectionType::kinds) + 9, uint8_t(kind)); }) ==
          "section kinds has the unknown entry kind " + std::to_string(kind) + ", of row 9");
  }
  CHECK(said_of([&](auto* b) { put(b, at(SectionType::kinds) + 9, uint8_t{1}); }) ==
        "section kinds holds another number of tombstones than the header says");
}

TEST_CASE_METHOD(SmallForgedSegmentTest, "SmallForgedSegmentTest.KeysThatDoNotAscendAreCorruption",
                 "[SmallForgedSegmentTest]") {
  uint64_t keys = at(SectionType::key_data);
  CHECK(said_of([&](auto* b) { std::memcpy(b->data() + keys + 60, "zzz", 3); }) ==
        "section key_data does not ascend at row 11");
  CHECK(said_of([&](auto* b) { std::memcpy(b->data() + keys + 60, b->data() + keys + 54, 6); }) ==
        "section key_data does not ascend at row 10");
}

TEST_CASE_METHOD(SmallForgedSegmentTest,
                 "SmallForgedSegmentTest.StatisticsThatCannotBeAreCorruption",
                 "[SmallForgedSegmentTest]") {
  uint64_t first = at(SectionType::statistics) + 8;
  const std::string impossible =
      "the section statistics names keys that cannot be the first and the last";
  CHECK(said_of([&](auto* b) { std::memcpy(b->data() + first, "zzz", 3); }) == impossible);
  CHECK(said_of([&](auto* b) { std::memcpy(b->data() + first, b->data() + first + 6, 6); }) ==
        impossible);
  CHECK(said_of([&](auto* b) { std::memcpy(b->data() + first, "key000", 6); }) ==
        "section statistics names other first and last keys");
}

TEST_CASE_METHOD(SmallForgedSegmentTest, "SmallForgedSegmentTest.RowsThatNoRankCountsAreCorruption",
                 "[SmallForgedSegmentTest]") {
  CHECK(said_of([&](auto* b) { put(b, offsetof(SegmentHeader, rows), uint64_t{0xFFFFFFFF}); }) ==
        "more rows than a segment can have");
}

}  // namespace
}  // namespace stride

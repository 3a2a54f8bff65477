// No bytes whatever in a segment file crash a reader or are taken for others.

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "storage/current_file.h"
#include "storage/memory_file_system.h"
#include "storage/segment.h"
#include "tests/support/catch.h"
#include "tests/support/forged_files.h"
#include "tests/support/printed_seed.h"
#include "tests/support/segments.h"

namespace stride {
namespace {

using test::put;
using test::Row;

void seal(std::string* bytes) { test::seal_segment(bytes); }

Status open_and_read(const std::string& bytes, std::vector<Row>* rows) {
  MemoryFileSystem fs({.crashable = false});
  auto file = fs.open("a.seg", OpenMode::create);
  if (!file.ok()) return file.status();
  STRIDE_TRY((*file)->write_at(0, as_bytes(bytes)));
  auto segment = Segment::open(fs, "a.seg", 1);
  if (!segment.ok()) return segment.status();
  Status read = test::read_rows(**segment, rows);
  Status verified = (*segment)->verify();
  return read.ok() ? verified : read;
}

void expect_damage(const std::string& bytes, const std::string& what) {
  std::vector<Row> rows;
  Status status = open_and_read(bytes, &rows);
  CHECK_MESSAGE(
      (status.code() == StatusCode::corruption || status.code() == StatusCode::unsupported_version),
      what << ": " << status.to_string());
  CHECK_MESSAGE(status.file() == "a.seg", what);
  CHECK_MESSAGE(!status.remedy().empty(), what << ": " << status.to_string());
}

// Plain segments, and such as share values and have a sample and a filter of their keys.
class SegmentDamageTest {
 protected:
  const bool shared_ = GENERATE(false, true);
  test::RunsWith name_{shared_ ? "shared" : "plain"};

  SegmentDamageTest() {
    std::vector<Row> rows;
    for (int i = 1000; i < 2500; ++i) {
      rows.push_back({"key" + std::to_string(i), std::string(random_() % 200, 'v')});
      if (i % 10 == 0) rows.back() = {rows.back().key, "", EntryKind::tombstone};
    }
    MemoryFileSystem fs;
    auto written = test::write_segment(fs, "a.seg", 1, rows,
                                       {.delta_width = 4,
                                        .tree = "a tree",
                                        .key_sample = shared_ ? "a sample" : "",
                                        .key_filter = shared_,
                                        .share_values = shared_});
    CHECK_OK(written);
    good_ = *read_file(fs, "a.seg");
  }
  SegmentFooter footer() const { return test::footer_of(good_); }

  std::mt19937_64 random_{test::seed()};
  std::string good_;
};

TEST_CASE_METHOD(SegmentDamageTest, "SegmentDamageTest.TheUndamagedFileIsGood",
                 "[SegmentDamageTest]") {
  std::vector<Row> rows;
  Status status = open_and_read(good_, &rows);
  CHECK_OK(status);
  CHECK(rows.size() == 1500u);
  std::string sealed = good_;
  seal(&sealed);
  CHECK(sealed == good_);
}

TEST_CASE_METHOD(SegmentDamageTest, "SegmentDamageTest.FlippedBytes", "[SegmentDamageTest]") {
  for (int i = 0; i < 400; ++i) {
    std::string bytes = good_;
    for (uint64_t n = 1 + random_() % 4; n > 0; --n) {
      bytes[random_() % bytes.size()] ^= static_cast<char>(1 + random_() % 255);
    }
    if (bytes != good_) expect_damage(bytes, "flips " + std::to_string(i));
  }
}

TEST_CASE_METHOD(SegmentDamageTest, "SegmentDamageTest.Truncations", "[SegmentDamageTest]") {
  std::vector<uint64_t> sizes = {0, 1, 127, 128, 4095, 4096, 4097, 8191, 8192};
  for (uint64_t delta : {1, 8, 63, 64, 65, 4095, 4096, 8192}) sizes.push_back(good_.size() - delta);
  for (uint64_t d : {-1, 0, 1}) {
    sizes.push_back(footer().tables_offset + d);
    for (uint64_t b = 1; b < footer().blocks; ++b) sizes.push_back(b * segment_block_bytes + d);
  }
  for (int i = 0; i < 200; ++i) sizes.push_back(random_() % good_.size());
  for (uint64_t size : sizes) expect_damage(good_.substr(0, size), std::to_string(size));
  expect_damage(good_ + std::string(4096, '\0'), "longer");
  expect_damage(good_ + good_, "twice");
}

TEST_CASE_METHOD(SegmentDamageTest, "SegmentDamageTest.Garbage", "[SegmentDamageTest]") {
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random_() % 3 ? random_() % 20000 : 4096 * (random_() % 8), '\0');
    for (char& c : bytes) c = static_cast<char>(random_());
    if (bytes.size() >= 8 && random_() % 2) put(&bytes, 0, segment_magic);
    expect_damage(bytes, "garbage " + std::to_string(i));
  }
}

// With checksums that match, any number may be any other. Then it need not be found, but nothing
// outside the file may be read (AddressSanitizer would tell).
TEST_CASE_METHOD(SegmentDamageTest, "SegmentDamageTest.ForgedNumbers", "[SegmentDamageTest]") {
  auto odd_number = [&]() -> uint64_t {
    switch (random_() % 6) {
      case 0:
        return ~uint64_t{0} - random_() % 4;
      case 1:
        return uint64_t{1} << random_() % 64;
      case 2:
        return good_.size() + random_() % 200 - 100;
      case 3:
        return random_();
      case 4:
        return random_() % 5;
      default:
        return (uint64_t{1} << random_() % 64) - 1;
    }
  };
  uint64_t tables = footer().tables_offset, footer_at = good_.size() - sizeof(SegmentFooter);
  uint64_t table_bytes = footer().sections * sizeof(SectionEntry);
  for (int i = 0; i < 400; ++i) {
    std::string bytes = good_;
    for (uint64_t n = 1 + random_() % 2; n > 0; --n) {
      uint64_t value = odd_number();
      uint64_t kind = random_() % 4;
      uint64_t at = kind == 0   ? random_() % 16 * 4
                    : kind == 1 ? tables + random_() % (table_bytes / 4) * 4
                    : kind == 2 ? footer_at + random_() % 15 * 4
                                : 4096 + random_() % (tables - 4096 - 8);
      std::memcpy(bytes.data() + at, &value, random_() % 2 ? 4 : 8);
    }
    seal(&bytes);
    std::vector<Row> rows;
    Status status = open_and_read(bytes, &rows);
    CHECK_MESSAGE((status.ok() || status.code() == StatusCode::corruption ||
                   status.code() == StatusCode::unsupported_version),
                  status.to_string());
  }
}

TEST_CASE_METHOD(SegmentDamageTest, "SegmentDamageTest.ANewerVersionIsNotTakenForDamage",
                 "[SegmentDamageTest]") {
  std::string bytes = good_;
  put(&bytes, offsetof(SegmentHeader, format_version), uint32_t{segment_format_version + 1});
  std::vector<Row> rows;
  CHECK(open_and_read(bytes, &rows).code() == StatusCode::corruption);
  seal(&bytes);
  Status status = open_and_read(bytes, &rows);
  CHECK(status.code() == StatusCode::unsupported_version);
  CHECK(status.remedy().find("newer StrideDB") != std::string::npos);
}

TEST_CASE_METHOD(SegmentDamageTest, "SegmentDamageTest.NamesFileSectionAndOffset",
                 "[SegmentDamageTest]") {
  MemoryFileSystem fs;
  REQUIRE_OK(fs.create_directory("db"));
  std::vector<Row> rows;
  for (int i = 1000; i < 3000; ++i) rows.push_back({std::to_string(i), std::string(100, 'v')});
  REQUIRE_OK(test::write_segment(fs, "db/1.seg", 1, rows, {.delta_width = 4}));
  uint64_t offset = 2 * segment_block_bytes + 5;
  auto file = fs.open("db/1.seg", OpenMode::write);
  REQUIRE_OK((*file)->write_at(offset, as_bytes("!")));
  auto segment = Segment::open(fs, "db/1.seg", 1);
  REQUIRE_MESSAGE(segment.ok(), "damage elsewhere does not keep it from opening");
  Bytes values = (*segment)->section(SectionType::value_data);
  CHECK((*segment)->ensure(values.data(), 1));
  CHECK_FALSE((*segment)->ensure(values.data(), values.size()));
  CHECK_FALSE((*segment)->intact());
  Status status = (*segment)->failure();
  CHECK(status.to_string() ==
        "corruption: the checksum of a block differs, in section value_data "
        "(db/1.seg, offset 131072): restore the file from a backup");
  CHECK((*segment)->verify().to_string() == status.to_string());
  CHECK_FALSE((*segment)->ensure(values.data() + values.size(), 1 << 20));
}

// With checksums that match, as of a writer that is broken.
TEST_CASE("SegmentNumbersTest.NumbersOutOfRangeAreCorruption", "[SegmentNumbersTest]") {
  std::vector<Row> rows;
  for (int i = 10000; i < 14000; ++i)
    rows.push_back({std::to_string(i), "value " + std::to_string(i % 300)});  // 2 bytes a number
  MemoryFileSystem fs;
  REQUIRE_OK(test::write_segment(fs, "a.seg", 1, rows, {.share_values = true}));
  const std::string good = *read_file(fs, "a.seg");
  auto whole = Segment::open(fs, "a.seg", 1);
  REQUIRE_OK(whole);
  REQUIRE((*whole)->values().column.size == 300u);
  Bytes numbers = (*whole)->section(SectionType::value_numbers);
  uint64_t start = static_cast<uint64_t>(numbers.data() - (*whole)->mapping()->bytes().data());
  for (uint64_t row : {uint64_t{0}, uint64_t{1}, uint64_t{1234}, uint64_t{3999}}) {
    for (uint16_t number : {uint16_t{300}, uint16_t{65535}}) {
      std::string bytes = good;
      put(&bytes, start + row * 2, number);
      seal(&bytes);
      std::vector<Row> read;
      Status status = open_and_read(bytes, &read);
      CHECK(status.to_string() == "corruption: section value_numbers gives row " +
                                      std::to_string(row) + " value " + std::to_string(number) +
                                      " of 300 (a.seg, offset " + std::to_string(start + row * 2) +
                                      "): restore the file from a backup");
    }
    std::string bytes = good;
    put(&bytes, start + row * 2, uint16_t{299});
    seal(&bytes);
    std::vector<Row> read;
    CHECK_OK(open_and_read(bytes, &read));
  }
}

TEST_CASE("SegmentNumbersTest.SectionsThatDoNotFitTheHeaderAreCorruption", "[SegmentNumbersTest]") {
  std::vector<Row> rows;
  for (int i = 10000; i < 11000; ++i) rows.push_back({std::to_string(i), std::to_string(i % 7)});
  MemoryFileSystem fs;
  REQUIRE_OK(test::write_segment(fs, "a.seg", 1, rows, {.share_values = true}));
  const std::string good = *read_file(fs, "a.seg");
  auto refused = [&](auto change, const std::string& why) {
    std::string bytes = good;
    change(&bytes);
    seal(&bytes);
    std::vector<Row> read;
    Status status = open_and_read(bytes, &read);
    CHECK_MESSAGE(status.code() == StatusCode::corruption, why);
    CHECK_MESSAGE(status.to_string().find(why) != std::string::npos, status.to_string());
  };
  const uint64_t entry = test::entry_of(good, SectionType::value_numbers);
  REQUIRE(entry != 0u);
  for (uint64_t bytes : {uint64_t{0}, uint64_t{999}, uint64_t{1001}})
    refused([&](auto* b) { put(b, entry + offsetof(SectionEntry, bytes), bytes); },
            "section value_numbers has not one entry for each row");
  refused([&](auto* b) { put(b, offsetof(SegmentHeader, flags), uint32_t{0}); },
          "section value_numbers and the header's flags");
  refused([&](auto* b) { put(b, entry, uint32_t{7}); }, "value_numbers and the header's flags");
  for (uint64_t distinct : {uint64_t{0}, uint64_t{1001}, ~uint64_t{0}})
    refused([&](auto* b) { put(b, offsetof(SegmentHeader, distinct_values), distinct); },
            "distinct values of 1000 rows");
  refused([&](auto* b) { put(b, offsetof(SegmentHeader, distinct_values), uint64_t{8}); },
          "section value_deltas");
  // A version that has no such section.
  refused(
      [&](auto* b) {
        put(b, offsetof(SegmentHeader, format_version), segment_version_plain);
        put(b, b->size() - sizeof(SegmentFooter) + offsetof(SegmentFooter, format_version),
            segment_version_plain);
      },
      "unknown section type 10");
}

TEST_CASE("SegmentFilterTest.FiltersOfAnotherSizeAreCorruption", "[SegmentFilterTest]") {
  std::vector<Row> rows;
  for (int i = 10000; i < 11000; ++i) rows.push_back({std::to_string(i), ""});
  MemoryFileSystem fs;
  REQUIRE_OK(test::write_segment(fs, "a.seg", 1, rows, {.key_filter = true}));
  const std::string good = *read_file(fs, "a.seg");
  std::vector<Row> read;
  REQUIRE_OK(open_and_read(good, &read));
  CHECK(test::get<uint32_t>(good, offsetof(SegmentHeader, format_version)) ==
        segment_version_filtered);
  const uint64_t entry = test::entry_of(good, SectionType::key_filter);
  REQUIRE(entry != 0u);
  CHECK(test::get<uint64_t>(good, entry + offsetof(SectionEntry, bytes)) == 20 * 64u);
  auto expect_refused = [&](auto change, const std::string& why) {
    std::string bytes = good;
    change(&bytes);
    seal(&bytes);
    Status status = open_and_read(bytes, &read);
    CHECK_MESSAGE(status.code() == StatusCode::corruption, why);
    CHECK_MESSAGE(status.to_string().find(why) != std::string::npos, status.to_string());
  };
  for (uint64_t bytes : {0, 1, 63, 64, 19 * 64, 20 * 64 - 1})
    expect_refused([&](auto* b) { put(b, entry + offsetof(SectionEntry, bytes), bytes); },
                   "section key_filter does not have the size of its rows");
  expect_refused([&](auto* b) { put(b, entry + offsetof(SectionEntry, bytes), ~uint64_t{0}); },
                 "the section table does not hold");
  expect_refused([&](auto* b) { put(b, entry + offsetof(SectionEntry, offset), uint64_t{4097}); },
                 "the section table does not hold");
  // A version that has no such section.
  expect_refused(
      [&](auto* b) {
        put(b, offsetof(SegmentHeader, format_version), segment_version_sampled);
        put(b, b->size() - sizeof(SegmentFooter) + offsetof(SegmentFooter, format_version),
            segment_version_sampled);
      },
      "unknown section type 12");
}

}  // namespace
}  // namespace stride

// Checksums of pages: a small read of a large segment reads and checks no more than it needs.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "storage/checksum.h"
#include "storage/current_file.h"
#include "storage/memory_file_system.h"
#include "storage/segment.h"
#include "storage/segment_survey.h"
#include "tests/support/catch.h"
#include "tests/support/forged_files.h"
#include "tests/support/printed_seed.h"
#include "tests/support/segments.h"

namespace stride {
namespace {

using test::Row;

// 5,000 rows of 8 and 1000 bytes, which are about 5 MB.
class SegmentPagesTest {
 protected:
  static constexpr uint64_t rows_of_page_size = 5000, value_bytes = 1000;
  static constexpr uint64_t pages_per_block = segment_block_bytes / segment_page_bytes;

  SegmentPagesTest() {
    for (uint64_t i = 0; i < rows_of_page_size; ++i) {
      std::string value(value_bytes, '\0');
      for (char& c : value) c = static_cast<char>(random_());
      rows_.push_back({std::to_string(10'000'000 + i), value});
    }
    good_ = file_of(rows_, {.fixed_keys = true, .fixed_values = true});
  }

  static std::string file_of(const std::vector<Row>& rows, const test::SegmentOptions& options) {
    MemoryFileSystem fs({.crashable = false});
    REQUIRE_OK(test::write_segment(fs, "a.seg", 1, rows, options));
    return *read_file(fs, "a.seg");
  }
  Result<std::shared_ptr<Segment>> open(const std::string& bytes) {
    fs_ = std::make_unique<MemoryFileSystem>(MemoryFileSystemOptions{.crashable = false});
    auto file = fs_->open("a.seg", OpenMode::create);
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->write_at(0, as_bytes(bytes)));
    return Segment::open(*fs_, "a.seg", 1);
  }
  std::shared_ptr<Segment> opened(const std::string& bytes) {
    auto segment = open(bytes);
    REQUIRE_OK(segment);
    return *segment;
  }
  static bool ensure_value(Segment& segment, uint64_t row) {
    const Bytes value = segment.values()[row];
    return segment.ensure(value.data(), value.size());
  }
  uint64_t value_offset(uint64_t row) const {
    return test::section_of(good_, SectionType::value_data).offset + row * value_bytes;
  }
  // The first row whose value begins in this page or behind it.
  uint64_t row_behind(uint64_t page) const {
    return (page * segment_page_bytes - value_offset(0) + value_bytes - 1) / value_bytes;
  }
  void expect_verify_finds(const std::string& bytes, const std::string& what) {
    Status status = opened(bytes)->verify();
    CHECK(status.code() == StatusCode::corruption);
    CHECK_MESSAGE(status.to_string().find(what) != std::string::npos, status.to_string());
  }

  std::mt19937_64 random_{test::seed()};
  std::vector<Row> rows_;
  std::string good_;
  std::unique_ptr<MemoryFileSystem> fs_;
};

TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.LargeSegmentsHaveThemAndSmallOnesNot",
                 "[SegmentPagesTest]") {
  const SectionEntry sums = test::section_of(good_, SectionType::page_checksums);
  CHECK(test::get<uint32_t>(good_, offsetof(SegmentHeader, format_version)) ==
        segment_version_paged);
  REQUIRE(sums.bytes == 4 * ((sums.offset + 4095) / 4096));
  uint64_t wrong = 0;
  for (uint64_t page = 0; page < sums.bytes / 4; ++page) {
    const uint64_t offset = page * 4096;
    const std::string bytes = good_.substr(offset, std::min<uint64_t>(4096, sums.offset - offset));
    wrong += test::get<uint32_t>(good_, sums.offset + page * 4) !=
             (page == 0 ? 0 : static_cast<uint32_t>(checksum(as_bytes(bytes))));
  }
  CHECK(wrong == 0u);
  REQUIRE_OK(opened(good_)->verify());

  for (uint64_t n : {uint64_t{1}, uint64_t{100}, least_paged_bytes / value_bytes - 50}) {
    const std::string small = file_of({rows_.begin(), rows_.begin() + static_cast<ptrdiff_t>(n)},
                                      {.fixed_keys = true, .fixed_values = true});
    CHECK(test::entry_of(small, SectionType::page_checksums) == 0u);
    CHECK(test::get<uint32_t>(small, offsetof(SegmentHeader, format_version)) ==
          segment_version_plain);
  }
}

// Else lookups in a large segment would ask for checksums for ever.
TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.RowsAreIntactWhateverIsBesideThem",
                 "[SegmentPagesTest]") {
  const uint64_t sample_bytes = GENERATE(0, 100, 400'000);
  const bool filter = GENERATE(true, false);
  CAPTURE(sample_bytes, filter);
  std::string bytes = file_of(rows_, {.delta_width = 4,
                                      .tree = std::string(100'000, 't'),
                                      .key_sample = std::string(sample_bytes, 's'),
                                      .key_filter = filter});
  auto of_rows = [](SectionType type) {
    return type != SectionType::key_sample && type != SectionType::page_checksums;
  };
  std::shared_ptr<Segment> segment = opened(bytes);
  std::vector<Bytes> reads;
  for (uint32_t type = 1; type <= section_types; ++type) {
    const Bytes section = segment->section(SectionType{type});
    for (uint64_t at = 0; at < section.size() && of_rows(SectionType{type});
         at += segment_block_bytes)
      reads.push_back(section.subspan(at, std::min(section.size() - at, segment_block_bytes)));
  }
  std::shuffle(reads.begin(), reads.end(), random_);
  for (const Bytes& read : reads) REQUIRE(segment->ensure(read.data(), read.size()));
  CHECK(segment->intact());
  CHECK(segment->ensure_section(SectionType::key_sample));
  if (sample_bytes < 3 * segment_block_bytes) return;

  // Rows do without the sample where it is damaged, and whoever reads it is told.
  bytes[test::section_of(bytes, SectionType::key_sample).offset + sample_bytes / 2] ^= 1;
  segment = opened(bytes);
  for (uint32_t type = 1; type <= section_types; ++type)
    if (of_rows(SectionType{type})) REQUIRE(segment->ensure_section(SectionType{type}));
  CHECK(segment->intact());
  CHECK_OK(segment->failure());
  CHECK(!segment->ensure_section(SectionType::key_sample));
  CHECK(segment->failure().to_string().find("section key_sample") != std::string::npos);
  expect_verify_finds(bytes, "section key_sample");
}

TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.ASmallReadIsCheckedByThePage",
                 "[SegmentPagesTest]") {
  const uint64_t block = value_offset(rows_.size() / 2) / segment_block_bytes;
  const uint64_t page = block * pages_per_block + 4;
  std::string bytes = good_;
  bytes[page * segment_page_bytes + random_() % segment_page_bytes] ^= 1;
  const std::shared_ptr<Segment> segment = opened(bytes);
  // Its neighbours can be read.
  const uint64_t before = row_behind(page - 2), behind = row_behind(page + 1);
  CHECK(ensure_value(*segment, before));
  CHECK(ensure_value(*segment, behind));
  CHECK_OK(segment->failure());
  CHECK(!segment->is_verified(page * segment_page_bytes));
  FileRange sum{};
  CHECK(segment->checks_page(page * segment_page_bytes, &sum));
  CHECK(sum.offset == test::section_of(good_, SectionType::page_checksums).offset + 4 * page);
  // It cannot, whether it is asked for alone or with others.
  auto expect_damage = [&](uint64_t first, uint64_t last) {
    const std::shared_ptr<Segment> anew = opened(bytes);
    const std::byte* from = anew->values()[first].data();
    CHECK(!anew->ensure(from, (last - first) * value_bytes));
    CHECK(anew->failure().code() == StatusCode::corruption);
    CHECK(anew->failure().to_string().find("section value_data") != std::string::npos);
  };
  expect_damage(row_behind(page), row_behind(page) + 1);
  expect_damage(before, behind);
  expect_verify_finds(bytes, "the checksum of a block differs, in section value_data");
}

// Then its bit alone says that it is right, and in the end none is needed.
TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.ABlockThatIsReadInPartsIsReadWhole",
                 "[SegmentPagesTest]") {
  const std::shared_ptr<Segment> segment = opened(good_);
  const uint64_t block = value_offset(rows_.size() / 2) / segment_block_bytes;
  uint64_t pages = 0;
  for (uint64_t page = block * pages_per_block; page < (block + 1) * pages_per_block; ++page) {
    if (segment->is_verified(page * segment_page_bytes)) break;
    ++pages;
    const std::byte* file = segment->values().column.data - value_offset(0);
    CHECK(segment->ensure(file + page * segment_page_bytes, 8));
  }
  CHECK(pages > 4u);
  CHECK(pages < pages_per_block);
  CHECK(segment->is_verified(block * segment_block_bytes));
  CHECK(!segment->is_verified((block + 1) * segment_block_bytes));

  std::vector<uint64_t> order(rows_.size());
  for (uint64_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random_);
  for (uint64_t row : order) {
    CHECK(ensure_value(*segment, row));
    const Bytes key = segment->keys()[row];
    CHECK(segment->ensure(key.data(), key.size()));
  }
  for (uint64_t at = value_offset(0); at < value_offset(rows_.size() - 1);
       at += segment_block_bytes)
    CHECK(segment->is_verified(at));
}

// Only the rows in damaged pages of a damaged block are lost, as long as the checksums of pages are
// whole.
TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.ADamagedPageCostsItsRows",
                 "[SegmentPagesTest]") {
  const SectionEntry sums = test::section_of(good_, SectionType::page_checksums);
  for (bool sums_too : {false, true}) {
    const uint64_t row = 1000 + random_() % 3000, at = value_offset(row) + random_() % value_bytes;
    std::string bytes = good_;
    bytes[at] ^= 1;
    if (sums_too) bytes[sums.offset + random_() % sums.bytes] ^= 1;
    (void)open(bytes);
    auto survey = SegmentSurvey::read(*fs_, "a.seg", 1);
    REQUIRE_OK(survey);
    uint64_t lost = 0, wrong = 0;
    for (uint64_t i = 0; i < rows_.size(); ++i) {
      Bytes key, value;
      wrong += !survey->find_key(i, &key) || as_text(key) != rows_[i].key;
      if (!survey->find_value(i, &value)) {
        ++lost;
        wrong +=
            !sums_too && (value_offset(i) / segment_page_bytes > at / segment_page_bytes ||
                          (value_offset(i + 1) - 1) / segment_page_bytes < at / segment_page_bytes);
      } else {
        wrong += as_text(value) != rows_[i].value;
      }
    }
    CHECK(wrong == 0u);
    CHECK(lost >= 1u);
    CHECK(lost <= (sums_too ? 67u : 6u));
    REQUIRE(survey->damage().size() == 1u + sums_too);
    const DamagedBytes& damage = survey->damage()[0];
    CHECK(damage.offset == at / segment_block_bytes * segment_block_bytes);
    CHECK(damage.rows.first <= row);
    CHECK(damage.rows.end > row);
    CHECK(damage.rows.end - damage.rows.first == lost);
  }
}

// Checksums of pages that somebody has made: what is read is right, and only verify() tells.
TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.WrongChecksumsHideNothing",
                 "[SegmentPagesTest]") {
  const SectionEntry sums = test::section_of(good_, SectionType::page_checksums);
  std::string bytes = good_;
  for (uint64_t at = sums.offset; at < sums.offset + sums.bytes; at += 8) bytes[at] ^= 0x55;
  auto damaged = open(bytes);
  CHECK(damaged.status().code() == StatusCode::corruption);
  CHECK(damaged.status().to_string().find("section page_checksums") != std::string::npos);
  test::seal_segment(&bytes);
  const std::shared_ptr<Segment> segment = opened(bytes);
  uint64_t wrong = 0;
  for (uint64_t row = 0; row < rows_.size(); row += 1 + random_() % 100) {
    const Bytes value = segment->values()[row];
    wrong += !ensure_value(*segment, row) || as_text(value) != rows_[row].value;
  }
  CHECK(wrong == 0u);
  CHECK_OK(segment->failure());
  expect_verify_finds(bytes, "section page_checksums has another checksum for the page at 0");
}

TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.FlippedBytesGiveNoWrongValue",
                 "[SegmentPagesTest]") {
  uint64_t refused = 0;
  for (int i = 0; i < 60; ++i) {
    std::string bytes = good_;
    const uint64_t at = random_() % bytes.size();
    bytes[at] ^= static_cast<char>(1 + random_() % 255);
    INFO("byte " << at);
    auto segment = open(bytes);
    if (!segment.ok()) {
      CHECK(segment.status().code() == StatusCode::corruption);
      ++refused;
      continue;
    }
    // Rows near the byte, and anywhere.
    uint64_t wrong = 0;
    for (int k = 0; k < 60; ++k) {
      const uint64_t near = at < value_offset(0) ? 0 : (at - value_offset(0)) / value_bytes;
      const uint64_t row = std::min<uint64_t>(
          k < 30 ? near + random_() % 20 - std::min<uint64_t>(near, 10) : random_() % rows_.size(),
          rows_.size() - 1);
      const Bytes key = (*segment)->keys()[row], value = (*segment)->values()[row];
      if ((*segment)->ensure(key.data(), key.size())) wrong += as_text(key) != rows_[row].key;
      if (ensure_value(**segment, row)) wrong += as_text(value) != rows_[row].value;
    }
    CHECK(wrong == 0u);
    CHECK((*segment)->verify().code() == StatusCode::corruption);
  }
  CHECK(refused < 60u);
}

TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.ForgedSectionsAreRefused",
                 "[SegmentPagesTest]") {
  const uint64_t entry = test::entry_of(good_, SectionType::page_checksums);
  const SectionEntry sums = test::section_of(good_, SectionType::page_checksums);
  auto expect_refused = [&](auto change, const std::string& why) {
    std::string bytes = good_;
    change(&bytes);
    test::seal_segment(&bytes);
    auto segment = open(bytes);
    CHECK(segment.status().code() == StatusCode::corruption);
    CHECK_MESSAGE(segment.status().to_string().find(why) != std::string::npos,
                  segment.status().to_string());
  };
  for (uint64_t bytes : {uint64_t{0}, uint64_t{4}, sums.bytes - 4, sums.bytes - 1})
    expect_refused([&](auto* b) { test::put(b, entry + offsetof(SectionEntry, bytes), bytes); },
                   "section page_checksums has not one entry for each page before it");
  expect_refused(
      [&](auto* b) { test::put(b, entry + offsetof(SectionEntry, bytes), ~uint64_t{0}); },
      "the section table does not hold");
  expect_refused(
      [&](auto* b) {
        test::put(b, offsetof(SegmentHeader, format_version), segment_version_filtered);
        test::put(b, b->size() - sizeof(SegmentFooter) + offsetof(SegmentFooter, format_version),
                  segment_version_filtered);
      },
      "unknown section type 13");
}

// Those of one page, and all rows behind them: they are checked by the block.
TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.RowsBehindTheSectionHaveNone",
                 "[SegmentPagesTest]") {
  constexpr uint64_t rows = rows_of_page_size - 10;  // which leaves 64 bytes before the values
  std::string bytes = good_;
  const SectionEntry values = test::section_of(good_, SectionType::value_data);
  const SectionEntry statistics = test::section_of(good_, SectionType::statistics);
  const SectionEntry entries[] = {
      {static_cast<uint32_t>(SectionType::page_checksums), 0, segment_page_bytes, 4},
      {static_cast<uint32_t>(SectionType::key_data), 0, segment_page_bytes + 64, rows * 8},
      {values.type, 0, values.offset, rows * value_bytes},
      statistics};
  std::memcpy(bytes.data() + test::footer_of(good_).tables_offset, entries, sizeof entries);
  test::put(&bytes, offsetof(SegmentHeader, rows), rows);
  test::put(&bytes, segment_page_bytes, uint32_t{0});
  test::seal_segment(&bytes);
  const std::shared_ptr<Segment> segment = opened(bytes);
  uint64_t wrong = 0;
  for (uint64_t row = 0; row < rows; row += 1 + random_() % 50) {
    const Bytes value = segment->values()[row];
    FileRange sum{};
    wrong += segment->checks_page(value_offset(row), &sum) || !ensure_value(*segment, row) ||
             as_text(value) != rows_[row].value;
  }
  CHECK(wrong == 0u);
}

// With checksums that match, any number may be any other: nothing outside the file is read
// (AddressSanitizer would tell), and what verify() calls whole is read.
TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.ForgedNumbers", "[SegmentPagesTest]") {
  const SegmentFooter footer = test::footer_of(good_);
  const SectionEntry sums = test::section_of(good_, SectionType::page_checksums);
  const uint64_t footer_at = good_.size() - sizeof footer;
  const uint64_t odd_numbers[] = {0, 1, 4, 4096, sums.offset, sums.bytes, good_.size(), 1u << 31};
  for (int i = 0; i < 60; ++i) {
    std::string bytes = good_;
    for (uint64_t n = 1 + random_() % 3; n > 0; --n) {
      const uint64_t value = random_() % 4 ? odd_numbers[random_() % 8] + random_() % 3 - 1
                                           : ~uint64_t{0} >> random_() % 64;
      const uint64_t entries = footer.tables_offset;
      const uint64_t at = random_() % 3 == 0   ? 24 + random_() % 12 * 4
                          : random_() % 3 == 0 ? footer_at + 8 + random_() % 12 * 4
                                               : entries + random_() % (footer.sections * 6) * 4;
      std::memcpy(bytes.data() + at, &value, random_() % 2 ? 4 : 8);
    }
    test::seal_segment(&bytes);
    auto segment = open(bytes);
    auto survey = SegmentSurvey::read(*fs_, "a.seg", 1);
    if (!segment.ok()) continue;
    uint64_t refused = 0;
    for (int k = 0; k < 200 && (*segment)->rows() > 0; ++k) {
      const uint64_t row = random_() % (*segment)->rows();
      const Bytes key = (*segment)->keys()[row];
      refused += !(*segment)->ensure(key.data(), key.size());
      if ((*segment)->values().shared()) continue;
      const Bytes value = (*segment)->values()[row];
      refused += !(*segment)->ensure(value.data(), value.size());
      Bytes found;
      if (survey.ok() && survey->find_value(row, &found)) CHECK(found.size() == value.size());
    }
    if ((*segment)->verify().ok()) CHECK(refused == 0u);
  }
}

TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.ThreadsReadAtOnce", "[SegmentPagesTest]") {
  const std::shared_ptr<Segment> segment = opened(good_);
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, random = std::mt19937_64(test::seed() + t)]() mutable {
      for (int i = 0; i < 2000; ++i) {
        const uint64_t row = random() % rows_.size();
        if (!ensure_value(*segment, row) || as_text(segment->values()[row]) != rows_[row].value)
          ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0u);
  CHECK_OK(segment->failure());
}

// Files of more than a piece, written in the background or at once.
TEST_CASE_METHOD(SegmentPagesTest, "SegmentPagesTest.EachWayOfWritingMakesTheSameFile",
                 "[SegmentPagesTest]") {
  for (unsigned threads : {1, 3})
    for (bool keep : {false, true}) {
      const std::string bytes = file_of(
          rows_,
          {.fixed_keys = true, .fixed_values = true, .keep_resident = keep, .io_threads = threads});
      CHECK(bytes == good_);
    }
  std::string sealed = good_;
  test::seal_segment(&sealed);
  CHECK(sealed == good_);
}

}  // namespace
}  // namespace stride

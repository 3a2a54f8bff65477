// Reading ahead of batches: what is brought, in which order and how much at a time.
#include "engine/read/cold_read.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/cold_files.h"
#include "tests/support/printed_seed.h"
#include "tests/support/segments.h"

namespace stride {
namespace {

using test::page_bytes;

class ColdReadTest {
 protected:
  const bool fixed_ = GENERATE(true, false);
  test::RunsWith name_{fixed_ ? "fixed" : "variable"};

  // Rows of about 500 bytes, fixed or variable; every 50th a tombstone where `tombstones`.
  std::shared_ptr<Segment> make(uint64_t rows, bool tombstones = false, bool resident = false) {
    std::vector<test::Row> list;
    for (uint64_t i = 0; i < rows; ++i) {
      char key[24];
      std::snprintf(key, sizeof key, "%08llu", static_cast<unsigned long long>(i));
      bool gone = tombstones && i % 50 == 7;
      std::string value(gone ? 0 : fixed_ ? 512 : 400 + random_() % 200, 'v');
      list.push_back({key, value, gone ? EntryKind::tombstone : EntryKind::put});
    }
    test::SegmentOptions options{.fixed_keys = true, .fixed_values = fixed_ && !tombstones};
    options.delta_width = 4;
    options.tree = std::string(40 * page_bytes, 't');
    options.keep_resident = resident;
    std::string path = "s" + std::to_string(++made_);
    auto segment = test::write_segment(files_, path, made_, list, options);
    CHECK_OK(segment);
    // What this process did not write is checked as it is read.
    if (!resident) segment = Segment::open(files_, path, made_);
    CHECK_OK(segment);
    log().set_warm(false);
    (void)log().take_fetches();
    (void)log().take_probes();
    return *segment;
  }
  std::shared_ptr<Segment> make_checked(uint64_t rows, bool tombstones = false) {
    auto segment = make(rows, tombstones);
    CHECK_OK(segment->verify());
    CHECK(segment->intact());
    (void)log().take_fetches();
    (void)log().take_probes();
    return segment;
  }
  std::vector<Location> random_rows(const Segment& segment, uint64_t n) {
    std::vector<Location> rows;
    for (uint64_t i = 0; i < n; ++i)
      rows.push_back({0, static_cast<uint32_t>(random_() % segment.rows())});
    return rows;
  }
  static uint64_t offset_of(const Segment& segment, const void* p) {
    return static_cast<uint64_t>(static_cast<const std::byte*>(p) -
                                 segment.mapping()->bytes().data());
  }
  bool there(const Segment& segment, Bytes bytes) {
    if (bytes.empty()) return true;
    uint64_t first = offset_of(segment, bytes.data());
    for (uint64_t at = first; at < first + bytes.size(); at += page_bytes)
      if (!log().has(at)) return false;
    return log().has(first + bytes.size() - 1);
  }
  static uint64_t total(const test::ColdLog::Ranges& ranges) {
    uint64_t bytes = 0;
    for (FileRange range : ranges) bytes += range.bytes;
    return bytes;
  }
  static void expect_ascending(const test::ColdLog::Ranges& ranges, uint64_t gap) {
    for (size_t i = 1; i < ranges.size(); ++i)
      CHECK(ranges[i].offset > ranges[i - 1].offset + ranges[i - 1].bytes + gap);
  }
  test::ColdLog& log() { return files_.log(); }

  static constexpr uint64_t never_whole = 1;
  MemoryFileSystem memory_;
  test::ColdFiles files_{memory_};
  std::mt19937_64 random_{test::seed()};
  uint64_t made_ = 0;
};

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.BringsTheRowsInFileOrderAndOnlyThose",
                 "[ColdReadTest]") {
  auto segment = make_checked(5000);
  std::vector<Location> rows = random_rows(*segment, 200);
  rows.push_back({Location::absent, Location::absent});
  rows.push_back({7, 0});
  rows.push_back({0, 4000000000});
  ColdReader cold({segment.get()}, {.gap_bytes = 0, .whole_bytes = never_whole});
  CHECK_FALSE(cold.idle());
  uint64_t end = 0;
  REQUIRE_OK(cold.prefetch_rows(rows, 0, &end));
  CHECK(end == rows.size());
  std::set<uint64_t> needed;
  auto need = [&](Bytes bytes) {
    uint64_t first = offset_of(*segment, bytes.data());
    needed.insert(first / page_bytes);
    needed.insert((first + bytes.size() - 1) / page_bytes);
  };
  for (size_t i = 0; i < 200; ++i) {
    Bytes value = segment->values()[rows[i].rank];
    need(value);
    CHECK(there(*segment, value));
    PackedOffsets o = segment->values().column.offsets;
    if (segment->values().column.fixed) continue;
    need({reinterpret_cast<const std::byte*>(o.bases + (rows[i].rank >> 7)), 8});
    need({reinterpret_cast<const std::byte*>(o.bases + ((rows[i].rank + 1) >> 7)), 8});
    need({static_cast<const std::byte*>(o.deltas) + rows[i].rank * 4, 8});
  }
  CHECK(log().pages() == needed.size());
  auto fetches = log().take_fetches();
  CHECK_MESSAGE(fetches.size() == (fixed_ ? 1u : 2u), "offsets first, then values");
  for (const auto& ranges : fetches) expect_ascending(ranges, 0);
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.NeighboursAreOneRead", "[ColdReadTest]") {
  auto segment = make_checked(5000);
  std::vector<Location> rows = random_rows(*segment, 300);
  uint64_t end;
  ColdReader cold({segment.get()}, {.gap_bytes = 32 << 10, .whole_bytes = never_whole});
  REQUIRE_OK(cold.prefetch_rows(rows, 0, &end));
  auto fetches = log().take_fetches();
  REQUIRE_FALSE(fetches.empty());
  for (const auto& ranges : fetches) expect_ascending(ranges, 32 << 10);
  CHECK(fetches.back().size() < 150u);
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.WindowsAreBounded", "[ColdReadTest]") {
  auto segment = make_checked(20000, /*tombstones=*/true);
  std::vector<Location> rows = random_rows(*segment, 1000);
  constexpr uint64_t window = 64 * page_bytes;
  ColdReader cold(
      {segment.get()},
      {.window_bytes = window, .gap_bytes = 0, .grain_rows = 8, .whole_bytes = never_whole});
  uint64_t windows = 0;
  for (uint64_t begin = 0, end; begin < rows.size(); begin = end, ++windows) {
    REQUIRE_OK(cold.prefetch_rows(rows, begin, &end));
    REQUIRE(end > begin);
    CHECK((end == rows.size() || end % 8 == 0));
    for (const auto& ranges : log().take_fetches())
      CHECK(total(ranges) <= window + 8 * 4 * page_bytes);
    for (uint64_t i = begin; i < end; ++i)
      REQUIRE(there(*segment, segment->values()[rows[i].rank]));
    log().set_warm(false);  // a window finds nothing of the ones before
  }
  CHECK(windows >= 10u);
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.WhereMuchIsNeededASectionIsReadWhole",
                 "[ColdReadTest]") {
  auto segment = make_checked(20000);
  uint64_t pages = segment->values().column.row_bytes() / page_bytes;
  for (bool much : {false, true}) {
    log().set_warm(false);
    (void)log().take_fetches();
    std::vector<Location> rows = random_rows(*segment, much ? pages / 2 : pages / 8);
    ColdReader cold({segment.get()}, {.window_bytes = 1 << 20, .gap_bytes = 0});
    uint64_t end;
    REQUIRE_OK(cold.prefetch_rows(rows, 0, &end));
    auto fetches = log().take_fetches();
    REQUIRE_FALSE(fetches.empty());
    if (!much) {
      CHECK(fetches.back().size() > 100u);
      continue;
    }
    CHECK(fetches.back().size() == 1u);
    CHECK(end == rows.size());
    CHECK(there(*segment, segment->section(SectionType::value_data)));
    // Once a batch, even where it does not stay.
    log().set_warm(false);
    REQUIRE_OK(cold.prefetch_rows(rows, 0, &end));
    CHECK(log().take_fetches().empty());
  }
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.WhatDoesNotStayIsReadInWindows", "[ColdReadTest]") {
  auto segment = make_checked(20000);
  std::vector<Location> rows = random_rows(*segment, 3000);
  log().set_capacity(1000);
  ColdReader cold({segment.get()}, {.window_bytes = 800 * page_bytes, .grain_rows = 8});
  uint64_t windows = 0;
  for (uint64_t begin = 0, end; begin < rows.size(); begin = end, ++windows) {
    REQUIRE_OK(cold.prefetch_rows(rows, begin, &end));
    REQUIRE(end > begin);
  }
  CHECK(windows >= 2u);
  uint64_t whole = 0;
  uint64_t bytes = segment->section(SectionType::value_data).size();
  for (const auto& ranges : log().take_fetches()) whole += ranges.front().bytes >= bytes;
  CHECK_MESSAGE(whole == 1u, "tried once");
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.StrayFaultsReadSinglePagesUntilTheReaderEnds",
                 "[ColdReadTest]") {
  auto segment = make_checked(5000);
  std::vector<Location> rows = random_rows(*segment, 100);
  uint64_t end;
  {
    ColdReader cold({segment.get()});
    CHECK(log().random() == 0);
    REQUIRE_OK(cold.prefetch_search(1));
    CHECK_MESSAGE(log().random() == 1, "a search that nothing was brought for");
    REQUIRE_OK(cold.prefetch_rows(rows, 0, &end));
    CHECK(log().random() == 1);
  }
  CHECK(log().random() == 0);
  log().set_warm(true);
  ColdReader warm({segment.get()});
  REQUIRE_OK(warm.prefetch_search(1));
  REQUIRE_OK(warm.prefetch_rows(rows, 0, &end));
  CHECK(log().random() == 0);
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.WhatACopyReadsPastAShortValueIsBrought",
                 "[ColdReadTest]") {
  auto segment = make_checked(5000);
  Bytes data = segment->section(SectionType::value_data);
  ColdReader cold({segment.get()}, {.gap_bytes = 0, .whole_bytes = never_whole});
  uint64_t begin = (offset_of(*segment, data.data()) / page_bytes + 5) * page_bytes - 20;
  uint64_t end;
  Bytes value = segment->mapping()->bytes().subspan(begin, 20);
  REQUIRE_OK(cold.prefetch_values(
      0, 1, [&](uint64_t) { return value; }, &end));
  CHECK(log().has(begin));
  CHECK(log().has(begin + 63));
  CHECK(log().pages() == 2u);
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.NothingIsReadWhereAllIsWarm", "[ColdReadTest]") {
  auto segment = make_checked(5000, /*tombstones=*/true);
  std::vector<Location> rows = random_rows(*segment, 3000);
  log().set_warm(true);
  ColdReader cold({segment.get()});
  uint64_t end = 0;
  REQUIRE_OK(cold.prefetch_search(1000000));
  REQUIRE_OK(cold.prefetch_rows(rows, 0, &end));
  CHECK(end == rows.size());
  REQUIRE_OK(cold.prefetch_positions(rows, 0, &end));
  CHECK(end == rows.size());
  REQUIRE_OK(prefetch_whole(*segment, segment->tree()));
  CHECK(log().take_fetches().empty());
  CHECK(log().take_probes() <= 64u * 6 * 2 + 33 * 5);
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.AFewColdPagesAmongWarmOnesAreLeftToTheMapping",
                 "[ColdReadTest]") {
  auto segment = make_checked(5000);
  std::vector<Location> rows = random_rows(*segment, 3000);
  ColdReader cold({segment.get()});
  uint64_t end;
  REQUIRE_OK(cold.prefetch_rows(rows, 0, &end));
  CHECK_FALSE(log().take_fetches().empty());
  REQUIRE_OK(cold.prefetch_rows(rows, 0, &end));
  CHECK_MESSAGE(log().take_fetches().empty(), "they are there now");
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.UncheckedBlocksAreBroughtWhole", "[ColdReadTest]") {
  auto segment = make(5000);
  REQUIRE_FALSE(segment->intact());
  std::vector<Location> rows{{0, 1000}, {0, 1001}};
  Bytes value = segment->values()[1000];
  uint64_t block = offset_of(*segment, value.data()) / segment_block_bytes;
  ColdReader cold({segment.get()}, {.gap_bytes = 0, .whole_bytes = never_whole});
  uint64_t end;
  REQUIRE_OK(cold.prefetch_positions(rows, 0, &end));
  for (uint64_t at = 0; at < segment_block_bytes; at += page_bytes)
    CHECK(log().has(block * segment_block_bytes + at));
  log().set_warm(false);
  (void)log().take_fetches();
  REQUIRE(segment->ensure(value.data(), 2 * value.size()));
  REQUIRE_OK(cold.prefetch_values(
      0, 1, [&](uint64_t) { return value; }, &end));
  auto fetches = log().take_fetches();
  REQUIRE(fetches.size() == 1u);
  CHECK_MESSAGE(total(fetches[0]) <= 2 * page_bytes, "the block has been checked");
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.PlacesAreBroughtWithoutValues", "[ColdReadTest]") {
  auto segment = make_checked(5000);
  std::vector<Location> rows = random_rows(*segment, 100);
  ColdReader cold({segment.get()}, {.gap_bytes = 0});
  uint64_t end = 0;
  REQUIRE_OK(cold.prefetch_positions(rows, 0, &end));
  CHECK(end == rows.size());
  // Deltas of 5,000 rows lie in 6 pages, their bases in 2.
  CHECK(log().pages() <= (fixed_ ? 0u : 8u));
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.ValuesAreFoundByTheirAddress", "[ColdReadTest]") {
  auto a = make_checked(3000), b = make_checked(3000);
  auto resident = make(3000, false, /*resident=*/true);
  const Segment* segments[] = {a.get(), resident.get(), b.get()};
  std::vector<Bytes> values;
  for (int i = 0; i < 1000; ++i) {
    const Segment& segment = *segments[i % 3];
    values.push_back(i % 10 ? segment.values()[random_() % 3000] : Bytes());
  }
  ColdReader cold({a.get(), resident.get(), b.get()}, {.whole_bytes = never_whole});
  uint64_t end = 0;
  REQUIRE_OK(cold.prefetch_values(
      0, 1000, [&](uint64_t i) { return values[i]; }, &end));
  CHECK(end == 1000u);
  CHECK(log().take_fetches().size() == 2u);
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.ResidentSegmentsCostNothing", "[ColdReadTest]") {
  auto segment = make(1000, false, /*resident=*/true);
  std::vector<Location> rows = random_rows(*segment, 1000);
  ColdReader cold({segment.get()});
  CHECK(cold.idle());
  uint64_t end = 0;
  CHECK_OK(cold.prefetch_search(1000));
  CHECK_OK(cold.prefetch_rows(rows, 0, &end));
  CHECK(end == rows.size());
  CHECK_OK(prefetch_whole(*segment, segment->tree()));
  CHECK(log().take_probes() == 0u);
  CHECK(log().take_fetches().empty());
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.OnlyWhatCannotBeReadFails", "[ColdReadTest]") {
  auto segment = make_checked(5000);
  std::vector<Location> rows = random_rows(*segment, 100);
  ColdReader cold({segment.get()}, {.gap_bytes = 1 << 20, .whole_bytes = never_whole});
  uint64_t end;
  auto fail_at = [&](uint64_t bad, StatusCode code) {
    log().set_warm(false);
    log().set_fault([=](FileRange range) {
      bool hit = range.offset <= bad && bad < range.offset + range.bytes;
      return hit ? Status(code, "on order") : Status();
    });
  };
  fail_at(offset_of(*segment, segment->values()[rows[50].rank].data()), StatusCode::io_error);
  CHECK(cold.prefetch_rows(rows, 0, &end).code() == StatusCode::io_error);
  fail_at(offset_of(*segment, segment->values()[rows[50].rank].data()), StatusCode::corruption);
  CHECK(cold.prefetch_rows(rows, 0, &end).code() == StatusCode::corruption);
  fail_at(offset_of(*segment, segment->values()[rows[50].rank].data()),
          StatusCode::resource_exhausted);
  CHECK_OK(cold.prefetch_rows(rows, 0, &end));
  // Between two rows, where only the joined read comes.
  std::set<uint32_t> ranks;
  for (Location row : rows) ranks.insert(row.rank);
  std::optional<uint32_t> middle;
  for (auto it = ranks.begin(); std::next(it) != ranks.end(); ++it)
    if (*std::next(it) - *it > 40) middle = *it + 20;
  REQUIRE(middle);
  fail_at(offset_of(*segment, segment->values()[*middle].data()), StatusCode::io_error);
  CHECK_OK(cold.prefetch_rows(rows, 0, &end));
  CHECK(end == rows.size());
  for (Location row : rows) CHECK(there(*segment, segment->values()[row.rank]));
  log().set_fault({});
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.ASearchOfManyKeysBringsTreeAndKeys",
                 "[ColdReadTest]") {
  auto segment = make_checked(20000);  // 40 pages of keys, 40 of the tree
  ColdReader few({segment.get()});
  REQUIRE_OK(few.prefetch_search(3));
  CHECK(log().pages() == 0u);
  REQUIRE_OK(few.prefetch_search(6));
  CHECK(there(*segment, segment->tree()));
  CHECK(there(*segment, segment->section(SectionType::key_data)));
  CHECK(log().pages() <= 85u);
  log().set_warm(false);
  ColdReader small({segment.get()}, {.whole_bytes = 50 * page_bytes});
  REQUIRE_OK(small.prefetch_search(1000));
  CHECK(there(*segment, segment->tree()));
  CHECK_FALSE(there(*segment, segment->section(SectionType::key_data)));
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.WholeSectionsAreBroughtOnce", "[ColdReadTest]") {
  auto segment = make(5000);
  REQUIRE_OK(prefetch_whole(*segment, segment->tree()));
  CHECK(there(*segment, segment->tree()));
  CHECK(log().take_fetches().size() == 1u);
  REQUIRE_OK(prefetch_whole(*segment, segment->tree()));
  REQUIRE_OK(prefetch_whole(*segment, {}));
  CHECK(log().take_fetches().empty());
  log().set_warm(false);
  log().set_fault([](FileRange) { return Status(StatusCode::io_error, "on order"); });
  CHECK(prefetch_whole(*segment, segment->tree()).code() == StatusCode::io_error);
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.DamagedOffsetsLeadNowhere", "[ColdReadTest]") {
  auto segment = make_checked(3000);
  std::string path = segment->path();
  uint64_t deltas = fixed_ ? 0 : offset_of(*segment, segment->values().column.offsets.deltas);
  if (fixed_) SKIP("no offsets");
  uint64_t bases = offset_of(*segment, segment->values().column.offsets.bases);
  segment.reset();
  {
    auto file = memory_.open(path, OpenMode::write);
    std::string noise(3000 * 4, '\0');
    for (char& c : noise) c = static_cast<char>(random_());
    REQUIRE_OK((*file)->write_at(deltas, as_bytes(noise)));
    REQUIRE_OK((*file)->write_at(bases, as_bytes(noise).first(100)));
  }
  auto damaged = Segment::open(files_, path, 1);
  REQUIRE_OK(damaged);
  std::vector<Location> rows = random_rows(**damaged, 500);
  ColdReader cold({damaged->get()}, {.window_bytes = 1 << 20});
  for (uint64_t begin = 0, end; begin < rows.size(); begin = end)
    REQUIRE_OK(cold.prefetch_rows(rows, begin, &end));
}

TEST_CASE_METHOD(ColdReadTest, "ColdReadTest.NoRowsAreNoWork", "[ColdReadTest]") {
  auto segment = make_checked(100);
  ColdReader cold({segment.get()});
  uint64_t end = 7;
  REQUIRE_OK(cold.prefetch_rows({}, 0, &end));
  CHECK(end == 0u);
  REQUIRE_OK(cold.prefetch_values(
      0, 0, [](uint64_t) { return Bytes(); }, &end));
  CHECK(end == 0u);
  REQUIRE_OK(ColdReader({}).prefetch_search(10));
  CHECK(log().take_fetches().empty());
}

}  // namespace
}  // namespace stride

#include "storage/segment_writer.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/segments.h"

namespace stride {
namespace {

using std::literals::operator""sv;

constexpr uint64_t rows = 400'000;

SegmentSummary summary_of(Bytes keys) {
  return {.rows = rows,
          .key_width = 8,
          .value_width = 16,
          .first_key = keys.first(8),
          .last_key = keys.last(8)};
}

// About 9 MiB, completed by several threads in pieces of any size and order.
Result<std::shared_ptr<Segment>> write_large(FileSystem& fs, uint64_t seed, bool resident,
                                             WaitFor wait = WaitFor::sync) {
  auto writer = SegmentWriter::create(fs, "db/1.seg", 1, {rows * 24, resident});
  if (!writer.ok()) return writer.status();
  std::span<std::byte> keys = (*writer)->add_section(SectionType::key_data, rows * 8);
  std::span<std::byte> values = (*writer)->add_section(SectionType::value_data, rows * 16);
  auto fill = [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      uint64_t key = __builtin_bswap64(i), value[2] = {i * i, ~i};
      std::memcpy(&keys[i * 8], &key, 8);
      std::memcpy(&values[i * 16], value, 16);
    }
    (*writer)->complete(keys.subspan(first * 8, (last - first) * 8));
    (*writer)->complete(values.subspan(first * 16, (last - first) * 16));
  };
  std::vector<std::thread> threads;
  constexpr uint64_t workers = 4;
  for (uint64_t t = 0; t < workers; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      uint64_t end = (t + 1) * rows / workers;
      for (uint64_t row = t * rows / workers; row < end;) {
        uint64_t next = std::min(end, row + 1 + random() % 50'000);
        fill(row, next);
        row = next;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return (*writer)->finish(summary_of(keys), wait);
}

class SegmentWriterTest {
 protected:
  SegmentWriterTest() { REQUIRE_OK(fs_.create_directory("db")); }
  void expect_large(Segment& segment) {
    REQUIRE_OK(segment.verify());
    for (uint64_t i = 0; i < rows; i += 997) {
      uint64_t value[2];
      std::memcpy(value, segment.values()[i].data(), 16);
      REQUIRE(value[0] == i * i);
      REQUIRE(value[1] == ~i);
    }
  }
  MemoryFileSystem fs_;
};

TEST_CASE_METHOD(SegmentWriterTest, "SegmentWriterTest.ThreadsCompleteInAnyOrder",
                 "[SegmentWriterTest]") {
  for (bool resident : {true, false}) {
    auto segment = write_large(fs_, test::seed(), resident);
    REQUIRE_OK(segment);
    expect_large(**segment);
    auto opened = Segment::open(fs_, "db/1.seg", 1);
    REQUIRE_OK(opened);
    expect_large(**opened);
    REQUIRE_OK(fs_.remove("db/1.seg"));
  }
}

TEST_CASE_METHOD(SegmentWriterTest, "SegmentWriterTest.SurvivesAPowerLossOnceFinished",
                 "[SegmentWriterTest]") {
  REQUIRE_OK(write_large(fs_, test::seed(), true));
  REQUIRE_OK(fs_.sync_directory("db"));
  auto after = fs_.crash(test::seed(), CrashPolicy::lose_unsynced);
  auto opened = Segment::open(*after, "db/1.seg", 1);
  REQUIRE_OK(opened);
  expect_large(**opened);
}

TEST_CASE_METHOD(SegmentWriterTest, "SegmentWriterTest.EveryFailingCallIsReportedAndLeavesNoFile",
                 "[SegmentWriterTest]") {
  REQUIRE_OK(write_large(fs_, test::seed(), true));
  uint64_t calls = fs_.calls();
  REQUIRE_OK(fs_.remove("db/1.seg"));
  for (uint64_t n = 1; n < calls; ++n) {
    fs_.fail_call(n, StatusCode::io_error);
    Status status = write_large(fs_, test::seed(), true).status();
    CHECK_MESSAGE(status.code() == StatusCode::io_error, "call " << n);
    CHECK(status.file() == "db/1.seg");
    fs_.fail_call(0, StatusCode::ok);
    CHECK_MESSAGE(fs_.list("db")->empty(), "call " << n);
  }
}

TEST_CASE_METHOD(SegmentWriterTest, "SegmentWriterTest.AFailedSyncIsAnIoErrorWhateverItsCause",
                 "[SegmentWriterTest]") {
  fs_.fail_sync(1, StatusCode::no_space);
  Status status = test::write_segment(fs_, "db/1.seg", 1, {{"a", "b"}}).status();
  CHECK(status.code() == StatusCode::io_error);
  CHECK(status.to_string().find("may be lost") != std::string::npos);
  CHECK(fs_.list("db")->empty());
}

TEST_CASE_METHOD(SegmentWriterTest, "SegmentWriterTest.AFullDiskIsNoSpace", "[SegmentWriterTest]") {
  for (uint64_t capacity : {uint64_t{0}, uint64_t{4096}, rows * 8, rows * 24}) {
    fs_.set_capacity(capacity);
    CHECK(write_large(fs_, test::seed(), true).status().code() == StatusCode::no_space);
    CHECK(fs_.list("db")->empty());
  }
  fs_.set_capacity(rows * 25);
  CHECK_OK(write_large(fs_, test::seed(), true));
}

TEST_CASE_METHOD(SegmentWriterTest, "SegmentWriterTest.AnAbandonedWriterRemovesItsFile",
                 "[SegmentWriterTest]") {
  {
    auto writer = SegmentWriter::create(fs_, "db/1.seg", 1, {8 << 20, true});
    REQUIRE_OK(writer);
    auto keys = (*writer)->add_section(SectionType::key_data, 8 << 20);
    (*writer)->complete(keys);
    CHECK(*fs_.exists("db/1.seg"));
  }
  CHECK_FALSE(*fs_.exists("db/1.seg"));
}

TEST_CASE_METHOD(SegmentWriterTest, "SegmentWriterTest.RefusesAFileThatIsThere",
                 "[SegmentWriterTest]") {
  REQUIRE_OK(test::write_segment(fs_, "db/1.seg", 1, {{"a", "b"}}));
  CHECK(test::write_segment(fs_, "db/1.seg", 1, {{"a", "b"}}).status().code() ==
        StatusCode::already_exists);
  CHECK(*fs_.exists("db/1.seg"));
}

TEST_CASE_METHOD(SegmentWriterTest, "SegmentWriterTest.MisuseIsInvalid", "[SegmentWriterTest]") {
  auto misuse = [&](auto use) {
    auto writer = SegmentWriter::create(fs_, "db/1.seg", 1, {100, true});
    use(**writer);
    return (*writer)
        ->finish({.rows = 1,
                  .key_width = 8,
                  .value_width = 0,
                  .first_key = as_bytes("\0\0\0\0\0\0\0\0"sv),
                  .last_key = as_bytes("\0\0\0\0\0\0\0\0"sv)},
                 WaitFor::sync)
        .status()
        .code();
  };
  CHECK(misuse([](SegmentWriter& w) {
          CHECK(w.add_section(SectionType::key_data, 101).empty());
        }) == StatusCode::invalid_argument);
  CHECK(misuse([](SegmentWriter& w) {
          (void)w.add_section(SectionType::key_data, 8);
          (void)w.add_section(SectionType::key_data, 8);
        }) == StatusCode::invalid_argument);
  CHECK(misuse([](SegmentWriter& w) { (void)w.add_section(SectionType::statistics, 8); }) ==
        StatusCode::invalid_argument);
  CHECK(misuse([](SegmentWriter& w) { (void)w.add_section(SectionType::key_data, 7); }) ==
        StatusCode::invalid_argument);
  CHECK(misuse([](SegmentWriter& w) {
          CHECK(w.add_section(SectionType::tree, ~uint64_t{0}).empty());
        }) == StatusCode::invalid_argument);
  CHECK(misuse([](SegmentWriter& w) { (void)w.add_section(SectionType::key_data, 8); }) ==
        StatusCode::ok);
}

TEST_CASE_METHOD(SegmentWriterTest, "SegmentWriterTest.MoreThanTheAddressSpaceIsAnError",
                 "[SegmentWriterTest]") {
  CHECK_FALSE(SegmentWriter::create(fs_, "db/1.seg", 1, {~uint64_t{0}, true}).ok());
  CHECK_FALSE(*fs_.exists("db/1.seg"));
}

}  // namespace
}  // namespace stride

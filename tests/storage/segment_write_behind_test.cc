// A segment whose file is still being written when finish() returns.

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "storage/current_file.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/segments.h"

namespace stride {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t full_pieces = 4;

std::vector<test::Row> large_rows() {
  std::vector<test::Row> rows;
  for (int i = 0; i < 1000; ++i) {
    rows.push_back({std::to_string(1000 + i), std::string(8500, char('a' + i % 26))});
  }
  return rows;
}

class SegmentWriteBehindTest {
 protected:
  SegmentWriteBehindTest() { REQUIRE_OK(fs_.create_directory("db")); }
  ~SegmentWriteBehindTest() { gate_.open_gate(); }
  Result<std::shared_ptr<Segment>> write(const std::string& path, WaitFor wait) {
    return test::write_segment(gate_, path, 1, rows_,
                               {.fixed_keys = true, .delta_width = 4, .wait = wait});
  }
  void expect_rows(Segment& segment) {
    std::vector<test::Row> rows;
    REQUIRE_OK(test::read_rows(segment, &rows));
    REQUIRE(rows == rows_);
  }
  std::vector<test::Row> rows_ = large_rows();
  MemoryFileSystem fs_;
  test::GatedFileSystem gate_{fs_};
};

TEST_CASE_METHOD(SegmentWriteBehindTest,
                 "SegmentWriteBehindTest.IsWholeInMemoryAtOnceAndOnTheDiskInTheEnd",
                 "[SegmentWriteBehindTest]") {
  gate_.shut();
  auto segment = write("db/1.seg", WaitFor::space);
  REQUIRE_OK(segment);
  CHECK((*segment)->being_written());
  CHECK((*segment)->intact());
  CHECK((*segment)->bytes_on_disk() == *(*fs_.open("db/1.seg", OpenMode::read))->size());
  expect_rows(**segment);
  auto verified = std::async(std::launch::async, [&] { return (*segment)->verify(); });
  CHECK(verified.wait_for(50ms) == std::future_status::timeout);
  gate_.open_gate();
  CHECK_OK(verified.get());
  CHECK_OK((*segment)->finish_write());
  CHECK_FALSE((*segment)->being_written());
  expect_rows(**segment);
  auto opened = Segment::open(fs_, "db/1.seg", 1);
  REQUIRE_OK(opened);
  CHECK_OK((*opened)->verify());
  expect_rows(**opened);
  REQUIRE_OK(write("db/2.seg", WaitFor::sync));
  CHECK(*read_file(fs_, "db/1.seg") == *read_file(fs_, "db/2.seg"));
}

TEST_CASE_METHOD(SegmentWriteBehindTest,
                 "SegmentWriteBehindTest.OnlyALargeResidentOneIsWrittenBehind",
                 "[SegmentWriteBehindTest]") {
  test::SegmentOptions options{.fixed_keys = true, .delta_width = 4, .wait = WaitFor::space};
  auto small = test::write_segment(fs_, "db/1.seg", 1, {{"a", "b"}}, options);
  REQUIRE_OK(small);
  CHECK_FALSE((*small)->being_written());
  CHECK_OK((*Segment::open(fs_, "db/1.seg", 1))->verify());
  options.keep_resident = false;
  auto mapped = test::write_segment(fs_, "db/2.seg", 2, rows_, options);
  REQUIRE_OK(mapped);
  CHECK_FALSE((*mapped)->being_written());
  CHECK_OK((*Segment::open(fs_, "db/2.seg", 2))->verify());
}

// How often disk space is reserved depends on which piece comes first, so that the last calls are
// not made every time.
TEST_CASE_METHOD(SegmentWriteBehindTest, "SegmentWriteBehindTest.EveryFailingCallIsReported",
                 "[SegmentWriteBehindTest]") {
  uint64_t n = 1;
  for (bool failed = true; failed; ++n) {
    uint64_t calls = fs_.calls();
    fs_.fail_call(n, StatusCode::no_space);
    auto segment = write("db/1.seg", WaitFor::space);
    if (segment.ok()) {
      Status status = (*segment)->finish_write();
      failed = fs_.calls() - calls >= n;
      CHECK_MESSAGE(status.code() == (failed ? StatusCode::io_error : StatusCode::ok),
                    "call " << n);
      CHECK(status.file() == (failed ? "db/1.seg" : ""));
      CHECK((*segment)->verify().code() == (failed ? StatusCode::io_error : StatusCode::ok));
      expect_rows(**segment);
      CHECK(Segment::open(fs_, "db/1.seg", 1).status().code() ==
            (failed ? StatusCode::corruption : StatusCode::ok));
    } else {
      CHECK_MESSAGE(segment.status().code() == StatusCode::no_space, "call " << n);
      CHECK_MESSAGE(fs_.list("db")->empty(), "call " << n);
    }
    fs_.fail_call(0, StatusCode::ok);
    if (segment.ok()) REQUIRE_OK(fs_.remove("db/1.seg"));
  }
  // It is created, its space is reserved, its pieces and its tail are written.
  CHECK(n > 2 + full_pieces + 1);
}

TEST_CASE_METHOD(SegmentWriteBehindTest, "SegmentWriteBehindTest.AHalfWrittenFileIsCorruption",
                 "[SegmentWriteBehindTest]") {
  for (uint64_t written = 0; written <= full_pieces; ++written) {
    gate_.shut(written);
    auto segment = write("db/1.seg", WaitFor::space);
    REQUIRE_OK(segment);
    gate_.wait_for_waiting(1);
    Status status = Segment::open(fs_, "db/1.seg", 1).status();
    CHECK_MESSAGE(status.code() == StatusCode::corruption, status.to_string());
    gate_.open_gate();
    CHECK_OK((*segment)->finish_write());
    REQUIRE_OK(fs_.remove("db/1.seg"));
  }
}

TEST_CASE_METHOD(SegmentWriteBehindTest, "SegmentWriteBehindTest.TheLastReferenceDropsWhatIsLeft",
                 "[SegmentWriteBehindTest]") {
  for (uint64_t written : {uint64_t{0}, full_pieces}) {
    gate_.shut(written);
    auto segment = write("db/1.seg", WaitFor::space);
    REQUIRE_OK(segment);
    gate_.wait_for_waiting(1);
    REQUIRE_OK(fs_.remove("db/1.seg"));
    auto gone = std::async(std::launch::async, [&] { segment->reset(); });
    CHECK(gone.wait_for(50ms) == std::future_status::timeout);
    gate_.open_gate();
    gone.get();
    CHECK(fs_.list("db")->empty());
  }
}

}  // namespace
}  // namespace stride

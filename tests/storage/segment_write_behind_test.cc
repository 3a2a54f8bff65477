// A segment whose file is still being written when finish() returns.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "storage/current_file.h"
#include "storage/memory_file_system.h"
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

class SegmentWriteBehindTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fs_.create_directory("db").ok()); }
  void TearDown() override { gate_.open_gate(); }
  Result<std::shared_ptr<Segment>> write(const std::string& path, WaitFor wait) {
    return test::write_segment(gate_, path, 1, rows_,
                               {.fixed_keys = true, .delta_width = 4, .wait = wait});
  }
  void expect_rows(Segment& segment) {
    std::vector<test::Row> rows;
    ASSERT_TRUE(test::read_rows(segment, &rows).ok());
    ASSERT_EQ(rows, rows_);
  }
  std::vector<test::Row> rows_ = large_rows();
  MemoryFileSystem fs_;
  test::GatedFileSystem gate_{fs_};
};

TEST_F(SegmentWriteBehindTest, IsWholeInMemoryAtOnceAndOnTheDiskInTheEnd) {
  gate_.shut();
  auto segment = write("db/1.seg", WaitFor::space);
  ASSERT_TRUE(segment.ok()) << segment.status().to_string();
  EXPECT_TRUE((*segment)->being_written());
  EXPECT_TRUE((*segment)->intact());
  EXPECT_EQ((*segment)->bytes_on_disk(), *(*fs_.open("db/1.seg", OpenMode::read))->size());
  expect_rows(**segment);
  auto verified = std::async(std::launch::async, [&] { return (*segment)->verify(); });
  EXPECT_EQ(verified.wait_for(50ms), std::future_status::timeout);
  gate_.open_gate();
  EXPECT_TRUE(verified.get().ok());
  EXPECT_TRUE((*segment)->finish_write().ok());
  EXPECT_FALSE((*segment)->being_written());
  expect_rows(**segment);
  auto opened = Segment::open(fs_, "db/1.seg", 1);
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_TRUE((*opened)->verify().ok());
  expect_rows(**opened);
  ASSERT_TRUE(write("db/2.seg", WaitFor::sync).ok());
  EXPECT_EQ(*read_file(fs_, "db/1.seg"), *read_file(fs_, "db/2.seg"));
}

TEST_F(SegmentWriteBehindTest, OnlyALargeResidentOneIsWrittenBehind) {
  test::SegmentOptions options{.fixed_keys = true, .delta_width = 4, .wait = WaitFor::space};
  auto small = test::write_segment(fs_, "db/1.seg", 1, {{"a", "b"}}, options);
  ASSERT_TRUE(small.ok());
  EXPECT_FALSE((*small)->being_written());
  EXPECT_TRUE((*Segment::open(fs_, "db/1.seg", 1))->verify().ok());
  options.keep_resident = false;
  auto mapped = test::write_segment(fs_, "db/2.seg", 2, rows_, options);
  ASSERT_TRUE(mapped.ok());
  EXPECT_FALSE((*mapped)->being_written());
  EXPECT_TRUE((*Segment::open(fs_, "db/2.seg", 2))->verify().ok());
}

// How often disk space is reserved depends on which piece comes first, so that the last calls are
// not made every time.
TEST_F(SegmentWriteBehindTest, EveryFailingCallIsReported) {
  uint64_t n = 1;
  for (bool failed = true; failed; ++n) {
    uint64_t calls = fs_.calls();
    fs_.fail_call(n, StatusCode::no_space);
    auto segment = write("db/1.seg", WaitFor::space);
    if (segment.ok()) {
      Status status = (*segment)->finish_write();
      failed = fs_.calls() - calls >= n;
      EXPECT_EQ(status.code(), failed ? StatusCode::io_error : StatusCode::ok) << "call " << n;
      EXPECT_EQ(status.file(), failed ? "db/1.seg" : "");
      EXPECT_EQ((*segment)->verify().code(), failed ? StatusCode::io_error : StatusCode::ok);
      expect_rows(**segment);
      EXPECT_EQ(Segment::open(fs_, "db/1.seg", 1).status().code(),
                failed ? StatusCode::corruption : StatusCode::ok);
    } else {
      EXPECT_EQ(segment.status().code(), StatusCode::no_space) << "call " << n;
      EXPECT_TRUE(fs_.list("db")->empty()) << "call " << n;
    }
    fs_.fail_call(0, StatusCode::ok);
    if (segment.ok()) ASSERT_TRUE(fs_.remove("db/1.seg").ok());
  }
  // It is created, its space is reserved, its pieces and its tail are written.
  EXPECT_GT(n, 2 + full_pieces + 1);
}

TEST_F(SegmentWriteBehindTest, AHalfWrittenFileIsCorruption) {
  for (uint64_t written = 0; written <= full_pieces; ++written) {
    gate_.shut(written);
    auto segment = write("db/1.seg", WaitFor::space);
    ASSERT_TRUE(segment.ok());
    gate_.wait_for_waiting(1);
    Status status = Segment::open(fs_, "db/1.seg", 1).status();
    EXPECT_EQ(status.code(), StatusCode::corruption) << status.to_string();
    gate_.open_gate();
    EXPECT_TRUE((*segment)->finish_write().ok());
    ASSERT_TRUE(fs_.remove("db/1.seg").ok());
  }
}

TEST_F(SegmentWriteBehindTest, TheLastReferenceDropsWhatIsLeft) {
  for (uint64_t written : {uint64_t{0}, full_pieces}) {
    gate_.shut(written);
    auto segment = write("db/1.seg", WaitFor::space);
    ASSERT_TRUE(segment.ok());
    gate_.wait_for_waiting(1);
    ASSERT_TRUE(fs_.remove("db/1.seg").ok());
    auto gone = std::async(std::launch::async, [&] { segment->reset(); });
    EXPECT_EQ(gone.wait_for(50ms), std::future_status::timeout);
    gate_.open_gate();
    gone.get();
    EXPECT_TRUE(fs_.list("db")->empty());
  }
}

}  // namespace
}  // namespace stride

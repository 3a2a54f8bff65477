// Read-ahead of ordered scans over mapped segments.
#include "engine/read/read_ahead.h"

#include <algorithm>
#include <set>

#include "storage/memory_file_system.h"
#include "tests/support/cold_files.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

struct ScanCase {
  const char* name;
  bool merged, reverse;
  friend void PrintTo(const ScanCase& c, std::ostream* out) { *out << c.name; }
};

class ReadAheadTest : public testing::TestWithParam<ScanCase> {
 protected:
  void open(uint64_t memory_limit_bytes) {
    Options options;
    options.file_system = &files_;
    options.memory_limit_bytes = memory_limit_bytes;
    options.threads = 2;
    auto db = Database::open("/db", options);
    ASSERT_TRUE(db.ok()) << db.status().to_string();
    database_ = std::move(*db);
    auto table = database_->open_or_create_table("t", {.key_width = 8});
    ASSERT_TRUE(table.ok());
    table_ = *table;
    for (int run = 0; run < (GetParam().merged ? 2 : 1); ++run) add_run(run);
    (void)log().take_hints();
  }
  void add_run(int run) {
    WriteTransaction t = database_->begin();
    std::mt19937_64 random(test::seed());
    for (uint64_t i = 0; i < rows; ++i) {
      char key[24];
      std::snprintf(key, sizeof key, "%07llu%d", static_cast<unsigned long long>(i), run);
      ASSERT_TRUE(t.put(table_, key, std::string(300 + random() % 400, 'v')).ok());
    }
    ASSERT_TRUE(t.commit().ok());
  }
  ColdLog& log() { return files_.log(); }
  Result<Scan> scan(ScanOptions options = {}) {
    options.reverse = GetParam().reverse;
    return database_->snapshot().scan(table_, options);
  }
  static uint64_t total(const ColdLog::Ranges& ranges) {
    uint64_t bytes = 0;
    for (FileRange range : ranges) bytes += range.bytes;
    return bytes;
  }

  static constexpr uint64_t rows = 60000;  // about 30 MB
  MemoryFileSystem memory_{{.crashable = false}};
  ColdFiles files_{memory_};
  std::unique_ptr<Database> database_;
  Table table_;
};

TEST_P(ReadAheadTest, AWholeScanAsksForEverythingAheadAndOnce) {
  open(1);
  auto s = scan();
  ASSERT_TRUE(s.ok());
  ScanBatch batch;
  uint64_t seen = 0, batches = 0, asked = 0, value_bytes = 0;
  while (s->next(&batch)) {
    seen += batch.keys.size;
    value_bytes += batch.values.bytes();
    for (FileRange range : log().take_hints()) {
      EXPECT_LE(range.bytes, RowReadAhead::most_bytes + (4 << 20));
      asked += range.bytes;
    }
    // Of seven sections in each of two segments.
    EXPECT_LE(asked, value_bytes * 2 + 14 * RowReadAhead::most_bytes);
    EXPECT_GE(asked, value_bytes) << "batch " << batches;
    ++batches;
  }
  EXPECT_TRUE(s->status().ok());
  EXPECT_EQ(seen, rows * (GetParam().merged ? 2 : 1));
  EXPECT_GT(batches, 5u);
  uint64_t bytes = database_->size_bytes();
  EXPECT_GE(asked, bytes * 9 / 10) << "all but trees and checksums";
  EXPECT_LE(asked, bytes) << "nothing is asked for twice";
}

TEST_P(ReadAheadTest, AShortScanAsksForLittle) {
  open(1);
  auto s = scan({.from = "0030000", .to = "0030010"});
  ASSERT_TRUE(s.ok());
  ScanBatch batch;
  uint64_t seen = 0;
  while (s->next(&batch)) seen += batch.keys.size;
  EXPECT_EQ(seen, GetParam().merged ? 20u : 10u);
  EXPECT_LE(total(log().take_hints()), 64u << 10);
}

TEST_P(ReadAheadTest, WhoStopsEarlyHasAskedForLittle) {
  open(1);
  auto s = scan({.batch_rows = 16});
  ASSERT_TRUE(s.ok());
  ScanBatch batch;
  ASSERT_TRUE(s->next(&batch));
  EXPECT_LE(total(log().take_hints()), 14 * (RowReadAhead::first_bytes + (64 << 10)));
}

TEST_P(ReadAheadTest, WhatIsWarmIsNotAskedFor) {
  open(1);
  log().set_warm(true);
  auto s = scan();
  ASSERT_TRUE(s.ok());
  ScanBatch batch;
  while (s->next(&batch)) {
  }
  EXPECT_TRUE(log().take_hints().empty());
}

TEST_P(ReadAheadTest, ResidentSegmentsAskForNothing) {
  open(uint64_t{1} << 30);
  (void)log().take_probes();
  auto s = scan();
  ASSERT_TRUE(s.ok());
  ScanBatch batch;
  while (s->next(&batch)) {
  }
  EXPECT_TRUE(log().take_hints().empty());
  EXPECT_EQ(log().take_probes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Scans, ReadAheadTest,
                         testing::Values(ScanCase{"forwards", false, false},
                                         ScanCase{"backwards", false, true},
                                         ScanCase{"merged", true, false},
                                         ScanCase{"merged_backwards", true, true}),
                         [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace stride::test

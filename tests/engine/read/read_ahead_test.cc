// Read-ahead of ordered scans over mapped segments.
#include "engine/read/read_ahead.h"

#include <algorithm>
#include <set>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/cold_files.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

struct ScanCase {
  const char* name;
  bool merged, reverse;
};

class ReadAheadTest {
 protected:
  const ScanCase case_ =
      GENERATE(ScanCase{"forwards", false, false}, ScanCase{"backwards", false, true},
               ScanCase{"merged", true, false}, ScanCase{"merged_backwards", true, true});
  RunsWith name_{case_.name};

  void open(uint64_t memory_limit_bytes) {
    Options options;
    options.file_system = &files_;
    options.memory_limit_bytes = memory_limit_bytes;
    options.threads = 2;
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    database_ = std::move(*db);
    auto table = database_->open_or_create_table("t", {.key_width = 8});
    REQUIRE_OK(table);
    table_ = *table;
    for (int run = 0; run < (case_.merged ? 2 : 1); ++run) add_run(run);
    (void)log().take_hints();
  }
  void add_run(int run) {
    WriteTransaction t = database_->begin();
    std::mt19937_64 random(test::seed());
    for (uint64_t i = 0; i < rows; ++i) {
      char key[24];
      std::snprintf(key, sizeof key, "%07llu%d", static_cast<unsigned long long>(i), run);
      REQUIRE_OK(t.put(table_, key, std::string(300 + random() % 400, 'v')));
    }
    REQUIRE_OK(t.commit());
  }
  ColdLog& log() { return files_.log(); }
  Result<Scan> scan(ScanOptions options = {}) {
    options.reverse = case_.reverse;
    return database_->snapshot().scan(table_, options);
  }
  static uint64_t total(const ColdLog::Ranges& ranges) {
    uint64_t bytes = 0;
    for (FileRange range : ranges) bytes += range.bytes;
    return bytes;
  }

  static constexpr uint64_t rows = smaller_under_tsan(60000, 32000);  // about 30 MB
  MemoryFileSystem memory_{{.crashable = false}};
  ColdFiles files_{memory_};
  std::unique_ptr<Database> database_;
  Table table_;
};

TEST_CASE_METHOD(ReadAheadTest, "ReadAheadTest.AWholeScanAsksForEverythingAheadAndOnce",
                 "[ReadAheadTest]") {
  open(1);
  auto s = scan();
  REQUIRE_OK(s);
  ScanBatch batch;
  uint64_t seen = 0, batches = 0, asked = 0, value_bytes = 0;
  while (s->next(&batch)) {
    seen += batch.keys.size;
    value_bytes += batch.values.bytes();
    for (FileRange range : log().take_hints()) {
      CHECK(range.bytes <= RowReadAhead::max_bytes + (4 << 20));
      asked += range.bytes;
    }
    // Seven sections are read in each of two segments.
    CHECK(asked <= value_bytes * 2 + 14 * RowReadAhead::max_bytes);
    CHECK_MESSAGE(asked >= value_bytes, "batch " << batches);
    ++batches;
  }
  CHECK_OK(s->status());
  CHECK(seen == rows * (case_.merged ? 2 : 1));
  CHECK(batches > 5u);
  uint64_t bytes = database_->size_bytes();
  CHECK_MESSAGE(asked >= bytes * 9 / 10, "all but trees and checksums");
  CHECK_MESSAGE(asked <= bytes, "nothing is asked for twice");
}

TEST_CASE_METHOD(ReadAheadTest, "ReadAheadTest.AShortScanAsksForLittle", "[ReadAheadTest]") {
  open(1);
  auto s = scan({.from = "0030000", .to = "0030010"});
  REQUIRE_OK(s);
  ScanBatch batch;
  uint64_t seen = 0;
  while (s->next(&batch)) seen += batch.keys.size;
  CHECK(seen == (case_.merged ? 20u : 10u));
  CHECK(total(log().take_hints()) <= 64u << 10);
}

TEST_CASE_METHOD(ReadAheadTest, "ReadAheadTest.WhoStopsEarlyHasAskedForLittle", "[ReadAheadTest]") {
  open(1);
  auto s = scan({.batch_rows = 16});
  REQUIRE_OK(s);
  ScanBatch batch;
  REQUIRE(s->next(&batch));
  CHECK(total(log().take_hints()) <= 14 * (RowReadAhead::first_bytes + (64 << 10)));
}

TEST_CASE_METHOD(ReadAheadTest, "ReadAheadTest.WhatIsWarmIsNotAskedFor", "[ReadAheadTest]") {
  open(1);
  log().set_warm(true);
  auto s = scan();
  REQUIRE_OK(s);
  ScanBatch batch;
  while (s->next(&batch)) {
  }
  CHECK(log().take_hints().empty());
}

TEST_CASE_METHOD(ReadAheadTest, "ReadAheadTest.ResidentSegmentsAskForNothing", "[ReadAheadTest]") {
  open(uint64_t{1} << 30);
  (void)log().take_probes();
  auto s = scan();
  REQUIRE_OK(s);
  ScanBatch batch;
  while (s->next(&batch)) {
  }
  CHECK(log().take_hints().empty());
  CHECK(log().take_probes() == 0u);
}

}  // namespace
}  // namespace stride::test

// What metrics count beside what was done.
#include "engine/metrics.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/database.h"
#include "engine/prefixes.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class MetricsTest {
 protected:
  MetricsTest() { open({.memtable_bytes = 1 << 20, .background_work = false}); }
  void open(Options options) {
    options.threads = 2;
    options.file_system = &files_;
    if (!options.shared_backend) options.backend = BackendKind::host;
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    db_ = std::move(*db);
  }

  // Commits rows whose keys are numbers below `keys`.
  void put(const Table& table, uint64_t rows, uint64_t keys, Durability durability) {
    WriteTransaction t = db_->begin();
    for (uint64_t i = 0; i < rows; ++i) {
      const std::string key = key_of(random_() % keys), value(random_() % 40, 'v');
      REQUIRE_OK(t.put(table, key, value));
      model_[key] = value;
      expected_.committed_bytes += key.size() + value.size();
    }
    REQUIRE_OK(t.commit(durability));
    expected_.committed_rows += rows;
  }
  static std::string key_of(uint64_t number) {
    std::string digits = std::to_string(number);
    return std::string(8 - digits.size(), '0') + digits;
  }
  void get_one(const Table& table, uint64_t keys) {
    const std::string key = key_of(random_() % keys);
    auto found = db_->snapshot().get(table, key);
    REQUIRE_OK(found);
    auto there = model_.find(key);
    REQUIRE(found->has_value() == (there != model_.end()));
    ++expected_.gets;
    expected_.get_found += found->has_value();
    if (found->has_value()) expected_.get_bytes += there->second.size();
  }
  // By get() or by find(), of batches that are small enough for a loop, too.
  void get_many(const Table& table, uint64_t keys) {
    const uint64_t n = random_() % 2 ? random_() % 6 : random_() % 300;
    std::string bytes;
    uint64_t there = 0, value_bytes = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const std::string key = key_of(random_() % keys);
      bytes += key;
      auto found = model_.find(key);
      if (found == model_.end()) continue;
      ++there;
      value_bytes += found->second.size();
    }
    const KeyColumn queries = Column::fixed(bytes.data(), 8, n);
    ++expected_.batch_gets;
    expected_.batch_keys += n;
    expected_.batch_found += there;
    if (random_() % 2) {
      GetResult result;
      REQUIRE_OK(db_->snapshot().get(table, queries, &result));
      expected_.batch_bytes += value_bytes;
    } else {
      FindResult result;
      REQUIRE_OK(db_->snapshot().find(table, queries, &result));
    }
  }
  void scan_all(const Table& table) {
    auto scan = db_->snapshot().scan(table, {.reverse = random_() % 2 == 0});
    REQUIRE_OK(scan);
    ScanBatch batch;
    while (scan->next(&batch)) {
    }
    REQUIRE_OK(scan->status());
    ++expected_.scans;
    expected_.scan_rows += model_.size();
    for (const auto& [key, value] : model_) expected_.scan_bytes += key.size() + value.size();
  }
  void check() const {
    const OperationMetrics m = db_->metrics().operations;
    CHECK(m.gets == expected_.gets);
    CHECK(m.get_found == expected_.get_found);
    CHECK(m.get_bytes == expected_.get_bytes);
    CHECK(m.batch_gets == expected_.batch_gets);
    CHECK(m.batch_keys == expected_.batch_keys);
    CHECK(m.batch_found == expected_.batch_found);
    CHECK(m.batch_bytes == expected_.batch_bytes);
    CHECK(m.device_keys == 0u);
    CHECK(m.lower_bounds == expected_.lower_bounds);
    CHECK(m.scans == expected_.scans);
    CHECK(m.scan_rows == expected_.scan_rows);
    CHECK(m.scan_bytes == expected_.scan_bytes);
    CHECK(m.small_commits == expected_.small_commits);
    CHECK(m.large_commits == expected_.large_commits);
    CHECK(m.failed_commits == expected_.failed_commits);
    CHECK(m.committed_rows == expected_.committed_rows);
    CHECK(m.committed_bytes == expected_.committed_bytes);
    CHECK(m.commit_latency.count == expected_.small_commits + expected_.large_commits);
    CHECK(m.get_latency.count == (expected_.gets + 127) / 128);
  }

  std::mt19937_64 random_{seed()};
  MemoryFileSystem files_;
  std::unique_ptr<Database> db_;
  std::map<std::string, std::string> model_;
  OperationMetrics expected_;
};

TEST_CASE_METHOD(MetricsTest, "MetricsTest.CountsOfARandomWorkloadAreExact", "[MetricsTest]") {
  auto table = db_->create_table("t", {.key_width = 8});
  REQUIRE_OK(table);
  const uint64_t keys = 500;
  for (int step = 0; step < 1500; ++step) {
    switch (random_() % 12) {
      case 0:
        put(*table, 1 + random_() % 20, keys, Durability::flush);
        ++expected_.small_commits;
        break;
      case 1:
        if (step % 8 != 0) break;
        put(*table, 6000, keys, Durability::none);
        ++expected_.large_commits;
        break;
      case 2: {
        LowerBoundResult result;
        const std::string key = key_of(random_() % keys);
        REQUIRE_OK(db_->snapshot().lower_bound(*table, Column::fixed(key.data(), 8, 1), &result));
        ++expected_.lower_bounds;
        break;
      }
      case 3:
        if (step % 16 == 0) scan_all(*table);
        break;
      case 4: {  // of a table that is gone
        auto gone = db_->create_table("gone");
        REQUIRE_OK(gone);
        WriteTransaction t = db_->begin();
        REQUIRE_OK(t.put(*gone, "key", "value"));
        REQUIRE_OK(db_->drop_table("gone"));
        CHECK(t.commit().code() == StatusCode::not_found);
        ++expected_.failed_commits;
        CHECK_FALSE(db_->snapshot().get(*gone, "key").ok());
        ++expected_.gets;
        break;
      }
      case 5:
      case 6:
        get_many(*table, keys);
        break;
      default:
        get_one(*table, keys);
    }
  }
  check();
  REQUIRE_OK(db_->close());
  check();
}

// More threads than have a slot of their own, one after the other and together.
TEST_CASE_METHOD(MetricsTest, "MetricsTest.CountsOfManyThreadsAreExact", "[MetricsTest]") {
  auto table = db_->create_table("t");
  REQUIRE_OK(table);
  put(*table, 100, 100, Durability::none);
  ++expected_.small_commits;
  const Snapshot snapshot = db_->snapshot();
  constexpr uint64_t threads = 100, gets = 500;
  std::atomic<uint64_t> found{0}, bytes{0};
  auto read = [&](uint64_t first) {
    for (uint64_t i = 0; i < gets; ++i) {
      auto value = snapshot.get(*table, key_of((first + i) % 130));
      if (!value.ok() || !value->has_value()) continue;
      ++found;
      bytes += (*value)->size();
    }
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> running;
    for (uint64_t t = 0; t < threads; ++t) {
      running.emplace_back(read, t);
      if (round == 0) running.back().join();
    }
    for (std::thread& thread : running)
      if (thread.joinable()) thread.join();
  }
  const OperationMetrics m = db_->metrics().operations;
  CHECK(m.gets == 3 * threads * gets);
  CHECK(m.get_found == found);
  CHECK(m.get_bytes == bytes);
  CHECK(m.get_latency.count >= m.gets / 128);
}

TEST_CASE_METHOD(MetricsTest, "MetricsTest.MatchesAreCounted", "[MetricsTest]") {
  auto table = db_->create_table("routes", {.address_bits = 32});
  REQUIRE_OK(table);
  auto key = parse_prefix("10.0.0.0/8", 32);
  REQUIRE_OK(key);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(*table, *key, "v"));
  REQUIRE_OK(t.commit());
  const uint8_t addresses[] = {10, 1, 2, 3, 11, 1, 2, 3, 10, 9, 9, 9};
  MatchResult result;
  REQUIRE_OK(db_->snapshot().match(*table, Column::fixed(addresses, 4, 3), &result));
  auto one = db_->snapshot().match(*table, Bytes(reinterpret_cast<const std::byte*>(addresses), 4));
  REQUIRE_OK(one);
  const OperationMetrics m = db_->metrics().operations;
  CHECK(m.match_addresses == 4u);
  CHECK(m.match_found == 3u);
  CHECK(m.large_commits == 1u);
}

TEST_CASE_METHOD(MetricsTest, "MetricsTest.WorkAndStateFollowWhatIsThere", "[MetricsTest]") {
  auto table = db_->create_table("t", {.key_width = 8});
  REQUIRE_OK(table);
  put(*table, 50, 1000, Durability::sync);
  Metrics before = db_->metrics();
  CHECK(before.work.log_bytes > 50 * 8);
  CHECK(before.work.log_syncs >= 1u);
  CHECK(before.state.log_bytes >= before.work.log_bytes);
  CHECK(before.state.memtable_rows == 50u);
  CHECK(before.state.memtable_bytes > 0u);
  CHECK(before.state.runs == 0u);
  CHECK(before.state.space_amplification == 0.0);
  put(*table, 6000, 1000, Durability::sync);
  const uint64_t bulk_bytes = db_->metrics().state.segment_bytes;
  put(*table, 6000, 1000, Durability::sync);
  REQUIRE_OK(db_->compact());
  const Metrics m = db_->metrics();
  CHECK(m.work.bulk_bytes > bulk_bytes);
  CHECK(m.work.flushes == 1u);
  CHECK(m.work.flush_memory_bytes > 0u);
  CHECK(m.work.flush_bytes > 0u);
  CHECK(m.work.compactions == 1u);
  CHECK(m.work.compaction_read_bytes == m.work.bulk_bytes + m.work.flush_bytes);
  CHECK(m.work.compaction_bytes == m.state.segment_bytes);
  CHECK(m.work.failed_flushes + m.work.failed_compactions == 0u);
  CHECK(m.state.runs == 1u);
  CHECK(m.state.rows == model_.size());
  CHECK(m.state.memtable_rows == 0u);
  CHECK(m.state.debt_bytes == 0u);
  CHECK(m.state.space_amplification == Approx(1));
  CHECK(m.state.size_bytes == db_->size_bytes());
  const auto written =
      m.work.log_bytes + m.work.bulk_bytes + m.work.flush_bytes + m.work.compaction_bytes;
  CHECK(m.state.write_amplification ==
        Approx(static_cast<double>(written) / static_cast<double>(m.operations.committed_bytes)));
  REQUIRE(m.state.tables.size() == 1u);
  CHECK(m.state.tables[0].rows == model_.size());
  CHECK_FALSE(m.state.poisoned);
  CHECK_FALSE(m.state.read_only);
}

TEST_CASE_METHOD(MetricsTest, "MetricsTest.APoisonedHandleSaysSo", "[MetricsTest]") {
  auto table = db_->create_table("t");
  REQUIRE_OK(table);
  files_.fail_sync(1, StatusCode::io_error, /*forever=*/true);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(*table, "key", "value"));
  CHECK_FALSE(t.commit().ok());
  const Metrics m = db_->metrics();
  CHECK(m.state.poisoned);
  CHECK(m.operations.failed_commits == 1u);
  CHECK(m.operations.committed_rows == 0u);
}

TEST_CASE_METHOD(MetricsTest, "MetricsTest.KeysThatADeviceSearchesAreCounted", "[MetricsTest]") {
  auto table = db_->create_table("t", {.key_width = 8});
  REQUIRE_OK(table);
  // Too few to measure where batches are faster: they go to the device.
  put(*table, 4000, 100000, Durability::sync);
  REQUIRE_OK(db_->compact());
  REQUIRE_OK(db_->close());
  db_.reset();
  auto device = std::make_shared<FakeDevice>(/*memory=*/64 << 20);
  open({.shared_backend = device});
  table = db_->open_table("t");
  REQUIRE_OK(table);
  std::string bytes;
  constexpr uint64_t n = 1 << 16;
  for (uint64_t i = 0; i < n; ++i) bytes += key_of(i);
  GetResult result;
  REQUIRE_OK(db_->snapshot().get(*table, Column::fixed(bytes.data(), 8, n), &result));
  REQUIRE_OK(db_->snapshot().get(*table, Column::fixed(bytes.data(), 8, 3), &result));
  const Metrics m = db_->metrics();
  CHECK(m.operations.batch_keys == n + 3);
  CHECK(device->searches() > 0u);
  CHECK(m.operations.device_keys == n);
  CHECK(m.work.device_copies == m.state.device_segments);
  CHECK(m.state.device_segments == 1u);
  CHECK(m.state.device_bytes > 0u);
}

}  // namespace
}  // namespace stride::test

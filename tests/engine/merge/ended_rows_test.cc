// Which segments whose rows have all ended are removed, and in which order.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "storage/row_format.h"
#include "tests/engine/merge/database_parts.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

// Rows that end at a second, which the test's clock tells. What is chosen is installed at once.
class EndedRowsTest {
 protected:
  EndedRowsTest() {
    auto db = Database::open("db", {.memtable_bytes = 0, .file_system = &fs_});
    REQUIRE_OK(db);
    REQUIRE_OK((*db)->create_table("t", {.schema = schema_, .expiry_column = "until"}));
    REQUIRE_OK((*db)->close());
    parts_.emplace(fs_, /*memory_limit_bytes=*/1 << 30, [this] { return second_ * 1'000'000; });
    REQUIRE_OK(parts_->versions.open());
    parts_->context.identity->clock.start();
  }
  // A commit is a run. Keys that all end then.
  void commit(const std::vector<std::string>& keys, int64_t end) {
    RowWriter row(schema_);
    row.set(0, end);
    const std::string value(as_text(row.bytes()));
    Staging staging;
    Rows put(keys), values(std::vector<std::string>(keys.size(), value));
    Column column = values.column();
    REQUIRE_OK(staging.stage(table().table, put.column(), &column));
    CommitRequest request{.staging = &staging, .durability = Durability::sync};
    parts_->committer.commit({&request});
    REQUIRE_OK(request.status);
  }
  const TableVersion& table() { return *parts_->versions.current()->find_name("t"); }
  // First keys of the table's segments, the newest first.
  std::vector<std::string> segments() {
    std::vector<std::string> first_keys;
    for (const auto& segment : table().segments) first_keys.push_back(text(segment->first_key()));
    return first_keys;
  }
  // First keys of the segments that the next compaction takes, which is done then.
  std::vector<std::string> compact_at(int64_t second) {
    second_ = second;
    std::vector<std::string> first_keys;
    auto choice = choose_runs(*parts_->versions.current(), table(), /*written=*/0);
    if (!choice) return first_keys;
    for (const auto& input : choice->inputs) first_keys.push_back(text(input->first_key()));
    MergedRun merged(parts_->unsynced);
    REQUIRE_OK(parts_->compactor.merge(*choice, &merged));
    auto installed = parts_->compactor.install(*choice, &merged, parts_->commit_mutex);
    REQUIRE_OK(installed.status());
    CHECK(*installed);
    return first_keys;
  }
  // Keys that are found then, after a reopening.
  std::vector<std::string> keys_at(int64_t second) {
    REQUIRE_OK(parts_->versions.close());
    Options options{.memtable_bytes = 0, .file_system = &fs_};
    options.clock = [second] { return second * 1'000'000; };
    auto db = Database::open("db", options);
    REQUIRE_OK(db);
    auto scan = (*db)->snapshot().scan(*(*db)->open_table("t"));
    ScanBatch batch;
    std::vector<std::string> keys;
    while (scan->next(&batch))
      for (uint64_t i = 0; i < batch.keys.size; ++i) keys.push_back(text(batch.keys[i]));
    return keys;
  }

  MemoryFileSystem fs_;
  const Schema schema_ = *Schema::parse("until timestamp[s]");
  int64_t second_ = 0;
  std::optional<Parts> parts_;
};

// Whose keys lie among those of an older run, or are its last one, stays until that run is gone: it
// hides rows there. Others go, wherever they lie.
TEST_CASE_METHOD(EndedRowsTest, "EndedRowsTest.WhatHidesOlderRowsStays", "[EndedRowsTest]") {
  commit({"b", "d", "f"}, 100);
  commit({"d"}, 10);
  commit({"f", "g"}, 10);
  commit({"a", "aa"}, 10);
  commit({"x", "y"}, 50);
  const std::vector<std::string> all = {"x", "a", "f", "d", "b"}, none;
  CHECK(compact_at(9) == none);
  CHECK(segments() == all);
  CHECK(compact_at(10) == std::vector<std::string>{"a"});
  CHECK(compact_at(11) == none);
  CHECK(segments() == std::vector<std::string>{"x", "f", "d", "b"});
  CHECK(compact_at(50) == std::vector<std::string>{"x"});
  CHECK(compact_at(99) == none);
  CHECK(segments() == std::vector<std::string>{"f", "d", "b"});
  CHECK(keys_at(99) == std::vector<std::string>{"b"});
}

// The older run goes first, and with it what newer ones had to hide.
TEST_CASE_METHOD(EndedRowsTest, "EndedRowsTest.OlderOnesGoBeforeWhatHidesThem", "[EndedRowsTest]") {
  commit({"b", "d"}, 20);
  commit({"d", "e"}, 10);
  commit({"h"}, 30);
  CHECK(compact_at(19).empty());
  CHECK(compact_at(20) == std::vector<std::string>{"b"});
  CHECK(segments() == std::vector<std::string>{"h", "d"});
  CHECK(compact_at(20) == std::vector<std::string>{"d"});
  CHECK(segments() == std::vector<std::string>{"h"});
  CHECK(compact_at(29).empty());
  CHECK(keys_at(29) == std::vector<std::string>{"h"});
}

}  // namespace
}  // namespace stride::test

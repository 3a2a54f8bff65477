// Choosing, merging and installing a compaction, each by itself.
#include "engine/merge/compaction.h"

#include "engine/read/lookup.h"
#include "storage/memory_file_system.h"
#include "tests/engine/merge/database_parts.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

class CompactionTest {
 protected:
  CompactionTest() {
    auto db = open();
    CHECK_OK(db->create_table("t"));
    CHECK_OK(db->close());
    parts_ = std::make_unique<Parts>(fs_);
    CHECK_OK(parts_->versions.open());
  }
  std::unique_ptr<Database> open() {
    return std::move(*Database::open("db", {.memtable_bytes = 0, .file_system = &fs_}));
  }

  std::shared_ptr<const Version> current() { return parts_->versions.current(); }
  const TableVersion& table() { return *current()->find_name("t"); }
  // An empty value erases.
  void commit(const std::vector<std::pair<std::string, std::string>>& rows) {
    Staging staging;
    auto record = table().table;
    for (const auto& [key, value] : rows) {
      Rows keys({key}), values({value});
      Column column = values.column();
      REQUIRE_OK(staging.stage(record, keys.column(), value.empty() ? nullptr : &column));
      expected_[key] = value;
      if (value.empty()) expected_.erase(key);
    }
    CommitRequest request{.staging = &staging, .durability = Durability::sync};
    parts_->committer.commit({&request});
    REQUIRE_OK(request.status);
  }
  // Keys from `from` on and before `to`.
  void erase(const std::string& from, const std::string& to,
             Durability durability = Durability::sync) {
    Staging staging;
    REQUIRE_OK(staging.stage_ranges(table().table, {{from, to}}));
    CommitRequest request{.staging = &staging, .durability = durability};
    parts_->committer.commit({&request});
    REQUIRE_OK(request.status);
    expected_.erase(expected_.lower_bound(from), expected_.lower_bound(to));
  }
  void expect_rows(const SegmentList& segments) {
    for (const auto& s : segments) REQUIRE_OK(s->prepare());
    for (std::string key : {"a", "b", "c", "d"}) {
      auto found = lookup_one(segments, as_bytes(key));
      REQUIRE_OK(found.status());
      REQUIRE_MESSAGE(found->has_value() == (expected_.count(key) == 1), key);
      if (found->has_value()) CHECK(text(**found) == expected_[key]);
    }
  }
  void expect_rows_after_reopening() {
    REQUIRE_OK(parts_->versions.close());
    auto db = open();
    auto scan = db->snapshot().scan(*db->open_table("t"));
    ScanBatch batch;
    Model rows;
    while (scan->next(&batch))
      for (uint64_t i = 0; i < batch.keys.size; ++i)
        rows[text(batch.keys[i])] = text(batch.values[i]);
    CHECK(rows == expected_);
  }
  uint64_t segment_files() {
    auto names = *fs_.list("db");
    return static_cast<uint64_t>(
        std::count_if(names.begin(), names.end(),
                      [](const std::string& name) { return name.ends_with(".seg"); }));
  }

  MemoryFileSystem fs_;
  std::unique_ptr<Parts> parts_;
  Model expected_;
};

TEST_CASE_METHOD(CompactionTest, "CompactionTest.ChoosesWhatIsNotOneRunWithoutTombstones",
                 "[CompactionTest]") {
  CHECK_FALSE(choose_compaction(*current(), table()));
  commit({{"a", "1"}, {"b", "1"}});
  CHECK_FALSE(choose_compaction(*current(), table()));
  commit({{"a", ""}});
  std::shared_ptr<const Version> version = current();
  auto choice = choose_compaction(*version, *version->find_name("t"));
  REQUIRE(choice);
  CHECK(choice->inputs.size() == 2u);
  CHECK(choice->run == choice->inputs[0]->record().run);
  CHECK(choice->table->name == "t");
  // Nothing has come of it yet.
  CHECK(current() == version);
  CHECK(segment_files() == 2u);
}

TEST_CASE_METHOD(CompactionTest, "CompactionTest.MergesAndInstallsBesideCommits",
                 "[CompactionTest]") {
  commit({{"a", "1"}, {"b", "1"}, {"c", "1"}});
  commit({{"a", "2"}, {"c", ""}});
  auto choice = choose_compaction(*current(), table());
  REQUIRE(choice);
  MergedRun merged(parts_->unsynced);
  commit({{"b", "3"}});
  REQUIRE_OK(parts_->compactor.merge(*choice, &merged));
  commit({{"a", ""}, {"d", "4"}});
  expect_rows(table().segments);
  auto installed = parts_->compactor.install(*choice, &merged, parts_->commit_mutex);
  REQUIRE_OK(installed.status());
  CHECK(*installed);
  CHECK(table().segments.size() == 3u);
  expect_rows(table().segments);
  merged.pending.obsolete.clear();
  choice.reset();
  CHECK(segment_files() == 3u);
  CHECK(current()->file_bytes == table().segments.file_bytes());
  expect_rows_after_reopening();
}

// Of a merge that leaves older runs as they are they hide rows there.
TEST_CASE_METHOD(CompactionTest, "CompactionTest.TombstonesStayWhereOlderRunsDo",
                 "[CompactionTest]") {
  commit({{"a", "1"}, {"b", "1"}, {"c", "1"}});
  commit({{"a", ""}, {"b", "2"}});
  commit({{"b", ""}, {"d", "3"}});
  const SegmentList all = table().segments;
  REQUIRE(all.size() == 3u);
  const SegmentList newer(all.begin(), all.begin() + 2);
  const Compaction choice{table().table, newer, newer[0]->record().run, /*to_bottom=*/false};
  {
    MergedRun merged(parts_->unsynced);
    REQUIRE_OK(parts_->compactor.merge(choice, &merged));
    auto installed = parts_->compactor.install(choice, &merged, parts_->commit_mutex);
    REQUIRE_OK(installed.status());
    CHECK(*installed);
  }
  CHECK(expected_ == (Model{{"c", "1"}, {"d", "3"}}));
  REQUIRE(table().segments.size() == 2u);
  CHECK(table().segments[0]->record().tombstones == 2u);
  expect_rows(table().segments);
  // With the oldest run they may go.
  REQUIRE_OK(parts_->compactor.compact_all(parts_->commit_mutex, nullptr));
  REQUIRE(table().segments.size() == 1u);
  CHECK(table().segments[0]->rows() == 2u);
  expect_rows(table().segments);
  expect_rows_after_reopening();
}

TEST_CASE_METHOD(CompactionTest, "CompactionTest.InstallsNothingWhereAnInputIsGone",
                 "[CompactionTest]") {
  commit({{"a", "1"}, {"b", "1"}});
  commit({{"a", "2"}});
  auto choice = choose_compaction(*current(), table());
  REQUIRE(choice);
  {
    MergedRun late(parts_->unsynced);
    REQUIRE_OK(parts_->compactor.merge(*choice, &late));
    REQUIRE_OK(parts_->compactor.compact_all(parts_->commit_mutex, nullptr));
    auto version = current();
    auto installed = parts_->compactor.install(*choice, &late, parts_->commit_mutex);
    REQUIRE_OK(installed.status());
    CHECK_FALSE(*installed);
    CHECK(current() == version);
    CHECK(segment_files() == 4u);
  }
  choice.reset();
  CHECK(segment_files() == 1u);
  expect_rows(table().segments);
  expect_rows_after_reopening();
}

TEST_CASE_METHOD(CompactionTest, "CompactionTest.InstallsNothingWhereTheTableIsGone",
                 "[CompactionTest]") {
  commit({{"a", "1"}});
  commit({{"a", "2"}});
  auto choice = choose_compaction(*current(), table());
  REQUIRE(choice);
  {
    MergedRun late(parts_->unsynced);
    PendingEdit drop(parts_->unsynced);
    REQUIRE_OK(parts_->compactor.merge(*choice, &late));
    drop.edit.dropped.push_back(choice->table->id);
    drop.obsolete.assign(choice->inputs.begin(), choice->inputs.end());
    REQUIRE_OK(parts_->versions.apply(*current(), &drop, Durability::sync));
    auto installed = parts_->compactor.install(*choice, &late, parts_->commit_mutex);
    REQUIRE_OK(installed.status());
    CHECK_FALSE(*installed);
  }
  choice.reset();
  CHECK(segment_files() == 0u);
}

// What a range takes of the inputs while they are merged is gone from the result, and nothing else:
// neither keys between two ranges that meet in an input, nor such as came after an earlier one.
TEST_CASE_METHOD(CompactionTest, "CompactionTest.InstallsBesideRangesThatEraseRowsOfTheInputs",
                 "[CompactionTest]") {
  commit({{"a", "1"}, {"b1", "1"}, {"b3", "1"}, {"c", "1"}, {"d", "1"}, {"e", "1"}});
  erase("b3", "c");  // before the choice: rows of its keys that come later are not erased
  commit({{"a", "2"}, {"b2", "2"}, {"b3", "2"}, {"d5", "2"}});
  auto choice = choose_compaction(*current(), table());
  REQUIRE(choice);
  MergedRun merged(parts_->unsynced);
  REQUIRE_OK(parts_->compactor.merge(*choice, &merged));
  commit({{"d1", "3"}});  // newer than the inputs
  erase("b1", "b10");     // meets the one before in the older input, and "b2" lies between
  erase("d", "d2");
  erase("d4", "d6");
  commit({{"d", "4"}});
  auto installed = parts_->compactor.install(*choice, &merged, parts_->commit_mutex);
  REQUIRE_OK(installed.status());
  CHECK(*installed);
  CHECK(expected_ ==
        (Model{{"a", "2"}, {"b2", "2"}, {"b3", "2"}, {"c", "1"}, {"d", "4"}, {"e", "1"}}));
  const IndexedSegment& result = **table().segments.rbegin();
  CHECK(result.rows() == 8u);
  CHECK(result.live_rows() == 5u);
  for (std::string key : {"a", "b1", "b2", "b3", "c", "d", "d1", "d5", "e"}) {
    auto found = lookup_one(table().segments, as_bytes(key));
    REQUIRE_OK(found.status());
    CHECK_MESSAGE(found->has_value() == (expected_.count(key) == 1), key);
  }
  merged.pending.obsolete.clear();
  choice.reset();
  expect_rows_after_reopening();
}

// With little memory it is merged in steps, each of which makes a segment.
TEST_CASE_METHOD(CompactionTest, "CompactionTest.RangesGoOnInTheNextSegmentOfTheResult",
                 "[CompactionTest]") {
  constexpr int rows = 150'000, left = 10;
  REQUIRE_OK(parts_->versions.close());
  parts_ = std::make_unique<Parts>(fs_, /*memory_limit_bytes=*/1);
  REQUIRE_OK(parts_->versions.open());
  auto key = [](int i) { return std::to_string(1'000'000 + i); };
  for (int run = 0; run < 2; ++run) {
    std::vector<std::pair<std::string, std::string>> of_run;
    for (int i = run; i < rows; i += 2) of_run.emplace_back(key(i), "1");
    commit(of_run);
  }
  auto choice = choose_compaction(*current(), table());
  REQUIRE(choice);
  {
    MergedRun merged(parts_->unsynced);
    REQUIRE_OK(parts_->compactor.merge(*choice, &merged));
    CHECK(merged.pending.edit.added.size() > 1u);
    erase(key(left), key(rows - left));
    auto installed = parts_->compactor.install(*choice, &merged, parts_->commit_mutex);
    REQUIRE_OK(installed.status());
    CHECK(*installed);
  }
  choice.reset();
  uint64_t live = 0;
  for (const auto& segment : table().segments) live += segment->live_rows();
  CHECK(live == 2u * left);
  CHECK(expected_.size() == 2u * left);
  expect_rows_after_reopening();
}

TEST_CASE_METHOD(CompactionTest, "CompactionTest.InstallsWhereRangesHaveErasedSomeInputsWhole",
                 "[CompactionTest]") {
  commit({{"a", "1"}, {"b", "1"}, {"c", "1"}});
  commit({{"b", "2"}, {"c", "2"}});
  for (bool all : {false, true}) {
    auto choice = choose_compaction(*current(), table());
    REQUIRE(choice);
    MergedRun merged(parts_->unsynced);
    REQUIRE_OK(parts_->compactor.merge(*choice, &merged));
    erase(all ? "" : "b", "x");
    auto installed = parts_->compactor.install(*choice, &merged, parts_->commit_mutex);
    REQUIRE_OK(installed.status());
    CHECK(*installed == !all);
    expect_rows(table().segments);
    commit({{"d", "3"}});
  }
  expect_rows_after_reopening();
}

// Without a sync the files of segments that a range erases whole must stay for a while: a power
// loss may bring them back. They go when there is a choice to be made.
TEST_CASE_METHOD(CompactionTest, "CompactionTest.ChoosesSegmentsThatRangesHaveErased",
                 "[CompactionTest]") {
  commit({{"c", "1"}});
  commit({{"a", "1"}, {"b", "1"}});
  erase("a", "c", Durability::none);
  CHECK(segment_files() == 2u);
  CHECK(table().segments[0]->live_rows() == 0u);
  auto choice = choose_runs(*current(), table(), 0);
  REQUIRE(choice);
  CHECK(choice->inputs.size() == 1u);
  {
    MergedRun merged(parts_->unsynced);
    REQUIRE_OK(parts_->compactor.merge(*choice, &merged));
    CHECK(*parts_->compactor.install(*choice, &merged, parts_->commit_mutex));
  }
  choice.reset();
  CHECK(segment_files() == 1u);
  CHECK_FALSE(choose_runs(*current(), table(), 0));
  erase("c", "d");
  CHECK(segment_files() == 0u);
  // Half of a small one is not worth it, half of a large one is.
  for (uint64_t bytes : {uint64_t{1000}, uint64_t{1} << 21}) {
    commit({{"a", std::string(bytes, 'v')}, {"b", std::string(bytes, 'v')}});
    erase("b", "c");
    choice = choose_runs(*current(), table(), 0);
    CHECK(choice.has_value() == (bytes > 1000));
    CHECK(choose_compaction(*current(), table()).has_value());
    choice.reset();
    REQUIRE_OK(parts_->compactor.compact_all(parts_->commit_mutex, nullptr));
    CHECK_FALSE(choose_compaction(*current(), table()).has_value());
    expect_rows(table().segments);
    erase("", "z");
  }
  expect_rows_after_reopening();
}

// The files of a table that is compacted go before the next table needs room.
TEST_CASE("CompactAllTest.NeedsRoomForOneTableAtATime", "[CompactAllTest]") {
  constexpr int tables = 8, runs = 2;
  constexpr uint64_t value_bytes = 1 << 20;
  MemoryFileSystem fs;
  auto db = std::move(*Database::open("db", {.memtable_bytes = 0, .file_system = &fs}));
  for (int t = 0; t < tables; ++t) {
    auto table = db->create_table("table " + std::to_string(t));
    REQUIRE_OK(table);
    for (int run = 0; run < runs; ++run) {
      WriteTransaction w = db->begin();
      REQUIRE_OK(w.put(*table, std::to_string(run), std::string(value_bytes, 'x')));
      REQUIRE_OK(w.commit());
    }
  }
  fs.set_capacity(db->size_bytes() + (2 * runs - 1) * value_bytes);
  REQUIRE_OK(db->compact());
  Snapshot snapshot = db->snapshot();
  for (int t = 0; t < tables; ++t) {
    auto table = db->open_table("table " + std::to_string(t));
    REQUIRE_OK(table);
    for (int run = 0; run < runs; ++run) {
      auto value = snapshot.get(*table, std::to_string(run));
      REQUIRE_OK(value);
      REQUIRE(value->has_value());
      CHECK((*value)->size() == value_bytes);
    }
    auto segments = db->segments(*table);
    REQUIRE_OK(segments);
    CHECK(segments->size() == 1);
  }
}

}  // namespace
}  // namespace stride::test

// Ranges that erase stored rows in place: beside a model, in all that reads a segment, and in few
// bytes whatever the number of keys.
#include <chrono>

#include "tests/engine/write/erase_in_place_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test::erase_in_place_tests {
namespace {

TEST_CASE_METHOD(EraseInPlaceTest, "EraseInPlaceTest.AMillionKeysCostFewBytes",
                 "[EraseInPlaceTest]") {
  open({.memtable_bytes = small_memtable, .background_work = false});
  Table table = *db_->create_table("t", {.key_width = 8});
  for (uint64_t run = 0; run < 2; ++run) load(table, run, 2'000'000, 2);
  load(table, 0, 2'000'000, 100);
  const uint64_t bytes = db_->size_bytes(), files = segment_files();
  erase(table, 400'000, 1'400'000);
  // A record of the manifest, with 40 bytes for each of three runs; a tombstone each would take
  // megabytes.
  CHECK(db_->size_bytes() - bytes < 256u);
  CHECK(segment_files() == files);
  TableStatistics now = statistics();
  CHECK(now.erased_rows == 1'010'000u);
  CHECK(now.rows == 1'010'000u);
  CHECK(now.reclaimable_bytes > now.bytes_on_disk / 3);
  CHECK(now.reclaimable_bytes < now.bytes_on_disk);
  CHECK(*db_->snapshot().count(table) == 1'000'000u);
  CHECK_FALSE(db_->snapshot().get(table, as_bytes(key_of(400'000)))->has_value());
  CHECK_FALSE(db_->snapshot().get(table, as_bytes(key_of(1'399'999)))->has_value());
  CHECK(db_->snapshot().get(table, as_bytes(key_of(399'999)))->has_value());
  CHECK(db_->snapshot().get(table, as_bytes(key_of(1'400'000)))->has_value());
  uint64_t erased = 0;
  const std::vector<SegmentReport> segments = *db_->segments(table);
  for (const SegmentReport& s : segments) erased += s.erased_rows;
  CHECK(erased == 1'010'000u);
  open({.memtable_bytes = small_memtable, .background_work = false});
  table = *db_->open_table("t");
  CHECK(*db_->snapshot().count(table) == 1'000'000u);
  CHECK(statistics().erased_rows == 1'010'000u);
  REQUIRE_OK(db_->verify());
  REQUIRE_OK(db_->compact());
  CHECK(*db_->snapshot().count(table) == 1'000'000u);
  CHECK(statistics().erased_rows == 0u);
  CHECK(statistics().reclaimable_bytes == 0u);
  CHECK(statistics().rows == 1'000'000u);
}

// Rows of a memtable get tombstones, those of segments below it do not.
TEST_CASE_METHOD(EraseInPlaceTest, "EraseInPlaceTest.RowsInMemoryGetTombstones",
                 "[EraseInPlaceTest]") {
  open({.memtable_bytes = small_memtable, .background_work = false});
  Table table = *db_->create_table("t", {.key_width = 8}), other = *db_->create_table("other");
  load(table, 0, 100'000);
  WriteTransaction t = db_->begin();
  for (uint64_t i = 0; i < 10; ++i) REQUIRE_OK(t.put(table, key_of(i * 10'000 + 5), "in memory"));
  REQUIRE_OK(t.put(other, "k", "v"));
  REQUIRE_OK(t.commit());
  Snapshot before = db_->snapshot();
  WriteTransaction range = db_->begin();
  REQUIRE_OK(range.put(table, key_of(50'001), "dropped"));
  REQUIRE_OK(range.erase_range(table, as_bytes(key_of(20'000)), as_bytes(key_of(90'000))));
  REQUIRE_OK(range.put(table, key_of(50'002), "after it"));
  REQUIRE_OK(range.put(other, "k", "w"));
  REQUIRE_OK(range.commit());
  CHECK(*before.count(table) == 100'000u);
  for (int again = 0; again < 2; ++again) {
    CHECK(*db_->snapshot().count(table) == 30'001u);
    CHECK(text(**db_->snapshot().get(table, as_bytes(key_of(50'002)))) == "after it");
    for (uint64_t i : {20'000, 20'005, 50'001, 50'005, 89'999})
      CHECK_FALSE(db_->snapshot().get(table, as_bytes(key_of(i)))->has_value());
    CHECK(text(**db_->snapshot().get(other, "k")) == "w");
    open({.memtable_bytes = small_memtable, .background_work = false});
    table = *db_->open_table("t");
    other = *db_->open_table("other");
  }
}

// Where no row of the memtable lies in the range it stays as it is, and nothing but the manifest is
// written.
TEST_CASE_METHOD(EraseInPlaceTest, "EraseInPlaceTest.OtherRowsInMemoryStayThere",
                 "[EraseInPlaceTest]") {
  open({.memtable_bytes = small_memtable, .background_work = false});
  Table table = *db_->create_table("t", {.key_width = 8});
  load(table, 0, 100'000);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(table, key_of(7), "in memory"));
  REQUIRE_OK(t.erase(table, key_of(50'000)));
  REQUIRE_OK(t.commit());
  const uint64_t bytes = db_->size_bytes();
  erase(table, 20'000, 90'000);
  CHECK(db_->size_bytes() - bytes < 256u);
  CHECK(statistics().memtable_rows == 2u);
  CHECK(statistics().runs == 1u);
  WriteTransaction later = db_->begin();
  REQUIRE_OK(later.put(table, key_of(50'001), "later"));
  REQUIRE_OK(later.commit());
  for (int again = 0; again < 2; ++again) {
    CHECK(*db_->snapshot().count(table) == 30'001u);
    CHECK(text(**db_->snapshot().get(table, as_bytes(key_of(7)))) == "in memory");
    CHECK(text(**db_->snapshot().get(table, as_bytes(key_of(50'001)))) == "later");
    open({.memtable_bytes = small_memtable, .background_work = false});
    table = *db_->open_table("t");
  }
}

TEST_CASE_METHOD(EraseInPlaceTest, "EraseInPlaceTest.WholeSegmentsGo", "[EraseInPlaceTest]") {
  open({.memtable_bytes = small_memtable, .background_work = false});
  Table table = *db_->create_table("t", {.key_width = 8});
  for (Durability durability : {Durability::sync, Durability::none}) {
    load(table, 0, 20'000);
    load(table, 10'000, 30'000);
    CHECK(segment_files() == 2u);
    {
      Snapshot before = db_->snapshot();
      erase(table, 5'000, 40'000, durability);
      CHECK(*before.count(table) == 30'000u);
      CHECK(segment_files() == 2u);
      CHECK(*db_->snapshot().count(table) == 5'000u);
    }
    // Files go with the last snapshot that reads them, and only where the edit was synced.
    CHECK(segment_files() == (durability == Durability::sync ? 1u : 2u));
    erase(table, 0, ~uint64_t{0}, durability);
    CHECK(segment_files() == (durability == Durability::sync ? 0u : 2u));
    CHECK(*db_->snapshot().count(table) == 0u);
    REQUIRE_OK(db_->compact());
    CHECK(segment_files() == 0u);
  }
}

// Numbers that are added, and rows that are put if absent, behind a range of the same transaction
// and of one before it.
TEST_CASE_METHOD(EraseInPlaceTest, "EraseInPlaceTest.WhatLooksAtStoredRowsDoesNotSeeThem",
                 "[EraseInPlaceTest]") {
  for (uint64_t memtable_bytes : {uint64_t{0}, uint64_t{64} << 20}) {
    open({.memtable_bytes = memtable_bytes, .background_work = false});
    const std::string name = "sums" + std::to_string(memtable_bytes);
    Table sums = *db_->create_table(name, {.key_width = 8, .numbers = NumberType::i64});
    load(sums, 0, 10'000, 1, std::string("\7\0\0\0\0\0\0\0", 8));
    auto value = [&](uint64_t i) {
      auto found = db_->snapshot().get(sums, as_bytes(key_of(i)));
      REQUIRE_OK(found);
      return *found ? static_cast<int>((**found)[0]) : -1;
    };
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.accumulate(sums, key_of(5), 1));
    REQUIRE_OK(t.accumulate(sums, key_of(9'000), 1));
    REQUIRE_OK(t.erase_range(sums, as_bytes(key_of(0)), as_bytes(key_of(8'000))));
    REQUIRE_OK(t.accumulate(sums, key_of(6), 2));
    const std::string keys = key_of(5) + key_of(6) + key_of(7) + key_of(9'000) + key_of(9'001);
    const std::string fifty = std::string("\62\0\0\0\0\0\0\0", 8);
    std::string values;
    for (int i = 0; i < 5; ++i) values += fifty;
    uint64_t was_new = 0;
    REQUIRE_OK(t.put_if_absent(sums, Column::fixed(keys.data(), 8, 5),
                               Column::fixed(values.data(), 8, 5), {&was_new, 1}));
    REQUIRE_OK(t.commit());
    CHECK(was_new == 0b00101u);
    CHECK(value(5) == 50);
    CHECK(value(6) == 2);
    CHECK(value(7) == 50);
    CHECK(value(8) == -1);
    CHECK(value(9'000) == 8);
    CHECK(value(9'001) == 7);
    WriteTransaction next = db_->begin();
    REQUIRE_OK(next.accumulate(sums, key_of(7'999), 3));
    REQUIRE_OK(next.accumulate(sums, key_of(5), 3));
    REQUIRE_OK(next.commit());
    CHECK(value(7'999) == 3);
    CHECK(value(5) == 53);
  }
}

// A device gets a copy in which they are hidden.
TEST_CASE_METHOD(EraseInPlaceTest, "EraseInPlaceTest.ADeviceDoesNotHandOutErasedRows",
                 "[EraseInPlaceTest]") {
  for (ValuePlacement placement : {ValuePlacement::host, ValuePlacement::device}) {
    auto device = std::make_shared<FakeDevice>(uint64_t{1} << 30);
    Options options;
    options.file_system = &fs_;
    options.shared_backend = device;
    options.value_placement = placement;
    options.background_work = false;
    options.memtable_bytes = small_memtable;
    db_.reset();
    db_ = std::move(*Database::open("/db", options));
    const std::string name = placement == ValuePlacement::host ? "h" : "d";
    Table table = *db_->create_table(name, {.key_width = 8});
    load(table, 0, 100'000);
    std::string keys;
    for (uint64_t i = 0; i < 100'000; ++i) keys += key_of(i);
    const KeyColumn queries = Column::fixed(keys.data(), 8, 100'000);
    auto check = [&](uint64_t from, uint64_t to) {
      const uint64_t searches = device->searches();
      GetResult got;
      FindResult found;
      REQUIRE_OK(db_->snapshot().get(table, queries, &got));
      REQUIRE_OK(db_->snapshot().find(table, queries, &found));
      for (uint64_t i = 0; i < 100'000; ++i) {
        const bool there = i < from || i >= to;
        REQUIRE(got.found[i] == there);
        REQUIRE(found.found[i] == there);
        REQUIRE(text(got.values[i]) == (there ? "12345678" : ""));
      }
      return device->searches() - searches;
    };
    check(0, 0);
    const uint64_t searches = check(0, 0);
    erase(table, 20'000, 60'000);
    CHECK(check(20'000, 60'000) == searches);
    erase(table, 60'000, 70'000);
    CHECK(check(20'000, 70'000) == searches);
    auto on_device = std::move(*device->allocate(keys.size()));
    auto out = std::move(*device->allocate(100'000 * sizeof(Location)));
    REQUIRE_OK(device->copy(on_device->data(), keys.data(), keys.size()));
    const KeyColumn there = Column::fixed(on_device->data(), 8, 100'000);
    auto* locations = reinterpret_cast<Location*>(out->data());
    for (bool compacted : {false, true}) {
      if (compacted) REQUIRE_OK(db_->compact());
      REQUIRE_OK(db_->snapshot().find_device(table, there, locations, nullptr));
      for (uint64_t i = 0; i < 100'000; ++i)
        REQUIRE((locations[i].rank == Location::absent) == (i >= 20'000 && i < 70'000));
    }
    db_.reset();
  }
}

// Loads, puts, erasures and many ranges; snapshots that are kept meanwhile, merges, and reopening.
TEST_CASE_METHOD(EraseInPlaceTest, "EraseInPlaceTest.RandomHistoriesAgreeWithAModel",
                 "[EraseInPlaceTest]") {
  std::mt19937_64 random(seed());
  auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < smaller_under_sanitizers(16, 8); ++round) {
    const bool fixed = round % 2;
    Options options;
    const uint64_t memtables[] = {0, 1 << 12, 1 << 16, 64 << 20}, tombstones[] = {0, 0, 20, 4096};
    options.memtable_bytes = memtables[below(4)];
    options.max_range_tombstones = tombstones[below(4)];
    options.memory_limit_bytes = below(3) ? 0 : 1;
    options.background_work = below(2);
    options.threads = 2;
    open(options);
    const std::string name = "t" + std::to_string(round);
    Table table = *db_->create_table(name, {.key_width = fixed ? 8u : 0u});
    const uint64_t space = 100 + below(3000);
    auto key = [&](uint64_t i) {
      return fixed ? key_of(i) : "k" + std::to_string(i * 7919 % space);
    };
    auto any = [&] { return key(below(space)); };
    Model model;
    std::vector<std::pair<Snapshot, Model>> kept;
    for (int step = 0; step < 60; ++step) {
      WriteTransaction t = db_->begin();
      for (uint64_t n = 1 + below(4); n > 0; --n) {
        if (below(3) == 0) {
          const std::string from = any(), to = below(4) ? any() : from + "5";
          const bool no_end = below(20) == 0, no_begin = below(20) == 0;
          REQUIRE_OK(t.erase_range(table,
                                   no_begin ? std::nullopt : std::optional<Bytes>(as_bytes(from)),
                                   no_end ? std::nullopt : std::optional<Bytes>(as_bytes(to))));
          const auto first = no_begin ? model.begin() : model.lower_bound(from);
          const auto end = no_end ? model.end() : model.lower_bound(to);
          if (no_begin || no_end || from < to) model.erase(first, end);
          continue;
        }
        const uint64_t rows = below(6) ? 1 + below(10) : below(400), start = below(space);
        for (uint64_t i = 0; i < rows; ++i) {
          const std::string k = rows > 10 ? key((start + i) % space) : any();
          if (below(8) == 0) {
            REQUIRE_OK(t.erase(table, k));
            model.erase(k);
          } else {
            const std::string value(below(12), static_cast<char>('a' + step % 26));
            REQUIRE_OK(t.put(table, k, value));
            model[k] = value;
          }
        }
      }
      REQUIRE_OK(t.commit(static_cast<Durability>(below(3))));
      if (below(12) == 0) kept.emplace_back(db_->snapshot(), model);
      if (below(15) == 0) REQUIRE_OK(db_->compact());
      if (below(15) == 0) {
        kept.clear();
        open(options);
        table = *db_->open_table(name);
      }
      if (below(10) == 0) expect_equal(db_->snapshot(), table, model, random);
      if (below(10) == 0 && !kept.empty()) {
        const auto& [snapshot, then] = kept[below(kept.size())];
        expect_equal(snapshot, table, then, random);
      }
    }
    for (const auto& [snapshot, then] : kept) expect_equal(snapshot, table, then, random);
    expect_equal(db_->snapshot(), table, model, random);
    REQUIRE_OK(db_->verify());
    REQUIRE_OK(db_->compact());
    expect_equal(db_->snapshot(), table, model, random);
    REQUIRE_OK(db_->verify());
    kept.clear();
    REQUIRE_OK(db_->drop_table(name));
  }
}

}  // namespace
}  // namespace stride::test::erase_in_place_tests

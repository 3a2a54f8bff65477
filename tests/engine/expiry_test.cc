// Tables whose rows end, beside a std::map that knows when each does.
#include "storage/expiry.h"

#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/backup.h"
#include "engine/metrics.h"
#include "tests/engine/expiring_table.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

TEST_CASE("ExpiryTest.RowsThatHaveEndedAreGoneForAllReads", "[ExpiryTest]") {
  Random random(seed());
  for (const char* schema : {"expires timestamp?, name string", "expires timestamp[s]?, n i64",
                             "expires timestamp[ms], n i64", "expires timestamp[ns]?, name string"})
    for (uint64_t memtable_bytes : {uint64_t{0}, uint64_t{16} << 10, uint64_t{4} << 20}) {
      INFO(schema << ", " << memtable_bytes);
      ExpiringTable::Setting setting{.schema = schema, .memtable_bytes = memtable_bytes};
      setting.background_work = random() % 2;
      setting.share_equal_values = random() % 4 == 0;
      ExpiringTable rows(random, setting);
      // A column that is never null.
      const bool always = std::string(schema).find('?') == std::string::npos;
      std::vector<std::tuple<Snapshot, std::map<std::string, StoredRow>, int64_t>> kept;
      const int steps = smaller_under_sanitizers(120, 30);
      for (int i = 0; i < steps; ++i) {
        if (!always)
          rows.change();
        else
          rows.put(rows.key(), start + static_cast<int64_t>(random() % 60) * second, "x");
        if (random() % 2) rows.now += static_cast<int64_t>(random() % 3) * second / 2;
        if (i % 20 == 7) kept.emplace_back(rows.db().snapshot(), rows.model(), rows.now);
        if (random() % 25 == 0) REQUIRE_OK(rows.db().compact());
        if (random() % 30 == 0 && kept.empty()) rows.reopen();
        if (i % 3 == 0) rows.expect_now();
      }
      // The snapshot fixes the time, whatever was compacted since.
      for (const auto& [snapshot, model, time] : kept)
        rows.expect_all(snapshot, ExpiringTable::live(model, time / rows.unit() * rows.unit()));
      REQUIRE_OK(rows.db().compact());
      rows.expect_now();
      CHECK(rows.stored_rows() == rows.live().size());
      REQUIRE_OK(rows.db().verify());
    }
}

TEST_CASE("ExpiryTest.OnADevice", "[ExpiryTest]") {
  Random random(seed());
  auto device = std::make_shared<FakeDevice>(1 << 20);
  ExpiringTable rows(random, {.memtable_bytes = 0, .backend = device});
  for (int i = 0; i < smaller_under_sanitizers(60, 20); ++i) {
    rows.change();
    rows.now += second / 2;
    rows.expect_now();
  }
}

TEST_CASE("ExpiryTest.AnEndedRowHidesOlderOnes", "[ExpiryTest]") {
  Random random(seed());
  ExpiringTable rows(random, {.memtable_bytes = 0});
  rows.put("k", std::nullopt, "old");
  rows.put("k", start + 10 * second, "new");
  rows.put("other", std::nullopt, "stays");
  auto name = [&] {
    auto got = rows.db().snapshot().get(rows.table(), "k");
    REQUIRE_OK(got);
    return *got ? text(**got) : std::string("none");
  };
  rows.now = start + 10 * second - 1;
  CHECK(name() == rows.row(start + 10 * second, "new"));
  rows.now = start + 10 * second;
  CHECK(name() == "none");
  // Also once the newer runs are merged, and where the clock goes back.
  REQUIRE_OK(rows.db().compact());
  rows.now = start;
  CHECK(name() == "none");
  CHECK(*rows.db().snapshot().count(rows.table()) == 1);
  rows.reopen();
  CHECK(name() == "none");
}

// Tombstones in a run that is not the oldest are no rows that have ended: writing them again frees
// nothing.
TEST_CASE("ExpiryTest.TombstonesAreNotWrittenAgainAndAgain", "[ExpiryTest]") {
  Random random(seed());
  ExpiringTable rows(random, {.memtable_bytes = 0, .background_work = true});
  const std::string row = rows.row(start + 3600 * second, "x");
  std::string keys, values;
  for (uint64_t i = 0; i < 40'000; ++i) keys += std::to_string(100'000 + i), values += row;
  const KeyColumn all = Column::fixed(keys.data(), 6, 40'000);
  WriteTransaction t = rows.db().begin();
  REQUIRE_OK(t.put(rows.table(), all,
                   Column::fixed(values.data(), static_cast<uint32_t>(row.size()), 40'000)));
  REQUIRE_OK(t.commit());
  WriteTransaction erasing = rows.db().begin();
  REQUIRE_OK(erasing.erase(rows.table(), all.slice(0, 10'000)));
  REQUIRE_OK(erasing.commit());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(rows.db().metrics().work.compactions <= 4);
  CHECK(*rows.db().snapshot().count(rows.table()) == 30'000);
}

TEST_CASE("ExpiryTest.AnEndedRowInTheSameCommitLeavesRoomForOneThatIsPutIfAbsent", "[ExpiryTest]") {
  Random random(seed());
  for (uint64_t memtable_bytes : {uint64_t{0}, uint64_t{4} << 20}) {
    ExpiringTable rows(random, {.memtable_bytes = memtable_bytes});
    const std::string ended = rows.row(start - second, "ended"),
                      live = rows.row(start + second, "live"), stored = rows.row(std::nullopt, "s");
    rows.put("stored", std::nullopt, "s");
    auto value_of = [&](const std::string& key) {
      auto got = rows.db().snapshot().get(rows.table(), key);
      REQUIRE_OK(got);
      return *got ? text(**got) : std::string("none");
    };
    // Of each key an ended row comes first, then a live one, then another one.
    WriteTransaction t = rows.db().begin();
    REQUIRE_OK(t.put(rows.table(), "put", ended));
    uint64_t answers[9] = {};
    const char* keys[] = {"new", "put", "stored"};
    for (int i = 0; i < 9; ++i) {
      const std::string key = keys[i % 3];
      const std::string& value = i < 3 ? ended : live;
      REQUIRE_OK(t.put_if_absent(rows.table(), Column::fixed(key.data(), uint32_t(key.size()), 1),
                                 Column::fixed(value.data(), uint32_t(value.size()), 1),
                                 std::span(&answers[i], 1)));
    }
    REQUIRE_OK(t.commit());
    CHECK(value_of("new") == live);
    CHECK(value_of("put") == live);
    CHECK(value_of("stored") == stored);
    const bool expected[] = {true, true, false, true, true, false, false, false, false};
    for (int i = 0; i < 9; ++i) {
      CAPTURE(i);
      CHECK((answers[i] & 1) == expected[i]);
    }
  }
}

TEST_CASE("ExpiryTest.ATimeToLiveIsNeverCutShort", "[ExpiryTest]") {
  Random random(seed());
  ExpiringTable rows(random, {.schema = "expires timestamp[s]?, n i64", .time_to_live = second});
  rows.now = start + second - 1;
  rows.put("k", std::nullopt, "v");
  rows.now += second - 1;
  CHECK(*rows.db().snapshot().count(rows.table()) == 1);
  rows.now += second;
  CHECK(*rows.db().snapshot().count(rows.table()) == 0);
}

TEST_CASE("ExpiryTest.TheClockNeverGoesBackWhileTheDatabaseIsOpen", "[ExpiryTest]") {
  Random random(seed());
  ExpiringTable rows(random, {});
  rows.put("k", start + 10 * second, "v");
  rows.now = start + 20 * second;
  CHECK_FALSE(rows.db().snapshot().get(rows.table(), "k")->has_value());
  rows.now = start;
  CHECK_FALSE(rows.db().snapshot().get(rows.table(), "k")->has_value());
  // What was not compacted away is there again for a process that knows no better.
  rows.reopen();
  CHECK(rows.db().snapshot().get(rows.table(), "k")->has_value());
}

TEST_CASE("ExpiryTest.ATimeToLiveIsSetWhereThereIsNoTime", "[ExpiryTest]") {
  Random random(seed());
  for (const char* schema : {"expires timestamp[s]?, n i64", "expires timestamp[ms]?, name string",
                             "expires timestamp[ns]?, n i64", "expires timestamp?, name string"})
    for (uint64_t memtable_bytes : {uint64_t{0}, uint64_t{4} << 20}) {
      ExpiringTable rows(
          random,
          {.schema = schema, .memtable_bytes = memtable_bytes, .time_to_live = 3 * second + 1});
      CHECK(rows.table().expiry_column() == "expires");
      for (int i = 0; i < smaller_under_sanitizers(60, 20); ++i) {
        rows.change();
        rows.now += static_cast<int64_t>(random() % 3) * second / 2;
        rows.expect_now();
      }
      // A view of the caller's is not written to.
      std::string keys, values;
      const std::string row = rows.row(std::nullopt, "x");
      const uint64_t n = 10'000;
      for (uint64_t i = 0; i < n; ++i) keys += std::to_string(10'000 + i), values += row;
      const std::string before = values;
      WriteTransaction t = rows.db().begin();
      REQUIRE_OK(t.put_view(rows.table(), Column::fixed(keys.data(), 5, n),
                            Column::fixed(values.data(), static_cast<uint32_t>(row.size()), n)));
      REQUIRE_OK(t.commit());
      CHECK(values == before);
      for (uint64_t i = 0; i < n; ++i)
        rows.model()[keys.substr(5 * i, 5)] = rows.stored(std::nullopt, "x");
      CHECK(*rows.db().snapshot().count(rows.table()) == rows.live().size());
      rows.now += 10 * second;
      CHECK(*rows.db().snapshot().count(rows.table()) == rows.live().size());
    }
}

TEST_CASE("ExpiryTest.TransactionsReadAsOfTheirTime", "[ExpiryTest]") {
  Random random(seed());
  ExpiringTable rows(random, {});
  rows.put("a", start + 10 * second, "first");
  Transaction t = rows.db().transaction();
  CHECK(t.get(rows.table(), "a")->has_value());
  // Its own rows, too.
  REQUIRE_OK(t.put(rows.table(), "past", rows.row(start - 1, "gone")));
  REQUIRE_OK(t.put(rows.table(), "soon", rows.row(start + 5 * second, "there")));
  rows.now = start + 20 * second;
  CHECK(t.get(rows.table(), "a")->has_value());
  CHECK(t.get(rows.table(), "soon")->has_value());
  CHECK_FALSE(t.get(rows.table(), "past")->has_value());
  auto scan = t.scan(rows.table());
  REQUIRE_OK(scan);
  ScanBatch batch;
  uint64_t seen = 0;
  while (scan->next(&batch)) seen += batch.keys.size;
  CHECK(seen == 2);
  // That a row has ended meanwhile is no change.
  CHECK_OK(t.commit());
  Transaction later = rows.db().transaction();
  CHECK_FALSE(later.get(rows.table(), "a")->has_value());
  rows.put("a", start + 30 * second, "second");
  REQUIRE_OK(later.put(rows.table(), "b", rows.row(std::nullopt, "b")));
  CHECK(later.commit().code() == StatusCode::conflict);
}

TEST_CASE("ExpiryTest.ReadersInOtherHandlesKnowTheTime", "[ExpiryTest]") {
  Random random(seed());
  ExpiringTable rows(random, {});
  auto reader = rows.open_reader();
  for (int i = 0; i < smaller_under_sanitizers(40, 15); ++i) {
    rows.change();
    rows.now += second / 2;
    if (random() % 10 == 0) REQUIRE_OK(rows.db().compact());
    REQUIRE_OK(reader->refresh());
    const Table table = *reader->open_table("t");
    CHECK(table.expiry_column() == "expires");
    expect_equal(reader->snapshot(), table, rows.live(), random);
  }
}

TEST_CASE("ExpiryTest.SegmentsWhoseRowsHaveAllEndedGoByThemselves", "[ExpiryTest]") {
  Random random(seed());
  ExpiringTable rows(random, {.memtable_bytes = 0, .background_work = true});
  // Three runs of disjoint keys: the middle one ends first, and nothing older has its keys.
  for (const auto& [prefix, end] : {std::pair("a", 100), std::pair("b", 10), std::pair("c", 50)}) {
    WriteTransaction t = rows.db().begin();
    for (int i = 0; i < 1000; ++i)
      rows.put(t, prefix + std::to_string(i), start + end * second, "x", &rows.model());
    REQUIRE_OK(t.commit());
  }
  CHECK(rows.stored_rows() == 3000);
  auto wait_for = [&](uint64_t stored) {
    for (int i = 0; i < 1000 && rows.stored_rows() != stored; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(rows.stored_rows() == stored);
    rows.expect_now();
  };
  rows.now = start + 10 * second;
  wait_for(2000);
  CHECK(rows.db().metrics().work.compactions == 1);
  rows.now = start + 100 * second;
  wait_for(0);
  CHECK(rows.live().empty());
  rows.reopen();
  rows.expect_now();
}

TEST_CASE("ExpiryTest.WhatOlderRunsHaveDoesNotComeToLight", "[ExpiryTest]") {
  Random random(seed());
  ExpiringTable rows(random, {.memtable_bytes = 0, .background_work = true});
  for (const char* name : {"old", "new"}) {
    WriteTransaction t = rows.db().begin();
    for (int i = 0; i < 1000; ++i)
      rows.put(t, std::to_string(i),
               std::string(name) == "old" ? std::optional<int64_t>() : start + 10 * second, name,
               &rows.model());
    REQUIRE_OK(t.commit());
  }
  rows.now = start + 10 * second;
  for (int i = 0; i < 3; ++i) {
    rows.expect_now();
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
  }
  CHECK(*rows.db().snapshot().count(rows.table()) == 0);
  REQUIRE_OK(rows.db().compact());
  CHECK(rows.stored_rows() == 0);
}

TEST_CASE("ExpiryTest.OptionsThatDoNotFitAreRefused", "[ExpiryTest]") {
  MemoryFileSystem files;
  auto db = Database::open("/db", {.file_system = &files});
  REQUIRE_OK(db);
  const Schema schema =
      *Schema::parse("id u64 key, until timestamp, ends timestamp[s]?, n i64, v timestamp[2]");
  auto refusal = [&](const TableOptions& options) {
    auto made = (*db)->create_table("t", options);
    CHECK(made.status().code() == StatusCode::invalid_argument);
    CHECK_FALSE(made.status().remedy().empty());
    return made.status().message();
  };
  CHECK(refusal({.schema = schema, .expiry_column = "nothing"}) ==
        "expiry_column 'nothing' is no value column of the schema 'id u64 key, until timestamp, "
        "ends timestamp[s]?, n i64, v timestamp[2]'");
  CHECK(refusal({.schema = schema, .expiry_column = "id"}).starts_with("expiry_column 'id' is no"));
  CHECK(refusal({.schema = schema, .expiry_column = "n"}) == "expiry_column 'n' is of type i64");
  CHECK(refusal({.schema = schema, .expiry_column = "v"})
            .starts_with("expiry_column 'v' is of type"));
  CHECK(refusal({.schema = schema, .expiry_column = "until", .time_to_live = 5}) ==
        "time_to_live 5 is given, and the column 'until' always has a time");
  CHECK(refusal({.schema = schema, .time_to_live = 5}) ==
        "time_to_live 5 is given without an expiry_column");
  CHECK(refusal({.schema = schema, .expiry_column = "ends", .time_to_live = -5}) ==
        "time_to_live -5 is negative: rows would have ended before they are put");
  CHECK(refusal({.address_bits = 32,
                 .schema = *Schema::parse("ends timestamp?"),
                 .expiry_column = "ends"}) ==
        "expiry_column 'ends' is given for a prefix table, whose rows do not end");
  const TableOptions options{.schema = schema, .expiry_column = "ends", .time_to_live = 1};
  auto table = (*db)->create_table("t", options);
  REQUIRE_OK(table);
  CHECK(table->expiry_column() == "ends");
  CHECK(table->time_to_live() == second);  // rounded up
  REQUIRE_OK((*db)->open_or_create_table("t", options));
  REQUIRE_OK((*db)->open_or_create_table("t", {.key_width = 8}));
  auto other = (*db)->open_or_create_table("t", {.schema = schema, .expiry_column = "until"});
  REQUIRE_FALSE(other.ok());
  CHECK(other.status().message() ==
        "table 't' has rows that end as the column 'ends' says, by default after 1000000 us, not "
        "rows that end as the column 'until' says, which cannot be changed");
  CHECK_FALSE((*db)->open_or_create_table("t", {.schema = schema}).ok());
}

TEST_CASE("ExpiryTest.RowsThatAreTooShortDoNotEnd", "[ExpiryTest]") {
  Random random(seed());
  for (uint64_t memtable_bytes : {uint64_t{0}, uint64_t{4} << 20}) {
    ExpiringTable rows(random, {.memtable_bytes = memtable_bytes, .time_to_live = second});
    WriteTransaction t = rows.db().begin();
    for (const std::string& value : {std::string(), std::string(8, '\0')})
      REQUIRE_OK(t.put(rows.table(), "k" + std::to_string(value.size()), value));
    REQUIRE_OK(t.commit());
    rows.now += 100 * second;
    CHECK(*rows.db().snapshot().count(rows.table()) == 2);
  }
}

TEST_CASE("ExpiryTest.ExtremesOfTime", "[ExpiryTest]") {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  constexpr int64_t largest = std::numeric_limits<int64_t>::max();
  for (const FieldType unit : {FieldType::timestamp_s, FieldType::timestamp_ms,
                               FieldType::timestamp_us, FieldType::timestamp_ns}) {
    const ExpiryCell cell{.unit = unit};
    CHECK(cell.in_unit(0) == 0);
    CHECK(cell.in_unit(-1) <= -1);  // rounded down
    CHECK(cell.in_unit(least + 1) < 0);
    CHECK(cell.in_unit(largest) > 0);
    CHECK(cell.in_microseconds(largest) > 0);
    CHECK_FALSE(cell.at(before_all_time).is_there());
    const int64_t long_ago = least;
    CHECK(
        cell.at(0).hides(as_bytes(std::string_view(reinterpret_cast<const char*>(&long_ago), 8))));
  }
}

TEST_CASE("ExpiryTest.CheckpointsAndBackupsKeepWhenRowsEnd", "[ExpiryTest]") {
  Random random(seed());
  ExpiringTable rows(random, {});
  for (int i = 0; i < 30; ++i) rows.change();
  REQUIRE_OK(rows.db().checkpoint("/copy"));
  rows.now += 15 * second;
  Options options;
  options.file_system = &rows.files();
  options.clock = [&] { return rows.now.load(); };
  auto copy = Database::open("/copy", options);
  REQUIRE_OK(copy);
  const Table table = *(*copy)->open_table("t");
  CHECK(table.expiry_column() == "expires");
  expect_equal((*copy)->snapshot(), table, rows.live(), random);
}

// Rows get their times before anybody else has looked at the column.
TEST_CASE("ExpiryTest.OffsetsThatDescendAreRefused", "[ExpiryTest]") {
  TemporaryDirectory directory;
  auto db = Database::open(directory.file("db"));
  REQUIRE_OK(db);
  const auto schema = Schema::parse("a bytes[1000], until timestamp?, name string");
  REQUIRE_OK(schema);
  auto table = (*db)->create_table(
      "t", {.schema = *schema, .expiry_column = "until", .time_to_live = 1'000'000});
  REQUIRE_OK(table);
  const uint64_t row = 1000 + 8 + 1;
  const std::vector<std::byte> data(2 * row);
  const char keys[] = {'a', 'b'};
  const uint64_t offsets[] = {0, row, 1};
  WriteTransaction t = (*db)->begin();
  const Status s =
      t.put(*table, Column::fixed(keys, 1, 2), Column::variable(data.data(), offsets, 2));
  CHECK(s.code() == StatusCode::invalid_argument);
  CHECK(s.message() == "row 1: value offsets descend");
}

}  // namespace
}  // namespace stride::test

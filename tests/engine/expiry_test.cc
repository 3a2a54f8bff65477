// Tables whose rows end, beside a std::map that knows when each does, with a clock of the test's.
#include "storage/expiry.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/backup.h"
#include "engine/metrics.h"
#include "storage/memory_file_system.h"
#include "storage/row_format.h"
#include "tests/engine/read/ordered_reads.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

constexpr int64_t second = 1'000'000;
constexpr int64_t start = 1'700'000'000 * second;

// What rows a table has stored, with the microsecond from which on each is gone.
struct StoredRow {
  int64_t end;
  std::string value;
};

class ExpiringTable {
 public:
  struct Setting {
    std::string schema = "expires timestamp?, name string";
    uint64_t memtable_bytes = 32 << 10;
    int64_t time_to_live = 0;
    bool background_work = false;
    std::shared_ptr<Backend> backend = nullptr;
    bool share_equal_values = false;
  };

  ExpiringTable(Random& random, const Setting& setting)
      : random_(random), setting_(setting), schema_(*Schema::parse(setting.schema)), row_(schema_) {
    open();
    auto table = db_->create_table("t", table_options());
    REQUIRE_OK(table);
    table_ = *table;
  }

  TableOptions table_options() const {
    return {.share_equal_values = setting_.share_equal_values,
            .schema = schema_,
            .expiry_column = "expires",
            .time_to_live = setting_.time_to_live};
  }
  void reopen() {
    db_.reset();
    open();
    auto table = db_->open_or_create_table("t", table_options());
    REQUIRE_OK(table);
    table_ = *table;
  }
  std::unique_ptr<Database> open_reader() {
    Options options = this->options();
    options.read_only = true;
    options.shared_backend = nullptr;
    auto reader = Database::open("/db", options);
    REQUIRE_OK(reader.status());
    return std::move(*reader);
  }

  int64_t unit() const {
    switch (schema_.values()[0].type) {
      case FieldType::timestamp_s:
        return second;
      case FieldType::timestamp_ms:
        return 1000;
      default:
        return 1;
    }
  }
  // A row that ends then, in microseconds; nothing: its cell is null.
  std::string row(std::optional<int64_t> end, const std::string& name) {
    row_.clear();
    if (end && schema_.values()[0].type == FieldType::timestamp_ns)
      row_.set(0, *end * 1000);
    else if (end)
      row_.set(0, *end / unit());
    if (schema_.values()[1].type == FieldType::string)
      row_.set(1, name);
    else
      row_.set(1, static_cast<int64_t>(name.size()));
    return text(row_.bytes());
  }
  std::string key() {
    return std::string(1 + random_() % 2, static_cast<char>('a' + random_() % 12)) +
           char('a' + random_() % 6);
  }
  // Whole units, some in the past, some never.
  std::optional<int64_t> any_end() {
    if (random_() % 6 == 0) return std::nullopt;
    const int64_t time = (now - start) / second + static_cast<int64_t>(random_() % 40) - 5;
    return start + time * second;
  }

  template <class Changes>
  void put(Changes& t, const std::string& key, std::optional<int64_t> end, const std::string& name,
           std::map<std::string, StoredRow>* model) {
    const std::string given = row(end, name);
    REQUIRE_OK(t.put(table_, key, given));
    (*model)[key] = stored(end, name);
  }
  StoredRow stored(std::optional<int64_t> end, const std::string& name) {
    std::optional<int64_t> ends = end;
    if (!ends && setting_.time_to_live)
      ends = now / unit() * unit() + (setting_.time_to_live + unit() - 1) / unit() * unit();
    return {ends.value_or(never_ends), row(ends, name)};
  }
  void put(const std::string& key, std::optional<int64_t> end, const std::string& name) {
    WriteTransaction t = db_->begin();
    put(t, key, end, name, &model_);
    REQUIRE_OK(t.commit());
  }
  // A commit of any kind.
  void change() {
    WriteTransaction t = db_->begin();
    const uint64_t kind = random_() % 10;
    const uint64_t rows = kind == 0 ? 200 + random_() % 200 : 1 + random_() % 6;
    if (kind == 1) {
      std::string from = key(), to = key();
      if (to < from) std::swap(from, to);
      REQUIRE_OK(t.erase_range(table_, as_bytes(from), as_bytes(to)));
      model_.erase(model_.lower_bound(from), model_.lower_bound(to));
    } else if (kind == 2) {
      put_if_absent(t);
    }
    for (uint64_t i = 0; kind != 2 && i < rows; ++i) {
      const std::string changed = key();
      if (random_() % 7 == 0) {
        REQUIRE_OK(t.erase(table_, changed));
        model_.erase(changed);
      } else {
        put(t, changed, any_end(), std::string(random_() % 40, static_cast<char>('a' + i % 26)),
            &model_);
      }
    }
    REQUIRE_OK(t.commit());
    for (const auto& [key, was_new] : expected_new_)
      REQUIRE_MESSAGE(was_new.first[0] == was_new.second, "put_if_absent of " << key);
    expected_new_.clear();
  }
  // What has ended is absent.
  void put_if_absent(WriteTransaction& t) {
    const std::string put = key();
    const std::optional<int64_t> end = any_end();
    auto& [answer, expected] = expected_new_[put];
    auto there = model_.find(put);
    expected = there == model_.end() || there->second.end <= now;
    const std::string given = row(end, "new");
    REQUIRE_OK(t.put_if_absent(
        table_, Column::fixed(put.data(), static_cast<uint32_t>(put.size()), 1),
        Column::fixed(given.data(), static_cast<uint32_t>(given.size()), 1), answer));
    if (expected) model_[put] = stored(end, "new");
  }

  Model live() const { return live(now); }
  Model live(int64_t time) const { return live(model_, time / unit() * unit()); }
  static Model live(const std::map<std::string, StoredRow>& rows, int64_t time) {
    Model model;
    for (const auto& [key, row] : rows)
      if (row.end > time) model[key] = row.value;
    return model;
  }
  void expect_now() { expect_all(db_->snapshot(), live()); }
  void expect_all(const Snapshot& snapshot, const Model& model) {
    expect_equal(snapshot, table_, model, random_);
    std::vector<std::string> queries;
    for (int i = 0; i < 60; ++i) queries.push_back(key());
    expect_bounds(snapshot, table_, model, queries);
    expect_counts(snapshot, model);
    expect_cursor(snapshot, model);
  }
  void expect_counts(const Snapshot& snapshot, const Model& model) {
    for (int i = 0; i < 10; ++i) {
      std::optional<std::string> from, to;
      if (random_() % 4) from = key();
      if (random_() % 4) to = key();
      auto bytes = [](const auto& s) { return s ? std::optional(as_bytes(*s)) : std::nullopt; };
      auto count = snapshot.count(table_, bytes(from), bytes(to));
      REQUIRE_OK(count);
      CHECK(*count == count_between(model, from, to));
    }
  }
  void expect_cursor(const Snapshot& snapshot, const Model& model) {
    auto cursor = snapshot.cursor(table_);
    REQUIRE_OK(cursor);
    auto at = model.begin();
    for (cursor->seek_to_first(); cursor->valid(); cursor->next(), ++at) {
      REQUIRE(at != model.end());
      REQUIRE(text(cursor->key()) == at->first);
      REQUIRE(text(cursor->value()) == at->second);
    }
    REQUIRE(at == model.end());
    for (cursor->seek_to_last(); cursor->valid(); cursor->previous())
      REQUIRE(text(cursor->key()) == (--at)->first);
    REQUIRE(at == model.begin());
    REQUIRE_OK(cursor->status());
  }

  Database& db() { return *db_; }
  const Table& table() const { return table_; }
  std::map<std::string, StoredRow>& model() { return model_; }
  MemoryFileSystem& files() { return files_; }
  uint64_t stored_rows() {
    uint64_t rows = 0;
    auto segments = db_->segments(table_);
    REQUIRE_OK(segments);
    for (const SegmentReport& s : *segments) rows += s.rows;
    return rows;
  }

  std::atomic<int64_t> now{start};

 private:
  Options options() {
    Options options;
    options.file_system = &files_;
    options.threads = 2;
    options.backend = BackendKind::host;
    options.shared_backend = setting_.backend;
    options.durability = Durability::flush;
    options.memtable_bytes = setting_.memtable_bytes;
    options.background_work = setting_.background_work;
    options.max_range_tombstones = random_() % 2 ? 0 : 4096;
    options.clock = [this] { return now.load(); };
    return options;
  }
  void open() {
    auto opened = Database::open("/db", options());
    REQUIRE_OK(opened.status());
    db_ = std::move(*opened);
  }

  Random& random_;
  const Setting setting_;
  const Schema schema_;
  RowWriter row_;
  MemoryFileSystem files_;
  std::unique_ptr<Database> db_;
  Table table_;
  std::map<std::string, StoredRow> model_;
  std::map<std::string, std::pair<std::array<uint64_t, 1>, bool>> expected_new_;
};

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

}  // namespace
}  // namespace stride::test

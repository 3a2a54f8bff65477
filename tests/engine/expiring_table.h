// A table whose rows end, beside a std::map that knows when each does, with a clock of the test's.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/expiry.h"
#include "storage/memory_file_system.h"
#include "storage/row_format.h"
#include "tests/engine/read/ordered_reads.h"

namespace stride::test {

inline constexpr int64_t second = 1'000'000;
inline constexpr int64_t start = 1'700'000'000 * second;

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
      ends = (now + unit() - 1) / unit() * unit() + (setting_.time_to_live + unit() - 1) / unit() * unit();
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

}  // namespace stride::test

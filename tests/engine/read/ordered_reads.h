// A table of runs, tombstones, erased ranges and rows in memtables, at random, beside a std::map;
// and what reads in key order must find there.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/background_work.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/model.h"

namespace stride::test {

class RandomOrderedTable {
 public:
  // key_width: 0, or 2 and more.
  RandomOrderedTable(Random& random, uint64_t memtable_bytes, uint32_t key_width,
                     std::shared_ptr<Backend> backend = nullptr)
      : random_(random), key_width_(key_width) {
    Options options;
    options.file_system = &files_;
    options.threads = 2;
    options.backend = BackendKind::host;
    options.shared_backend = std::move(backend);
    options.durability = Durability::none;
    options.memtable_bytes = memtable_bytes;
    options.max_range_tombstones = random() % 2 ? 0 : 4096;
    set_background_work(&options, random() % 2 == 0);
    auto opened = Database::open("/db", options);
    REQUIRE_OK(opened.status());
    db_ = std::move(*opened);
    table_ = *db_->create_table("t", {.key_width = key_width});
  }

  // Many of the keys are beginnings of others, and few are far from another one.
  std::string key() {
    const uint64_t bytes = key_width_ ? key_width_ : random_() % 6;
    std::string key(bytes, '\0');
    for (char& c : key)
      c = "\0\xFF"
          "abc"[random_() % 5];
    return key;
  }
  std::string query() {
    std::string query = key();
    if (random_() % 4 == 0) query = query.substr(0, random_() % 3);
    if (random_() % 8 == 0) query += '\0';
    return query;
  }
  std::vector<std::string> queries(uint64_t count) {
    std::vector<std::string> all;
    for (uint64_t i = 0; i < count; ++i) all.push_back(query());
    if (random_() % 2) std::sort(all.begin(), all.end());
    return all;
  }
  // A commit, or compact().
  void change() {
    if (random_() % 25 == 0) return REQUIRE_OK(db_->compact());
    WriteTransaction t = db_->begin();
    change_rows(t, &model_);
    REQUIRE_OK(t.commit());
  }
  void put(const std::string& key, const std::string& value) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table_, key, value));
    REQUIRE_OK(t.commit());
    model_[key] = value;
  }
  void erase_all() {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.erase_range(table_, std::nullopt, std::nullopt));
    REQUIRE_OK(t.commit());
    model_.clear();
  }
  // Changes that a WriteTransaction or Transaction makes.
  template <class Changes>
  void change_rows(Changes& t, Model* model) {
    const uint64_t kind = random_() % 8;
    if (kind == 0) return erase_range(t, model);
    const uint64_t rows = kind == 1 ? 100 + random_() % 300 : 1 + random_() % 8;
    const bool erases = random_() % 4 == 0;
    for (uint64_t i = 0; i < rows; ++i) {
      const std::string changed = key();
      if (erases || random_() % 6 == 0) {
        REQUIRE_OK(t.erase(table_, changed));
        model->erase(changed);
      } else {
        (*model)[changed] = std::string(random_() % 60, static_cast<char>('a' + i % 26));
        REQUIRE_OK(t.put(table_, changed, (*model)[changed]));
      }
    }
  }

  Database& db() { return *db_; }
  const Table& table() const { return table_; }
  const Model& model() const { return model_; }
  Random& random() { return random_; }

 private:
  template <class Changes>
  void erase_range(Changes& t, Model* model) {
    std::string from = key(), to = key();
    if (to < from) std::swap(from, to);
    const bool ends = random_() % 10 != 0;
    REQUIRE_OK(
        t.erase_range(table_, as_bytes(from), ends ? std::optional(as_bytes(to)) : std::nullopt));
    model->erase(model->lower_bound(from), ends ? model->lower_bound(to) : model->end());
  }

  Random& random_;
  const uint32_t key_width_;
  MemoryFileSystem files_;
  std::unique_ptr<Database> db_;
  Table table_;
  Model model_;
};

// Whether a batch of queries has found, for each, what find_expected(query) points to.
template <class Find>
void expect_entries(const LowerBoundResult& result, const Model& model,
                    const std::vector<std::string>& queries, const Find& find_expected) {
  for (size_t i = 0; i < queries.size(); ++i) {
    const Model::const_iterator expected = find_expected(queries[i]);
    REQUIRE_MESSAGE(result.found[i] == (expected != model.end()), "query " << i);
    REQUIRE_MESSAGE(text(result.keys[i]) == (expected == model.end() ? "" : expected->first),
                    "query " << i);
    REQUIRE_MESSAGE(text(result.values[i]) == (expected == model.end() ? "" : expected->second),
                    "query " << i);
  }
}

// The last entry whose key is not above the query; end(): there is none.
inline Model::const_iterator previous_of(const Model& model, const std::string& query) {
  auto above = model.upper_bound(query);
  return above == model.begin() ? model.end() : std::prev(above);
}

inline uint64_t count_between(const Model& model, const std::optional<std::string>& from,
                              const std::optional<std::string>& to) {
  if (from && to && *from >= *to) return 0;
  return static_cast<uint64_t>(std::distance(from ? model.lower_bound(*from) : model.begin(),
                                             to ? model.lower_bound(*to) : model.end()));
}

// reads: a Snapshot or a Transaction.
template <class Reads>
void expect_bounds(Reads& reads, const Table& table, const Model& model,
                   const std::vector<std::string>& queries) {
  const Rows rows(queries);
  LowerBoundResult result;
  REQUIRE_OK(reads.lower_bound(table, rows.column(), &result));
  expect_entries(result, model, queries, [&](const auto& q) { return model.lower_bound(q); });
  REQUIRE_OK(reads.upper_bound(table, rows.column(), &result));
  expect_entries(result, model, queries, [&](const auto& q) { return model.upper_bound(q); });
  REQUIRE_OK(reads.previous(table, rows.column(), &result));
  expect_entries(result, model, queries, [&](const auto& q) { return previous_of(model, q); });
}

}  // namespace stride::test

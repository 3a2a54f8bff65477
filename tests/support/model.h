// A std::map that does what a table must do, and the comparison of the two.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/database.h"
#include "tests/support/catch.h"

namespace stride::test {

using Model = std::map<std::string, std::string>;

inline std::string text(Bytes b) { return std::string(as_text(b)); }

// A fresh directory, removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "stride_test_XXXXXX").string();
    if (!mkdtemp(name.data())) std::abort();
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Owns the memory of a variable-width column.
class Rows {
 public:
  Rows() = default;
  explicit Rows(const std::vector<std::string>& rows) {
    for (const std::string& r : rows) add(r);
  }
  void add(const std::string& row) {
    data_ += row;
    offsets_.push_back(data_.size());
  }
  Column column() const {
    return Column::variable(data_.data(), offsets_.data(), offsets_.size() - 1);
  }

 private:
  std::string data_;
  std::vector<uint64_t> offsets_{0};
};

// What GetResult::row_width changes, beside a get() without.
inline void expect_rows_of_width(const Snapshot& snapshot, const Table& table,
                                 const KeyColumn& queries, const GetResult& plain) {
  GetResult got;
  got.row_width = 1;
  for (uint64_t i = 0; i < queries.size; ++i)
    if (plain.found[i]) got.row_width = static_cast<uint32_t>(plain.values[i].size());
  REQUIRE_OK(snapshot.get(table, queries, &got));
  bool one_width = got.row_width != 0;
  for (uint64_t i = 0; i < queries.size; ++i)
    one_width &= !plain.found[i] || plain.values[i].size() == got.row_width;
  REQUIRE_MESSAGE(got.values.is_fixed() == one_width, "width of the rows");
  const std::string nothing(got.values.is_fixed() ? got.row_width : 0, '\0');
  for (uint64_t i = 0; i < queries.size; ++i) {
    REQUIRE_MESSAGE(got.found[i] == plain.found[i], "query " << i);
    const std::string value = plain.found[i] ? text(plain.values[i]) : nothing;
    REQUIRE_MESSAGE(text(got.values[i]) == value, "query " << i);
  }
}

inline void expect_lookups(const Snapshot& snapshot, const Table& table, const Model& model,
                           const std::vector<std::string>& queries) {
  Rows rows(queries);
  FindResult found;
  GetResult got;
  LowerBoundResult bounds;
  REQUIRE_OK(snapshot.find(table, rows.column(), &found));
  REQUIRE_OK(snapshot.get(table, rows.column(), &got));
  REQUIRE_OK(snapshot.lower_bound(table, rows.column(), &bounds));
  REQUIRE_MESSAGE(got.values.size == queries.size(), "values of get()");
  expect_rows_of_width(snapshot, table, rows.column(), got);
  for (size_t i = 0; i < queries.size(); ++i) {
    auto expected = model.find(queries[i]);
    bool there = expected != model.end();
    auto one = snapshot.get(table, std::string_view(queries[i]));
    REQUIRE_OK(one);
    REQUIRE_MESSAGE(one->has_value() == there, "query " << i);
    REQUIRE_MESSAGE(found.found[i] == there, "query " << i);
    REQUIRE_MESSAGE(got.found[i] == there, "query " << i);
    std::string value = there ? expected->second : "";
    if (there) REQUIRE_MESSAGE(text(**one) == value, "query " << i);
    REQUIRE_MESSAGE(text(found.value(i)) == value, "query " << i);
    REQUIRE_MESSAGE(text(got.values[i]) == value, "query " << i);
    auto lower = model.lower_bound(queries[i]);
    REQUIRE_MESSAGE(bounds.found[i] == (lower != model.end()), "query " << i);
    if (lower == model.end()) continue;
    REQUIRE_MESSAGE(text(bounds.keys[i]) == lower->first, "query " << i);
    REQUIRE_MESSAGE(text(bounds.values[i]) == lower->second, "query " << i);
  }
}

inline bool within(const std::string& key, const ScanOptions& o) {
  if (o.from && (o.from_inclusive ? key < *o.from : key <= *o.from)) return false;
  if (o.to && (o.to_inclusive ? key > *o.to : key >= *o.to)) return false;
  return !o.prefix || key.starts_with(*o.prefix);
}

inline void expect_scan(const Snapshot& snapshot, const Table& table, const Model& model,
                        const ScanOptions& options) {
  std::vector<std::pair<std::string, std::string>> expected, batches, single;
  for (const auto& entry : model)
    if (within(entry.first, options)) expected.push_back(entry);
  if (options.reverse) std::reverse(expected.begin(), expected.end());
  auto scan = snapshot.scan(table, options);
  REQUIRE_OK(scan);
  ScanBatch batch;
  while (scan->next(&batch)) {
    REQUIRE(batch.keys.size > 0u);
    REQUIRE(batch.keys.size == batch.values.size);
    for (uint64_t i = 0; i < batch.keys.size; ++i)
      batches.emplace_back(text(batch.keys[i]), text(batch.values[i]));
  }
  REQUIRE_OK(scan->status());
  REQUIRE(batches == expected);
  auto it = snapshot.iterate(table, options);
  REQUIRE_OK(it);
  for (; it->valid(); it->next()) single.emplace_back(text(it->key()), text(it->value()));
  REQUIRE_OK(it->status());
  REQUIRE(single == expected);
}

// Compares everything that a snapshot can be asked.
inline void expect_equal(const Snapshot& snapshot, const Table& table, const Model& model,
                         std::mt19937_64& random) {
  auto count = snapshot.count(table);
  REQUIRE_OK(count);
  REQUIRE(*count == model.size());
  std::vector<std::string> queries = {"", std::string(1, '\0'),
                                      "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"};
  for (const auto& [key, value] : model) {
    queries.push_back(key);
    if (random() % 4 == 0) queries.push_back(key + '\0');
    if (random() % 4 == 0 && !key.empty()) queries.push_back(key.substr(0, random() % key.size()));
    if (random() % 4 == 0 && !key.empty()) {
      queries.push_back(key);
      queries.back()[random() % key.size()] ^= static_cast<char>(1 << random() % 8);
    }
  }
  std::shuffle(queries.begin(), queries.end(), random);
  expect_lookups(snapshot, table, model, queries);
  auto any = [&] { return queries[random() % queries.size()]; };
  expect_scan(snapshot, table, model, {});
  expect_scan(snapshot, table, model, {.reverse = true, .batch_rows = 7});
  for (int i = 0; i < 6; ++i) {
    ScanOptions o;
    if (random() % 2) o.from = any();
    if (random() % 2) o.to = any();
    if (random() % 3 == 0) o.prefix = any().substr(0, random() % 3);
    o.from_inclusive = random() % 2;
    o.to_inclusive = random() % 2;
    o.reverse = random() % 2;
    o.batch_rows = random() % 2 ? 0 : 1 + random() % 10;
    expect_scan(snapshot, table, model, o);
  }
}

}  // namespace stride::test

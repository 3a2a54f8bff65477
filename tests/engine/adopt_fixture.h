// A database in memory that adopts the rows of others, which one bulk commit has made each.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/random_tables.h"

namespace stride::test {

// Of which each commit makes segments, so that the rows of one can be adopted.
inline Options bulk_options(FileSystem& fs) {
  Options options;
  options.memtable_bytes = 0;
  options.threads = 2;
  options.background_work = false;
  options.file_system = &fs;
  return options;
}

inline Status put_rows(Database& db, const Table& table, const Model& rows,
                       Durability durability = Durability::sync) {
  WriteTransaction t = db.begin();
  for (const auto& [key, value] : rows) STRIDE_TRY(t.put(table, key, value));
  return t.commit(durability);
}

// A database with a table "t" of these rows.
inline void make_shard(FileSystem& fs, const std::string& path, const Model& rows,
                       const TableOptions& table_options = {}) {
  auto db = Database::open(path, bulk_options(fs));
  REQUIRE_OK(db);
  auto table = (*db)->open_or_create_table("t", table_options);
  REQUIRE_OK(table);
  REQUIRE_OK(put_rows(**db, *table, rows));
  REQUIRE_OK((*db)->close());
}

inline Status adopt_rows(Database& db, const Table& table, const std::vector<std::string>& shards,
                         const CommitOptions& options = {}, CommitReport* report = nullptr) {
  WriteTransaction t = db.begin();
  STRIDE_TRY(t.adopt(table, shards));
  return t.commit(options, report);
}

inline std::vector<std::string> files_in(FileSystem& fs, const std::string& directory) {
  auto names = fs.list(directory);
  REQUIRE_OK(names);
  std::sort(names->begin(), names->end());
  return *names;
}

// What a database holds that is opened there, without schemas; all of it is checked.
inline Tables tables_in(FileSystem& fs, const std::string& path) {
  auto db = Database::open(path, bulk_options(fs));
  REQUIRE_OK(db);
  auto tables = read_all(**db);
  REQUIRE(tables.has_value());
  REQUIRE_OK((*db)->verify());
  tables->erase(".stride");
  return *tables;
}

class AdoptFixture {
 protected:
  void open(const TableOptions& options = {}) {
    db_.reset();
    auto opened = Database::open("/db", bulk_options(fs_));
    REQUIRE_OK(opened);
    db_ = std::move(*opened);
    auto table = db_->open_or_create_table("t", options);
    REQUIRE_OK(table);
    table_ = *table;
  }
  Model rows() const {
    auto tables = read_all(*db_);
    REQUIRE(tables.has_value());
    return (*tables)["t"];
  }
  Status adopt(const std::vector<std::string>& shards, const CommitOptions& options = {},
               CommitReport* report = nullptr) {
    return adopt_rows(*db_, table_, shards, options, report);
  }

  MemoryFileSystem fs_;
  std::unique_ptr<Database> db_;
  Table table_;
};

}  // namespace stride::test

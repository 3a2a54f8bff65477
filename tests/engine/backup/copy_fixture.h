// A database in memory that is copied, and what its copies hold.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/backup.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/forwarding_file_system.h"
#include "tests/support/model.h"
#include "tests/support/random_tables.h"

namespace stride::test {

// As a directory of another file system is: there are no links.
class LinklessFiles final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Status link(const std::string& from, const std::string&) override {
    return Status(StatusCode::unavailable, "link: Invalid cross-device link").with_file(from);
  }
};

inline std::vector<std::string> names_in(FileSystem& fs, const std::string& directory) {
  auto names = fs.list(directory);
  REQUIRE_OK(names);
  return *names;
}

// What a database holds that is opened there; all of it is checked.
inline Tables tables_at(FileSystem& fs, const std::string& path, Options options = {}) {
  options.file_system = &fs;
  options.create_if_missing = false;
  auto db = Database::open(path, options);
  REQUIRE_OK(db);
  auto tables = read_all(**db);
  REQUIRE(tables.has_value());
  REQUIRE_OK((*db)->verify());
  return *tables;
}

// The status of an opening that makes nothing.
inline Status open_status(FileSystem& fs, const std::string& path) {
  return Database::open(path, {.create_if_missing = false, .file_system = &fs}).status();
}

class CopyFixture {
 protected:
  CopyFixture() { open(); }

  void open(Options options = {}) {
    db_.reset();
    options.file_system = &fs_;
    auto opened = Database::open("/db", options);
    REQUIRE_OK(opened);
    db_ = std::move(*opened);
  }
  void put(const std::string& table, const std::string& key, const std::string& value,
           Durability durability = Durability::sync) {
    auto t = db_->open_or_create_table(table);
    REQUIRE_OK(t);
    WriteTransaction transaction = db_->begin();
    REQUIRE_OK(transaction.put(*t, key, value));
    REQUIRE_OK(transaction.commit(durability));
    model_[table][key] = value;
  }
  // Two segments of one table, and rows in the log.
  void fill() {
    for (int i = 0; i < 200; ++i) put("a", "k" + std::to_string(i), std::string(500, 'a'));
    REQUIRE_OK(db_->compact());
    put("b", "x", "y");
    REQUIRE_OK(db_->compact());
    put("a", "k3", "new");
  }

  MemoryFileSystem fs_;
  std::unique_ptr<Database> db_;
  Tables model_;
};

}  // namespace stride::test

// A database with two tables for tests of transactions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {

class TransactionFixture {
 protected:
  explicit TransactionFixture(uint64_t memtable_bytes = 1 << 20) {
    options_.memtable_bytes = memtable_bytes;
    options_.file_system = &files_;
    options_.threads = 2;
    options_.durability = Durability::none;
    open();
    a_ = *db_->create_table("a");
    b_ = *db_->create_table("b");
  }
  void open() {
    db_.reset();
    auto opened = Database::open("/db", options_);
    REQUIRE_OK(opened);
    db_ = std::move(*opened);
  }

  // Another commit.
  void put(const Table& table, std::string_view key, std::string_view value) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table, key, value));
    REQUIRE_OK(t.commit());
  }
  void erase(const Table& table, std::string_view key) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.erase(table, key));
    REQUIRE_OK(t.commit());
  }
  // A commit that is too large for the log. Its keys begin with '~'.
  void put_many(const Table& table, int rows = 20'000) {
    Rows keys, values;
    for (int i = 0; i < rows; ++i) {
      keys.add("~" + std::to_string(i));
      values.add(std::string(32, 'v'));
    }
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table, keys.column(), values.column()));
    REQUIRE_OK(t.commit());
  }
  std::optional<std::string> stored(const Table& table, std::string_view key) {
    const Snapshot snapshot = db_->snapshot();
    auto value = snapshot.get(table, key);
    REQUIRE_OK(value);
    return *value ? std::optional(text(**value)) : std::nullopt;
  }
  static std::optional<std::string> read(Transaction& t, const Table& table, std::string_view key) {
    auto value = t.get(table, key);
    REQUIRE_OK(value);
    return *value ? std::optional(text(**value)) : std::nullopt;
  }
  static std::vector<std::string> keys_of(Result<Scan> scan) {
    REQUIRE_OK(scan);
    std::vector<std::string> keys;
    for (ScanBatch batch; scan->next(&batch);)
      for (uint64_t i = 0; i < batch.keys.size; ++i) keys.push_back(text(batch.keys[i]));
    REQUIRE_OK(scan->status());
    return keys;
  }
  // The table and the key must be named.
  static void check_conflict(const Status& s, std::string_view table, std::string_view key) {
    CHECK_MESSAGE(s.code() == StatusCode::conflict, s.to_string());
    CHECK_MESSAGE(s.message().find("table '" + std::string(table) + "'") != std::string::npos,
                  s.to_string());
    CHECK_MESSAGE(s.message().find("'" + std::string(key) + "'") != std::string::npos,
                  s.to_string());
    CHECK(s.key() == key);
    CHECK_FALSE(s.remedy().empty());
  }

  MemoryFileSystem files_;
  Options options_;
  std::unique_ptr<Database> db_;
  Table a_, b_;
};

}  // namespace stride::test

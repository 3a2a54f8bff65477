// Databases in memory, and their commits: one after the other, together, and where a call fails.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/model.h"
#include "tests/support/random_tables.h"

namespace stride::test {

using Keys = std::vector<std::string>;

// One bit for each row.
using Bits = std::vector<uint64_t>;
inline Bits bits_for(uint64_t rows) { return Bits((rows + 63) / 64, ~uint64_t{0}); }
inline bool is_set(const Bits& bits, uint64_t i) { return bits[i / 64] >> i % 64 & 1; }
inline bool none_set(const Bits& bits) { return bits == Bits(bits.size(), 0); }

inline Model read_table(const Database& db, const Table& table) {
  Model model;
  auto it = db.snapshot().iterate(table);
  for (; it->valid(); it->next()) model[text(it->key())] = text(it->value());
  return model;
}

// Empty, of zeros and of ones, as long as may be, and beginnings of one another.
inline Keys keys_of_all_kinds() {
  return {"",
          std::string(1, '\0'),
          std::string(2, '\0'),
          "\xFF",
          "\xFF\xFF",
          "a",
          "ab",
          "abc",
          std::string("a\0", 2),
          "\xFF\x01",
          std::string(max_key_bytes, 'k'),
          std::string(max_key_bytes - 1, 'k') + 'l'};
}

class WriteFixture {
 protected:
  WriteFixture() { reopen(); }
  void reopen() {
    db_.reset();
    Options options;
    options.memtable_bytes = 0;  // each commit makes a segment
    options.file_system = &files_;
    options.threads = 2;
    db_ = std::move(*Database::open("/db", options));
  }

  MemoryFileSystem files_;
  std::unique_ptr<Database> db_;
};

// Commits that are carried out together.
class GroupFixture {
 protected:
  explicit GroupFixture(const TableOptions& table_options = {}) : gate_(files_) {
    Options options;
    options.memtable_bytes = 0;  // each commit makes a segment
    options.file_system = &gate_;
    options.threads = 2;
    db_ = std::move(*Database::open("/db", options));
    table_ = *db_->create_table("t", table_options);
  }

  using Change = std::function<Status(WriteTransaction&)>;
  // Commits each, one after the other, while one before all of them holds the gate.
  std::vector<Status> commit_together(const std::vector<Change>& changes) {
    using namespace std::chrono_literals;
    gate_.shut();
    std::vector<WriteTransaction> transactions;
    transactions.push_back(db_->begin());
    CHECK_OK(transactions[0].put(table_, "gate", std::string(8, '\0')));
    for (const Change& change : changes) {
      Status s = change(transactions.emplace_back(db_->begin()));
      CHECK_OK(s);
    }
    std::vector<std::future<Status>> commits;
    for (WriteTransaction& t : transactions) {
      commits.push_back(std::async(std::launch::async, [&t] { return t.commit(); }));
      std::this_thread::sleep_for(100ms);
    }
    gate_.open_gate();
    std::vector<Status> result;
    for (auto& commit : commits) result.push_back(commit.get());
    CHECK_OK(result[0]);
    result.erase(result.begin());
    return result;
  }

  MemoryFileSystem files_;
  GatedFileSystem gate_;
  std::unique_ptr<Database> db_;
  Table table_;
};

// A commit, of which every call of the file system fails in turn: the tables t and u are then as
// before, and else as after.
struct FailingCommit {
  TableOptions options;
  Tables before, after;
  std::function<Status(WriteTransaction&, const Table& t, const Table& u)> change;
  std::function<void(bool failed)> check = [](bool) {};

  void run() const {
    for (bool forever : {false, true})
      for (uint64_t n = 1; fails(n, forever); ++n) REQUIRE(n < 1000u);
  }

 private:
  bool fails(uint64_t call, bool forever) const {
    MemoryFileSystem files;
    Options database_options;
    database_options.memtable_bytes = 0;  // each commit makes a segment
    database_options.file_system = &files;
    auto db = std::move(*Database::open("/db", database_options));
    Table table = *db->create_table("t", options), other = *db->create_table("u", options);
    WriteTransaction first = db->begin();
    for (const auto& [name, rows] : before)
      for (const auto& [key, value] : rows)
        REQUIRE_OK(first.put(name == "t" ? table : other, key, value));
    REQUIRE_OK(first.commit());
    WriteTransaction t = db->begin();
    REQUIRE_OK(change(t, table, other));
    files.fail_call(call, StatusCode::io_error, forever);
    bool failed = !t.commit().ok();
    files.fail_call(0, StatusCode::ok);
    Tables found = *read_all(*db);
    REQUIRE_MESSAGE(found == (failed ? before : after), "call " << call);
    check(failed);
    db.reset();
    db = std::move(*Database::open("/db", database_options));
    found = *read_all(*db);
    // A failed sync of the manifest may have reached the disk all the same.
    REQUIRE_MESSAGE((found == after || (failed && found == before)), "call " << call);
    return failed;
  }
};

}  // namespace stride::test

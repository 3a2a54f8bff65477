// A small database in memory, whose files tests damage, and what it holds.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/database.h"
#include "engine/salvage.h"
#include "storage/current_file.h"
#include "storage/manifest_format.h"
#include "storage/memory_file_system.h"
#include "tests/support/model.h"

namespace stride::test {

using Tables = std::map<std::string, Model>;

inline std::string numbered(const std::string& stem, int i) {
  return stem + std::to_string(1000 + i);
}

class SmallDatabase {
 public:
  Options options(bool read_only) {
    Options o;
    o.read_only = read_only;
    o.create_if_missing = !read_only;
    o.threads = 1;
    o.backend = BackendKind::host;
    o.background_work = false;
    o.file_system = &fs_;
    return o;
  }

  // For what salvage() has made.
  Options options_for_new() {
    Options o = options(/*read_only=*/false);
    o.create_if_missing = false;
    return o;
  }

  // Rows of a run of a table; no value: it is erased.
  void commit(Database* db, const std::string& table,
              const std::vector<std::pair<std::string, std::optional<std::string>>>& rows) {
    auto t = db->open_table(table);
    REQUIRE_OK(t);
    WriteTransaction transaction = db->begin();
    for (const auto& [key, value] : rows) {
      if (value) {
        CHECK_OK(transaction.put(*t, key, *value));
        now_[table][key] = *value;
        ever_[table][key].insert(*value);
      } else {
        CHECK_OK(transaction.erase(*t, key));
        now_[table].erase(key);
      }
    }
    REQUIRE_OK(transaction.commit());
    states_.push_back(now_);
    commits_.push_back({table, rows, ""});
    for (const std::string& name : files())
      if (segment_number(name) && seen_.insert(name).second) commits_.back().file = name;
  }

  struct Commit {
    std::string table;
    std::vector<std::pair<std::string, std::optional<std::string>>> rows;
    std::string file;  // of the segment; empty: it is in the log
  };
  const std::vector<Commit>& commits() const { return commits_; }
  // What there is without some of the commits.
  template <class IsLost>
  Tables without(const IsLost& is_lost) const {
    Tables tables;
    for (const auto& [name, rows] : now_) tables[name];
    for (const Commit& commit : commits_) {
      if (is_lost(commit)) continue;
      for (const auto& [key, value] : commit.rows) {
        if (value)
          tables[commit.table][key] = *value;
        else
          tables[commit.table].erase(key);
      }
    }
    return tables;
  }

  const Tables& now() const { return now_; }
  const std::vector<Tables>& states() const { return states_; }
  bool was_ever(const std::string& table, const std::string& key, const std::string& value) const {
    auto t = ever_.find(table);
    if (t == ever_.end()) return false;
    auto k = t->second.find(key);
    return k != t->second.end() && k->second.contains(value);
  }

  std::vector<std::string> files() {
    std::vector<std::string> names;
    auto listed = fs_.list("db");
    REQUIRE_OK(listed);
    for (const std::string& name : *listed)
      if (name != "LOCK") names.push_back(name);
    return names;
  }
  std::string read(const std::string& name) {
    auto bytes = read_file(fs_, "db/" + name);
    REQUIRE_OK(bytes);
    return *bytes;
  }
  void write(const std::string& name, const std::string& bytes) {
    Status ignored = fs_.remove("db/" + name);
    auto file = fs_.open("db/" + name, OpenMode::create);
    REQUIRE_OK(file);
    if (!bytes.empty()) REQUIRE_OK((*file)->write_at(0, as_bytes(bytes)));
  }
  void remove(const std::string& name) { REQUIRE_OK(fs_.remove("db/" + name)); }
  MemoryFileSystem& fs() { return fs_; }

  // What was committed before.
  void forget() {
    now_.clear();
    states_ = {{}};
    commits_.clear();
    seen_.clear();
    ever_.clear();
  }

  void drop_directory(const std::string& directory) {
    auto names = fs_.list(directory);
    if (!names.ok()) return;
    for (const std::string& name : *names) CHECK_OK(fs_.remove(directory + "/" + name));
    CHECK_OK(fs_.remove_directory(directory));
  }

 private:
  MemoryFileSystem fs_{{.crashable = false}};
  Tables now_;
  std::vector<Tables> states_{{}};
  std::vector<Commit> commits_;
  std::set<std::string> seen_;
  std::map<std::string, std::map<std::string, std::set<std::string>>> ever_;
};

// All rows of a table, or why they can't be read.
inline Result<Model> read_table(Database* db, const std::string& name) {
  auto table = db->open_table(name);
  if (!table.ok()) return table.status();
  Model rows;
  auto scan = db->snapshot().scan(*table);
  if (!scan.ok()) return scan.status();
  ScanBatch batch;
  while (scan->next(&batch))
    for (uint64_t i = 0; i < batch.keys.size; ++i)
      rows[text(batch.keys[i])] = text(batch.values[i]);
  if (!scan->status().ok()) return scan->status();
  return rows;
}

}  // namespace stride::test

// A small database with a table of each kind, whose files are edited and sealed again, and all that
// can be asked of it: whatever its bytes, each call gives an answer or says which file is damaged.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/current_file.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/forged_files.h"
#include "tests/support/model.h"

namespace stride::test {

inline constexpr const char* forged_path = "db";

inline Options forged_options(FileSystem& fs) {
  Options options;
  options.file_system = &fs;
  options.threads = 1;
  options.memtable_bytes = 0;  // each commit makes a segment
  options.backend = BackendKind::host;
  return options;
}

// The files of a database by their names.
using Files = std::map<std::string, std::string>;

inline Files files_of(FileSystem& fs) {
  Files files;
  auto names = fs.list(forged_path);
  CHECK_OK(names);
  for (const std::string& name : *names)
    if (name != "LOCK") files[name] = *read_file(fs, std::string(forged_path) + "/" + name);
  return files;
}

inline std::unique_ptr<MemoryFileSystem> file_system_of(const Files& files) {
  auto fs = std::make_unique<MemoryFileSystem>(MemoryFileSystemOptions{.crashable = false});
  CHECK_OK(fs->create_directory(forged_path));
  for (const auto& [name, bytes] : files) {
    auto file = fs->open(std::string(forged_path) + "/" + name, OpenMode::create);
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->write_at(0, as_bytes(bytes)));
  }
  return fs;
}

inline std::string number_key(uint32_t n, int width) {
  std::string key(static_cast<size_t>(width), '\0');
  for (int i = 0; i < 4; ++i)
    key[static_cast<size_t>(width - 1 - i)] = static_cast<char>(n >> 8 * i);
  return key;
}

// Makes the tables: bytes, fixed, shared, sums (i64), routes (of 32-bit addresses), and names
// (prefixes of strings); of three runs each, with erased rows, and `single` of one run.
class ForgedDatabase {
 public:
  // logged: rows of the last run are in a log alone.
  explicit ForgedDatabase(uint32_t rows, bool logged = false) : rows_(rows) {
    MemoryFileSystem fs({.crashable = false});
    Options options = forged_options(fs);
    auto db = Database::open(forged_path, options);
    CHECK_OK(db);
    TableOptions shared{.share_equal_values = true}, sums{.key_width = 4};
    sums.numbers = NumberType::i64;
    const std::pair<const char*, TableOptions> tables[] = {
        {"bytes", {}},
        {"fixed", {.key_width = 8}},
        {"names", {.address_bits = byte_strings}},
        {"routes", {.address_bits = 32}},
        {"shared", shared},
        {"single", {}},
        {"sums", sums}};
    for (const auto& [name, table_options] : tables) {
      auto table = (*db)->create_table(name, table_options);
      CHECK_OK(table);
    }
    for (int run = 0; run < 3; ++run) {
      if (logged && run == 2) {
        CHECK_OK((*db)->close());
        options.memtable_bytes = Options{}.memtable_bytes;
        options.background_work = false;
        db = Database::open(forged_path, options);
        CHECK_OK(db);
      }
      commit_run(**db, run);
    }
    // Closing may write what the log has to segments.
    if (logged) files_ = files_of(fs);
    CHECK_OK((*db)->close());
    if (!logged) files_ = files_of(fs);
  }

  const Files& files() const { return files_; }
  static std::string key(const std::string& table, uint32_t i) {
    if (table == "fixed") return number_key(i * 7, 8);
    if (table == "sums") return number_key(i * 5, 4);
    if (table == "routes") return number_key(i << 12, 4) + char(20 + i % 2 * 4);
    if (table == "names") return "org/" + std::to_string(i % 97) + "/" + std::to_string(i);
    return std::string(i % 5, 'p') + "key " + std::to_string(i * 3);
  }
  static std::string value(const std::string& table, uint32_t i) {
    if (table == "sums") return std::string("\1\0\0\0\0\0\0\0", 8);
    if (table == "fixed") return number_key(i, 16);
    if (table == "shared") return "value " + std::to_string(i % 9);
    return std::string(i % 11, 'v') + std::to_string(i);
  }
  uint32_t rows() const { return rows_; }
  // The file of a table's run, 0, 1 or 2: a commit writes its tables in the order of their ids.
  std::string segment(const std::string& table, size_t run) const {
    std::vector<std::string> of_run = {"bytes",  "fixed",  "names", "routes",
                                       "shared", "single", "sums"};
    std::vector<std::string> tables = of_run;
    std::erase(of_run, "single");
    for (int i = 0; i < 2; ++i) tables.insert(tables.end(), of_run.begin(), of_run.end());
    auto file = files_.begin();
    for (const std::string& t : tables) {
      while (!file->first.ends_with(".seg")) ++file;
      if (t == table && run-- == 0) return file->first;
      ++file;
    }
    return "";
  }
  std::string manifest() const { return "MANIFEST-000001"; }

 private:
  void commit_run(Database& db, int run) {
    WriteTransaction t = db.begin();
    for (const TableStatistics& s : db.tables()) {
      if (s.name == "single" && run > 0) continue;
      Table table = *db.open_table(s.name);
      for (uint32_t i = 0; i < rows_; ++i) {
        if (i % 3 != static_cast<uint32_t>(run) && i % 5 != 0) continue;
        std::string k = key(s.name, i);
        Status status =
            run > 0 && i % 10 == 0 ? t.erase(table, k) : t.put(table, k, value(s.name, i));
        CHECK_OK(status);
      }
    }
    CHECK_OK(t.commit());
  }

  uint32_t rows_;
  Files files_;
};

// What was said while a database was asked everything.
class Asked {
 public:
  // Opens it, and asks. change: compacts and writes too.
  Asked(FileSystem& fs, uint32_t rows, bool change) : rows_(rows) {
    auto db = Database::open(forged_path, forged_options(fs));
    opened = db.status();
    if (!note("open", opened)) return;
    for (const TableStatistics& s : (*db)->tables()) ask(**db, s.name);
    note("verify", verified = (*db)->verify());
    if (!change) return;
    note("compact", compacted = (*db)->compact());
    for (const TableStatistics& s : (*db)->tables()) write(**db, s);
    for (const TableStatistics& s : (*db)->tables()) ask(**db, s.name);
    note("verify again", verified_again = (*db)->verify());
    note("close", (*db)->close());
  }

  // Each status is ok, or names a file that is damaged or newer. What verify() calls whole is.
  void expect_sound() const {
    for (const auto& [what, status] : notes_) {
      if (status.ok()) continue;
      bool damage = status.code() == StatusCode::corruption ||
                    status.code() == StatusCode::unsupported_version;
      CHECK_MESSAGE(damage, what << ": " << status.to_string());
      CHECK_MESSAGE(!status.file().empty(), what << ": " << status.to_string());
      CHECK_MESSAGE(!status.remedy().empty(), what << ": " << status.to_string());
      if (opened.ok() && verified.ok())
        CHECK_MESSAGE(status.ok(), "verify() found nothing: " << what);
    }
    if (opened.ok() && verified.ok()) CHECK_MESSAGE(problems_.empty(), problems_.front());
  }
  // The first that is not ok.
  Status first_failure() const {
    for (const auto& [what, status] : notes_)
      if (!status.ok()) return status;
    return {};
  }
  const Status& said(const std::string& what) const {
    static const Status none(StatusCode::not_found, "was not asked");
    for (const auto& [asked, status] : notes_)
      if (asked == what) return status;
    return none;
  }

  Status opened, verified, compacted, verified_again;

 private:
  // True where it is ok.
  bool note(const std::string& what, const Status& status) {
    notes_.emplace_back(what, status);
    return status.ok();
  }
  void use(Bytes bytes) {
    for (std::byte b : bytes) sum_ = sum_ * 31 + static_cast<uint64_t>(b);
  }

  uint64_t scan(const Snapshot& snapshot, const Table& table, const ScanOptions& options,
                std::vector<std::string>* keys) {
    std::string what = "scan " + table.name() + (options.reverse ? " backwards" : "");
    auto scan = snapshot.scan(table, options);
    if (!note(what, scan.status())) return 0;
    uint64_t rows = 0;
    ScanBatch batch;
    while (scan->next(&batch)) {
      rows += batch.keys.size;
      for (uint64_t i = 0; i < batch.keys.size; ++i) {
        use(batch.keys[i]);
        use(batch.values[i]);
        if (keys) keys->push_back(text(batch.keys[i]));
      }
    }
    note(what, scan->status());
    return rows;
  }

  void ask(Database& db, const std::string& name) {
    auto opened_table = db.open_table(name);
    if (!opened_table.ok()) return;
    const Table& table = *opened_table;
    Snapshot snapshot = db.snapshot();
    note("segments " + name, db.segments(table).status());
    std::vector<std::string> keys;
    uint64_t rows = scan(snapshot, table, {}, &keys);
    uint64_t back = scan(snapshot, table, {.reverse = true, .batch_rows = 7}, nullptr);
    scan(snapshot, table,
         {.from = ForgedDatabase::key(name, rows_ / 3), .to = "r", .batch_rows = 5}, nullptr);
    auto count = snapshot.count(table);
    if (note("count " + name, count.status()) && (*count != rows || rows != back))
      problems_.push_back(name + " has " + std::to_string(*count) + " rows, scanned " +
                          std::to_string(rows) + " and " + std::to_string(back));
    find(snapshot, table, keys);
    if (table.address_bits()) match(snapshot, table);
  }

  void find(const Snapshot& snapshot, const Table& table, const std::vector<std::string>& keys) {
    const std::string& name = table.name();
    Rows known(keys), asked;
    for (uint32_t i = 0; i < rows_; ++i) asked.add(ForgedDatabase::key(name, i));
    for (const Column& queries : {known.column(), asked.column()}) {
      GetResult got;
      FindResult found;
      LowerBoundResult bounds;
      if (note("get " + name, snapshot.get(table, queries, &got))) {
        use({got.data.data(), got.values.offsets[queries.size]});
        for (uint64_t i = 0; i < keys.size() && queries.data == known.column().data; ++i)
          if (!got.found[i]) problems_.push_back(name + " has a key that is not found");
      }
      if (note("find " + name, snapshot.find(table, queries, &found)))
        for (uint64_t i = 0; i < queries.size; ++i) use(found.value(i));
      if (note("lower_bound " + name, snapshot.lower_bound(table, queries, &bounds)))
        for (uint64_t i = 0; i < queries.size; ++i) {
          use(bounds.keys[i]);
          use(bounds.values[i]);
        }
      for (uint64_t i = 0; i < std::min<uint64_t>(queries.size, 20); ++i) {
        auto one = snapshot.get(table, queries[i]);
        if (note("get one " + name, one.status()) && *one) use(**one);
      }
    }
  }

  void match(const Snapshot& snapshot, const Table& table) {
    const bool strings = table.address_bits() == byte_strings;
    Rows addresses;
    for (uint32_t i = 0; i < rows_; ++i) {
      std::string key = ForgedDatabase::key(table.name(), i);
      if (!strings) key.resize((table.address_bits() + 7) / 8);
      addresses.add(strings ? key + "/more" : key);
    }
    MatchResult result;
    if (note("match " + table.name(), snapshot.match(table, addresses.column(), &result)))
      for (uint64_t i = 0; i < rows_; ++i) {
        use(result.prefix(i));
        use(result.value(i));
      }
    for (uint64_t i : {uint64_t{1}, uint64_t{rows_ / 2}}) {
      auto all = snapshot.match_all(table, addresses.column()[i]);
      if (note("match_all " + table.name(), all.status()))
        for (const PrefixEntry& entry : *all) use(entry.value);
    }
  }

  void write(Database& db, const TableStatistics& s) {
    auto table = db.open_table(s.name);
    if (!table.ok()) return;
    std::string key = ForgedDatabase::key(s.name, 4), value = ForgedDatabase::value(s.name, 4);
    key.resize(s.key_width ? s.key_width : key.size());
    if (s.numbers != NumberType::none) value.assign(width_of(s.numbers), '\0');
    WriteTransaction t = db.begin();
    // A table whose keys are of another kind than they were refuses the row.
    if (!t.put(*table, key, value).ok()) return;
    note("commit " + s.name, t.commit());
    if (s.numbers != NumberType::none) {
      WriteTransaction sums = db.begin();
      Rows keys({key}), numbers({value});
      if (sums.accumulate(*table, keys.column(), numbers.column()).ok()) {
        Status status = sums.commit();
        if (status.code() != StatusCode::invalid_argument) note("accumulate " + s.name, status);
      }
    }
    WriteTransaction erase = db.begin();
    if (erase.erase_range(*table, as_bytes("a"), as_bytes("b")).ok())
      note("erase_range " + s.name, erase.commit());
  }

  uint32_t rows_;
  uint64_t sum_ = 0;
  std::vector<std::pair<std::string, Status>> notes_;
  std::vector<std::string> problems_;
};

}  // namespace stride::test

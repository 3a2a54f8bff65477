// Power losses, failing calls, full disks and damaged files for as long as STRIDE_SOAK_SECONDS
// says.
#include <algorithm>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/random_tables.h"
#include "tests/support/soak.h"

namespace stride::test {
namespace {

Options options_for(MemoryFileSystem& fs, std::mt19937_64& random) {
  Options o;
  o.file_system = &fs;
  o.threads = 1 + random() % 2;
  if (random() % 2) o.memory_limit_bytes = 1;
  return o;
}

// One life of a database, from an opening to a power loss, and what may be found after that.
class Life {
 public:
  Life(MemoryFileSystem& fs, const Tables& found, std::mt19937_64& random)
      : fs_(fs), random_(random), states_{found} {}

  void live() {
    auto db = open();
    if (!db) return;
    order_fault();
    for (uint64_t i = random_() % 25; i > 0 && !poisoned_; --i) {
      change(*db);
      if (random_() % 8 == 0) order_fault();
    }
    // What the failed change has left is uncertain even then.
    if (random_() % 4 == 0 && db->close().ok()) synced_ = states_.size() - (poisoned_ ? 2 : 1);
  }

  // Whether a database that holds this may be found after a power loss.
  bool allows(const Tables& found) const {
    return std::find(states_.begin() + static_cast<ptrdiff_t>(synced_), states_.end(), found) !=
           states_.end();
  }
  // What happened, for a failing test to tell.
  const std::string& history() const { return history_; }

 private:
  // Null where an ordered fault struck.
  std::unique_ptr<Database> open() {
    if (random_() % 4 == 0) fs_.fail_call(1 + random_() % 10, StatusCode::io_error);
    auto db = Database::open("/db", options_for(fs_, random_));
    fs_.fail_call(0, StatusCode::ok);
    return db.ok() ? std::move(*db) : nullptr;
  }

  void order_fault() {
    fs_.set_capacity(~uint64_t{0});
    switch (random_() % 6) {
      case 0:
        return fs_.fail_call(1 + random_() % 150, StatusCode::io_error, /*forever=*/true);
      case 1:
        return fs_.fail_call(1 + random_() % 60, StatusCode::io_error);
      case 2:
        return fs_.fail_call(1 + random_() % 60, StatusCode::no_space);
      case 3:
        return fs_.fail_sync(1 + random_() % 20, StatusCode::io_error);
      case 4:
        return fs_.set_capacity(fs_.used_bytes() + random_() % 50'000);
      default:
        return fs_.fail_call(0, StatusCode::ok);
    }
  }

  void change(Database& db) {
    auto durability = static_cast<Durability>(random_() % 3);
    Tables after = states_.back();
    Status s = RandomTables(random_).change(db, durability, &after);
    history_ += "\n  change with durability " + std::to_string(static_cast<int>(durability)) +
                ": " +
                (s.ok() ? after == states_.back() ? "nothing new" : "new state" : s.to_string());
    auto seen = read_all(db);
    REQUIRE(seen.has_value());
    REQUIRE_MESSAGE(*seen == (s.ok() ? after : states_.back()), s.to_string());
    if (s.ok()) {
      bool changed = after != states_.back();
      states_.push_back(std::move(after));
      // What changes nothing writes nothing, and so syncs nothing.
      if (changed && durability == Durability::sync) synced_ = states_.size() - 1;
    } else if (is_poisoned(db)) {
      // A sync that failed may have reached the disk all the same.
      states_.push_back(std::move(after));
      poisoned_ = true;
    }
  }

  static bool is_poisoned(Database& db) {
    return db.drop_table("never there").code() == StatusCode::poisoned;
  }

  MemoryFileSystem& fs_;
  std::mt19937_64& random_;
  std::vector<Tables> states_;
  size_t synced_ = 0;  // states_[synced_] and all before it are safe
  bool poisoned_ = false;
  std::string history_;
};

TEST_CASE("SoakFaultsTest.PowerLossLeavesAPrefixWithAllSyncedCommits", "[SoakFaultsTest]") {
  std::mt19937_64 random(seed());
  uint64_t losses = 0;
  for (Deadline deadline; !deadline.over();) {
    auto fs = std::make_unique<MemoryFileSystem>();
    Tables found;
    for (int generation = 0; generation < 12 && !deadline.over(); ++generation, ++losses) {
      Life life(*fs, found, random);
      life.live();
      fs = fs->crash(random(), static_cast<CrashPolicy>(random() % 3));
      auto db = Database::open("/db", options_for(*fs, random));
      REQUIRE_OK(db);
      auto read = read_all(**db);
      REQUIRE_MESSAGE(read.has_value(), "power loss " << losses << life.history());
      REQUIRE_MESSAGE(life.allows(*read), "power loss " << losses << life.history());
      REQUIRE_OK((*db)->verify());
      found = *read;
    }
  }
  std::printf("%llu power losses\n", static_cast<unsigned long long>(losses));
}

// A closed database and everything that it has held since it was made.
struct Original {
  MemoryFileSystem fs;
  std::vector<Tables> states;
};

void make_original(std::mt19937_64& random, Original* original) {
  Options options = options_for(original->fs, random);
  auto db = Database::open("/db", options);
  REQUIRE_OK(db);
  original->states.emplace_back();
  RandomTables tables(random);
  for (uint64_t i = 3 + random() % 12; i > 0; --i) {
    Tables after = original->states.back();
    REQUIRE_OK(tables.change(**db, Durability::sync, &after));
    original->states.push_back(after);
  }
  if (random() % 2) {  // a segment of several blocks
    Tables after = original->states.back();
    if (after.empty()) return;
    auto& [name, model] = *after.begin();
    auto table = (*db)->open_table(name);
    Rows keys, values;
    for (int n = 0; n < 3000; ++n) {
      std::string key = "many" + std::to_string(n), value(random() % 60, char('a' + n % 26));
      keys.add(key);
      values.add(value);
      model[key] = value;
    }
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, keys.column(), values.column()));
    REQUIRE_OK(t.commit());
    original->states.push_back(after);
  }
  REQUIRE_OK((*db)->close());
}

class Damager {
 public:
  Damager(MemoryFileSystem& fs, std::mt19937_64& random) : fs_(fs), random_(random) {
    auto names = fs_.list("/db");
    CHECK_OK(names);
    for (const std::string& name : *names)
      if (name != "LOCK") paths_.push_back("/db/" + name);
  }

  void damage() {
    for (uint64_t n = 1 + random_() % 3; n > 0; --n) damage_once();
  }
  bool only_segments() const { return only_segments_; }

 private:
  const std::string& any() { return paths_[random_() % paths_.size()]; }

  std::string read(const std::string& path) {
    auto file = fs_.open(path, OpenMode::read);
    if (!file.ok()) return "";
    std::string bytes(*(*file)->size(), '\0');
    CHECK_OK((*file)->read_at(0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }

  void write(const std::string& path, const std::string& bytes) {
    if (!path.ends_with(".seg")) only_segments_ = false;
    auto file = fs_.open(path, OpenMode::write);
    if (!file.ok()) return;
    CHECK_OK((*file)->truncate(0));
    CHECK_OK((*file)->write_at(0, as_bytes(bytes)));
  }

  void damage_once() {
    const std::string path = any(), other = any();
    std::string bytes = read(path), others = read(other);
    if (bytes.empty()) return;
    uint64_t at = random_() % bytes.size();
    switch (random_() % 8) {
      case 0:
        return write(path, bytes.substr(0, at));
      case 1:
        return write(path, bytes + std::string(random_() % 5000, char(random_())));
      case 2:
        write(path, others);
        return write(other, bytes);
      case 3:
        bytes.replace(at, random_() % 600, others, random_() % (others.size() + 1), 600);
        return write(path, bytes);
      case 4:
        std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at),
                    std::min<uint64_t>(bytes.size() - at, random_() % 5000), '\0');
        return write(path, bytes);
      case 5:
        if (random_() % 4) return;
        if (!path.ends_with(".seg")) only_segments_ = false;
        CHECK((fs_.remove(path).ok() || true));
        return;
      default:
        bytes[at] ^= static_cast<char>(1 << random_() % 8);
        return write(path, bytes);
    }
  }

  MemoryFileSystem& fs_;
  std::mt19937_64& random_;
  std::vector<std::string> paths_;
  bool only_segments_ = true;
};

void expect_named_error(const Status& s) {
  CHECK_MESSAGE(
      (s.code() == StatusCode::corruption || s.code() == StatusCode::not_found ||
       s.code() == StatusCode::unsupported_version || s.code() == StatusCode::invalid_argument),
      s.to_string());
  CHECK_FALSE(s.message().empty());
}

using Entries = std::vector<std::pair<std::string, std::string>>;

// What a scan hands out before it ends or meets damage.
Entries scan_table(const Snapshot& snapshot, const Table& table, bool reverse, bool* whole) {
  Entries rows;
  *whole = false;
  auto scan = snapshot.scan(table, {.reverse = reverse});
  if (!scan.ok()) {
    expect_named_error(scan.status());
    return rows;
  }
  ScanBatch batch;
  while (scan->next(&batch))
    for (uint64_t i = 0; i < batch.keys.size; ++i)
      rows.emplace_back(text(batch.keys[i]), text(batch.values[i]));
  *whole = scan->status().ok();
  if (!*whole) expect_named_error(scan->status());
  return rows;
}

bool fits(const Entries& rows, bool whole, const Model& model, bool reverse) {
  if (whole ? rows.size() != model.size() : rows.size() > model.size()) return false;
  auto same = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second == b.second;
  };
  return reverse ? std::equal(rows.begin(), rows.end(), model.rbegin(), same)
                 : std::equal(rows.begin(), rows.end(), model.begin(), same);
}

// Everything that can be read of a table is what this state says.
bool agrees(const Snapshot& snapshot, const Table& table, const Model& model) {
  for (bool reverse : {false, true}) {
    bool whole;
    Entries rows = scan_table(snapshot, table, reverse, &whole);
    if (!fits(rows, whole, model, reverse)) return false;
  }
  Rows queries;
  std::vector<std::string> keys = {"not there"};
  for (const auto& [key, value] : model)
    if (keys.size() < 200) keys.push_back(key);
  for (const std::string& key : keys) queries.add(key);
  auto expected = [&](const std::string& key) {
    auto it = model.find(key);
    return it == model.end() ? std::optional<std::string>() : it->second;
  };
  for (const std::string& key : keys) {
    auto one = snapshot.get(table, std::string_view(key));
    if (!one.ok()) {
      expect_named_error(one.status());
    } else if ((*one ? std::optional(text(**one)) : std::nullopt) != expected(key)) {
      return false;
    }
  }
  GetResult got;
  Status s = snapshot.get(table, queries.column(), &got);
  if (!s.ok()) expect_named_error(s);
  for (size_t i = 0; s.ok() && i < keys.size(); ++i)
    if ((got.found[i] ? std::optional(text(got.values[i])) : std::nullopt) != expected(keys[i]))
      return false;
  auto count = snapshot.count(table);
  return !count.ok() || *count == model.size();
}

bool agrees(Database& db, const Tables& state) {
  auto tables = db.tables();
  if (tables.size() != state.size()) return false;
  Snapshot snapshot = db.snapshot();
  for (const TableStatistics& t : tables) {
    auto model = state.find(t.name);
    auto table = db.open_table(t.name);
    if (model == state.end() || !table.ok()) return false;
    if (!agrees(snapshot, *table, model->second)) return false;
  }
  return true;
}

// Damage of a log may look like a log that ends earlier, and so any earlier state may be found, but
// nothing else. Damage of segments changes nothing but what can be read.
TEST_CASE("SoakFaultsTest.DamagedFilesNeverGiveAWrongAnswer", "[SoakFaultsTest]") {
  std::mt19937_64 random(seed());
  uint64_t rounds = 0, refused = 0;
  for (Deadline deadline; !deadline.over();) {
    Original original;
    make_original(random, &original);
    for (int i = 0; i < 40 && !deadline.over(); ++i, ++rounds) {
      auto fs = original.fs.crash(0, CrashPolicy::keep_unsynced);
      Damager damager(*fs, random);
      damager.damage();
      Options options = options_for(*fs, random);
      options.read_only = random() % 2;
      auto db = Database::open("/db", options);
      if (!db.ok()) {
        ++refused;
        expect_named_error(db.status());
        continue;
      }
      auto& states = original.states;
      bool known = agrees(**db, states.back());
      for (size_t s = 0; s < states.size() && !known && !damager.only_segments(); ++s)
        known = agrees(**db, states[s]);
      REQUIRE_MESSAGE(known, "round " << rounds);
      Status verified = (*db)->verify();
      if (!verified.ok()) expect_named_error(verified);
      REQUIRE_MESSAGE(!has_failed(), "round " << rounds);
    }
  }
  std::printf("%llu damaged databases, %llu not opened\n", static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(refused));
}

}  // namespace
}  // namespace stride::test

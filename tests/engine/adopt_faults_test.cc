// Adopted rows where something fails: damaged segments, a full disk, any call, the power, and a
// caller that asks for an end. They are there whole or not at all, and no file is left of them.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/adopt_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

const std::vector<std::string> kShards = {"/a", "/b", "/c"};

Model rows_of_shard(char shard, uint64_t rows) {
  Model model;
  for (uint64_t i = 0; i < rows; ++i)
    model[shard + std::to_string(1000 + i)] = std::string(i % 90, shard);
  return model;
}

// Three shards and a database with rows of its own. Returns what this has, before and after it has
// adopted them.
struct Adoption {
  Tables before, after;

  Adoption(FileSystem& fs, uint64_t rows) {
    Model all;
    for (const std::string& path : kShards) {
      const Model part = rows_of_shard(path[1], rows);
      make_shard(fs, path, part);
      all.insert(part.begin(), part.end());
    }
    const Model own = {{"a1000", "own"}, {"d", "own"}};
    make_shard(fs, "/db", own);
    before["t"] = own;
    all.insert(own.begin(), own.end());
    after["t"] = all;
  }
};

Status adopt_all(Database& db, const CommitOptions& options = {}) {
  auto table = db.open_table("t");
  if (!table.ok()) return table.status();
  return adopt_rows(db, *table, kShards, options);
}

std::string segment_in(FileSystem& fs, const std::string& directory) {
  for (const std::string& name : files_in(fs, directory))
    if (name.ends_with(".seg")) return directory + "/" + name;
  return "";
}

TEST_CASE("AdoptFaultsTest.DamagedSegmentsAreTold", "[AdoptFaultsTest]") {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 60; ++round) {
    MemoryFileSystem fs;
    const Adoption rows(fs, 500);
    const std::string path = segment_in(fs, kShards[random() % 3]);
    {
      auto file = fs.open(path, OpenMode::write);
      REQUIRE_OK(file);
      std::byte byte{};
      const uint64_t at = random() % *(*file)->size();
      REQUIRE_OK((*file)->read_at(at, {&byte, 1}));
      byte ^= std::byte{1};
      REQUIRE_OK((*file)->write_at(at, {&byte, 1}));
    }
    auto db = Database::open("/db", bulk_options(fs));
    REQUIRE_OK(db);
    const std::vector<std::string> files = files_in(fs, "/db");
    const Status s = adopt_all(**db);
    INFO(s.to_string());
    // The format version comes before its checksum in the file.
    REQUIRE((s.code() == StatusCode::corruption || s.code() == StatusCode::unsupported_version));
    REQUIRE(s.file() == path);
    REQUIRE(files_in(fs, "/db") == files);
    REQUIRE(read_all(**db) == rows.before);
    db->reset();
    REQUIRE(tables_in(fs, "/db") == rows.before);
  }
}

TEST_CASE("AdoptFaultsTest.MissingSegmentsAreTold", "[AdoptFaultsTest]") {
  MemoryFileSystem fs;
  const Adoption rows(fs, 10);
  auto db = Database::open("/db", bulk_options(fs));
  auto table = (*db)->open_table("t");
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.adopt(*table, kShards));
  const std::string path = segment_in(fs, "/b");
  const std::vector<std::string> files = files_in(fs, "/db");
  REQUIRE_OK(fs.remove(path));
  const Status s = t.commit();
  CHECK(s.code() == StatusCode::corruption);
  CHECK(s.file() == path);
  CHECK(adopt_all(**db).code() == StatusCode::corruption);
  CHECK(files_in(fs, "/db") == files);
  CHECK(read_all(**db) == rows.before);
}

TEST_CASE("AdoptFaultsTest.AFullDiskIsTold", "[AdoptFaultsTest]") {
  MemoryFileSystem fs;
  const Adoption rows(fs, 300);
  auto db = Database::open("/db", bulk_options(fs));
  REQUIRE_OK(db);
  const std::vector<std::string> files = files_in(fs, "/db");
  const uint64_t used = fs.used_bytes();
  bool full = false;
  for (uint64_t room = 0;; room += 5000) {
    fs.set_capacity(used + room);
    const Status s = adopt_all(**db);
    if (s.ok()) break;
    INFO(s.to_string());
    REQUIRE(s.code() == StatusCode::no_space);
    REQUIRE(files_in(fs, "/db") == files);
    REQUIRE(read_all(**db) == rows.before);
    full = true;
  }
  CHECK(full);
  CHECK(read_all(**db) == rows.after);
  db->reset();
  CHECK(tables_in(fs, "/db") == rows.after);
}

struct Faults {
  StatusCode code;
  CrashPolicy policy;
};
const Faults kFaults[] = {{StatusCode::io_error, CrashPolicy::random},
                          {StatusCode::no_space, CrashPolicy::random},
                          {StatusCode::io_error, CrashPolicy::lose_unsynced},
                          {StatusCode::no_space, CrashPolicy::keep_unsynced}};

// Every call to the file system fails once, and then the power.
TEST_CASE("AdoptFaultsTest.AreThereWholeOrNotAtAll", "[AdoptFaultsTest]") {
  std::mt19937_64 random(seed());
  for (const Durability durability : {Durability::sync, Durability::flush, Durability::none})
    for (const Faults& faults : kFaults) {
      bool done = false;
      for (uint64_t n = 1; !done; ++n) {
        MemoryFileSystem fs;
        const Adoption rows(fs, 20);
        auto db = Database::open("/db", bulk_options(fs));
        REQUIRE_OK(db);
        const std::vector<std::string> files = files_in(fs, "/db");
        fs.fail_call(n, faults.code);
        const Status s = adopt_all(**db, {.durability = durability});
        fs.fail_call(0, StatusCode::ok);
        done = s.ok() && n > 20;
        INFO("call " << n << ": " << s.to_string());
        REQUIRE(read_all(**db) == (s.ok() ? rows.after : rows.before));
        auto after = fs.crash(random(), faults.policy);
        const Tables left = tables_in(*after, "/db");
        const bool is_sure = s.ok() && durability == Durability::sync;
        REQUIRE((left == rows.after || (!is_sure && left == rows.before)));
        for (const std::string& shard : kShards)
          REQUIRE(tables_in(*after, shard).at("t").size() == 20);
        db->reset();
        const Tables reopened = tables_in(fs, "/db");
        REQUIRE((reopened == rows.after || (!s.ok() && reopened == rows.before)));
      }
    }
}

TEST_CASE("AdoptFaultsTest.AreCancelled", "[AdoptFaultsTest]") {
  MemoryFileSystem fs;
  const Adoption rows(fs, 5000);
  auto db = Database::open("/db", bulk_options(fs));
  REQUIRE_OK(db);
  const std::vector<std::string> files = files_in(fs, "/db");
  CommitOptions options;
  options.progress = [](const CommitProgress&) { return false; };
  CHECK(adopt_all(**db, options).code() == StatusCode::cancelled);
  CHECK(files_in(fs, "/db") == files);
  CHECK(read_all(**db) == rows.before);
  CommitProgress last;
  uint64_t calls = 0;
  options.progress = [&](const CommitProgress& at) {
    CHECK(at.share >= last.share);
    CHECK(at.rows <= at.total_rows);
    CHECK(at.bytes <= at.total_bytes);
    CHECK(at.total_rows == 15'000);
    CHECK(at.total_bytes > 15'000 * 40);
    last = at;
    ++calls;
    return true;
  };
  REQUIRE_OK(adopt_all(**db, options));
  CHECK(calls > 0);
  CHECK(read_all(**db) == rows.after);
}

}  // namespace
}  // namespace stride::test

// Database::refresh(): a read-only handle beside a writer, here of the same process.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_tables.h"
#include "tests/support/test_threads.h"

namespace stride::test::refresh_tests {
namespace {

class RefreshTest {
 protected:
  std::unique_ptr<Database> open(bool read_only, Options options = {}) {
    options.read_only = read_only;
    options.threads = 1;
    options.file_system = &fs_;
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    return std::move(*db);
  }
  static void put(Database& db, const std::string& key, const std::string& value,
                  Durability durability = Durability::sync) {
    auto table = db.open_or_create_table("t");
    REQUIRE_OK(table);
    WriteTransaction t = db.begin();
    REQUIRE_OK(t.put(*table, key, value));
    REQUIRE_OK(t.commit(durability));
  }
  // "-": there is none.
  static std::string get(const Database& db, const Snapshot& snapshot, const std::string& key) {
    auto table = db.open_table("t");
    REQUIRE_OK(table);
    auto value = snapshot.get(*table, key);
    REQUIRE_OK(value);
    return *value ? text(**value) : "-";
  }
  static std::string get(const Database& db, const std::string& key) {
    return get(db, db.snapshot(), key);
  }

  MemoryFileSystem fs_;
};

TEST_CASE_METHOD(RefreshTest, "RefreshTest.LaterCommitsAreSeen", "[RefreshTest]") {
  auto db = open(false);
  put(*db, "key", "1");
  auto reader = open(true);
  Snapshot old = reader->snapshot();
  put(*db, "key", "2");
  CHECK(get(*reader, "key") == "1");
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key") == "2");
  CHECK(get(*reader, old, "key") == "1");
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key") == "2");
  REQUIRE_OK(db->refresh());  // there is nothing to do
  CHECK(get(*db, "key") == "2");
}

TEST_CASE_METHOD(RefreshTest, "RefreshTest.FlushesAndMergesAreSeen", "[RefreshTest]") {
  auto db = open(false, {.memtable_bytes = 1 << 20, .background_work = false});
  put(*db, "key", "first");
  auto reader = open(true);
  Snapshot old = reader->snapshot();
  for (int i = 0; i < 40; ++i) {
    put(*db, "key" + std::to_string(i), std::string(40'000, 'v'), Durability::flush);
    if (i % 7 == 0) REQUIRE_OK(reader->refresh());
  }
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key39").size() == 40'000u);
  CHECK(reader->tables()[0].rows == 41u);
  REQUIRE_OK(db->compact());
  put(*db, "key", "last");
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key") == "last");
  CHECK(get(*reader, old, "key") == "first");
  CHECK(get(*reader, old, "key5") == "-");
  CHECK(*reader->snapshot().count(*reader->open_table("t")) == 41u);
}

TEST_CASE_METHOD(RefreshTest, "RefreshTest.TablesComeAndGo", "[RefreshTest]") {
  auto db = open(false);
  auto reader = open(true);
  CHECK(reader->open_table("t").status().code() == StatusCode::not_found);
  put(*db, "key", "value");
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key") == "value");
  Table table = *reader->open_table("t");
  REQUIRE_OK(db->rename_table("t", "u"));
  REQUIRE_OK(reader->refresh());
  CHECK(reader->open_table("t").status().code() == StatusCode::not_found);
  CHECK(text(**reader->snapshot().get(table, "key")) == "value");
  Snapshot old = reader->snapshot();
  REQUIRE_OK(db->drop_table("u"));
  REQUIRE_OK(reader->refresh());
  CHECK(reader->snapshot().get(table, "key").status().code() == StatusCode::not_found);
  CHECK(text(**old.get(table, "key")) == "value");
}

// What the writer keeps in its memory is not seen until it hands it to the system.
TEST_CASE_METHOD(RefreshTest, "RefreshTest.LevelsOfDurability", "[RefreshTest]") {
  auto db = open(false);
  put(*db, "key", "0");
  auto reader = open(true);
  put(*db, "key", "flushed", Durability::flush);
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key") == "flushed");
  put(*db, "key", "none", Durability::none);
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key") == "flushed");
  put(*db, "other", "flushed", Durability::flush);
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key") == "none");
}

TEST_CASE_METHOD(RefreshTest, "RefreshTest.AnotherWriterGoesOn", "[RefreshTest]") {
  auto db = open(false);
  put(*db, "key", "1");
  auto reader = open(true);
  for (int i = 2; i < 8; ++i) {
    db.reset();
    db = open(false);
    put(*db, "key", std::to_string(i));
    if (i % 2 == 0) REQUIRE_OK(db->compact());
    Snapshot old = reader->snapshot();
    REQUIRE_OK(reader->refresh());
    CHECK(get(*reader, "key") == std::to_string(i));
    CHECK(get(*reader, old, "key") == std::to_string(i - 1));
  }
}

// Tables that are created and dropped leave a manifest that is written anew.
TEST_CASE_METHOD(RefreshTest, "RefreshTest.AManifestThatIsWrittenAnew", "[RefreshTest]") {
  auto db = open(false);
  put(*db, "key", "1");
  auto reader = open(true);
  const std::string name(250, 'n');
  auto manifest = [&] {
    const std::vector<std::string> names = *fs_.list("/db");
    for (const std::string& file : names)
      if (file.starts_with("MANIFEST-")) return file;
    return std::string();
  };
  const std::string first = manifest();
  for (int i = 0; manifest() == first && i < 10'000; ++i) {
    REQUIRE_OK(db->create_table(name));
    REQUIRE_OK(db->drop_table(name));
    if (i % 500 == 0) REQUIRE_OK(reader->refresh());
  }
  CHECK(manifest() != first);
  put(*db, "key", "2");
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key") == "2");
  put(*db, "key", "3");
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key") == "3");
}

TEST_CASE_METHOD(RefreshTest, "RefreshTest.AfterTheEnd", "[RefreshTest]") {
  auto db = open(false);
  put(*db, "key", "1");
  auto reader = open(true);
  Snapshot snapshot = reader->snapshot();
  Table table = *reader->open_table("t");
  put(*db, "key", "2");
  REQUIRE_OK(reader->close());
  CHECK(reader->refresh().code() == StatusCode::closed);
  reader.reset();
  REQUIRE_OK(db->compact());
  CHECK(text(**snapshot.get(table, "key")) == "1");
  REQUIRE_OK(db->close());
  CHECK(db->refresh().code() == StatusCode::closed);
}

// The files are damaged under the reader: it says so, keeps what it has, and goes on when they are
// whole again.
TEST_CASE_METHOD(RefreshTest, "RefreshTest.DamagedFiles", "[RefreshTest]") {
  auto db = open(false);
  put(*db, "key", "1");
  auto reader = open(true);
  put(*db, "key", "2");
  auto current = fs_.open("/db/CURRENT", OpenMode::write);
  REQUIRE_OK(current);
  char byte = 0;
  REQUIRE_OK((*current)->read_at(3, std::as_writable_bytes(std::span(&byte, 1))));
  const char other = static_cast<char>(byte ^ 1);
  REQUIRE_OK((*current)->write_at(3, as_bytes(std::string(1, other))));
  Status s = reader->refresh();
  CHECK(s.code() == StatusCode::corruption);
  CHECK(s.file().ends_with("CURRENT"));
  CHECK(get(*reader, "key") == "1");
  REQUIRE_OK((*current)->write_at(3, as_bytes(std::string(1, byte))));
  REQUIRE_OK(reader->refresh());
  CHECK(get(*reader, "key") == "2");
}

// Random changes, and two readers that refresh after some of them.
TEST_CASE_METHOD(RefreshTest, "RefreshTest.RandomChanges", "[RefreshTest]") {
  std::mt19937_64 random(seed());
  const Options options{.memtable_bytes = uint64_t{1} << (14 + random() % 8),
                        .max_range_tombstones = random() % 2 ? 4096 : uint64_t{3}};
  auto db = open(false, options);
  Tables now;
  RandomTables tables(random);
  REQUIRE_OK(tables.create(*db, &now));
  auto reader = open(true), seldom = open(true);
  for (int i = 0; i < 400; ++i) {
    // Those that are not handed to the system at once may be seen later.
    const auto durability = random() % 2 ? Durability::sync : Durability::flush;
    REQUIRE_OK(tables.change(*db, durability, &now));
    if (random() % 50 == 0) {
      db.reset();
      db = open(false, options);
    }
    if (random() % 3 == 0) {
      REQUIRE_OK(reader->refresh());
      CHECK_MESSAGE(read_all(*reader) == now, "after change " << i);
    }
    if (random() % 60 != 0) continue;
    REQUIRE_OK(seldom->refresh());
    CHECK_MESSAGE(read_all(*seldom) == now, "after change " << i);
  }
}

// Threads read while another one refreshes: a commit is there whole or not at all.
TEST_CASE_METHOD(RefreshTest, "RefreshTest.ThreadsReadMeanwhile", "[RefreshTest]") {
  auto db = open(false, {.memtable_bytes = 1 << 18});
  Table table = *db->create_table("t");
  auto commit = [&](int number) {
    WriteTransaction t = db->begin();
    for (int k = 0; k < 4; ++k)
      REQUIRE_OK(t.put(table, "key" + std::to_string(k), std::to_string(number)));
    REQUIRE_OK(t.put(table, "padding" + std::to_string(number), std::string(500, 'p')));
    REQUIRE_OK(t.commit(Durability::flush));
  };
  commit(0);
  auto reader = open(true);
  const Table its = *reader->open_table("t");
  TestThreads readers;
  for (int i = 0; i < 2; ++i)
    readers.start([&] {
      int last = 0;
      while (!readers.stopping()) {
        Snapshot snapshot = reader->snapshot();
        int number = -1;
        for (int k = 0; k < 4; ++k) {
          auto value = snapshot.get(its, "key" + std::to_string(k));
          REQUIRE_OK(value);
          REQUIRE_MESSAGE(value->has_value(), "key" << k);
          const int read = std::stoi(text(**value));
          REQUIRE_MESSAGE((k == 0 || read == number), "half a commit");
          number = read;
        }
        REQUIRE_MESSAGE(number >= last, "a commit went back");
        last = number;
      }
    });
  for (int i = 1; i <= 1500; ++i) {
    commit(i);
    REQUIRE_OK(reader->refresh());
    if (i % 400 == 0) REQUIRE_OK(db->compact());
  }
  readers.join();
  CHECK(get(*reader, "key3") == "1500");
}

}  // namespace
}  // namespace stride::test::refresh_tests

// A directory that is moved away while its database is open: whoever takes its place loses nothing.
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "engine/database.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

using Contents = std::map<std::string, std::string>;

// But the log of events, which is for people.
Contents contents_of(const std::string& directory) {
  Contents all;
  for (const auto& file : fs::directory_iterator(directory)) {
    if (file.path().filename() == "LOG") continue;
    std::stringstream text;
    text << std::ifstream(file.path(), std::ios::binary).rdbuf();
    all[file.path().filename()] = text.str();
  }
  return all;
}

class MovedDirectoryTest {
 protected:
  MovedDirectoryTest() : db_(open(path_)), table_(*db_->create_table("t")) {
    REQUIRE_OK(bulk(*db_, table_, "a"));
    REQUIRE_OK(bulk(*db_, table_, "b"));
  }
  static std::unique_ptr<Database> open(const std::string& path) {
    auto db = Database::open(path, {.threads = 2, .memtable_bytes = 0, .background_work = false});
    REQUIRE_OK(db);
    return std::move(*db);
  }
  // Each commit makes a segment.
  static Status bulk(Database& db, const Table& table, const std::string& letter) {
    WriteTransaction t = db.begin();
    for (int i = 0; i < 1000; ++i)
      STRIDE_TRY(t.put(table, letter + std::to_string(i), std::string(3000, letter[0])));
    return t.commit();
  }
  // What cannot be done without the directory is refused and changes nothing.
  void expect_refusals() {
    auto refused = [](const Status& s) {
      const bool is_refused = s.code() == StatusCode::io_error || s.code() == StatusCode::poisoned;
      CHECK_MESSAGE(is_refused, s.to_string());
      CHECK_MESSAGE(s.to_string().find("was moved or replaced") != std::string::npos,
                    s.to_string());
    };
    refused(bulk(*db_, table_, "c"));
    refused(db_->checkpoint(directory_.file("checkpoint")));
    CHECK(!db_->compact().ok());
    (void)db_->close();
  }
  void expect_moved_database() {
    const auto db = open(old_);
    CHECK(*db->snapshot().count(*db->open_table("t")) == 2000u);
    CHECK_OK(db->verify());
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.file("db"), old_ = directory_.file("old");
  std::unique_ptr<Database> db_;
  Table table_;
};

TEST_CASE_METHOD(MovedDirectoryTest, "MovedDirectoryTest.AnotherDatabaseTakesItsPlace",
                 "[MovedDirectoryTest]") {
  fs::rename(path_, old_);
  auto other = open(path_);
  Table table = *other->create_table("u");
  REQUIRE_OK(bulk(*other, table, "x"));
  REQUIRE_OK(bulk(*other, table, "y"));
  REQUIRE_OK(other->sync());
  const Contents before = contents_of(path_);
  expect_refusals();
  db_.reset();
  CHECK(contents_of(path_) == before);
  REQUIRE_OK(bulk(*other, table, "z"));
  REQUIRE_OK(other->compact());
  REQUIRE_OK(other->close());
  const auto again = open(path_);
  CHECK(*again->snapshot().count(*again->open_table("u")) == 3000u);
  CHECK_OK(again->verify());
  expect_moved_database();
}

TEST_CASE_METHOD(MovedDirectoryTest, "MovedDirectoryTest.NothingTakesItsPlace",
                 "[MovedDirectoryTest]") {
  fs::rename(path_, old_);
  expect_refusals();
  db_.reset();
  CHECK(!fs::exists(path_));
  expect_moved_database();
}

TEST_CASE_METHOD(MovedDirectoryTest, "MovedDirectoryTest.ItsLockIsRemoved",
                 "[MovedDirectoryTest]") {
  // Another process could open it now.
  fs::remove(path_ + "/LOCK");
  expect_refusals();
  db_.reset();
  fs::rename(path_, old_);
  expect_moved_database();
}

// It follows the path, whose database has segments of the same names as the one before.
TEST_CASE_METHOD(MovedDirectoryTest, "MovedDirectoryTest.AReaderNeverMixesTwoDatabases",
                 "[MovedDirectoryTest]") {
  const bool has_read_on = GENERATE(false, true);
  auto reader = Database::open(path_, {.read_only = true, .threads = 2});
  REQUIRE_OK(reader);
  if (has_read_on) REQUIRE_OK((*reader)->refresh());
  REQUIRE_OK(db_->close());
  fs::rename(path_, old_);
  {
    const auto moved = open(old_);
    REQUIRE_OK(bulk(*moved, *moved->open_table("t"), "c"));
  }
  const auto other = open(path_);
  const Table table = *other->create_table("t");
  for (const char* letter : {"x", "y", "z"}) REQUIRE_OK(bulk(*other, table, letter));
  REQUIRE_OK((*reader)->refresh());
  const Snapshot snapshot = (*reader)->snapshot();
  const Table read = *(*reader)->open_table("t");
  CHECK(*snapshot.count(read) == 3000u);
  for (const std::string key : {"a7", "b7", "c7"}) CHECK(!*snapshot.get(read, key));
  for (const std::string key : {"x7", "y7", "z7"}) {
    const auto value = snapshot.get(read, key);
    REQUIRE_OK(value);
    REQUIRE(*value);
    CHECK((*value)->size() == 3000u);
    CHECK(static_cast<char>((**value)[0]) == key[0]);
  }
  CHECK_OK((*reader)->refresh());
}

// A copy has the same identity, manifest and numbers, and went on by itself.
TEST_CASE_METHOD(MovedDirectoryTest, "MovedDirectoryTest.AReaderNeverMixesACopyWithItsOrigin",
                 "[MovedDirectoryTest]") {
  const std::string copy = directory_.file("copy");
  REQUIRE_OK(db_->close());
  fs::copy(path_, copy);
  db_ = open(path_);
  REQUIRE_OK(bulk(*db_, *db_->open_table("t"), "c"));
  const bool has_read_on = GENERATE(false, true);
  auto reader = Database::open(path_, {.read_only = true, .threads = 2});
  REQUIRE_OK(reader);
  if (has_read_on) REQUIRE_OK((*reader)->refresh());
  REQUIRE_OK(db_->close());
  {
    const auto other = open(copy);
    REQUIRE_OK(bulk(*other, *other->open_table("t"), "x"));
  }
  fs::rename(path_, old_);
  fs::rename(copy, path_);
  // A refresh that fails changes nothing, and the next one is whole.
  for (const auto& [name, text] : contents_of(path_)) {
    if (!name.starts_with("MANIFEST-") && name != "CURRENT") continue;
    const std::string file = path_ + "/" + name, aside = directory_.file("aside");
    fs::rename(file, aside);
    CHECK(!(*reader)->refresh().ok());
    const Snapshot before = (*reader)->snapshot();
    const auto count = before.count(*(*reader)->open_table("t"));
    REQUIRE_OK(count);
    CHECK(*count == 3000u);
    CHECK(*before.get(*(*reader)->open_table("t"), "c7"));
    fs::rename(aside, file);
  }
  REQUIRE_OK((*reader)->refresh());
  const Snapshot snapshot = (*reader)->snapshot();
  const Table read = *(*reader)->open_table("t");
  CHECK(*snapshot.count(read) == 3000u);
  for (const std::string key : {"a7", "b7", "x7"}) CHECK(*snapshot.get(read, key));
  CHECK(!*snapshot.get(read, "c7"));
}

// Files that a snapshot has kept are left to the next opening, which knows whose they are.
TEST_CASE_METHOD(MovedDirectoryTest, "MovedDirectoryTest.ASnapshotOutlivesTheDatabase",
                 "[MovedDirectoryTest]") {
  std::optional<Snapshot> snapshot = db_->snapshot();
  REQUIRE_OK(bulk(*db_, table_, "a"));
  REQUIRE_OK(db_->compact());
  REQUIRE_OK(db_->close());
  db_.reset();
  fs::rename(path_, old_);
  fs::create_directory(path_);
  size_t segments = 0;
  for (const auto& [name, text] : contents_of(old_)) {
    std::ofstream(path_ + "/" + name) << "precious";
    segments += name.ends_with(".seg");
  }
  REQUIRE(segments > 1);
  const Contents before = contents_of(path_);
  snapshot.reset();
  CHECK(contents_of(path_) == before);
  expect_moved_database();
}

}  // namespace
}  // namespace stride::test

// Checkpoints: whole databases, of one moment, whatever is done to the one that they are of.
#include <sys/stat.h>

#include <string>
#include <vector>

#include "engine/dedup_table.h"
#include "storage/current_file.h"
#include "tests/engine/backup/copy_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class CheckpointTest : protected CopyFixture {};

Options random_options(std::mt19937_64& random) {
  Options options;
  options.threads = 1 + random() % 2;
  const uint64_t memtables[] = {0, 1 << 16, uint64_t{128} << 20};
  options.memtable_bytes = memtables[random() % 3];
  if (random() % 2) options.memory_limit_bytes = 1;
  options.background_work = random() % 2;
  return options;
}

TEST_CASE_METHOD(CheckpointTest, "CheckpointTest.OfEachStepIsWhatWasCommittedByThen",
                 "[CheckpointTest]") {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 6; ++round) {
    MemoryFileSystem fs;
    Options options = random_options(random);
    options.file_system = &fs;
    std::vector<Tables> states;
    {
      auto db = Database::open("/db", options);
      REQUIRE_OK(db);
      Tables state;
      for (int step = 0; step < 40; ++step) {
        const auto durability = static_cast<Durability>(random() % 3);
        REQUIRE_OK(RandomTables(random).change(**db, durability, &state));
        const std::string path = "/checkpoints/" + std::to_string(step);
        REQUIRE_OK((*db)->checkpoint(path));
        REQUIRE_MESSAGE(tables_at(fs, path, random_options(random)) == state, "step " << step);
        states.push_back(state);
        if (random() % 8 == 0) {
          db->reset();
          db = Database::open("/db", options);
          REQUIRE_OK(db);
        }
      }
    }
    // None of them knows what came later, or minds what is done to the others.
    for (size_t step = 0; step < states.size(); step += 1 + random() % 5) {
      const std::string path = "/checkpoints/" + std::to_string(step);
      Tables state = states[step];
      auto db = Database::open(path, options);
      REQUIRE_OK(db);
      for (int i = 0; i < 3; ++i)
        REQUIRE_OK(RandomTables(random).change(**db, Durability::sync, &state));
      REQUIRE_OK((*db)->compact());
      db->reset();
      REQUIRE_MESSAGE(tables_at(fs, path) == state, "step " << step);
    }
    REQUIRE(tables_at(fs, "/db") == states.back());
  }
}

TEST_CASE_METHOD(CheckpointTest, "CheckpointTest.SurvivesAPowerLoss", "[CheckpointTest]") {
  fill();
  put("a", "late", "1", Durability::none);
  REQUIRE_OK(db_->checkpoint("/checkpoint"));
  auto after = fs_.crash(1, CrashPolicy::lose_unsynced);
  CHECK(tables_at(*after, "/checkpoint") == model_);
  // Making it has synced the database, too.
  CHECK(tables_at(*after, "/db") == model_);
}

TEST_CASE_METHOD(CheckpointTest, "CheckpointTest.LinksSegmentsAndCopiesWhereItCannot",
                 "[CheckpointTest]") {
  fill();
  CopyReport report;
  REQUIRE_OK(db_->checkpoint("/linked", {}, &report));
  CHECK(report.linked_files == 2);
  CHECK(report.copied_files == 0);
  CHECK(report.files == 4);  // with the log and the manifest

  LinklessFiles others(fs_);
  db_.reset();
  auto db = Database::open("/db", {.file_system = &others});
  REQUIRE_OK(db);
  REQUIRE_OK((*db)->checkpoint("/copied", {}, &report));
  CHECK(report.linked_files == 0);
  CHECK(report.copied_files == 2);
  CHECK(report.copied_bytes == report.bytes);
  for (const char* path : {"/linked", "/copied"}) CHECK(tables_at(fs_, path) == model_);
}

TEST_CASE_METHOD(CheckpointTest, "CheckpointTest.HasSchemasAndDedupTables", "[CheckpointTest]") {
  const Schema schema = *Schema::parse("id u64 key, name string");
  auto users = db_->create_table("users", {.schema = schema});
  REQUIRE_OK(users);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(*users, "12345678", "Ada"));
  REQUIRE_OK(t.commit());
  auto seen = DedupTable::open(*db_, "seen", {.words = 2});
  REQUIRE_OK(seen);
  const std::vector<uint32_t> words = {1, 2, 3, 4, 1, 2};
  const Column vectors = Column::fixed(words.data(), 8, 3);
  std::vector<uint64_t> ids(3);
  REQUIRE_OK(seen->find_or_put(vectors, ids, {}));
  REQUIRE_OK(db_->checkpoint("/checkpoint"));
  auto db = Database::open("/checkpoint", {.file_system = &fs_});
  REQUIRE_OK(db);
  auto again = (*db)->open_table("users");
  REQUIRE_OK(again);
  CHECK(again->schema() == schema);
  auto seen_again = DedupTable::open(**db, "seen", {.words = 2});
  REQUIRE_OK(seen_again);
  CHECK(seen_again->size() == 2);
  std::vector<uint64_t> ids_again(3);
  REQUIRE_OK(seen_again->find_or_put(vectors, ids_again, {}));
  CHECK(ids_again == ids);
}

TEST_CASE_METHOD(CheckpointTest, "CheckpointTest.RefusesWhatIsThere", "[CheckpointTest]") {
  put("a", "k", "v");
  REQUIRE_OK(fs_.create_directory("/there"));
  REQUIRE_OK(fs_.open("/file", OpenMode::create));
  for (const char* path : {"/there", "/file", "/db"}) {
    Status s = db_->checkpoint(path);
    CHECK(s.code() == StatusCode::already_exists);
    CHECK(s.file() == path);
    CHECK_FALSE(s.remedy().empty());
  }
  CHECK(fs_.list("/there")->empty());
  REQUIRE_OK(db_->checkpoint("/new/with/parents"));
  CHECK(db_->checkpoint("/new/with/parents").code() == StatusCode::already_exists);
  CHECK(tables_at(fs_, "/new/with/parents") == model_);
}

TEST_CASE_METHOD(CheckpointTest, "CheckpointTest.OfAReadOnlyHandleIsWhatItSees",
                 "[CheckpointTest]") {
  fill();
  // Nobody has synced this segment.
  auto b = db_->open_table("b");
  WriteTransaction t = db_->begin();
  for (int i = 0; i < 40'000; ++i) {
    std::string key = "key" + std::to_string(i), value(200, 'v');
    REQUIRE_OK(t.put(*b, key, value));
    model_["b"][key] = value;
  }
  REQUIRE_OK(t.commit(Durability::flush));
  auto reader = Database::open("/db", {.read_only = true, .file_system = &fs_});
  REQUIRE_OK(reader);
  const Tables seen = model_;
  CopyReport report;
  REQUIRE_OK((*reader)->checkpoint("/first", {}, &report));
  CHECK(report.linked_files == 2);
  CHECK(report.copied_files == 1);
  for (int i = 0; i < 50; ++i) put("a", "k" + std::to_string(i), "later");
  REQUIRE_OK(db_->compact());  // the reader's lease keeps the files of its segments
  REQUIRE_OK((*reader)->checkpoint("/leased", {}, &report));
  CHECK(report.linked_files == 2);
  for (const std::string& name : names_in(fs_, "/db"))
    if (name.starts_with("READER-")) REQUIRE_OK(fs_.remove("/db/" + name));
  REQUIRE_OK(db_->sync());  // they are gone, as those of a reader that could not take one
  REQUIRE_OK((*reader)->checkpoint("/second", {}, &report));
  CHECK(report.linked_files == 0);
  auto after = fs_.crash(1, CrashPolicy::lose_unsynced);
  for (const char* path : {"/first", "/second"}) {
    CHECK(tables_at(fs_, path) == seen);
    CHECK(tables_at(*after, path) == seen);
  }
  REQUIRE_OK((*reader)->close());
  CHECK((*reader)->checkpoint("/third").code() == StatusCode::closed);
}

TEST_CASE_METHOD(CheckpointTest, "CheckpointTest.FailsAfterCloseAndWherePoisoned",
                 "[CheckpointTest]") {
  put("a", "k", "v");
  auto a = db_->open_table("a");
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(*a, "k", "w"));
  fs_.fail_sync(1, StatusCode::io_error);
  REQUIRE_FALSE(t.commit().ok());
  CHECK(db_->checkpoint("/checkpoint").code() == StatusCode::poisoned);
  Status ignored = db_->close();
  CHECK(db_->checkpoint("/checkpoint").code() == StatusCode::closed);
  CHECK_FALSE(*fs_.exists("/checkpoint"));
}

TEST_CASE_METHOD(CheckpointTest, "CheckpointTest.IsCancelled", "[CheckpointTest]") {
  fill();
  uint64_t calls = 0;
  CopyOptions options{.progress = [&](const CopyProgress&) { return ++calls > 1; }};
  CHECK(db_->checkpoint("/checkpoint", options).code() == StatusCode::cancelled);
  CHECK(calls == 1);
  CHECK_FALSE(*fs_.exists("/checkpoint"));
  CopyProgress last;
  options.progress = [&](const CopyProgress& progress) {
    last = progress;
    return true;
  };
  REQUIRE_OK(db_->checkpoint("/checkpoint", options));
  CHECK(last.bytes <= last.total_bytes);
  CHECK(tables_at(fs_, "/checkpoint") == model_);
}

TEST_CASE_METHOD(CheckpointTest, "CheckpointTest.OfADamagedDatabaseIsRefused", "[CheckpointTest]") {
  fill();
  db_.reset();
  for (const std::string& name : names_in(fs_, "/db"))
    if (name.ends_with(".seg")) {
      auto file = fs_.open("/db/" + name, OpenMode::write);
      REQUIRE_OK((*file)->truncate(100));
    }
  open();
  Status s = db_->checkpoint("/checkpoint");
  CHECK(s.code() == StatusCode::corruption);
  CHECK(s.file().find(".seg") != std::string::npos);
  CHECK_FALSE(*fs_.exists("/checkpoint"));
}

TEST_CASE_METHOD(CheckpointTest, "CheckpointTest.WhatIsNotWholeIsNoDatabase", "[CheckpointTest]") {
  fill();
  REQUIRE_OK(db_->checkpoint("/checkpoint"));
  REQUIRE_OK(fs_.remove("/checkpoint/CURRENT"));
  auto mark = fs_.open(std::string("/checkpoint/") + unfinished_name, OpenMode::create);
  REQUIRE_OK(mark);
  for (bool create : {false, true}) {
    Status s =
        Database::open("/checkpoint", {.create_if_missing = create, .file_system = &fs_}).status();
    CHECK(s.code() == StatusCode::invalid_argument);
    CHECK(s.message().find("not whole") != std::string::npos);
    CHECK(s.remedy().find("remove the directory") != std::string::npos);
  }
  const Status again = db_->checkpoint("/checkpoint");
  CHECK(again.code() == StatusCode::already_exists);
  CHECK(again.message().find("not whole") != std::string::npos);
  CHECK(again.remedy().find("remove the directory") != std::string::npos);
}

TEST_CASE("CheckpointFilesTest.AreLinksOfTheDatabasesSegments", "[CheckpointFilesTest]") {
  TemporaryDirectory directory;
  const std::string path = directory.file("db"), checkpoint = directory.file("checkpoint");
  auto db = Database::open(path);
  REQUIRE_OK(db);
  auto table = (*db)->create_table("a");
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.put(*table, "k", "v"));
  REQUIRE_OK(t.commit());
  REQUIRE_OK((*db)->compact());
  REQUIRE_OK((*db)->checkpoint(checkpoint));
  uint64_t segments = 0;
  for (const std::string& name : names_in(FileSystem::posix(), checkpoint)) {
    struct stat st {};
    REQUIRE(::stat((checkpoint + "/" + name).c_str(), &st) == 0);
    if (name.ends_with(".seg")) ++segments;
    CHECK(st.st_nlink == (name.ends_with(".seg") ? 2 : 1));
    CHECK(name != unfinished_name);
  }
  CHECK(segments == 1);
  REQUIRE_OK((*db)->drop_table("a"));
  CHECK(tables_at(FileSystem::posix(), checkpoint) == Tables{{"a", {{"k", "v"}}}});
}

}  // namespace
}  // namespace stride::test

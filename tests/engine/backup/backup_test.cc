// Backups: what they copy, and that what is restored of them is what was there.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "storage/backup_list.h"
#include "storage/manifest.h"
#include "tests/engine/backup/copy_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class BackupTest : protected CopyFixture {
 protected:
  Status backup(CopyReport* report = nullptr) { return db_->backup("/backup", {}, report); }
  // What the backup makes when it is restored.
  Tables restored() {
    const std::string path = "/restored" + std::to_string(++restored_);
    CopyReport report;
    REQUIRE_OK(restore("/backup", path, {}, &report, &fs_));
    CHECK(report.copied_bytes == report.bytes);
    return tables_at(fs_, path);
  }
  Status restore_status() { return restore("/backup", "/failed", {}, nullptr, &fs_); }
  std::vector<std::string> files_with(const std::string& directory, const std::string& part) {
    std::vector<std::string> found;
    for (const std::string& name : names_in(fs_, directory))
      if (name.find(part) != std::string::npos) found.push_back(directory + "/" + name);
    return found;
  }
  void flip_byte(const std::string& path, uint64_t offset) {
    auto file = fs_.open(path, OpenMode::write);
    REQUIRE_OK(file);
    std::byte one{};
    REQUIRE_OK((*file)->read_at(offset, {&one, 1}));
    one ^= std::byte{1};
    REQUIRE_OK((*file)->write_at(offset, {&one, 1}));
  }
  uint64_t size_of(const std::string& path) { return *(*fs_.open(path, OpenMode::read))->size(); }

 private:
  int restored_ = 0;
};

TEST_CASE_METHOD(BackupTest, "BackupTest.CopiesWhatIsNotThereYet", "[BackupTest]") {
  fill();
  CopyReport report;
  REQUIRE_OK(backup(&report));
  CHECK(report.files == 4);  // two segments, the log and the manifest
  CHECK(report.copied_files == 4);
  CHECK(restored() == model_);
  put("a", "later", "1");
  REQUIRE_OK(backup(&report));
  CHECK(report.files == 4);
  CHECK(report.copied_files == 2);
  CHECK(restored() == model_);
  // The segment of one table is another one now: that of before goes.
  REQUIRE_OK(db_->compact());
  REQUIRE_OK(backup(&report));
  CHECK(report.files == 3);
  CHECK(report.copied_files == 2);
  CHECK(files_with("/backup", ".seg").size() == 2);
  CHECK(files_with("/backup", ".wal").empty());
  CHECK(files_with("/backup", ".tmp").empty());
  CHECK(restored() == model_);
}

TEST_CASE_METHOD(BackupTest, "BackupTest.OfARandomHistoryIsWhatWasCommittedByThen",
                 "[BackupTest]") {
  std::mt19937_64 random(seed());
  for (uint64_t memtable_bytes : {uint64_t{0}, uint64_t{1} << 16, uint64_t{128} << 20}) {
    const std::string db = "/db" + std::to_string(memtable_bytes), backup = db + "backup";
    const Options options{.memtable_bytes = memtable_bytes, .file_system = &fs_};
    auto opened = Database::open(db, options);
    REQUIRE_OK(opened);
    Tables state;
    for (int step = 0; step < 60; ++step) {
      const auto durability = static_cast<Durability>(random() % 3);
      REQUIRE_OK(RandomTables(random).change(**opened, durability, &state));
      if (random() % 3 != 0) continue;
      REQUIRE_OK((*opened)->backup(backup));
      const std::string path = db + "." + std::to_string(step);
      REQUIRE_OK(restore(backup, path, {}, nullptr, &fs_));
      REQUIRE_MESSAGE(tables_at(fs_, path) == state, "step " << step);
      if (random() % 6 != 0) continue;
      // What was restored takes the place of the database, and goes on to be backed up.
      opened->reset();
      opened = Database::open(path, options);
      REQUIRE_OK(opened);
    }
  }
}

TEST_CASE_METHOD(BackupTest, "BackupTest.BelongsToOneDatabase", "[BackupTest]") {
  fill();
  REQUIRE_OK(backup());
  auto other = Database::open("/other", {.file_system = &fs_});
  REQUIRE_OK(other);
  Status s = (*other)->backup("/backup");
  CHECK(s.code() == StatusCode::invalid_argument);
  CHECK(s.message().find("another database") != std::string::npos);
  CHECK_FALSE(s.remedy().empty());
  // A checkpoint is a database of its own.
  REQUIRE_OK(db_->checkpoint("/checkpoint"));
  auto checkpoint = Database::open("/checkpoint", {.file_system = &fs_});
  REQUIRE_OK(checkpoint);
  CHECK((*checkpoint)->backup("/backup").code() == StatusCode::invalid_argument);
  REQUIRE_OK(restore("/backup", "/restored", {}, nullptr, &fs_));
  auto restored_one = Database::open("/restored", {.file_system = &fs_});
  REQUIRE_OK(restored_one);
  CopyReport report;
  REQUIRE_OK((*restored_one)->backup("/backup", {}, &report));
  CHECK(report.copied_files == 2);
  CHECK(restored() == model_);
}

TEST_CASE_METHOD(BackupTest, "BackupTest.LeavesOtherDirectoriesAlone", "[BackupTest]") {
  fill();
  REQUIRE_OK(fs_.create_directory("/files"));
  REQUIRE_OK(fs_.open("/files/notes.txt", OpenMode::create));
  REQUIRE_OK(fs_.open("/file", OpenMode::create));
  for (const char* path : {"/files", "/db", "/file"}) {
    const auto before = fs_.list(path);
    Status s = db_->backup(path);
    CHECK(s.code() == StatusCode::invalid_argument);
    CHECK_FALSE(s.remedy().empty());
    if (before.ok()) CHECK(*fs_.list(path) == *before);
  }
  // A backup is no database.
  REQUIRE_OK(backup());
  Status s = Database::open("/backup", {.file_system = &fs_}).status();
  CHECK(s.code() == StatusCode::invalid_argument);
  CHECK(s.message().find("backup") != std::string::npos);
  CHECK(s.remedy().find("stride restore") != std::string::npos);
  auto lock = fs_.lock("/backup/LOCK");
  REQUIRE_OK(lock);
  CHECK(backup().code() == StatusCode::locked);
}

TEST_CASE_METHOD(BackupTest, "BackupTest.TellsOfDamagedSegments", "[BackupTest]") {
  std::mt19937_64 random(seed());
  fill();
  REQUIRE_OK(backup());
  const Tables before = model_;
  for (int i = 0; i < 40; ++i) put("a", "n" + std::to_string(i), std::string(3000, 'n'));
  REQUIRE_OK(db_->compact());
  std::string newest;  // the segment that the backup does not have
  for (const std::string& path : files_with("/db", ".seg")) newest = std::max(newest, path);
  for (int i = 0; i < 30; ++i) {
    const uint64_t offset = random() % size_of(newest);
    flip_byte(newest, offset);
    Status s = backup();
    REQUIRE_MESSAGE(s.code() == StatusCode::corruption, "offset " << offset);
    CHECK(s.file() == newest);
    CHECK(s.remedy().find("earlier backup") != std::string::npos);
    // The earlier one is whole.
    REQUIRE(restored() == before);
    flip_byte(newest, offset);
  }
  REQUIRE_OK(backup());
  CHECK(restored() == model_);
}

TEST_CASE_METHOD(BackupTest, "BackupTest.RestoreTellsOfDamagedFiles", "[BackupTest]") {
  std::mt19937_64 random(seed());
  fill();
  REQUIRE_OK(backup());
  for (const std::string& name : names_in(fs_, "/backup")) {
    if (name == "LOCK") continue;
    const std::string path = "/backup/" + name;
    const bool is_list = name == backup_list_name;
    for (int i = 0; i < 8; ++i) {
      const uint64_t offset = random() % size_of(path);
      flip_byte(path, offset);
      Status s = restore_status();
      // A digit of the format's number makes it a later format.
      CHECK((s.code() == StatusCode::corruption ||
             (is_list && s.code() == StatusCode::unsupported_version)));
      CHECK(s.file() == path);
      CHECK_FALSE(s.remedy().empty());
      CHECK_FALSE(*fs_.exists("/failed"));
      flip_byte(path, offset);
    }
    if (is_list) continue;
    REQUIRE_OK(fs_.rename(path, "/elsewhere"));
    Status s = restore_status();
    CHECK(s.code() == StatusCode::corruption);
    CHECK(s.file() == path);
    REQUIRE_OK(fs_.rename("/elsewhere", path));
  }
  // What is not there is copied again.
  for (const std::string& path : files_with("/backup", ".seg")) REQUIRE_OK(fs_.remove(path));
  CHECK(restore_status().code() == StatusCode::corruption);
  REQUIRE_OK(backup());
  CHECK(restored() == model_);
}

TEST_CASE_METHOD(BackupTest, "BackupTest.IsCancelledAndGoneOnWith", "[BackupTest]") {
  fill();
  REQUIRE_OK(backup());
  const Tables before = model_;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 50; ++k)
      put("t" + std::to_string(i), std::to_string(k), std::string(100 << 10, 'v'));
    REQUIRE_OK(db_->compact());
  }
  uint64_t most_copied = 0, calls = 0;
  Status s;
  for (uint64_t patience = 0;; patience = 2 * patience + 1) {
    calls = 0;
    CopyOptions options{.progress = [&](const CopyProgress& progress) {
      most_copied = std::max(most_copied, progress.bytes);
      return calls++ < patience;
    }};
    s = db_->backup("/backup", options);
    if (s.ok()) break;
    REQUIRE(s.code() == StatusCode::cancelled);
    REQUIRE(restored() == before);
  }
  CHECK(restored() == model_);
  CopyOptions throws{
      .progress = [](const CopyProgress&) -> bool { throw std::runtime_error("thrown"); }};
  s = db_->backup("/backup", throws);
  CHECK(s.code() == StatusCode::cancelled);
  CHECK(s.message().find("thrown") != std::string::npos);
  CHECK(restore("/backup", "/failed", throws, nullptr, &fs_).code() == StatusCode::cancelled);
  CHECK_FALSE(*fs_.exists("/failed"));
  CHECK(restored() == model_);
}

TEST_CASE_METHOD(BackupTest, "BackupTest.OfHandlesThatDoNotWrite", "[BackupTest]") {
  fill();
  auto reader = Database::open("/db", {.read_only = true, .file_system = &fs_});
  REQUIRE_OK(reader);
  const Tables seen = model_;
  put("a", "k0", "later");
  REQUIRE_OK(db_->compact());  // the reader's files are gone
  REQUIRE_OK((*reader)->backup("/backup"));
  CHECK(restored() == seen);
  REQUIRE_OK(backup());
  CHECK(restored() == model_);
  REQUIRE_OK((*reader)->close());
  CHECK((*reader)->backup("/backup").code() == StatusCode::closed);
  REQUIRE_OK(db_->close());
  CHECK(backup().code() == StatusCode::closed);
  CHECK(restored() == model_);
}

TEST_CASE_METHOD(BackupTest, "BackupTest.RestoreRefusesWhatIsThereAndWhatIsNoBackup",
                 "[BackupTest]") {
  fill();
  CHECK(restore_status().code() == StatusCode::not_found);
  CHECK(restore("/db", "/failed", {}, nullptr, &fs_).code() == StatusCode::not_found);
  fs_.set_capacity(fs_.used_bytes() + 8192);
  CHECK(backup().code() == StatusCode::no_space);
  fs_.set_capacity(~uint64_t{0});
  Status s = restore_status();
  CHECK(s.code() == StatusCode::not_found);
  CHECK(s.message().find("first backup") != std::string::npos);
  CHECK_FALSE(*fs_.exists("/failed"));
  REQUIRE_OK(backup());
  REQUIRE_OK(fs_.create_directory("/failed"));
  CHECK(restore_status().code() == StatusCode::already_exists);
  CHECK(restore("/backup", "/db", {}, nullptr, &fs_).code() == StatusCode::already_exists);
  CHECK(restored() == model_);
}

TEST_CASE_METHOD(BackupTest, "BackupTest.OfADatabaseWithoutIdentity", "[BackupTest]") {
  // As older versions have made them: four bytes of the manifest's header are zero.
  REQUIRE_OK(fs_.create_directory("/old"));
  {
    auto recovered = Manifest::create(fs_, "/old");
    REQUIRE_OK(recovered);
  }
  auto old = Database::open("/old", {.file_system = &fs_});
  REQUIRE_OK(old);
  REQUIRE_OK((*old)->create_table("t"));
  REQUIRE_OK((*old)->backup("/backup"));
  REQUIRE_OK((*old)->backup("/backup"));
  CHECK(restored() == Tables{{"t", {}}});
  // Nobody can tell whose it is.
  fill();
  REQUIRE_OK(backup());
  CHECK((*old)->backup("/backup").code() == StatusCode::invalid_argument);
  CHECK(restored() == model_);
}

}  // namespace
}  // namespace stride::test

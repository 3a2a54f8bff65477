// Files that edits have given up, in a directory that has many: what is listed for them, and when
// they go.
#include "engine/catalog/obsolete_files.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/forwarding_file_system.h"
#include "tests/support/model.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

// Counts how often the names of a directory are read.
class ListedFiles final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<std::vector<std::string>> list(const std::string& directory) override {
    ++lists;
    return below().list(directory);
  }
  uint64_t lists = 0;
};

// A database of many tables, each of which has one segment.
class ObsoleteFilesTest {
 protected:
  static constexpr uint64_t tables = 3000;
  static constexpr uint64_t kept_at_most = tables / 64 + 1;

  ObsoleteFilesTest() : db_(open()) {
    WriteTransaction t = db_->begin();
    for (uint64_t i = 0; i < tables; ++i) {
      auto table = t.create_table(name(i));
      REQUIRE_OK(table);
      REQUIRE_OK(t.put(*table, "key", name(i)));
    }
    REQUIRE_OK(t.commit());
    // The first look finds how many files there are.
    REQUIRE_OK(db_->drop_table(name(0)));
    REQUIRE(segments() == tables - 1);
  }
  std::unique_ptr<Database> open(Options options = {}) {
    options.memtable_bytes = 0;  // each commit makes segments
    options.threads = 1;
    options.background_work = false;
    options.file_system = &files_;
    auto db = Database::open("db", options);
    REQUIRE_OK(db);
    return std::move(*db);
  }
  static std::string name(uint64_t i) { return "table " + std::to_string(i); }
  uint64_t segments() {
    auto names = *memory_.list("db");
    return static_cast<uint64_t>(
        std::count_if(names.begin(), names.end(),
                      [](const std::string& name) { return name.ends_with(".seg"); }));
  }

  MemoryFileSystem memory_{{.crashable = false}};
  ListedFiles files_{memory_};
  std::unique_ptr<Database> db_;
};

TEST_CASE_METHOD(ObsoleteFilesTest, "ObsoleteFilesTest.ALookServesManyEditsWhereFilesAreMany",
                 "[ObsoleteFilesTest]") {
  const uint64_t before = files_.lists;
  for (uint64_t i = 1; i < tables / 2; ++i) {
    REQUIRE_OK(db_->drop_table(name(i)));
    if (under_sanitizer && i % 8 != 0) continue;
    const uint64_t live = tables - 1 - i;
    REQUIRE(segments() >= live);
    REQUIRE(segments() <= live + kept_at_most);
  }
  const uint64_t lists = files_.lists - before;
  CHECK(lists >= 30u);
  CHECK(lists <= 60u);  // about 64 times the logarithm of 2
  REQUIRE_OK(db_->sync());
  CHECK(segments() == tables / 2);
  CHECK(files_.lists == before + lists + 1);
  // What was not looked at goes when the database is closed, too.
  REQUIRE_OK(db_->drop_table(name(tables / 2)));
  CHECK(segments() == tables / 2);
  REQUIRE_OK(db_->close());
  CHECK(segments() == tables / 2 - 1);
  db_ = open();
  for (uint64_t i = tables / 2 + 1; i < tables; i += 100) {
    auto row = db_->snapshot().get(*db_->open_table(name(i)), "key");
    REQUIRE_OK(row);
    REQUIRE(row->has_value());
    CHECK(text(**row) == name(i));
  }
}

TEST_CASE_METHOD(ObsoleteFilesTest, "ObsoleteFilesTest.LargeOnesGoAtOnce", "[ObsoleteFilesTest]") {
  for (uint64_t bytes : {uint64_t{1} << 20, uint64_t{17} << 20}) {
    auto table = db_->create_table("large");
    REQUIRE_OK(table);
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(*table, "key", std::string(bytes, 'v')));
    REQUIRE_OK(t.commit());
    const uint64_t there = segments();
    REQUIRE_OK(db_->drop_table("large"));
    CHECK(segments() == (bytes < (16 << 20) ? there : there - 2));
  }
}

// Whether or not there was a look, what a reader has read of stays until it has gone.
TEST_CASE_METHOD(ObsoleteFilesTest, "ObsoleteFilesTest.ReadersKeepThemMeanwhile",
                 "[ObsoleteFilesTest]") {
  auto reader = open({.read_only = true});
  for (uint64_t i = 1; i <= 100; ++i) REQUIRE_OK(db_->drop_table(name(i)));
  REQUIRE_OK(db_->sync());
  CHECK(segments() == tables - 1);
  auto row = reader->snapshot().get(*reader->open_table(name(100)), "key");
  REQUIRE_OK(row);
  REQUIRE(row->has_value());
  CHECK(text(**row) == name(100));
  reader.reset();
  REQUIRE_OK(db_->sync());
  CHECK(segments() == tables - 101);
}

}  // namespace
}  // namespace stride::test

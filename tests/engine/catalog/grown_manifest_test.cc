// A database whose manifest grows while it is open: edits that undo each other.
#include <map>
#include <memory>
#include <random>
#include <string>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class GrownManifestTest {
 protected:
  using Rows = std::map<std::string, std::string>;

  static std::unique_ptr<Database> open(FileSystem& fs, bool read_only = false) {
    Options options{.read_only = read_only, .threads = 1, .memtable_bytes = 1 << 16};
    options.file_system = &fs;
    options.tree.strides = {8};
    auto opened = Database::open("db", options);
    REQUIRE_OK(opened.status());
    return std::move(*opened);
  }
  static Rows rows_of(const Database& db) {
    Rows rows;
    auto table = db.open_table("kept");
    REQUIRE_OK(table.status());
    Snapshot snapshot = db.snapshot();
    auto scan = snapshot.scan(*table, {});
    REQUIRE_OK(scan.status());
    ScanBatch batch;
    while (scan->next(&batch))
      for (uint64_t i = 0; i < batch.keys.size; ++i)
        rows.emplace(as_text(batch.keys[i]), as_text(batch.values[i]));
    REQUIRE_OK(scan->status());
    return rows;
  }
  uint64_t manifest_number() const {
    auto names = fs_.list("db");
    uint64_t number = 0;
    for (const std::string& name : *names)
      if (name.starts_with("MANIFEST-"))
        number = std::max<uint64_t>(number, std::stoull(name.substr(9)));
    return number;
  }

  mutable MemoryFileSystem fs_;
};

// Tables with long names come and go, beside rows in memtables and segments, until the manifest was
// written anew twice.
TEST_CASE_METHOD(GrownManifestTest, "GrownManifestTest.IsWrittenAnewWhileItIsInUse",
                 "[GrownManifestTest]") {
  std::mt19937_64 random(seed());
  auto db = open(fs_);
  auto kept = db->create_table("kept");
  REQUIRE_OK(kept.status());
  Rows model;
  auto expect = [&](FileSystem& fs) { CHECK((rows_of(*open(fs)) == model)); };
  uint64_t number = manifest_number();
  int rewritten = 0;
  for (int i = 0; rewritten < 2; ++i) {
    REQUIRE(i < 40'000);
    const std::string name = std::string(240, 'n') + std::to_string(i);
    REQUIRE_OK(db->create_table(name).status());
    if (random() % 8 == 0) {
      const std::string key = std::to_string(random() % 500);
      model[key] = std::string(random() % 100, 'v') + std::to_string(i);
      WriteTransaction t = db->begin();
      REQUIRE_OK(t.put(*kept, key, model[key]));
      REQUIRE_OK(t.commit(Durability::sync));
    }
    REQUIRE_OK(db->drop_table(name));
    if (const uint64_t now = manifest_number(); now != number) {
      number = now;
      ++rewritten;
      expect(*fs_.crash(random(), CrashPolicy::random));
      CHECK((rows_of(*open(fs_, /*read_only=*/true)) == model));
    }
    if (random() % 2000 == 0) expect(*fs_.crash(random(), CrashPolicy::random));
  }
  CHECK(db->size_bytes() < 4 << 20);
  CHECK((rows_of(*db) == model));
  REQUIRE_OK(db->close());
  expect(fs_);
}

}  // namespace
}  // namespace stride::test

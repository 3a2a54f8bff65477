// Manifests and CURRENT whose checksums are right and whose content is not.

#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "storage/current_file.h"
#include "storage/manifest.h"
#include "storage/manifest_format.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/forged_files.h"

namespace stride {
namespace {

class ForgedManifestTest {
 protected:
  ForgedManifestTest() {
    REQUIRE_OK(fs_.create_directory("db"));
    auto made = Manifest::create(fs_, "db");
    REQUIRE_OK(made);
    manifest_ = std::move(made->manifest);
  }
  // What recovery says of a log that has this edit.
  Status said_of(const VersionEdit& edit) {
    CHECK_OK(manifest_->append(edit, true));
    return Manifest::recover(fs_, "db", true).status();
  }
  void expect_corruption(const VersionEdit& edit, const std::string& why) {
    Status status = said_of(edit);
    CHECK_MESSAGE(status.code() == StatusCode::corruption, status.to_string());
    CHECK(status.file() == manifest_->path());
    CHECK(status.offset().has_value());
    CHECK_MESSAGE(status.message().find(why) != std::string::npos, status.to_string());
    // Without it all is well again.
    REQUIRE_OK(manifest_->cut(status.offset().value()));
    CHECK_OK(Manifest::recover(fs_, "db", true));
  }
  void put_file(const std::string& path, std::string_view bytes) {
    (void)fs_.remove(path);
    auto file = fs_.open(path, OpenMode::create);
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->write_at(0, as_bytes(bytes)));
  }

  MemoryFileSystem fs_{{.crashable = false}};
  std::unique_ptr<Manifest> manifest_;
};

TEST_CASE_METHOD(ForgedManifestTest, "ForgedManifestTest.TablesThatCannotBeAreCorruption",
                 "[ForgedManifestTest]") {
  VersionEdit edit;
  edit.created = {{1, "wide", 65'536, 0}};
  expect_corruption(edit, "keys of 65536 bytes");
  edit.created = {{1, "wider", ~uint32_t{0}, 0}};
  expect_corruption(edit, "keys of 4294967295 bytes");
  edit.created = {{1, std::string("a\0b", 3), 8, 0}};
  expect_corruption(edit, "NUL");
  edit.created = {{1, "a", 8, 0}, {1, "b", 8, 0}};
  expect_corruption(edit, "twice");
  edit.created = {{1, "a", 8, 0}, {2, "a", 8, 0}};
  expect_corruption(edit, "twice");
  edit.created = {{0, "a", 8, 0}};
  expect_corruption(edit, "table 0");
  edit.created = {{1, "widest that is possible", 65'535, 0}};
  CHECK_OK(said_of(edit));
}

// Else the next id would be one that was there.
TEST_CASE_METHOD(ForgedManifestTest, "ForgedManifestTest.IdsNearTheEndAreCorruption",
                 "[ForgedManifestTest]") {
  VersionEdit edit;
  for (uint64_t id : {~uint64_t{0}, ~uint64_t{0} - 1, uint64_t{1} << 60}) {
    edit.next_id = id;
    expect_corruption(edit, "ids are used up");
  }
  edit.next_id = 0;
  edit.created = {{1, "t", 0, 0}};
  for (uint64_t id : {~uint64_t{0}, ~uint64_t{0} - 1, uint64_t{1} << 60}) {
    edit.added = {{id, 1, 5, 1, 0, 8192}};
    expect_corruption(edit, "ids are used up");
    edit.added = {{5, 1, id, 1, 0, 8192}};
    expect_corruption(edit, "ids are used up");
  }
  edit.added.clear();
  edit.next_id = uint64_t{1} << 59;
  CHECK_OK(said_of(edit));
}

TEST_CASE_METHOD(ForgedManifestTest, "ForgedManifestTest.ErasedRowsThatCannotBeAreCorruption",
                 "[ForgedManifestTest]") {
  VersionEdit tables;
  tables.created = {{1, "t", 0, 0}, {2, "u", 0, 0}, {3, "routes", 5, 32}};
  tables.added = {{10, 1, 11, 100, 0, 8192}, {12, 3, 13, 100, 0, 8192}};
  REQUIRE_OK(said_of(tables));
  VersionEdit edit;
  auto expect = [&](std::vector<ErasedRows> erased, const std::string& why) {
    edit.erased = std::move(erased);
    expect_corruption(edit, why);
  };
  const std::string absent = "which is not there", missing = "does not have";
  expect({{11, 1, {0, 5}}}, absent);
  expect({{0, 1, {0, 5}}}, absent);
  expect({{10, 2, {0, 5}}}, absent);
  expect({{10, 4, {0, 5}}}, absent);
  expect({{12, 3, {0, 5}}}, "prefixes");
  expect({{10, 1, {0, 101}}}, missing);
  expect({{10, 1, {100, 101}}}, missing);
  expect({{10, 1, {7, 7}}}, missing);
  expect({{10, 1, {8, 7}}}, missing);
  expect({{10, 1, {~uint64_t{0}, 5}}}, missing);
  expect({{10, 1, {~uint64_t{0} - 1, ~uint64_t{0}}}}, missing);
  expect({{10, 1, {20, 30}}, {10, 1, {10, 15}}}, "out of order");
  expect({{10, 1, {20, 30}}, {10, 1, {25, 40}}}, "out of order");
  expect({{10, 1, {20, 30}}, {10, 1, {30, 40}}}, "out of order");
  expect({{10, 1, {20, 30}}, {10, 1, {20, 30}}}, "out of order");
  edit.removed = {10};
  expect({{10, 1, {0, 5}}}, absent);
  edit.removed.clear();
  edit.dropped = {1};
  expect({{10, 1, {0, 5}}}, absent);
  edit.dropped.clear();
  edit.added = {{14, 2, 15, 3, 0, 8192}};
  expect({{14, 2, {0, 4}}}, missing);
  expect({{14, 1, {0, 2}}}, absent);
  edit.erased = {{14, 2, {0, 2}}, {10, 1, {20, 30}}, {10, 1, {31, 100}}};
  CHECK_OK(said_of(edit));
}

// Heads of records in the tail, each of which wants all that follows to be read. Quadratic work
// would take minutes.
TEST_CASE_METHOD(ForgedManifestTest, "ForgedManifestTest.ATailFullOfHeadsTakesNoLongerThanItsBytes",
                 "[ForgedManifestTest]") {
  std::string good = *read_file(fs_, manifest_->path()), bytes = good;
  constexpr uint64_t tail = 32 << 20;
  bytes.resize(good.size() + tail);
  for (uint64_t at = good.size() + 8; at + 24 <= bytes.size(); at += 24) {
    ManifestRecordHeader head{1, static_cast<uint32_t>(bytes.size() - at - 24), manifest_edit,
                              good.size() + 8};
    test::put(&bytes, at, head);
  }
  put_file(manifest_->path(), bytes);
  std::clock_t before = std::clock();
  Status status = Manifest::recover(fs_, "db", false).status();
  double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  CHECK_MESSAGE(status.code() == StatusCode::corruption, status.to_string());
  CHECK(status.offset() == good.size());
  CHECK(seconds < 10);
}

// The same, but as they may be left by a power loss: of bytes that were never synced.
TEST_CASE_METHOD(ForgedManifestTest, "ForgedManifestTest.ATailOfHeadsThatKnowNothingIsTorn",
                 "[ForgedManifestTest]") {
  std::string good = *read_file(fs_, manifest_->path()), bytes = good;
  bytes.resize(good.size() + (4 << 20));
  for (uint64_t at = good.size() + 8; at + 24 <= bytes.size(); at += 24) {
    ManifestRecordHeader head{1, static_cast<uint32_t>(bytes.size() - at - 24), manifest_edit,
                              good.size()};
    test::put(&bytes, at, head);
  }
  put_file(manifest_->path(), bytes);
  auto recovered = Manifest::recover(fs_, "db", false);
  REQUIRE_OK(recovered);
  CHECK(recovered->manifest->bytes() == good.size());
}

TEST_CASE_METHOD(ForgedManifestTest, "ForgedManifestTest.ACurrentOfAnotherKindIsCorruption",
                 "[ForgedManifestTest]") {
  std::string line = *read_file(fs_, "db/CURRENT");
  for (std::string text :
       {std::string(), std::string("\n"), line + line, "x" + line, std::string(4 << 20, 'M'),
        std::string("MANIFEST-1\n"), std::string("MANIFEST-000001"),
        std::string("../MANIFEST-000001\n"), std::string("MANIFEST-18446744073709551617\n")}) {
    if (text != line + line && text.ends_with('\n')) test::seal_current(&text);
    put_file("db/CURRENT", text);
    Status status = Manifest::recover(fs_, "db", true).status();
    CHECK_MESSAGE(status.code() == StatusCode::corruption, text.substr(0, 100));
    CHECK(status.file() == "db/CURRENT");
  }
  std::string other = "MANIFEST-000002\n";
  test::seal_current(&other);
  put_file("db/CURRENT", other);
  Status missing = Manifest::recover(fs_, "db", true).status();
  CHECK(missing.code() == StatusCode::corruption);
  CHECK(missing.file() == "db/MANIFEST-000002");
}

}  // namespace
}  // namespace stride

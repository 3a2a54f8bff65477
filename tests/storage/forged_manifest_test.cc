// Manifests and CURRENT whose checksums are right and whose content is not.
#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "storage/current_file.h"
#include "storage/manifest.h"
#include "storage/manifest_format.h"
#include "storage/memory_file_system.h"
#include "tests/support/forged_files.h"

namespace stride {
namespace {

class ForgedManifestTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs_.create_directory("db").ok());
    auto made = Manifest::create(fs_, "db");
    ASSERT_TRUE(made.ok());
    manifest_ = std::move(made->manifest);
  }
  // What recovery says of a log that has this edit.
  Status said_of(const VersionEdit& edit) {
    EXPECT_TRUE(manifest_->append(edit, true).ok());
    return Manifest::recover(fs_, "db", true).status();
  }
  void expect_corruption(const VersionEdit& edit, const std::string& why) {
    Status status = said_of(edit);
    EXPECT_EQ(status.code(), StatusCode::corruption) << status.to_string();
    EXPECT_EQ(status.file(), manifest_->path());
    EXPECT_TRUE(status.offset().has_value());
    EXPECT_NE(status.message().find(why), std::string::npos) << status.to_string();
    // Without it all is well again.
    ASSERT_TRUE(manifest_->cut(status.offset().value()).ok());
    EXPECT_TRUE(Manifest::recover(fs_, "db", true).ok());
  }
  void put_file(const std::string& path, std::string_view bytes) {
    (void)fs_.remove(path);
    auto file = fs_.open(path, OpenMode::create);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->write_at(0, as_bytes(bytes)).ok());
  }

  MemoryFileSystem fs_{{.crashable = false}};
  std::unique_ptr<Manifest> manifest_;
};

TEST_F(ForgedManifestTest, TablesThatCannotBeAreCorruption) {
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
  EXPECT_TRUE(said_of(edit).ok());
}

// Else the next id would be one that was there.
TEST_F(ForgedManifestTest, IdsNearTheEndAreCorruption) {
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
  EXPECT_TRUE(said_of(edit).ok());
}

// Heads of records in the tail, each of which wants all that follows to be read. Quadratic work
// would take minutes.
TEST_F(ForgedManifestTest, ATailFullOfHeadsTakesNoLongerThanItsBytes) {
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
  EXPECT_EQ(status.code(), StatusCode::corruption) << status.to_string();
  EXPECT_EQ(status.offset(), good.size());
  EXPECT_LT(seconds, 10);
}

// The same, but as they may be left by a power loss: of bytes that were never synced.
TEST_F(ForgedManifestTest, ATailOfHeadsThatKnowNothingIsTorn) {
  std::string good = *read_file(fs_, manifest_->path()), bytes = good;
  bytes.resize(good.size() + (4 << 20));
  for (uint64_t at = good.size() + 8; at + 24 <= bytes.size(); at += 24) {
    ManifestRecordHeader head{1, static_cast<uint32_t>(bytes.size() - at - 24), manifest_edit,
                              good.size()};
    test::put(&bytes, at, head);
  }
  put_file(manifest_->path(), bytes);
  auto recovered = Manifest::recover(fs_, "db", false);
  ASSERT_TRUE(recovered.ok()) << recovered.status().to_string();
  EXPECT_EQ(recovered->manifest->bytes(), good.size());
}

TEST_F(ForgedManifestTest, ACurrentOfAnotherKindIsCorruption) {
  std::string line = *read_file(fs_, "db/CURRENT");
  for (std::string text :
       {std::string(), std::string("\n"), line + line, "x" + line, std::string(4 << 20, 'M'),
        std::string("MANIFEST-1\n"), std::string("MANIFEST-000001"),
        std::string("../MANIFEST-000001\n"), std::string("MANIFEST-18446744073709551617\n")}) {
    if (text != line + line && text.ends_with('\n')) test::seal_current(&text);
    put_file("db/CURRENT", text);
    Status status = Manifest::recover(fs_, "db", true).status();
    EXPECT_EQ(status.code(), StatusCode::corruption) << text.substr(0, 100);
    EXPECT_EQ(status.file(), "db/CURRENT");
  }
  std::string other = "MANIFEST-000002\n";
  test::seal_current(&other);
  put_file("db/CURRENT", other);
  Status missing = Manifest::recover(fs_, "db", true).status();
  EXPECT_EQ(missing.code(), StatusCode::corruption);
  EXPECT_EQ(missing.file(), "db/MANIFEST-000002");
}

}  // namespace
}  // namespace stride

// Databases that earlier versions have written are read as those versions read them, and written.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/forged_files.h"

namespace stride::cli {
namespace {

namespace fs = std::filesystem;

// old_databases/README.md says which there are, and how they were made.
class OldDatabasesTest : public CliFixture {
 protected:
  static std::vector<fs::path> databases() {
    std::vector<fs::path> found;
    for (const auto& entry :
         fs::directory_iterator(STRIDE_SOURCE_DIR "/tests/adapters/cli/old_databases"))
      if (entry.is_directory()) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }
  // A file as it was before it was packed.
  static std::string unpacked(const fs::path& path) {
    const std::string bytes = read(path);
    if (path.extension() != ".zst") return bytes;
    std::string content(ZSTD_getFrameContentSize(bytes.data(), bytes.size()), '\0');
    REQUIRE(ZSTD_decompress(content.data(), content.size(), bytes.data(), bytes.size()) ==
            content.size());
    return content;
  }
  static std::string unpacked_name(const fs::path& path) {
    return path.extension() == ".zst" ? path.stem() : path.filename();
  }
  // Returns the names of its files.
  std::vector<std::string> make_database(const fs::path& old) {
    fs::remove_all(database_);
    fs::create_directory(database_);
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(old / "db")) {
      names.push_back(unpacked_name(entry.path()));
      std::ofstream(database_ + "/" + names.back(), std::ios::binary) << unpacked(entry.path());
    }
    return names;
  }
  void expect_rows(const fs::path& old) {
    uint64_t tables = 0;
    for (const auto& entry : fs::directory_iterator(old)) {
      const std::string name = unpacked_name(entry.path());
      if (!name.ends_with(".tsv")) continue;
      CHECK(scan({}, name.substr(0, name.size() - 4)) == unpacked(entry.path()));
      ++tables;
    }
    CHECK(tables > 0u);
    CHECK_MESSAGE(run({"verify", database_}) == 0, error_);
  }
};

TEST_CASE_METHOD(OldDatabasesTest, "OldDatabasesTest.AreReadAndWritten", "[OldDatabasesTest]") {
  const std::vector<fs::path> all = databases();
  CHECK(all.size() >= 4u);
  for (const fs::path& old : all) {
    INFO(old.filename().string());
    make_database(old);
    expect_rows(old);
    REQUIRE_MESSAGE(load(file("new.tsv", "key\tvalue\n"), {}, "new") == 0, error_);
    expect_rows(old);
    REQUIRE_MESSAGE(run({"compact", database_}) == 0, error_);
    expect_rows(old);
    CHECK(scan({}, "new") == "key\tvalue\n");
  }
}

// A file of a later version is refused by its name, and nothing changes.
TEST_CASE_METHOD(OldDatabasesTest, "OldDatabasesTest.LaterOnesAreRefused", "[OldDatabasesTest]") {
  constexpr uint64_t version_at = 8;  // in the header of each kind of file
  uint64_t refused = 0;
  for (const fs::path& old : databases())
    for (const std::string& name : make_database(old)) {
      if (!name.starts_with("MANIFEST-") && !name.ends_with(".seg") && !name.ends_with(".wal"))
        continue;
      INFO(old.filename().string() << " " << name);
      make_database(old);
      test::forge(database_ + "/" + name,
                  [](std::string* bytes) { test::put<uint32_t>(bytes, version_at, 1000); });
      const auto before = state();
      CHECK(run({"verify", database_}) != 0);
      CHECK_MESSAGE((out_ + error_).find("version") != std::string::npos, out_ + error_);
      CHECK_MESSAGE((out_ + error_).find(name) != std::string::npos, out_ + error_);
      CHECK(state() == before);
      ++refused;
    }
  CHECK(refused > databases().size());
}

}  // namespace
}  // namespace stride::cli

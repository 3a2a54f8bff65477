// Databases that earlier versions have written are read as those versions read them, and written.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
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
    for (const auto& entry : fs::directory_iterator(STRIDE_SOURCE_DIR
                                                    "/tests/adapters/cli/old_databases"))
      if (entry.is_directory()) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }
  void expect_rows(const fs::path& of) {
    uint64_t tables = 0;
    for (const auto& entry : fs::directory_iterator(of)) {
      if (entry.path().extension() != ".tsv") continue;
      std::ifstream in(entry.path());
      const std::string expected{std::istreambuf_iterator<char>(in), {}};
      CHECK(scan({}, entry.path().stem()) == expected);
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
    fs::remove_all(database_);
    fs::copy(old / "db", database_, fs::copy_options::recursive);
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
    for (const auto& entry : fs::directory_iterator(old / "db")) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("MANIFEST-") && !name.ends_with(".seg") && !name.ends_with(".wal"))
        continue;
      INFO(old.filename().string() << " " << name);
      fs::remove_all(database_);
      fs::copy(old / "db", database_, fs::copy_options::recursive);
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

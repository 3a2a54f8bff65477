// stride checkpoint, stride backup and stride restore of a backup.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "adapters/cli/interrupt.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class CopiesTest : public CliFixture {
 protected:
  void fill() {
    REQUIRE_MESSAGE(load(file("u.csv", "id,name\n1,Ada\n2,Grace\n"), {"--header"}) == 0, error_);
    expected_ = scan();
  }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string rows_of(const std::string& database) {
    CHECK_MESSAGE(run({"scan", database, "t"}) == 0, error_);
    return out_;
  }
  nlohmann::json json() const { return nlohmann::json::parse(out_); }

  std::string expected_;
};

TEST_CASE_METHOD(CopiesTest, "CopiesTest.CheckpointIsADatabase", "[CopiesTest]") {
  fill();
  REQUIRE_MESSAGE(run({"checkpoint", database_, path("copy")}) == 0, error_);
  CHECK(out_ == "");
  CHECK_MESSAGE(error_.find("made a checkpoint of") == 0, error_);
  CHECK(rows_of(path("copy")) == expected_);
  REQUIRE_MESSAGE(run({"checkpoint", database_, path("other"), "--json"}) == 0, error_);
  CHECK(json()["files"].get<uint64_t>() >= 1);
  CHECK(json()["linked_files"].get<uint64_t>() + json()["copied_files"].get<uint64_t>() <=
        json()["files"].get<uint64_t>());
  expect_refused({"checkpoint", database_, path("copy")}, 2, "there is something of this name");
  expect_refused({"checkpoint", path("none"), path("new")}, 4, "no database in");
  CHECK_FALSE(std::filesystem::exists(path("new")));
}

TEST_CASE_METHOD(CopiesTest, "CopiesTest.BackupIsRestored", "[CopiesTest]") {
  fill();
  REQUIRE_MESSAGE(run({"backup", database_, path("backup"), "--json"}) == 0, error_);
  CHECK(json()["copied_bytes"] == json()["bytes"]);
  // A database that another handle has open for writing is backed up as well.
  auto open = Database::open(database_);
  REQUIRE_OK(open);
  REQUIRE_MESSAGE(run({"backup", database_, path("backup")}) == 0, error_);
  CHECK_MESSAGE(error_.find("backed up") == 0, error_);
  open->reset();
  REQUIRE_MESSAGE(run({"restore", path("copy"), path("backup")}) == 0, error_);
  CHECK_MESSAGE(error_.find("restored") == 0, error_);
  CHECK(rows_of(path("copy")) == expected_);
  REQUIRE_MESSAGE(run({"restore", path("again"), path("backup"), "--json"}) == 0, error_);
  CHECK(json()["files"] == json()["copied_files"]);
  expect_refused({"restore", path("copy"), path("backup")}, 2, "there is something of this name");
  expect_refused({"restore", path("new"), path("backup"), "--commit-every", "7"}, 2,
                 "--commit-every is for dumps");
  expect_refused({"restore", path("new"), database_}, 4, "no backup here");
  expect_refused({"scan", path("backup"), "t"}, 2, "this is a backup, and no database");
  CHECK_FALSE(std::filesystem::exists(path("new")));
}

TEST_CASE_METHOD(CopiesTest, "CopiesTest.BackupRefusesOtherDirectories", "[CopiesTest]") {
  fill();
  REQUIRE_MESSAGE(run({"backup", database_, path("backup")}) == 0, error_);
  const std::string first = database_;
  database_ = path("second");
  fill();
  expect_refused({"backup", database_, path("backup")}, 2, "the backup of another database");
  expect_refused({"backup", database_, first}, 2, "is a database, and no backup");
  expect_refused({"backup", database_, directory_}, 2, "other files, and no backup");
}

TEST_CASE_METHOD(CopiesTest, "CopiesTest.EndsWhereItIsInterrupted", "[CopiesTest]") {
  fill();
  set_interrupted(true);
  const int checkpoint = run({"checkpoint", database_, path("copy")});
  const int backup = run({"backup", database_, path("backup")});
  set_interrupted(false);
  CHECK(checkpoint == 130);
  CHECK(backup == 130);
  CHECK_FALSE(std::filesystem::exists(path("copy")));
  REQUIRE_MESSAGE(run({"backup", database_, path("backup")}) == 0, error_);
}

}  // namespace
}  // namespace stride::cli

// stride doctor of a database, and stride metrics.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/database.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class DoctorTest : public CliFixture {
 protected:
  DoctorTest() { REQUIRE_MESSAGE(load(file("rows.tsv", "a\t1\nb\t2\n")) == 0, error_); }
  // Names of what is not fine, by --json; the text says the same.
  std::vector<std::string> unusual(int code) {
    const auto before = state();
    CHECK_MESSAGE(run({"doctor", database_, "--json"}) == code, error_);
    std::vector<std::string> names;
    for (const auto& finding : nlohmann::json::parse(out_)) {
      CHECK(finding["fine"] == finding["advice"].get<std::string>().empty());
      if (!finding["fine"]) names.push_back(finding["what"]);
    }
    CHECK_MESSAGE(run({"doctor", database_}) == code, error_);
    size_t notes = 0;
    for (size_t at = 0; (at = out_.find("note  ", at)) != std::string::npos; ++at) ++notes;
    CHECK_MESSAGE(notes == names.size(), out_);
    CHECK((code == 0) == error_.empty());
    CHECK(state() == before);
    return names;
  }
  using Names = std::vector<std::string>;
};

TEST_CASE_METHOD(DoctorTest, "DoctorTest.AllIsWell", "[DoctorTest]") {
  CHECK(unusual(0) == Names{});
  CHECK(out_.starts_with("ok    opening       "));
  CHECK(out_.find("ok    disk          ") != std::string::npos);
  CHECK(out_.find("ok    rights        to read and to write\n") != std::string::npos);
}

TEST_CASE_METHOD(DoctorTest, "DoctorTest.WhatIsUnusual", "[DoctorTest]") {
  std::ofstream(database_ + "/000099.seg") << "left by a process";
  CHECK(unusual(9) == Names{"leftovers"});
  CHECK(error_.find("1 finding about " + database_) != std::string::npos);
  std::ofstream(database_ + "/notes.txt") << "of somebody";
  CHECK(unusual(9) == (Names{"leftovers", "other files"}));
  CHECK(error_.find("2 findings about ") != std::string::npos);
}

TEST_CASE_METHOD(DoctorTest, "DoctorTest.RightsOfEverybody", "[DoctorTest]") {
  std::filesystem::permissions(database_ + "/CURRENT", std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  CHECK(unusual(5) == Names{"rights"});
  CHECK(out_.find("everybody may write 'CURRENT'") != std::string::npos);
}

TEST_CASE_METHOD(DoctorTest, "DoctorTest.Damage", "[DoctorTest]") {
  REQUIRE(run({"compact", database_}) == 0);
  SECTION("a segment") {
    for (const auto& entry : std::filesystem::directory_iterator(database_))
      if (entry.path().extension() == ".seg") std::ofstream(entry.path()) << "damaged";
    CHECK(unusual(6) == Names{"segments"});
  }
  SECTION("the manifest is gone") {
    for (const auto& entry : std::filesystem::directory_iterator(database_))
      if (entry.path().filename().string().starts_with("MANIFEST"))
        std::filesystem::remove(entry.path());
    CHECK(unusual(6).front() == "opening");
  }
}

TEST_CASE_METHOD(DoctorTest, "DoctorTest.MetricsTellTheState", "[DoctorTest]") {
  REQUIRE_MESSAGE(run({"metrics", database_}) == 0, error_);
  CHECK(out_.find("\nstride_table_rows{table=\"t\"} 2\n") != std::string::npos);
  CHECK(out_.find("# TYPE stride_size_bytes gauge\n") != std::string::npos);
  CHECK(out_.find("_total") == std::string::npos);
  CHECK(out_.find(".stride") == std::string::npos);  // its own table
  REQUIRE_MESSAGE(run({"metrics", database_, "--json"}) == 0, error_);
  const auto result = nlohmann::json::parse(out_);
  CHECK(result["tables"].size() == 1u);
  CHECK(result["tables"][0]["rows"] == 2);
  CHECK(result["debt_bytes"] == 0);
  expect_refused({"metrics", directory_ + "/none"}, 4, "no database in ");
  expect_refused({"metrics"}, 2, "DB");
}

}  // namespace
}  // namespace stride::cli

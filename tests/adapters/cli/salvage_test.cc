// stride verify and stride salvage of damaged databases.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

namespace fs = std::filesystem;

class SalvageTest : public CliFixture {
 protected:
  // Table t of enough rows for many blocks, and u of few.
  void fill() {
    std::string rows;
    for (int i = 100000; i < 150000; ++i)
      rows += std::to_string(i) + ",value " + std::to_string(i) + "\n";
    REQUIRE_MESSAGE(load(file("t.csv", rows)) == 0, error_);
    REQUIRE_MESSAGE(load(file("u.csv", "1,one\n2,two\n"), {}, "u") == 0, error_);
  }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string largest_segment() const {
    std::string largest;
    for (const auto& entry : fs::directory_iterator(database_))
      if (entry.path().extension() == ".seg" &&
          (largest.empty() || entry.file_size() > fs::file_size(largest)))
        largest = entry.path().string();
    return largest;
  }
  static void flip(const std::string& name, uint64_t at) {
    std::fstream f(name, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(static_cast<std::streamoff>(at));
    const int byte = f.get();
    f.seekp(static_cast<std::streamoff>(at));
    f.put(static_cast<char>(byte ^ 1));
  }
  nlohmann::json json() const { return nlohmann::json::parse(out_); }
  uint64_t count(const std::string& database, const std::string& table) {
    CHECK_MESSAGE(run({"count", database, table}) == 0, error_);
    return std::stoull(out_);
  }
};

TEST_CASE_METHOD(SalvageTest, "SalvageTest.WhatIsWholeIsAllThere", "[SalvageTest]") {
  fill();
  REQUIRE_MESSAGE(run({"verify", database_, "--json"}) == 0, error_);
  CHECK(json()["intact"] == true);
  REQUIRE_MESSAGE(run({"salvage", database_, path("new")}) == 0, error_);
  CHECK_MESSAGE(out_.find("t: 50,000 rows\n") != std::string::npos, out_);
  CHECK_MESSAGE(error_.find("made ") == 0, error_);
  CHECK(run({"verify", path("new")}) == 0);
  const std::string expected = scan();
  REQUIRE(run({"scan", path("new"), "t"}) == 0);
  CHECK(out_ == expected);
  expect_refused({"salvage", database_, path("new")}, 2, "there is something of this name");
  expect_refused({"salvage", database_, database_ + "/inside"}, 2, "would lie in the damaged one");
  expect_refused({"salvage", path("none"), path("other")}, 4, "No such file");
  fs::create_directory(path("empty"));
  expect_refused({"salvage", path("empty"), path("other")}, 2, "not a StrideDB database");
  CHECK_FALSE(fs::exists(path("other")));
}

TEST_CASE_METHOD(SalvageTest, "SalvageTest.EachDamagedBlockIsTold", "[SalvageTest]") {
  fill();
  const std::string segment = largest_segment();
  flip(segment, 70'000);
  flip(segment, 220'000);
  CHECK(run({"verify", database_}) == 6);
  CHECK(std::count(out_.begin(), out_.end(), '\n') == 2);
  CHECK_MESSAGE(out_.find(segment + ": key_data at 65536, 65536 bytes") == 0, out_);
  CHECK_MESSAGE(error_.find("2 parts of the files") != std::string::npos, error_);
  CHECK(run({"verify", database_, "--json"}) == 6);
  CHECK(json()["intact"] == false);
  REQUIRE(json()["damage"].size() == 2);
  const auto first = json()["damage"][0];
  CHECK(first["section"] == "key_data");
  CHECK(first["offset"] == 65536);
  CHECK(first["table"] == "t");
  CHECK(first["rows"].get<uint64_t>() > 5000);

  CHECK(run({"salvage", database_, path("new"), "--json"}) == 6);
  const auto report = json();
  CHECK(report["complete"] == false);
  REQUIRE_FALSE(report["lost"].empty());
  uint64_t lost = 0;
  for (const auto& l : report["lost"]) {
    CHECK(l["table"] == "t");
    CHECK(l["first_key"] < l["last_key"]);
    lost += l["rows"].get<uint64_t>();
  }
  CHECK_MESSAGE(error_.find("is a part of") != std::string::npos, error_);
  CHECK(run({"verify", path("new")}) == 0);
  CHECK(count(path("new"), "t") == 50'000 - lost);
  CHECK(count(path("new"), "u") == 2);
}

TEST_CASE_METHOD(SalvageTest, "SalvageTest.WithoutAManifest", "[SalvageTest]") {
  fill();
  for (const auto& entry : fs::directory_iterator(database_))
    if (entry.path().filename().string().starts_with("MANIFEST")) fs::remove(entry.path());
  CHECK(run({"verify", database_}) == 6);
  CHECK_MESSAGE(out_.find("the manifest that CURRENT names is missing") != std::string::npos, out_);
  CHECK(run({"salvage", database_, path("new")}) == 6);
  CHECK_MESSAGE(out_.find(": 50,000 rows, of a table whose name is lost\n") != std::string::npos,
                out_);
  CHECK_MESSAGE(out_.find("not certain: no manifest tells") != std::string::npos, out_);
  const std::string name = fs::path(largest_segment()).stem();
  CHECK(count(path("new"), "segment-" + name) == 50'000);
}

TEST_CASE_METHOD(SalvageTest, "SalvageTest.ADatabaseThatIsOpenIsLeftAlone", "[SalvageTest]") {
  fill();
  auto open = Database::open(database_);
  REQUIRE_OK(open);
  expect_refused({"salvage", database_, path("new")}, 5, "a process writes the database");
}

}  // namespace
}  // namespace stride::cli

// What a commit tells of the keys that it has put, and how it refuses keys that come twice.
#include <map>
#include <random>
#include <set>
#include <string>

#include "tests/engine/write/write_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

using KeyCounts = std::map<std::string, uint64_t>;

class CommitReportTest : public WriteFixture {
 protected:
  CommitReportTest() { table_ = *db_->create_table("t"); }
  static Status refusing(WriteTransaction* write, CommitReport* report = nullptr) {
    return write->commit(CommitOptions{.refuse_equal_keys = true}, report);
  }

  Table table_;
};

TEST_CASE_METHOD(CommitReportTest, "CommitReportTest.CountsDistinctKeysOfEachTable",
                 "[CommitReportTest]") {
  Table other = *db_->create_table("other"), untouched = *db_->create_table("untouched");
  Table sums = *db_->create_table("sums", {.numbers = NumberType::i64});
  WriteTransaction write = db_->begin();
  for (const char* key : {"b", "a", "", "b", "a", "c"}) REQUIRE(write.put(table_, key, "v").ok());
  REQUIRE(write.put(other, "b", "v").ok());
  for (const char* key : {"x", "y", "x"}) REQUIRE(write.accumulate(sums, key, 1).ok());
  REQUIRE(write.erase(untouched, "a").ok());
  CommitReport report;
  REQUIRE(write.commit({}, &report).ok());
  report.keys.erase("untouched");
  CHECK((report.keys == KeyCounts{{"t", 4}, {"other", 1}, {"sums", 2}}));
  CHECK(read_table(*db_, table_).size() == 4u);

  // Keys that the table had before count as others do, and a report is made anew.
  write = db_->begin();
  REQUIRE(write.put(table_, "a", "new").ok());
  REQUIRE(write.commit({}, &report).ok());
  CHECK((report.keys == KeyCounts{{"t", 1}}));
  write = db_->begin();
  REQUIRE(write.commit({}, &report).ok());
  CHECK(report.keys.empty());
}

TEST_CASE_METHOD(CommitReportTest, "CommitReportTest.KeysThatComeTwiceAreRefused",
                 "[CommitReportTest]") {
  WriteTransaction write = db_->begin();
  REQUIRE(write.put(table_, "kept", "1").ok());
  REQUIRE(refusing(&write).ok());
  Model before = read_table(*db_, table_);

  write = db_->begin();
  for (const char* key : {"once", "twice", "kept", "twice"})
    REQUIRE(write.put(table_, key, "2").ok());
  CommitReport report;
  Status refused = refusing(&write, &report);
  CHECK(refused.code() == StatusCode::already_exists);
  REQUIRE(refused.key().has_value());
  CHECK(*refused.key() == "twice");
  CHECK(refused.message_with_key("'2'").find("have the key '2'") != std::string::npos);
  CHECK_MESSAGE(refused.message().find("twice") != std::string::npos, refused.to_string());
  CHECK(report.keys.empty());
  CHECK((read_table(*db_, table_) == before));
  reopen();
  table_ = *db_->open_table("t");
  CHECK((read_table(*db_, table_) == before));

  // What the table has is replaced, and no refusal; nor is an erased key.
  write = db_->begin();
  REQUIRE(write.put(table_, "kept", "3").ok());
  REQUIRE(write.put(table_, "new", "3").ok());
  REQUIRE(write.erase(table_, "gone").ok());
  REQUIRE(refusing(&write, &report).ok());
  CHECK(report.keys["t"] == 2u);
  CHECK((read_table(*db_, table_) == Model{{"kept", "3"}, {"new", "3"}}));
}

// The table's rows are erased and others put in one commit, as a load that replaces a table does.
TEST_CASE_METHOD(CommitReportTest, "CommitReportTest.ReplacesATable", "[CommitReportTest]") {
  WriteTransaction write = db_->begin();
  for (const char* key : {"a", "b", "c"}) REQUIRE(write.put(table_, key, "old").ok());
  REQUIRE(write.commit().ok());
  write = db_->begin();
  REQUIRE(write.erase_range(table_, {}, {}).ok());
  REQUIRE(write.put(table_, "b", "new").ok());
  REQUIRE(write.put(table_, "d", "new").ok());
  CommitReport report;
  REQUIRE(refusing(&write, &report).ok());
  CHECK(report.keys["t"] == 2u);
  CHECK((read_table(*db_, table_) == Model{{"b", "new"}, {"d", "new"}}));
}

TEST_CASE_METHOD(CommitReportTest, "CommitReportTest.RandomCommitsAsASet", "[CommitReportTest]") {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 40; ++round) {
    const uint64_t rows = random() % (round % 10 ? 300 : 40'000), kinds = 1 + random() % 100'000;
    Model model = read_table(*db_, table_);
    std::set<std::string> keys;
    WriteTransaction write = db_->begin();
    for (uint64_t i = 0; i < rows; ++i) {
      std::string key = std::to_string(random() % kinds), value = std::to_string(i);
      REQUIRE(write.put(table_, key, value).ok());
      keys.insert(key);
      model[key] = value;
    }
    const bool refuse = random() % 2, fails = refuse && keys.size() < rows;
    CommitReport report;
    Status status = write.commit(CommitOptions{.refuse_equal_keys = refuse}, &report);
    CHECK(status.code() == (fails ? StatusCode::already_exists : StatusCode::ok));
    if (fails) continue;
    CHECK(report.keys["t"] == keys.size());
    REQUIRE((read_table(*db_, table_) == model));
  }
}

}  // namespace
}  // namespace stride::test

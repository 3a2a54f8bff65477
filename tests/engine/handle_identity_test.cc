// Handles of tables, in the hands of the wrong database, opening or transaction.
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

class HandleIdentityTest {
 protected:
  HandleIdentityTest() : a_(open("a")), b_(open("b")) {
    of_a_ = *a_->create_table("in a");
    of_b_ = *b_->create_table("in b");
  }
  std::unique_ptr<Database> open(const std::string& name) {
    return std::move(*Database::open(directory_.file(name)));
  }
  static void expect_refused(const Status& s, const std::string& what) {
    CHECK_MESSAGE(s.code() == StatusCode::invalid_argument, s.to_string());
    CHECK_MESSAGE(s.to_string().find(what) != std::string::npos, s.to_string());
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Database> a_, b_;
  Table of_a_, of_b_;
};

TEST_CASE_METHOD(HandleIdentityTest, "HandleIdentityTest.ATableOfAnotherDatabaseIsRefused",
                 "[HandleIdentityTest]") {
  CHECK(of_a_.id() == of_b_.id());
  const std::string both = "table 'in a' belongs to the database " + directory_.file("a") +
                           ", not to " + directory_.file("b");
  WriteTransaction t = b_->begin();
  Rows rows({"key"});
  expect_refused(t.put(of_a_, "key", "value"), both);
  expect_refused(t.put_view(of_a_, rows.column(), rows.column()), both);
  expect_refused(t.put_if_absent(of_a_, rows.column(), rows.column()), both);
  expect_refused(t.accumulate(of_a_, "key", 1), both);
  expect_refused(t.erase(of_a_, "key"), both);
  expect_refused(t.erase_range(of_a_, std::nullopt, std::nullopt), both);
  REQUIRE_OK(t.put(of_b_, "key", "value"));
  REQUIRE_OK(t.commit());
  Snapshot s = b_->snapshot();
  FindResult found;
  GetResult got;
  LowerBoundResult bounds;
  MatchResult matches;
  expect_refused(s.get(of_a_, "key").status(), both);
  expect_refused(s.find(of_a_, rows.column(), &found), both);
  expect_refused(s.get(of_a_, rows.column(), &got), both);
  expect_refused(s.lower_bound(of_a_, rows.column(), &bounds), both);
  expect_refused(s.match(of_a_, rows.column(), &matches), both);
  expect_refused(s.scan(of_a_).status(), both);
  expect_refused(s.iterate(of_a_).status(), both);
  expect_refused(s.count(of_a_).status(), both);
  expect_refused(b_->segments(of_a_).status(), both);
  expect_refused(s.get(Table(), "key").status(), "the table handle is empty");
  CHECK(*s.count(of_b_) == 1u);
}

TEST_CASE_METHOD(HandleIdentityTest, "HandleIdentityTest.ATableOfAnEarlierOpeningIsRefused",
                 "[HandleIdentityTest]") {
  a_.reset();
  a_ = open("a");
  WriteTransaction t = a_->begin();
  expect_refused(t.put(of_a_, "key", "value"), "an earlier opening of " + directory_.file("a"));
  Table again = *a_->open_table("in a");
  REQUIRE_OK(t.put(again, "key", "value"));
  REQUIRE_OK(t.commit());
  CHECK(*a_->snapshot().count(again) == 1u);
}

class CreateInTransactionTest : public HandleIdentityTest {};

TEST_CASE_METHOD(CreateInTransactionTest, "CreateInTransactionTest.TheTableComesWithItsRows",
                 "[CreateInTransactionTest]") {
  WriteTransaction t = a_->begin();
  auto table = t.create_table("new", {.key_width = 3});
  REQUIRE_OK(table.status());
  CHECK(table->name() == "new");
  CHECK(table->key_width() == 3u);
  REQUIRE_OK(t.put(*table, "key", "value"));
  REQUIRE_OK(t.put(of_a_, "k", "v"));
  CHECK(a_->open_table("new").status().code() == StatusCode::not_found);
  CHECK(a_->snapshot().get(*table, "key").status().code() == StatusCode::not_found);
  REQUIRE_OK(t.commit());
  CHECK(text(**a_->snapshot().get(*table, "key")) == "value");
  CHECK(a_->open_table("new")->id() == table->id());
  a_.reset();
  a_ = open("a");
  CHECK(text(**a_->snapshot().get(*a_->open_table("new"), "key")) == "value");
  CHECK(text(**a_->snapshot().get(*a_->open_table("in a"), "k")) == "v");
}

TEST_CASE_METHOD(CreateInTransactionTest, "CreateInTransactionTest.WithoutRowsItIsCreatedToo",
                 "[CreateInTransactionTest]") {
  WriteTransaction t = a_->begin();
  REQUIRE_OK(t.create_table("one").status());
  REQUIRE_OK(t.create_table("two", {.numbers = NumberType::i64}).status());
  REQUIRE_OK(t.commit());
  CHECK(a_->tables().size() == 3u);
  CHECK(a_->open_table("two")->numbers() == NumberType::i64);
}

TEST_CASE_METHOD(CreateInTransactionTest,
                 "CreateInTransactionTest.AllKindsOfChangesGoIntoATableThatIsCreated",
                 "[CreateInTransactionTest]") {
  WriteTransaction t = a_->begin();
  Table rows = *t.create_table("rows"),
        numbers = *t.create_table("n", {.numbers = NumberType::i64});
  Rows keys({"a", "b"});
  REQUIRE_OK(t.put(rows, keys.column(), keys.column()));
  REQUIRE_OK(t.erase_range(rows, as_bytes("b"), std::nullopt));
  REQUIRE_OK(t.erase(rows, "c"));
  uint64_t was_new = 0;
  REQUIRE_OK(t.put_if_absent(rows, keys.column(), keys.column(), {&was_new, 1}));
  REQUIRE_OK(t.accumulate(numbers, "sum", 3));
  REQUIRE_OK(t.accumulate(numbers, "sum", 4));
  REQUIRE_OK(t.commit());
  CHECK(was_new == 2u);  // a was put, b erased
  CHECK(*a_->snapshot().count(rows) == 2u);
  int64_t sum = 0;
  std::memcpy(&sum, (*a_->snapshot().get(numbers, "sum"))->data(), sizeof sum);
  CHECK(sum == 7);
}

TEST_CASE_METHOD(CreateInTransactionTest,
                 "CreateInTransactionTest.WhatIsAbortedOrFailsLeavesNoTable",
                 "[CreateInTransactionTest]") {
  Table lost;
  {
    WriteTransaction t = a_->begin();
    lost = *t.create_table("lost");
    REQUIRE_OK(t.put(lost, "key", "value"));
  }
  CHECK(a_->open_table("lost").status().code() == StatusCode::not_found);
  WriteTransaction t = a_->begin();
  REQUIRE_OK(t.put(lost, "key", "value"));
  CHECK(t.commit().code() == StatusCode::not_found);

  WriteTransaction overflows = a_->begin();
  Table numbers = *overflows.create_table("numbers", {.numbers = NumberType::i64});
  REQUIRE_OK(overflows.accumulate(numbers, "sum", INT64_MAX));
  REQUIRE_OK(overflows.accumulate(numbers, "sum", 1));
  CHECK(overflows.commit().code() == StatusCode::invalid_argument);
  CHECK(a_->open_table("numbers").status().code() == StatusCode::not_found);
  CHECK(a_->tables().size() == 1u);
}

// Whatever call to the file system is the last: the table and its rows, or neither.
TEST_CASE("CreateInTransactionCrashTest.TheTableNeverComesWithoutItsRows",
          "[CreateInTransactionCrashTest]") {
  for (uint64_t call = 1;; ++call) {
    MemoryFileSystem fs;
    Options options;
    options.file_system = &fs;
    auto db = Database::open("/db", options);
    REQUIRE_OK(db.status());
    const uint64_t before = fs.calls();
    fs.fail_call(call, StatusCode::io_error, /*forever=*/true);
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*t.create_table("t"), "key", "value"));
    const bool committed = t.commit().ok();
    const bool failed = fs.calls() - before >= call;
    for (CrashPolicy policy : {CrashPolicy::lose_unsynced, CrashPolicy::keep_unsynced}) {
      auto after = fs.crash(call, policy);
      options.file_system = after.get();
      auto again = Database::open("/db", options);
      REQUIRE_OK(again.status());
      auto table = (*again)->open_table("t");
      if (committed) REQUIRE_OK(table.status());
      if (table.ok()) CHECK(*(*again)->snapshot().count(*table) == 1u);
    }
    if (!failed) {
      CHECK(committed);
      break;
    }
  }
}

TEST_CASE_METHOD(CreateInTransactionTest,
                 "CreateInTransactionTest.OneOfTwoThatCreateTheSameTableFailsAlone",
                 "[CreateInTransactionTest]") {
  WriteTransaction first = a_->begin(), second = a_->begin();
  REQUIRE_OK(first.put(*first.create_table("t"), "first", ""));
  REQUIRE_OK(second.put(*second.create_table("t"), "second", ""));
  CHECK(second.create_table("t").status().code() == StatusCode::already_exists);
  CHECK(second.create_table("in a").status().code() == StatusCode::already_exists);
  CHECK(second.create_table("").status().code() == StatusCode::invalid_argument);
  REQUIRE_OK(first.commit());
  Status s = second.commit();
  CHECK_MESSAGE(s.code() == StatusCode::already_exists, s.to_string());
  Table t = *a_->open_table("t");
  CHECK(*a_->snapshot().count(t) == 1u);
  CHECK((*a_->snapshot().get(t, "first")).has_value());
}

}  // namespace
}  // namespace stride::test

// Handles of tables, in the hands of the wrong database, opening or transaction.
#include "storage/memory_file_system.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

class HandleIdentityTest : public ::testing::Test {
 protected:
  HandleIdentityTest() : a_(open("a")), b_(open("b")) {
    of_a_ = *a_->create_table("in a");
    of_b_ = *b_->create_table("in b");
  }
  std::unique_ptr<Database> open(const std::string& name) {
    return std::move(*Database::open(directory_.file(name)));
  }
  static void expect_refused(const Status& s, const std::string& what) {
    EXPECT_EQ(s.code(), StatusCode::invalid_argument) << s.to_string();
    EXPECT_NE(s.to_string().find(what), std::string::npos) << s.to_string();
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Database> a_, b_;
  Table of_a_, of_b_;
};

TEST_F(HandleIdentityTest, ATableOfAnotherDatabaseIsRefused) {
  EXPECT_EQ(of_a_.id(), of_b_.id());
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
  STRIDE_ASSERT_OK(t.put(of_b_, "key", "value"));
  STRIDE_ASSERT_OK(t.commit());
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
  EXPECT_EQ(*s.count(of_b_), 1u);
}

TEST_F(HandleIdentityTest, ATableOfAnEarlierOpeningIsRefused) {
  a_.reset();
  a_ = open("a");
  WriteTransaction t = a_->begin();
  expect_refused(t.put(of_a_, "key", "value"), "an earlier opening of " + directory_.file("a"));
  Table again = *a_->open_table("in a");
  STRIDE_ASSERT_OK(t.put(again, "key", "value"));
  STRIDE_ASSERT_OK(t.commit());
  EXPECT_EQ(*a_->snapshot().count(again), 1u);
}

class CreateInTransactionTest : public HandleIdentityTest {};

TEST_F(CreateInTransactionTest, TheTableComesWithItsRows) {
  WriteTransaction t = a_->begin();
  auto table = t.create_table("new", {.key_width = 3});
  STRIDE_ASSERT_OK(table.status());
  EXPECT_EQ(table->name(), "new");
  EXPECT_EQ(table->key_width(), 3u);
  STRIDE_ASSERT_OK(t.put(*table, "key", "value"));
  STRIDE_ASSERT_OK(t.put(of_a_, "k", "v"));
  EXPECT_EQ(a_->open_table("new").status().code(), StatusCode::not_found);
  EXPECT_EQ(a_->snapshot().get(*table, "key").status().code(), StatusCode::not_found);
  STRIDE_ASSERT_OK(t.commit());
  EXPECT_EQ(text(**a_->snapshot().get(*table, "key")), "value");
  EXPECT_EQ(a_->open_table("new")->id(), table->id());
  a_.reset();
  a_ = open("a");
  EXPECT_EQ(text(**a_->snapshot().get(*a_->open_table("new"), "key")), "value");
  EXPECT_EQ(text(**a_->snapshot().get(*a_->open_table("in a"), "k")), "v");
}

TEST_F(CreateInTransactionTest, WithoutRowsItIsCreatedToo) {
  WriteTransaction t = a_->begin();
  STRIDE_ASSERT_OK(t.create_table("one").status());
  STRIDE_ASSERT_OK(t.create_table("two", {.numbers = NumberType::i64}).status());
  STRIDE_ASSERT_OK(t.commit());
  EXPECT_EQ(a_->tables().size(), 3u);
  EXPECT_EQ(a_->open_table("two")->numbers(), NumberType::i64);
}

TEST_F(CreateInTransactionTest, AllKindsOfChangesGoIntoATableThatIsCreated) {
  WriteTransaction t = a_->begin();
  Table rows = *t.create_table("rows"),
        numbers = *t.create_table("n", {.numbers = NumberType::i64});
  Rows keys({"a", "b"});
  STRIDE_ASSERT_OK(t.put(rows, keys.column(), keys.column()));
  STRIDE_ASSERT_OK(t.erase_range(rows, as_bytes("b"), std::nullopt));
  STRIDE_ASSERT_OK(t.erase(rows, "c"));
  uint64_t was_new = 0;
  STRIDE_ASSERT_OK(t.put_if_absent(rows, keys.column(), keys.column(), {&was_new, 1}));
  STRIDE_ASSERT_OK(t.accumulate(numbers, "sum", 3));
  STRIDE_ASSERT_OK(t.accumulate(numbers, "sum", 4));
  STRIDE_ASSERT_OK(t.commit());
  EXPECT_EQ(was_new, 2u);  // a was put, b erased
  EXPECT_EQ(*a_->snapshot().count(rows), 2u);
  int64_t sum = 0;
  std::memcpy(&sum, (*a_->snapshot().get(numbers, "sum"))->data(), sizeof sum);
  EXPECT_EQ(sum, 7);
}

TEST_F(CreateInTransactionTest, WhatIsAbortedOrFailsLeavesNoTable) {
  Table lost;
  {
    WriteTransaction t = a_->begin();
    lost = *t.create_table("lost");
    STRIDE_ASSERT_OK(t.put(lost, "key", "value"));
  }
  EXPECT_EQ(a_->open_table("lost").status().code(), StatusCode::not_found);
  WriteTransaction t = a_->begin();
  STRIDE_ASSERT_OK(t.put(lost, "key", "value"));
  EXPECT_EQ(t.commit().code(), StatusCode::not_found);

  WriteTransaction overflows = a_->begin();
  Table numbers = *overflows.create_table("numbers", {.numbers = NumberType::i64});
  STRIDE_ASSERT_OK(overflows.accumulate(numbers, "sum", INT64_MAX));
  STRIDE_ASSERT_OK(overflows.accumulate(numbers, "sum", 1));
  EXPECT_EQ(overflows.commit().code(), StatusCode::invalid_argument);
  EXPECT_EQ(a_->open_table("numbers").status().code(), StatusCode::not_found);
  EXPECT_EQ(a_->tables().size(), 1u);
}

// Whatever call to the file system is the last: the table and its rows, or neither.
TEST(CreateInTransactionCrashTest, TheTableNeverComesWithoutItsRows) {
  for (uint64_t call = 1;; ++call) {
    MemoryFileSystem fs;
    Options options;
    options.file_system = &fs;
    auto db = Database::open("/db", options);
    STRIDE_ASSERT_OK(db.status());
    const uint64_t before = fs.calls();
    fs.fail_call(call, StatusCode::io_error, /*forever=*/true);
    WriteTransaction t = (*db)->begin();
    STRIDE_ASSERT_OK(t.put(*t.create_table("t"), "key", "value"));
    const bool committed = t.commit().ok();
    const bool failed = fs.calls() - before >= call;
    for (CrashPolicy policy : {CrashPolicy::lose_unsynced, CrashPolicy::keep_unsynced}) {
      auto after = fs.crash(call, policy);
      options.file_system = after.get();
      auto again = Database::open("/db", options);
      STRIDE_ASSERT_OK(again.status());
      auto table = (*again)->open_table("t");
      if (committed) STRIDE_ASSERT_OK(table.status());
      if (table.ok()) EXPECT_EQ(*(*again)->snapshot().count(*table), 1u);
    }
    if (!failed) {
      EXPECT_TRUE(committed);
      break;
    }
  }
}

TEST_F(CreateInTransactionTest, OneOfTwoThatCreateTheSameTableFailsAlone) {
  WriteTransaction first = a_->begin(), second = a_->begin();
  STRIDE_ASSERT_OK(first.put(*first.create_table("t"), "first", ""));
  STRIDE_ASSERT_OK(second.put(*second.create_table("t"), "second", ""));
  EXPECT_EQ(second.create_table("t").status().code(), StatusCode::already_exists);
  EXPECT_EQ(second.create_table("in a").status().code(), StatusCode::already_exists);
  EXPECT_EQ(second.create_table("").status().code(), StatusCode::invalid_argument);
  STRIDE_ASSERT_OK(first.commit());
  Status s = second.commit();
  EXPECT_EQ(s.code(), StatusCode::already_exists) << s.to_string();
  Table t = *a_->open_table("t");
  EXPECT_EQ(*a_->snapshot().count(t), 1u);
  EXPECT_TRUE((*a_->snapshot().get(t, "first")).has_value());
}

}  // namespace
}  // namespace stride::test

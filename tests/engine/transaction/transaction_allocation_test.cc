// Memory runs out in a transaction: every allocation fails in turn, alone or with all that follow.
// The call says so, and the commit is whole or not there.
#include <string>

#include "tests/engine/transaction/transaction_fixture.h"
#include "tests/support/failing_allocations.h"

namespace stride::test {
namespace {

class TransactionAllocationTest : protected TransactionFixture {
 protected:
  TransactionAllocationTest() {
    only_one = one_;
    options_.log_file = false;  // its thread would take what is to fail here
    open();
    a_ = *db_->open_table("a");
    b_ = *db_->open_table("b");
    for (int i = 0; i < 40; ++i) put(a_, "key" + std::to_string(i), "value");
  }

  const bool one_ = GENERATE(true, false);
  RunsWith name_{one_ ? "one" : "all that follow"};
};

Status read_all_ways(Transaction& t, const Table& table, const KeyColumn& queries) {
  STRIDE_TRY(t.get(table, "key1").status());
  GetResult got;
  STRIDE_TRY(t.get(table, queries, &got));
  LowerBoundResult bounds;
  STRIDE_TRY(t.lower_bound(table, queries, &bounds));
  STRIDE_TRY(t.upper_bound(table, queries, &bounds));
  STRIDE_TRY(t.previous(table, queries, &bounds));
  STRIDE_TRY(t.count(table, as_bytes("key2"), as_bytes("key3")).status());
  auto cursor = t.cursor(table, {.prefix = "key"});
  if (!cursor.ok()) return cursor.status();
  for (cursor->seek("key2"); cursor->valid(); cursor->next()) {
  }
  cursor->seek_for_previous("key3");
  cursor->previous();
  STRIDE_TRY(cursor->status());
  auto scan = t.scan(table, {.from = "key2", .to = "key3"});
  if (!scan.ok()) return scan.status();
  for (ScanBatch batch; scan->next(&batch);) {
  }
  return scan->status();
}

TEST_CASE_METHOD(TransactionAllocationTest, "TransactionAllocationTest.ACommitIsWholeOrNotThere",
                 "[TransactionAllocationTest]") {
  std::vector<std::string> names;
  for (int i = 0; i < 70; ++i) names.push_back("key" + std::to_string(i));
  const Rows queries(names);
  std::string before = "value";
  for (int64_t n = 0;; ++n) {
    INFO("allocation " + std::to_string(n));
    const std::string value = "v" + std::to_string(n);
    Status s;
    const bool failed = fail_allocation(n, [&] {
      Transaction t = db_->transaction();
      s = t.put(a_, "key7", value);
      if (s.ok()) s = read_all_ways(t, a_, queries.column());
      if (s.ok()) s = t.put(b_, "key7", value);
      if (s.ok()) s = t.erase_range(b_, as_bytes("x"), std::nullopt);
      if (s.ok()) s = t.get(b_, "key7").status();
      if (s.ok()) s = t.commit();
    });
    if (!s.ok()) REQUIRE_MESSAGE(s.code() == StatusCode::resource_exhausted, s.to_string());
    if (s.ok()) before = value;
    REQUIRE(stored(a_, "key7") == before);
    REQUIRE(stored(b_, "key7") == (before == "value" ? std::nullopt : std::optional(before)));
    if (failed) continue;
    REQUIRE_OK(s);
    REQUIRE(n > 20);
    break;
  }
  put(a_, "key7", "after");
  CHECK(stored(a_, "key7") == "after");
}

// A read that could not be noted must not be forgotten by the commit.
TEST_CASE_METHOD(TransactionAllocationTest,
                 "TransactionAllocationTest.ReadsThatFailAreNotForgotten",
                 "[TransactionAllocationTest]") {
  for (int64_t n = 0;; ++n) {
    INFO("allocation " + std::to_string(n));
    Transaction t = db_->transaction();
    REQUIRE_OK(t.put(b_, "k", "v"));
    Status read_status;
    const bool failed = fail_allocation(n, [&] { read_status = t.get(a_, "key1").status(); });
    put(a_, "key1", std::to_string(n));
    const Status s = t.commit();
    if (read_status.ok())
      REQUIRE(s.code() == StatusCode::conflict);
    else
      REQUIRE(read_status.code() == StatusCode::resource_exhausted);
    if (!failed) break;
  }
}

TEST_CASE_METHOD(TransactionAllocationTest,
                 "TransactionAllocationTest.WhatACursorHasPassedIsNotForgotten",
                 "[TransactionAllocationTest]") {
  for (int64_t n = 0;; ++n) {
    INFO("allocation " + std::to_string(n));
    Transaction t = db_->transaction();
    REQUIRE_OK(t.put(b_, "k", "v"));
    Status read_status;
    uint64_t steps = 0;
    const bool failed = fail_allocation(n, [&] {
      auto cursor = t.cursor(a_);
      read_status = cursor.status();
      if (!cursor.ok()) return;
      for (cursor->seek("key1"); cursor->valid() && steps < 10; cursor->next()) ++steps;
      read_status = cursor->status();
    });
    put(a_, "key10", std::to_string(n));
    const Status s = t.commit();
    if (read_status.ok())
      REQUIRE(s.code() == StatusCode::conflict);
    else
      REQUIRE(read_status.code() == StatusCode::resource_exhausted);
    // What it has seen of the key it may not rely on.
    if (steps > 1) REQUIRE_FALSE(s.ok());
    if (!failed) break;
  }
}

TEST_CASE_METHOD(TransactionAllocationTest,
                 "TransactionAllocationTest.MovesOfASnapshotsCursorTakeNoMemory",
                 "[TransactionAllocationTest]") {
  put_many(a_, 1000);
  REQUIRE_OK(db_->compact());
  erase(a_, "key3");
  auto cursor = db_->snapshot().cursor(a_);
  REQUIRE_OK(cursor);
  uint64_t steps = 0;
  CHECK_FALSE(fail_allocation(0, [&] {
    for (cursor->seek_to_first(); cursor->valid(); cursor->next()) ++steps;
    for (cursor->seek("key5"); cursor->valid(); cursor->previous()) ++steps;
    cursor->seek_for_previous("key9");
  }));
  CHECK_OK(cursor->status());
  CHECK(steps > 1000);
  CHECK(text(cursor->key()) == "key9");
}

}  // namespace
}  // namespace stride::test

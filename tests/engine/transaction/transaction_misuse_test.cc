// What must not be done with a transaction, and what becomes of it where it is.
#include <atomic>
#include <string>

#include "tests/engine/transaction/transaction_fixture.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

class TransactionMisuseTest : protected TransactionFixture {
 protected:
  static void check_closed(Transaction& t, const Table& table) {
    GetResult got;
    FindResult found;
    LowerBoundResult bounds;
    MatchResult matches;
    const Rows keys({"k"});
    for (const Status& s :
         {t.get(table, "k").status(), t.get(table, keys.column(), &got),
          t.find(table, keys.column(), &found), t.lower_bound(table, keys.column(), &bounds),
          t.scan(table).status(), t.iterate(table).status(), t.count(table).status(),
          t.match(table, keys.column(), &matches), t.match(table, as_bytes("k")).status(),
          t.inside(table, as_bytes("k")).status(), t.put(table, "k", "v"),
          t.put(table, keys.column(), keys.column()), t.erase(table, "k"),
          t.erase(table, keys.column()), t.erase_range(table, std::nullopt, std::nullopt),
          t.commit()})
      CHECK_MESSAGE(s.code() == StatusCode::closed, s.to_string());
    CHECK_FALSE(t.is_open());
    CHECK(t.staged_rows() == 0);
    t.abort();
  }
};

TEST_CASE_METHOD(TransactionMisuseTest, "TransactionMisuseTest.UseAfterTheEnd",
                 "[TransactionMisuseTest]") {
  put(a_, "k", "v");
  Transaction committed = db_->transaction();
  auto scan = committed.scan(a_);
  auto it = committed.iterate(a_, {.from = "k"});
  REQUIRE_OK(scan);
  REQUIRE_OK(it);
  REQUIRE_OK(committed.put(a_, "l", "v"));
  REQUIRE_OK(committed.commit());
  check_closed(committed, a_);
  ScanBatch batch;
  CHECK_FALSE(scan->next(&batch));
  CHECK(scan->status().code() == StatusCode::closed);
  it->next();
  CHECK_FALSE(it->valid());
  CHECK(it->status().code() == StatusCode::closed);

  Transaction aborted = db_->transaction();
  aborted.abort();
  check_closed(aborted, a_);
  Transaction from = db_->transaction();
  Transaction to = std::move(from);
  check_closed(from, a_);  // NOLINT: moved away
  CHECK(read(to, a_, "k") == "v");
  to = db_->transaction();
  CHECK(read(to, a_, "l") == "v");
}

TEST_CASE_METHOD(TransactionMisuseTest, "TransactionMisuseTest.ADatabaseThatIsClosed",
                 "[TransactionMisuseTest]") {
  put(a_, "k", "v");
  Transaction t = db_->transaction();
  Transaction reader = db_->transaction();
  CHECK(read(t, a_, "k") == "v");
  REQUIRE_OK(t.put(a_, "k", "w"));
  REQUIRE_OK(db_->close());
  CHECK(read(t, a_, "k") == "w");
  CHECK(t.commit().code() == StatusCode::closed);
  CHECK(db_->transaction().put(a_, "k", "w").code() == StatusCode::ok);
  Transaction late = db_->transaction();
  REQUIRE_OK(late.put(a_, "k", "w"));
  CHECK(late.commit().code() == StatusCode::closed);
  db_.reset();  // outlived by a transaction
  CHECK(read(reader, a_, "k") == "v");
  CHECK(keys_of(reader.scan(a_)).size() == 1);
  REQUIRE_OK(reader.put(a_, "k", "w"));
  CHECK(keys_of(reader.scan(a_)).size() == 1);
  CHECK(reader.commit().code() == StatusCode::closed);
  open();
  a_ = *db_->open_table("a");
  CHECK(stored(a_, "k") == "v");
}

TEST_CASE_METHOD(TransactionMisuseTest, "TransactionMisuseTest.ReadOnlyDatabases",
                 "[TransactionMisuseTest]") {
  put(a_, "k", "v");
  REQUIRE_OK(db_->close());
  options_.read_only = true;
  open();
  a_ = *db_->open_table("a");
  Transaction t = db_->transaction();
  CHECK(read(t, a_, "k") == "v");
  REQUIRE_OK(t.put(a_, "k", "w"));
  CHECK(read(t, a_, "k") == "w");
  CHECK(t.commit().code() == StatusCode::read_only);
  Transaction reader = db_->transaction();
  CHECK(read(reader, a_, "k") == "v");
  CHECK_OK(reader.commit());
}

TEST_CASE_METHOD(TransactionMisuseTest, "TransactionMisuseTest.TablesThatGo",
                 "[TransactionMisuseTest]") {
  put(a_, "k", "v");
  Transaction wrote = db_->transaction(), looked = db_->transaction(), renamed = db_->transaction();
  REQUIRE_OK(wrote.put(a_, "k", "w"));
  CHECK(read(looked, a_, "k") == "v");
  REQUIRE_OK(looked.put(b_, "k", "w"));
  CHECK_FALSE(read(renamed, b_, "k"));
  REQUIRE_OK(renamed.put(b_, "r", "w"));
  REQUIRE_OK(db_->rename_table("b", "c"));
  REQUIRE_OK(renamed.commit());
  CHECK(stored(b_, "r") == "w");
  REQUIRE_OK(db_->drop_table("a"));
  CHECK(read(looked, a_, "k") == "v");
  CHECK(wrote.commit().code() == StatusCode::not_found);
  const Status s = looked.commit();
  CHECK(s.code() == StatusCode::not_found);
  CHECK_MESSAGE(s.message().find("'a'") != std::string::npos, s.to_string());
  CHECK_FALSE(stored(b_, "k"));

  // One that comes later is not in the snapshot, and can be written.
  Transaction t = db_->transaction();
  Table later = *db_->create_table("later");
  CHECK(t.get(later, "k").status().code() == StatusCode::not_found);
  REQUIRE_OK(t.put(later, "k", "v"));
  REQUIRE_OK(t.erase_range(later, std::nullopt, as_bytes("a")));
  CHECK(t.get(later, "k").status().code() == StatusCode::not_found);
  REQUIRE_OK(t.commit());
  CHECK(stored(later, "k") == "v");
}

TEST_CASE_METHOD(TransactionMisuseTest, "TransactionMisuseTest.TablesOfOthers",
                 "[TransactionMisuseTest]") {
  MemoryFileSystem files;
  auto other = Database::open("/db", {.threads = 2, .file_system = &files});
  REQUIRE_OK(other);
  Table theirs = *(*other)->create_table("a");
  Transaction t = db_->transaction();
  CHECK(t.get(theirs, "k").status().code() == StatusCode::invalid_argument);
  CHECK(t.put(theirs, "k", "v").code() == StatusCode::invalid_argument);
  CHECK(t.get(Table(), "k").status().code() == StatusCode::invalid_argument);
  REQUIRE_OK(t.put(a_, "k", "v"));
  CHECK(t.get(theirs, "k").status().code() == StatusCode::invalid_argument);
  CHECK(t.get(Table(), "k").status().code() == StatusCode::invalid_argument);
  CHECK(t.put(a_, std::string(70'000, 'k'), "v").code() == StatusCode::invalid_argument);
  CHECK(t.match(a_, as_bytes("abcd")).status().code() == StatusCode::invalid_argument);
  REQUIRE_OK(t.commit());
}

// One thread is in a long call, the others are refused meanwhile.
TEST_CASE_METHOD(TransactionMisuseTest, "TransactionMisuseTest.TwoThreadsAtOnce",
                 "[TransactionMisuseTest]") {
  put_many(a_);
  Transaction t = db_->transaction();
  std::atomic<uint64_t> refused{0}, answered{0};
  TestThreads threads;
  for (int i = 0; i < 2; ++i)
    threads.start([&] {
      while (refused == 0 || answered == 0) {
        auto count = t.count(a_);
        CHECK_MESSAGE((count.ok() || count.status().code() == StatusCode::invalid_argument),
                      count.status().to_string());
        if (count.ok()) CHECK_MESSAGE(*count == 20'000, *count);
        ++(count.ok() ? answered : refused);
      }
    });
  threads.join();
  // One after the other they may use it.
  REQUIRE_OK(t.put(a_, "k", "1"));
  run_elsewhere([&] { REQUIRE_OK(t.put(a_, "k", "2")); });
  REQUIRE_OK(t.put(a_, "l", "3"));
  CHECK(read(t, a_, "k") == "2");
  run_elsewhere([&] { REQUIRE_OK(t.put(a_, "l", "4")); });
  REQUIRE_OK(t.commit());
  CHECK(stored(a_, "k") == "2");
  CHECK(stored(a_, "l") == "4");
}

TEST_CASE_METHOD(TransactionMisuseTest, "TransactionMisuseTest.AStopOfALargeCommit",
                 "[TransactionMisuseTest]") {
  Transaction t = db_->transaction();
  CHECK_FALSE(read(t, a_, "k"));
  for (int i = 0; i < 4; ++i) REQUIRE_OK(t.put(a_, std::to_string(i), std::string(1 << 20, 'v')));
  CommitOptions options;
  options.progress = [](const CommitProgress&) { return false; };
  CHECK(t.commit(options).code() == StatusCode::cancelled);
  CHECK_FALSE(stored(a_, "1"));

  Transaction reported = db_->transaction();
  CHECK_FALSE(read(reported, a_, "k"));
  REQUIRE_OK(reported.put(a_, "k", "v"));
  CommitReport report;
  REQUIRE_OK(reported.commit(CommitOptions(), &report));
  CHECK(report.keys.at("a") == 1);
}

}  // namespace
}  // namespace stride::test

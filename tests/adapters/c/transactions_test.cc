// Transactions that read, through the C interface; the engine's tests look at what conflicts.
#include <string>

#include "adapters/c/stridedb_columns.h"
#include "adapters/c/stridedb_cursors.h"
#include "adapters/c/stridedb_transactions.h"
#include "tests/support/c_fixture.h"

namespace stride::test {
namespace {

class CTransactionsTest : public CTest {
 protected:
  stride_transaction* begin() {
    stride_transaction* t = nullptr;
    REQUIRE_C_OK(stride_begin_reading(db_, &t));
    return t;
  }
  std::string get(stride_transaction* t, const std::string& key) {
    stride_bytes value = {};
    CHECK_C_OK(stride_transaction_get_one(t, table_, key.data(), key.size(), &value));
    return value.data ? std::string(static_cast<const char*>(value.data), value.size) : "none";
  }
  void put_in(stride_transaction* t, const std::string& key, const std::string& value) {
    CHECK_C_OK(stride_put_one(t, table_, key.data(), key.size(), value.data(), value.size()));
  }
};

TEST_CASE_METHOD(CTransactionsTest, "CTransactionsTest.ReadsItsChanges", "[CTransactionsTest]") {
  put(table_, {"a", "b", "c"}, {"1", "2", "3"});
  stride_transaction* t = begin();
  put_in(t, "b", "20");
  const CRows erased({"c"});
  const stride_column gone = erased.column();
  CHECK_C_OK(stride_erase(t, table_, &gone));
  CHECK(get(t, "b") == "20");
  CHECK(get(t, "c") == "none");

  stride_values* values = nullptr;
  CHECK_C_OK(stride_values_create(&values));
  const CRows queries({"a", "b", "c"});
  const stride_column keys = queries.column();
  CHECK_C_OK(stride_transaction_get(t, table_, &keys, values));
  stride_column found = {};
  const uint64_t* validity = nullptr;
  CHECK_C_OK(stride_values_read(values, &found, &validity));
  CHECK(row_of(found, 1) == "20");
  CHECK((bit(validity, 0) && bit(validity, 1) && !bit(validity, 2)));
  CHECK_C_OK(stride_values_release(values));

  uint64_t count = 0;
  CHECK_C_OK(stride_transaction_count(t, table_, &count));
  CHECK(count == 2u);
  stride_scan* scan = nullptr;
  CHECK_C_OK(stride_transaction_scan(t, table_, nullptr, &scan));
  stride_column k = {}, v = {};
  CHECK_C_OK(stride_scan_next(scan, &k, &v));
  CHECK(row_of(k, 0) == "a");

  const stride_bytes from = bytes_of("a"), to = bytes_of("b");
  CHECK_C_OK(stride_erase_range(t, table_, &from, &to));
  CHECK(get(t, "a") == "none");
  CHECK_C_OK(stride_commit(t, STRIDE_DURABILITY_FLUSH));
  CHECK_C_ERROR(stride_scan_next(scan, &k, &v), STRIDE_CLOSED, "transaction");
  CHECK_C_OK(stride_scan_release(scan));
  CHECK(this->scan(table_) == Strings{"b"});
}

TEST_CASE_METHOD(CTransactionsTest, "CTransactionsTest.Conflicts", "[CTransactionsTest]") {
  put(table_, {"a", "b"}, {"1", "2"});
  stride_transaction* t = begin();
  CHECK(get(t, "a") == "1");
  put_in(t, "b", "3");
  put(table_, {"a"}, {"changed"});
  CHECK(get(t, "a") == "1");
  CHECK_C_ERROR(stride_commit(t, STRIDE_DURABILITY_DEFAULT), STRIDE_CONFLICT, "'a'");
  CHECK_C_ERROR(stride_abort(t), STRIDE_INVALID_ARGUMENT, "transaction");
  t = begin();
  CHECK(get(t, "b") == "2");
  put_in(t, "b", "4");
  stride_commit_report* report = nullptr;
  CHECK_C_OK(stride_commit_with(t, nullptr, &report));
  uint64_t keys = 0;
  CHECK_C_OK(stride_commit_report_keys(report, "t", &keys));
  CHECK(keys == 1u);
  CHECK_C_OK(stride_commit_report_release(report));
}

// What a cursor has passed over counts as read, and the transaction's own rows are there.
TEST_CASE_METHOD(CTransactionsTest, "CTransactionsTest.Cursors", "[CTransactionsTest]") {
  put(table_, {"a", "c", "e"}, {"1", "3", "5"});
  for (const bool inside : {false, true}) {
    stride_transaction* t = begin();
    put_in(t, "b", "2");
    stride_cursor* cursor = nullptr;
    stride_bytes key = {}, value = {};
    CHECK_C_OK(stride_transaction_cursor(t, table_, nullptr, &cursor));
    CHECK_C_OK(stride_cursor_seek(cursor, "b", 1, &key, &value));
    CHECK(std::string(static_cast<const char*>(value.data), value.size) == "2");
    CHECK_C_OK(stride_cursor_next(cursor, &key, nullptr));
    CHECK(std::string(static_cast<const char*>(key.data), key.size) == "c");
    put(table_, {inside ? "bb" : "d"}, {"other"});
    if (inside)
      CHECK_C_ERROR(stride_commit(t, STRIDE_DURABILITY_DEFAULT), STRIDE_CONFLICT, "'bb'");
    else
      CHECK_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
    CHECK_C_ERROR(stride_cursor_next(cursor, &key, nullptr), STRIDE_CLOSED, "transaction");
    CHECK_C_OK(stride_cursor_release(cursor));
  }
  stride_transaction* writing = nullptr;
  REQUIRE_C_OK(stride_begin(db_, &writing));
  stride_cursor* none = nullptr;
  CHECK_C_ERROR(stride_transaction_cursor(writing, table_, nullptr, &none), STRIDE_INVALID_ARGUMENT,
                "does not read");
  CHECK_C_OK(stride_abort(writing));
}

TEST_CASE_METHOD(CTransactionsTest, "CTransactionsTest.BadArguments", "[CTransactionsTest]") {
  stride_transaction* t = begin();
  stride_transaction* writing = nullptr;
  REQUIRE_C_OK(stride_begin(db_, &writing));
  stride_bytes value = {};
  uint64_t count = 0;
  CHECK_C_ERROR(stride_begin_reading(db_, nullptr), STRIDE_INVALID_ARGUMENT, "transaction");
  CHECK_C_ERROR(stride_transaction_get_one(writing, table_, "k", 1, &value),
                STRIDE_INVALID_ARGUMENT, "does not read");
  CHECK_C_ERROR(stride_transaction_get_one(t, table_, "k", 1, nullptr), STRIDE_INVALID_ARGUMENT,
                "value");
  CHECK_C_ERROR(stride_transaction_get_one(t, table_, nullptr, 1, &value), STRIDE_INVALID_ARGUMENT,
                "key");
  CHECK_C_ERROR(stride_transaction_count(t, table_, nullptr), STRIDE_INVALID_ARGUMENT, "keys");
  CHECK_C_ERROR(stride_transaction_count(nullptr, table_, &count), STRIDE_INVALID_ARGUMENT,
                "transaction");
  CHECK_C_ERROR(stride_transaction_scan(t, table_, nullptr, nullptr), STRIDE_INVALID_ARGUMENT,
                "scan");
  const CRows rows({"k"});
  const stride_column column = rows.column();
  CHECK_C_ERROR(stride_put_view(t, table_, &column, &column), STRIDE_INVALID_ARGUMENT, "reads");
  stride_table* made = nullptr;
  CHECK_C_ERROR(stride_table_create_in(t, "new", nullptr, &made), STRIDE_INVALID_ARGUMENT, "reads");
  CHECK_C_ERROR(stride_table_rename_in(t, table_, "new"), STRIDE_INVALID_ARGUMENT, "reads");
  CHECK_C_ERROR(stride_accumulate_one(t, table_, "k", 1, 1), STRIDE_INVALID_ARGUMENT, "reads");
  CHECK_C_OK(stride_abort(writing));
  CHECK_C_OK(stride_abort(t));
}

TEST_CASE_METHOD(CTransactionsTest, "CTransactionsTest.ADatabaseThatIsClosed",
                 "[CTransactionsTest]") {
  put(table_, {"a"}, {"1"});
  stride_transaction* t = begin();
  put_in(t, "b", "2");
  CHECK(get(t, "a") == "1");
  CHECK_C_OK(stride_close(db_));
  CHECK(get(t, "a") == "1");  // it reads on
  CHECK_C_ERROR(stride_commit(t, STRIDE_DURABILITY_DEFAULT), STRIDE_CLOSED, "");
  REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &db_));
}

}  // namespace
}  // namespace stride::test

// Threads with transactions and results of their own, on one table.
#include <atomic>

#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

using CThreadsTest = CTest;

void run_threads(int n, const std::function<void(int)>& body) {
  TestThreads threads;
  for (int i = 0; i < n; ++i) threads.start([&body, i] { body(i); });
  threads.join();
}

std::string key_of(int thread, int i) { return std::to_string(thread) + ":" + std::to_string(i); }

TEST_CASE_METHOD(CThreadsTest, "CThreadsTest.TransactionsOfTheirOwnOnOneTable", "[CThreadsTest]") {
  constexpr int threads = 4, commits = 5, rows = 500;
  run_threads(threads, [&](int thread) {
    for (int commit = 0; commit < commits; ++commit) {
      Strings keys;
      for (int i = 0; i < rows; ++i) keys.push_back(key_of(thread, commit * rows + i));
      stride_transaction* t;
      CRows k(keys);
      stride_column column = k.column();
      REQUIRE_C_OK(stride_begin(db_, &t));
      REQUIRE_C_OK(stride_put(t, table_, &column, &column));
      if (commit % 2) REQUIRE_C_OK(stride_put_one(t, table_, "shared", 6, &thread, sizeof thread));
      REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_FLUSH));
      // A failure in each thread, with an error of its own.
      std::string name = "none" + std::to_string(thread);
      stride_table* none;
      CHECK_C_ERROR(stride_table_open(db_, name.c_str(), &none), STRIDE_NOT_FOUND, name);
    }
  });
  uint64_t keys = 0;
  CHECK_C_OK(stride_count(snapshot(), table_, &keys));
  CHECK(keys == uint64_t{threads} * commits * rows + 1);
}

// One thread goes on with what another has begun: the last change counts, whose ever it is.
TEST_CASE_METHOD(CThreadsTest, "CThreadsTest.ATransactionIsHandedOver", "[CThreadsTest]") {
  stride_transaction* t;
  REQUIRE_C_OK(stride_begin(db_, &t));
  auto put_one = [&](const char* key, char value) {
    CHECK_C_OK(stride_put_one(t, table_, key, 1, &value, 1));
  };
  stride_bytes from = {"r", 1}, to = {"s", 1};
  run_elsewhere([&] { put_one("z", '0'); });
  put_one("a", '0');
  for (char value = '1'; value <= '5'; ++value) {
    if (value % 2) {
      run_elsewhere([&] { put_one("k", value); });
    } else {
      put_one("k", value);
    }
  }
  run_elsewhere([&] { put_one("r", '1'); });
  CHECK_C_OK(stride_erase_range(t, table_, &from, &to));
  run_elsewhere([&] { put_one("r", '2'); });
  REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_FLUSH));
  stride_bytes value;
  for (auto [key, wanted] : {std::pair{"k", '5'}, {"r", '2'}, {"a", '0'}, {"z", '0'}}) {
    REQUIRE_C_OK(stride_get_one(snapshot(), table_, key, 1, &value));
    REQUIRE_MESSAGE(value.size == 1u, key);
    CHECK_MESSAGE(*static_cast<const char*>(value.data) == wanted, key);
  }
}

TEST_CASE_METHOD(CThreadsTest, "CThreadsTest.OneSnapshotAndResultsOfTheirOwn", "[CThreadsTest]") {
  Strings keys;
  for (int i = 0; i < 20'000; ++i) keys.push_back(key_of(0, i));
  put(table_, keys, keys);
  snapshot();
  run_threads(4, [&](int thread) {
    stride_values* values;
    REQUIRE_C_OK(stride_values_create(&values));
    CRows k(keys);
    stride_column column = k.column(), got;
    const uint64_t* validity;
    for (int i = 0; i < 5; ++i) {
      REQUIRE_C_OK(stride_get(snapshot_, table_, &column, values));
      REQUIRE_C_OK(stride_values_read(values, &got, &validity));
      uint64_t row = uint64_t(thread) * 1000 + uint64_t(i);
      CHECK_MESSAGE(bit(validity, row), "row " << row);
      CHECK_MESSAGE(row_of(got, row) == keys[row], "row " << row);
    }
    REQUIRE_C_OK(stride_values_release(values));
  });
}

TEST_CASE_METHOD(CThreadsTest, "CThreadsTest.HandlesAreMadeAndReleasedByAll", "[CThreadsTest]") {
  run_threads(4, [&](int) {
    for (int i = 0; i < 2000; ++i) {
      stride_snapshot* s;
      uint64_t keys;
      REQUIRE_C_OK(stride_snapshot_take(db_, &s));
      REQUIRE_C_OK(stride_count(s, table_, &keys));
      REQUIRE_C_OK(stride_snapshot_release(s));
    }
  });
}

// A transaction that two threads use at once: each call works or says so, and what worked is there.
TEST_CASE_METHOD(CThreadsTest, "CThreadsTest.OneTransactionForTwoThreads", "[CThreadsTest]") {
  stride_transaction* t;
  REQUIRE_C_OK(stride_begin(db_, &t));
  std::atomic<uint64_t> staged{0};
  run_threads(2, [&](int thread) {
    for (int i = 0; i < 2000; ++i) {
      std::string key = key_of(thread, i);
      int status = stride_put_one(t, table_, key.data(), key.size(), nullptr, 0);
      if (status == STRIDE_OK) {
        ++staged;
      } else {
        CHECK_MESSAGE(status == STRIDE_INVALID_ARGUMENT, stride_status_name(status));
        const std::string_view message = stride_last_error()->message;
        CHECK_MESSAGE(message == "another thread is using the handle", key);
      }
    }
  });
  REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_FLUSH));
  uint64_t keys = 0;
  CHECK_C_OK(stride_count(snapshot(), table_, &keys));
  CHECK(keys == staged.load());
}

}  // namespace
}  // namespace stride::test

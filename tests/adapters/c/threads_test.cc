// Threads with transactions and results of their own, on one table.
#include <atomic>
#include <thread>

#include "tests/support/c_fixture.h"

namespace stride::test {
namespace {

using CThreadsTest = CTest;

void run_threads(int n, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back(body, i);
  for (std::thread& t : threads) t.join();
}

std::string key_of(int thread, int i) { return std::to_string(thread) + ":" + std::to_string(i); }

TEST_F(CThreadsTest, TransactionsOfTheirOwnOnOneTable) {
  constexpr int threads = 4, commits = 5, rows = 500;
  run_threads(threads, [&](int thread) {
    for (int commit = 0; commit < commits; ++commit) {
      Strings keys;
      for (int i = 0; i < rows; ++i) keys.push_back(key_of(thread, commit * rows + i));
      stride_transaction* t;
      CRows k(keys);
      stride_column column = k.column();
      ASSERT_C_OK(stride_begin(db_, &t));
      ASSERT_C_OK(stride_put(t, table_, &column, &column));
      if (commit % 2) ASSERT_C_OK(stride_put_one(t, table_, "shared", 6, &thread, sizeof thread));
      ASSERT_C_OK(stride_commit(t, STRIDE_DURABILITY_FLUSH));
      // A failure in each thread, with an error of its own.
      std::string name = "none" + std::to_string(thread);
      stride_table* none;
      EXPECT_C_ERROR(stride_table_open(db_, name.c_str(), &none), STRIDE_NOT_FOUND, name);
    }
  });
  uint64_t keys = 0;
  EXPECT_C_OK(stride_count(snapshot(), table_, &keys));
  EXPECT_EQ(keys, uint64_t{threads} * commits * rows + 1);
}

// One thread goes on with what another has begun: the last change counts, whose ever it is.
TEST_F(CThreadsTest, ATransactionIsHandedOver) {
  stride_transaction* t;
  ASSERT_C_OK(stride_begin(db_, &t));
  auto elsewhere = [](const std::function<void()>& work) { std::thread(work).join(); };
  auto put_one = [&](const char* key, char value) {
    EXPECT_C_OK(stride_put_one(t, table_, key, 1, &value, 1));
  };
  stride_bytes from = {"r", 1}, to = {"s", 1};
  elsewhere([&] { put_one("z", '0'); });
  put_one("a", '0');
  for (char value = '1'; value <= '5'; ++value) {
    if (value % 2) {
      elsewhere([&] { put_one("k", value); });
    } else {
      put_one("k", value);
    }
  }
  elsewhere([&] { put_one("r", '1'); });
  EXPECT_C_OK(stride_erase_range(t, table_, &from, &to));
  elsewhere([&] { put_one("r", '2'); });
  ASSERT_C_OK(stride_commit(t, STRIDE_DURABILITY_FLUSH));
  stride_bytes value;
  for (auto [key, wanted] : {std::pair{"k", '5'}, {"r", '2'}, {"a", '0'}, {"z", '0'}}) {
    ASSERT_C_OK(stride_get_one(snapshot(), table_, key, 1, &value));
    ASSERT_EQ(value.size, 1u) << key;
    EXPECT_EQ(*static_cast<const char*>(value.data), wanted) << key;
  }
}

TEST_F(CThreadsTest, OneSnapshotAndResultsOfTheirOwn) {
  Strings keys;
  for (int i = 0; i < 20'000; ++i) keys.push_back(key_of(0, i));
  put(table_, keys, keys);
  snapshot();
  run_threads(4, [&](int thread) {
    stride_values* values;
    ASSERT_C_OK(stride_values_create(&values));
    CRows k(keys);
    stride_column column = k.column(), got;
    const uint64_t* validity;
    for (int i = 0; i < 5; ++i) {
      ASSERT_C_OK(stride_get(snapshot_, table_, &column, values));
      ASSERT_C_OK(stride_values_read(values, &got, &validity));
      uint64_t row = uint64_t(thread) * 1000 + uint64_t(i);
      EXPECT_TRUE(bit(validity, row));
      EXPECT_EQ(row_of(got, row), keys[row]);
    }
    ASSERT_C_OK(stride_values_release(values));
  });
}

TEST_F(CThreadsTest, HandlesAreMadeAndReleasedByAll) {
  run_threads(4, [&](int) {
    for (int i = 0; i < 2000; ++i) {
      stride_snapshot* s;
      uint64_t keys;
      ASSERT_C_OK(stride_snapshot_take(db_, &s));
      ASSERT_C_OK(stride_count(s, table_, &keys));
      ASSERT_C_OK(stride_snapshot_release(s));
    }
  });
}

// A transaction that two threads use at once: each call works or says so, and what worked is there.
TEST_F(CThreadsTest, OneTransactionForTwoThreads) {
  stride_transaction* t;
  ASSERT_C_OK(stride_begin(db_, &t));
  std::atomic<uint64_t> staged{0};
  run_threads(2, [&](int thread) {
    for (int i = 0; i < 2000; ++i) {
      std::string key = key_of(thread, i);
      int status = stride_put_one(t, table_, key.data(), key.size(), nullptr, 0);
      if (status == STRIDE_OK) {
        ++staged;
      } else {
        EXPECT_EQ(status, STRIDE_INVALID_ARGUMENT);
        EXPECT_STREQ(stride_last_error()->message, "another thread is using the handle");
      }
    }
  });
  ASSERT_C_OK(stride_commit(t, STRIDE_DURABILITY_FLUSH));
  uint64_t keys = 0;
  EXPECT_C_OK(stride_count(snapshot(), table_, &keys));
  EXPECT_EQ(keys, staged.load());
}

}  // namespace
}  // namespace stride::test

// What a caller may do wrong beside wrong handles and NULL: each is a status.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

class CMisuseTest : public CTest {
 protected:
  CMisuseTest() {
    stride_table_options options;
    REQUIRE_C_OK(stride_table_options_init(&options, sizeof options));
    options.address_bits = 32;
    REQUIRE_C_OK(stride_table_create_with(db_, "routes", &options, &routes_));
    options.address_bits = STRIDE_BYTE_STRINGS;
    REQUIRE_C_OK(stride_table_create_with(db_, "strings", &options, &strings_));
    REQUIRE_C_OK(stride_values_create(&values_));
    REQUIRE_C_OK(stride_references_create(&references_));
    put(table_, {"key"}, {"value"});
    put(strings_, {"key"}, {"value"});
    snapshot();
  }
  ~CMisuseTest() {
    CHECK_C_OK(stride_values_release(values_));
    CHECK_C_OK(stride_references_release(references_));
    CHECK_C_OK(stride_table_release(routes_));
    CHECK_C_OK(stride_table_release(strings_));
  }

  stride_table* routes_ = nullptr;
  stride_table* strings_ = nullptr;
  stride_values* values_ = nullptr;
  stride_references* references_ = nullptr;
};

TEST_CASE_METHOD(CMisuseTest, "CMisuseTest.OffsetsThatDescend", "[CMisuseTest]") {
  const char data[64] = {};
  const uint64_t of_good[4] = {0, 4, 8, 12};
  const stride_column good = {data, of_good, 3, 0};
  uint64_t offsets[4], validity[1];
  char memory[64];
  uint32_t bits[3];
  uint16_t lengths[3] = {8, 8, 8};
  stride_buffers buffers = {sizeof buffers, memory, sizeof memory, offsets, validity, 0};
  // The first has as many bytes in all as a good one; the fourth leads far out of the data.
  const uint64_t cases[][4] = {
      {0, 8, 4, 12}, {12, 8, 4, 0}, {0, 4, 0, 4}, {0, uint64_t{1} << 62, 8, 12}, {0, 0, 8, 4}};
  for (const auto& of_bad : cases) {
    INFO("row 1 from " + std::to_string(of_bad[1]) + " to " + std::to_string(of_bad[2]));
    const stride_column bad = {data, of_bad, 3, 0};
    stride_transaction* t;
    REQUIRE_C_OK(stride_begin(db_, &t));
    for (stride_table* table : {table_, routes_, strings_}) {
      CHECK(stride_put(t, table, &bad, &good) == invalid);
      CHECK(stride_put_view(t, table, &bad, &good) == invalid);
      CHECK(stride_erase(t, table, &bad) == invalid);
      CHECK(stride_erase_ranges(t, table, &bad, &good) == invalid);
      CHECK(stride_erase_ranges(t, table, &good, &bad) == invalid);
      CHECK_C_ERROR(stride_get(snapshot_, table, &bad, values_), invalid, "keys descend");
      CHECK_C_ERROR(stride_get_into(snapshot_, table, &bad, values_, &buffers), invalid,
                    "keys descend");
      CHECK_C_ERROR(stride_find(snapshot_, table, &bad, references_), invalid, "keys descend");
      CHECK(stride_match(snapshot_, table, &bad, values_) == invalid);
      CHECK(stride_match_into(snapshot_, table, &bad, values_, &buffers, bits) == invalid);
      CHECK(stride_match_references(snapshot_, table, &bad, references_) == invalid);
    }
    CHECK(stride_put(t, table_, &good, &bad) == invalid);
    CHECK(stride_put_view(t, table_, &good, &bad) == invalid);
    CHECK(stride_make_prefix_keys(&bad, lengths, 32, STRIDE_HOST_BITS_MASK, memory) == invalid);
    CHECK(stride_split_prefix_keys(&bad, 32, memory, lengths) == invalid);
    CHECK_C_OK(stride_abort(t));
  }
}

// As of a struct on the stack whose size nobody has set.
TEST_CASE_METHOD(CMisuseTest, "CMisuseTest.SizesThatWereNeverSet", "[CMisuseTest]") {
  struct {
    stride_table_info info;
    char behind[8192];
  } memory;
  stride_tables* tables;
  REQUIRE_C_OK(stride_table_list(db_, &tables));
  for (size_t size : {size_t{0}, size_t{8}, size_t{8000}, ~size_t{0}}) {
    std::memset(&memory, 'x', sizeof memory);
    memory.info.size = size;
    CHECK_C_ERROR(stride_tables_get(tables, 0, &memory.info), STRIDE_INVALID_ARGUMENT,
                  "sizeof(stride_table_info)");
    CHECK(std::string(memory.behind, sizeof memory.behind) ==
          std::string(sizeof memory.behind, 'x'));
  }
  CHECK_C_OK(stride_tables_release(tables));
  stride_options options;
  CHECK(stride_options_init(&options, ~size_t{0}) == STRIDE_INVALID_ARGUMENT);
}

// A table serves the database that it was opened with: the error names both.
TEST_CASE_METHOD(CMisuseTest, "CMisuseTest.ATableOfAnotherDatabase", "[CMisuseTest]") {
  const std::string other_path = directory_.file("other");
  stride_database* other;
  stride_table* foreign;
  REQUIRE_C_OK(stride_open(other_path.c_str(), nullptr, &other));
  REQUIRE_C_OK(stride_table_create(other, "foreign", 0, &foreign));
  stride_column column = {"key", nullptr, 1, 3};
  stride_bytes bound = {"a", 1}, value;
  uint64_t keys = 77, offsets[2], validity;
  char memory[16];
  stride_buffers buffers = {sizeof buffers, memory, sizeof memory, offsets, &validity, 0};
  stride_scan* scan;
  for (std::string told : {"belongs to the database " + other_path + ", not to " + path(),
                           "belongs to an earlier opening of " + path()}) {
    stride_transaction* t;
    REQUIRE_C_OK(stride_begin(db_, &t));
    CHECK_C_ERROR(stride_put(t, foreign, &column, &column), invalid, told);
    CHECK_C_ERROR(stride_put_view(t, foreign, &column, &column), invalid, told);
    CHECK_C_ERROR(stride_put_one(t, foreign, "k", 1, "v", 1), invalid, told);
    CHECK_C_ERROR(stride_erase(t, foreign, &column), invalid, told);
    CHECK_C_ERROR(stride_erase_range(t, foreign, &bound, nullptr), invalid, told);
    CHECK_C_ERROR(stride_erase_ranges(t, foreign, &column, &column), invalid, told);
    CHECK_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
    CHECK_C_ERROR(stride_count(snapshot(), foreign, &keys), invalid, told);
    CHECK_C_ERROR(stride_get_one(snapshot_, foreign, "key", 3, &value), invalid, told);
    CHECK_C_ERROR(stride_get(snapshot_, foreign, &column, values_), invalid, told);
    CHECK_C_ERROR(stride_get_into(snapshot_, foreign, &column, values_, &buffers), invalid, told);
    CHECK_C_ERROR(stride_find(snapshot_, foreign, &column, references_), invalid, told);
    CHECK_C_ERROR(stride_match(snapshot_, foreign, &column, values_), invalid, told);
    CHECK_C_ERROR(stride_scan_open(snapshot_, foreign, nullptr, &scan), invalid, told);
    CHECK(keys == 77u);
    CHECK(scan == nullptr);
    CHECK(this->scan(table_) == Strings{"key"});
    // Again with the fixture's own table, once its database has been closed and opened.
    CHECK_C_OK(stride_table_release(foreign));
    foreign = table_;
    CHECK_C_OK(stride_close(db_));
    REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &db_));
    REQUIRE_C_OK(stride_table_open(db_, "t", &table_));
  }
  CHECK_C_OK(stride_table_release(foreign));
  CHECK_C_OK(stride_close(other));
}

// A child gets STRIDE_CLOSED, and can release its copies, whatever other threads were doing.
TEST_CASE_METHOD(CMisuseTest, "CMisuseTest.ForkedChildren", "[CMisuseTest]") {
#if defined(__SANITIZE_THREAD__)
  SKIP("ThreadSanitizer knows no forks of processes with threads");
#endif
  TestThreads others;
  others.start([&] {
    while (!others.stopping()) {
      stride_snapshot* s;
      CHECK_C_OK(stride_snapshot_take(db_, &s));
      CHECK_C_OK(stride_snapshot_release(s));
    }
  });
  for (int round = 0; round < 300 && !has_failed(); ++round) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      stride_transaction* t;
      uint64_t keys;
      if (stride_count(snapshot_, table_, &keys) != STRIDE_CLOSED) _exit(1);
      if (stride_begin(db_, &t) != STRIDE_OK) _exit(2);
      if (stride_put_one(t, table_, "child", 5, "v", 1) != STRIDE_CLOSED) _exit(3);
      if (stride_commit(t, STRIDE_DURABILITY_DEFAULT) != STRIDE_CLOSED) _exit(4);
      if (stride_snapshot_release(snapshot_) != STRIDE_OK) _exit(5);
      if (stride_table_release(table_) != STRIDE_OK) _exit(6);
      _exit(stride_close(db_) == STRIDE_CLOSED ? 0 : 7);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_MESSAGE(WIFEXITED(status), "signal " << WTERMSIG(status) << " in round " << round);
    CHECK(WEXITSTATUS(status) == 0);
  }
  others.join();
  put(table_, {"parent"}, {"v"});
  CHECK(scan(table_) == (Strings{"key", "parent"}));
}

// Threads that end the same handle at once: one of them does.
TEST_CASE_METHOD(CMisuseTest, "CMisuseTest.EndedTwiceAtOnce", "[CMisuseTest]") {
  for (int round = 0; round < 200; ++round) {
    stride_transaction* t;
    stride_snapshot* s;
    REQUIRE_C_OK(stride_begin(db_, &t));
    REQUIRE_C_OK(stride_put_one(t, table_, "k", 1, "v", 1));
    REQUIRE_C_OK(stride_snapshot_take(db_, &s));
    std::atomic<int> ended{0}, released{0}, ready{0};
    TestThreads threads;
    for (int i = 0; i < 4; ++i) {
      threads.start([&, i] {
        for (++ready; ready < 4;) std::this_thread::yield();
        int status = i % 2 ? stride_abort(t) : stride_commit(t, STRIDE_DURABILITY_NONE);
        CHECK_MESSAGE((status == STRIDE_OK || status == STRIDE_INVALID_ARGUMENT), status);
        ended += status == STRIDE_OK;
        status = stride_snapshot_release(s);
        CHECK_MESSAGE((status == STRIDE_OK || status == STRIDE_INVALID_ARGUMENT), status);
        released += status == STRIDE_OK;
      });
    }
    threads.join();
    CHECK(ended == 1);
    CHECK(released == 1);
  }
}

// Calls that fail in the destructor of something that the thread made before its first call.
TEST_CASE("CErrorTest.LastsUntilTheThreadHasEnded", "[CErrorTest]") {
  struct Last {
    std::string* text;
    int* refused;
    ~Last() {
      const std::string name(300, 'n');
      stride_table* table;
      *refused += stride_open(name.c_str(), nullptr, nullptr) == STRIDE_INVALID_ARGUMENT;
      *refused += stride_table_open(nullptr, name.c_str(), &table) == STRIDE_INVALID_ARGUMENT;
      // Takes the memory that a destroyed error has given back.
      std::vector<std::string> others;
      for (size_t bytes = 16; bytes < 1024; bytes += 8) others.emplace_back(bytes, 'x');
      *text = stride_last_error()->text;
    }
  };
  std::string text;
  int refused = 0;
  std::thread([&] {
    thread_local Last last{nullptr, nullptr};
    last.text = &text;
    last.refused = &refused;
    refused += stride_open("x", nullptr, nullptr) == STRIDE_INVALID_ARGUMENT;
    stride_database* none;
    // A long message, which is not kept in the string itself.
    refused += stride_open(std::string(400, 'p').c_str(), nullptr, &none) != STRIDE_OK;
  }).join();
  CHECK(refused == 4);
  CHECK(text == "invalid_argument: the stride_database is NULL");
}

}  // namespace
}  // namespace stride::test

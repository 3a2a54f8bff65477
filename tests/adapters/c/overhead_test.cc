// What the C interface adds to a batch: next to nothing. Prints the ratio to the same calls in C++.
#include <algorithm>
#include <chrono>
#include <functional>
#include <random>

#include "adapters/c/objects.h"
#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& body) {
  auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double allowed = 1.25;

// The fastest of many runs in turn, C over C++. Of more runs where it is too much, for the machine
// may be busy.
double ratio(const std::function<void()>& c, const std::function<void()>& cpp) {
  double fastest_c = 1e9, fastest_cpp = 1e9;
  for (int i = 0; i < 60 || (i < 600 && fastest_c >= allowed * fastest_cpp); ++i) {
    fastest_c = std::min(fastest_c, seconds_of(c));
    fastest_cpp = std::min(fastest_cpp, seconds_of(cpp));
  }
  return fastest_c / fastest_cpp;
}

// A look at each row of 8 bytes.
[[gnu::noinline]] uint64_t first_bytes(const void* rows, uint64_t n) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; ++i) sum += static_cast<const unsigned char*>(rows)[i * 8];
  return sum;
}

class COverheadTest {
 protected:
  static constexpr uint64_t rows = 200'000, queries = 100'000;

  // One thread, which is disturbed less.
  COverheadTest() {
    std::mt19937_64 random(1);
    for (uint64_t& key : keys_) key = random();
    for (uint64_t i = 0; i < queries; ++i) queries_[i] = keys_[random() % rows];
    stride_options options;
    REQUIRE_C_OK(stride_options_init(&options, sizeof options));
    options.threads = 1;
    stride_column c{keys_.data(), nullptr, rows, 8};
    stride_transaction* u;
    REQUIRE_C_OK(stride_open(directory_.file("db").c_str(), &options, &c_));
    REQUIRE_C_OK(stride_table_create(c_, "t", 8, &c_table_));
    REQUIRE_C_OK(stride_begin(c_, &u));
    REQUIRE_C_OK(stride_put(u, c_table_, &c, &c));
    REQUIRE_C_OK(stride_commit(u, STRIDE_DURABILITY_FLUSH));
    REQUIRE_C_OK(stride_snapshot_take(c_, &c_snapshot_));
    REQUIRE_C_OK(stride_values_create(&values_));
    REQUIRE_C_OK(stride_references_create(&references_));
    // The same database behind both.
    cpp_ = static_cast<c::DatabaseObject*>(c::find_handle(c_, c::HandleKind::database))
               ->database.get();
    cpp_table_ = *cpp_->open_table("t");
  }
  ~COverheadTest() {
    CHECK_C_OK(stride_references_release(references_));
    CHECK_C_OK(stride_values_release(values_));
    CHECK_C_OK(stride_snapshot_release(c_snapshot_));
    CHECK_C_OK(stride_table_release(c_table_));
    CHECK_C_OK(stride_close(c_));
  }
  static void report(const char* what, double of) {
    std::printf("%-22s C takes %.4f of C++\n", what, of);
    CHECK_MESSAGE(of < allowed, what);
  }

  TemporaryDirectory directory_;
  std::vector<uint64_t> keys_ = std::vector<uint64_t>(rows);
  std::vector<uint64_t> queries_ = std::vector<uint64_t>(queries);
  Database* cpp_ = nullptr;
  Table cpp_table_;
  stride_database* c_ = nullptr;
  stride_table* c_table_ = nullptr;
  stride_snapshot* c_snapshot_ = nullptr;
  stride_values* values_ = nullptr;
  stride_references* references_ = nullptr;
};

TEST_CASE_METHOD(COverheadTest, "COverheadTest.OfBatchedCalls", "[COverheadTest]") {
  Snapshot snapshot = cpp_->snapshot();
  for (uint64_t n : {uint64_t{1000}, queries}) {
    Column q = Column::fixed(queries_.data(), 8, n);
    stride_column cq{queries_.data(), nullptr, n, 8};
    GetResult got;
    FindResult found;
    std::vector<char> data(n * 8);
    std::vector<uint64_t> offsets(n + 1), validity(n / 64 + 1);
    stride_buffers buffers{sizeof buffers, data.data(),     data.size(),
                           offsets.data(), validity.data(), 0};
    int repeat = n == queries ? 1 : 50;
    auto times = [&](auto body) {
      return [body, repeat] {
        for (int i = 0; i < repeat; ++i) body();
      };
    };
    std::function<void()> cpp_get = times([&] { CHECK_OK(snapshot.get(cpp_table_, q, &got)); });
    report("get", ratio(times([&] { CHECK_C_OK(stride_get(c_snapshot_, c_table_, &cq, values_)); }),
                        cpp_get));
    report("get into",
           ratio(times([&] {
                   CHECK_C_OK(stride_get_into(c_snapshot_, c_table_, &cq, values_, &buffers));
                 }),
                 cpp_get));
    report("find",
           ratio(times([&] { CHECK_C_OK(stride_find(c_snapshot_, c_table_, &cq, references_)); }),
                 times([&] { CHECK_OK(snapshot.find(cpp_table_, q, &found)); })));
  }
  CHECK_MESSAGE(stride_last_error()->status == STRIDE_OK, stride_last_error()->text);
}

TEST_CASE_METHOD(COverheadTest, "COverheadTest.OfPutsAndScans", "[COverheadTest]") {
  Column column = Column::fixed(keys_.data(), 8, rows);
  stride_column c_column{keys_.data(), nullptr, rows, 8};
  report("put", ratio(
                    [&] {
                      stride_transaction* t = nullptr;
                      CHECK_C_OK(stride_begin(c_, &t));
                      CHECK_C_OK(stride_put(t, c_table_, &c_column, &c_column));
                      CHECK_C_OK(stride_abort(t));
                    },
                    [&] {
                      WriteTransaction t = cpp_->begin();
                      CHECK_OK(t.put(cpp_table_, column, column));
                    }));
  Snapshot snapshot = cpp_->snapshot();
  report("scan", ratio(
                     [&] {
                       int status = STRIDE_OK;
                       stride_scan* scan = nullptr;
                       stride_column k, v;
                       uint64_t n = 0;
                       CHECK_C_OK(stride_scan_open(c_snapshot_, c_table_, nullptr, &scan));
                       do {
                         status |= stride_scan_next(scan, &k, &v);
                         n += first_bytes(k.data, k.size) + first_bytes(v.data, v.size);
                       } while (k.size > 0);
                       CHECK(n > 0u);
                       CHECK(status == STRIDE_OK);
                       CHECK_C_OK(stride_scan_release(scan));
                     },
                     [&] {
                       auto scan = snapshot.scan(cpp_table_);
                       ScanBatch batch;
                       uint64_t n = 0;
                       while (scan->next(&batch))
                         n += first_bytes(batch.keys.data, batch.keys.size) +
                              first_bytes(batch.values.data, batch.values.size);
                       CHECK(n > 0u);
                     }));
}

}  // namespace
}  // namespace stride::test

// Memory runs out in calls of the C interface: every allocation of a call fails in turn, alone or
// with all that follow. The call says STRIDE_RESOURCE_EXHAUSTED, and what it works on goes on.
#include <functional>

#include "adapters/c/stridedb_columns.h"
#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/failing_allocations.h"

namespace stride::test {
namespace {

class CAllocationTest : public CTest {
 protected:
  // The database's threads would take failures that are meant for the call.
  CAllocationTest() : CTest(false) {
    only_one = GENERATE(true, false);
    stride_table_options o;
    REQUIRE_C_OK(stride_table_options_init(&o, sizeof o));
    o.numbers = STRIDE_NUMBERS_I64;
    REQUIRE_C_OK(stride_table_create_with(db_, "n", &o, &numbers_));
  }
  ~CAllocationTest() { CHECK_C_OK(stride_table_release(numbers_)); }

  // Until the call needs no allocation that fails. Returns how many calls have failed.
  uint64_t sweep(const std::function<int()>& call) {
    uint64_t failures = 0;
    for (int64_t n = 0;; n += n < 200 ? 1 : n / 8) {
      INFO("allocation " << n);
      int status = STRIDE_OK;
      bool failed = fail_allocation(n, [&] { status = call(); });
      failures += status != STRIDE_OK;
      if (status != STRIDE_OK) REQUIRE(status == STRIDE_RESOURCE_EXHAUSTED);
      if (!failed) {
        REQUIRE_C_OK(status);
        break;
      }
    }
    return failures;
  }

  stride_table* numbers_ = nullptr;
};

TEST_CASE_METHOD(CAllocationTest, "CAllocationTest.SumsReportsAndGroups", "[CAllocationTest]") {
  CRows rows({"a", "b", "a"});
  stride_column column = rows.column();
  const int64_t deltas[] = {1, 2, 3};
  int64_t commits = 0;
  sweep([&] {
    stride_transaction* t = nullptr;
    stride_commit_report* report = nullptr;
    int status = stride_begin(db_, &t);
    if (status == STRIDE_OK)
      status = stride_accumulate(t, numbers_, &column, STRIDE_NUMBERS_I64, deltas);
    if (status == STRIDE_OK) status = stride_put_if_absent(t, table_, &column, &column, nullptr);
    if (status == STRIDE_OK) {
      status = stride_commit_with(t, nullptr, &report);
      commits += status == STRIDE_OK;
      CHECK((report != nullptr) == (status == STRIDE_OK));
      CHECK(stride_commit_report_release(report) == STRIDE_OK);
    } else {
      CHECK(stride_abort(t) == STRIDE_OK);
    }
    return status;
  });
  snapshot();
  stride_group_options o;
  REQUIRE_C_OK(stride_group_options_init(&o, sizeof o));
  o.sum = 1;
  stride_groups* groups = nullptr;
  const uint64_t failed_groups = sweep([&] {
    CHECK(stride_groups_release(groups) == STRIDE_OK);
    return stride_group_by(snapshot_, numbers_, nullptr, &o, &groups);
  });
  CHECK(failed_groups > 0u);
  stride_group_columns c{};
  c.size = sizeof c;
  REQUIRE_C_OK(stride_groups_read(groups, &c));
  CHECK(c.integer_sums[0] == commits * 6);  // what failed has added nothing
  CHECK_C_OK(stride_groups_release(groups));
}

TEST_CASE_METHOD(CAllocationTest, "CAllocationTest.ColumnsAndKeys", "[CAllocationTest]") {
  stride_table_options o;
  REQUIRE_C_OK(stride_table_options_init(&o, sizeof o));
  o.schema = "id u64 key, kind string key, name string, score f64?";
  stride_table* table = nullptr;
  REQUIRE_C_OK(stride_table_create_with(db_, "c", &o, &table));
  const uint64_t numbers[] = {7, 3}, ends[] = {0, 2, 3}, valid[] = {1};
  const stride_cells texts{"abc", ends, nullptr, 2, 0, 0};
  const stride_cells of_keys[] = {{numbers, nullptr, nullptr, 2, 8, 0}, texts};
  const stride_cells of_values[] = {texts, {numbers, nullptr, valid, 2, 8, 0}};
  stride_keys* keys = nullptr;
  stride_column column{};
  sweep([&] {
    CHECK(stride_keys_release(keys) == STRIDE_OK);
    int status = stride_keys_create(&keys);
    return status == STRIDE_OK ? stride_keys_of_cells(keys, table, of_keys, 2, &column) : status;
  });
  const uint64_t failed_puts = sweep([&] {
    stride_transaction* t = nullptr;
    int status = stride_begin(db_, &t);
    if (status == STRIDE_OK) status = stride_put_columns(t, table, &column, of_values, 2);
    if (status == STRIDE_OK) return stride_commit(t, STRIDE_DURABILITY_NONE);
    CHECK(stride_abort(t) == STRIDE_OK);
    return status;
  });
  CHECK(failed_puts > 0u);
  snapshot();
  stride_values* values = nullptr;
  stride_cells cells[2] = {}, back[2] = {};
  sweep([&] {
    CHECK(stride_values_release(values) == STRIDE_OK);
    int status = stride_values_create(&values);
    if (status == STRIDE_OK) status = stride_get(snapshot_, table, &column, values);
    for (size_t i = 0; i < 2 && status == STRIDE_OK; ++i)
      status = stride_values_cells(values, table, i, &cells[i]);
    return status;
  });
  CHECK(std::string_view(static_cast<const char*>(cells[0].data), 3) == "abc");
  CHECK(static_cast<const uint64_t*>(cells[1].data)[0] == 7u);
  CHECK(cells[1].valid[0] == 1u);
  sweep([&] { return stride_cells_of_keys(keys, table, &column, back, 2); });
  CHECK(static_cast<const uint64_t*>(back[0].data)[1] == 3u);
  stride_tables* list = nullptr;
  const uint64_t failed_lists = sweep([&] { return stride_table_list(db_, &list); });
  CHECK(failed_lists > 0u);
  CHECK_C_OK(stride_tables_release(list));
  CHECK_C_OK(stride_values_release(values));
  CHECK_C_OK(stride_keys_release(keys));
  CHECK_C_OK(stride_table_release(table));
}

TEST_CASE_METHOD(CAllocationTest, "CAllocationTest.Sets", "[CAllocationTest]") {
  std::vector<uint32_t> vectors(2 * 300);
  for (uint32_t i = 0; i < vectors.size(); ++i) vectors[i] = i / 2 % 200;
  std::vector<uint64_t> ids(300), bits(5);
  for (int form : {STRIDE_SET_DENSE, STRIDE_SET_SLOTS, STRIDE_SET_COMPRESSED}) {
    INFO("form " << form);
    stride_set_options o;
    REQUIRE_C_OK(stride_set_options_init(&o, sizeof o));
    o.form = form;
    o.capacity = 16;
    o.threads = 2;
    stride_set* set = nullptr;
    sweep([&] {
      CHECK(stride_set_release(set) == STRIDE_OK);
      return stride_set_create(&o, &set);
    });
    sweep(
        [&] { return stride_set_find_or_put(set, vectors.data(), 300, ids.data(), bits.data()); });
    stride_set_info info{sizeof info};
    CHECK_C_OK(stride_set_read_info(set, &info));
    CHECK(info.vectors == 200u);
    for (size_t i = 200; i < 300; ++i) CHECK(ids[i] == ids[i - 200]);
    CHECK_C_OK(stride_set_release(set));
  }
}

TEST_CASE_METHOD(CAllocationTest, "CAllocationTest.DedupTables", "[CAllocationTest]") {
  std::vector<uint32_t> vectors(2 * 5000);
  for (uint32_t i = 0; i < vectors.size(); ++i) vectors[i] = i / 2 % 3000;
  std::vector<uint64_t> ids(5000);
  stride_dedup_options o;
  REQUIRE_C_OK(stride_dedup_options_init(&o, sizeof o));
  o.threads = 2;
  o.compressed = GENERATE(0, 1);
  stride_dedup_table* table = nullptr;
  sweep([&] {
    CHECK(stride_dedup_release(table) == STRIDE_OK);
    return stride_dedup_open(db_, "states", &o, &table);
  });
  // In a compressed table the second one goes on with a block that is not full.
  uint64_t put = 0, size = 0;
  for (uint64_t n : {500, 5000}) {
    const uint64_t failed_puts = sweep([&] {
      int status = stride_dedup_find_or_put(table, vectors.data(), n, ids.data(), nullptr);
      if (status != STRIDE_CLOSED) return status;
      // Its rows could not be read again either.
      CHECK(stride_dedup_release(table) == STRIDE_OK);
      return stride_dedup_open(db_, "states", &o, &table);
    });
    CHECK(failed_puts > 0u);
    REQUIRE_C_OK(stride_dedup_find_or_put(table, vectors.data(), n, ids.data(), nullptr));
    put = n < 3000 ? n : 3000;
    CHECK_C_OK(stride_dedup_read_info(table, &size, nullptr));
    CHECK(size == put);
  }
  for (uint64_t i = 0; i < ids.size(); ++i) REQUIRE(ids[i] == i % 3000);
  sweep([&] {
    CHECK(stride_dedup_release(table) == STRIDE_OK);
    return stride_dedup_open(db_, "states", &o, &table);
  });
  CHECK_C_OK(stride_dedup_read_info(table, &size, nullptr));
  CHECK(size == put);
  CHECK_C_OK(stride_dedup_release(table));
}

}  // namespace
}  // namespace stride::test

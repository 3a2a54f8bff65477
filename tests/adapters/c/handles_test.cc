// Pointers that are NULL, of another kind, released, or never were handles: a status, no crash.
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/adapters/c/handles_fixture.h"

namespace stride::test {
namespace {

TEST_CASE_METHOD(CHandlesTest, "CHandlesTest.GoodOnesDo", "[CHandlesTest]") {
  for (const Call& c : calls()) {
    int status = c.call(good_);
    const std::string name = c.name;
    if (name == "table_drop" || name == "table_rename") {
      CHECK(status == STRIDE_NOT_FOUND);
    } else {
      CHECK_MESSAGE(status == STRIDE_OK, c.name << ": " << stride_last_error()->text);
    }
    CHECK_C_OK(stride_table_release(table_out_));
    CHECK_C_OK(stride_tables_release(tables_out_));
    CHECK_C_OK(stride_abort(transaction_out_));
    CHECK_C_OK(stride_snapshot_release(snapshot_out_));
    CHECK_C_OK(stride_scan_release(scan_out_));
    CHECK_C_OK(stride_groups_release(groups_out_));
    CHECK_C_OK(stride_dedup_release(dedup_out_));
    groups_out_ = nullptr;
    dedup_out_ = nullptr;
    table_out_ = nullptr;
    tables_out_ = nullptr;
    transaction_out_ = nullptr;
    snapshot_out_ = nullptr;
    scan_out_ = nullptr;
    CHECK_C_OK(stride_cursor_release(std::exchange(cursor_out_, nullptr)));
  }
}

TEST_CASE_METHOD(CHandlesTest, "CHandlesTest.Null", "[CHandlesTest]") {
  for (const Call& c : calls()) {
    CHECK_MESSAGE(c.call(Handles{}) == STRIDE_INVALID_ARGUMENT, c.name);
    CHECK_MESSAGE(std::string(stride_last_error()->message).find("NULL") != std::string::npos,
                  c.name);
  }
  for (const Call& c : endings()) CHECK_MESSAGE(c.call(Handles{}) == STRIDE_OK, c.name);
  CHECK_C_ERROR(stride_commit(nullptr, STRIDE_DURABILITY_SYNC), STRIDE_INVALID_ARGUMENT, "NULL");
}

TEST_CASE_METHOD(CHandlesTest, "CHandlesTest.OfAnotherKind", "[CHandlesTest]") {
  void* kinds[] = {db_,          table_,           good_.tables, good_.transaction, snapshot_,
                   good_.values, good_.references, good_.scan,   good_.report,      good_.groups,
                   good_.set,    good_.dedup,      good_.keys,   good_.cursor};
  for (size_t i = 0; i < std::size(kinds); ++i) {
    for (size_t k = 0; k < std::size(kinds); ++k) {
      if (k == i) continue;
      CHECK_MESSAGE(endings()[k].call(Handles::all(kinds[i])) == STRIDE_INVALID_ARGUMENT,
                    endings()[k].name);
      CHECK_MESSAGE(
          std::string(stride_last_error()->text).find("in the place of") != std::string::npos,
          stride_last_error()->text);
    }
  }
  // Those with two handles, of which the first is right.
  Handles mixed = good_;
  mixed.table = reinterpret_cast<stride_table*>(snapshot_);
  CHECK_C_ERROR(stride_get_one(mixed.snapshot, mixed.table, "k", 1, &bytes_),
                STRIDE_INVALID_ARGUMENT,
                "a stride_snapshot was given in the place of a stride_table");
  CHECK_C_ERROR(stride_put_one(mixed.transaction, mixed.table, "k", 1, "v", 1),
                STRIDE_INVALID_ARGUMENT, "stride_table");
  CHECK_C_ERROR(stride_get(mixed.snapshot, table_, &column_,
                           reinterpret_cast<stride_values*>(good_.references)),
                STRIDE_INVALID_ARGUMENT, "stride_references");
}

TEST_CASE_METHOD(CHandlesTest, "CHandlesTest.NeverOnes", "[CHandlesTest]") {
  uint64_t of_stack = 0;
  std::unique_ptr<uint64_t> of_heap(new uint64_t(42));
  uint64_t good = reinterpret_cast<uint64_t>(db_);
  std::vector<uint64_t> made_up = {1,
                                   8,
                                   0xDEADBEEF,
                                   UINT64_MAX,
                                   uint64_t{1} << 63,
                                   good + 1,
                                   good - 1,
                                   good ^ uint64_t{1} << 32,
                                   good ^ uint64_t{1} << 63,
                                   good | 0x0FFFFFFF,
                                   reinterpret_cast<uint64_t>(&of_stack),
                                   reinterpret_cast<uint64_t>(of_heap.get())};
  for (uint64_t bits : made_up) {
    Handles wrong = Handles::all(reinterpret_cast<void*>(bits));
    for (const Call& c : calls()) CHECK_MESSAGE(c.call(wrong) == STRIDE_INVALID_ARGUMENT, c.name);
    for (const Call& c : endings()) CHECK_MESSAGE(c.call(wrong) == STRIDE_INVALID_ARGUMENT, c.name);
    CHECK(stride_commit(wrong.transaction, STRIDE_DURABILITY_SYNC) == STRIDE_INVALID_ARGUMENT);
  }
}

TEST_CASE_METHOD(CHandlesTest, "CHandlesTest.Released", "[CHandlesTest]") {
  stride_snapshot* first;
  REQUIRE_C_OK(stride_snapshot_take(db_, &first));
  REQUIRE_C_OK(stride_snapshot_release(first));
  for (int i = 0; i < 1000; ++i) {
    stride_snapshot* next;
    REQUIRE_C_OK(stride_snapshot_take(db_, &next));  // in the same place
    REQUIRE(next != first);
    CHECK(stride_count(first, table_, &number_) == STRIDE_INVALID_ARGUMENT);
    CHECK(stride_snapshot_release(first) == STRIDE_INVALID_ARGUMENT);
    REQUIRE_C_OK(stride_count(next, table_, &number_));
    REQUIRE_C_OK(stride_snapshot_release(next));
  }
}

TEST_CASE_METHOD(CHandlesTest, "CHandlesTest.ManyAtOnce", "[CHandlesTest]") {
  std::vector<stride_values*> many(10'000);
  for (auto& values : many) REQUIRE_C_OK(stride_values_create(&values));
  for (auto& values : many)
    CHECK(stride_values_read(values, &out_, nullptr) == STRIDE_INVALID_ARGUMENT);
  CHECK(std::string_view(stride_last_error()->message) == "the stride_values hold no result");
  for (auto& values : many) CHECK_C_OK(stride_values_release(values));
  for (auto& values : many) CHECK(stride_values_release(values) == STRIDE_INVALID_ARGUMENT);
}

constexpr int invalid_argument = STRIDE_INVALID_ARGUMENT;

// Arguments that are no handles.
TEST_CASE_METHOD(CHandlesTest, "CHandlesTest.NullArguments", "[CHandlesTest]") {
  CHECK(stride_open(nullptr, nullptr, &db_) == invalid_argument);
  CHECK(db_ == nullptr);
  db_ = good_.database;
  CHECK(stride_open("x", nullptr, nullptr) == invalid_argument);
  CHECK(stride_size(db_, nullptr) == invalid_argument);
  CHECK(stride_table_create(db_, nullptr, 0, &table_out_) == invalid_argument);
  CHECK(stride_table_create(db_, "n", 0, nullptr) == invalid_argument);
  CHECK(stride_table_open(db_, nullptr, &table_out_) == invalid_argument);
  CHECK(stride_table_open(db_, "t", nullptr) == invalid_argument);
  CHECK(stride_table_open_or_create(db_, nullptr, 0, &table_out_) == invalid_argument);
  CHECK(stride_table_open_or_create(db_, "n", 0, nullptr) == invalid_argument);
  CHECK(stride_table_create_with(db_, nullptr, nullptr, &table_out_) == invalid_argument);
  CHECK(stride_table_create_with(db_, "n", nullptr, nullptr) == invalid_argument);
  CHECK(stride_table_open_or_create_with(db_, nullptr, nullptr, &table_out_) == invalid_argument);
  CHECK(stride_table_open_or_create_with(db_, "n", nullptr, nullptr) == invalid_argument);
  CHECK(stride_table_key_width(table_, nullptr) == invalid_argument);
  CHECK(stride_table_drop(db_, nullptr) == invalid_argument);
  CHECK(stride_table_rename(db_, nullptr, "n") == invalid_argument);
  CHECK(stride_table_rename(db_, "t", nullptr) == invalid_argument);
  CHECK(stride_table_rename_in(good_.transaction, table_, nullptr) == invalid_argument);
  CHECK(stride_table_list(db_, nullptr) == invalid_argument);
  CHECK(stride_tables_size(good_.tables, nullptr) == invalid_argument);
  CHECK(stride_tables_get(good_.tables, 0, nullptr) == invalid_argument);
}

TEST_CASE_METHOD(CHandlesTest, "CHandlesTest.NullArgumentsOfWrites", "[CHandlesTest]") {
  stride_transaction* t = good_.transaction;
  CHECK(stride_begin(db_, nullptr) == invalid_argument);
  CHECK(stride_put(t, table_, nullptr, &column_) == invalid_argument);
  CHECK(stride_put(t, table_, &column_, nullptr) == invalid_argument);
  CHECK(stride_put_view(t, table_, nullptr, &column_) == invalid_argument);
  CHECK(stride_put_view(t, table_, &column_, nullptr) == invalid_argument);
  CHECK(stride_put_one(t, table_, nullptr, 1, "v", 1) == invalid_argument);
  CHECK(stride_put_one(t, table_, "k", 1, nullptr, 1) == invalid_argument);
  CHECK(stride_erase(t, table_, nullptr) == invalid_argument);
  CHECK(stride_erase_ranges(t, table_, nullptr, &column_) == invalid_argument);
  CHECK(stride_erase_ranges(t, table_, &column_, nullptr) == invalid_argument);
  stride_bytes bad{nullptr, 1};
  CHECK(stride_erase_range(t, table_, &bad, nullptr) == invalid_argument);
  CHECK(stride_erase_range(t, table_, nullptr, &bad) == invalid_argument);
}

TEST_CASE_METHOD(CHandlesTest, "CHandlesTest.NullArgumentsOfReads", "[CHandlesTest]") {
  stride_snapshot* s = snapshot_;
  CHECK(stride_snapshot_take(db_, nullptr) == invalid_argument);
  CHECK(stride_count(s, table_, nullptr) == invalid_argument);
  CHECK(stride_get_one(s, table_, nullptr, 1, &bytes_) == invalid_argument);
  CHECK(stride_get_one(s, table_, "k", 1, nullptr) == invalid_argument);
  CHECK(stride_values_create(nullptr) == invalid_argument);
  CHECK(stride_get(s, table_, nullptr, good_.values) == invalid_argument);
  CHECK(stride_get_into(s, table_, nullptr, good_.values, &buffers_) == invalid_argument);
  CHECK(stride_get_into(s, table_, &column_, good_.values, nullptr) == invalid_argument);
  for (auto member : {&stride_buffers::size, &stride_buffers::data_bytes}) {
    stride_buffers wrong = buffers_;
    wrong.*member = member == &stride_buffers::size ? 0 : 1;
    wrong.data = nullptr;
    CHECK(stride_get_into(s, table_, &column_, nullptr, &wrong) == invalid_argument);
  }
  buffers_.offsets = nullptr;
  CHECK(stride_get_into(s, table_, &column_, nullptr, &buffers_) == invalid_argument);
  buffers_.offsets = offsets_;
  buffers_.validity = nullptr;
  CHECK(stride_get_into(s, table_, &column_, nullptr, &buffers_) == invalid_argument);
  CHECK(stride_references_create(nullptr) == invalid_argument);
  CHECK(stride_find(s, table_, nullptr, good_.references) == invalid_argument);
  CHECK(stride_scan_options_init(nullptr, sizeof(stride_scan_options)) == invalid_argument);
  CHECK(stride_scan_open(s, table_, nullptr, nullptr) == invalid_argument);
  CHECK(stride_scan_next(good_.scan, nullptr, &out_) == invalid_argument);
  CHECK(stride_scan_next(good_.scan, &out_, nullptr) == invalid_argument);
  CHECK(std::string_view(stride_last_error()->message) == "values is NULL");
}

}  // namespace
}  // namespace stride::test

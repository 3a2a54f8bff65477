// Handles of each kind, and every call that takes some.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "adapters/c/stridedb_backup.h"
#include "adapters/c/stridedb_columns.h"
#include "adapters/c/stridedb_cursors.h"
#include "adapters/c/stridedb_metrics.h"
#include "adapters/c/stridedb_transactions.h"
#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"

namespace stride::test {

// Every function that takes handles, with handles that may be anything and good other arguments.
struct Handles {
  stride_database* database;
  stride_table* table;
  stride_tables* tables;
  stride_transaction* transaction;
  stride_snapshot* snapshot;
  stride_values* values;
  stride_references* references;
  stride_scan* scan;
  stride_table* routes;  // a prefix table
  stride_table* hits;    // a table of numbers
  stride_commit_report* report;
  stride_groups* groups;
  stride_set* set;
  stride_dedup_table* dedup;
  stride_keys* keys;
  stride_cursor* cursor;
  stride_transaction* reading;

  static Handles all(void* p) {
    auto as = [p](auto** handle) {
      *handle = static_cast<std::remove_pointer_t<decltype(handle)>>(p);
    };
    Handles h;
    as(&h.database);
    as(&h.table);
    as(&h.tables);
    as(&h.transaction);
    as(&h.snapshot);
    as(&h.values);
    as(&h.references);
    as(&h.scan);
    as(&h.routes);
    as(&h.hits);
    as(&h.report);
    as(&h.groups);
    as(&h.set);
    as(&h.dedup);
    as(&h.keys);
    as(&h.cursor);
    as(&h.reading);
    return h;
  }
};

struct Call {
  const char* name;
  std::function<int(const Handles&)> call;
};

class CHandlesTest : public CTest {
 protected:
  CHandlesTest() {
    put(table_, {"a"}, {"1"});
    stride_table_options of_routes{sizeof of_routes, 0, 24};
    REQUIRE_C_OK(stride_table_create_with(db_, "routes", &of_routes, &routes_));
    stride_table_options of_hits{sizeof of_hits, 0, 0, STRIDE_NUMBERS_I64, 0, 0, 0};
    REQUIRE_C_OK(stride_table_create_with(db_, "hits", &of_hits, &hits_));
    good_ = {db_, table_, nullptr, nullptr, snapshot(), nullptr, nullptr, nullptr, routes_, hits_};
    stride_transaction* t;
    REQUIRE_C_OK(stride_begin(db_, &t));
    REQUIRE_C_OK(stride_put_one(t, table_, "b", 1, "2", 1));
    REQUIRE_C_OK(stride_commit_with(t, nullptr, &good_.report));
    REQUIRE_C_OK(stride_group_by(snapshot_, hits_, nullptr, nullptr, &good_.groups));
    REQUIRE_C_OK(stride_set_create(nullptr, &good_.set));
    REQUIRE_C_OK(stride_dedup_open(db_, "states", nullptr, &good_.dedup));
    REQUIRE_C_OK(stride_keys_create(&good_.keys));
    REQUIRE_C_OK(stride_cursor_open(snapshot_, table_, nullptr, &good_.cursor));
    REQUIRE_C_OK(stride_begin_reading(db_, &good_.reading));
    set_info_.size = sizeof set_info_;
    columns_.size = sizeof columns_;
    REQUIRE_C_OK(stride_table_list(db_, &good_.tables));
    REQUIRE_C_OK(stride_begin(db_, &good_.transaction));
    REQUIRE_C_OK(stride_values_create(&good_.values));
    REQUIRE_C_OK(stride_references_create(&good_.references));
    REQUIRE_C_OK(stride_scan_open(snapshot_, table_, nullptr, &good_.scan));
    info_.size = sizeof info_;
    buffers_ = {sizeof buffers_, data_, sizeof data_, offsets_, &validity_, 0};
  }
  ~CHandlesTest() {
    CHECK_C_OK(stride_table_release(routes_));
    CHECK_C_OK(stride_tables_release(good_.tables));
    CHECK_C_OK(stride_abort(good_.transaction));
    CHECK_C_OK(stride_values_release(good_.values));
    CHECK_C_OK(stride_references_release(good_.references));
    CHECK_C_OK(stride_scan_release(good_.scan));
    CHECK_C_OK(stride_table_release(hits_));
    CHECK_C_OK(stride_commit_report_release(good_.report));
    CHECK_C_OK(stride_groups_release(good_.groups));
    CHECK_C_OK(stride_set_release(good_.set));
    CHECK_C_OK(stride_dedup_release(good_.dedup));
    CHECK_C_OK(stride_keys_release(good_.keys));
    CHECK_C_OK(stride_cursor_release(good_.cursor));
    CHECK_C_OK(stride_abort(good_.reading));
  }

  // All calls but those that end a handle.
  std::vector<Call> calls() {
    std::vector<Call> all;
    for (const std::vector<Call>& some :
         {table_calls(), write_calls(), read_calls(), match_calls(), scan_calls(), number_calls(),
          dedup_calls(), order_calls(), cursor_calls(), reading_calls()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }
  std::vector<Call> table_calls() {
    return {
        {"size", [&](auto& h) { return stride_size(h.database, &number_); }},
        {"compact", [](auto& h) { return stride_compact(h.database); }},
        {"verify", [](auto& h) { return stride_verify(h.database); }},
        {"sync", [](auto& h) { return stride_sync(h.database); }},
        {"prometheus_text",
         [&](auto& h) { return stride_prometheus_text(h.database, text_, sizeof text_, &size_); }},
        {"table_create_in",
         [&](auto& h) { return stride_table_create_in(h.transaction, "c", nullptr, &table_out_); }},
        {"table_create",
         [&](auto& h) { return stride_table_create(h.database, "n", 0, &table_out_); }},
        {"table_open", [&](auto& h) { return stride_table_open(h.database, "t", &table_out_); }},
        {"table_open_or_create",
         [&](auto& h) { return stride_table_open_or_create(h.database, "t", 0, &table_out_); }},
        {"table_create_with",
         [&](auto& h) { return stride_table_create_with(h.database, "w", nullptr, &table_out_); }},
        {"table_open_or_create_with",
         [&](auto& h) {
           return stride_table_open_or_create_with(h.database, "t", nullptr, &table_out_);
         }},
        {"table_drop", [](auto& h) { return stride_table_drop(h.database, "none"); }},
        {"table_rename", [](auto& h) { return stride_table_rename(h.database, "none", "n"); }},
        {"table_rename_in",
         [](auto& h) { return stride_table_rename_in(h.transaction, h.table, "new"); }},
        {"table_key_width", [&](auto& h) { return stride_table_key_width(h.table, &width_); }},
        {"table_address_bits",
         [&](auto& h) { return stride_table_address_bits(h.table, &width_); }},
        {"table_list", [&](auto& h) { return stride_table_list(h.database, &tables_out_); }},
        {"tables_size", [&](auto& h) { return stride_tables_size(h.tables, &number_); }},
        {"tables_get", [&](auto& h) { return stride_tables_get(h.tables, 0, &info_); }},
    };
  }
  std::vector<Call> write_calls() {
    return {
        {"begin", [&](auto& h) { return stride_begin(h.database, &transaction_out_); }},
        {"put", [&](auto& h) { return stride_put(h.transaction, h.table, &column_, &column_); }},
        {"put_view",
         [&](auto& h) { return stride_put_view(h.transaction, h.table, &column_, &column_); }},
        {"put_one", [](auto& h) { return stride_put_one(h.transaction, h.table, "k", 1, "v", 1); }},
        {"erase", [&](auto& h) { return stride_erase(h.transaction, h.table, &column_); }},
        {"erase_ranges",
         [&](auto& h) { return stride_erase_ranges(h.transaction, h.table, &column_, &column_); }},
        {"erase_range",
         [](auto& h) { return stride_erase_range(h.transaction, h.table, nullptr, nullptr); }},
    };
  }
  std::vector<Call> read_calls() {
    return {
        {"snapshot_take",
         [&](auto& h) { return stride_snapshot_take(h.database, &snapshot_out_); }},
        {"count", [&](auto& h) { return stride_count(h.snapshot, h.table, &number_); }},
        {"get_one", [&](auto& h) { return stride_get_one(h.snapshot, h.table, "k", 1, &bytes_); }},
        {"get", [&](auto& h) { return stride_get(h.snapshot, h.table, &column_, h.values); }},
        {"values_read", [&](auto& h) { return stride_values_read(h.values, &out_, &words_); }},
        {"get_into",
         [&](auto& h) {
           return stride_get_into(h.snapshot, h.table, &column_, h.values, &buffers_);
         }},
        {"find", [&](auto& h) { return stride_find(h.snapshot, h.table, &column_, h.references); }},
        {"references_read",
         [&](auto& h) { return stride_references_read(h.references, &number_, &words_); }},
        {"references_get",
         [&](auto& h) { return stride_references_get(h.references, 0, 1, &bytes_); }},
    };
  }
  std::vector<Call> match_calls() {
    return {
        {"match", [&](auto& h) { return stride_match(h.snapshot, h.routes, &column_, h.values); }},
        {"values_lengths", [&](auto& h) { return stride_values_lengths(h.values, &lengths_); }},
        {"match_into",
         [&](auto& h) {
           return stride_match_into(h.snapshot, h.routes, &column_, h.values, &buffers_, nullptr);
         }},
        {"match_references",
         [&](auto& h) {
           return stride_match_references(h.snapshot, h.routes, &column_, h.references);
         }},
        {"references_prefixes",
         [&](auto& h) { return stride_references_prefixes(h.references, 0, 1, &bytes_, &width_); }},
        {"match_one",
         [&](auto& h) {
           return stride_match_one(h.snapshot, h.routes, "key", 3, &bytes_, nullptr, nullptr);
         }},
        {"match_all",
         [&](auto& h) {
           return stride_match_all(h.snapshot, h.routes, "key", 3, 0, nullptr, nullptr, nullptr,
                                   &number_);
         }},
    };
  }
  std::vector<Call> scan_calls() {
    return {
        {"scan_inside",
         [&](auto& h) {
           return stride_scan_inside(h.snapshot, h.routes, "key\x18", 4, &scan_out_);
         }},
        {"scan_open",
         [&](auto& h) { return stride_scan_open(h.snapshot, h.table, nullptr, &scan_out_); }},
        {"scan_next", [&](auto& h) { return stride_scan_next(h.scan, &out_, &out_); }},
    };
  }
  std::vector<Call> number_calls() {
    return {
        {"table_numbers", [&](auto& h) { return stride_table_numbers(h.hits, &type_, &type_); }},
        {"put_if_absent",
         [&](auto& h) {
           return stride_put_if_absent(h.transaction, h.table, &column_, &column_, nullptr);
         }},
        {"accumulate",
         [&](auto& h) {
           return stride_accumulate(h.transaction, h.hits, &column_, STRIDE_NUMBERS_I64, &delta_);
         }},
        {"accumulate_one",
         [](auto& h) { return stride_accumulate_one(h.transaction, h.hits, "k", 1, 1); }},
        {"commit_report_keys",
         [&](auto& h) { return stride_commit_report_keys(h.report, "t", &number_); }},
        {"commit_report_size",
         [&](auto& h) { return stride_commit_report_size(h.report, &number_); }},
        {"commit_report_get",
         [&](auto& h) { return stride_commit_report_get(h.report, 0, nullptr, &number_); }},
        {"group_by",
         [&](auto& h) {
           return stride_group_by(h.snapshot, h.hits, nullptr, nullptr, &groups_out_);
         }},
        {"groups_read", [&](auto& h) { return stride_groups_read(h.groups, &columns_); }},
    };
  }
  std::vector<Call> dedup_calls() {
    return {
        {"set_find_or_put",
         [&](auto& h) { return stride_set_find_or_put(h.set, vector_, 1, &number_, nullptr); }},
        {"set_find", [&](auto& h) { return stride_set_find(h.set, vector_, 1, &number_); }},
        {"set_get", [&](auto& h) { return stride_set_get(h.set, &zero_, 1, vector_); }},
        {"set_clear", [](auto& h) { return stride_set_clear(h.set); }},
        {"set_read_info", [&](auto& h) { return stride_set_read_info(h.set, &set_info_); }},
        {"dedup_open",
         [&](auto& h) { return stride_dedup_open(h.database, "others", nullptr, &dedup_out_); }},
        {"dedup_find_or_put",
         [&](auto& h) { return stride_dedup_find_or_put(h.dedup, vector_, 1, &number_, nullptr); }},
        {"dedup_find", [&](auto& h) { return stride_dedup_find(h.dedup, vector_, 1, &number_); }},
        {"dedup_get", [&](auto& h) { return stride_dedup_get(h.dedup, &zero_, 1, vector_); }},
        {"dedup_read_info",
         [&](auto& h) { return stride_dedup_read_info(h.dedup, &number_, &number_); }},
    };
  }
  std::vector<Call> order_calls() {
    return {
        {"lower_bound",
         [&](auto& h) {
           return stride_lower_bound(h.snapshot, h.table, &column_, &bytes_, &bytes_);
         }},
        {"upper_bound",
         [&](auto& h) {
           return stride_upper_bound(h.snapshot, h.table, &column_, &bytes_, &bytes_);
         }},
        {"previous",
         [&](auto& h) { return stride_previous(h.snapshot, h.table, &column_, &bytes_, &bytes_); }},
        {"count_range",
         [&](auto& h) {
           return stride_count_range(h.snapshot, h.table, nullptr, nullptr, &number_);
         }},
        {"count_ranges",
         [&](auto& h) {
           return stride_count_ranges(h.snapshot, h.table, &column_, &column_, &number_);
         }},
        {"cursor_open",
         [&](auto& h) { return stride_cursor_open(h.snapshot, h.table, nullptr, &cursor_out_); }},
    };
  }
  std::vector<Call> cursor_calls() {
    return {
        {"cursor_seek",
         [&](auto& h) { return stride_cursor_seek(h.cursor, "a", 1, &bytes_, &bytes_); }},
        {"cursor_seek_for_previous",
         [&](auto& h) {
           return stride_cursor_seek_for_previous(h.cursor, "b", 1, &bytes_, &bytes_);
         }},
        {"cursor_seek_to_last",
         [&](auto& h) { return stride_cursor_seek_to_last(h.cursor, &bytes_, &bytes_); }},
        {"cursor_seek_to_first",
         [&](auto& h) { return stride_cursor_seek_to_first(h.cursor, &bytes_, &bytes_); }},
        {"cursor_next", [&](auto& h) { return stride_cursor_next(h.cursor, &bytes_, &bytes_); }},
        {"cursor_previous",
         [&](auto& h) { return stride_cursor_previous(h.cursor, &bytes_, &bytes_); }},
    };
  }
  std::vector<Call> reading_calls() {
    return {
        {"begin_reading",
         [&](auto& h) { return stride_begin_reading(h.database, &transaction_out_); }},
        {"transaction_get",
         [&](auto& h) { return stride_transaction_get(h.reading, h.table, &column_, h.values); }},
        {"transaction_get_one",
         [&](auto& h) { return stride_transaction_get_one(h.reading, h.table, "k", 1, &bytes_); }},
        {"transaction_scan",
         [&](auto& h) { return stride_transaction_scan(h.reading, h.table, nullptr, &scan_out_); }},
        {"transaction_count",
         [&](auto& h) { return stride_transaction_count(h.reading, h.table, &number_); }},
        {"transaction_cursor",
         [&](auto& h) {
           return stride_transaction_cursor(h.reading, h.table, nullptr, &cursor_out_);
         }},
    };
  }
  // Those that end one; NULL is fine.
  static std::vector<Call> endings() {
    return {
        {"close", [](auto& h) { return stride_close(h.database); }},
        {"table_release", [](auto& h) { return stride_table_release(h.table); }},
        {"tables_release", [](auto& h) { return stride_tables_release(h.tables); }},
        {"abort", [](auto& h) { return stride_abort(h.transaction); }},
        {"snapshot_release", [](auto& h) { return stride_snapshot_release(h.snapshot); }},
        {"values_release", [](auto& h) { return stride_values_release(h.values); }},
        {"references_release", [](auto& h) { return stride_references_release(h.references); }},
        {"scan_release", [](auto& h) { return stride_scan_release(h.scan); }},
        {"commit_report_release", [](auto& h) { return stride_commit_report_release(h.report); }},
        {"groups_release", [](auto& h) { return stride_groups_release(h.groups); }},
        {"set_release", [](auto& h) { return stride_set_release(h.set); }},
        {"dedup_release", [](auto& h) { return stride_dedup_release(h.dedup); }},
        {"keys_release", [](auto& h) { return stride_keys_release(h.keys); }},
        {"cursor_release", [](auto& h) { return stride_cursor_release(h.cursor); }},
    };
  }

  Handles good_{};
  uint64_t number_ = 0, validity_ = 0, offsets_[2] = {};
  uint32_t width_ = 0;
  char data_[16] = {};
  const uint64_t* words_ = nullptr;
  const uint32_t* lengths_ = nullptr;
  stride_table_info info_{};
  stride_bytes bytes_{};
  stride_column column_{"key", nullptr, 1, 3}, out_{};
  stride_buffers buffers_{};
  int type_ = 0;
  int64_t delta_ = 1;
  uint64_t zero_ = 0;
  uint32_t vector_[2] = {7, 8};
  stride_set_info set_info_{};
  stride_group_columns columns_{};
  stride_groups* groups_out_ = nullptr;
  stride_dedup_table* dedup_out_ = nullptr;
  stride_table* hits_ = nullptr;
  stride_table* routes_ = nullptr;
  stride_table* table_out_ = nullptr;
  stride_tables* tables_out_ = nullptr;
  stride_transaction* transaction_out_ = nullptr;
  stride_snapshot* snapshot_out_ = nullptr;
  stride_scan* scan_out_ = nullptr;
  stride_cursor* cursor_out_ = nullptr;
  char text_[1 << 16] = {};
  size_t size_ = 0;
};

}  // namespace stride::test

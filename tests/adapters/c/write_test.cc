// Databases, tables and transactions through the C interface.
#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

using namespace std::string_literals;

class CWriteTest : public CTest {
 protected:
  // A transaction that changes nothing yet.
  stride_transaction* begin() {
    stride_transaction* t = nullptr;
    CHECK_C_OK(stride_begin(db_, &t));
    return t;
  }
  void commit(stride_transaction* t) { CHECK_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT)); }
};

TEST_CASE("CVersionTest.IsThatOfTheHeader", "[CVersionTest]") {
  std::string header = std::to_string(STRIDE_VERSION_MAJOR) + "." +
                       std::to_string(STRIDE_VERSION_MINOR) + "." +
                       std::to_string(STRIDE_VERSION_PATCH);
  CHECK(stride_version() == header);
  CHECK(header == STRIDE_VERSION_TEXT);
  CHECK(stride_version_number() == STRIDE_VERSION);
  CHECK(STRIDE_VERSION > STRIDE_VERSION_NUMBER(0, 0, 999));
  CHECK(STRIDE_VERSION < STRIDE_VERSION_NUMBER(STRIDE_VERSION_MAJOR + 1, 0, 0));
}

// A program that was compiled when the structs had fewer members.
TEST_CASE("COptionsTest.SmallerStructsOfOlderProgramsWork", "[COptionsTest]") {
  constexpr size_t old_options = offsetof(stride_options, memtable_bytes);
  constexpr size_t old_info = offsetof(stride_table_info, memtable_rows);
  TemporaryDirectory directory;
  stride_options o;
  std::memset(&o, 0xEE, sizeof o);
  REQUIRE_C_OK(stride_options_init(&o, old_options));
  CHECK(o.size == old_options);
  CHECK(o.background_work == static_cast<int>(0xEEEEEEEE));  // no byte beyond is touched
  stride_database* db;
  REQUIRE_C_OK(stride_open(directory.file("db").c_str(), &o, &db));
  stride_table* table;
  REQUIRE_C_OK(stride_table_create(db, "t", 0, &table));
  stride_transaction* transaction;
  REQUIRE_C_OK(stride_begin(db, &transaction));
  REQUIRE_C_OK(stride_put_one(transaction, table, "key", 3, "value", 5));
  REQUIRE_C_OK(stride_commit(transaction, STRIDE_DURABILITY_DEFAULT));
  stride_tables* list;
  REQUIRE_C_OK(stride_table_list(db, &list));
  stride_table_info info;
  std::memset(&info, 0xEE, sizeof info);
  info.size = old_info;
  REQUIRE_C_OK(stride_tables_get(list, 0, &info));
  CHECK(info.rows == 1u);
  CHECK(info.memtable_rows == 0xEEEEEEEEEEEEEEEEu);
  info.size = sizeof info;
  REQUIRE_C_OK(stride_tables_get(list, 0, &info));
  CHECK(info.memtable_rows == 1u);  // memtables are as large as ever
  CHECK_C_OK(stride_tables_release(list));
  CHECK_C_OK(stride_table_release(table));
  CHECK_C_OK(stride_close(db));

  REQUIRE_C_OK(stride_options_init(&o, sizeof o));
  o.memtable_bytes = 0;
  o.background_work = 0;
  REQUIRE_C_OK(stride_open(directory.file("db").c_str(), &o, &db));
  REQUIRE_C_OK(stride_table_open(db, "t", &table));
  REQUIRE_C_OK(stride_begin(db, &transaction));
  REQUIRE_C_OK(stride_put_one(transaction, table, "other", 5, "value", 5));
  REQUIRE_C_OK(stride_commit(transaction, STRIDE_DURABILITY_DEFAULT));
  REQUIRE_C_OK(stride_table_list(db, &list));
  REQUIRE_C_OK(stride_tables_get(list, 0, &info));
  CHECK(info.rows == 2u);
  CHECK(info.memtable_rows == 0u);  // each commit makes a segment
  CHECK_C_OK(stride_tables_release(list));
  CHECK_C_OK(stride_table_release(table));
  CHECK_C_OK(stride_close(db));
}

TEST_CASE("COptionsTest.DefaultsAndSizes", "[COptionsTest]") {
  stride_options o;
  std::memset(&o, 0xEE, sizeof o);
  REQUIRE_C_OK(stride_options_init(&o, sizeof o));
  CHECK(o.size == sizeof o);
  CHECK(o.create_if_missing == 1);
  CHECK(o.durability == STRIDE_DURABILITY_SYNC);
  CHECK(o.backend == STRIDE_BACKEND_AUTOMATIC);
  CHECK(o.read_only + o.error_if_exists + o.value_placement == 0);
  CHECK(o.threads + o.reserved + o.memory_limit_bytes + o.gpu_memory_limit_bytes == 0u);
  CHECK(o.memtable_bytes == 128u << 20);
  CHECK(o.background_work == 1);
  CHECK(o.reserved_too == 0u);
  CHECK(o.devices == nullptr);
  CHECK(o.device_count == 0u);
  CHECK_C_ERROR(stride_options_init(nullptr, sizeof o), STRIDE_INVALID_ARGUMENT, "NULL");
  CHECK_C_ERROR(stride_options_init(&o, 8), STRIDE_INVALID_ARGUMENT, "56");

  TemporaryDirectory directory;
  std::string path = directory.file("db");
  stride_database* db;
  o.size = 0;
  CHECK_C_ERROR(stride_open(path.c_str(), &o, &db), STRIDE_INVALID_ARGUMENT, "stride_options");
  CHECK(db == nullptr);
  REQUIRE_C_OK(stride_options_init(&o, sizeof o));
  o.reserved_too = 1;
  CHECK_C_ERROR(stride_open(path.c_str(), &o, &db), STRIDE_INVALID_ARGUMENT, "reserved");
  o.reserved_too = 0;
  const int32_t twice[] = {0, 1, 0}, none[] = {1000};
  o.device_count = 3;
  CHECK_C_ERROR(stride_open(path.c_str(), &o, &db), STRIDE_INVALID_ARGUMENT, "devices");
  o.devices = twice;
  CHECK_C_ERROR(stride_open(path.c_str(), &o, &db), STRIDE_INVALID_ARGUMENT, "named twice");
  o.devices = none;
  o.device_count = 1;
  CHECK_C_ERROR(stride_open(path.c_str(), &o, &db), STRIDE_INVALID_ARGUMENT, "not there");
  o.devices = nullptr;
  o.device_count = 0;
  for (int* choice : {&o.durability, &o.backend, &o.value_placement}) {
    for (int wrong : {-1, 3}) {
      int right = *choice;
      *choice = wrong;
      CHECK_C_ERROR(stride_open(path.c_str(), &o, &db), STRIDE_INVALID_ARGUMENT, "possible");
      *choice = right;
    }
  }
  o.create_if_missing = 0;
  CHECK_C_ERROR(stride_open(path.c_str(), &o, &db), STRIDE_NOT_FOUND, path);
  o.create_if_missing = 1;
  o.durability = STRIDE_DURABILITY_FLUSH;
  o.backend = STRIDE_BACKEND_HOST;
  o.threads = 1;
  o.memory_limit_bytes = 64 << 20;
  REQUIRE_C_OK(stride_open(path.c_str(), &o, &db));
  REQUIRE_C_OK(stride_close(db));
}

// A program that was compiled with a later header.
TEST_CASE("COptionsTest.LargerStructs", "[COptionsTest]") {
  TemporaryDirectory directory;
  struct {
    stride_options options;
    uint64_t later;
  } o;
  std::memset(&o, 0xEE, sizeof o);
  REQUIRE_C_OK(stride_options_init(&o.options, sizeof o));
  CHECK(o.options.size == sizeof o);
  CHECK(o.later == 0u);
  stride_database* db;
  REQUIRE_C_OK(stride_open(directory.file("db").c_str(), &o.options, &db));
  REQUIRE_C_OK(stride_close(db));
  o.later = 1;
  CHECK_C_ERROR(stride_open(directory.file("db").c_str(), &o.options, &db), STRIDE_UNAVAILABLE,
                "lacks");
}

TEST_CASE_METHOD(CWriteTest, "CWriteTest.Tables", "[CWriteTest]") {
  stride_table* wide;
  REQUIRE_C_OK(stride_table_open_or_create(db_, "wide", 8, &wide));
  uint32_t width = 0;
  CHECK_C_OK(stride_table_key_width(wide, &width));
  CHECK(width == 8u);
  stride_table* other;
  CHECK_C_ERROR(stride_table_create(db_, "wide", 8, &other), STRIDE_ALREADY_EXISTS, "wide");
  CHECK(other == nullptr);
  CHECK_C_ERROR(stride_table_open_or_create(db_, "wide", 4, &other), STRIDE_INVALID_ARGUMENT, "4");
  CHECK_C_ERROR(stride_table_open(db_, "none", &other), STRIDE_NOT_FOUND, "none");
  CHECK_C_ERROR(stride_table_create(db_, "", 0, &other), STRIDE_INVALID_ARGUMENT, "255");
  CHECK_C_ERROR(stride_table_create(db_, "x", 70000, &other), STRIDE_INVALID_ARGUMENT, "65535");
  put(wide, {"12345678", "abcdefgh"}, {"1", "2"});

  CHECK_C_OK(stride_compact(db_));  // a small commit makes no run

  stride_tables* list;
  REQUIRE_C_OK(stride_table_list(db_, &list));
  uint64_t size = 0;
  CHECK_C_OK(stride_tables_size(list, &size));
  REQUIRE(size == 2u);
  stride_table_info info{};
  CHECK_C_ERROR(stride_tables_get(list, 0, &info), STRIDE_INVALID_ARGUMENT, "48");
  info.size = sizeof info;
  CHECK_C_OK(stride_tables_get(list, 0, &info));
  CHECK(std::string_view(info.name) == "t");
  CHECK(info.rows == 0u);
  CHECK_C_OK(stride_tables_get(list, 1, &info));
  CHECK(std::string_view(info.name) == "wide");
  CHECK(info.key_width == 8u);
  CHECK(info.runs == 1u);
  CHECK(info.rows == 2u);
  CHECK(info.bytes_on_disk > 0u);
  CHECK(info.memtable_rows == 0u);
  CHECK(info.filter_bytes == 0u);
  CHECK_C_ERROR(stride_tables_get(list, 2, &info), STRIDE_INVALID_ARGUMENT, "2");
  CHECK_C_OK(stride_tables_release(list));

  uint64_t bytes = 0;
  CHECK_C_OK(stride_size(db_, &bytes));
  CHECK(bytes > info.bytes_on_disk);
  CHECK_C_OK(stride_table_drop(db_, "wide"));
  CHECK_C_ERROR(stride_table_drop(db_, "wide"), STRIDE_NOT_FOUND, "wide");
  uint64_t count;
  CHECK_C_ERROR(stride_count(snapshot(), wide, &count), STRIDE_NOT_FOUND, "wide");
  CHECK_C_OK(stride_table_release(wide));
}

TEST_CASE_METHOD(CWriteTest, "CWriteTest.RenamesTables", "[CWriteTest]") {
  put(table_, {"a"}, {"1"});
  REQUIRE_C_OK(stride_table_rename(db_, "t", "old"));
  CHECK_C_ERROR(stride_table_rename(db_, "t", "u"), STRIDE_NOT_FOUND, "t");
  CHECK_C_ERROR(stride_table_rename(db_, "old", ""), STRIDE_INVALID_ARGUMENT, "name");
  CHECK_C_ERROR(stride_table_rename(db_, "old", ".stride"), STRIDE_INVALID_ARGUMENT, ".stride");
  CHECK(scan(table_) == Strings{"a"});
  // Another table takes its place in one step.
  stride_table *next = nullptr, *now = nullptr;
  REQUIRE_C_OK(stride_table_create(db_, "next", 0, &next));
  put(next, {"b"}, {"2"});
  CHECK_C_ERROR(stride_table_rename(db_, "next", "old"), STRIDE_ALREADY_EXISTS, "old");
  stride_transaction* t = begin();
  REQUIRE_C_OK(stride_table_rename_in(t, table_, "older"));
  CHECK_C_ERROR(stride_table_rename_in(t, table_, "oldest"), STRIDE_ALREADY_EXISTS, "old");
  REQUIRE_C_OK(stride_table_rename_in(t, next, "old"));
  CHECK_C_ERROR(stride_table_open(db_, "older", &now), STRIDE_NOT_FOUND, "older");
  commit(t);
  REQUIRE_C_OK(stride_table_open(db_, "old", &now));
  CHECK(scan(now) == Strings{"b"});
  CHECK_C_OK(stride_table_release(now));
  REQUIRE_C_OK(stride_table_open(db_, "older", &now));
  CHECK(scan(now) == Strings{"a"});
  CHECK_C_OK(stride_table_release(now));
  CHECK_C_OK(stride_table_release(next));
}

TEST_CASE_METHOD(CWriteTest, "CWriteTest.PutsErasesAndRangesInOrder", "[CWriteTest]") {
  const Strings keys = {"", "\0"s, "a", "a", "b", "c", "\xFF"s, "\xFF\xFF"s};
  put(table_, keys, {"empty", "zero", "1", "2", "", "3", "4", "5"});
  CHECK(scan(table_) == (Strings{"", "\0"s, "a", "b", "c", "\xFF"s, "\xFF\xFF"s}));
  stride_bytes value;
  CHECK_C_OK(stride_get_one(snapshot(), table_, "a", 1, &value));
  CHECK(std::string(static_cast<const char*>(value.data), value.size) == "2");  // the last

  stride_transaction* t = begin();
  CRows gone({"b", "not there"});
  stride_column column = gone.column();
  CHECK_C_OK(stride_erase(t, table_, &column));
  CRows from({"\xFF"s, ""}), to({"\xFF\x01"s, "a"});
  stride_column from_column = from.column(), to_column = to.column();
  CHECK_C_OK(stride_erase_ranges(t, table_, &from_column, &to_column));
  CHECK_C_OK(stride_put_one(t, table_, "d", 1, nullptr, 0));
  commit(t);
  CHECK(scan(table_) == (Strings{"a", "c", "d", "\xFF\xFF"s}));

  t = begin();
  stride_bytes c = bytes_of("c");
  CHECK_C_OK(stride_erase_range(t, table_, nullptr, &c));
  CHECK_C_OK(stride_put_one(t, table_, nullptr, 0, "again", 5));
  commit(t);
  CHECK(scan(table_) == (Strings{"", "c", "d", "\xFF\xFF"s}));
  t = begin();
  CHECK_C_OK(stride_erase_range(t, table_, nullptr, nullptr));
  CHECK_C_OK(stride_commit(t, STRIDE_DURABILITY_NONE));
  CHECK(scan(table_) == Strings{});
  CHECK_C_OK(stride_compact(db_));
  CHECK_C_OK(stride_verify(db_));
}

TEST_CASE_METHOD(CWriteTest, "CWriteTest.ViewsFixedColumnsAndNothing", "[CWriteTest]") {
  stride_table* wide;
  REQUIRE_C_OK(stride_table_create(db_, "wide", 8, &wide));
  const int64_t numbers[] = {5, INT64_MIN, -1, 0, INT64_MAX};
  char bytes[5 * 8];
  REQUIRE_C_OK(stride_int64_to_keys(numbers, 5, bytes));
  stride_column keys{bytes, nullptr, 5, 8}, no_bytes{nullptr, nullptr, 5, 0}, nothing{};
  stride_transaction* t = begin();
  CHECK_C_OK(stride_put_view(t, wide, &keys, &no_bytes));
  CHECK_C_OK(stride_put(t, wide, &nothing, &nothing));
  CHECK_C_OK(stride_put_view(t, wide, &nothing, &nothing));
  CHECK_C_OK(stride_erase(t, wide, &nothing));
  CHECK_C_OK(stride_erase_ranges(t, wide, &nothing, &nothing));
  commit(t);
  std::vector<int64_t> ordered;
  for (const std::string& key : scan(wide)) {
    int64_t number;
    CHECK_C_OK(stride_int64_from_keys(key.data(), 1, &number));
    ordered.push_back(number);
  }
  CHECK(ordered == (std::vector<int64_t>{INT64_MIN, -1, 0, 5, INT64_MAX}));
  CHECK_C_OK(stride_commit(begin(), STRIDE_DURABILITY_DEFAULT));
  CHECK_C_OK(stride_table_release(wide));
}

TEST_CASE("CInt64Test.BytesAreAsDocumented", "[CInt64Test]") {
  const int64_t numbers[] = {INT64_MIN, -1, 0, 1, 0x0102030405060708};
  unsigned char keys[5 * 8];
  REQUIRE_C_OK(stride_int64_to_keys(numbers, 5, keys));
  const std::string expected =
      "\x00\x00\x00\x00\x00\x00\x00\x00\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
      "\x80\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x01"
      "\x81\x02\x03\x04\x05\x06\x07\x08"s;
  CHECK(std::string(reinterpret_cast<char*>(keys), sizeof keys) == expected);
  int64_t back[5];
  REQUIRE_C_OK(stride_int64_from_keys(keys, 5, back));
  CHECK(std::equal(back, back + 5, numbers));
  CHECK_C_OK(stride_int64_to_keys(nullptr, 0, nullptr));
  CHECK_C_ERROR(stride_int64_to_keys(nullptr, 1, keys), STRIDE_INVALID_ARGUMENT, "numbers");
  CHECK_C_ERROR(stride_int64_from_keys(nullptr, 1, back), STRIDE_INVALID_ARGUMENT, "keys");
}

TEST_CASE_METHOD(CWriteTest, "CWriteTest.AbortLeavesNothingAndCommitEndsTheHandle",
                 "[CWriteTest]") {
  stride_transaction* t = begin();
  CHECK_C_OK(stride_put_one(t, table_, "a", 1, "b", 1));
  CHECK_C_OK(stride_abort(t));
  CHECK(scan(table_) == Strings{});
  CHECK_C_ERROR(stride_put_one(t, table_, "a", 1, "b", 1), STRIDE_INVALID_ARGUMENT, "released");
  CHECK_C_ERROR(stride_abort(t), STRIDE_INVALID_ARGUMENT, "released");

  t = begin();
  CHECK_C_OK(stride_put_one(t, table_, "a", 1, "b", 1));
  CHECK_C_ERROR(stride_commit(t, 3), STRIDE_INVALID_ARGUMENT, "durability");  // it goes on
  commit(t);
  CHECK_C_ERROR(stride_commit(t, STRIDE_DURABILITY_DEFAULT), STRIDE_INVALID_ARGUMENT, "released");
  CHECK(scan(table_) == Strings{"a"});
}

TEST_CASE_METHOD(CWriteTest, "CWriteTest.BadColumnsStageNothing", "[CWriteTest]") {
  stride_transaction* t = begin();
  CRows two({"a", "b"}), one({"a"}), long_key({std::string(65536, 'k')});
  stride_column k2 = two.column(), k1 = one.column(), kl = long_key.column();
  CHECK_C_ERROR(stride_put(t, table_, &k2, &k1), STRIDE_INVALID_ARGUMENT, "2 rows");
  CHECK_C_ERROR(stride_put(t, table_, &kl, &k1), STRIDE_INVALID_ARGUMENT, "65535");
  CHECK_C_ERROR(stride_erase(t, table_, &kl), STRIDE_INVALID_ARGUMENT, "65535");
  CHECK_C_ERROR(stride_erase_ranges(t, table_, &k2, &k1), STRIDE_INVALID_ARGUMENT, "1");
  uint64_t descending[] = {2, 1};
  stride_column bad{"ab", descending, 1, 0};
  CHECK_C_ERROR(stride_put(t, table_, &bad, &k1), STRIDE_INVALID_ARGUMENT, "descend");
  CHECK_C_ERROR(stride_put(t, table_, &k1, &bad), STRIDE_INVALID_ARGUMENT, "descend");
  CHECK_C_ERROR(stride_erase_ranges(t, table_, &bad, &k1), STRIDE_INVALID_ARGUMENT, "descend");
  stride_column no_data{nullptr, nullptr, 3, 8}, endless{"ab", nullptr, UINT64_MAX, 8};
  CHECK_C_ERROR(stride_put(t, table_, &no_data, &no_data), STRIDE_INVALID_ARGUMENT, "NULL");
  CHECK_C_ERROR(stride_put(t, table_, &endless, &endless), STRIDE_INVALID_ARGUMENT, "memory");
  uint64_t offsets[] = {0, 2};
  stride_column no_bytes{nullptr, offsets, 1, 0};
  CHECK_C_ERROR(stride_put(t, table_, &no_bytes, &k1), STRIDE_INVALID_ARGUMENT, "NULL");
  commit(t);
  CHECK(scan(table_) == Strings{});
}

TEST_CASE_METHOD(CWriteTest, "CWriteTest.ClosingWithOpenChildren", "[CWriteTest]") {
  put(table_, {"a"}, {"1"});
  stride_snapshot* s = snapshot();
  stride_scan* scan;
  REQUIRE_C_OK(stride_scan_open(s, table_, nullptr, &scan));
  stride_transaction *t = begin(), *u = begin();
  CHECK_C_OK(stride_put_one(t, table_, "b", 1, "2", 1));
  REQUIRE_C_OK(stride_close(db_));
  uint64_t bytes;
  CHECK_C_ERROR(stride_size(db_, &bytes), STRIDE_INVALID_ARGUMENT, "released");
  CHECK_C_ERROR(stride_close(db_), STRIDE_INVALID_ARGUMENT, "released");
  db_ = nullptr;
  CHECK_C_ERROR(stride_commit(t, STRIDE_DURABILITY_DEFAULT), STRIDE_CLOSED, path());
  CHECK_C_OK(stride_abort(u));
  stride_bytes value;
  CHECK_C_OK(stride_get_one(s, table_, "a", 1, &value));
  CHECK(value.size == 1u);
  stride_column k, v;
  CHECK_C_OK(stride_scan_next(scan, &k, &v));
  CHECK(k.size == 1u);
  CHECK_C_OK(stride_scan_release(scan));
}

TEST_CASE_METHOD(CWriteTest, "CWriteTest.ATableIsCreatedByTheTransactionThatFillsIt",
                 "[CWriteTest]") {
  stride_transaction* t = begin();
  stride_table *made = nullptr, *again = nullptr;
  REQUIRE_C_OK(stride_table_create_in(t, "made", nullptr, &made));
  CHECK_C_OK(stride_put_one(t, made, "key", 3, "value", 5));
  CHECK_C_ERROR(stride_table_open(db_, "made", &again), STRIDE_NOT_FOUND, "made");
  CHECK_C_ERROR(stride_table_create_in(t, "made", nullptr, &again), STRIDE_ALREADY_EXISTS, "made");
  CHECK_C_ERROR(stride_table_create_in(t, "t", nullptr, &again), STRIDE_ALREADY_EXISTS, "t");
  CHECK_C_ERROR(stride_table_create_in(t, "x", nullptr, nullptr), STRIDE_INVALID_ARGUMENT, "table");
  CHECK(again == nullptr);
  commit(t);
  stride_snapshot* snapshot = nullptr;
  REQUIRE_C_OK(stride_snapshot_take(db_, &snapshot));
  uint64_t keys = 0;
  CHECK_C_OK(stride_count(snapshot, made, &keys));
  CHECK(keys == 1u);
  CHECK_C_OK(stride_snapshot_release(snapshot));
  CHECK_C_OK(stride_table_release(made));

  t = begin();
  REQUIRE_C_OK(stride_table_create_in(t, "aborted", nullptr, &made));
  CHECK_C_OK(stride_abort(t));
  CHECK_C_ERROR(stride_table_open(db_, "aborted", &again), STRIDE_NOT_FOUND, "aborted");
  CHECK_C_OK(stride_table_release(made));
}

TEST_CASE_METHOD(CWriteTest, "CWriteTest.Sync", "[CWriteTest]") {
  stride_transaction* t = begin();
  CHECK_C_OK(stride_put_one(t, table_, "key", 3, "value", 5));
  CHECK_C_OK(stride_commit(t, STRIDE_DURABILITY_NONE));
  CHECK_C_OK(stride_sync(db_));
  CHECK_C_ERROR(stride_sync(nullptr), STRIDE_INVALID_ARGUMENT, "NULL");
}

}  // namespace
}  // namespace stride::test

// Databases, tables and transactions through the C interface.
#include "tests/support/c_fixture.h"

namespace stride::test {
namespace {

using namespace std::string_literals;

class CWriteTest : public CTest {
 protected:
  // A transaction that changes nothing yet.
  stride_transaction* begin() {
    stride_transaction* t = nullptr;
    EXPECT_C_OK(stride_begin(db_, &t));
    return t;
  }
  void commit(stride_transaction* t) { EXPECT_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT)); }
};

TEST(CVersionTest, IsThatOfTheHeader) {
  std::string header = std::to_string(STRIDE_VERSION_MAJOR) + "." +
                       std::to_string(STRIDE_VERSION_MINOR) + "." +
                       std::to_string(STRIDE_VERSION_PATCH);
  EXPECT_EQ(stride_version(), header);
}

TEST(COptionsTest, DefaultsAndSizes) {
  stride_options o;
  std::memset(&o, 0xEE, sizeof o);
  ASSERT_C_OK(stride_options_init(&o, sizeof o));
  EXPECT_EQ(o.size, sizeof o);
  EXPECT_EQ(o.create_if_missing, 1);
  EXPECT_EQ(o.durability, STRIDE_DURABILITY_SYNC);
  EXPECT_EQ(o.backend, STRIDE_BACKEND_AUTOMATIC);
  EXPECT_EQ(o.read_only + o.error_if_exists + o.value_placement, 0);
  EXPECT_EQ(o.threads + o.reserved + o.memory_limit_bytes + o.gpu_memory_limit_bytes, 0u);
  EXPECT_C_ERROR(stride_options_init(nullptr, sizeof o), STRIDE_INVALID_ARGUMENT, "NULL");
  EXPECT_C_ERROR(stride_options_init(&o, 8), STRIDE_INVALID_ARGUMENT, "56");

  TemporaryDirectory directory;
  std::string path = directory.file("db");
  stride_database* db;
  o.size = 0;
  EXPECT_C_ERROR(stride_open(path.c_str(), &o, &db), STRIDE_INVALID_ARGUMENT, "stride_options");
  EXPECT_EQ(db, nullptr);
  ASSERT_C_OK(stride_options_init(&o, sizeof o));
  for (int* choice : {&o.durability, &o.backend, &o.value_placement}) {
    for (int wrong : {-1, 3}) {
      int right = *choice;
      *choice = wrong;
      EXPECT_C_ERROR(stride_open(path.c_str(), &o, &db), STRIDE_INVALID_ARGUMENT, "possible");
      *choice = right;
    }
  }
  o.create_if_missing = 0;
  EXPECT_C_ERROR(stride_open(path.c_str(), &o, &db), STRIDE_NOT_FOUND, path);
  o.create_if_missing = 1;
  o.durability = STRIDE_DURABILITY_FLUSH;
  o.backend = STRIDE_BACKEND_HOST;
  o.threads = 1;
  o.memory_limit_bytes = 64 << 20;
  ASSERT_C_OK(stride_open(path.c_str(), &o, &db));
  ASSERT_C_OK(stride_close(db));
}

// A program that was compiled with a later header.
TEST(COptionsTest, LargerStructs) {
  TemporaryDirectory directory;
  struct {
    stride_options options;
    uint64_t later;
  } o;
  std::memset(&o, 0xEE, sizeof o);
  ASSERT_C_OK(stride_options_init(&o.options, sizeof o));
  EXPECT_EQ(o.options.size, sizeof o);
  EXPECT_EQ(o.later, 0u);
  stride_database* db;
  ASSERT_C_OK(stride_open(directory.file("db").c_str(), &o.options, &db));
  ASSERT_C_OK(stride_close(db));
  o.later = 1;
  EXPECT_C_ERROR(stride_open(directory.file("db").c_str(), &o.options, &db), STRIDE_UNAVAILABLE,
                 "lacks");
}

TEST_F(CWriteTest, Tables) {
  stride_table* wide;
  ASSERT_C_OK(stride_table_open_or_create(db_, "wide", 8, &wide));
  uint32_t width = 0;
  EXPECT_C_OK(stride_table_key_width(wide, &width));
  EXPECT_EQ(width, 8u);
  stride_table* other;
  EXPECT_C_ERROR(stride_table_create(db_, "wide", 8, &other), STRIDE_ALREADY_EXISTS, "wide");
  EXPECT_EQ(other, nullptr);
  EXPECT_C_ERROR(stride_table_open_or_create(db_, "wide", 4, &other), STRIDE_INVALID_ARGUMENT, "4");
  EXPECT_C_ERROR(stride_table_open(db_, "none", &other), STRIDE_NOT_FOUND, "none");
  EXPECT_C_ERROR(stride_table_create(db_, "", 0, &other), STRIDE_INVALID_ARGUMENT, "255");
  EXPECT_C_ERROR(stride_table_create(db_, "x", 70000, &other), STRIDE_INVALID_ARGUMENT, "65535");
  put(wide, {"12345678", "abcdefgh"}, {"1", "2"});

  stride_tables* list;
  ASSERT_C_OK(stride_table_list(db_, &list));
  uint64_t size = 0;
  EXPECT_C_OK(stride_tables_size(list, &size));
  ASSERT_EQ(size, 2u);
  stride_table_info info{};
  EXPECT_C_ERROR(stride_tables_get(list, 0, &info), STRIDE_INVALID_ARGUMENT, "48");
  info.size = sizeof info;
  EXPECT_C_OK(stride_tables_get(list, 0, &info));
  EXPECT_STREQ(info.name, "t");
  EXPECT_EQ(info.rows, 0u);
  EXPECT_C_OK(stride_tables_get(list, 1, &info));
  EXPECT_STREQ(info.name, "wide");
  EXPECT_EQ(info.key_width, 8u);
  EXPECT_EQ(info.runs, 1u);
  EXPECT_EQ(info.rows, 2u);
  EXPECT_GT(info.bytes_on_disk, 0u);
  EXPECT_C_ERROR(stride_tables_get(list, 2, &info), STRIDE_INVALID_ARGUMENT, "2");
  EXPECT_C_OK(stride_tables_release(list));

  uint64_t bytes = 0;
  EXPECT_C_OK(stride_size(db_, &bytes));
  EXPECT_GT(bytes, info.bytes_on_disk);
  EXPECT_C_OK(stride_table_drop(db_, "wide"));
  EXPECT_C_ERROR(stride_table_drop(db_, "wide"), STRIDE_NOT_FOUND, "wide");
  uint64_t count;
  EXPECT_C_ERROR(stride_count(snapshot(), wide, &count), STRIDE_NOT_FOUND, "wide");
  EXPECT_C_OK(stride_table_release(wide));
}

TEST_F(CWriteTest, PutsErasesAndRangesInOrder) {
  const Strings keys = {"", "\0"s, "a", "a", "b", "c", "\xFF"s, "\xFF\xFF"s};
  put(table_, keys, {"empty", "zero", "1", "2", "", "3", "4", "5"});
  EXPECT_EQ(scan(table_), (Strings{"", "\0"s, "a", "b", "c", "\xFF"s, "\xFF\xFF"s}));
  stride_bytes value;
  EXPECT_C_OK(stride_get_one(snapshot(), table_, "a", 1, &value));
  EXPECT_EQ(std::string(static_cast<const char*>(value.data), value.size), "2");  // the last

  stride_transaction* t = begin();
  CRows gone({"b", "not there"});
  stride_column column = gone.column();
  EXPECT_C_OK(stride_erase(t, table_, &column));
  CRows from({"\xFF"s, ""}), to({"\xFF\x01"s, "a"});
  stride_column from_column = from.column(), to_column = to.column();
  EXPECT_C_OK(stride_erase_ranges(t, table_, &from_column, &to_column));
  EXPECT_C_OK(stride_put_one(t, table_, "d", 1, nullptr, 0));
  commit(t);
  EXPECT_EQ(scan(table_), (Strings{"a", "c", "d", "\xFF\xFF"s}));

  t = begin();
  stride_bytes c = bytes_of("c");
  EXPECT_C_OK(stride_erase_range(t, table_, nullptr, &c));
  EXPECT_C_OK(stride_put_one(t, table_, nullptr, 0, "again", 5));
  commit(t);
  EXPECT_EQ(scan(table_), (Strings{"", "c", "d", "\xFF\xFF"s}));
  t = begin();
  EXPECT_C_OK(stride_erase_range(t, table_, nullptr, nullptr));
  EXPECT_C_OK(stride_commit(t, STRIDE_DURABILITY_NONE));
  EXPECT_EQ(scan(table_), Strings{});
  EXPECT_C_OK(stride_compact(db_));
  EXPECT_C_OK(stride_verify(db_));
}

TEST_F(CWriteTest, ViewsFixedColumnsAndNothing) {
  stride_table* wide;
  ASSERT_C_OK(stride_table_create(db_, "wide", 8, &wide));
  const int64_t numbers[] = {5, INT64_MIN, -1, 0, INT64_MAX};
  char bytes[5 * 8];
  ASSERT_C_OK(stride_int64_to_keys(numbers, 5, bytes));
  stride_column keys{bytes, nullptr, 5, 8}, no_bytes{nullptr, nullptr, 5, 0}, nothing{};
  stride_transaction* t = begin();
  EXPECT_C_OK(stride_put_view(t, wide, &keys, &no_bytes));
  EXPECT_C_OK(stride_put(t, wide, &nothing, &nothing));
  EXPECT_C_OK(stride_put_view(t, wide, &nothing, &nothing));
  EXPECT_C_OK(stride_erase(t, wide, &nothing));
  EXPECT_C_OK(stride_erase_ranges(t, wide, &nothing, &nothing));
  commit(t);
  std::vector<int64_t> ordered;
  for (const std::string& key : scan(wide)) {
    int64_t number;
    EXPECT_C_OK(stride_int64_from_keys(key.data(), 1, &number));
    ordered.push_back(number);
  }
  EXPECT_EQ(ordered, (std::vector<int64_t>{INT64_MIN, -1, 0, 5, INT64_MAX}));
  EXPECT_C_OK(stride_commit(begin(), STRIDE_DURABILITY_DEFAULT));
  EXPECT_C_OK(stride_table_release(wide));
}

TEST(CInt64Test, BytesAreAsDocumented) {
  const int64_t numbers[] = {INT64_MIN, -1, 0, 1, 0x0102030405060708};
  unsigned char keys[5 * 8];
  ASSERT_C_OK(stride_int64_to_keys(numbers, 5, keys));
  const std::string expected =
      "\x00\x00\x00\x00\x00\x00\x00\x00\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
      "\x80\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x01"
      "\x81\x02\x03\x04\x05\x06\x07\x08"s;
  EXPECT_EQ(std::string(reinterpret_cast<char*>(keys), sizeof keys), expected);
  int64_t back[5];
  ASSERT_C_OK(stride_int64_from_keys(keys, 5, back));
  EXPECT_TRUE(std::equal(back, back + 5, numbers));
  EXPECT_C_OK(stride_int64_to_keys(nullptr, 0, nullptr));
  EXPECT_C_ERROR(stride_int64_to_keys(nullptr, 1, keys), STRIDE_INVALID_ARGUMENT, "numbers");
  EXPECT_C_ERROR(stride_int64_from_keys(nullptr, 1, back), STRIDE_INVALID_ARGUMENT, "keys");
}

TEST_F(CWriteTest, AbortLeavesNothingAndCommitEndsTheHandle) {
  stride_transaction* t = begin();
  EXPECT_C_OK(stride_put_one(t, table_, "a", 1, "b", 1));
  EXPECT_C_OK(stride_abort(t));
  EXPECT_EQ(scan(table_), Strings{});
  EXPECT_C_ERROR(stride_put_one(t, table_, "a", 1, "b", 1), STRIDE_INVALID_ARGUMENT, "released");
  EXPECT_C_ERROR(stride_abort(t), STRIDE_INVALID_ARGUMENT, "released");

  t = begin();
  EXPECT_C_OK(stride_put_one(t, table_, "a", 1, "b", 1));
  EXPECT_C_ERROR(stride_commit(t, 3), STRIDE_INVALID_ARGUMENT, "durability");  // it goes on
  commit(t);
  EXPECT_C_ERROR(stride_commit(t, STRIDE_DURABILITY_DEFAULT), STRIDE_INVALID_ARGUMENT, "released");
  EXPECT_EQ(scan(table_), Strings{"a"});
}

TEST_F(CWriteTest, BadColumnsStageNothing) {
  stride_transaction* t = begin();
  CRows two({"a", "b"}), one({"a"}), long_key({std::string(65536, 'k')});
  stride_column k2 = two.column(), k1 = one.column(), kl = long_key.column();
  EXPECT_C_ERROR(stride_put(t, table_, &k2, &k1), STRIDE_INVALID_ARGUMENT, "2 rows");
  EXPECT_C_ERROR(stride_put(t, table_, &kl, &k1), STRIDE_INVALID_ARGUMENT, "65535");
  EXPECT_C_ERROR(stride_erase(t, table_, &kl), STRIDE_INVALID_ARGUMENT, "65535");
  EXPECT_C_ERROR(stride_erase_ranges(t, table_, &k2, &k1), STRIDE_INVALID_ARGUMENT, "1");
  uint64_t descending[] = {2, 1};
  stride_column bad{"ab", descending, 1, 0};
  EXPECT_C_ERROR(stride_put(t, table_, &bad, &k1), STRIDE_INVALID_ARGUMENT, "descend");
  EXPECT_C_ERROR(stride_put(t, table_, &k1, &bad), STRIDE_INVALID_ARGUMENT, "descend");
  EXPECT_C_ERROR(stride_erase_ranges(t, table_, &bad, &k1), STRIDE_INVALID_ARGUMENT, "descend");
  stride_column no_data{nullptr, nullptr, 3, 8}, endless{"ab", nullptr, UINT64_MAX, 8};
  EXPECT_C_ERROR(stride_put(t, table_, &no_data, &no_data), STRIDE_INVALID_ARGUMENT, "NULL");
  EXPECT_C_ERROR(stride_put(t, table_, &endless, &endless), STRIDE_INVALID_ARGUMENT, "memory");
  uint64_t offsets[] = {0, 2};
  stride_column no_bytes{nullptr, offsets, 1, 0};
  EXPECT_C_ERROR(stride_put(t, table_, &no_bytes, &k1), STRIDE_INVALID_ARGUMENT, "NULL");
  commit(t);
  EXPECT_EQ(scan(table_), Strings{});
}

TEST_F(CWriteTest, ClosingWithOpenChildren) {
  put(table_, {"a"}, {"1"});
  stride_snapshot* s = snapshot();
  stride_scan* scan;
  ASSERT_C_OK(stride_scan_open(s, table_, nullptr, &scan));
  stride_transaction *t = begin(), *u = begin();
  EXPECT_C_OK(stride_put_one(t, table_, "b", 1, "2", 1));
  ASSERT_C_OK(stride_close(db_));
  uint64_t bytes;
  EXPECT_C_ERROR(stride_size(db_, &bytes), STRIDE_INVALID_ARGUMENT, "released");
  EXPECT_C_ERROR(stride_close(db_), STRIDE_INVALID_ARGUMENT, "released");
  db_ = nullptr;
  EXPECT_C_ERROR(stride_commit(t, STRIDE_DURABILITY_DEFAULT), STRIDE_CLOSED, path());
  EXPECT_C_OK(stride_abort(u));
  stride_bytes value;
  EXPECT_C_OK(stride_get_one(s, table_, "a", 1, &value));
  EXPECT_EQ(value.size, 1u);
  stride_column k, v;
  EXPECT_C_OK(stride_scan_next(scan, &k, &v));
  EXPECT_EQ(k.size, 1u);
  EXPECT_C_OK(stride_scan_release(scan));
}

TEST_F(CWriteTest, ATableIsCreatedByTheTransactionThatFillsIt) {
  stride_transaction* t = begin();
  stride_table *made = nullptr, *again = nullptr;
  ASSERT_C_OK(stride_table_create_in(t, "made", nullptr, &made));
  EXPECT_C_OK(stride_put_one(t, made, "key", 3, "value", 5));
  EXPECT_C_ERROR(stride_table_open(db_, "made", &again), STRIDE_NOT_FOUND, "made");
  EXPECT_C_ERROR(stride_table_create_in(t, "made", nullptr, &again), STRIDE_ALREADY_EXISTS, "made");
  EXPECT_C_ERROR(stride_table_create_in(t, "t", nullptr, &again), STRIDE_ALREADY_EXISTS, "t");
  EXPECT_C_ERROR(stride_table_create_in(t, "x", nullptr, nullptr), STRIDE_INVALID_ARGUMENT, "table");
  EXPECT_EQ(again, nullptr);
  commit(t);
  stride_snapshot* snapshot = nullptr;
  ASSERT_C_OK(stride_snapshot_take(db_, &snapshot));
  uint64_t keys = 0;
  EXPECT_C_OK(stride_count(snapshot, made, &keys));
  EXPECT_EQ(keys, 1u);
  EXPECT_C_OK(stride_snapshot_release(snapshot));
  EXPECT_C_OK(stride_table_release(made));

  t = begin();
  ASSERT_C_OK(stride_table_create_in(t, "aborted", nullptr, &made));
  EXPECT_C_OK(stride_abort(t));
  EXPECT_C_ERROR(stride_table_open(db_, "aborted", &again), STRIDE_NOT_FOUND, "aborted");
  EXPECT_C_OK(stride_table_release(made));
}

TEST_F(CWriteTest, Sync) {
  stride_transaction* t = begin();
  EXPECT_C_OK(stride_put_one(t, table_, "key", 3, "value", 5));
  EXPECT_C_OK(stride_commit(t, STRIDE_DURABILITY_NONE));
  EXPECT_C_OK(stride_sync(db_));
  EXPECT_C_ERROR(stride_sync(nullptr), STRIDE_INVALID_ARGUMENT, "NULL");
}

}  // namespace
}  // namespace stride::test

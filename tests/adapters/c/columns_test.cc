// Columns of cells through the C interface, beside lists of cells.
#include <functional>
#include <map>
#include <random>

#include "adapters/c/stridedb_columns.h"
#include "storage/key_format.h"
#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_schema.h"

namespace stride::test {
namespace {

using Cells = std::vector<Cell>;

// The cells of a column in memory, with gaps between those of one width.
class CellMemory {
 public:
  CellMemory(const Field& field, const Cells& cells, std::mt19937_64& random)
      : width_(cell_width(field)),
        gap_(random() % 4),
        nullable_(field.nullable),
        size_(cells.size()),
        valid_(cells.size() / 64 + 1) {
    if (!width_) data_ = "before";
    offsets_ = {data_.size()};
    for (size_t i = 0; i < cells.size(); ++i) {
      data_ += cells[i].value_or(std::string(width_ ? width_ : i % 3, '?'));
      if (width_) data_.append(gap_, '!');
      offsets_.push_back(data_.size());
      if (cells[i]) valid_[i / 64] |= uint64_t{1} << i % 64;
    }
  }
  stride_cells cells() const {
    return {data_.data(),
            width_ ? nullptr : offsets_.data(),
            nullable_ ? valid_.data() : nullptr,
            size_,
            width_,
            gap_ ? width_ + gap_ : 0};
  }

 private:
  uint32_t width_;
  uint64_t gap_;
  bool nullable_;
  uint64_t size_;
  std::string data_;
  std::vector<uint64_t> offsets_, valid_;
};

Cell cell_of(const stride_cells& cells, uint64_t i) {
  if (cells.valid && !bit(cells.valid, i)) return std::nullopt;
  auto* data = static_cast<const char*>(cells.data);
  if (!cells.offsets) return std::string(data + i * cells.stride, cells.width);
  return std::string(data + cells.offsets[i], cells.offsets[i + 1] - cells.offsets[i]);
}

class CColumnsTest : public CTest {
 protected:
  CColumnsTest() {
    REQUIRE_C_OK(stride_values_create(&values_));
    REQUIRE_C_OK(stride_keys_create(&keys_));
    people_ = create("people", "id u64 key, name string, score f64?");
  }
  ~CColumnsTest() {
    CHECK_C_OK(stride_table_release(people_));
    CHECK_C_OK(stride_values_release(values_));
    CHECK_C_OK(stride_keys_release(keys_));
  }
  stride_table* create(const char* name, const std::string& schema) {
    stride_table_options o;
    stride_table* table = nullptr;
    REQUIRE_C_OK(stride_table_options_init(&o, sizeof o));
    CHECK(o.schema == nullptr);
    o.schema = schema.c_str();
    REQUIRE_C_OK(stride_table_create_with(db_, name, &o, &table));
    return table;
  }
  // Puts the columns and commits them.
  void put_columns(stride_table* table, const stride_column& keys,
                   const std::vector<stride_cells>& columns) {
    stride_transaction* t;
    REQUIRE_C_OK(stride_begin(db_, &t));
    REQUIRE_C_OK(stride_put_columns(t, table, &keys, columns.data(), columns.size()));
    REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_NONE));
  }
  stride_column keys_of(const std::vector<uint64_t>& ids) {
    stride_cells id{ids.data(), nullptr, nullptr, ids.size(), 8, 0};
    stride_column column{};
    REQUIRE_C_OK(stride_keys_of_cells(keys_, people_, &id, 1, &column));
    return column;
  }
  // Puts "ab" with 1.5 and "c" with null under 7 and 3.
  void put_people() {
    put_columns(people_, keys_of({7, 3}), {name_, score_});
    snapshot();
  }
  // A status that the call has to return, with a word of its text; nothing is put.
  void expect_refused(const std::vector<stride_cells>& columns, const char* mentions) {
    stride_transaction* t;
    const stride_column keys = keys_of({1, 2});
    REQUIRE_C_OK(stride_begin(db_, &t));
    CHECK_C_ERROR(stride_put_columns(t, people_, &keys, columns.data(), columns.size()), invalid,
                  mentions);
    CHECK_C_OK(stride_commit(t, STRIDE_DURABILITY_NONE));
    uint64_t count = 1;
    CHECK_C_OK(stride_count(snapshot(), people_, &count));
    CHECK(count == 0u);
  }

  std::mt19937_64 random_{seed()};
  stride_table* people_ = nullptr;
  stride_values* values_ = nullptr;
  stride_keys* keys_ = nullptr;
  const uint64_t ends_[3] = {0, 2, 3}, first_only_[1] = {1};
  const double scores_[2] = {1.5, -1};
  const stride_cells name_{"abc", ends_, nullptr, 2, 0, 0};
  const stride_cells score_{scores_, nullptr, first_only_, 2, 8, 0};
};

// A table of a random schema with random rows, of which a key may come several times.
struct RandomTable {
  Schema schema;
  std::vector<Cells> keys, columns;
  uint64_t rows;

  explicit RandomTable(std::mt19937_64& random) : rows(random() % 300) {
    std::vector<Field> key(1 + random() % 3);
    for (size_t i = 0; i < key.size(); ++i)
      key[i] = {"k" + std::to_string(i), static_cast<FieldType>(random() % field_types)};
    schema = *Schema::make(random_schema(random, random() % 2).values(), key);
    keys = random_cells(schema.key(), random);
    columns = random_cells(schema.values(), random);
  }
  std::vector<Cells> random_cells(const std::vector<Field>& fields, std::mt19937_64& random) const {
    std::vector<Cells> cells(fields.size());
    for (size_t c = 0; c < fields.size(); ++c)
      for (uint64_t row = 0; row < rows; ++row) cells[c].push_back(random_cell(fields[c], random));
    return cells;
  }
  Strings expected_keys() const {
    Strings expected;
    KeyWriter writer(schema);
    for (uint64_t row = 0; row < rows; ++row) {
      for (size_t c = 0; c < keys.size(); ++c) writer.set(c, std::string_view(*keys[c][row]));
      expected.emplace_back(writer.bytes());
    }
    return expected;
  }
};

TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.ColumnsComeBack", "[CColumnsTest]") {
  for (int i = 0; i < 12; ++i) {
    const RandomTable rows(random_);
    INFO(rows.schema.to_string());
    stride_table* table = create(("r" + std::to_string(i)).c_str(), rows.schema.to_string());
    auto views = [&](const std::vector<Field>& fields, const std::vector<Cells>& cells,
                     std::vector<CellMemory>* memory) {
      std::vector<stride_cells> columns;
      for (size_t c = 0; c < fields.size(); ++c) memory->emplace_back(fields[c], cells[c], random_);
      for (const CellMemory& m : *memory) columns.push_back(m.cells());
      return columns;
    };
    std::vector<CellMemory> key_memory, memory;
    const auto key_columns = views(rows.schema.key(), rows.keys, &key_memory);
    stride_column keys{};
    REQUIRE_C_OK(stride_keys_of_cells(keys_, table, key_columns.data(), key_columns.size(), &keys));
    REQUIRE(keys.size == rows.rows);
    const Strings expected = rows.expected_keys();
    std::map<std::string, uint64_t> last;
    for (uint64_t row = 0; row < rows.rows; ++row) {
      CHECK(row_of(keys, row) == expected[row]);
      last[expected[row]] = row;
    }
    std::vector<stride_cells> back(rows.keys.size());
    REQUIRE_C_OK(stride_cells_of_keys(keys_, table, &keys, back.data(), back.size()));
    for (size_t c = 0; c < back.size(); ++c) {
      REQUIRE(back[c].size == rows.rows);
      for (uint64_t row = 0; row < rows.rows; ++row)
        CHECK(cell_of(back[c], row) == rows.keys[c][row]);
    }
    put_columns(table, keys, views(rows.schema.values(), rows.columns, &memory));
    // Some keys that are there, and some that are not.
    Strings asked = expected;
    for (int k = 0; k < 5; ++k) asked.insert(asked.begin() + random_() % (asked.size() + 1), "?");
    const CRows queries(asked);
    const stride_column query = queries.column();
    REQUIRE_C_OK(stride_get(snapshot(), table, &query, values_));
    std::vector<stride_cells> cells(rows.columns.size());
    for (size_t c = 0; c < cells.size(); ++c)
      REQUIRE_C_OK(stride_values_cells(values_, table, c, &cells[c]));
    for (size_t c = 0; c < cells.size(); ++c) {  // all of them stay
      REQUIRE(cells[c].size == asked.size());
      for (uint64_t row = 0; row < asked.size(); ++row) {
        const auto found = last.find(asked[row]);
        CHECK(cell_of(cells[c], row) ==
              (found == last.end() ? std::nullopt : rows.columns[c][found->second]));
      }
    }
    CHECK_C_OK(stride_table_release(table));
  }
}

TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.ArraysOfStructs", "[CColumnsTest]") {
  struct Person {
    char padding[3];
    double score;
    uint64_t id;
  };
  const Person people[] = {{"", 1.5, 40}, {"", 2.5, 30}};
  const stride_cells id{&people[0].id, nullptr, nullptr, 2, 8, sizeof(Person)};
  const stride_cells score{&people[0].score, nullptr, nullptr, 2, 8, sizeof(Person)};
  stride_column keys;
  REQUIRE_C_OK(stride_keys_of_cells(keys_, people_, &id, 1, &keys));
  put_columns(people_, keys, {name_, score});
  size_t column = 7;
  REQUIRE_C_OK(stride_table_column(people_, "score", &column));
  CHECK(column == 1u);
  const stride_column query = keys_of({30, 35, 40});
  REQUIRE_C_OK(stride_get(snapshot(), people_, &query, values_));
  stride_cells found, again;
  REQUIRE_C_OK(stride_values_cells(values_, people_, column, &found));
  CHECK(found.width == 8u);
  CHECK(found.stride == 8u);
  CHECK(found.valid[0] == 0b101u);
  CHECK(static_cast<const double*>(found.data)[0] == 2.5);
  CHECK(static_cast<const double*>(found.data)[2] == 1.5);
  REQUIRE_C_OK(stride_values_cells(values_, people_, column, &again));
  CHECK(again.data == found.data);  // views of it stay
  // Keys of a scan, the other way.
  stride_scan* scan;
  stride_column k, v;
  stride_cells ids;
  REQUIRE_C_OK(stride_scan_open(snapshot_, people_, nullptr, &scan));
  REQUIRE_C_OK(stride_scan_next(scan, &k, &v));
  REQUIRE_C_OK(stride_cells_of_keys(keys_, people_, &k, &ids, 1));
  REQUIRE(ids.size == 2u);
  CHECK(static_cast<const uint64_t*>(ids.data)[0] == 30u);
  CHECK(static_cast<const uint64_t*>(ids.data)[1] == 40u);
  CHECK_C_OK(stride_scan_release(scan));
}

TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.SchemasAreOptionsAndListed", "[CColumnsTest]") {
  stride_table_options o;
  stride_table* table = nullptr;
  REQUIRE_C_OK(stride_table_options_init(&o, sizeof o));
  o.schema = "id u64 key, name strin";
  CHECK_C_ERROR(stride_table_create_with(db_, "bad", &o, &table), invalid, "strin");
  CHECK(table == nullptr);
  o.schema = "id u64 key, name string";
  CHECK_C_ERROR(stride_table_open_or_create_with(db_, "people", &o, &table), invalid, "score");
  o.schema = "a i32, b string";
  o.numbers = STRIDE_NUMBERS_I64;
  CHECK_C_ERROR(stride_table_create_with(db_, "bad", &o, &table), invalid, "columns");
  o.numbers = STRIDE_NUMBERS_NONE;
  stride_transaction* t;
  REQUIRE_C_OK(stride_begin(db_, &t));
  REQUIRE_C_OK(stride_table_create_in(t, "later", &o, &table));
  CRows keys({"x", "y"});
  const stride_column k = keys.column();
  const int32_t numbers[] = {1, 2};
  const stride_cells columns[] = {{numbers, nullptr, nullptr, 2, 4, 0}, name_};
  CHECK_C_OK(stride_put_columns(t, table, &k, columns, 2));
  CHECK_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  CHECK_C_OK(stride_table_release(table));
  CHECK_C_OK(stride_table_release(people_));
  CHECK_C_OK(stride_close(db_));
  REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &db_));
  REQUIRE_C_OK(stride_table_open(db_, "people", &people_));
  stride_tables* list;
  REQUIRE_C_OK(stride_table_list(db_, &list));
  uint64_t size = 0;
  REQUIRE_C_OK(stride_tables_size(list, &size));
  std::map<std::string, std::string> schemas;
  for (uint64_t i = 0; i < size; ++i) {
    stride_table_info info{};
    info.size = sizeof info;
    REQUIRE_C_OK(stride_tables_get(list, i, &info));
    schemas[info.name] = info.schema ? info.schema : "none";
  }
  CHECK(schemas["people"] == "id u64 key, name string, score f64?");
  CHECK(schemas["later"] == "a i32, b string");
  CHECK(schemas["t"] == "none");
  CHECK_C_OK(stride_tables_release(list));
}

// The list is good for the other tables, and for programs that know of no schemas.
TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.ASchemaThatIsDamaged", "[CColumnsTest]") {
  stride_table* notes;
  REQUIRE_C_OK(stride_table_open(db_, ".stride", &notes));
  const Strings keys = scan(notes);
  REQUIRE(keys.size() == 1u);
  put(notes, keys, {"id what key"});
  CHECK_C_OK(stride_table_release(notes));
  stride_tables* list;
  REQUIRE_C_OK(stride_table_list(db_, &list));
  uint64_t size = 0;
  int damaged = 0;
  REQUIRE_C_OK(stride_tables_size(list, &size));
  for (uint64_t i = 0; i < size; ++i) {
    stride_table_info info{};
    info.size = sizeof info;
    const int status = stride_tables_get(list, i, &info);
    damaged += status == STRIDE_CORRUPTION;
    if (status == STRIDE_OK) CHECK(std::string_view(info.name) != "people");
    info.size = offsetof(stride_table_info, schema);
    CHECK_C_OK(stride_tables_get(list, i, &info));
  }
  CHECK(damaged == 1);
  CHECK_C_OK(stride_tables_release(list));
}

TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.WrongColumnsAreRefused", "[CColumnsTest]") {
  auto with = [](stride_cells cells, auto member, auto value) {
    cells.*member = value;
    return cells;
  };
  expect_refused({name_}, "count is 1");
  expect_refused({name_, score_, score_}, "id u64 key, name string, score f64?");
  expect_refused({score_, name_}, "column 'name' is of type string, and cells of 8 bytes");
  expect_refused({name_, name_}, "column 'score'");
  expect_refused({name_, with(score_, &stride_cells::width, 4u)}, "cells of 4 bytes");
  expect_refused({name_, with(score_, &stride_cells::size, 1u)}, "has 1 rows");
  expect_refused({with(name_, &stride_cells::size, 1u), with(score_, &stride_cells::size, 1u)},
                 "2");
  expect_refused({name_, with(score_, &stride_cells::size, UINT64_MAX)}, "no memory holds");
  expect_refused({with(name_, &stride_cells::size, UINT64_MAX), score_}, "no memory holds");
  expect_refused({name_, with(score_, &stride_cells::stride, 7u)}, "begins after 7");
  expect_refused({name_, with(score_, &stride_cells::data, nullptr)},
                 "column 'score', row 0: the data is NULL");
  expect_refused({with(name_, &stride_cells::data, nullptr), score_},
                 "column 'name', row 0: the data is NULL");
  expect_refused({with(name_, &stride_cells::valid, first_only_), score_},
                 "column 'name', row 1: the cell is null");
  const uint64_t descending[] = {0, 2, 1}, empty[] = {5, 5, 5}, none[] = {0};
  expect_refused({with(name_, &stride_cells::offsets, descending), score_}, "descend");
  // What needs no data.
  const stride_cells no_bytes{nullptr, empty, nullptr, 2, 0, 0};
  put_columns(people_, keys_of({1, 2}), {no_bytes, {nullptr, nullptr, none, 2, 8, 0}});
  put_columns(people_, keys_of({}),
              {with(name_, &stride_cells::size, 0u), {nullptr, nullptr, nullptr, 0, 8, 0}});
}

TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.WrongKeysAreRefused", "[CColumnsTest]") {
  stride_table* table = create("places", "country string key, year i16 key, what f32");
  const int16_t years[] = {1999, -3};
  const stride_cells year{years, nullptr, nullptr, 2, 2, 0};
  stride_column column;
  auto refused = [&](const std::vector<stride_cells>& columns, const char* mentions) {
    CHECK_C_ERROR(stride_keys_of_cells(keys_, table, columns.data(), columns.size(), &column),
                  invalid, mentions);
  };
  refused({name_}, "count is 1");
  refused({year, name_}, "column 'country' is of type string, and cells of 2 bytes");
  refused({name_, score_}, "column 'year' is of type i16");
  refused({name_, {years, nullptr, nullptr, 1, 2, 0}}, "column 'year' has 1 rows");
  refused({name_, {years, nullptr, first_only_, 2, 2, 0}}, "column 'year', row 1");
  refused({name_, {nullptr, nullptr, nullptr, 2, 2, 0}}, "NULL");
  const uint64_t descending[] = {3, 2, 1};
  refused({{"abc", descending, nullptr, 2, 0, 0}, year}, "column 'country', row 0: the offsets");
  CHECK_C_ERROR(stride_keys_of_cells(keys_, table_, &year, 1, &column), invalid, "key columns");
  // The way back.
  stride_cells cells[2] = {name_, year};
  CRows rows({std::string("nz\0\0\x87\xcf", 6), "nz"});
  const stride_column keys = rows.column();
  CHECK_C_ERROR(stride_cells_of_keys(keys_, table, &keys, cells, 2), invalid, "row 1");
  CHECK(cells[0].data == name_.data);
  CHECK_C_ERROR(stride_cells_of_keys(keys_, table, &keys, cells, 1), invalid, "count is 1");
  CHECK_C_ERROR(stride_cells_of_keys(keys_, table_, &keys, cells, 2), invalid, "key columns");
  const uint64_t wild[] = {0, uint64_t{1} << 60, 8};
  const stride_column bad{"nz", wild, 2, 0};
  CHECK_C_ERROR(stride_cells_of_keys(keys_, table, &bad, cells, 2), invalid, "descend");
  CHECK_C_OK(stride_table_release(table));
}

TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.ValuesOfAnotherTableAndOldOnes", "[CColumnsTest]") {
  stride_cells cells;
  CHECK_C_ERROR(stride_values_cells(values_, people_, 0, &cells), invalid, "no result");
  put_people();
  stride_table* other = create("other", "id u64 key, name string, score f64?");
  const stride_column query = keys_of({7});
  REQUIRE_C_OK(stride_get(snapshot_, people_, &query, values_));
  CHECK_C_ERROR(stride_values_cells(values_, other, 0, &cells), invalid,
                "table 'people', not in 'other'");
  CHECK_C_ERROR(stride_values_cells(values_, table_, 0, &cells), invalid, "not in 't'");
  CHECK_C_ERROR(stride_values_cells(values_, people_, 2, &cells), invalid, "no column 2");
  CHECK_C_ERROR(stride_values_cells(values_, people_, SIZE_MAX, &cells), invalid, "no column");
  // Another handle of the same table will do, also once the first is released.
  CHECK_C_OK(stride_table_release(people_));
  REQUIRE_C_OK(stride_table_open(db_, "people", &people_));
  REQUIRE_C_OK(stride_values_cells(values_, people_, 0, &cells));
  CHECK(cell_of(cells, 0) == "ab");
  REQUIRE_C_OK(stride_get(snapshot_, table_, &query, values_));
  CHECK_C_ERROR(stride_values_cells(values_, table_, 0, &cells), invalid, "its values are bytes");
  CHECK(stride_get(snapshot_, people_, nullptr, values_) == invalid);
  CHECK_C_ERROR(stride_values_cells(values_, people_, 0, &cells), invalid, "no result");
  // Bytes that are no row.
  put(people_, {std::string(8, '\1')}, {"x"});
  const CRows damaged({std::string(8, '\1')});
  const stride_column k = damaged.column();
  REQUIRE_C_OK(stride_get(snapshot(), people_, &k, values_));
  CHECK_C_ERROR(stride_values_cells(values_, people_, 0, &cells), STRIDE_CORRUPTION, "row 0");
  CHECK_C_OK(stride_table_release(other));
}

TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.ColumnsByName", "[CColumnsTest]") {
  size_t column = 9;
  CHECK_C_OK(stride_table_column(people_, "name", &column));
  CHECK(column == 0u);
  CHECK_C_ERROR(stride_table_column(people_, "id", &column), STRIDE_NOT_FOUND, "'id'");
  CHECK_C_ERROR(stride_table_column(people_, "Name", &column), STRIDE_NOT_FOUND, "name string");
  CHECK_C_ERROR(stride_table_column(table_, "name", &column), STRIDE_NOT_FOUND, "no schema");
  CHECK(column == 0u);
}

TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.WrongHandles", "[CColumnsTest]") {
  put_people();
  const stride_column keys = keys_of({7});
  REQUIRE_C_OK(stride_get(snapshot_, people_, &keys, values_));
  stride_transaction* t;
  REQUIRE_C_OK(stride_begin(db_, &t));
  const uint64_t id = 1;
  const stride_cells ids{&id, nullptr, nullptr, 1, 8, 0}, both[] = {name_, score_};
  stride_cells cells;
  stride_column column;
  size_t number;
  struct Given {
    void *transaction, *table, *values, *keys;
  };
  auto table_of = [](const Given& g) { return static_cast<stride_table*>(g.table); };
  const std::vector<std::function<int(const Given&)>> calls = {
      [&](auto& g) { return stride_table_column(table_of(g), "name", &number); },
      [&](auto& g) {
        const stride_column k{"0123456789abcdef", nullptr, 2, 8};
        return stride_put_columns(static_cast<stride_transaction*>(g.transaction), table_of(g), &k,
                                  both, 2);
      },
      [&](auto& g) {
        return stride_values_cells(static_cast<stride_values*>(g.values), table_of(g), 0, &cells);
      },
      [&](auto& g) {
        return stride_cells_of_keys(static_cast<stride_keys*>(g.keys), table_of(g), &keys, &cells,
                                    1);
      },
      [&](auto& g) {  // the last one, for `keys` are gone then
        return stride_keys_of_cells(static_cast<stride_keys*>(g.keys), table_of(g), &ids, 1,
                                    &column);
      }};
  const Given good{t, people_, values_, keys_};
  for (const auto& call : calls) {
    CHECK_C_OK(call(good));
    CHECK_C_ERROR(call(Given{}), invalid, "NULL");
    CHECK_C_ERROR(call({db_, db_, db_, db_}), invalid, "in the place of");
    CHECK_C_ERROR(call({t, snapshot_, values_, keys_}), invalid, "in the place of a stride_table");
    int made_up;
    CHECK_C_ERROR(call({&made_up, &made_up, &made_up, &made_up}), invalid, "no handle");
  }
  CHECK_C_OK(stride_abort(t));
  CHECK_C_OK(stride_keys_release(keys_));
  CHECK_C_ERROR(stride_keys_of_cells(keys_, people_, &ids, 1, &column), invalid, "released");
  CHECK(stride_keys_release(keys_) == invalid);
  CHECK_C_OK(stride_keys_release(nullptr));
  REQUIRE_C_OK(stride_keys_create(&keys_));
}

TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.NullArguments", "[CColumnsTest]") {
  put_people();
  const stride_column keys = keys_of({7});
  REQUIRE_C_OK(stride_get(snapshot_, people_, &keys, values_));
  stride_transaction* t;
  REQUIRE_C_OK(stride_begin(db_, &t));
  const uint64_t id = 1;
  const stride_cells ids{&id, nullptr, nullptr, 1, 8, 0}, both[] = {name_, score_};
  stride_cells cells;
  stride_column column;
  size_t number;
  CHECK(stride_table_column(people_, nullptr, &number) == invalid);
  CHECK(stride_table_column(people_, "name", nullptr) == invalid);
  CHECK(stride_put_columns(t, people_, nullptr, both, 2) == invalid);
  CHECK_C_ERROR(stride_put_columns(t, people_, &keys, nullptr, 2), invalid, "columns is NULL");
  CHECK_C_ERROR(stride_put_columns(t, table_, &keys, both, 2), invalid, "its values are bytes");
  CHECK(stride_values_cells(values_, people_, 0, nullptr) == invalid);
  CHECK(stride_keys_create(nullptr) == invalid);
  CHECK(stride_keys_of_cells(keys_, people_, nullptr, 1, &column) == invalid);
  CHECK(stride_keys_of_cells(keys_, people_, &ids, 1, nullptr) == invalid);
  CHECK(stride_cells_of_keys(keys_, people_, nullptr, &cells, 1) == invalid);
  CHECK(stride_cells_of_keys(keys_, people_, &keys, nullptr, 1) == invalid);
  CHECK_C_OK(stride_abort(t));
}

TEST_CASE_METHOD(CColumnsTest, "CColumnsTest.RowsEnd", "[CColumnsTest]") {
  stride_table_options o;
  REQUIRE_C_OK(stride_table_options_init(&o, sizeof o));
  CHECK(o.expiry_column == nullptr);
  CHECK(o.time_to_live == 0);
  o.schema = "until timestamp[s]?, n i64";
  o.expiry_column = "n";
  stride_table* table = nullptr;
  CHECK_C_ERROR(stride_table_create_with(db_, "ends", &o, &table), invalid, "is of type i64");
  o.expiry_column = "until";
  o.time_to_live = -1;
  CHECK_C_ERROR(stride_table_create_with(db_, "ends", &o, &table), invalid, "negative");
  o.time_to_live = 3'600'000'000;
  REQUIRE_C_OK(stride_table_create_with(db_, "ends", &o, &table));
  const int64_t until[] = {1, 0, int64_t{1} << 40}, n[] = {1, 2, 3};
  const uint64_t there[] = {0b101};
  const CRows keys({"a", "b", "c"});
  put_columns(table, keys.column(),
              {{until, nullptr, there, 3, 8, 0}, {n, nullptr, nullptr, 3, 8, 0}});
  uint64_t count = 0;
  CHECK_C_OK(stride_count(snapshot(), table, &count));
  CHECK(count == 2u);
  stride_tables* tables;
  REQUIRE_C_OK(stride_table_list(db_, &tables));
  uint64_t size = 0;
  REQUIRE_C_OK(stride_tables_size(tables, &size));
  stride_table_info info{};
  info.size = sizeof info;
  REQUIRE_C_OK(stride_tables_get(tables, size - 1, &info));
  REQUIRE(std::string(info.name) == "ends");
  CHECK(std::string(info.expiry_column) == "until");
  CHECK(info.time_to_live == 3'600'000'000);
  REQUIRE_C_OK(stride_tables_get(tables, 0, &info));
  CHECK(info.expiry_column == nullptr);
  CHECK(info.time_to_live == 0);
  CHECK_C_OK(stride_tables_release(tables));
  CHECK_C_OK(stride_table_release(table));
}

}  // namespace
}  // namespace stride::test

// Columns of cells: rows and keys that are made of them, and the way back.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"
#include "engine/key_columns.h"
#include "engine/row_columns.h"
#include "storage/key_format.h"
#include "storage/quoted.h"

using namespace stride;
using namespace stride::c;

static_assert(sizeof(stride_cells) == 48);

namespace {

std::string name_of(const Field& field) { return "column " + in_quotes(field.name); }

std::string of_row(const Field& field, uint64_t row) {
  return name_of(field) + ", row " + std::to_string(row);
}

Status check_values(const Table& table) {
  if (table.schema().has_values()) return {};
  return Status::invalid("table '" + table.name() + "' has no columns: its values are bytes")
      .with_remedy(
          "make a table with a schema that has columns of values, or use stride_put() "
          "and stride_values_read()");
}

Status check_keys(const Table& table) {
  if (!table.schema().key().empty()) return {};
  return Status::invalid("table '" + table.name() + "' has no key columns: its keys are bytes")
      .with_remedy(
          "make a table with a schema that has columns marked `key`, or make the keys "
          "yourself");
}

Status check_count(const Table& table, const std::vector<Field>& fields, size_t count,
                   const char* what) {
  if (count == fields.size()) return {};
  return Status::invalid("count is " + std::to_string(count) + ", and table '" + table.name() +
                         "' has " + std::to_string(fields.size()) + " columns of " + what + ": " +
                         table.schema().to_string())
      .with_remedy("give one stride_cells for each of them, in their order");
}

// No cell that is there needs data where there are none.
Status check_no_bytes(const Field& field, const CellColumn& column) {
  if (!column.offsets && column.width == 0) return {};
  for (uint64_t row = 0; row < column.size; ++row)
    if (column.is_there(row) &&
        (column.offsets ? column.offsets[row] != column.offsets[row + 1] : column.width != 0))
      return Status::invalid(of_row(field, row) + ": the data is NULL");
  return {};
}

Status read_cells(const stride_cells& given, const Field& field, CellColumn* column) {
  const uint64_t width = given.offsets ? 0 : given.width;
  const uint64_t apart = given.offsets ? 0 : given.stride ? given.stride : width;
  *column = {static_cast<const std::byte*>(given.data),
             given.offsets,
             given.valid,
             given.size,
             static_cast<uint32_t>(width),
             apart};
  constexpr uint64_t max_bytes = uint64_t{1} << 56;
  const uint64_t row_bytes = given.offsets ? 8 : std::max<uint64_t>(apart, 1);
  if (given.size > max_bytes / row_bytes)
    return Status::invalid(name_of(field) + " has " + std::to_string(given.size) +
                           " rows, which no memory holds");
  if (apart < width)
    return Status::invalid(name_of(field) + " has cells of " + std::to_string(width) +
                           " bytes, and the next one begins after " + std::to_string(apart))
        .with_remedy(
            "set stride to the bytes from one cell to the next, or to 0 where they lie "
            "together");
  if (column->data) return {};
  STRIDE_TRY(check_no_bytes(field, *column));
  static constexpr std::byte nothing{};
  column->data = &nothing;  // cells of no bytes begin there
  return {};
}

// The columns that the caller means, one for each field.
Status read_columns(const Table& table, const std::vector<Field>& fields, const char* what,
                    const stride_cells* given, size_t count, std::vector<CellColumn>* columns) {
  STRIDE_TRY(check_pointer(given, "columns"));
  STRIDE_TRY(check_count(table, fields, count, what));
  columns->resize(count);
  for (size_t i = 0; i < count; ++i) STRIDE_TRY(read_cells(given[i], fields[i], &(*columns)[i]));
  return {};
}

stride_cells handed_out(const CellColumn& column) {
  return {column.data, column.offsets, column.valid, column.size, column.width, column.stride};
}

// The keys in memory of their own: cells that are their own keys may go once the call returns.
void own_keys(EncodedKeys* encoded) {
  KeyColumn& keys = encoded->keys;
  if (keys.data == encoded->data.data()) return;
  const uint64_t begin = keys.size ? keys.begin(0) : 0;
  encoded->data.reset(keys.bytes());
  if (keys.bytes()) std::memcpy(encoded->data.data(), keys.data + begin, keys.bytes());
  if (!keys.is_fixed()) {
    encoded->offsets.reset(keys.size + 1);
    for (uint64_t row = 0; row <= keys.size; ++row) encoded->offsets[row] = keys.begin(row) - begin;
    keys.offsets = encoded->offsets.data();
  }
  keys.data = encoded->data.data();
}

// Takes a key apart and appends its cells. False: it is no key of these columns.
bool take_key(const std::vector<Field>& fields, Bytes key, std::string* memory,
              std::vector<KeyCells>* cells) {
  for (size_t i = 0; i < fields.size(); ++i) {
    Bytes cell;
    if (!take_key_cell(fields[i], i + 1 == fields.size(), &key, memory, &cell)) return false;
    (*cells)[i].bytes.append(as_text(cell));
    if (!cell_width(fields[i])) (*cells)[i].offsets.push_back((*cells)[i].bytes.size());
  }
  return key.empty();
}

Status take_keys(const Table& table, const Column& column, std::vector<KeyCells>* cells) {
  const std::vector<Field>& fields = table.schema().key();
  if (cells->size() < fields.size()) cells->resize(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    (*cells)[i].bytes.clear();
    (*cells)[i].offsets.assign(1, 0);
  }
  std::string memory;
  for (uint64_t row = 0; row < column.size; ++row)
    if (!take_key(fields, column[row], &memory, cells))
      return Status::invalid("row " + std::to_string(row) +
                             " of column: " + in_quotes(column[row]) + " is no key of table '" +
                             table.name() + "', whose schema is " + table.schema().to_string())
          .with_remedy("give keys that a scan of the table or stride_keys_of_cells() has made");
  return {};
}

// The same columns, in the same table.
bool is_same(const Table& a, const Table& b) {
  return a.id() == b.id() && a.name() == b.name() && a.schema() == b.schema();
}

Status decode_values(ValuesObject* values, const Table& table, size_t column) {
  if (!values->complete)
    return Status::invalid("the stride_values hold no result")
        .with_remedy("call stride_get() or stride_match() with it first");
  if (!is_same(values->table, table))
    return Status::invalid("the stride_values hold what was found in table '" +
                           values->table.name() + "', not in '" + table.name() + "'")
        .with_remedy("give the table that stride_get() or stride_match() was called with");
  STRIDE_TRY(check_values(table));
  const Schema& schema = table.schema();
  if (column >= schema.values().size())
    return Status::invalid("there is no column " + std::to_string(column) +
                           " of values in table '" + table.name() + "', whose schema is " +
                           schema.to_string())
        .with_remedy("ask stride_table_column() for its number");
  if (values->cells.size() < schema.values().size()) values->cells.resize(schema.values().size());
  ValuesObject::Cells& cells = values->cells[column];
  if (cells.is_current) return {};  // the caller may hold views of it
  STRIDE_TRY(
      decode_column(schema, values->result.values, column, &cells.column, &values->result.found));
  cells.is_current = true;
  return {};
}

}  // namespace

int stride_table_column(stride_table* table, const char* name, size_t* column) {
  return run([&]() -> Status {
    Use<TableObject> t;
    STRIDE_TRY(t.begin(table));
    STRIDE_TRY(check_pointer(name, "name"));
    STRIDE_TRY(check_pointer(column, "column"));
    const Schema& schema = t->table.schema();
    const std::optional<size_t> found = schema.find(name);
    if (!found)
      return Status(StatusCode::not_found,
                    "table '" + t->table.name() + "' has no column of values " + in_quotes(name) +
                        (schema.empty() ? ", for it has no schema"
                                        : ": its schema is " + schema.to_string()));
    *column = *found;
    return {};
  });
}

int stride_put_columns(stride_transaction* transaction, stride_table* table,
                       const stride_column* keys, const stride_cells* columns, size_t count) {
  return change_table(transaction, table, [&](auto& t, const Table& of) {
    Column k;
    STRIDE_TRY(read_keys(keys, of, &k));
    STRIDE_TRY(check_values(of));
    std::vector<CellColumn> cells;
    STRIDE_TRY(read_columns(of, of.schema().values(), "values", columns, count, &cells));
    return t.put(of, k, cells);
  });
}

int stride_values_cells(stride_values* values, stride_table* table, size_t column,
                        stride_cells* cells) {
  return run([&]() -> Status {
    Use<ValuesObject> v;
    STRIDE_TRY(v.begin(values));
    Use<TableObject> t;
    STRIDE_TRY(t.begin(table));
    STRIDE_TRY(check_pointer(cells, "cells"));
    STRIDE_TRY(decode_values(v.get(), t->table, column));
    *cells = handed_out(v->cells[column].column);
    return {};
  });
}

int stride_keys_create(stride_keys** keys) {
  if (keys) *keys = nullptr;
  return run([&] {
    STRIDE_TRY(check_pointer(keys, "keys"));
    return make_handle(std::make_unique<KeysObject>(), keys);
  });
}

int stride_keys_release(stride_keys* keys) {
  return run([&] { return release_handle<KeysObject>(keys); });
}

int stride_keys_of_cells(stride_keys* keys, stride_table* table, const stride_cells* columns,
                         size_t count, stride_column* column) {
  return run([&]() -> Status {
    Use<KeysObject> k;
    STRIDE_TRY(k.begin(keys));
    Use<TableObject> t;
    STRIDE_TRY(t.begin(table));
    STRIDE_TRY(check_pointer(column, "column"));
    STRIDE_TRY(check_keys(t->table));
    const Schema& schema = t->table.schema();
    std::vector<CellColumn> cells;
    STRIDE_TRY(read_columns(t->table, schema.key(), "keys", columns, count, &cells));
    STRIDE_TRY(encode_keys(schema, cells, &k->encoded));
    own_keys(&k->encoded);
    const KeyColumn& made = k->encoded.keys;
    *column = {made.data, made.offsets, made.size, made.width};
    return {};
  });
}

int stride_cells_of_keys(stride_keys* keys, stride_table* table, const stride_column* column,
                         stride_cells* columns, size_t count) {
  return run([&]() -> Status {
    Use<KeysObject> k;
    STRIDE_TRY(k.begin(keys));
    Use<TableObject> t;
    STRIDE_TRY(t.begin(table));
    STRIDE_TRY(check_pointer(columns, "columns"));
    STRIDE_TRY(check_keys(t->table));
    const std::vector<Field>& fields = t->table.schema().key();
    STRIDE_TRY(check_count(t->table, fields, count, "keys"));
    Column given;
    STRIDE_TRY(read_queries(column, "column", &given));
    STRIDE_TRY(take_keys(t->table, given, &k->cells));
    for (size_t i = 0; i < count; ++i) {
      const KeyCells& cells = k->cells[i];
      const uint32_t width = cell_width(fields[i]);
      columns[i] = {cells.bytes.data(),
                    width ? nullptr : cells.offsets.data(),
                    nullptr,
                    given.size,
                    width,
                    width};
    }
    return {};
  });
}

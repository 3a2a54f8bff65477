#include "adapters/python/keys.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "adapters/python/errors.h"
#include "adapters/python/frames.h"
#include "engine/prefixes.h"
#include "storage/key_format.h"
#include "storage/key_order.h"

namespace stride::python {

bool is_numpy_scalar(nb::handle given) {
  return nb::hasattr(given, "ndim") && nb::hasattr(given, "dtype") &&
         nb::cast<int>(nb::object(given.attr("ndim"))) == 0;
}

namespace {

bool is_python_scalar(nb::handle given) {
  PyObject* o = given.ptr();
  if (PyLong_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) || PyFloat_Check(o) ||
      PyBool_Check(o))
    return true;
  return PyByteArray_Check(o) || !nb::hasattr(given, "__iter__");
}

// Tells objects that columns are made of although they cannot be iterated over.
bool is_column(nb::handle given) {
  return is_arrow(given) || nb::hasattr(given, "__array_interface__") ||
         nb::hasattr(given, "__cuda_array_interface__") || nb::hasattr(given, "__dlpack__") ||
         nb::hasattr(given, "__array__");
}

bool is_one_cell(nb::handle given) {
  if (is_python_scalar(given)) return !is_column(given) || is_numpy_scalar(given);
  return is_numpy_scalar(given);
}

// Tells networks and addresses of `ipaddress`.
bool is_one_prefix(nb::handle given) { return is_network(given) || nb::hasattr(given, "packed"); }

void append_cells(const TableForm& form, nb::handle given, bool partial, std::string* bytes) {
  const std::vector<Field>& fields = form.schema.key();
  if (!nb::isinstance<nb::tuple>(given) && !nb::isinstance<nb::list>(given))
    raise("InvalidType",
          "keys of table '" + form.table.name() + "' have the columns " +
              Schema(*Schema::make({}, fields)).to_string() + ", and one value is given",
          "give a tuple with a value for each");
  const size_t n = nb::len(given);
  if (n > fields.size() || (n < fields.size() && !partial))
    raise("InvalidArgument", "keys of table '" + form.table.name() + "' have " +
                                 std::to_string(fields.size()) + " columns, and " +
                                 std::to_string(n) + " values are given");
  std::string cell;
  for (size_t i = 0; i < n; ++i) {
    const nb::object value = given[i];
    if (value.is_none())
      raise("InvalidArgument", column_name(fields[i]) + ": the cell is null, and keys have none");
    cell.clear();
    append_cell(fields[i], value, &cell);
    append_key_cell(fields[i], as_bytes(cell), i + 1 == fields.size(), bytes);
  }
}

std::vector<Cells> columns_of_tuples(const TableForm& form, const nb::list& tuples) {
  const std::vector<Field>& fields = form.schema.key();
  std::vector<nb::list> columns(fields.size());
  for (nb::handle tuple : tuples) {
    if (!nb::isinstance<nb::tuple>(tuple) || nb::len(tuple) != fields.size())
      raise("InvalidType",
            "a key of " + std::to_string(fields.size()) + " columns is no tuple of as many");
    for (size_t i = 0; i < fields.size(); ++i) columns[i].append(nb::object(tuple[i]));
  }
  std::vector<Cells> cells;
  for (size_t i = 0; i < fields.size(); ++i) cells.push_back(cells_of_list(columns[i], fields[i]));
  return cells;
}

std::vector<Cells> composite_columns(const TableForm& form, nb::handle given) {
  const std::vector<Field>& fields = form.schema.key();
  if (is_frame(given)) return columns_of_frame(given, fields);
  const bool is_list = nb::isinstance<nb::list>(given);
  if (is_list && nb::len(given) != 0 && nb::isinstance<nb::tuple>(nb::object(given[0])))
    return columns_of_tuples(form, nb::borrow<nb::list>(given));
  if (is_list && nb::len(given) == 0) return columns_of_tuples(form, nb::list());
  if ((!is_list && !nb::isinstance<nb::tuple>(given)) || nb::len(given) != fields.size())
    raise("InvalidType",
          "keys of table '" + form.table.name() + "' have " + std::to_string(fields.size()) +
              " columns, and something else is given",
          "give a list with a column for each, a frame that has them, or a list of tuples");
  std::vector<Cells> cells;
  for (size_t i = 0; i < fields.size(); ++i)
    cells.push_back(cells_of(nb::object(given[i]), fields[i]));
  return cells;
}

}  // namespace

bool is_one_key(const TableForm& form, nb::handle given) {
  // A tuple is a key, unless it has a column for each of the key's.
  if (!form.bare_key)
    return nb::isinstance<nb::tuple>(given) &&
           (nb::len(given) == 0 || is_one_cell(nb::object(given[0])));
  if (form.is_prefixes() && is_one_prefix(given)) return true;
  return is_one_cell(given);
}

void append_key(const TableForm& form, nb::handle given, bool partial, std::string* bytes) {
  if (form.is_prefixes()) return append_prefix(form, given, bytes);
  if (!form.bare_key) return append_cells(form, given, partial, bytes);
  const Field& field = form.schema.key()[0];
  if (given.is_none())
    raise("InvalidArgument", column_name(field) + ": the cell is null, and keys have none");
  const size_t begin = bytes->size();
  append_cell(field, given, bytes);
  if (is_of_bytes(field)) return;
  auto* at = reinterpret_cast<std::byte*>(bytes->data()) + begin;
  with_number_of(field.type, [&](auto number) { order_number<decltype(number)>(at, at); });
}

void encode(const TableForm& form, std::vector<Cells> cells, EncodedKeys* encoded,
            GivenKeys* keys) {
  std::vector<CellColumn> columns;
  for (const Cells& c : cells) columns.push_back(c.column);
  check(encode_keys(form.schema, columns, encoded));
  keys->cells = std::move(cells);
  keys->keys = encoded->keys;
}

GivenKeys keys_of(const TableForm& form, nb::handle given, EncodedKeys* encoded) {
  if (form.is_prefixes()) return prefixes_of(form, given, encoded);
  std::vector<Cells> cells;
  if (!form.bare_key)
    cells = composite_columns(form, given);
  else if (is_frame(given))
    cells = columns_of_frame(given, form.schema.key());
  else
    cells.push_back(cells_of(given, form.schema.key()[0]));
  GivenKeys keys;
  encode(form, std::move(cells), encoded, &keys);
  return keys;
}

std::vector<Cells> key_cells(const TableForm& form, const KeyColumn& keys,
                             std::shared_ptr<const void> owner) {
  const std::vector<Field>& fields = form.schema.key();
  std::vector<Cells> cells;
  if (form.is_prefixes()) {
    Cells texts;
    auto bytes = std::make_shared<std::string>();
    auto* ends = add_memory<uint64_t>(&texts, keys.size + 1);
    ends[0] = 0;
    for (uint64_t row = 0; row < keys.size; ++row) {
      *bytes += format_prefix(keys[row], form.address_bits);
      ends[row + 1] = bytes->size();
    }
    texts.memory.push_back(bytes);
    const bool text = form.address_bits != byte_strings;
    texts.field = {.name = "prefix", .type = text ? FieldType::string : FieldType::bytes};
    texts.column = CellColumn::variable(bytes->data(), ends, keys.size);
    cells.push_back(std::move(texts));
    return cells;
  }
  auto decoded = std::make_shared<std::vector<DecodedColumn>>(fields.size());
  check(decode_keys(form.schema, keys, *decoded));
  for (size_t i = 0; i < fields.size(); ++i)
    cells.push_back({fields[i], (*decoded)[i], {decoded, owner}});
  return cells;
}

nb::object key_object(const TableForm& form, Bytes key) {
  if (form.is_prefixes()) {
    const std::string text = format_prefix(key, form.address_bits);
    if (form.address_bits == byte_strings) return nb::bytes(text.data(), text.size());
    return nb::cast(text);
  }
  KeyReader reader(form.schema);
  if (!reader.read(key))
    raise("Corruption", "a key of table '" + form.table.name() + "' is none of its schema");
  const std::vector<Field>& fields = form.schema.key();
  if (form.bare_key) return object_of(fields[0], reader[0]);
  nb::list parts;
  for (size_t i = 0; i < fields.size(); ++i) parts.append(object_of(fields[i], reader[i]));
  return made(PySequence_Tuple(parts.ptr()));
}

void check(const TableForm& form, const Status& status) {
  if (status.ok()) return;
  if (!status.key()) raise(status);
  const Bytes key = as_bytes(*status.key());
  if (!form.is_prefixes() && !KeyReader(form.schema).read(key)) raise(status);
  raise(status, status.message_with_key(shown(key_object(form, key))));
}

}  // namespace stride::python

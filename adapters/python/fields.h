// Types of columns as Python objects, and the columns of a table.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/table.h"
#include "storage/number.h"
#include "storage/schema.h"

namespace stride::python {

namespace nb = nanobind;

// What stridedb.i64, stridedb.vector(stridedb.f32, 64) and so on are: a field without a name.
struct Type {
  Field field;
  bool operator==(const Type& other) const { return field == other.field; }
};

// The columns of a table's keys and values. Where a table has no schema, its keys are one column
// "key" and its values one column "value", as an equal schema would have them: rows of one column
// of bytes are these bytes.
struct TableForm {
  Table table;
  Schema schema;
  bool bare_key = false;    // one key column: a key is its cell and no tuple
  bool bare_value = false;  // one value column that is called "value": a value is its cell
  std::shared_ptr<const void> kept_names;
  std::vector<PyObject*> value_names;  // of the value columns, as Python has names
  uint32_t address_bits = 0;

  bool is_prefixes() const { return address_bits != 0; }
  bool has_values() const { return schema.has_values(); }
};
std::shared_ptr<const TableForm> form_of(const Table& table);

// What the arguments `key` and `values` of Database.table() may be: a type, a pair of name and
// type, a list of pairs, a dict, the text of a schema, or None. one: what a lone type is called.
std::vector<Field> fields_of(nb::handle given, const char* one);

// As what StrideDB adds the cells up, each of which is one number; nothing: it does not.
std::optional<NumberType> number_type_of(const Field& field);

// "f32[64]?"
nb::object type_of(const Field& field);

void bind_types(nb::module_& module);

}  // namespace stride::python

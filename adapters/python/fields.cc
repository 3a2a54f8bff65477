#include "adapters/python/fields.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <vector>

#include "adapters/python/cells.h"
#include "adapters/python/errors.h"
#include "storage/prefix_key.h"

namespace stride::python {
namespace {

Field key_field_of(const Table& table) {
  Field field{.name = "key", .type = FieldType::bytes};
  if (table.key_width() && !table.address_bits()) field.count = table.key_width();
  return field;
}

Field value_field_of(const Table& table) {
  Field field{.name = "value", .type = FieldType::bytes};
  switch (table.numbers()) {
    case NumberType::i32:
      field.type = FieldType::i32;
      break;
    case NumberType::i64:
      field.type = FieldType::i64;
      break;
    case NumberType::f32:
      field.type = FieldType::f32;
      break;
    case NumberType::f64:
      field.type = FieldType::f64;
      break;
    default:
      break;
  }
  return field;
}

Field field_named(const std::string& name, nb::handle type) {
  Field field;
  if (nb::isinstance<Type>(type)) {
    field = nb::cast<const Type&>(type).field;
  } else if (nb::isinstance<nb::str>(type)) {
    const std::optional<Field> parsed = field_of_type(lossy_text(type));
    if (!parsed)
      raise("InvalidType", shown(type) + " is no type of a column",
            "use one like stridedb.i64, stridedb.str_ or stridedb.vector(stridedb.f32, 64)");
    field = *parsed;
  } else {
    // The types of Python that have one counterpart.
    const nb::object types = nb::module_::import_("stridedb._types").attr("PYTHON_TYPES");
    const bool is_class = PyType_Check(type.ptr());
    const nb::object found = is_class ? nb::object(types.attr("get")(type)) : nb::none();
    if (found.is_none())
      raise("InvalidType", "column '" + name + "': " + shown(type) + " is no type",
            "use one like stridedb.i64, stridedb.str_ or stridedb.vector(stridedb.f32, 64)");
    field = nb::cast<const Type&>(found).field;
  }
  field.name = name;
  return field;
}

bool is_pair(nb::handle given) {
  if (!nb::isinstance<nb::tuple>(given) || nb::len(given) != 2) return false;
  const nb::object first = given[0];
  return nb::isinstance<nb::str>(first) && !nb::isinstance<nb::tuple>(nb::object(given[1]));
}

Field field_of_pair(nb::handle pair) {
  if (!is_pair(pair))
    raise("InvalidType", shown(pair) + " is no column",
          "give pairs of a name and a type, as (\"id\", stridedb.i64)");
  return field_named(name_of(nb::object(pair[0])), nb::object(pair[1]));
}

Type with_count(const Type& type, uint32_t count) {
  Field field = type.field;
  if (field.count || field.nullable || width_of(field.type) == 0 || field.type == FieldType::uuid)
    raise("InvalidType", "a vector of " + type_text(field) + " is not possible",
          "use a vector of numbers, or fixed_bytes(n)");
  if (count == 0)
    raise("InvalidArgument", "vectors of no elements are asked for", "give 1 or more");
  field.count = count;
  check(Schema::make({[&] {
          Field named = field;
          named.name = "value";
          return named;
        }()})
            .status());
  return {field};
}

Field parsed(const std::string& text) {
  const std::optional<Field> field = field_of_type(text);
  if (!field) raise("InvalidType", "'" + text + "' is no type of a column");
  return *field;
}

Type fixed_bytes(uint32_t count) {
  if (count == 0 || count > max_cell_width)
    raise("InvalidArgument", "cells of " + std::to_string(count) + " bytes are asked for",
          "they may have 1 to " + std::to_string(max_cell_width) +
              "; those of stridedb.bytes_ have any length");
  return Type{{.type = FieldType::bytes, .count = count}};
}

}  // namespace

std::vector<Field> fields_of(nb::handle given, const char* one) {
  if (given.is_none()) return {};
  if (nb::isinstance<nb::dict>(given)) {
    std::vector<Field> fields;
    for (auto [name, type] : nb::borrow<nb::dict>(given))
      if (!nb::isinstance<nb::str>(name))
        raise("InvalidType", "a column is called " + shown(name) + ", which is no text");
      else
        fields.push_back(field_named(name_of(name), type));
    return fields;
  }
  if (is_pair(given)) return {field_of_pair(given)};
  if (nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given)) {
    std::vector<Field> fields;
    for (nb::handle pair : given) fields.push_back(field_of_pair(pair));
    return fields;
  }
  if (nb::isinstance<nb::str>(given)) {
    const std::string text = lossy_text(given);
    if (text.find(' ') != std::string::npos) return take(Schema::parse(text)).values();
  }
  return {field_named(one, given)};
}

std::shared_ptr<const TableForm> form_of(const Table& table) {
  auto form = std::make_shared<TableForm>();
  form->table = table;
  form->address_bits = table.address_bits();
  std::vector<Field> keys = table.schema().key(), values = table.schema().values();
  if (keys.empty()) keys.push_back(key_field_of(table));
  if (values.empty()) values.push_back(value_field_of(table));
  form->bare_key = keys.size() == 1;
  form->bare_value = values.size() == 1 && values[0].name == "value";
  form->schema = take(Schema::make(values, keys));
  nb::list names;
  for (const Field& field : values) {
    PyObject* name = name_object(field.name).release().ptr();
    PyUnicode_InternInPlace(&name);
    form->value_names.push_back(name);
    names.append(nb::steal(name));
  }
  form->kept_names = keep(names);
  return form;
}

std::optional<NumberType> number_type_of(const Field& field) {
  if (field.count != 0) return std::nullopt;
  switch (field.type) {
    case FieldType::i32:
      return NumberType::i32;
    case FieldType::i64:
      return NumberType::i64;
    case FieldType::f32:
      return NumberType::f32;
    case FieldType::f64:
      return NumberType::f64;
    default:
      return std::nullopt;
  }
}

nb::object type_of(const Field& field) {
  Field unnamed = field;
  unnamed.name.clear();
  return nb::cast(Type{unnamed});
}

void bind_types(nb::module_& module) {
  nb::class_<Type>(module, "Type", "The type of a column.")
      .def(
          "__init__", [](Type* type, const std::string& text) { new (type) Type{parsed(text)}; },
          nb::arg("text"), "The type that is written so in a schema's text, as ``f32[64]?``.")
      .def("__repr__",
           [](const Type& type) { return "stridedb.Type('" + type_text(type.field) + "')"; })
      .def("__str__", [](const Type& type) { return type_text(type.field); })
      .def("__hash__",
           [](const Type& type) { return std::hash<std::string>()(type_text(type.field)); })
      .def("__eq__",
           [](const Type& type, nb::handle other) {
             return nb::isinstance<Type>(other) && nb::cast<const Type&>(other) == type;
           })
      .def("__getstate__", [](const Type& type) { return type_text(type.field); })
      .def("__setstate__",
           [](Type& type, const std::string& text) { new (&type) Type{parsed(text)}; })
      .def_prop_ro(
          "nullable", [](const Type& type) { return type.field.nullable; },
          "Whether cells may be missing.")
      .def_prop_ro(
          "width", [](const Type& type) { return cell_width(type.field); },
          "Bytes of a cell; 0: they differ.");
  module.def(
      "vector", [](const Type& type, uint32_t count) { return with_count(type, count); },
      nb::arg("type"), nb::arg("count"), "So many numbers of a type in each cell.");
  module.def(
      "optional",
      [](const Type& type) {
        Field field = type.field;
        field.nullable = true;
        return Type{field};
      },
      nb::arg("type"), "The type, with cells that may be missing (``None``).");
  module.def("fixed_bytes", fixed_bytes, nb::arg("count"),
             "Byte strings that all have so many bytes.");
}

}  // namespace stride::python

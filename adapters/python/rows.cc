#include "adapters/python/rows.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "adapters/python/errors.h"
#include "adapters/python/fields.h"
#include "storage/quoted.h"
#include "storage/row_format.h"

namespace stride::python {
namespace {

// What NumPy takes for an array without copying it.
struct ArrayView {
  Cells cells;
  std::string typestr;
};

nb::dict array_interface(const ArrayView& view) {
  const CellColumn& column = view.cells.column;
  const Field& field = view.cells.field;
  const uint32_t item = field.is_vector() ? column.width / field.count : column.width;
  nb::dict interface;
  interface["version"] = 3;
  interface["typestr"] = view.typestr;
  interface["data"] = nb::make_tuple(reinterpret_cast<uintptr_t>(column.data), false);
  if (field.is_vector()) {
    interface["shape"] = nb::make_tuple(column.size, field.count);
    interface["strides"] = nb::make_tuple(column.stride, item);
  } else {
    interface["shape"] = nb::make_tuple(column.size);
    interface["strides"] = nb::make_tuple(column.stride);
  }
  return interface;
}

nb::object numpy() { return nb::module_::import_("numpy"); }

uint64_t count_nulls(const Cells& cells) {
  const uint64_t* valid = cells.column.valid;
  if (!valid) return 0;
  const uint64_t words = cells.size() / 64, rest = cells.size() % 64;
  uint64_t there = 0;
  for (uint64_t i = 0; i < words; ++i) there += static_cast<uint64_t>(std::popcount(valid[i]));
  if (rest)
    there += static_cast<uint64_t>(std::popcount(valid[words] & ((uint64_t{1} << rest) - 1)));
  return cells.size() - there;
}

bool has_nulls(const Cells& cells) { return count_nulls(cells) != 0; }

nb::object view_of(const Cells& cells, const std::string& typestr) {
  return numpy().attr("asarray")(nb::cast(ArrayView{cells, typestr}));
}

// Dates of 8 bytes, as NumPy has them.
Cells wide_dates(const Cells& dates) {
  Cells wide;
  const uint32_t count = std::max(dates.field.count, 1u);
  auto* days = add_memory<int64_t>(&wide, std::max<uint64_t>(dates.size() * count, 1));
  for (uint64_t row = 0; row < dates.size(); ++row) {
    for (uint32_t i = 0; i < count; ++i) {
      int32_t day;
      std::memcpy(&day, dates.column[row].data() + i * sizeof day, sizeof day);
      days[row * count + i] = day;
    }
  }
  wide.field = dates.field;
  wide.column = CellColumn::fixed(days, 8 * count, dates.size(), dates.column.valid);
  return wide;
}

// NaT differs from itself, like NaN.
bool is_no_time(nb::handle value) {
  const nb::object differs = made(PyObject_RichCompare(value.ptr(), value.ptr(), Py_NE));
  const int truth = PyObject_IsTrue(differs.ptr());
  if (truth < 0) PyErr_Clear();
  return truth == 1;
}

// What missing cells become, as an array of one row: a value that the column would take. For
// vectors it may be one element, which all of a vector become.
nb::object fill_array(Field field, nb::handle fill) {
  if (field.is_vector() && !nb::hasattr(fill, "__len__")) field.count = 0;
  std::string bytes;
  // One fill for many columns may be 0 or 1, which are booleans to NumPy.
  const bool is_bit =
      PyLong_CheckExact(fill.ptr()) && (fill.equal(nb::int_(0)) || fill.equal(nb::int_(1)));
  if (field.type == FieldType::boolean && is_bit)
    bytes.assign(1, fill.equal(nb::int_(1)) ? 1 : 0);
  else
    append_cell(field, fill, &bytes);
  Cells one;
  one.field = field;
  auto* data = add_memory<std::byte>(&one, bytes.size());
  std::memcpy(data, bytes.data(), bytes.size());
  one.column = CellColumn::fixed(data, static_cast<uint32_t>(bytes.size()), 1);
  return numpy_of(one, nb::none());
}

// A copy in which missing cells have a value.
nb::object filled(const Cells& cells, const nb::object& array, nb::handle fill) {
  const FieldType type = cells.field.type;
  const bool is_time = type >= FieldType::date && type <= FieldType::timestamp_ns;
  nb::object value = nb::borrow(fill);
  if (value.is_none()) {
    if (type == FieldType::f32 || type == FieldType::f64) {
      value = nb::float_(std::numeric_limits<double>::quiet_NaN());
    } else if (is_time) {
      value = numpy().attr("datetime64")("NaT");
    } else {
      raise("InvalidArgument",
            column_name(cells.field) + " has " + std::to_string(count_nulls(cells)) +
                " cells that are missing, which NumPy's numbers can't be",
            "give numpy(fill=0) or another value for them; valid() tells which they are");
    }
  }
  if (is_time && is_no_time(value))
    value = numpy().attr("datetime64")("NaT");
  else if (cell_width(cells.field))
    value = fill_array(cells.field, value);
  const nb::object copy = array.attr("copy")();
  const nb::object missing =
      numpy().attr("logical_not")(booleans_of(cells.column.valid, cells.size()));
  copy.attr("__setitem__")(missing, value);
  return copy;
}

nb::object valid_of(const Cells& cells) {
  if (!cells.column.valid) return numpy().attr("ones")(cells.size(), "?");
  return booleans_of(cells.column.valid, cells.size());
}

std::vector<const Cells*> pointers(const PyRows& rows) {
  std::vector<const Cells*> columns;
  for (const Cells& cells : rows.columns) columns.push_back(&cells);
  return columns;
}

nb::object object_at(const Cells& cells, uint64_t row) {
  if (!cells.column.is_there(row)) return nb::none();
  return object_of(cells.field, cells.column[row]);
}

uint64_t index_of(int64_t index, uint64_t size) {
  const int64_t n = static_cast<int64_t>(size);
  if (index < -n || index >= n) throw nb::index_error("the row is out of range");
  return static_cast<uint64_t>(index < 0 ? index + n : index);
}

const Cells& column_named(const PyRows& rows, const std::string& name) {
  std::string all;
  for (const Cells& cells : rows.columns) {
    if (cells.field.name == name) return cells;
    all += (all.empty() ? "" : ", ") + cells.field.name;
  }
  raise("KeyNotFound", "there is no column " + in_quotes(name), "the columns are: " + all);
}

nb::object row_at(const PyRows& rows, int64_t index) {
  const uint64_t row = index_of(index, rows.size);
  if (rows.found && !(*rows.found)[row]) return nb::none();
  nb::dict result;
  for (const Cells& cells : rows.columns)
    result[nb::cast(cells.field.name)] = object_at(cells, row);
  return result;
}

// What NumPy asks for: copy is None (where it has to be), True or False (never).
nb::object array_of_column(const PyColumn& column, nb::handle dtype, nb::handle copy) {
  const Cells& cells = column.cells;
  const bool wants_copy = !copy.is_none() && nb::cast<bool>(nb::bool_(nb::borrow(copy)));
  const bool refuses_copy = !copy.is_none() && !wants_copy;
  nb::object array = numpy_of(cells, nb::none());
  const bool as_it_lies =
      cell_width(cells.field) != 0 && cells.field.type != FieldType::date && !has_nulls(cells);
  const bool same_type =
      dtype.is_none() || nb::object(array.attr("dtype")).equal(numpy().attr("dtype")(dtype));
  if (refuses_copy && !(as_it_lies && same_type))
    raise("InvalidArgument",
          column_name(cells.field) + " is no array of that type without a copy, and none is wanted",
          "leave out copy=False");
  if (!same_type) return array.attr("astype")(dtype);
  return wants_copy && as_it_lies ? nb::object(array.attr("copy")()) : array;
}

void bind_column(nb::module_& module) {
  nb::class_<ArrayView>(module, "_ArrayView").def_prop_ro("__array_interface__", array_interface);
  nb::class_<PyColumn>(
      module, "Column",
      "A column of cells. It is a sequence, and NumPy, Arrow and DataFrame libraries "
      "read it, without a copy where its cells lie as they want them.")
      .def_prop_ro(
          "name", [](const PyColumn& c) { return c.cells.field.name; }, "The column's name.")
      .def_prop_ro(
          "type", [](const PyColumn& c) { return type_of(c.cells.field); }, "The cells' Type.")
      .def("__len__", [](const PyColumn& c) { return c.cells.size(); })
      .def("__getitem__",
           [](const PyColumn& c, int64_t index) {
             return object_at(c.cells, index_of(index, c.cells.size()));
           })
      .def(
          "numpy", [](const PyColumn& c, nb::handle fill) { return numpy_of(c.cells, fill); },
          nb::arg("fill") = nb::none(),
          "The cells as an array of shape (rows,), of vectors (rows, count): of numbers and times "
          "a view, with a stride where cells lie in rows; of strings and bytes an array of "
          "objects. Missing cells become `fill`, or NaN and NaT where it is None; InvalidArgument: "
          "there are some, and their type has no such value. `fill` is a value that the column "
          "takes (InvalidType, InvalidArgument: it is none); for strings and bytes any object.")
      .def(
          "valid", [](const PyColumn& c) { return valid_of(c.cells); },
          "An array of booleans of shape (rows,): which cells are there.")
      .def(
          "to_list", [](const PyColumn& c) { return list_of(c.cells); },
          "The cells as Python's own objects, None where one is missing.")
      .def(
          "__array__",
          [](const PyColumn& c, nb::handle dtype, nb::handle copy) {
            return array_of_column(c, dtype, copy);
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__arrow_c_schema__",
           [](const PyColumn& c) { return export_arrow_schema({&c.cells}, false); })
      .def(
          "__arrow_c_array__",
          [](const PyColumn& c, nb::handle) {
            return nb::make_tuple(export_arrow_schema({&c.cells}, false),
                                  export_arrow_array({&c.cells}, false, c.cells.size()));
          },
          nb::arg("requested_schema") = nb::none());
}

}  // namespace

nb::object booleans_of(const uint64_t* bits, uint64_t rows) {
  Cells cells;
  cells.field = {.type = FieldType::boolean};
  // Eight at a time: byte i keeps bit i alone, and the sum carries it to the byte's highest.
  auto* bytes = add_memory<uint8_t>(&cells, rows + 8);
  for (uint64_t row = 0; row < rows; row += 8) {
    const uint64_t eight = bits[row / 64] >> (row % 64) & 0xFF;
    const uint64_t apart = eight * 0x0101010101010101 & 0x8040201008040201;
    const uint64_t bools = (apart + 0x7F7F7F7F7F7F7F7F) >> 7 & 0x0101010101010101;
    std::memcpy(bytes + row, &bools, sizeof bools);
  }
  cells.column = CellColumn::fixed(bytes, 1, rows);
  return view_of(cells, "|b1");
}

nb::object list_of(const Cells& cells) {
  nb::list list;
  for (uint64_t row = 0; row < cells.size(); ++row) {
    check_signals_at(row);
    list.append(object_at(cells, row));
  }
  return list;
}

nb::object numpy_of(const Cells& cells, nb::handle fill) {
  const Field& field = cells.field;
  if (cell_width(field) == 0) {
    const nb::object array = numpy().attr("empty")(cells.size(), "O");
    array.attr("__setitem__")(nb::ellipsis(), list_of(cells));
    if (!fill.is_none() && has_nulls(cells)) return filled(cells, array, fill);
    return array;
  }
  const nb::object plain = nb::module_::import_("stridedb._types")
                               .attr("numpy_type")(std::string(to_string(field.type)));
  const std::string typestr = plain.is_none() ? "|V" + std::to_string(cells.column.width)
                              : field.type == FieldType::boolean ? "|b1"
                                                                 : nb::cast<std::string>(plain);
  const nb::object array =
      field.type == FieldType::date ? view_of(wide_dates(cells), typestr) : view_of(cells, typestr);
  return has_nulls(cells) ? filled(cells, array, fill) : array;
}

void bind_rows(nb::module_& module) {
  bind_column(module);
  nb::class_<PyRows>(
      module, "Rows",
      "Columns of as many rows: what lookups and scans return. DataFrame libraries take it "
      "as it is, as polars.DataFrame(rows) does.")
      .def("__len__", [](const PyRows& r) { return r.size; })
      .def_prop_ro(
          "columns",
          [](const PyRows& r) {
            nb::list names;
            for (const Cells& cells : r.columns) names.append(cells.field.name);
            return names;
          },
          "The columns' names.")
      .def_prop_ro(
          "found",
          [](const PyRows& r) {
            if (r.found) return booleans_of(r.found->words().data(), r.size);
            return nb::object(numpy().attr("ones")(r.size, "?"));
          },
          "An array of booleans of shape (rows,): which rows are there.")
      .def(
          "__getitem__",
          [](const PyRows& r, const std::string& name) { return PyColumn{column_named(r, name)}; },
          "A column. KeyNotFound: there is none of that name.")
      .def("__getitem__", row_at,
           "A row as a dict, or None where it is not there. IndexError: there is no such row.")
      .def("__arrow_c_schema__",
           [](const PyRows& r) { return export_arrow_schema(pointers(r), true); })
      .def(
          "__arrow_c_stream__",
          [](const PyRows& r, nb::handle) { return export_arrow_stream(pointers(r), r.size); },
          nb::arg("requested_schema") = nb::none())
      .def(
          "__arrow_c_array__",
          [](const PyRows& r, nb::handle) {
            return nb::make_tuple(export_arrow_schema(pointers(r), true),
                                  export_arrow_array(pointers(r), true, r.size));
          },
          nb::arg("requested_schema") = nb::none());
}

}  // namespace stride::python

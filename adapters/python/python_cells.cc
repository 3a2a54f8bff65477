// Python's own objects as cells, and cells as such objects.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "adapters/python/cells.h"
#include "adapters/python/errors.h"
#include "storage/quoted.h"
#include "storage/row_format.h"

namespace stride::python {
namespace {

[[noreturn]] void raise_no_cell(const Field& field, nb::handle value) {
  std::string remedy;
  if (field.type == FieldType::bytes && nb::isinstance<nb::str>(value))
    remedy = "encode it, or make the table with stridedb.str_ in place of bytes";
  if (field.type == FieldType::string && nb::isinstance<nb::bytes>(value))
    remedy = "decode it, or make the table with stridedb.bytes_ in place of a string";
  raise_type(field, "one of Python's type " + python_type(value) + " is given", remedy);
}

[[noreturn]] void raise_range(const Field& field, nb::handle value) {
  raise("InvalidArgument",
        column_name(field) + ": " + shown(value) + " does not fit in " + type_text(field));
}

nb::object helper(const char* name) { return nb::module_::import_("stridedb._types").attr(name); }

// NumPy's scalars that have a float of Python's although they are no real number.
bool is_no_number_of_numpy(nb::handle value) {
  if (python_type(value) == "void") return true;
  if (!nb::hasattr(value, "dtype") || !nb::hasattr(value.attr("dtype"), "kind")) return false;
  const std::string kind = lossy_text(nb::str(nb::object(value.attr("dtype").attr("kind"))));
  return std::string_view("bcmMSTU").find(kind) != std::string_view::npos;
}

// Whether the object itself is infinite, and not only larger than what a double can have.
bool is_infinite(nb::handle value, double infinity) {
  const int equal = PyObject_RichCompareBool(value.ptr(), nb::float_(infinity).ptr(), Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

// What the object's own conversion has raised is the caller's, unless it says that there is none.
void clear_type_error() {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
  PyErr_Clear();
}

// Floats are rounded to those of 32 bits, integers must be there exactly, as in arrays.
template <class T>
T float_of(const Field& field, nb::handle value) {
  if (PyBool_Check(value.ptr())) raise_no_cell(field, value);
  const bool is_other = !PyFloat_Check(value.ptr()) && !PyLong_Check(value.ptr());
  if (is_other && is_no_number_of_numpy(value)) raise_no_cell(field, value);
  // Integers of NumPy, too; its arrays of one float say no before they are asked.
  nb::object integer;
  if (PyIndex_Check(value.ptr())) {
    integer = nb::steal(PyNumber_Index(value.ptr()));
    if (!integer.is_valid()) clear_type_error();
  }
  const double number = PyFloat_AsDouble(integer.is_valid() ? integer.ptr() : value.ptr());
  if (number == -1 && PyErr_Occurred()) {
    // Decimals and fractions that are too large, and decimals that signal that they are none.
    if (PyErr_ExceptionMatches(PyExc_OverflowError) || PyErr_ExceptionMatches(PyExc_ValueError)) {
      PyErr_Clear();
      raise_range(field, value);
    }
    clear_type_error();
    raise_no_cell(field, value);
  }
  const T result = static_cast<T>(number);
  if (is_other && std::isinf(number) && !is_infinite(value, number)) raise_range(field, value);
  if (std::isfinite(number) && !std::isfinite(result)) raise_range(field, value);
  if (integer.is_valid()) {
    const nb::object back = made(PyLong_FromDouble(static_cast<double>(result)));
    if (PyObject_RichCompareBool(back.ptr(), integer.ptr(), Py_EQ) != 1) raise_range(field, value);
  }
  return result;
}

template <class T>
T number_of(const Field& field, nb::handle value) {
  if constexpr (std::is_floating_point_v<T>) {
    return float_of<T>(field, value);
  } else {
    if (PyBool_Check(value.ptr())) raise_no_cell(field, value);
    nb::object index = nb::borrow(value);
    if (!PyLong_CheckExact(value.ptr())) {
      index = nb::steal(PyNumber_Index(value.ptr()));
      if (!index.is_valid()) {
        clear_type_error();
        raise_no_cell(field, value);
      }
    }
    if constexpr (std::is_same_v<T, uint64_t>) {
      const unsigned long long number = PyLong_AsUnsignedLongLong(index.ptr());
      if (number == ~0ull && PyErr_Occurred()) {
        PyErr_Clear();
        raise_range(field, value);
      }
      return number;
    } else {
      int overflow = 0;
      const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
      if (overflow || !std::in_range<T>(number)) raise_range(field, value);
      return static_cast<T>(number);
    }
  }
}

// Writes the cell of a type whose cells have one width. Vectors are not handled here.
void write_element(const Field& field, nb::handle value, std::byte* to) {
  auto put = [&](auto number) { std::memcpy(to, &number, sizeof number); };
  switch (field.type) {
    case FieldType::boolean: {
      const bool is_bool = PyBool_Check(value.ptr()) || python_type(value) == "bool" ||
                           python_type(value) == "bool_";  // of NumPy
      if (!is_bool) raise_no_cell(field, value);
      const int truth = PyObject_IsTrue(value.ptr());
      if (truth < 0) throw nb::python_error();
      return put(static_cast<uint8_t>(truth));
    }
    case FieldType::date:
    case FieldType::timestamp_s:
    case FieldType::timestamp_ms:
    case FieldType::timestamp_us:
    case FieldType::timestamp_ns: {
      const nb::object number =
          helper("time_number")(value, nb::cast(std::string(to_string(field.type))));
      if (number.is_none()) raise_no_cell(field, value);
      if (field.type == FieldType::date) return put(number_of<int32_t>(field, number));
      return put(number_of<int64_t>(field, number));
    }
    case FieldType::uuid: {
      const nb::object bytes = helper("uuid_bytes")(value);
      if (bytes.is_none()) raise_no_cell(field, value);
      std::memcpy(to, nb::cast<nb::bytes>(bytes).c_str(), 16);
      return;
    }
    default:
      with_number_of(field.type,
                     [&](auto number) { put(number_of<decltype(number)>(field, value)); });
  }
}

void write_vector(const Field& field, nb::handle value, std::byte* to) {
  Field element = field;
  element.count = 0;
  const Cells cells = cells_of(value, element);
  if (cells.size() != field.count)
    raise("InvalidArgument", column_name(field) + ": a vector of " + std::to_string(cells.size()) +
                                 " elements does not fit in " + type_text(field));
  const uint32_t width = cell_width(element);
  for (uint64_t i = 0; i < cells.size(); ++i) {
    if (!cells.column.is_there(i))
      raise("InvalidArgument",
            column_name(field) + ": element " + std::to_string(i) + " of a vector is missing");
    std::memcpy(to + i * width, cells.column[i].data(), width);
  }
}

// The bytes of a string or a bytes-like object, which live as long as the object.
Bytes text_of(const Field& field, nb::handle value, std::string* memory) {
  if (field.type == FieldType::string) {
    if (!PyUnicode_Check(value.ptr())) raise_no_cell(field, value);
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (!text) {
      PyErr_Clear();
      raise("InvalidArgument",
            column_name(field) + ": " + shown(value) + " is no text, for it has surrogates",
            "encode it with errors='surrogatepass' into a column of bytes, or leave them out");
    }
    return {reinterpret_cast<const std::byte*>(text), static_cast<size_t>(size)};
  }
  if (nb::isinstance<nb::bytes>(value)) {
    const auto bytes = nb::borrow<nb::bytes>(value);
    return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
  }
  if (!PyByteArray_Check(value.ptr()) && !PyMemoryView_Check(value.ptr()))
    raise_no_cell(field, value);
  const auto bytes = nb::borrow<nb::bytes>(made(PyBytes_FromObject(value.ptr())));
  memory->assign(static_cast<const char*>(bytes.data()), bytes.size());
  return as_bytes(*memory);
}

// Makes sure that bytes of a width are as many.
void write_bytes(const Field& field, nb::handle value, std::byte* to) {
  std::string memory;
  const Bytes bytes = text_of(field, value, &memory);
  if (bytes.size() != field.count)
    raise("InvalidArgument", column_name(field) + ": " + std::to_string(bytes.size()) +
                                 " bytes do not fit in " + type_text(field));
  std::memcpy(to, bytes.data(), bytes.size());
}

void write_cell(const Field& field, nb::handle value, std::byte* to) {
  if (field.is_vector()) return write_vector(field, value, to);
  if (field.type == FieldType::bytes) return write_bytes(field, value, to);
  write_element(field, value, to);
}

// The element, which stays although the list may change; nothing where the list ends before.
nb::object item_of(const nb::list& list, uint64_t row, const Field& field) {
  nb::object item = nb::steal(PySequence_GetItem(list.ptr(), static_cast<Py_ssize_t>(row)));
  if (item.is_valid()) return item;
  PyErr_Clear();
  raise("InvalidArgument",
        column_name(field) + ": the list became shorter while its elements were read");
}

Cells fixed_cells_of_list(const nb::list& list, const Field& field) {
  Cells cells;
  const uint64_t rows = nb::len(list);
  const uint32_t width = cell_width(field);
  auto* data = add_memory<std::byte>(&cells, std::max<uint64_t>(rows * width, 1));
  uint64_t* valid = nullptr;
  for (uint64_t row = 0; row < rows; ++row) {
    check_signals_at(row);
    const nb::object value = item_of(list, row, field);
    if (!value.is_none()) {
      write_cell(field, value, data + row * width);
      continue;
    }
    std::memset(data + row * width, 0, width);
    if (!valid) {
      valid = add_bits(&cells, rows);
      std::memset(valid, 0xFF, (rows + 63) / 64 * 8);
    }
    valid[row / 64] &= ~(uint64_t{1} << (row % 64));
  }
  cells.column = {data, nullptr, valid, rows, width, width};
  return cells;
}

Cells variable_cells_of_list(const nb::list& list, const Field& field) {
  Cells cells;
  const uint64_t rows = nb::len(list);
  auto bytes = std::make_shared<std::string>();
  auto* ends = add_memory<uint64_t>(&cells, rows + 1);
  uint64_t* valid = nullptr;
  ends[0] = 0;
  std::string memory;
  for (uint64_t row = 0; row < rows; ++row) {
    check_signals_at(row);
    const nb::object value = item_of(list, row, field);
    if (!value.is_none()) {
      bytes->append(as_text(text_of(field, value, &memory)));
    } else {
      if (!valid) {
        valid = add_bits(&cells, rows);
        std::memset(valid, 0xFF, (rows + 63) / 64 * 8);
      }
      valid[row / 64] &= ~(uint64_t{1} << (row % 64));
    }
    ends[row + 1] = bytes->size();
  }
  cells.memory.push_back(bytes);
  cells.column = CellColumn::variable(bytes->data(), ends, rows, valid);
  return cells;
}

nb::object element_of(const Field& field, Bytes cell) {
  nb::object result;
  with_number_of(field.type, [&](auto number) {
    std::memcpy(&number, cell.data(), sizeof number);
    result = nb::cast(number);
  });
  return result;
}

}  // namespace

Cells cells_of_list(const nb::list& list, const Field& field) {
  Cells cells =
      cell_width(field) ? fixed_cells_of_list(list, field) : variable_cells_of_list(list, field);
  cells.field = field;
  return cells;
}

void append_cell(const Field& field, nb::handle value, std::string* bytes) {
  const uint32_t width = cell_width(field);
  if (width == 0) {
    std::string memory;
    bytes->append(as_text(text_of(field, value, &memory)));
    return;
  }
  bytes->resize(bytes->size() + width);
  write_cell(field, value, reinterpret_cast<std::byte*>(bytes->data()) + bytes->size() - width);
}

nb::object object_of(const Field& field, Bytes cell) {
  const char* data = reinterpret_cast<const char*>(cell.data());
  if (field.is_vector()) {
    Field element = field;
    element.count = 0;
    return helper("vector_of")(nb::bytes(data, cell.size()),
                               nb::cast(std::string(to_string(field.type))));
  }
  switch (field.type) {
    case FieldType::boolean:
      return nb::bool_(cell[0] != std::byte{0});
    case FieldType::string:
      return made(
          PyUnicode_DecodeUTF8(data, static_cast<Py_ssize_t>(cell.size()), "surrogateescape"));
    case FieldType::bytes:
      return nb::bytes(data, cell.size());
    case FieldType::uuid:
      return helper("uuid_of")(nb::bytes(data, cell.size()));
    case FieldType::date:
    case FieldType::timestamp_s:
    case FieldType::timestamp_ms:
    case FieldType::timestamp_us:
    case FieldType::timestamp_ns:
      return helper("time_of")(element_of(field, cell),
                               nb::cast(std::string(to_string(field.type))));
    default:
      return element_of(field, cell);
  }
}

}  // namespace stride::python

// NumPy arrays as cells, where they lie.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "adapters/python/cells.h"
#include "adapters/python/errors.h"
#include "storage/quoted.h"

namespace stride::python {
namespace {

// The type of "<i8", "|b1", "<M8[us]" and so on; nothing: there is none, or its bytes lie
// otherwise.
std::optional<Field> field_of_typestr(const std::string& text) {
  if (text[0] == '>') return std::nullopt;
  const std::string kind = text.substr(1);
  static const std::pair<const char*, FieldType> types[] = {{"b1", FieldType::boolean},
                                                            {"i1", FieldType::i8},
                                                            {"i2", FieldType::i16},
                                                            {"i4", FieldType::i32},
                                                            {"i8", FieldType::i64},
                                                            {"u1", FieldType::u8},
                                                            {"u2", FieldType::u16},
                                                            {"u4", FieldType::u32},
                                                            {"u8", FieldType::u64},
                                                            {"f4", FieldType::f32},
                                                            {"f8", FieldType::f64},
                                                            {"M8[s]", FieldType::timestamp_s},
                                                            {"M8[ms]", FieldType::timestamp_ms},
                                                            {"M8[us]", FieldType::timestamp_us},
                                                            {"M8[ns]", FieldType::timestamp_ns}};
  for (const auto& [name, type] : types)
    if (kind == name) return Field{.type = type};
  if (kind[0] == 'V' || kind[0] == 'S')
    return Field{.type = FieldType::bytes,
                 .count = static_cast<uint32_t>(std::stoul(kind.substr(1)))};
  return std::nullopt;
}

// The array in a type that has cells of its own: native bytes, floats of 32 bits, seconds.
nb::object in_plain_type(const nb::object& array, const std::string& typestr,
                         const std::string& name) {
  const nb::object dtype = array.attr("dtype");
  auto as = [&](const char* type) { return nb::object(array.attr("astype")(type)); };
  const std::string kind = typestr.substr(1);
  if (kind == "f2") return as("f4");
  if (typestr[0] == '>') return nb::object(array.attr("astype")(dtype.attr("newbyteorder")("<")));
  raise("InvalidType",
        "column " + in_quotes(name) + ": cells of NumPy's type " +
            nb::cast<std::string>(nb::str(dtype)) + " are given, which no column has",
        "convert them first: numbers, booleans, datetime64, strings and bytes have a type");
}

// Days, hours and minutes in seconds. NumPy from 2.5 on raises where one does not fit, older ones
// let it wrap around.
nb::object in_seconds(const nb::object& array, const std::string& name) {
  const nb::object numpy = nb::module_::import_("numpy");
  nb::object seconds;
  try {
    seconds = array.attr("astype")("M8[s]");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_OverflowError)) throw;
    raise("InvalidArgument",
          "column " + in_quotes(name) + ": a time does not fit in seconds of 64 bits");
  }
  const nb::object back = seconds.attr("astype")(array.attr("dtype"));
  const nb::object same =
      numpy.attr("array_equal")(back, array, nb::arg("equal_nan") = nb::bool_(true));
  if (!nb::cast<bool>(nb::bool_(same)))
    raise("InvalidArgument",
          "column " + in_quotes(name) + ": a time does not fit in seconds of 64 bits");
  return seconds;
}

// The bits of rows of which one is null.
uint64_t* valid_bits(Cells* cells, uint64_t* valid, uint64_t null_row) {
  if (!valid) {
    valid = add_bits(cells, cells->size());
    std::memset(valid, 0xFF, (cells->size() + 63) / 64 * 8);
  }
  valid[null_row / 64] &= ~(uint64_t{1} << (null_row % 64));
  return valid;
}

[[noreturn]] void raise_missing(const std::string& name, uint64_t row) {
  raise("InvalidArgument", "column " + in_quotes(name) + ", row " + std::to_string(row) +
                               ": an element of the vector is missing");
}

// NaT is a null.
void find_nulls(Cells* cells, const std::string& name) {
  const FieldType type = cells->field.type;
  if (type < FieldType::timestamp_s || type > FieldType::timestamp_ns) return;
  constexpr int64_t not_a_time = INT64_MIN;
  uint64_t* valid = nullptr;
  for (uint64_t row = 0; row < cells->size(); ++row) {
    const Bytes cell = cells->column[row];
    for (size_t at = 0; at < cell.size(); at += sizeof(int64_t)) {
      int64_t time;
      std::memcpy(&time, cell.data() + at, sizeof time);
      if (time != not_a_time) continue;
      if (cells->field.is_vector()) raise_missing(name, row);
      valid = valid_bits(cells, valid, row);
    }
  }
  cells->column.valid = valid;
}

// Whether booleans have bytes other than 0 and 1, which NumPy takes for true, too. It never makes
// such bytes itself, but views of other memory have them.
bool has_other_truths(const Cells& cells, nb::handle array) {
  return cells.field.type == FieldType::boolean && cells.size() > 0 &&
         nb::cast<int>(nb::object(array.attr("view")("u1").attr("max")())) > 1;
}

// Hides the cells of a masked array.
void hide_masked(const nb::object& mask, const std::string& name, Cells* cells) {
  const Cells masked = cells_of_array(mask, name);
  auto* valid = const_cast<uint64_t*>(cells->column.valid);  // of these cells' own
  for (uint64_t row = 0; row < masked.size(); ++row) {
    const Bytes bits = masked.column[row];
    if (std::all_of(bits.begin(), bits.end(), [](std::byte b) { return b == std::byte{0}; }))
      continue;
    if (cells->field.is_vector()) raise_missing(name, row);
    valid = valid_bits(cells, valid, row);
  }
  cells->column.valid = valid;
}

bool is_masked(const nb::object& array) {
  return nb::isinstance(array, nb::module_::import_("numpy").attr("ma").attr("MaskedArray"));
}

[[noreturn]] void raise_shape(const std::string& name, size_t dimensions) {
  raise("InvalidType",
        "column " + in_quotes(name) + ": an array of " + std::to_string(dimensions) +
            " dimensions is given",
        "give one of one dimension, or of two for a column of vectors");
}

// Bytes from one row to the next, where rows go up and their elements lie together.
std::optional<uint64_t> stride_of(const nb::dict& interface, size_t dimensions, int64_t row_bytes,
                                  int64_t item) {
  if (!interface.contains("strides")) return static_cast<uint64_t>(row_bytes);
  const nb::object strides = interface["strides"];
  if (strides.is_none()) return static_cast<uint64_t>(row_bytes);
  const int64_t first = nb::cast<int64_t>(nb::object(strides[0]));
  if (first < 0 || (dimensions == 2 && nb::cast<int64_t>(nb::object(strides[1])) != item))
    return std::nullopt;
  return static_cast<uint64_t>(first);
}

}  // namespace

nb::object as_array(nb::handle given) {
  const nb::object numpy = nb::module_::import_("numpy");
  if (nb::isinstance(given, numpy.attr("ndarray"))) return nb::borrow(given);
  return numpy.attr("asanyarray")(given);
}

nb::list list_of_array(nb::handle array, const std::string& name) {
  const auto dimensions = nb::cast<size_t>(nb::object(array.attr("ndim")));
  if (dimensions == 0) raise_shape(name, dimensions);
  try {
    return nb::cast<nb::list>(array.attr("tolist")());
  } catch (nb::python_error& error) {
    // Memory that is seen as text may have numbers that are no character.
    if (!error.matches(PyExc_SystemError) && !error.matches(PyExc_ValueError)) throw;
    raise("InvalidArgument", "column " + in_quotes(name) + ": NumPy can't read the array's cells",
          "look for characters that are none");
  }
}

Cells cells_of_array(nb::object array, const std::string& name) {
  if (is_masked(array)) {
    const nb::object mask = nb::module_::import_("numpy").attr("ma").attr("getmaskarray")(array);
    Cells cells = cells_of_array(nb::object(array.attr("data")), name);
    hide_masked(mask, name, &cells);
    return cells;
  }
  auto interface = nb::cast<nb::dict>(array.attr("__array_interface__"));
  const std::string typestr = nb::cast<std::string>(nb::object(interface["typestr"]));
  if (!nb::object(array.attr("dtype").attr("names")).is_none())
    raise("InvalidType", "column " + in_quotes(name) + ": an array of structures is given",
          "give one of its fields, or a dict with all of them");
  if (typestr == "<M8[D]") {
    // Dates have 4 bytes here.
    Cells cells = cells_of_array(in_seconds(array, name), name);
    const uint32_t count = cells.field.count;
    return cast_cells(std::move(cells), {.name = name, .type = FieldType::date, .count = count});
  }
  if (typestr == "<M8[m]" || typestr == "<M8[h]")
    return cells_of_array(in_seconds(array, name), name);
  const std::optional<Field> field = field_of_typestr(typestr);
  if (!field) return cells_of_array(in_plain_type(array, typestr, name), name);
  const nb::object shape = interface["shape"];
  const size_t dimensions = nb::len(shape);
  if (dimensions != 1 && dimensions != 2) raise_shape(name, dimensions);

  Cells cells;
  cells.field = *field;
  const auto rows = nb::cast<uint64_t>(nb::object(shape[0]));
  const uint32_t item = cell_width(cells.field);
  if (item == 0)
    raise_type({.name = name, .type = FieldType::bytes}, "cells of no bytes are given");
  uint32_t width = item;
  if (width > max_cell_width)
    raise("InvalidArgument", "column " + in_quotes(name) + ": cells of " + std::to_string(width) +
                                 " bytes are given, and " + std::to_string(max_cell_width) +
                                 " are the most");
  if (dimensions == 2) {
    const auto count = nb::cast<uint64_t>(nb::object(shape[1]));
    if (count == 0 || count > max_cell_width / item || cells.field.count)
      raise_shape(name, dimensions);
    cells.field.count = static_cast<uint32_t>(count);
    width *= cells.field.count;
  }
  const std::optional<uint64_t> stride = stride_of(interface, dimensions, width, item);
  if (!stride)
    return cells_of_array(nb::module_::import_("numpy").attr("ascontiguousarray")(array), name);
  const nb::object data = interface["data"];
  const auto address = nb::cast<uintptr_t>(nb::object(data[0]));
  cells.column = {
      reinterpret_cast<const std::byte*>(address), nullptr, nullptr, rows, width, *stride};
  cells.memory.push_back(keep(array));
  if (has_other_truths(cells, array)) {
    const nb::object numpy = nb::module_::import_("numpy");
    return cells_of_array(numpy.attr("not_equal")(array.attr("view")("u1"), 0), name);
  }
  find_nulls(&cells, name);
  return cells;
}

}  // namespace stride::python

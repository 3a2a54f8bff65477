// NumPy arrays as cells, where they lie.
#include <nanobind/stl/string.h>

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
  if (text.size() < 3 || text[0] == '>') return std::nullopt;
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
  if (kind == "M8[m]" || kind == "M8[h]") return as("M8[s]");
  if (typestr[0] == '>') return nb::object(array.attr("astype")(dtype.attr("newbyteorder")("<")));
  raise("InvalidType",
        "column " + stride::quoted(name) + ": cells of NumPy's type " +
            nb::cast<std::string>(nb::str(dtype)) + " are given, which no column has",
        "convert them first: numbers, booleans, datetime64, strings and bytes have a type");
}

// NaT is a null.
void find_nulls(Cells* cells) {
  const FieldType type = cells->field.type;
  if (type < FieldType::timestamp_s || type > FieldType::timestamp_ns) return;
  constexpr int64_t not_a_time = INT64_MIN;
  uint64_t* valid = nullptr;
  for (uint64_t row = 0; row < cells->size(); ++row) {
    if (cells->column.number<int64_t>(row) != not_a_time) continue;
    if (!valid) {
      valid = add_bits(cells, cells->size());
      std::memset(valid, 0xFF, (cells->size() + 63) / 64 * 8);
    }
    valid[row / 64] &= ~(uint64_t{1} << (row % 64));
  }
  cells->column.valid = valid;
}

[[noreturn]] void raise_shape(const std::string& name, size_t dimensions) {
  raise("InvalidType",
        "column " + stride::quoted(name) + ": an array of " + std::to_string(dimensions) +
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

Cells cells_of_array(nb::object array, const std::string& name) {
  auto interface = nb::cast<nb::dict>(array.attr("__array_interface__"));
  const std::string typestr = nb::cast<std::string>(nb::object(interface["typestr"]));
  if (typestr == "<M8[D]") {
    // Dates have 4 bytes here.
    Cells cells = cells_of_array(nb::object(array.attr("astype")("M8[s]")), name);
    return cast_cells(std::move(cells), {.name = name, .type = FieldType::date});
  }
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
  if (dimensions == 2) {
    const auto count = nb::cast<uint64_t>(nb::object(shape[1]));
    if (count == 0 || count * item > max_cell_width || cells.field.count)
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
  find_nulls(&cells);
  return cells;
}

}  // namespace stride::python

// Cells in the type of the column that they are for: exactly, or not at all.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "adapters/python/cells.h"
#include "adapters/python/errors.h"
#include "storage/row_format.h"

namespace stride::python {
namespace {

bool is_text(const Field& field) { return width_of(field.type) == 0; }
bool is_float(FieldType type) { return type == FieldType::f32 || type == FieldType::f64; }
bool is_integer(FieldType type) { return type >= FieldType::i8 && type <= FieldType::u64; }

// Nanoseconds of a unit; 0: it is no time.
int64_t unit_of(FieldType type) {
  switch (type) {
    case FieldType::date:
      return 86'400'000'000'000;
    case FieldType::timestamp_s:
      return 1'000'000'000;
    case FieldType::timestamp_ms:
      return 1'000'000;
    case FieldType::timestamp_us:
      return 1'000;
    case FieldType::timestamp_ns:
      return 1;
    default:
      return 0;
  }
}

[[noreturn]] void raise_cell(const Field& field, uint64_t row, const std::string& why) {
  raise("InvalidArgument", column_name(field) + ", row " + std::to_string(row) + ": " + why +
                               " does not fit in " + type_text(field));
}

template <class From, class To>
bool convert(From from, To* to) {
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    if (!std::in_range<To>(from)) return false;
    *to = static_cast<To>(from);
  } else if constexpr (std::is_integral_v<From>) {
    *to = static_cast<To>(from);
    // What a float does not have exactly comes back as another number, or out of range.
    constexpr To limit = static_cast<To>(std::numeric_limits<From>::max());
    return (*to < limit || sizeof(From) < sizeof(To)) && static_cast<From>(*to) == from;
  } else {
    *to = static_cast<To>(from);
    if constexpr (sizeof(To) < sizeof(From)) return std::isfinite(*to) || !std::isfinite(from);
  }
  return true;
}

template <class From, class To>
void cast_numbers(const Cells& given, const Field& field, uint64_t elements, To* to) {
  const CellColumn& column = given.column;
  for (uint64_t row = 0; row < column.size; ++row) {
    const bool there = column.is_there(row);
    for (uint64_t i = 0; i < elements; ++i, ++to) {
      From number;
      std::memcpy(&number, column.data + row * column.stride + i * sizeof number, sizeof number);
      *to = 0;
      if (there && !convert(number, to)) raise_cell(field, row, std::to_string(number));
    }
  }
}

Cells cast_number_cells(Cells given, const Field& field) {
  const uint64_t elements = std::max(field.count, 1u);
  Cells cast;
  with_number_of(field.type, [&](auto target) {
    using To = decltype(target);
    auto* to = add_memory<To>(&cast, std::max<uint64_t>(given.size() * elements, 1));
    with_number_of(given.field.type, [&](auto source) {
      if constexpr (!(std::is_floating_point_v<decltype(source)> && std::is_integral_v<To>))
        cast_numbers<decltype(source), To>(given, field, elements, to);
    });
    const auto width = static_cast<uint32_t>(elements * sizeof(To));
    cast.column = {
        reinterpret_cast<std::byte*>(to), nullptr, given.column.valid, given.size(), width, width};
  });
  return cast;
}

// A number of one unit in another one; nothing where it is not whole there, or too large.
std::optional<int64_t> in_unit(int64_t number, int64_t from, int64_t to) {
  if (from >= to) {
    int64_t product;
    if (__builtin_mul_overflow(number, from / to, &product)) return std::nullopt;
    return product;
  }
  if (number % (to / from) != 0) return std::nullopt;
  return number / (to / from);
}

int64_t time_at(const std::byte* cell, uint32_t width) {
  int32_t days = 0;
  int64_t time = 0;
  if (width == 4)
    std::memcpy(&days, cell, 4);
  else
    std::memcpy(&time, cell, 8);
  return width == 4 ? days : time;
}

Cells cast_times(Cells given, const Field& field) {
  const int64_t from = unit_of(given.field.type), to = unit_of(field.type);
  const uint32_t width = cell_width(field), element = width_of(field.type);
  const uint32_t given_element = width_of(given.field.type);
  Cells cast;
  auto* data = add_memory<std::byte>(&cast, std::max<uint64_t>(given.size() * width, 1));
  for (uint64_t row = 0; row < given.size(); ++row) {
    for (uint32_t i = 0; i < width / element; ++i) {
      const std::byte* cell = given.column.data + row * given.column.stride + i * given_element;
      const int64_t number = given.column.is_there(row) ? time_at(cell, given_element) : 0;
      const std::optional<int64_t> converted = in_unit(number, from, to);
      if (!converted || (element == 4 && !std::in_range<int32_t>(*converted)))
        raise_cell(field, row,
                   std::to_string(number) + " of " + std::string(to_string(given.field.type)));
      std::memcpy(data + row * width + i * element, &*converted, element);  // little-endian
    }
  }
  cast.column = {data, nullptr, given.column.valid, given.size(), width, width};
  return cast;
}

// Bytes of any length as bytes of one.
Cells cast_to_width(Cells given, const Field& field) {
  const uint32_t width = cell_width(field);
  Cells cast;
  auto* data = add_memory<std::byte>(&cast, std::max<uint64_t>(given.size() * width, 1));
  for (uint64_t row = 0; row < given.size(); ++row) {
    std::memset(data + row * width, 0, width);
    if (!given.column.is_there(row)) continue;
    const Bytes cell = given.column[row];
    if (cell.size() != width)
      raise_cell(field, row, "a cell of " + std::to_string(cell.size()) + " bytes");
    std::memcpy(data + row * width, cell.data(), width);
  }
  cast.column = {data, nullptr, given.column.valid, given.size(), width, width};
  return cast;
}

// Bytes of one length as bytes of any.
Cells cast_to_any_length(Cells given) {
  Cells cast;
  const uint64_t width = given.column.width;
  auto* data = add_memory<std::byte>(&cast, std::max<uint64_t>(given.size() * width, 1));
  auto* ends = add_memory<uint64_t>(&cast, given.size() + 1);
  ends[0] = 0;
  for (uint64_t row = 0; row < given.size(); ++row) {
    const Bytes cell = given.column.is_there(row) ? given.column[row] : Bytes();
    if (!cell.empty()) std::memcpy(data + ends[row], cell.data(), cell.size());
    ends[row + 1] = ends[row] + cell.size();
  }
  cast.column = CellColumn::variable(data, ends, given.size(), given.column.valid);
  return cast;
}

std::string remedy_for(const Field& given, const Field& field) {
  if (is_float(given.type) && is_integer(field.type))
    return "round it and convert it to an integer type first; where cells are missing, to a "
           "nullable one, as pandas' Int64";
  if (given.type == FieldType::string && field.type == FieldType::bytes)
    return "encode it, or make the table with stridedb.str_ in place of bytes";
  if (given.type == FieldType::bytes && field.type == FieldType::string)
    return "decode it, or make the table with stridedb.bytes_ in place of a string";
  if (is_integer(given.type) && unit_of(field.type))
    return "say which unit it has, as array.astype('datetime64[us]') does";
  return {};
}

// What casts cells of one type to another; null: nothing does.
Cells (*caster(const Field& given, const Field& field))(Cells, const Field&) {
  if (is_text(given) != is_text(field) && given.type != FieldType::uuid &&
      field.type != FieldType::uuid)
    return nullptr;
  const bool bytes_alike = (given.type == FieldType::bytes || given.type == FieldType::uuid) &&
                           (field.type == FieldType::bytes || field.type == FieldType::uuid);
  if (bytes_alike) {
    if (cell_width(field)) return cast_to_width;
    return [](Cells cells, const Field&) { return cast_to_any_length(std::move(cells)); };
  }
  if (given.count != field.count) return nullptr;
  if (unit_of(given.type) && unit_of(field.type)) return cast_times;
  if (is_integer(given.type) && (is_integer(field.type) || is_float(field.type)))
    return cast_number_cells;
  if (is_float(given.type) && is_float(field.type)) return cast_number_cells;
  return nullptr;
}

// Whether there is nothing that could have a type: no row, or nulls alone.
bool has_no_cell(const CellColumn& column) {
  for (uint64_t row = 0; row < column.size; ++row)
    if (column.is_there(row)) return false;
  return true;
}

Cells nulls(const Field& field, uint64_t rows) {
  Cells cells;
  const uint32_t width = cell_width(field);
  auto* data = add_memory<std::byte>(&cells, std::max<uint64_t>(rows * width, 1));
  std::memset(data, 0, rows * width);
  uint64_t* ends = width ? nullptr : add_memory<uint64_t>(&cells, rows + 1);
  if (ends) std::fill_n(ends, rows + 1, 0);
  cells.column = {data, ends, add_bits(&cells, rows), rows, width, width};
  return cells;
}

}  // namespace

Cells cast_cells(Cells given, const Field& field) {
  if (given.field.type != field.type || given.field.count != field.count) {
    auto* cast = caster(given.field, field);
    if (!cast && !has_no_cell(given.column))
      raise_type(
          field,
          "cells of type " + type_text({"", given.field.type, given.field.count}) + " are given",
          remedy_for(given.field, field));
    const auto memory = given.memory;
    given = cast ? cast(std::move(given), field) : nulls(field, given.size());
    given.memory.insert(given.memory.end(), memory.begin(), memory.end());
  }
  given.field = field;
  return given;
}

}  // namespace stride::python

#include "engine/row_columns.h"

#include <algorithm>
#include <string>
#include <vector>

#include "storage/no_throw.h"
#include "storage/quoted.h"
#include "storage/row_format.h"

namespace stride {
namespace {

// A block of rows is filled column by column while it lies in the cache.
constexpr uint64_t block_rows = 1024;

std::string column_text(const Schema& schema, size_t column) {
  return "column " + in_quotes(schema.values()[column].name);
}

Status check_columns(const Schema& schema, std::span<const CellColumn> columns) {
  if (columns.size() != schema.values().size())
    return Status::invalid(std::to_string(columns.size()) +
                           " columns are given, and the schema has " +
                           std::to_string(schema.values().size()) + ": " + schema.to_string())
        .with_remedy("give a column of cells for each of the schema's");
  for (size_t i = 0; i < columns.size(); ++i) {
    const CellColumn& column = columns[i];
    const std::string name = column_text(schema, i);
    if (column.size != columns[0].size)
      return Status::invalid(name + " has " + std::to_string(column.size) + " rows, and " +
                             column_text(schema, 0) + " has " + std::to_string(columns[0].size));
    const uint32_t width = schema.width(i);
    if (width ? column.offsets || column.width != width : column.size && !column.offsets)
      return Status::invalid(
          name + " is of type " + type_text(schema.values()[i]) + ", and cells of " +
          (column.offsets ? "any length" : std::to_string(column.width) + " bytes") + " are given");
    for (uint64_t row = 0; column.offsets && row < column.size; ++row) {
      if (column.offsets[row + 1] < column.offsets[row])
        return Status::invalid(name + ", row " + std::to_string(row) + ": the offsets descend");
      if (column.offsets[row + 1] - column.offsets[row] > max_value_bytes)
        return Status::invalid(name + ", row " + std::to_string(row) +
                               ": the cell is longer than " + std::to_string(max_value_bytes) +
                               " bytes");
    }
    if (schema.valid_bit(i) != Schema::no_bit || !column.valid) continue;
    for (uint64_t row = 0; row < column.size; ++row)
      if (!column.is_there(row))
        return Status::invalid(name + ", row " + std::to_string(row) +
                               ": the cell is null, and the column has none")
            .with_remedy("make the column nullable (" + type_text(schema.values()[i]) +
                         "?), or give a value");
  }
  return {};
}

// Calls copy(std::integral_constant<uint32_t, width>) for widths that compilers copy in one move,
// and copy(width) for others.
template <class Copy>
void with_width(uint32_t width, const Copy& copy) {
  switch (width) {
    case 1:
      return copy(std::integral_constant<uint32_t, 1>());
    case 2:
      return copy(std::integral_constant<uint32_t, 2>());
    case 4:
      return copy(std::integral_constant<uint32_t, 4>());
    case 8:
      return copy(std::integral_constant<uint32_t, 8>());
    default:
      return copy(width);
  }
}

// Puts the cells that have a width, and the bits, into rows [first, last), which begin where
// begin() says.
template <class Begin>
void fill_fixed(const Schema& schema, std::span<const CellColumn> columns, uint64_t first,
                uint64_t last, const Begin& begin) {
  for (size_t i = 0; i < columns.size(); ++i) {
    const CellColumn& column = columns[i];
    const uint32_t bit = schema.valid_bit(i);
    if (const uint32_t width = schema.width(i)) {
      const uint32_t offset = schema.offset(i);
      with_width(width, [&](auto w) {
        for (uint64_t row = first; row < last; ++row)
          if (column.is_there(row))
            std::memcpy(begin(row) + offset, column.data + row * column.stride, w);
      });
    }
    if (bit == Schema::no_bit) continue;
    for (uint64_t row = first; row < last; ++row)
      begin(row)[bit / 8] |= std::byte{column.is_there(row)} << (bit % 8);
  }
}

// Puts the others behind.
void fill_variable(const Schema& schema, std::span<const CellColumn> columns, uint64_t row,
                   std::byte* to) {
  const auto& variable = schema.variable();
  auto cell = [&](uint32_t i) { return columns[i].is_there(row) ? columns[i][row] : Bytes(); };
  for (size_t i = 0; i + 1 < variable.size(); ++i) to = write_length(cell(variable[i]).size(), to);
  for (uint32_t i : variable) {
    const Bytes bytes = cell(i);
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  }
}

// Where each row begins.
Status measure(const Schema& schema, std::span<const CellColumn> columns, uint64_t rows,
               uint64_t* offsets) {
  const auto& variable = schema.variable();
  offsets[0] = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t bytes = schema.fixed_bytes();
    for (size_t i = 0; i < variable.size(); ++i) {
      const CellColumn& column = columns[variable[i]];
      const uint64_t length =
          column.is_there(row) ? column.offsets[row + 1] - column.offsets[row] : 0;
      bytes += length + (i + 1 < variable.size() ? length_bytes(length) : 0);
    }
    if (bytes > max_value_bytes)
      return Status::invalid("row " + std::to_string(row) + " has " + std::to_string(bytes) +
                             " bytes; at most " + std::to_string(max_value_bytes) +
                             " are possible");
    offsets[row + 1] = offsets[row] + bytes;
  }
  return {};
}

Status no_row(const Schema& schema, uint64_t row) {
  return Status(StatusCode::corruption, "the value of row " + std::to_string(row) +
                                            " is no row of the schema " + schema.to_string())
      .with_remedy("erase the row or put another one; whatever wrote it knew no schema");
}

// Calls use(reader, row) for rows that are there, and absent(row) for others.
template <class Use, class Absent>
Status read_rows(const Schema& schema, const ValueColumn& rows, const Bitmap* found, const Use& use,
                 const Absent& absent) {
  RowReader reader(schema);
  for (uint64_t row = 0; row < rows.size; ++row) {
    if (found && !(*found)[row]) {
      absent(row);
      continue;
    }
    if (!reader.read(rows[row])) return no_row(schema, row);
    use(reader, row);
  }
  return {};
}

void set_bit(uint64_t* bits, uint64_t row) { bits[row / 64] |= uint64_t{1} << (row % 64); }

// Cells that have a width, where rows lie at one distance.
void decode_in_place(const Schema& schema, const ValueColumn& rows, size_t column,
                     DecodedColumn* decoded, const Bitmap* found) {
  decoded->data = rows.data + schema.offset(column);
  decoded->stride = rows.width;
  const uint32_t bit = schema.valid_bit(column);
  if (bit == Schema::no_bit) {
    decoded->valid = found ? found->words().data() : nullptr;
    return;
  }
  decoded->valid = decoded->bits.data();
  std::span<uint64_t> words(decoded->bits.data(), decoded->bits.size());
  set_bits(words, 0, rows.size, [&](uint64_t row) {
    return (!found || (*found)[row]) &&
           (std::to_integer<unsigned>(rows.data[row * rows.width + bit / 8]) >> (bit % 8) & 1);
  });
}

Status decode_fixed(const Schema& schema, const ValueColumn& rows, size_t column,
                    DecodedColumn* decoded, const Bitmap* found) {
  const uint32_t width = schema.width(column);
  decoded->bytes.reset(rows.size * width);
  std::byte* to = decoded->bytes.data();
  STRIDE_TRY(read_rows(
      schema, rows, found,
      [&](const RowReader& reader, uint64_t row) {
        std::memcpy(to + row * width, reader[column].data(), width);
        if (!reader.is_null(column)) set_bit(decoded->bits.data(), row);
      },
      [&](uint64_t row) { std::memset(to + row * width, 0, width); }));
  decoded->data = to;
  decoded->stride = width;
  return {};
}

Status decode_variable(const Schema& schema, const ValueColumn& rows, size_t column,
                       DecodedColumn* decoded, const Bitmap* found) {
  // All bytes of the rows are enough.
  decoded->bytes.reset(rows.bytes());
  decoded->ends.reset(rows.size + 1);
  std::byte* to = decoded->bytes.data();
  uint64_t end = 0;
  decoded->ends[0] = 0;
  STRIDE_TRY(read_rows(
      schema, rows, found,
      [&](const RowReader& reader, uint64_t row) {
        if (!reader.is_null(column)) {
          const Bytes cell = reader[column];
          if (!cell.empty()) std::memcpy(to + end, cell.data(), cell.size());
          end += cell.size();
          set_bit(decoded->bits.data(), row);
        }
        decoded->ends[row + 1] = end;
      },
      [&](uint64_t row) { decoded->ends[row + 1] = end; }));
  decoded->data = to;
  decoded->offsets = decoded->ends.data();
  return {};
}

}  // namespace

Status encode_rows(const Schema& schema, std::span<const CellColumn> columns,
                   EncodedRows* encoded) {
  return no_throw([&]() -> Status {
    STRIDE_TRY(check_columns(schema, columns));
    const uint64_t rows = columns.empty() ? 0 : columns[0].size;
    const uint32_t fixed = schema.fixed_bytes();
    if (schema.is_fixed()) {
      encoded->data.reset(rows * fixed);
    } else {
      encoded->offsets.reset(rows + 1);
      STRIDE_TRY(measure(schema, columns, rows, encoded->offsets.data()));
      encoded->data.reset(encoded->offsets[rows]);
    }
    std::byte* data = encoded->data.data();
    auto begin = [&](uint64_t row) {
      return data + (schema.is_fixed() ? row * fixed : encoded->offsets[row]);
    };
    for (uint64_t first = 0; first < rows; first += block_rows) {
      const uint64_t last = std::min(rows, first + block_rows);
      for (uint64_t row = first; row < last; ++row)
        if (fixed) std::memset(begin(row), 0, fixed);
      fill_fixed(schema, columns, first, last, begin);
      for (uint64_t row = first; !schema.is_fixed() && row < last; ++row)
        fill_variable(schema, columns, row, begin(row) + fixed);
    }
    encoded->rows = schema.is_fixed() ? Column::fixed(data, fixed, rows)
                                      : Column::variable(data, encoded->offsets.data(), rows);
    return {};
  });
}

Status decode_column(const Schema& schema, const ValueColumn& rows, size_t column,
                     DecodedColumn* decoded, const Bitmap* found) {
  return no_throw([&]() -> Status {
    if (column >= schema.values().size())
      return Status::invalid("there is no column " + std::to_string(column) + " in the schema " +
                             schema.to_string());
    if (found && found->size() < rows.size)
      return Status::invalid("the bits of which rows were found are fewer than the rows");
    static_cast<CellColumn&>(*decoded) = {};
    decoded->size = rows.size;
    decoded->width = schema.width(column);
    decoded->bits.reset((rows.size + 63) / 64);
    std::fill_n(decoded->bits.data(), decoded->bits.size(), 0);
    if (schema.is_fixed() && rows.is_fixed() && rows.width == schema.fixed_bytes()) {
      decode_in_place(schema, rows, column, decoded, found);
      return {};
    }
    decoded->valid = decoded->bits.data();
    return decoded->width ? decode_fixed(schema, rows, column, decoded, found)
                          : decode_variable(schema, rows, column, decoded, found);
  });
}

}  // namespace stride

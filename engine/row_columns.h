// Rows of a table with a schema as columns of cells, and back.
//
//   auto users = db->open_or_create_table("users", {.key_width = 8, .schema = *Schema::parse(
//                                                       "name string, score f64?")});
//   CellColumn columns[] = {CellColumn::variable(names.data(), offsets.data(), n),
//                           CellColumn::of(scores)};
//   t.put(*users, keys, columns);                        // a column of cells for each of the schema
//
//   snapshot.get(*users, keys, &result);
//   DecodedColumn scores;                                // reused, it keeps its memory
//   decode_column(users->schema(), result.values, *users->schema().find("score"), &scores,
//                 &result.found);
//   for (uint64_t i = 0; i < n; ++i)
//     if (scores.is_there(i)) use(scores.number<double>(i));
//
// Cells of rows whose columns all have a width are not copied: they are handed out where they lie, at
// the distance of a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/result_buffer.h"
#include "storage/column.h"
#include "storage/export.h"
#include "storage/schema.h"
#include "storage/status.h"

namespace stride {

// A view of the cells of a column, one a row. Laid out as in Apache Arrow, but that those of one
// width may lie apart.
struct CellColumn {
  const std::byte* data = nullptr;
  const uint64_t* offsets = nullptr;  // size + 1, into data; null: all have `width` bytes
  const uint64_t* valid = nullptr;    // a bit each, 1: it is there; null: all are
  uint64_t size = 0;                  // rows
  uint32_t width = 0;                 // bytes of a cell
  uint64_t stride = 0;                // bytes from one cell to the next

  static CellColumn fixed(const void* data, uint32_t width, uint64_t size,
                          const uint64_t* valid = nullptr) {
    return {static_cast<const std::byte*>(data), nullptr, valid, size, width, width};
  }
  static CellColumn variable(const void* data, const uint64_t* offsets, uint64_t size,
                             const uint64_t* valid = nullptr) {
    return {static_cast<const std::byte*>(data), offsets, valid, size, 0, 0};
  }
  template <class Numbers>
  static CellColumn of(const Numbers& numbers, const uint64_t* valid = nullptr) {
    std::span view(numbers);
    return fixed(view.data(), sizeof view[0], view.size(), valid);
  }

  bool is_there(uint64_t row) const { return !valid || (valid[row / 64] >> (row % 64) & 1); }
  Bytes operator[](uint64_t row) const {
    if (offsets) return {data + offsets[row], offsets[row + 1] - offsets[row]};
    return {data + row * stride, width};
  }
  // Precondition: T is as wide as the cells.
  template <class T>
  T number(uint64_t row) const {
    T number;
    std::memcpy(&number, data + row * stride, sizeof number);
    return number;
  }
};

// Rows that were made of columns.
struct EncodedRows {
  ValueColumn rows;  // points into these
  ResultBuffer<std::byte> data;
  ResultBuffer<uint64_t> offsets;
};

// A row for each of the columns' rows; columns[i] is of the schema's i-th value column.
// invalid_argument, which names column and row: another number of columns, columns of different
// sizes, cells of another width, offsets that descend, or a null in a column that has none.
STRIDE_API Status encode_rows(const Schema& schema, std::span<const CellColumn> columns,
                              EncodedRows* encoded);

// The cells of one column. They point into the rows or into this.
struct DecodedColumn : CellColumn {
  ResultBuffer<std::byte> bytes;
  ResultBuffer<uint64_t> ends;
  ResultBuffer<uint64_t> bits;
};

// found: rows whose bit is 0 are not there, and their cells are null whatever the schema says; null:
// all are. corruption: bytes that are no row of the schema, with the row's number. The rows must stay
// as long as the cells are read.
STRIDE_API Status decode_column(const Schema& schema, const ValueColumn& rows, size_t column,
                                DecodedColumn* decoded, const Bitmap* found = nullptr);

}  // namespace stride
